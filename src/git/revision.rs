//! The commit of the working tree, other commits, and how they are related.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::call::git;
use crate::disk::leads_to;
use crate::terms::nearest;

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

/// The name of the user in git's configuration, or the login name; empty where there is neither.
pub fn person(root: &Path) -> String {
    let name = git(root, &["config", "user.name"]).unwrap_or_default();
    match name.is_empty() {
        true => std::env::var("USER").unwrap_or_default(),
        false => name,
    }
}

/// The commit that a revision names; `None` where there is none.
pub fn commit_of(root: &Path, revision: &str) -> Option<String> {
    // A revision that begins with a dash would be an option.
    let named = format!("{revision}^{{commit}}");
    git(
        root,
        &[
            "rev-parse", "--verify", "--quiet", "--end-of-options", &named,
        ],
    )
    .ok()
    .filter(|commit| !commit.is_empty() && commit.chars().all(|c| c.is_ascii_hexdigit()))
}

/// The start of a commit, for people.
pub fn short(commit: &str) -> String {
    commit.chars().take(10).collect()
}

/// The start of the commit that changed these files before the last one that did.
pub fn one_before_last(root: &Path, files: &str) -> Option<String> {
    let arguments = [
        "log", "--format=%H", "--max-count=1", "--skip=1", "--", files,
    ];
    let commit = git(root, &arguments).ok()?;
    (!commit.is_empty()).then(|| short(&commit))
}

/// The best common ancestor of two commits; `None` where the clone has none.
pub fn merge_base(root: &Path, one: &str, other: &str) -> Option<String> {
    git(root, &["merge-base", "--end-of-options", one, other])
        .ok()
        .filter(|commit| !commit.is_empty())
}

/// Whether a commit has another one among its ancestors, or is it.
pub fn contains(root: &Path, commit: &str, ancestor: &str) -> bool {
    merge_base(root, ancestor, commit).as_deref() == Some(ancestor)
}

/// Whether a commit is on the line of first parents of another one, as what a branch was before is.
pub fn was(root: &Path, commit: &str, before: &str) -> bool {
    let line = ["rev-list", "--first-parent", "--end-of-options", commit];
    git(root, &line).is_ok_and(|line| line.lines().any(|one| one == before))
}

/// Whether the clone lacks the older history.
pub fn is_shallow(root: &Path) -> bool {
    git(root, &["rev-parse", "--is-shallow-repository"]).is_ok_and(|answer| answer == "true")
}

/// The address of the remote `origin`; `None` where there is none.
pub fn origin(root: &Path) -> Option<String> {
    let address = git(root, &["config", "--get", "remote.origin.url"]).ok()?;
    Some(address).filter(|address| !address.is_empty())
}

/// How to get the branches of the remote `origin` with their history.
pub fn how_to_fetch(root: &Path) -> String {
    let unshallow = if is_shallow(root) { "--unshallow " } else { "" };
    let fetch = format!("git fetch {unshallow}origin '+refs/heads/*:refs/remotes/origin/*'");
    let remotes = git(root, &["remote"]).unwrap_or_default();
    match remotes.lines().next() {
        _ if remotes.lines().any(|name| name == "origin") => {
            format!("fetch it with its history: {fetch}")
        }
        Some(name) => format!(
            "no remote is called `origin`; if `{name}` has the target: git remote rename {name} origin"
        ),
        None => format!(
            "the clone has no remote: git remote add origin ADDRESS && {fetch}; outside of CI, name a local branch instead"
        ),
    }
}

/// That the remote of a reference such as `refs/remotes/origin/main` is none of this clone's, and the
/// reference that is meant.
fn unknown_remote(root: &Path, revision: &str) -> Option<String> {
    let (remote, branch) = revision.strip_prefix("refs/remotes/")?.split_once('/')?;
    let remotes = git(root, &["remote"]).unwrap_or_default();
    let remotes: Vec<&str> = remotes.lines().collect();
    let meant = nearest(remote, &remotes).or(remotes.first().copied())?;
    (remote != "origin" && !remotes.contains(&remote)).then(|| {
        let all = remotes.join("`, `");
        format!("no remote is called `{remote}`, only `{all}`\n  next: write refs/remotes/{meant}/{branch}")
    })
}

/// Why a revision is not known, and what may help.
pub fn why_unknown(root: &Path, revision: &str) -> String {
    if let Err(why) = repository(root) {
        return why;
    }
    if commit_of(root, "HEAD").is_none() {
        return "the repository has no commit yet: commit first; until there is another one, leave the option out".to_owned();
    }
    if let Some(why) = unknown_remote(root, revision) {
        return why;
    }
    if let Some((base, _)) = revision.split_once("..")
        && !base.is_empty()
    {
        return format!(
            "there is no such revision: it is a range\n  next: name one revision, such as its first: {base}"
        );
    }
    if let Some((before, _)) = revision.split_once(['~', '^'])
        && commit_of(root, before).is_some()
        && !is_shallow(root)
    {
        return format!(
            "there is no such revision: `{before}` has no commit so far before it\n  next: name another commit: `git log --oneline` lists them"
        );
    }
    let shallow = if is_shallow(root) {
        "; this clone is shallow and may lack it (`fetch-depth: 0` of GitHub, `GIT_DEPTH: 0` of GitLab, or `git fetch --unshallow`)"
    } else {
        ""
    };
    let of_remote = format!("refs/remotes/origin/{revision}");
    let next = match commit_of(root, &of_remote) {
        Some(_) => format!("write {of_remote}"),
        None => {
            let has_remote = git(root, &["remote"]).is_ok_and(|all| !all.trim().is_empty());
            let fetch = if has_remote {
                ", and `git fetch --tags` brings the tags"
            } else {
                ""
            };
            format!(
                "name a branch, a tag or a commit: `git branch --all` lists the branches{fetch}"
            )
        }
    };
    // A target is no branch that has the change.
    let form = match revision.starts_with("refs/") {
        true => &["--format=%(refname)", "--no-contains=HEAD"][..],
        false => &["--format=%(refname:short)"],
    };
    let names = git(root, &[&["for-each-ref"], form].concat()).unwrap_or_default();
    // The name of the remote alone is its default branch.
    let names: Vec<&str> = names.lines().filter(|name| *name != "origin").collect();
    let meant = nearest(revision, &names).map(|name| format!(", did you mean `{name}`?"));
    let meant = meant.unwrap_or_default();
    format!("there is no such revision{meant}{shallow}\n  next: {next}")
}

/// The repository that a folder is in.
#[derive(Clone, Debug)]
pub struct Repository {
    /// The folder of its working tree, without links.
    pub top: PathBuf,
    /// The folder of its history.
    pub history: PathBuf,
    /// The folder of its settings and hooks, which all its worktrees share.
    pub common: PathBuf,
    /// Whether it is a submodule of another repository, which then decides its commit.
    pub is_submodule: bool,
}

/// The repository that a folder is in. Git is asked once for each folder: a program that runs meanwhile
/// cannot put another repository in its place.
///
/// # Errors
/// Git's complaint where there is none, or where it may not be read.
pub fn repository(folder: &Path) -> Result<Repository, String> {
    static KNOWN: Mutex<BTreeMap<PathBuf, Repository>> = Mutex::new(BTreeMap::new());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(repository) = known().get(folder) {
        return Ok(repository.clone());
    }
    let repository = asked(folder)?;
    known().insert(folder.to_path_buf(), repository.clone());
    Ok(repository)
}

fn asked(folder: &Path) -> Result<Repository, String> {
    let answer = git(
        folder,
        &[
            "rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir",
            "--show-superproject-working-tree",
        ],
    )?;
    // The last option prints nothing where no repository contains this one.
    match answer.lines().collect::<Vec<_>>()[..] {
        [top, history, common, ref around @ ..] => Ok(Repository {
            top: leads_to(Path::new(top)),
            history: PathBuf::from(history),
            // It is as seen from the folder.
            common: folder.join(common),
            is_submodule: !around.is_empty(),
        }),
        _ => Err("it has no working tree".to_owned()),
    }
}
