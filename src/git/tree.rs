//! Files as a commit has them, and what git tracks.

use std::collections::BTreeMap;
use std::path::Path;

use super::call::{Git, git, git_bytes};
use super::printed;

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
        "--literal-pathspecs", "ls-tree", "-r", "-z", "--full-tree", commit, "--", path,
    ];
    let listing = git_bytes(root, &arguments)?;
    let listing = String::from_utf8(listing)
        .map_err(|_| format!("a file below `{path}` has a name that is not UTF-8"))?;
    let (mut found, mut wanted) = (BTreeMap::new(), Vec::new());
    for entry in printed::tree(&listing)? {
        match entry.kind {
            printed::Kind::Submodule => {
                let commit = TreeEntry::Submodule(entry.object.to_owned());
                found.insert(entry.path.to_owned(), commit);
            }
            _ => wanted.push(entry),
        }
    }
    if wanted.is_empty() {
        return Ok(found);
    }
    let asked = wanted.iter().map(|entry| format!("{}\n", entry.object));
    let batch = ["cat-file", "--batch"];
    let answer = Git::here().answer(root, &batch, asked.collect(), &[])?;
    let contents = printed::contents(&answer, wanted.len())?;
    for (wanted, content) in wanted.into_iter().zip(contents) {
        let content = content.ok_or_else(|| format!("git cannot read {}", wanted.object))?;
        let entry = match wanted.kind {
            printed::Kind::Link => TreeEntry::Link(content),
            _ => TreeEntry::File(content),
        };
        found.insert(wanted.path.to_owned(), entry);
    }
    Ok(found)
}

/// What a commit has at a path: the hash of a file can be that of a link, too.
pub type Object = (printed::Kind, String);

/// The object of each file, link and submodule of a commit, by its path from the top of the
/// repository.
///
/// # Errors
/// Git's complaint, or that a name is not UTF-8.
pub fn objects_at(root: &Path, commit: &str) -> Result<BTreeMap<String, Object>, String> {
    let arguments = ["ls-tree", "-r", "-z", "--full-tree", commit];
    let listing = git_bytes(root, &arguments)?;
    let listing = readable(&listing);
    let entries = printed::tree(&listing)?.into_iter();
    let named = |entry: printed::Entry<'_>| {
        let object = (entry.kind, entry.object.to_owned());
        (entry.path.to_owned(), object)
    };
    Ok(entries.map(named).collect())
}

/// A listing of git as text. Bytes that are no UTF-8 are written as numbers, so that two names stay two.
fn readable(listing: &[u8]) -> String {
    let mut text = String::with_capacity(listing.len());
    for chunk in listing.utf8_chunks() {
        text.push_str(chunk.valid());
        let numbers = chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}"));
        text.extend(numbers);
    }
    text
}

/// The files that git tracks or does not ignore, by their paths from `top`, the folder of the working
/// tree.
///
/// # Errors
/// Git's complaint, or a name that is not UTF-8.
pub fn shown(top: &Path) -> Result<Vec<String>, String> {
    let arguments = [
        "ls-files", "--cached", "--others", "--exclude-standard", "-z",
    ];
    let listing = String::from_utf8(git_bytes(top, &arguments)?)
        .map_err(|_| "a file has a name that is not UTF-8".to_owned())?;
    let names = listing.split('\0').filter(|name| !name.is_empty());
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// Whether a sparse checkout leaves a tracked file out. `path` is relative to the top.
pub fn is_left_out(folder: &Path, path: &str) -> bool {
    let path = format!(":(top,literal){path}");
    git(folder, &["ls-files", "-t", "--", &path]).is_ok_and(|listed| listed.starts_with("S "))
}

/// The paths that git tracks at a path and below it, with the commit of each that is a submodule.
/// `top` is the folder of the working tree; paths are relative to it.
///
/// # Errors
/// Git's complaint.
pub fn tracked(top: &Path, path: &str) -> Result<BTreeMap<String, Option<String>>, String> {
    let arguments = [
        "--literal-pathspecs", "ls-files", "--stage", "-z", "--", path,
    ];
    let listing = git_bytes(top, &arguments)?;
    // A name that is not UTF-8 is none that this tool asks for.
    printed::index(&readable(&listing))
}

/// The files that git does not track and that one of these pathspecs names, by their paths from the
/// folder.
pub fn untracked(folder: &Path, pathspecs: &[String]) -> Vec<String> {
    let mut arguments = vec!["ls-files", "--others", "-z", "--"];
    arguments.extend(pathspecs.iter().map(String::as_str));
    let found = git_bytes(folder, &arguments).unwrap_or_default();
    let found = String::from_utf8_lossy(&found);
    let names = found.split('\0').filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}
