//! The shape of the code, read from its imports: rooms lie in layers, each uses only those below
//! it, and no two files use each other. `docs/architecture.md` says which room lies where.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper that fails fails its test"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::Visit;

use crate::common::{is_generated, repository};

/// A file of a crate, what it defines and what it names of others.
#[derive(Default)]
struct File {
    /// `crate::judge::compare`.
    module: String,
    path: PathBuf,
    items: BTreeSet<String>,
    /// Modules below it.
    modules: BTreeSet<String>,
    /// Name to full path, of what it re-exports or imports.
    names: BTreeMap<String, String>,
    /// Full paths, in the words of the source.
    uses: BTreeSet<String>,
    /// Whether what is read now is only passed on (`pub use`), which uses nothing.
    passes_on: bool,
}

impl File {
    /// The full path of one in the words of the source; `None` where it leads to another crate.
    fn absolute(&self, path: &[String]) -> Option<String> {
        let mut module: Vec<&str> = self.module.split("::").collect();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                module = vec!["crate"];
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|word| word == "super") {
                    module.pop();
                    rest = &rest[1..];
                }
            }
            _ => return None,
        }
        let words = module.into_iter().map(str::to_owned);
        Some(
            words
                .chain(rest.iter().cloned())
                .collect::<Vec<_>>()
                .join("::"),
        )
    }

    fn import(&mut self, tree: &syn::UseTree, before: &[String]) {
        let with = |word: &syn::Ident| {
            let mut path = before.to_vec();
            path.push(word.to_string());
            path
        };
        match tree {
            syn::UseTree::Path(path) => self.import(&path.tree, &with(&path.ident)),
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, before);
                }
            }
            syn::UseTree::Name(name) if name.ident == "self" => {
                let last = before.last().cloned().unwrap_or_default();
                self.named(&last, before);
            }
            syn::UseTree::Name(name) => self.named(&name.ident.to_string(), &with(&name.ident)),
            syn::UseTree::Rename(name) => self.named(&name.rename.to_string(), &with(&name.ident)),
            syn::UseTree::Glob(_) => self.named("*", before),
        }
    }

    fn named(&mut self, name: &str, path: &[String]) {
        // A path in 2018's way may begin with a module or a name of this file.
        let local = path.first().is_some_and(|first| {
            !["crate", "self", "super"].contains(&first.as_str())
                && (self.items.contains(first) || self.names.contains_key(first))
        });
        let found = if local {
            let mut own = vec!["self".to_owned()];
            own.extend(path.iter().cloned());
            self.absolute(&own)
        } else {
            self.absolute(path)
        };
        if let Some(found) = found {
            self.names.insert(name.to_owned(), found.clone());
            if !self.passes_on {
                self.uses.insert(found);
            }
        }
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .meta
                .require_list()
                .is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

impl<'ast> Visit<'ast> for File {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let (attributes, name) = match item {
            syn::Item::Mod(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
            syn::Item::Struct(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Enum(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Trait(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Const(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Static(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Type(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
            syn::Item::Use(item) => (&item.attrs, None),
            syn::Item::Impl(item) => (&item.attrs, None),
            _ => return syn::visit::visit_item(self, item),
        };
        if is_test(attributes) {
            return;
        }
        if let Some(name) = name {
            self.items.insert(name.to_string());
        }
        syn::visit::visit_item(self, item);
    }

    /// `pub(super)` says who may use this, and uses nothing.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.passes_on = !matches!(item.vis, syn::Visibility::Inherited);
        self.import(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let words: Vec<String> = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        let first = &words[0];
        if let Some(passed_on) = self.names.get(first) {
            self.uses.insert(passed_on.clone());
        } else if self.modules.contains(first) {
            let own = std::iter::once("self".to_owned()).chain(words.iter().cloned());
            self.uses.extend(self.absolute(&own.collect::<Vec<_>>()));
        }
        self.uses.extend(self.absolute(&words));
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let text = call.tokens.to_string().replace(' ', "");
        for start in ["crate::", "super::"] {
            for (at, _) in text.match_indices(start) {
                let end = text[at..]
                    .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'))
                    .map_or(text.len(), |length| at + length);
                let words: Vec<String> = text[at..end]
                    .split("::")
                    .filter(|word| !word.is_empty())
                    .map(str::to_owned)
                    .collect();
                self.uses.extend(self.absolute(&words));
            }
        }
        syn::visit::visit_macro(self, call);
    }
}

/// The files of a crate by module.
fn read(sources: &Path) -> BTreeMap<String, File> {
    let mut files = BTreeMap::new();
    let mut folders = vec![sources.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|ending| ending != "rs") || path.ends_with("main.rs") {
                continue;
            }
            let below = path.strip_prefix(sources).unwrap().with_extension("");
            let mut words: Vec<String> = below
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect();
            words.retain(|word| word != "mod" && word != "lib");
            words.insert(0, "crate".to_owned());
            let mut file = File {
                module: words.join("::"),
                path: path.strip_prefix(repository()).unwrap().to_path_buf(),
                ..File::default()
            };
            let parsed = syn::parse_file(&fs::read_to_string(&path).unwrap()).unwrap();
            // Names first: what follows may begin with one of them.
            for item in &parsed.items {
                if let syn::Item::Mod(item) = item
                    && !is_test(&item.attrs)
                {
                    file.items.insert(item.ident.to_string());
                    file.modules.insert(item.ident.to_string());
                }
            }
            for item in &parsed.items {
                if let syn::Item::Use(item) = item {
                    file.visit_item_use(item);
                }
            }
            file.visit_file(&parsed);
            files.insert(file.module.clone(), file);
        }
    }
    files
}

/// The module whose file defines what a path names.
fn definition(files: &BTreeMap<String, File>, path: &str, depth: u32) -> Option<String> {
    let mut module = "crate".to_owned();
    for word in path.split("::").skip(1) {
        let inner = format!("{module}::{word}");
        if files.contains_key(&inner) {
            module = inner;
            continue;
        }
        let file = files.get(&module)?;
        // Where it is re-exported, it is defined elsewhere.
        let elsewhere = file.names.get(word).filter(|_| !file.items.contains(word));
        return match elsewhere {
            Some(target) if depth < 8 => definition(files, target, depth + 1),
            _ => Some(module),
        };
    }
    Some(module)
}

/// Which module uses which others, by where things are defined.
fn edges(files: &BTreeMap<String, File>) -> BTreeMap<String, BTreeSet<String>> {
    let of = |file: &File| -> BTreeSet<String> {
        let mut found: BTreeSet<String> = file
            .uses
            .iter()
            .filter_map(|path| definition(files, path, 0))
            .collect();
        found.remove(&file.module);
        found
    };
    let named = files.iter();
    named
        .map(|(module, file)| (module.clone(), of(file)))
        .collect()
}

fn room(module: &str) -> &str {
    module.split("::").nth(1).unwrap_or("lib")
}

/// The layers of `docs/architecture.md`, the highest first, each with its rooms.
fn layers() -> Vec<(String, Vec<String>)> {
    let page = fs::read_to_string(repository().join("docs/architecture.md")).unwrap();
    let table = page
        .split("<!-- layers -->")
        .nth(1)
        .expect("the page has a table between two marks");
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let rooms = cells[1].split('`').skip(1).step_by(2).map(str::to_owned);
        (cells[0].to_owned(), rooms.collect())
    })
    .collect()
}

/// The place of each room, the lowest first.
fn places() -> BTreeMap<String, usize> {
    let layers = layers();
    let rooms = layers.iter().rev().flat_map(|(_, rooms)| rooms.iter());
    rooms.cloned().zip(0..).collect()
}

#[test]
fn the_page_names_every_room_once_and_no_other() {
    let layers = layers();
    let mut named: Vec<&String> = layers.iter().flat_map(|(_, rooms)| rooms).collect();
    named.sort();
    let twice: Vec<_> = named.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "{twice:?}");
    let files = read(&repository().join("src"));
    let rooms: BTreeSet<&str> = files.keys().map(|module| room(module)).collect();
    let rooms: Vec<&str> = rooms.into_iter().filter(|room| *room != "lib").collect();
    assert_eq!(named, rooms);
}

#[test]
fn a_room_uses_only_rooms_below_it() {
    let files = read(&repository().join("src"));
    let places = places();
    let mut upward = Vec::new();
    for (module, used) in edges(&files) {
        let (Some(place), path) = (places.get(room(&module)), &files[&module].path) else {
            continue;
        };
        for other in used {
            if room(&other) != room(&module) && places.get(room(&other)) >= Some(place) {
                upward.push(format!("{} uses {other}", path.display()));
            }
        }
    }
    assert!(upward.is_empty(), "\n{}", upward.join("\n"));
}

/// Modules that use each other, directly or through others: each group once.
fn cycles(edges: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<Vec<String>> {
    let reached = |from: &String| {
        let mut seen: BTreeSet<&String> = BTreeSet::new();
        let mut next: Vec<&String> = edges[from].iter().collect();
        while let Some(module) = next.pop() {
            if seen.insert(module) {
                next.extend(edges.get(module).into_iter().flatten());
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<&String>> = edges
        .keys()
        .map(|module| (module, reached(module)))
        .collect();
    let both = |one: &String, other: &String| {
        let reaches = |from, to| reached.get(from).is_some_and(|seen| seen.contains(to));
        reaches(one, other) && reaches(other, one)
    };
    let in_cycles = edges.keys().filter(|module| both(module, module));
    in_cycles
        .map(|module| {
            edges
                .keys()
                .filter(|other| both(module, other))
                .cloned()
                .collect()
        })
        .collect()
}

#[test]
fn no_two_files_use_each_other() {
    for sources in ["src", "crates/ncu-report/src"] {
        let files = read(&repository().join(sources));
        let edges = edges(&files);
        let shown: Vec<String> = cycles(&edges)
            .iter()
            .map(|cycle| {
                let uses = cycle.iter().map(|module| {
                    let inside = edges[module].iter().filter(|other| cycle.contains(other));
                    let inside: Vec<&str> = inside.map(String::as_str).collect();
                    format!("  {module} uses {}", inside.join(", "))
                });
                format!("a cycle:\n{}", uses.collect::<Vec<_>>().join("\n"))
            })
            .collect();
        assert!(shown.is_empty(), "in {sources}:\n{}", shown.join("\n"));
    }
}

#[test]
fn what_judges_reads_no_file_and_runs_no_program() {
    let files = read(&repository().join("src"));
    let reaches = [
        "crate::files", "crate::git", "crate::build", "crate::profiler", "crate::toolchain",
    ];
    let judging = files.values().filter(|file| room(&file.module) == "judge");
    // These compare what is recorded with its captures, as the last step before the verdict.
    let last_step = [
        "crate::judge::outcome::recorded", "crate::judge::outcome::recordings",
    ];
    let judging = judging.filter(|file| !last_step.contains(&file.module.as_str()));
    for file in judging {
        let text = fs::read_to_string(repository().join(&file.path)).unwrap();
        let mut names = reaches.iter().filter(|room| text.contains(*room));
        assert_eq!(names.next(), None, "{}", file.path.display());
        for name in "std::fs std::process is_file() is_dir() process::Invocation".split(' ') {
            assert!(!text.contains(name), "{} names {name}", file.path.display());
        }
    }
    let measuring = files
        .values()
        .filter(|file| room(&file.module) == "measure");
    for file in measuring {
        let upward = file
            .uses
            .iter()
            .find(|used| used.starts_with("crate::judge"));
        assert_eq!(upward, None, "{}", file.path.display());
    }
}

/// The picture of the layers: a box a layer, the highest first, with its rooms.
fn picture() -> String {
    const WIDTH: usize = 880;
    const NAME: usize = 110;
    const LINE: usize = 24;
    let mut boxes = String::new();
    let mut y = 10;
    let library = ("library".to_owned(), vec!["crates/ncu-report".to_owned()]);
    for (layer, rooms) in layers().into_iter().chain([library]) {
        // As many rooms a line as fit.
        let mut lines: Vec<String> = vec![String::new()];
        for room in rooms {
            let last = lines.last_mut().unwrap();
            if last.len() + room.len() > 84 {
                lines.push(room);
            } else if last.is_empty() {
                last.push_str(&room);
            } else {
                last.push_str(" · ");
                last.push_str(&room);
            }
        }
        let height = lines.len() * LINE + 16;
        boxes.push_str(&format!(
            "<rect x=\"10\" y=\"{y}\" width=\"{}\" height=\"{height}\" rx=\"6\"/>\n\
             <text class=\"layer\" x=\"24\" y=\"{}\">{layer}</text>\n",
            WIDTH - 20,
            y + 25
        ));
        for (index, line) in lines.iter().enumerate() {
            boxes.push_str(&format!(
                "<text x=\"{NAME}\" y=\"{}\">{line}</text>\n",
                y + 25 + index * LINE
            ));
        }
        y += height + 10;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{y}\" viewBox=\"0 0 {WIDTH} {y}\" role=\"img\">\n\
         <title>Layers of sparsek-gate: each uses only those below it</title>\n\
         <style>rect {{ fill: #f6f8fa; stroke: #8c959f }} text {{ font: 14px monospace; fill: #1f2328 }} .layer {{ font-weight: bold }}\n\
         @media (prefers-color-scheme: dark) {{ rect {{ fill: #161b22; stroke: #6e7681 }} text {{ fill: #e6edf3 }} }}</style>\n\
         {boxes}</svg>\n"
    )
}

#[test]
fn the_picture_of_the_layers_shows_the_table() {
    is_generated("docs/layers.svg", &picture());
}

#[test]
fn every_file_of_tests_is_part_of_the_program_that_runs_them() {
    let folder = repository().join("tests");
    let program = std::fs::read_to_string(folder.join("all.rs")).unwrap();
    let listed: BTreeSet<&str> = program
        .lines()
        .filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'))
        .filter(|name| *name != "common")
        .collect();
    let there: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            Some(name.strip_suffix(".rs")?.to_owned())
        })
        // The inputs of the fuzz targets are read by a program that counts its memory.
        .filter(|name| !["all", "corpus"].contains(&name.as_str()))
        .collect();
    assert_eq!(listed, there.iter().map(String::as_str).collect());
}
