//! The files that a variant is made of, as its configuration names them: files, folders, patterns.

use std::collections::BTreeSet;
use std::io;
use std::path::{Component, Path, PathBuf};

use globset::GlobMatcher;

use super::model::{Config, Recipe, Variant};
use super::python_imports::imported;
use super::selector::{glob, is_pattern};
use crate::disk;
use crate::files::if_there;
use crate::finding::Error;
use crate::git;

/// The most files of one entry of `inputs`: more are a slip, such as the folder of the project.
const MOST_FILES: usize = 10_000;

/// The most entries of folders that are looked at for one entry of `inputs`.
const MOST_ENTRIES: usize = 100_000;

/// Copies that Python makes of its sources. Each interpreter has its own.
const PYTHON_CACHE: &str = "__pycache__";

impl Config {
    /// The files that the configuration names as the variant's: its sources, or its `inputs`, each
    /// once. Names are relative to the root. A folder stands for all files below it, and a pattern
    /// for those that match; both leave out `.git`, `__pycache__`, and the folders of the tool. A
    /// file that is named by itself need not exist. The scripts that a Python program runs, and the
    /// modules of the project that they import, are among them without being named.
    ///
    /// # Errors
    /// [`Error::Config`] where a folder or a pattern has no files, or too many, or cannot be read.
    pub fn own_files(&self, variant: &Variant) -> Result<Vec<String>, Error> {
        let inputs = match &variant.recipe {
            Recipe::Nvcc { sources, .. } => return Ok(sources.clone()),
            Recipe::Command { inputs, .. } => inputs,
        };
        let (mut files, mut seen) = (Vec::new(), BTreeSet::new());
        for input in inputs {
            let found = self.files_of(input).map_err(|(what, next)| {
                let (config, id) = (self.path.display(), &variant.id);
                Error::Config(format!(
                    "{config}: `{input}` in `inputs` of {id} {what}\n  next: {next}"
                ))
            })?;
            files.extend(found.into_iter().filter(|file| seen.insert(file.clone())));
        }
        // What the interpreter would not find without them is a part of the program.
        let imported = imported(&self.root, variant, &files).into_iter();
        let named: BTreeSet<String> = files.iter().map(|file| plain(file)).collect();
        files.extend(imported.filter(|file| !named.contains(file)));
        Ok(files)
    }

    /// The files of one entry of `inputs`, or what is wrong with it and the next step.
    fn files_of(&self, input: &str) -> Result<Vec<String>, (String, String)> {
        let pattern = pattern(input).map_err(|why| (why, "correct the pattern".to_owned()))?;
        let below = match &pattern {
            Some(_) => beginning(input),
            None if git::is_input_folder(self.root.join(input)) => plain(input),
            None => return Ok(vec![input.to_owned()]),
        };
        let mut walk = Walk {
            config: self,
            pattern: pattern.as_ref(),
            entries: 0,
            within: Vec::new(),
            files: Vec::new(),
        };
        walk.folder(&below).map_err(|why| (why, LESS.to_owned()))?;
        if !walk.files.is_empty() {
            return Ok(walk.files);
        }
        Err(match pattern {
            Some(_) => (
                "matches no file".to_owned(),
                format!(
                    "correct the pattern, or remove it; `*` stands for any text without a slash, `**` for any folders, and it is seen from {}",
                    self.root.display()
                ),
            ),
            None => (
                "is a folder without files".to_owned(),
                "name the folder that has the files, or remove it".to_owned(),
            ),
        })
    }
}

/// What to do about an entry that cannot be listed.
const LESS: &str = "name the files, or a folder or pattern of the program's own files alone";

/// The pattern that an entry of `inputs` is: it contains one of `*?[{`. `None` of a file or folder.
///
/// # Errors
/// Why it cannot be read.
pub(super) fn pattern(input: &str) -> Result<Option<GlobMatcher>, String> {
    let pattern = is_pattern(input).then(|| glob(&plain(input))).transpose();
    pattern.map_err(|why| format!("cannot be read as a pattern: {why}"))
}

/// The path without `.` and with single slashes.
fn plain(path: &str) -> String {
    let parts = Path::new(path).components();
    let names = parts.filter(|part| matches!(part, Component::Normal(_)));
    let names: PathBuf = names.collect();
    names.to_string_lossy().into_owned()
}

/// The folder that all files of a pattern are in.
fn beginning(pattern: &str) -> String {
    let plain = plain(pattern);
    let folders = plain.split('/').rev().skip(1).collect::<Vec<_>>();
    let literal = |part: &&&str| !part.contains(['*', '?', '[', '{', '\\']);
    let folders = folders.iter().rev().take_while(literal).copied();
    folders.collect::<Vec<_>>().join("/")
}

/// The files below a folder.
struct Walk<'a> {
    config: &'a Config,
    /// Which files count; `None` for all.
    pattern: Option<&'a GlobMatcher>,
    entries: usize,
    /// The folders around, without links: a link to one of them would lead round and round.
    within: Vec<PathBuf>,
    /// Those that were found, by name.
    files: Vec<String>,
}

impl Walk<'_> {
    /// Adds the files below a folder of the project; a folder that does not exist has none.
    fn folder(&mut self, name: &str) -> Result<(), String> {
        let path = self.config.root.join(name);
        let unreadable = |error: io::Error| format!("cannot be read at `{name}`: {error}");
        let real = git::real_input(&path).map_err(unreadable)?;
        if self.within.contains(&real) {
            return Ok(());
        }
        let entries = if_there(disk::read_dir(&real)).map_err(unreadable)?;
        let entries = entries.unwrap_or_default();
        self.entries += entries.len();
        if self.entries > MOST_ENTRIES {
            return Err(format!("has more than {MOST_ENTRIES} files and folders"));
        }
        self.within.push(real);
        for entry in entries {
            let Some(entry) = entry.name().to_str() else {
                let path = path.join(entry.name());
                return Err(format!("has a name that is not UTF-8: {}", path.display()));
            };
            let whole = match name {
                "" => entry.to_owned(),
                folder => format!("{folder}/{entry}"),
            };
            // A link without a target is an unreadable file, which the build reports.
            let path = self.config.root.join(&whole);
            let own = [&self.config.work, &self.config.baselines].contains(&&path);
            if entry == ".git" || entry == PYTHON_CACHE || own {
                continue;
            }
            if git::is_input_folder(path) {
                self.folder(&whole)?;
            } else if self.pattern.is_none_or(|pattern| pattern.is_match(&whole)) {
                self.files.push(whole);
                if self.files.len() > MOST_FILES {
                    return Err(format!("stands for more than {MOST_FILES} files"));
                }
            }
        }
        self.within.pop();
        Ok(())
    }
}
