//! Whether what is checked out is the change, and comes from where its base comes from.

use std::path::Path;

use super::service::{Kind, Run, Stated, repository_path};
use crate::finding::Error;
use crate::git::{self, short};

/// Refuses to judge a base as if it were the change: nothing of the change would be measured. A
/// workflow that runs in the context of the target has the target's code, unless it asks for other.
/// `base` is the commit to judge by, and `found_by` says how it was found.
///
/// # Errors
/// [`Error::Environment`] where HEAD does not contain the commit that is to be judged, or is a part of
/// the base.
pub(super) fn refuse_without_change(
    folder: &Path,
    run: &Run,
    (base, found_by): (&str, &str),
) -> Result<(), Error> {
    let Some(head) = git::commit_of(folder, "HEAD") else {
        return Ok(());
    };
    // A pipeline of another repository may have cloned this one.
    let is_of_here =
        |stated: &&Stated| stated.by != "CI_COMMIT_SHA" || matches!(run.kind, Kind::Change { .. });
    let stated = run.head.as_ref().filter(is_of_here);
    let missing = stated.filter(|stated| !git::contains(folder, &head, &stated.commit));
    let unknown = run.in_target && stated.is_none();
    let is_of_base = git::contains(folder, base, &head);
    if missing.is_none() && !(unknown && is_of_base) {
        return Ok(());
    }
    let (whose, commit) = match missing {
        Some(stated) => (
            format!("the commit {} ({})", stated.commit, stated.by),
            stated.commit.clone(),
        ),
        None => (
            "a pull request".to_owned(),
            "the pull request's last commit".to_owned(),
        ),
    };
    Err(Error::environment(
        format!(
            "{} runs this check for {whose}, and HEAD is {head}, {}",
            run.service,
            match is_of_base {
                true => format!(
                    "a commit of the base ({found_by}): nothing of the change would be judged"
                ),
                false => "which does not contain it: another state of the change would be judged"
                    .to_owned(),
            }
        ),
        match run.in_target {
            true => format!(
                "measure it on the event `pull_request`; to judge here what it measured (`--from`), check out {commit} in a job that has no secret"
            ),
            false => format!("check out {commit} before the check, in a job that has no secret"),
        },
    ))
}

/// Refuses a base from the remote branches of a clone whose remote is the author's own repository.
/// A commit that the service itself names is the target's wherever it was fetched from.
///
/// # Errors
/// [`Error::Baseline`], which says how to fetch the target.
pub(super) fn refuse_fork(
    folder: &Path,
    run: &Run,
    (base, found_by): (&str, &str),
) -> Result<(), Error> {
    let (Some(fork), Some(address)) = (&run.fork, git::origin(folder)) else {
        return Ok(());
    };
    let origin = repository_path(&address);
    // Of two that could be meant, the longer one is: the fork `evil/acme/kernels` is not `acme/kernels`.
    let fits = |path: &str| {
        let whole = origin == path || origin.ends_with(&format!("/{path}"));
        if whole { path.len() } else { 0 }
    };
    let stated = match &run.kind {
        Kind::Change { tip, former, .. } => [tip.as_ref(), former.as_ref()],
        Kind::Push { before, .. } => [before.as_ref(), None],
        Kind::Queue { base, .. } => [base.as_ref(), None],
        Kind::Person | Kind::Other => [None, None],
    };
    let stated = stated
        .into_iter()
        .flatten()
        .any(|stated| stated.commit == base);
    if stated || fits(&fork.home) >= fits(&fork.source) {
        return Ok(());
    }
    Err(Error::Baseline(format!(
        "the remote `origin` of this clone is {}, the repository that the change comes from, and not {}: its branches are the author's, so {} ({}) must not supply rules and baselines\n  next: clone {} and fetch the change into it; or git remote set-url origin ADDRESS-OF-{} && git fetch origin '+refs/heads/*:refs/remotes/origin/*'",
        fork.source,
        fork.home,
        found_by,
        short(base),
        fork.home,
        fork.home,
    )))
}
