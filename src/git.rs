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

/// A file as a commit has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The commit that made it so.
    pub commit: String,
    /// Its bytes.
    pub content: Vec<u8>,
}

/// Every version of a file in the commits that are here, the newest first; through renames.
///
/// # Errors
/// What git complains of, or that there is no repository.
pub fn versions(file: &Path) -> Result<Vec<Version>, String> {
    let (folder, name) = place(file)?;
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

/// Whether the repository around a file lacks its older commits.
pub fn is_shallow(file: &Path) -> bool {
    place(file).is_ok_and(|(folder, _)| {
        git(folder, &["rev-parse", "--is-shallow-repository"]).is_ok_and(|answer| answer == "true")
    })
}

fn place(file: &Path) -> Result<(&Path, &str), String> {
    let name = file.file_name().and_then(|name| name.to_str());
    file.parent()
        .zip(name)
        .ok_or_else(|| format!("{} is no file of a folder", file.display()))
}

/// The contents of blobs, in one run of git; `None` for one that is not here.
fn blobs<'a>(
    folder: &Path,
    ids: impl Iterator<Item = &'a str>,
) -> Result<Vec<Option<Vec<u8>>>, String> {
    let asked: String = ids.map(|id| format!("{id}\n")).collect();
    let count = asked.lines().count();
    if count == 0 {
        return Ok(Vec::new());
    }
    let output = command(folder, &["cat-file", "--batch"])
        .stdin_bytes(asked)
        .stdout_capture()
        .stderr_capture()
        .unchecked()
        .run()
        .map_err(|error| error.to_string())?;
    // `<id> blob <size>`, the content and a line break; or `<id> missing`.
    let mut rest = output.stdout.as_slice();
    let mut contents = Vec::with_capacity(count);
    while contents.len() < count {
        let end = rest
            .iter()
            .position(|byte| *byte == b'\n')
            .ok_or("git cat-file ended early")?;
        let header = String::from_utf8_lossy(&rest[..end]).into_owned();
        rest = &rest[end + 1..];
        let size = header
            .rsplit_once(' ')
            .and_then(|(_, size)| size.parse::<usize>().ok());
        contents.push(match size {
            None => None,
            Some(size) if size < rest.len() => {
                let content = rest[..size].to_vec();
                rest = &rest[size + 1..];
                Some(content)
            }
            Some(_) => return Err("git cat-file ended early".to_owned()),
        });
    }
    Ok(contents)
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
    let output = command(root, arguments)
        .stdin_null()
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

/// git in the project's own repository.
fn command(root: &Path, arguments: &[&str]) -> duct::Expression {
    let mut command = duct::cmd("git", arguments).dir(root).env("LC_ALL", "C");
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
    command
}
