//! The commits between two others.

use std::path::Path;

use serde::Serialize;

use super::call::git;

/// A commit, as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Commit {
    /// Its hash.
    pub id: String,
    /// The first line of its message.
    pub subject: String,
}

impl Commit {
    /// The start of its hash.
    pub fn short(&self) -> &str {
        self.id.get(..10).unwrap_or(&self.id)
    }
}

/// The commits after `good` up to `bad`, the oldest first, by their first parents: a branch that was
/// merged is the one commit that merged it.
///
/// # Errors
/// Git's complaint, or that there are more than `most`.
pub fn first_parents(
    root: &Path,
    good: &str,
    bad: &str,
    most: usize,
) -> Result<Vec<Commit>, String> {
    let (count, range) = (
        format!("--max-count={}", most + 1),
        format!("{good}..{bad}"),
    );
    let listing = git(
        root,
        &[
            "-c",
            "log.showSignature=false",
            "log",
            "--first-parent",
            "--no-color",
            "--format=%H %s",
            &count,
            "--end-of-options",
            &range,
        ],
    )?;
    let commit = |line: &str| {
        let (id, subject) = line.split_once(' ').unwrap_or((line, ""));
        Commit {
            id: id.to_owned(),
            subject: subject.chars().take(200).collect(),
        }
    };
    let mut commits: Vec<Commit> = listing.lines().map(commit).collect();
    if commits.len() > most {
        return Err(format!("there are more than {most} commits between them"));
    }
    commits.reverse();
    Ok(commits)
}

/// One commit with its first line.
///
/// # Errors
/// Git's complaint.
pub fn commit(root: &Path, id: &str) -> Result<Commit, String> {
    let arguments = ["-c", "log.showSignature=false", "log", "--no-color"];
    let one = ["--max-count=1", "--format=%s", "--end-of-options", id];
    let subject = git(root, &[&arguments[..], &one].concat())?;
    Ok(Commit {
        id: id.to_owned(),
        subject: subject.chars().take(200).collect(),
    })
}
