//! Revisions: of the working tree, for provenance, and others checked out beside it.

use std::path::{Path, PathBuf};

use crate::error::Error;

/// The commit, with `+dirty` where tracked files differ from it; `None` outside a repository.
pub fn revision(root: &Path) -> Option<String> {
    let commit = git(root, &["rev-parse", "HEAD"]).ok()?;
    let changes = git(root, &["status", "--porcelain", "--untracked-files=no"]).ok()?;
    Some(if changes.is_empty() {
        commit
    } else {
        format!("{commit}+dirty")
    })
}

/// Who works here, as git knows them, or the login name.
pub fn person(root: &Path) -> String {
    let name = git(root, &["config", "user.name"]).unwrap_or_default();
    if name.is_empty() {
        std::env::var("USER").unwrap_or_else(|_| "unknown".to_owned())
    } else {
        name
    }
}

/// A revision, checked out in a folder of its own; removed when dropped.
#[derive(Debug)]
pub struct Worktree {
    /// The commit.
    pub commit: String,
    /// Where the project lies in it.
    pub project: PathBuf,
    folder: PathBuf,
    root: PathBuf,
}

impl Worktree {
    /// Checks a revision out in a new folder below `places`. `root` is a folder of the repository.
    ///
    /// # Errors
    /// [`Error::Usage`] where there is no repository or no such revision; [`Error::Environment`]
    /// where git refuses for another reason.
    pub fn add(root: &Path, revision: &str, places: &Path) -> Result<Worktree, Error> {
        let refused = |what: String| {
            Error::Usage(format!(
                "`--against {revision}`: {what}; a shallow clone lacks it (`fetch-depth: 0`, or `git fetch --unshallow`)"
            ))
        };
        let prefix = git(root, &["rev-parse", "--show-prefix"])
            .map_err(|why| Error::Usage(format!("`--against` needs a git repository: {why}")))?;
        // A revision that begins with a dash would be an option.
        let named = format!("{revision}^{{commit}}");
        let commit = git(
            root,
            &[
                "rev-parse",
                "--verify",
                "--quiet",
                "--end-of-options",
                &named,
            ],
        )
        .ok()
        .filter(|commit| commit.chars().all(|c| c.is_ascii_hexdigit()))
        .ok_or_else(|| refused("there is no such revision".to_owned()))?;
        std::fs::create_dir_all(places).map_err(Error::io("create", places))?;
        sweep(root, places);
        let folder = places.join(format!(
            "{}-{}",
            commit.chars().take(12).collect::<String>(),
            std::process::id()
        ));
        let place = folder.display().to_string();
        git(
            root,
            &[
                "worktree", "add", "--quiet", "--detach", "--force", &place, &commit,
            ],
        )
        .map_err(|why| Error::Environment {
            what: format!("git cannot check {commit} out: {why}"),
            next: format!("try it by hand: git worktree add --detach {place} {commit}"),
        })?;
        Ok(Worktree {
            commit,
            project: folder.join(prefix),
            folder,
            root: root.to_owned(),
        })
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        let place = self.folder.display().to_string();
        let _ = git(&self.root, &["worktree", "remove", "--force", &place]);
    }
}

/// Removes the worktrees of runs that were killed.
fn sweep(root: &Path, places: &Path) {
    for entry in std::fs::read_dir(places).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name
            .to_string_lossy()
            .rsplit_once('-')
            .and_then(|(_, pid)| pid.parse::<u32>().ok());
        // In a container the numbers of processes come again soon, this one's too.
        let gone = |pid: u32| {
            pid == std::process::id() || !Path::new("/proc").join(pid.to_string()).exists()
        };
        if owner.is_some_and(gone) {
            let place = entry.path().display().to_string();
            if git(root, &["worktree", "remove", "--force", &place]).is_err() {
                // git does not know it: the folder came from another clone.
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
    let _ = git(root, &["worktree", "prune"]);
}

/// What git prints, or what it complains of.
fn git(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = duct::cmd("git", arguments).dir(root).stdin_null();
    // Set where git runs a hook, these would lead to another repository than the project's.
    for variable in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_PREFIX",
        "GIT_COMMON_DIR",
    ] {
        command = command.env_remove(variable);
    }
    let output = command
        .stderr_capture()
        .stdout_capture()
        .unchecked()
        .run()
        .map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stderr))
    }
}
