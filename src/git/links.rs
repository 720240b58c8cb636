//! Links on the way to what a project names as its own.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::tree::tracked;
use crate::disk;
use crate::hash::sha256_file;

/// The file or folder that a source, an input or a program is, without links. A link that is committed
/// may lead elsewhere in its checkout (`libk.so`), one that a build or the user made anywhere
/// (`bazel-bin`, `.venv/bin/python`), and none into `.git`.
///
/// # Errors
/// Says which link leads where none may; and those of the system.
pub fn real_input(path: &Path) -> std::io::Result<PathBuf> {
    if let Ok(real) = disk::real(path)
        && !is_of_git(&real)
    {
        return Ok(real);
    }
    let mut stops = disk::stops(path)?;
    let end = stops.pop().unwrap_or_default();
    let refused = |link: &Path, where_to: &str| {
        let why = format!("`{}` is a link {where_to}", link.display());
        Err(Error::new(ErrorKind::InvalidInput, why))
    };
    for link in &stops {
        let target = target_of(link)?;
        let Some(top) = disk::checkout_of(link) else {
            continue;
        };
        if !target.starts_with(top) && is_committed(link) {
            return refused(link, "that is committed, and leads out of the checkout");
        }
    }
    match is_of_git(&end) {
        true => refused(path, "into the folder of git, or lies there"),
        false => Ok(end),
    }
}

/// Where a folder is that the user, and no commit, put behind links. Any other stays as it is, and is
/// refused where it is used.
pub fn behind_own_links(path: PathBuf) -> PathBuf {
    let mut stops = disk::stops(&path).unwrap_or_default();
    let end = stops.pop();
    stops.retain(|link| disk::checkout_of(link).is_some());
    match end {
        Some(end) if !stops.is_empty() && !stops.iter().any(|link| is_committed(link)) => end,
        _ => path,
    }
}

/// Whether a link came with a commit, or is about to: the index has it. Where git does not know, it may.
fn is_committed(link: &Path) -> bool {
    static KNOWN: Mutex<BTreeMap<PathBuf, bool>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    *known.entry(link.to_owned()).or_insert_with(|| {
        // A submodule has an index of its own.
        let mut folders = disk::folder_of(link).ancestors();
        let innermost = folders.find(|folder| disk::is_there(folder.join(".git")));
        let Some(top) = innermost else {
            return false;
        };
        let name = link.strip_prefix(top).ok().and_then(Path::to_str);
        let found = name.map(|name| tracked(top, name));
        !matches!(found, Some(Ok(found)) if found.is_empty())
    })
}

fn is_of_git(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == ".git")
}

/// The place that a link names, which may be a link itself.
fn target_of(link: &Path) -> std::io::Result<PathBuf> {
    let target = disk::folder_of(link).join(disk::read_link(link)?);
    let end = |path: &Path| Ok(disk::stops(path)?.pop().unwrap_or_default());
    match target.file_name() {
        Some(name) => Ok(end(disk::folder_of(&target))?.join(name)),
        None => end(&target),
    }
}

/// Whether it is a file, or a link to one that may be followed.
pub fn is_input_file(path: impl AsRef<Path>) -> bool {
    real_input(path.as_ref()).is_ok_and(disk::is_file)
}

/// Whether it is a folder, or a link to one that may be followed.
pub fn is_input_folder(path: impl AsRef<Path>) -> bool {
    real_input(path.as_ref()).is_ok_and(disk::is_dir)
}

/// The sha256 of the file that [`real_input`] finds.
///
/// # Errors
/// As [`real_input`].
pub fn sha256_of_input(path: &Path) -> std::io::Result<String> {
    sha256_file(&real_input(path)?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_committed_link_stays_in_its_checkout_another_one_may_leave_it_and_none_leads_into_git() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let top = root.join("project");
        fs::create_dir_all(top.join("lib")).unwrap();
        fs::write(root.join("outside"), "").unwrap();
        fs::write(top.join("lib/k.so.1"), "").unwrap();
        let git = |arguments: &[&str]| crate::git::git_of_tests(&top, arguments);
        git(&["init", "--quiet"]);
        for (link, target) in [
            ("k.so", "lib/k.so.1"),
            ("folder", "lib"),
            ("out", "../outside"),
            ("system", "/bin/sh"),
            ("config", ".git/config"),
            ("twice", "untracked"),
            ("lib/up", "../.."),
            ("by_detour", "lib/up/../project/lib/up/outside"),
        ] {
            symlink(target, top.join(link)).unwrap();
        }
        git(&["add", "--all"]);
        symlink("../outside", top.join("untracked")).unwrap();
        for (path, expected) in [
            ("k.so", Some(top.join("lib/k.so.1"))),
            ("folder/k.so.1", Some(top.join("lib/k.so.1"))),
            ("lib/k.so.1", Some(top.join("lib/k.so.1"))),
            ("untracked", Some(root.join("outside"))),
            ("twice", Some(root.join("outside"))),
            ("out", None),
            ("by_detour", None),
            ("system", None),
            ("config", None),
            (".git/config", None),
        ] {
            let found = real_input(&top.join(path));
            assert_eq!(found.ok(), expected, "{path}");
        }
        for (path, expected) in [
            ("untracked", root.join("outside")),
            ("twice", top.join("twice")),
            ("folder", top.join("folder")),
            ("lib/work", top.join("lib/work")),
        ] {
            assert_eq!(behind_own_links(top.join(path)), expected, "{path}");
        }
    }
}
