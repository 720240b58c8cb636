//! The files that come with a change.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::authority::Authority;
use super::place::{place_in_repository, unreadable};
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
pub fn brought_by_change(
    root: &Path,
    authority: &Authority,
    path: &Path,
) -> Result<Vec<Brought>, Error> {
    let Authority::Revision { commit, .. } = authority else {
        return Ok(Vec::new());
    };
    let top = git::repository(root).map_err(unreadable)?.top;
    let top = top.canonicalize().map_err(Error::io("find", &top))?;
    let mut brought = BTreeMap::new();
    for stop in stops(path)? {
        // What is outside the repository belongs to the machine.
        let Ok(below) = stop.strip_prefix(&top) else {
            continue;
        };
        // The files of a submodule on the way are not listed by git here.
        let submodule = below.ancestors().find(|folder| {
            !folder.as_os_str().is_empty()
                && top.join(folder).join(".git").symlink_metadata().is_ok()
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
        let whole = place.join(path);
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
    if let Ok(target) = std::fs::read_link(path) {
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
pub(super) fn listing(files: &BTreeMap<&str, String>) -> Option<String> {
    let lines = files
        .iter()
        .map(|(path, sha256)| format!("{sha256}  {path}\n"));
    (!files.is_empty()).then(|| sha256_hex(lines.collect::<String>().as_bytes()))
}

/// Every link on the way to a path, and the end of the way, without links.
///
/// # Errors
/// [`Error::Io`].
fn stops(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let path = std::path::absolute(path).map_err(Error::io("find", path))?;
    let parts = |path: &Path| -> Vec<std::ffi::OsString> {
        let parts = path.components().rev();
        parts.map(|part| part.as_os_str().to_owned()).collect()
    };
    let mut ahead = parts(&path);
    let (mut way, mut found) = (PathBuf::new(), Vec::new());
    while let Some(part) = ahead.pop() {
        // git knows no path with such a part.
        if part == "." {
            continue;
        }
        if part == ".." {
            way.pop();
            continue;
        }
        // An absolute target starts at the root again.
        way.push(part);
        if let Ok(target) = std::fs::read_link(&way) {
            found.push(way.clone());
            if found.len() > MOST_LINKS {
                break;
            }
            way.pop();
            ahead.extend(parts(&target));
        }
    }
    found.push(way);
    Ok(found)
}

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_stops_on_a_way_are_its_links_and_its_end_without_dots() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("v1")).unwrap();
        symlink("./v1/../v1/./ncu", root.join("ncu")).unwrap();
        let found = stops(&root.join("ncu")).unwrap();
        let texts: Vec<&OsStr> = found.iter().map(|path| path.as_os_str()).collect();
        assert_eq!(texts, [root.join("ncu"), root.join("v1/ncu")]);
    }

    #[test]
    fn a_name_that_git_cannot_be_asked_for_is_an_error_and_not_an_untracked_file() {
        let folder = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| {
            let git = std::process::Command::new("git")
                .args(arguments)
                .current_dir(folder.path())
                .status();
            git.is_ok_and(|status| status.success())
        };
        if !git(&["init", "--quiet"]) {
            return;
        }
        let authority = Authority::Revision {
            commit: "HEAD".to_owned(),
            found_by: String::new(),
        };
        let root = folder.path().canonicalize().unwrap();
        let path = root.join(OsStr::from_bytes(b"ncu\xff"));
        let found = brought_by_change(&root, &authority, &path);
        assert!(matches!(found, Err(Error::Environment { .. })));
    }
}
