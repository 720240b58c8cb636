//! The modules of the project that a Python program imports, as its `import` lines show it.
//!
//! Nothing is run. What is imported by a computed name, or loaded in another way, is not found: the
//! list says what a program is surely made of, and never that there is nothing else.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use super::model::{Recipe, Variant};
use crate::files::{read_text_up_to, resolved};
use crate::git;

/// The most modules of one program. What is beyond is not listed.
const MOST_MODULES: usize = 2000;
/// The most bytes of a module whose imports are read; a larger one is listed all the same.
const MOST_OF_MODULE: u64 = 4 << 20;

/// The Python scripts that the command of a variant names, those among its `inputs`, and the modules
/// of the project that they import, directly or not. Paths from the root.
pub(super) fn imported(root: &Path, variant: &Variant, inputs: &[String]) -> Vec<String> {
    let Recipe::Command { run, .. } = &variant.recipe else {
        return Vec::new();
    };
    let mut graph = Graph {
        root,
        search: Vec::new(),
        seen: BTreeSet::new(),
        open: Vec::new(),
    };
    let scripts: Vec<PathBuf> = run.iter().filter_map(|word| graph.script(word)).collect();
    let modules = modules_of(run);
    if scripts.is_empty() && modules.is_empty() {
        return Vec::new();
    }
    // As Python searches: the folder of the script, or with `-m` the current one, then PYTHONPATH.
    let folders = scripts.iter().filter_map(|script| script.parent());
    graph.search.extend(folders.map(Path::to_path_buf));
    if !modules.is_empty() {
        graph.search.push(PathBuf::new());
    }
    let path = variant.env.get("PYTHONPATH").map_or("", String::as_str);
    let further = path.split(':').filter(|folder| !folder.is_empty());
    let further = further.filter_map(|folder| below(root, Path::new(folder)));
    graph.search.extend(further);
    scripts.into_iter().for_each(|script| graph.add(script));
    for module in modules {
        graph.find_anywhere(module);
        graph.find_anywhere(&format!("{module}.__main__"));
    }
    let python = inputs.iter().filter(|input| input.ends_with(".py"));
    for input in python.filter_map(|input| below(root, Path::new(input))) {
        graph.add(input);
    }
    while let Some(file) = graph.open.pop() {
        graph.follow(&file);
    }
    let seen = graph.seen.into_iter();
    seen.map(|path| path.to_string_lossy().into_owned())
        .collect()
}

/// The modules that `python -m` runs.
fn modules_of(run: &[String]) -> Vec<&str> {
    let is_python = |word: &String| {
        let name = word.rsplit('/').next().unwrap_or(word);
        name.starts_with("python")
    };
    let Some(at) = run.iter().position(is_python) else {
        return Vec::new();
    };
    let mut words = run.iter().skip(at + 1);
    match words.find(|word| !word.starts_with('-') || *word == "-m") {
        Some(word) if word == "-m" => words.next().map(String::as_str).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The path from the root, without `.` and `..`; `None` of what is outside.
fn below(root: &Path, path: &Path) -> Option<PathBuf> {
    let (path, root) = (resolved(&root.join(path)), resolved(root));
    Some(path.strip_prefix(root).ok()?.to_path_buf())
}

struct Graph<'a> {
    root: &'a Path,
    /// Folders that absolute names are searched in.
    search: Vec<PathBuf>,
    seen: BTreeSet<PathBuf>,
    /// Those whose imports are not read yet.
    open: Vec<PathBuf>,
}

impl Graph<'_> {
    /// A word of the command that is a Python file of the project.
    fn script(&self, word: &str) -> Option<PathBuf> {
        let path = below(self.root, Path::new(word)).filter(|_| word.ends_with(".py"))?;
        git::is_input_file(self.root.join(&path)).then_some(path)
    }

    fn add(&mut self, file: PathBuf) {
        let is_new = self.seen.len() < MOST_MODULES && git::is_input_file(self.root.join(&file));
        if is_new && file.to_str().is_some() && self.seen.insert(file.clone()) {
            self.open.push(file);
        }
    }

    /// Reads the imports of a file.
    fn follow(&mut self, file: &Path) {
        let path = git::real_input(&self.root.join(file));
        let Ok(text) = path.and_then(|path| read_text_up_to(&path, MOST_OF_MODULE)) else {
            return;
        };
        let folder = file.parent().unwrap_or(Path::new("")).to_path_buf();
        for import in imports(&text) {
            let dots = import.bytes().take_while(|byte| *byte == b'.').count();
            let name = &import[dots..];
            if dots == 0 {
                self.find_anywhere(name);
                continue;
            }
            // One dot is the file's own package, each further one the package around.
            let package = folder.ancestors().nth(dots - 1).map(Path::to_path_buf);
            if let Some(package) = package {
                self.add(package.join("__init__.py"));
                self.find(&package, name);
            }
        }
    }

    fn find_anywhere(&mut self, name: &str) {
        for folder in self.search.clone() {
            self.find(&folder, name);
        }
    }

    /// Adds a module by its dotted name, with the packages around it.
    fn find(&mut self, folder: &Path, name: &str) {
        let mut path = folder.to_path_buf();
        for part in name.split('.').filter(|part| !part.is_empty()) {
            path.push(part);
            self.add(path.join("__init__.py"));
            self.add(path.with_file_name(format!("{part}.py")));
        }
    }
}

/// The dotted names that import statements name; those of relative imports begin with dots. Of
/// `from a import b`, both `a` and `a.b`: the second may be a module too. Text that only looks like a
/// statement, such as a line of a documentation string, counts.
fn imports(text: &str) -> BTreeSet<String> {
    // Also `if fast: import a; import b`, and `import (` with comments up to `)`.
    const IMPORT: &str =
        r"(?:\bfrom[ \t]+([\w.]+)[ \t]*)?\bimport\b[ \t]*(\((?:[^)#]|#[^\n]*)*|[^(\n;]*)";
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(IMPORT).ok());
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    let mut found = BTreeSet::new();
    for import in PATTERN.iter().flat_map(|it| it.captures_iter(&joined)) {
        let part = |group| import.get(group).map_or("", |part| part.as_str());
        let names = part(2).trim_start_matches('(').lines().flat_map(names_of);
        match part(1) {
            "" => found.extend(names.map(str::to_owned)),
            module => {
                let dot = if module.ends_with('.') { "" } else { "." };
                found.extend(names.map(|name| format!("{module}{dot}{name}")));
                found.insert(module.to_owned());
            }
        }
    }
    found
}

/// The names of `a, b.c as d`, up to a comment.
fn names_of(line: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let names = line.split('#').next().unwrap_or_default().split(',');
    let names = names.filter_map(|name| name.split_whitespace().next());
    names.filter(move |name| name.chars().all(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_an_import_names_its_modules() {
        for (text, expected) in [
            ("import a", &["a"][..]),
            ("import a.b as c, d  # e", &["a.b", "d"]),
            ("    import a; import b", &["a", "b"]),
            ("if x: import a", &["a"]),
            ("from a import b as c, d", &["a", "a.b", "a.d"]),
            (
                "from a.b import (\n    c,  # one\n    d as e,\n)\nimport f",
                &["a.b", "a.b.c", "a.b.d", "f"],
            ),
            ("from a import(b)", &["a", "a.b"]),
            ("from . import a", &[".", ".a"]),
            ("from ..a import b", &["..a", "..a.b"]),
            ("from a import *", &["a"]),
            ("from a \\\n  import b", &["a", "a.b"]),
            ("important = reimport (1)\nx = 'import'", &[]),
            ("from a import (b", &["a", "a.b"]),
            ("import", &[]),
            ("from  import ", &[]),
        ] {
            let found: Vec<String> = imports(text).into_iter().collect();
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn the_module_that_python_runs_is_known() {
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            modules_of(&words).join(" ")
        };
        assert_eq!(of(&["python3", "-m", "pkg.bench", "-m", "x"]), "pkg.bench");
        assert_eq!(of(&["env/bin/python3.12", "-u", "-m", "bench"]), "bench");
        assert_eq!(of(&["python3", "bench.py", "-m", "x"]), "");
        assert_eq!(of(&["sh", "-m", "x"]), "");
    }

    #[test]
    fn a_path_out_of_the_project_is_none() {
        let root = Path::new("/project");
        for (path, expected) in [
            ("./a/../b.py", Some("b.py")),
            ("/project/a.py", Some("a.py")),
            ("../a.py", None),
            ("a/../../b.py", None),
            ("/usr/lib/a.py", None),
        ] {
            assert_eq!(below(root, Path::new(path)), expected.map(PathBuf::from));
        }
    }
}
