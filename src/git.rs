//! Revisions: the one of the working tree, for provenance; others, checked out beside it; and files
//! of others. Nothing here runs code of a revision: hooks and monitors are off, and a folder that
//! only looks like a bare repository is not taken for one.

#[doc(hidden)]
pub mod printed;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::finding::Error;
use crate::process::{self, Ending, Query};

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

/// The name of the user in git's configuration, or the login name.
pub fn person(root: &Path) -> String {
    let name = git(root, &["config", "user.name"]).unwrap_or_default();
    if name.is_empty() {
        std::env::var("USER").unwrap_or_else(|_| "unknown".to_owned())
    } else {
        name
    }
}

/// The commit that a revision names; `None` where there is none.
pub fn commit_of(root: &Path, revision: &str) -> Option<String> {
    // A revision that begins with a dash would be an option.
    let named = format!("{revision}^{{commit}}");
    git(
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
    .filter(|commit| !commit.is_empty() && commit.chars().all(|c| c.is_ascii_hexdigit()))
}

/// The best common ancestor of two commits; `None` where the clone has none.
pub fn merge_base(root: &Path, one: &str, other: &str) -> Option<String> {
    git(root, &["merge-base", "--end-of-options", one, other])
        .ok()
        .filter(|commit| !commit.is_empty())
}

/// Whether the clone lacks the older history.
pub fn is_shallow(root: &Path) -> bool {
    git(root, &["rev-parse", "--is-shallow-repository"]).is_ok_and(|answer| answer == "true")
}

/// Why a revision is not known, and what may help.
pub fn why_unknown(root: &Path) -> String {
    if let Err(why) = repository(root) {
        return why;
    }
    if commit_of(root, "HEAD").is_none() {
        return "the repository has no commit yet".to_owned();
    }
    let shallow = if is_shallow(root) {
        "; this clone is shallow and may lack it (`fetch-depth: 0`, or `git fetch --unshallow`)"
    } else {
        ""
    };
    format!("there is no such revision{shallow}")
}

/// The repository that a folder is in.
#[derive(Clone, Debug)]
pub struct Repository {
    /// The folder of its working tree.
    pub top: PathBuf,
    /// The folder of its history.
    pub history: PathBuf,
    /// Whether it is a submodule of another repository, which then decides its commit.
    pub is_submodule: bool,
}

/// The repository that a folder is in.
///
/// # Errors
/// Git's complaint where there is none, or where it may not be read.
pub fn repository(folder: &Path) -> Result<Repository, String> {
    let answer = git(
        folder,
        &[
            "rev-parse",
            "--show-toplevel",
            "--absolute-git-dir",
            "--show-superproject-working-tree",
        ],
    )?;
    // The last option prints nothing where no repository contains this one.
    match answer.lines().collect::<Vec<_>>()[..] {
        [top, history, ref around @ ..] => Ok(Repository {
            top: PathBuf::from(top),
            history: PathBuf::from(history),
            is_submodule: !around.is_empty(),
        }),
        _ => Err("it has no working tree".to_owned()),
    }
}

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
    let contents = blobs(root, wanted.iter().map(|entry| entry.object))?;
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
    printed::contents(&answer, count)
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
    let found = printed::history(&log);
    let contents = blobs(folder, found.iter().map(|(_, blob)| *blob))?;
    Ok(found
        .into_iter()
        .zip(contents)
        .filter_map(|((commit, _), content)| {
            let commit = commit.to_owned();
            content.map(|content| Version { commit, content })
        })
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
    printed::index(&listing)
}

/// Those of the paths that git changes when it checks them out, each with the attribute that makes
/// it do so. Line endings are not considered. `top` is the folder of the working tree; paths are
/// relative to it.
///
/// # Errors
/// Git's complaint.
pub fn converted<'p>(
    top: &Path,
    paths: impl Iterator<Item = &'p str>,
) -> Result<Vec<(String, String)>, String> {
    let asked: String = paths.map(|path| format!("{path}\0")).collect();
    let arguments = [
        "check-attr",
        "-z",
        "--stdin",
        "working-tree-encoding",
        "ident",
        "filter",
    ];
    let answer = git_bytes(top, &arguments, asked)?;
    let answer = String::from_utf8_lossy(&answer);
    let owned = |(path, attribute): (&str, &str)| (path.to_owned(), attribute.to_owned());
    let found = printed::attributes(&answer).into_iter().map(owned);
    Ok(found.collect())
}

/// A revision, checked out in a folder of its own; removed when dropped.
#[derive(Debug)]
pub struct Worktree {
    /// The commit.
    pub commit: String,
    /// The folder of the project in it.
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
        let prefix = git(root, &["rev-parse", "--show-prefix"])
            .map_err(|why| Error::Usage(format!("`--against` needs a git repository: {why}")))?;
        let commit = commit_of(root, revision).ok_or_else(|| {
            Error::Usage(format!("`--against {revision}`: {}", why_unknown(root)))
        })?;
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
        .map_err(|why| match process::interrupted() {
            true => Error::Interrupted,
            false => Error::Environment {
                what: format!("git cannot check {commit} out: {why}"),
                next: format!("try it by hand: git worktree add --detach {place} {commit}"),
            },
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
        let _ = remove_worktree(&self.root, &self.folder);
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
        // In a container process numbers are used again soon, also this one's.
        let gone = |pid: u32| {
            pid == std::process::id() || !Path::new("/proc").join(pid.to_string()).exists()
        };
        if owner.is_some_and(gone) && remove_worktree(root, &entry.path()).is_err() {
            // git does not know it: the folder came from another clone.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    let _ = git(root, &["worktree", "prune"]);
}

/// What git prints, or its complaint.
fn git(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let printed = git_bytes(root, arguments, String::new())?;
    Ok(String::from_utf8_lossy(&printed).trim().to_owned())
}

fn git_bytes(root: &Path, arguments: &[&str], input: String) -> Result<Vec<u8>, String> {
    Git::here().run(root, arguments, input)
}

/// Removes a worktree. This goes on after an interrupt, which else would leave the folder behind.
fn remove_worktree(root: &Path, folder: &Path) -> Result<(), String> {
    let git = Git {
        interruptible: false,
        ..Git::here()
    };
    let folder = folder.display().to_string();
    let arguments = ["worktree", "remove", "--force", &folder];
    git.run(root, &arguments, String::new()).map(drop)
}

/// Longest that git may take. To check out a large repository, or to fetch what a partial clone
/// lacks, takes minutes; a git that takes longer waits for a lock, a network or a person.
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// Options of every call: neither the repository's hooks nor its monitor run, and a folder of the
/// working tree that is laid out as a bare repository, with a configuration of its own, is not
/// taken for a repository.
const HARMLESS: [&str; 6] = [
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "safe.bareRepository=explicit",
];

/// Variables that git sets where it runs a hook: they lead to another repository than the
/// project's.
const OF_A_HOOK: [&str; 5] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_COMMON_DIR",
];

/// How git is called.
struct Git<'a> {
    program: &'a str,
    limit: Duration,
    interruptible: bool,
}

impl Git<'_> {
    /// The git of the PATH.
    fn here() -> Git<'static> {
        Git {
            program: "git",
            limit: TIME_LIMIT,
            interruptible: true,
        }
    }

    /// What git prints, or its complaint.
    fn run(&self, root: &Path, arguments: &[&str], input: String) -> Result<Vec<u8>, String> {
        let options = HARMLESS.iter().chain(arguments);
        let words = std::iter::once(&self.program).chain(options);
        let env = [
            // A commit is identified by its hash, without what `refs/replace` puts in its place.
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            // In a process group of its own git cannot ask at the terminal.
            ("GIT_TERMINAL_PROMPT", "0"),
            ("LC_ALL", "C"),
        ];
        let query = Query {
            argv: words.map(|word| (*word).to_owned()).collect(),
            dir: root,
            env: env.map(|(name, value)| (name.into(), value.into())).into(),
            without: &OF_A_HOOK,
            input: input.into_bytes(),
            timeout: self.limit,
            interruptible: self.interruptible,
        };
        let printed = query
            .run()
            .map_err(|error| format!("git cannot be run: {error}"))?;
        let complaint = String::from_utf8_lossy(&printed.stderr).trim().to_owned();
        match printed.ending {
            Ending::Exited(0) => Ok(printed.stdout),
            Ending::Exited(_) if !complaint.is_empty() => Err(complaint),
            ending => {
                let reached = match ending {
                    Ending::TimedOut => format!(" of {} s", self.limit.as_secs_f64()),
                    _ => String::new(),
                };
                let end = format!("`git {}`: {ending}{reached}", arguments.join(" "));
                let complaint = (!complaint.is_empty()).then_some(complaint);
                Err(complaint
                    .into_iter()
                    .chain([end])
                    .collect::<Vec<_>>()
                    .join("; "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Instant;

    fn answer(script: &str) -> Result<Vec<u8>, String> {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("git");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let git = Git {
            program: program.to_str().unwrap(),
            limit: Duration::from_millis(500),
            ..Git::here()
        };
        git.run(folder.path(), &["rev-parse", "HEAD"], String::new())
    }

    #[test]
    fn a_git_that_hangs_is_killed_at_its_time_limit_and_named() {
        let begun = Instant::now();
        let why = answer("echo 'waiting for a lock' >&2; sleep 300; echo never").unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(60), "{why}");
        assert_eq!(
            why,
            "waiting for a lock; `git rev-parse HEAD`: killed at its time limit of 0.5 s"
        );
    }

    #[test]
    fn the_complaint_of_git_comes_first_and_an_end_without_one_is_named() {
        assert_eq!(answer("echo out; echo hint >&2").unwrap(), b"out\n");
        assert_eq!(
            answer("echo 'fatal: no' >&2; exit 128").unwrap_err(),
            "fatal: no"
        );
        assert_eq!(
            answer("exit 1").unwrap_err(),
            "`git rev-parse HEAD`: exit status 1"
        );
    }
}
