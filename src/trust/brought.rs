//! The files that come with a change.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use super::authority::Authority;
use super::place::{place_in_repository, unreadable};
use crate::disk;
use crate::files::{is_below, read_regular};
use crate::finding::Error;
use crate::git::{self, TreeEntry};
use crate::hash::sha256_hex;

/// A file that is part of the change: tracked, and different from the base's.
pub struct Brought {
    /// From the top of the repository.
    pub path: String,
    /// What the base has there.
    pub(super) before: Option<TreeEntry>,
    /// What the change has there; `None` where it cannot be read.
    pub(super) after: Option<TreeEntry>,
}

/// Files at a path, below it and on the way to it that are part of the change. Untracked files are
/// not.
///
/// # Errors
/// [`Error::Environment`] where git fails.
pub fn brought_by_change(root: &Path, commit: &str, path: &Path) -> Result<Vec<Brought>, Error> {
    let top = git::repository(root).map_err(unreadable)?.top;
    let mut brought = BTreeMap::new();
    let stops = disk::stops(path).map_err(Error::io("find", path))?;
    for stop in stops {
        // What is outside the repository belongs to the machine.
        let Ok(below) = stop.strip_prefix(&top) else {
            continue;
        };
        // The files of a submodule on the way are not listed by git here.
        let submodule = below.ancestors().find(|folder| {
            !folder.as_os_str().is_empty() && disk::is_there(top.join(folder).join(".git"))
        });
        let place = submodule.unwrap_or(below);
        let place = place
            .to_str()
            .ok_or_else(|| unreadable(format!("the name of `{}` is not UTF-8", place.display())))?;
        let tracked = git::tracked(&top, place).map_err(unreadable)?;
        if tracked.is_empty() {
            continue;
        }
        let before = git::files_at(&top, commit, place).map_err(unreadable)?;
        for (path, submodule) in tracked {
            let after = match submodule {
                Some(commit) => Some(TreeEntry::Submodule(commit)),
                None => entry_here(&top.join(&path)),
            };
            let before = before.get(&path).cloned();
            if after.is_none() || before != after {
                let file = Brought {
                    path: path.clone(),
                    before,
                    after,
                };
                brought.insert(path, file);
            }
        }
    }
    Ok(brought.into_values().collect())
}

/// Files that differ in the revision from their stated hash. `stated` are sha256 by paths from
/// `root`; other paths belong to the machine. Empty where no revision has authority.
///
/// # Errors
/// [`Error::Environment`] where git fails.
pub fn unlike_base<'s>(
    root: &Path,
    authority: &Authority,
    stated: &'s BTreeMap<String, String>,
) -> Result<Vec<&'s str>, Error> {
    let Authority::Revision { commit, .. } = authority else {
        return Ok(Vec::new());
    };
    let place = place_in_repository(root)?;
    let mut unlike = Vec::new();
    for (path, sha256) in stated.iter().filter(|(path, _)| is_below(path)) {
        let whole = format!("{place}{path}");
        let files = git::files_at(root, commit, &whole).map_err(unreadable)?;
        // Other files were made by a build, or are behind a link.
        if let Some(TreeEntry::File(bytes)) = files.get(&whole)
            && sha256_hex(bytes) != *sha256
        {
            unlike.push(path.as_str());
        }
    }
    Ok(unlike)
}

/// What the working tree has at a path.
fn entry_here(path: &Path) -> Option<TreeEntry> {
    if let Ok(target) = disk::read_link(path) {
        let target = target.into_os_string().into_encoded_bytes();
        return Some(TreeEntry::Link(target));
    }
    read_regular(path).ok().map(TreeEntry::File)
}

/// The sha256 of a content: of a file its bytes, so that `sha256sum` shows the same.
pub(super) fn content_sha256(entry: &TreeEntry) -> String {
    match entry {
        TreeEntry::File(bytes) => sha256_hex(bytes),
        TreeEntry::Link(target) => sha256_hex(&[b"link to ", &target[..]].concat()),
        TreeEntry::Submodule(commit) => sha256_hex(format!("submodule {commit}").as_bytes()),
    }
}

/// The sha256 of what `sha256sum` prints of files, by their paths and hashes; `None` where there is none.
pub(super) fn listing(
    hashed: impl Iterator<Item = (impl Display + Ord, String)>,
) -> Option<String> {
    let files: BTreeMap<_, String> = hashed.collect();
    let lines = files.iter();
    let lines = lines.map(|(path, sha256)| format!("{sha256}  {path}\n"));
    (!files.is_empty()).then(|| sha256_hex(lines.collect::<String>().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_name_that_git_cannot_be_asked_for_is_an_error_and_not_an_untracked_file() {
        let folder = tempfile::tempdir().unwrap();
        crate::git::git_of_tests(folder.path(), &["init", "--quiet"]);
        let root = folder.path().canonicalize().unwrap();
        let path = root.join(OsStr::from_bytes(b"ncu\xff"));
        let found = brought_by_change(&root, "HEAD", &path);
        assert!(matches!(found, Err(Error::Environment { .. })));
    }
}
