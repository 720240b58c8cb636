//! The trial merge of what is checked out with another commit, as the service would merge it. It
//! changes neither the working tree nor a branch: it leaves one commit that nothing refers to.

use std::path::Path;

use super::call::{Git, error};
use super::revision::commit_of;
use crate::finding::Error;
use crate::process::Ending;

/// What a trial merge gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// The commit of the merge.
    Commit(String),
    /// The files that both sides changed, from the top of the repository.
    Conflict(Vec<String>),
}

/// Whose commits these are. The time is fixed, so that the same two sides give the same commit.
const IDENTITY: [(&str, &str); 6] = [
    ("GIT_AUTHOR_NAME", "sparsek-gate"),
    ("GIT_AUTHOR_EMAIL", "sparsek-gate@localhost"),
    ("GIT_AUTHOR_DATE", "2000-01-01T00:00:00Z"),
    ("GIT_COMMITTER_NAME", "sparsek-gate"),
    ("GIT_COMMITTER_EMAIL", "sparsek-gate@localhost"),
    ("GIT_COMMITTER_DATE", "2000-01-01T00:00:00Z"),
];

/// Merges what is checked out, with uncommitted changes of tracked files, and the commit `tip`.
/// Attributes, such as `merge=union`, are those of `tip`.
///
/// # Errors
/// [`Error::Environment`] where git cannot, such as one older than 2.38.
pub fn trial_merge(root: &Path, tip: &str) -> Result<Merged, Error> {
    let unmerged = ["ls-files", "--unmerged", "--full-name", ":/"];
    let unmerged = text_of(root, &unmerged).map_err(|why| cannot(root, tip, &why))?;
    let unmerged = unmerged.lines().filter_map(|line| line.split_once('\t'));
    let mut unmerged: Vec<String> = unmerged.map(|(_, file)| file.to_owned()).collect();
    unmerged.dedup();
    if !unmerged.is_empty() {
        return Ok(Merged::Conflict(unmerged));
    }
    let ours = as_commit(root).map_err(|why| cannot(root, tip, &why))?;
    let arguments = [
        "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", &ours, tip,
    ];
    // A git that is older than 2.41 reads the attributes of the working tree.
    let attributes = [("GIT_ATTR_SOURCE", tip)];
    let printed = Git::here()
        .ended(root, &arguments, String::new(), &attributes)
        .map_err(|why| cannot(root, tip, &why))?;
    let out = String::from_utf8_lossy(&printed.stdout);
    let mut words = out.split_terminator('\0').filter(|word| !word.is_empty());
    let tree = words
        .next()
        .filter(|tree| tree.chars().all(|letter| letter.is_ascii_hexdigit()));
    match (printed.ending, tree) {
        (Ending::Exited(0), Some(tree)) => {
            let text = format!("The change, merged with {tip} for a check");
            let arguments = ["commit-tree", "-p", &ours, "-p", tip, "-m", &text, tree];
            let commit = text_of(root, &arguments).map_err(|why| cannot(root, tip, &why))?;
            Ok(Merged::Commit(commit))
        }
        (Ending::Exited(1), Some(_)) => {
            let mut files: Vec<String> = words.map(str::to_owned).collect();
            files.dedup();
            Ok(Merged::Conflict(files))
        }
        (Ending::Interrupted, _) => Err(Error::Interrupted),
        (ending, _) => {
            let complaint = String::from_utf8_lossy(&printed.stderr).trim().to_owned();
            Err(cannot(root, tip, &format!("{ending}; {complaint}")))
        }
    }
}

/// What is checked out as a commit: HEAD, or one with the uncommitted changes of tracked files.
fn as_commit(root: &Path) -> Result<String, String> {
    let head = commit_of(root, "HEAD").ok_or("there is no commit yet")?;
    let status = [
        "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all",
    ];
    if text_of(root, &status)?.is_empty() {
        return Ok(head);
    }
    let stashed = text_of(root, &["stash", "create"])?;
    Ok(if stashed.is_empty() { head } else { stashed })
}

fn text_of(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let printed = Git::here().answer(root, arguments, String::new(), &IDENTITY)?;
    Ok(String::from_utf8_lossy(&printed).trim().to_owned())
}

fn cannot(root: &Path, tip: &str, why: &str) -> Error {
    let version = text_of(root, &["version"]).unwrap_or_default();
    let next = if is_old(&version) {
        format!(
            "install git 2.38 or newer (this is {version}), or merge it before the check: git merge {tip}"
        )
    } else {
        format!("merge it before the check: git merge {tip}")
    };
    error(
        format!("git cannot merge HEAD with {tip} for the check: {why}"),
        next,
    )
}

/// Whether `git version` names one without `merge-tree --write-tree`.
fn is_old(version: &str) -> bool {
    let number = version.split_whitespace().nth(2).unwrap_or_default();
    let mut parts = number.split('.').map(|part| part.parse::<u32>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) < (2, 38),
        _ => false,
    }
}

/// The line, from 1, where a merge left a conflict in a text.
pub fn conflict(text: &[u8]) -> Option<usize> {
    let mut lines = text.split(|byte| *byte == b'\n').zip(1..);
    let found = lines.find(|(line, _)| line.starts_with(b"<<<<<<< "));
    found.map(|(_, number)| number)
}

#[cfg(test)]
mod tests {
    use super::is_old;

    #[test]
    fn an_old_git_is_known_by_its_version() {
        for (version, old) in [
            ("git version 2.37.1", true),
            ("git version 1.9", true),
            ("git version 2.38.0", false),
            ("git version 2.47.3 (Apple Git-9)", false),
            ("git version 3.0", false),
            ("", false),
        ] {
            assert_eq!(is_old(version), old, "{version}");
        }
    }
}
