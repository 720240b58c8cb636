//! Which files decide a compilation besides those that its tools open: those that could be found in
//! their place, and those that a text asks for.

use crate::disk::{self, Entry};
use crate::git;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The operators by which a text asks the preprocessor whether a file exists.
const QUESTIONS: [&str; 3] = ["__has_include", "__has_include_next", "__has_embed"];

/// What texts ask the preprocessor about files and about the time.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// The files that are named.
    pub names: BTreeSet<String>,
    /// Whether an answer may depend on more than these.
    pub open: bool,
}

/// What a text asks by name: each word of the kind counts, since macros may stand for the operators.
pub(super) fn questions(text: &str) -> Questions {
    let mut found = Questions::default();
    let lower = text.to_ascii_lowercase();
    let words = ["has_inc", "has_emb"];
    for (at, _) in words.iter().flat_map(|word| lower.match_indices(word)) {
        let (before, rest) = text.split_at(at);
        let inner = rest.trim_start_matches(is_name).trim_start();
        let inner = inner.strip_prefix('(').unwrap_or_default().trim_start();
        let name = |open, close| Some(inner.strip_prefix(open)?.split_once(close)?.0);
        match name('<', '>').or_else(|| name('"', '"')) {
            Some(name) => drop(found.names.insert(name.to_owned())),
            None => found.open |= !asks_for_definition(before.trim_end_matches(is_name)),
        }
    }
    found
}

/// What the project's own texts ask. Their directives may put the operators together from parts.
pub(super) fn own_questions(text: &str) -> Questions {
    let text = spliced(text);
    let mut found = questions(&text);
    let directives = text.lines().filter(|line| may_be_of_directive(line));
    let words: BTreeSet<&str> = directives
        .flat_map(|line| line.split(|c| !is_name(c)))
        .collect();
    let begins = |part: &str| QUESTIONS.iter().any(|whole| whole.starts_with(part));
    found.open |= words.iter().any(|word| match word.len() {
        0 => false,
        1 | 2 if begins(word) => words
            .iter()
            .any(|next| !next.is_empty() && begins(&format!("{word}{next}"))),
        _ => begins(word) && !QUESTIONS.contains(word),
    });
    let times = ["__DATE__", "__TIME__", "__TIMESTAMP__"];
    found.open |= times.iter().any(|time| text.contains(time));
    found
}

/// Whether a line may be a directive: with its sign, as a digraph or a trigraph, or after a comment that
/// began in one.
fn may_be_of_directive(line: &str) -> bool {
    ["#", "%:", "??=", "*/"]
        .iter()
        .any(|sign| line.contains(sign))
}

/// Whether what follows is only asked to be defined.
fn asks_for_definition(before: &str) -> bool {
    let before = before.trim_end();
    let before = before.strip_suffix('(').unwrap_or(before).trim_end();
    let start = before.trim_end_matches(is_name);
    match &before[start.len()..] {
        "defined" => true,
        "ifdef" | "ifndef" => start.trim_end().ends_with('#'),
        _ => false,
    }
}

/// The text with each line that a backslash or its trigraph continues joined to the next one.
pub(super) fn spliced(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for line in text.lines().map(str::trim_end) {
        match line.strip_suffix('\\').or_else(|| line.strip_suffix("??/")) {
            Some(start) => joined.push_str(start),
            None => {
                joined.push_str(line);
                joined.push('\n');
            }
        }
    }
    joined
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// Every file that a tool may find where it looks for one of `files` or `asked`: by any end of their
/// paths, in `folders` and in all folders around the files. The files themselves are among them. If
/// one appears or disappears, another program may be built.
pub(super) fn places(
    root: &Path,
    files: &BTreeSet<String>,
    asked: &BTreeSet<String>,
    folders: &[String],
) -> BTreeSet<String> {
    let mut searched: BTreeSet<PathBuf> = folders.iter().map(PathBuf::from).collect();
    searched.insert(PathBuf::new());
    // By their first part, which a folder must contain.
    let mut ends: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut end = |name: &str| {
        let first = name.split('/').next().unwrap_or_default();
        ends.entry(first.to_owned())
            .or_default()
            .insert(name.to_owned());
    };
    asked.iter().for_each(|name| end(name));
    for file in files {
        searched.extend(Path::new(file).ancestors().skip(1).map(Path::to_path_buf));
        let starts = file.match_indices('/').map(|(at, _)| at + 1);
        for start in starts.chain([0]) {
            end(&file[start..]);
        }
        // The linker takes either kind of a library.
        let name = file.rsplit('/').next().unwrap_or(file);
        let stem = name.split_once(".so").map(|(stem, _)| stem);
        if let Some(stem) = stem.or_else(|| name.strip_suffix(".a")) {
            end(&format!("{stem}.a"));
            end(&format!("{stem}.so"));
        }
    }
    let mut found = BTreeSet::new();
    for folder in &searched {
        let real = git::real_input(&root.join(folder));
        let entries = real.and_then(disk::read_dir).into_iter().flatten();
        let kept = |entry: &Entry| entry.is_file() || entry.is_link();
        let names = entries.filter_map(|it| Some((it.name().to_str()?.to_owned(), kept(&it))));
        for (first, is_kept) in names.chain(["..", "."].map(|name| (name.to_owned(), false))) {
            let ends = ends.get(&first).into_iter().flatten();
            let paths = ends.map(|end| (*end == first, folder.join(end).display().to_string()));
            // The folder itself says what of its own names can be read.
            let paths = paths.filter(|(is_own, path)| match is_own {
                true => is_kept,
                false => files.contains(path) || could_be_read(&root.join(path)),
            });
            found.extend(paths.map(|(_, path)| path));
        }
    }
    let named = asked.iter().filter(|name| could_be_read(&root.join(name)));
    found.extend(named.chain(files).cloned());
    found
}

/// Whether a compiler that is asked for the path opens something: a link may lead to a file.
fn could_be_read(path: &Path) -> bool {
    match disk::symlink_metadata(path) {
        // Nearly all: no link is looked for on the way to what is not there.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            false
        }
        Ok(meta) if meta.is_symlink() => true,
        _ => git::is_input_file(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_that_would_be_found_first_or_that_is_asked_for_is_a_place_and_others_are_not() {
        let (project, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = project.path();
        let write = |path: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        };
        let toolkit = outside.path().join("include/crt/host.h");
        let files = [
            "kernels/a.cu",
            "include/part/tile.cuh",
            "lib/libx.so",
            toolkit.to_str().unwrap(),
        ];
        for file in files {
            write(file);
        }
        let searched = outside.path().join("searched").display().to_string();
        let folders = ["include".to_owned(), searched.clone()];
        let asked = ["asked".to_owned(), "../up.h".to_owned()].into();
        let files = files.map(str::to_owned).into();
        let now = || places(root, &files, &asked, &folders);
        let before = now();
        assert_eq!(before, files);
        write("kernels/report.md");
        write("kernels/other.cuh");
        write("target/part/tile.cuh");
        assert_eq!(now(), before);
        for place in [
            "kernels/part/tile.cuh",
            "kernels/tile.cuh",
            "crt/host.h",
            "include/crt/host.h",
            "include/asked",
            "kernels/../up.h",
            "libx.so",
            "include/libx.a",
            &format!("{searched}/libx.a"),
            &format!("{searched}/tile.cuh"),
        ] {
            write(place);
            assert!(now().contains(place), "{place}: {:?}", now());
        }
    }

    #[test]
    fn what_a_text_asks_for_is_known_or_known_to_be_open() {
        // `~` is the end of a line. PTX writes what it drops as `_`.
        let table = r#"
            #if __has_include("slow.cu") | slow.cu
            #if _HAS_INCLUDE( <a/b> ) or __has_embed("x") | a/b x
            #if defined(__has_include) && __has_\  ~include("x") | x
            # ifdef __has_include |
            #define ifdef +~#define Q ifdef __has_include | open
            #define ASK __has_include_next | open
            #if __has_include(NAME) | open
            #if CAT(__has_, include)("slow.cu") | open
            #if CAT(__has_inc, lude)("slow.cu") | open
            #if CAT(_, CAT(_ha, s_include))("slow.cu") | open
            #if CAT(__, CAT(h, CAT(a, s_includ??/~e)))("x") | open
            const char* now = __TIME__; | open
            #if __has_builtin(x) or __has_cpp_attribute(y) |
            %:if CAT(__ha, s_x) | open
            /* */ ??=define P CAT(_, _) | open
            #define P /*~*/ CAT(__ha, s_x) | open
            #define P CAT(__ha, \~s_x) | open
            asm("mbarrier.arrive.b64 _, [%0];"); |
            __half __hadd(int a, int i); |"#;
        for [asks, expected] in crate::files::tests::rows(table) {
            let found = own_questions(&asks.replace('~', "\n"));
            let names = found.names.iter().map(String::as_str);
            let names = names.chain(found.open.then_some("open"));
            assert_eq!(names.collect::<Vec<_>>().join(" "), expected, "{asks}");
        }
    }
}
