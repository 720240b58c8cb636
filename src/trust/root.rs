//! The revision that a change is judged by. Rules, locks and the code to compare with come from a
//! commit that is or was the tip of the target branch: the one that the service or this clone names
//! as such. A commit in the target's history is not enough, because merging puts the commits of the
//! author there.

use std::path::Path;

use super::checkout::{refuse_fork, refuse_without_change};
use super::service::{Kind, Run, Stated, unread_event};
use crate::finding::{Code, Error, Finding, WarnReason};
use crate::git::{self, Named, is_whole_hash, short};

/// A revision from before the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// The commit.
    pub commit: String,
    /// How it was found, for people.
    pub found_by: String,
}

/// The revisions that the command line asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// `--baseline-ref`.
    pub baseline_ref: Option<&'a str>,
    /// `--against`.
    pub against: Option<&'a str>,
}

/// The revisions that a check uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bases {
    /// Whose rules count; `None` for the files of the working tree.
    pub root: Option<Root>,
    /// The commit to measure side by side.
    pub against: Option<String>,
}

/// The revisions to judge by and to compare with. `variable` reads the environment.
///
/// # Errors
/// [`Error::Usage`] where a name that was asked for means nothing; [`Error::Environment`] where a
/// base that is named is not in this clone, or shares no history with HEAD; [`Error::Baseline`]
/// where a service runs the check and no base is known, a revision is not known to be or to have
/// been the tip of the target, or a name means several things. The files of the working tree are
/// never used instead.
pub fn bases(
    folder: &Path,
    asked: Asked<'_>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Bases, Error> {
    let choice = |flag: &'static str, revision: Option<&str>| {
        revision.map(|revision| Choice::new(folder, flag, revision))
    };
    if let Some("none" | "worktree") = asked.baseline_ref {
        let against = choice("--against", asked.against).transpose()?;
        return Ok(Bases {
            root: None,
            against: against.map(|against| against.commit),
        });
    }
    let place = Place {
        folder,
        run: Run::of(&variable),
    };
    // Without it the commit of the change is not known.
    if let Some((why, next)) = unread_event(&variable)
        && matches!(place.run.kind, Kind::Change { .. } | Kind::Queue { .. })
    {
        return Err(Error::environment(why, next));
    }
    let root = match choice("--baseline-ref", asked.baseline_ref).transpose()? {
        Some(choice) => Some(place.accept(choice)?),
        None => place.stated()?,
    };
    if let Some(root) = &root {
        place.refuse_foreign(root)?;
        let base = (root.commit.as_str(), root.found_by.as_str());
        refuse_fork(folder, &place.run, base)?;
        refuse_without_change(folder, &place.run, base)?;
    }
    let against = choice("--against", asked.against).transpose()?;
    // Each night is compared with a release. A service that is not known may run a pull request here: its
    // `--against` is then the word of the pipeline, and rules and locks come from the root all the same.
    let was_base = |choice: &Choice| {
        let root = root.as_ref().filter(|_| place.is_of_no_change());
        root.is_some_and(|root| git::was(folder, &root.commit, &choice.commit))
    };
    let against = against.map(|choice| match was_base(&choice) {
        true => Ok(choice.root()),
        false => place.accept(choice),
    });
    let against = against.transpose()?;
    Ok(Bases {
        root,
        against: against.map(|against| against.commit),
    })
}

/// Refuses to build or run the change where the service gives the run the rights of the target.
///
/// # Errors
/// [`Error::Environment`].
pub fn refuse_in_target(variable: impl Fn(&str) -> Option<String>) -> Result<(), Error> {
    let run = Run::of(&variable);
    if !run.in_target {
        return Ok(());
    }
    Err(Error::environment(
        format!(
            "{} runs this for a pull request with the secrets of the target, where no code of the change may be built or run",
            run.service
        ),
        "measure it on the event `pull_request`; here `check --from` may judge what was measured",
    ))
}

/// The warning on a change that is judged by its own rules, because `--baseline-ref none` asks for them.
pub fn judged_by_itself(variable: impl Fn(&str) -> Option<String>) -> Option<Finding> {
    let run = Run::of(&variable);
    let message = format!(
        "{}: the change is judged by its own rules and baselines",
        run.service
    );
    let next = "leave the option out: the rules and baselines of the target then count";
    let finding = Finding::of_project(Code::PolicyChanged, message, next);
    matches!(run.kind, Kind::Change { .. } | Kind::Queue { .. })
        .then(|| finding.warn_for(WarnReason::OwnRules))
}

/// Whether a run is of code that is not under review: one by a person, or one for a push to the
/// default branch. `variable` reads the environment.
pub fn is_of_reviewed_code(folder: &Path, variable: impl Fn(&str) -> Option<String>) -> bool {
    let place = Place {
        folder,
        run: Run::of(&variable),
    };
    match &place.run.kind {
        Kind::Person => true,
        Kind::Push {
            branch, default, ..
        } => is_target(branch.as_deref(), default.as_deref()),
        Kind::Change { .. } | Kind::Queue { .. } | Kind::Other => false,
    }
}

/// What to do where git finds no repository, or may not read it.
const IN_CLONE: &str = "run the check in a clone of the repository, as a user that git trusts with it (`safe.directory` in ~/.gitconfig)";

/// A revision that the command line names.
struct Choice {
    flag: &'static str,
    revision: String,
    commit: String,
    /// The reference that it is, where it is one.
    reference: Option<String>,
}

impl Choice {
    fn new(folder: &Path, flag: &'static str, revision: &str) -> Result<Choice, Error> {
        git::repository(folder)
            .map_err(|why| git::error(format!("`{flag} {revision}`: {why}"), IN_CLONE))?;
        let commit = match git::named(folder, revision) {
            Named::Commit(commit) => commit,
            Named::Ambiguous(names) => {
                let of = |start: &str| names.iter().find(|name| name.starts_with(start));
                let branch = of("refs/remotes/").or_else(|| of("refs/heads/"));
                return Err(Error::Baseline(format!(
                    "`{flag} {revision}` is ambiguous: it may be {}\n  next: write the whole name: {flag} {}",
                    names.join(" or "),
                    branch.unwrap_or(&names[0])
                )));
            }
            Named::Missing if flag == "--baseline-ref" && revision.eq_ignore_ascii_case("none") => {
                return Err(Error::Usage(format!(
                    "`{flag} {revision}`: there is no such revision\n  next: write `none`, in small letters"
                )));
            }
            Named::Missing => {
                let why = git::why_unknown(folder, revision);
                let whole = revision.len() >= 40 && revision.chars().all(|c| c.is_ascii_hexdigit());
                let of_remote = ["refs/", "origin/"]
                    .iter()
                    .any(|it| revision.starts_with(it));
                let is_shallow = git::is_shallow(folder);
                let is_misspelt = why.starts_with("no remote");
                if is_misspelt || !whole && !of_remote && !is_shallow {
                    return Err(Error::Usage(format!("`{flag} {revision}`: {why}")));
                }
                let next = match revision.ends_with("origin/HEAD") {
                    // No fetch makes it.
                    true => "git remote set-head origin --auto, or name the branch".to_owned(),
                    false if why.contains("did you mean") => {
                        format!(
                            "correct the name; if it is new there, {}",
                            git::how_to_fetch(folder)
                        )
                    }
                    false => git::how_to_fetch(folder),
                };
                let why = why.lines().next().unwrap_or_default();
                let what = format!("`{flag} {revision}`: {why}");
                return Err(Error::environment(what, next));
            }
        };
        Ok(Choice {
            flag,
            revision: revision.to_owned(),
            commit,
            reference: git::full_name(folder, revision),
        })
    }

    fn root(&self) -> Root {
        Root {
            commit: self.commit.clone(),
            found_by: format!("{} {}", self.flag, self.revision),
        }
    }

    /// The error that it is no tip of the target.
    fn refused(&self, why: &str, instead: &str) -> Error {
        Error::Baseline(format!(
            "`{} {}` is {}, {why}: a commit that was only in somebody's branch must not supply rules, baselines or the code to compare with\n  next: write {} {instead}",
            self.flag,
            self.revision,
            short(&self.commit),
            self.flag
        ))
    }
}

/// Where a check runs: the folder, and what runs it.
struct Place<'a> {
    folder: &'a Path,
    run: Run,
}

impl Place<'_> {
    /// The base that the service states; `None` where a person runs the check.
    fn stated(&self) -> Result<Option<Root>, Error> {
        let found = match &self.run.kind {
            Kind::Person => return Ok(None),
            Kind::Change {
                target: Some(target),
                tip,
                ..
            } => self.tip(target, tip.as_ref())?,
            Kind::Push {
                branch,
                default,
                before,
                forced,
            } if is_target(branch.as_deref(), default.as_deref()) => {
                self.before(before.as_ref(), *forced)?
            }
            Kind::Queue {
                base: Some(base), ..
            } => self.ancestor(base, "the queue did not begin there")?,
            _ => return Err(self.unknown()),
        };
        Ok(Some(found))
    }

    /// Whether nothing shows that the run is of a change.
    fn is_of_no_change(&self) -> bool {
        matches!(self.run.kind, Kind::Push { .. } | Kind::Other)
    }

    /// A revision that the command line names, if this run may use it.
    fn accept(&self, choice: Choice) -> Result<Root, Error> {
        match &self.run.kind {
            Kind::Person => Ok(choice.root()),
            Kind::Change {
                target: Some(target),
                tip,
                former,
            } => {
                let known = [tip, former].into_iter().flatten();
                if known.clone().any(|known| known.commit == choice.commit)
                    || self.was_tip(target, &choice.commit)
                {
                    return Ok(choice.root());
                }
                self.tip(target, tip.as_ref())?;
                let reference = reference(target);
                let why = format!("and this clone never saw {reference} there");
                Err(choice.refused(&why, &reference))
            }
            // Who names the branch that was pushed makes it the target.
            Kind::Push {
                branch,
                default,
                before,
                forced,
            } if branch.is_some() && choice.reference == branch.as_deref().map(reference)
                || is_target(branch.as_deref(), default.as_deref())
                    && before
                        .as_ref()
                        .is_some_and(|before| before.commit == choice.commit) =>
            {
                self.before(before.as_ref(), *forced)
            }
            Kind::Queue {
                base: Some(base), ..
            } if base.commit == choice.commit => {
                self.ancestor(base, "the queue did not begin there")
            }
            Kind::Queue {
                target: Some(target),
                ..
            } if self.was_tip(target, &choice.commit) => Ok(choice.root()),
            _ => {
                let remote = |name: &String| name.starts_with("refs/remotes/");
                if choice.reference.as_ref().is_some_and(remote) {
                    return Ok(choice.root());
                }
                if let Kind::Push {
                    default: Some(default),
                    ..
                } = &self.run.kind
                    && self.was_tip(default, &choice.commit)
                {
                    return Ok(choice.root());
                }
                let same = git::remote_branch_at(self.folder, &choice.commit);
                let likely = reference(&self.likely_target());
                // The target may be what is checked out, which would be compared with itself.
                if same.is_none() && choice.flag == "--against" && self.is_of_no_change() {
                    let why =
                        "and no branch of a remote by name, nor a first-parent commit of the base";
                    let instead = format!(
                        "refs/remotes/origin/RELEASE, the branch that has it, pushed; or tag a commit of {likely} itself"
                    );
                    return Err(choice.refused(why, &instead));
                }
                let likely = same.unwrap_or(likely);
                Err(choice.refused("and no branch of a remote by name", &likely))
            }
        }
    }

    /// The tip of the target: the one that the service states if it fits the clone, else the one of
    /// the remote branch here.
    fn tip(&self, target: &str, stated: Option<&Stated>) -> Result<Root, Error> {
        let reference = reference(target);
        let here = git::of_reference(self.folder, &reference);
        let stated = stated.and_then(|stated| {
            let commit = git::commit_of(self.folder, &stated.commit)?;
            let fits = here.as_ref().is_none_or(|here| {
                git::contains(self.folder, here, &commit)
                    || git::contains(self.folder, &commit, here)
            });
            (is_whole_hash(&stated.commit) && fits).then(|| Root {
                commit,
                found_by: stated.by.to_owned(),
            })
        });
        let here = here.map(|commit| Root {
            commit,
            found_by: format!("tip of {reference}"),
        });
        stated.or(here).ok_or_else(|| {
            let mut starts = ["refs/heads/", "origin/"].iter();
            let plain = starts.find_map(|start| target.strip_prefix(start));
            match plain {
                Some(plain) => Error::environment(
                    format!(
                        "{} names the target `{target}`, which may be `{plain}`, and there is no {reference}",
                        self.run.service
                    ),
                    format!("let the variable name the branch alone: `{plain}`"),
                ),
                None => self.missing(&format!("there is no {reference}")),
            }
        })
    }

    /// Whether a commit is, or was by this clone's reflog, the tip of a remote branch.
    fn was_tip(&self, branch: &str, commit: &str) -> bool {
        let reference = reference(branch);
        git::of_reference(self.folder, &reference).is_some_and(|tip| tip == commit)
            || git::former_commits(self.folder, &reference)
                .iter()
                .any(|former| former == commit)
    }

    /// What to propose as the branch that changes are merged into. Nothing is decided by it.
    fn likely_target(&self) -> String {
        let head = "refs/remotes/origin/HEAD";
        let tip = git::of_reference(self.folder, head);
        let named = ["main", "master"].into_iter().find(|branch| {
            let there = git::of_reference(self.folder, &reference(branch));
            there.is_some() && (tip.is_none() || there == tip)
        });
        named.unwrap_or("main").to_owned()
    }

    /// The tip before a push.
    fn before(&self, before: Option<&Stated>, forced: bool) -> Result<Root, Error> {
        let before = before.ok_or_else(|| self.unknown())?;
        let rewritten = "the push rewrote history";
        if forced {
            return Err(self.no_ancestor(before, rewritten));
        }
        self.ancestor(before, rewritten)
    }

    /// A stated commit that HEAD must contain.
    fn ancestor(&self, stated: &Stated, otherwise: &str) -> Result<Root, Error> {
        let commit = git::commit_of(self.folder, &stated.commit)
            .filter(|_| is_whole_hash(&stated.commit))
            .ok_or_else(|| {
                self.missing(&format!(
                    "{} is {}, and there is no such commit",
                    stated.by, stated.commit
                ))
            })?;
        let head = self.head()?;
        if !git::contains(self.folder, &head, &commit) {
            if git::is_shallow(self.folder) {
                return Err(self.missing(&format!(
                    "the history here does not lead from HEAD to {}",
                    stated.by
                )));
            }
            return Err(self.no_ancestor(stated, otherwise));
        }
        Ok(Root {
            commit,
            found_by: format!("{}, the tip before", stated.by),
        })
    }

    fn head(&self) -> Result<String, Error> {
        git::commit_of(self.folder, "HEAD")
            .ok_or_else(|| self.missing("the repository has no commit yet"))
    }

    /// Refuses a base that HEAD cannot be merged with, or not without history that is missing.
    fn refuse_foreign(&self, root: &Root) -> Result<(), Error> {
        let head = self.head()?;
        let base = git::merge_base(self.folder, &root.commit, &head);
        if base.as_ref() == Some(&root.commit) {
            return Ok(());
        }
        if git::is_shallow(self.folder) {
            return Err(self.missing(&format!(
                "HEAD does not contain {} ({}), and the history that a merge needs is cut off here",
                short(&root.commit),
                root.found_by
            )));
        }
        match base {
            Some(_) => Ok(()),
            None => Err(Error::environment(
                format!(
                    "HEAD and {} ({}) have no common history, so that nothing can be merged",
                    short(&root.commit),
                    root.found_by
                ),
                format!(
                    "name a branch that has a common history with HEAD, or begin the change at its target: git switch --create NEW {} && git cherry-pick ITS-COMMITS",
                    short(&root.commit)
                ),
            )),
        }
    }

    fn no_ancestor(&self, stated: &Stated, why: &str) -> Error {
        Error::Baseline(format!(
            "{}: {} is {}, and HEAD does not contain it: {why}, so that the rules of the tip before do not apply\n  next: review it; then --baseline-ref none judges it by its own rules",
            self.run.service, stated.by, stated.commit
        ))
    }

    /// The error that nothing says which revision is the base.
    fn unknown(&self) -> Error {
        if let Err(why) = git::repository(self.folder) {
            return self.missing(&why);
        }
        let line = format!("--baseline-ref {}", reference(&self.likely_target()));
        let what = match &self.run.kind {
            Kind::Change { .. } => "a pull request, and does not name its target".to_owned(),
            Kind::Push {
                branch: Some(branch),
                before: None,
                ..
            } => format!(
                "a push to `{branch}`, and does not say where it was before (a new branch, or started by hand)"
            ),
            Kind::Push {
                branch: Some(branch),
                ..
            } => format!("a push to `{branch}`, which is not the default branch"),
            Kind::Queue { .. } => "a merge queue, and does not name its base".to_owned(),
            _ => "this check, and it is not known for which change".to_owned(),
        };
        // What the branch itself is says nothing of what was there before.
        let is_itself = matches!(&self.run.kind, Kind::Push { branch: Some(branch), before: None, .. } if reference(branch) == reference(&self.likely_target()));
        let named = match is_itself {
            true => String::new(),
            false => format!("{line} (the branch that changes are merged into), or "),
        };
        Error::Baseline(format!(
            "{} runs {what}: it is unknown whose rules and baselines count, and those of the change itself are not used silently\n  next: add {named}--baseline-ref none to use the files of the working tree, which the change may have edited",
            self.run.service
        ))
    }

    /// The error that the base is not in this clone.
    fn missing(&self, what: &str) -> Error {
        let fetch = self.run.fetch;
        // An error that keeps git from reading anything, such as another owner, comes first.
        let (what, next) = match git::repository(self.folder) {
            Err(why) => (why, IN_CLONE.to_owned()),
            Ok(_) if git::is_shallow(self.folder) => {
                (what.to_owned(), format!("the clone is shallow: {fetch}"))
            }
            Ok(_) => {
                let fetch = git::how_to_fetch(self.folder);
                let else_do = match self.run.kind {
                    Kind::Push { .. } => "if the push rewrote history, review what was pushed",
                    _ => {
                        "if that branch is gone there, give the change another target, and run it again"
                    }
                };
                (what.to_owned(), format!("{fetch}; {else_do}"))
            }
        };
        git::error(
            format!(
                "the base revision with its baselines and tolerances is missing ({}): {what}",
                self.run.service
            ),
            format!(
                "{next}; `--baseline-ref none` uses the working tree, which the change may have edited"
            ),
        )
    }
}

/// Whether a pushed branch is the default one, which only the service knows.
fn is_target(branch: Option<&str>, default: Option<&str>) -> bool {
    branch.is_some() && branch == default
}

/// The remote branch of that name. A local branch may belong to the pull request: forks have a
/// `main` too.
fn reference(branch: &str) -> String {
    format!("refs/remotes/origin/{branch}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::tests::environment;

    #[test]
    fn only_a_person_or_a_push_to_the_default_branch_runs_code_that_is_not_under_review() {
        let nowhere = tempfile::tempdir().unwrap();
        let push = |branch: &str| {
            format!("CI_PIPELINE_SOURCE=push CI_COMMIT_BRANCH={branch} CI_DEFAULT_BRANCH=main")
        };
        let of_request = push("main") + " CI_MERGE_REQUEST_IID=3";
        for (variables, expected) in [
            ("", true),
            (&push("main"), true),
            (&push("topic"), false),
            ("CI=true", false),
            ("GITHUB_EVENT_NAME=pull_request", false),
            ("GITHUB_EVENT_NAME=merge_group", false),
            ("GITHUB_EVENT_NAME=schedule", false),
            ("CI_MERGE_REQUEST_IID=3", false),
            (&of_request, false),
        ] {
            let found = is_of_reviewed_code(nowhere.path(), environment(variables));
            assert_eq!(found, expected, "{variables}");
        }
    }

    #[test]
    fn outside_of_a_repository_a_service_ends_the_run() {
        let nowhere = tempfile::tempdir().unwrap();
        for variable in [
            "CI=true", "GITHUB_EVENT_NAME=pull_request", "GITHUB_EVENT_NAME=push",
            "CI_MERGE_REQUEST_IID=3", "TEAMCITY_VERSION=1",
        ] {
            let found = bases(nowhere.path(), Asked::default(), environment(variable));
            let ended =
                matches!(&found, Err(Error::Environment { next, .. }) if next.contains(IN_CLONE));
            assert!(ended, "{variable}: {found:?}");
        }
        let found = bases(nowhere.path(), Asked::default(), |_| None);
        assert_eq!(found.unwrap(), Bases::default());
    }
}
