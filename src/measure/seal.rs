//! Files whose content must stay as it is while programs run.
//!
//! Programs under test have the rights of the user who runs this tool, so nothing keeps them from
//! writing. What they changed is found by comparing hashes.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::disk;
use crate::files::ends_in;
use crate::git;
use crate::hash::sha256_file;
use crate::terms::{first, words};

/// Files and folders with the hashes of all that is in them.
#[derive(Debug, Default)]
pub(super) struct Seal {
    roots: Vec<PathBuf>,
    content: BTreeMap<PathBuf, String>,
    checkout: Option<Checkout>,
}

/// All that lies in a checkout, by what the system stamps on it at every change: inode and time.
#[derive(Debug)]
struct Checkout {
    top: PathBuf,
    stamps: BTreeMap<PathBuf, (u64, i64, i64)>,
}

/// What names end in that interpreters and loaders find without being asked for them.
const FOUND: [&str; 4] = words("py pyc pth so");

impl Seal {
    /// Adds files and folders as they are now. What does not exist must not appear.
    pub fn add(&mut self, roots: impl IntoIterator<Item = PathBuf>) {
        for root in roots {
            read(&root, &mut self.content);
            self.roots.push(root);
        }
    }

    /// Adds a file with a content that is known. If it was added before with another one, it changed
    /// meanwhile, whatever it is later.
    pub fn add_known(&mut self, path: PathBuf, sha256: String) {
        match self.content.get_mut(&path) {
            Some(before) if *before != sha256 => *before = format!("{before}, then {sha256}"),
            Some(_) => {}
            None => {
                self.content.insert(path.clone(), sha256);
                self.roots.push(path);
            }
        }
    }

    /// Adds a checkout, in which nothing may change or vanish, and nothing appear that git shows or that is
    /// loaded because of its name. What git ignores may appear: outputs of its own programs.
    pub fn add_checkout(&mut self, top: &Path) {
        let mut stamps = BTreeMap::new();
        stamp(top, &mut stamps);
        let top = top.to_owned();
        self.checkout = Some(Checkout { top, stamps });
    }

    /// Takes a file that was added before as it is now.
    pub fn renew(&mut self, file: &Path) {
        self.content.remove(file);
        read(file, &mut self.content);
    }

    /// The files below a folder, by their paths from there, with their hashes. Only programs under test
    /// write files whose names are not UTF-8.
    pub fn below(&self, folder: &Path) -> BTreeMap<String, String> {
        let from = self.content.range(folder.to_path_buf()..);
        let own = from.take_while(|(path, _)| path.starts_with(folder));
        let own = own.filter_map(|(path, sha256)| {
            let name = path.strip_prefix(folder).ok()?.to_str()?;
            Some((name.to_owned(), sha256.clone()))
        });
        own.collect()
    }

    /// What has changed, appeared or vanished since.
    pub fn broken(&self) -> Vec<PathBuf> {
        let mut now = BTreeMap::new();
        for root in &self.roots {
            read(root, &mut now);
        }
        let paths = self.content.keys().chain(now.keys());
        let mut broken: Vec<PathBuf> = paths
            .filter(|path| self.content.get(*path) != now.get(*path))
            .cloned()
            .chain(self.checkout.iter().flat_map(Checkout::broken))
            .collect();
        broken.sort();
        broken.dedup();
        broken
    }
}

impl Checkout {
    fn broken(&self) -> Vec<PathBuf> {
        let mut now = BTreeMap::new();
        stamp(&self.top, &mut now);
        let shown: BTreeSet<PathBuf> = git::shown(&self.top)
            .unwrap_or_default()
            .iter()
            .map(|path| self.top.join(path))
            .collect();
        let counts = |path: &PathBuf| shown.contains(path) || ends_in(path, &FOUND);
        let known = self.stamps.iter();
        let changed = known.filter(|(path, stamp)| now.get(*path) != Some(stamp));
        let changed = changed.map(|(path, _)| path);
        let new = now.keys().filter(|path| !self.stamps.contains_key(*path));
        changed
            .chain(new.filter(|path| counts(path)))
            .cloned()
            .collect()
    }
}

/// Collects the stamps of what lies below a folder. Those of folders change with what is in them.
fn stamp(folder: &Path, stamps: &mut BTreeMap<PathBuf, (u64, i64, i64)>) {
    for entry in disk::read_dir(folder).into_iter().flatten() {
        if entry.is_dir() {
            stamp(&entry.path, stamps);
        } else if let Ok(meta) = disk::symlink_metadata(&entry.path) {
            stamps.insert(entry.path, (meta.ino(), meta.ctime(), meta.ctime_nsec()));
        }
    }
}

/// Collects what is at a path and below it. Links are not followed.
fn read(path: &Path, content: &mut BTreeMap<PathBuf, String>) {
    let Ok(meta) = disk::symlink_metadata(path) else {
        return;
    };
    let state = if meta.is_symlink() {
        let target = disk::read_link(path).unwrap_or_default();
        format!("a link to {}", target.display())
    } else if meta.is_dir() {
        for entry in disk::read_dir(path).into_iter().flatten() {
            read(&entry.path, content);
        }
        return;
    } else if meta.is_file() {
        sha256_file(path).unwrap_or_else(|error| format!("unreadable: {error}"))
    } else {
        "no regular file".to_owned()
    };
    content.insert(path.to_path_buf(), state);
}

/// A short list of paths, as they are seen from a folder.
pub(super) fn listed(paths: &[PathBuf], root: &Path) -> String {
    let shown = paths.iter().map(|path| {
        let shown = path.strip_prefix(root).unwrap_or(path);
        shown.display().to_string()
    });
    first(shown, 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::sha256_hex;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_seal_finds_what_changed_appeared_vanished_or_became_something_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["kept", "changed", "gone", "linked", "in/one"] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), name).unwrap();
        }
        let mut seal = Seal::default();
        seal.add(["kept", "changed", "gone", "linked", "in", "later"].map(at));
        seal.add_known(at("known"), sha256_hex(b"known"));
        fs::write(at("known"), "known").unwrap();
        assert!(seal.broken().is_empty(), "{:?}", seal.broken());

        fs::write(at("changed"), "else").unwrap();
        fs::remove_file(at("gone")).unwrap();
        fs::remove_file(at("linked")).unwrap();
        symlink("kept", at("linked")).unwrap();
        for name in ["in/two", "later"] {
            fs::write(at(name), "").unwrap();
        }
        fs::write(at("known"), "Known").unwrap();
        let expected = ["changed", "gone", "in/two", "known", "later", "linked"].map(at);
        assert_eq!(seal.broken(), expected);
        assert_eq!(
            listed(&seal.broken(), folder.path()),
            "changed, gone, in/two and 3 more"
        );
        seal.add_known(at("changed"), sha256_hex(b"else"));
        assert!(
            seal.broken().contains(&at("changed")),
            "read after it changed"
        );
        seal.renew(&at("changed"));
        assert!(!seal.broken().contains(&at("changed")));
    }
}
