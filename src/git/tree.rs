//! Files as a commit has them, and what git tracks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::call::{git, git_bytes};

/// Modes of entries that are not regular files.
const LINK: &str = "120000";
const SUBMODULE: &str = "160000";

/// What a commit has at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeEntry {
    /// A regular file, with its bytes.
    File(Vec<u8>),
    /// A link, with its target, which is not part of the commit.
    Link(Vec<u8>),
    /// A submodule, with its commit. Its files are not part of this commit.
    Submodule(String),
}

/// The files of a commit at a path and below it, by their paths from the top of the repository.
/// They are the bytes that were committed: no filter and no line ending is applied.
///
/// # Errors
/// Git's complaint.
pub fn files_at(
    root: &Path,
    commit: &str,
    path: &str,
) -> Result<BTreeMap<String, TreeEntry>, String> {
    let arguments = [
        "--literal-pathspecs",
        "ls-tree",
        "-r",
        "-z",
        "--full-tree",
        commit,
        "--",
        path,
    ];
    let listing = git_bytes(root, &arguments, String::new())?;
    let listing = String::from_utf8(listing)
        .map_err(|_| format!("a file below `{path}` has a name that is not UTF-8"))?;
    let mut found = BTreeMap::new();
    let mut wanted = Vec::new();
    let mut links = BTreeSet::new();
    // `MODE SP TYPE SP OBJECT TAB PATH NUL`
    for entry in listing.split_terminator('\0') {
        let Some((about, path)) = entry.split_once('\t') else {
            return Err(format!(
                "git ls-tree printed an entry that cannot be read: {entry}"
            ));
        };
        match about.split(' ').collect::<Vec<_>>()[..] {
            [mode, "blob", object] => {
                if mode == LINK {
                    links.insert(path.to_owned());
                }
                wanted.push((path.to_owned(), object.to_owned()));
            }
            [_, _, object] => {
                found.insert(path.to_owned(), TreeEntry::Submodule(object.to_owned()));
            }
            _ => {
                return Err(format!(
                    "git ls-tree printed an entry that cannot be read: {entry}"
                ));
            }
        }
    }
    let contents = blobs(root, wanted.iter().map(|(_, object)| object.as_str()))?;
    for ((path, object), content) in wanted.into_iter().zip(contents) {
        let content = content.ok_or_else(|| format!("git cannot read {object}"))?;
        let entry = if links.contains(&path) {
            TreeEntry::Link(content)
        } else {
            TreeEntry::File(content)
        };
        found.insert(path, entry);
    }
    Ok(found)
}

/// The contents of blobs, in one run of git; `None` for one that the clone lacks.
fn blobs<'a>(
    root: &Path,
    objects: impl Iterator<Item = &'a str>,
) -> Result<Vec<Option<Vec<u8>>>, String> {
    let asked: String = objects.map(|object| format!("{object}\n")).collect();
    let count = asked.lines().count();
    if count == 0 {
        return Ok(Vec::new());
    }
    let answer = git_bytes(root, &["cat-file", "--batch"], asked)?;
    let mut rest = answer.as_slice();
    (0..count)
        .map(|_| next_blob(&mut rest).ok_or_else(|| "git cat-file ended early".to_owned()))
        .collect()
}

/// `OBJECT SP TYPE SP SIZE LF CONTENT LF`, or `OBJECT SP missing LF`.
fn next_blob(rest: &mut &[u8]) -> Option<Option<Vec<u8>>> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (head, after) = rest.split_at_checked(end)?;
    let head = std::str::from_utf8(head).ok()?;
    let Some(size) = head.split(' ').nth(2) else {
        *rest = after.get(1..)?;
        return Some(None);
    };
    let size = size.parse::<usize>().ok()?;
    let content = after.get(1..)?.get(..size)?.to_vec();
    *rest = after.get(size + 2..)?;
    Some(Some(content))
}

/// A file as a commit has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The commit that changed it to this.
    pub commit: String,
    /// Its bytes.
    pub content: Vec<u8>,
}

/// Every version of a file in the commits of this clone, the newest first. Renames are followed.
///
/// # Errors
/// Git's complaint, or that there is no repository.
pub fn versions(file: &Path) -> Result<Vec<Version>, String> {
    let (folder, name) = folder_and_name(file)?;
    let log = git(
        folder,
        &[
            "--literal-pathspecs",
            "-c",
            "log.showSignature=false",
            "log",
            "--follow",
            "-m",
            "--no-color",
            "--no-ext-diff",
            "--raw",
            "--no-abbrev",
            "--format=commit %H",
            "--",
            name,
        ],
    )?;
    let mut commit = "";
    let mut found = Vec::new();
    for line in log.lines() {
        if let Some(id) = line.strip_prefix("commit ") {
            commit = id;
        } else if let Some(raw) = line.strip_prefix(':') {
            // `old-mode new-mode old-blob new-blob status`; zeros where the file was removed.
            let blob = raw.split_ascii_whitespace().nth(3).unwrap_or_default();
            if blob.chars().any(|c| c != '0') {
                found.push((commit.to_owned(), blob.to_owned()));
            }
        }
    }
    let contents = blobs(folder, found.iter().map(|(_, blob)| blob.as_str()))?;
    Ok(found
        .into_iter()
        .zip(contents)
        .filter_map(|((commit, _), content)| content.map(|content| Version { commit, content }))
        .collect())
}

/// A file's folder and its name in it.
fn folder_and_name(file: &Path) -> Result<(&Path, &str), String> {
    let name = file.file_name().and_then(|name| name.to_str());
    file.parent()
        .zip(name)
        .ok_or_else(|| format!("{} does not name a file in a folder", file.display()))
}

/// The paths that git tracks at a path and below it, with the commit of each that is a submodule.
/// `top` is the folder of the working tree; paths are relative to it.
///
/// # Errors
/// Git's complaint.
pub fn tracked(top: &Path, path: &str) -> Result<BTreeMap<String, Option<String>>, String> {
    let arguments = [
        "--literal-pathspecs",
        "ls-files",
        "--stage",
        "-z",
        "--",
        path,
    ];
    let listing = git_bytes(top, &arguments, String::new())?;
    let listing = String::from_utf8(listing)
        .map_err(|_| format!("a file below `{path}` has a name that is not UTF-8"))?;
    let mut found = BTreeMap::new();
    // `MODE SP OBJECT SP STAGE TAB PATH NUL`
    for entry in listing.split_terminator('\0') {
        let Some((about, path)) = entry.split_once('\t') else {
            return Err(format!(
                "git ls-files printed an entry that cannot be read: {entry}"
            ));
        };
        let submodule = match about.split(' ').collect::<Vec<_>>()[..] {
            [SUBMODULE, commit, _] => Some(commit.to_owned()),
            _ => None,
        };
        found.insert(path.to_owned(), submodule);
    }
    Ok(found)
}
