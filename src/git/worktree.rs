//! A revision in a folder of its own.

use std::path::{Path, PathBuf};

use super::call::{Git, error, git};
use crate::disk;
use crate::finding::Error;
use crate::process;

/// A revision, checked out in a folder of its own; removed when dropped.
#[derive(Debug)]
pub struct Worktree {
    /// The commit.
    pub commit: String,
    /// The folder of the project in it.
    pub project: PathBuf,
    /// The top of it.
    pub folder: PathBuf,
    root: PathBuf,
}

impl Worktree {
    /// Checks a commit out in a new folder below `places`. `root` is a folder of the repository.
    ///
    /// # Errors
    /// [`Error::Environment`] where git refuses.
    pub fn of_commit(root: &Path, commit: &str, places: &Path) -> Result<Worktree, Error> {
        let cannot = |why: String, next: String| {
            error(format!("git cannot check {commit} out: {why}"), next)
        };
        // The path of the folder from the top of its repository.
        let prefix = git(root, &["rev-parse", "--show-prefix"])
            .map_err(|why| cannot(why, "run it in a clone of the repository".to_owned()))?;
        disk::create_dir_all(places).map_err(Error::io("create", places))?;
        sweep(root, places);
        let folder = places.join(format!(
            "{}-{}",
            commit.chars().take(12).collect::<String>(),
            std::process::id()
        ));
        let place = folder.display().to_string();
        // As many processes as there are processors write the files.
        git(
            root,
            &[
                "-c", "checkout.workers=0", "worktree", "add", "--quiet", "--detach", "--force",
                &place, commit,
            ],
        )
        .map_err(|why| match process::interrupted() {
            true => Error::Interrupted,
            false if why.contains("Permission denied") => cannot(
                why,
                "run it as the owner of the repository, or give that to this user: chown -R"
                    .to_owned(),
            ),
            false => cannot(
                why,
                format!("try it by hand: git worktree add --detach {place} {commit}"),
            ),
        })?;
        Ok(Worktree {
            commit: commit.to_owned(),
            project: folder.join(prefix),
            folder,
            root: root.to_owned(),
        })
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        let _ = remove_worktree(&self.root, &self.folder);
    }
}

/// Removes the worktrees of runs that were killed.
fn sweep(root: &Path, places: &Path) {
    for entry in disk::read_dir(places).into_iter().flatten() {
        let name = entry.text();
        let owner = name
            .rsplit_once('-')
            .and_then(|(_, pid)| pid.parse::<u32>().ok());
        // In a container process numbers are used again soon, also this one's.
        let gone = |pid: u32| pid == std::process::id() || !disk::is_there(format!("/proc/{pid}"));
        if !owner.is_some_and(gone) {
            continue;
        }
        // A change may have brought it: git would remove what it leads to.
        if entry.is_link() {
            let _ = disk::remove_file(&entry.path);
        } else if remove_worktree(root, &entry.path).is_err() {
            // git does not know it: the folder came from another clone.
            let _ = disk::remove_dir_all(&entry.path);
        }
    }
    forget_removed(root, places);
}

/// Lets git forget worktrees below `places` whose folders are gone. Those of others may be on a disk
/// that is not mounted now.
fn forget_removed(root: &Path, places: &Path) {
    let listing = git(root, &["worktree", "list", "--porcelain"]).unwrap_or_default();
    let real = disk::real(places).unwrap_or_else(|_| places.to_owned());
    let folders = listing
        .lines()
        .filter_map(|line| line.strip_prefix("worktree "));
    for folder in folders.map(Path::new) {
        let is_ours = folder
            .parent()
            .is_some_and(|parent| parent == real || parent == places);
        if is_ours && !disk::is_there(folder) {
            let _ = remove_worktree(root, folder);
        }
    }
}

/// Removes a worktree. This goes on after an interrupt, which else would leave the folder behind.
fn remove_worktree(root: &Path, folder: &Path) -> Result<(), String> {
    let git = Git {
        interruptible: false,
        ..Git::here()
    };
    let folder = folder.display().to_string();
    let arguments = ["worktree", "remove", "--force", &folder];
    git.answer(root, &arguments, String::new(), &[]).map(drop)
}
