//! The revision that a change is judged by: the one that was named, or in the pipeline of a pull
//! request the merge base with its target.

use std::path::Path;

use crate::finding::Error;
use crate::git;

/// A revision from before the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// The commit.
    pub commit: String,
    /// How it was found, for people.
    pub found_by: String,
}

/// The variables in which a CI service says that it runs a pull request, and for which target.
struct Service {
    name: &'static str,
    /// The run is one of a pull request where this variable has one of the values; without values,
    /// where it has any besides `false`.
    pull_request: (&'static str, &'static [&'static str]),
    /// Variables of the commit that the pull request left its target at, the first that is set.
    bases: &'static [&'static str],
    /// Variable of the branch that it is to be merged into.
    target: &'static str,
    /// How to fetch what is missing.
    fetch: &'static str,
}

/// Sources: each service's page on its predefined variables.
const SERVICES: [Service; 6] = [
    Service {
        name: "GitHub Actions",
        pull_request: (
            "GITHUB_EVENT_NAME",
            &["pull_request", "pull_request_target"],
        ),
        bases: &[],
        target: "GITHUB_BASE_REF",
        fetch: "set `fetch-depth: 0` in actions/checkout",
    },
    Service {
        name: "GitLab CI",
        pull_request: ("CI_MERGE_REQUEST_IID", &[]),
        // The first is set only where HEAD is already merged with the target.
        bases: &[
            "CI_MERGE_REQUEST_TARGET_BRANCH_SHA",
            "CI_MERGE_REQUEST_DIFF_BASE_SHA",
        ],
        target: "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
        fetch: "set `GIT_DEPTH: 0`, and fetch the target branch",
    },
    Service {
        name: "Buildkite",
        pull_request: ("BUILDKITE_PULL_REQUEST", &[]),
        bases: &[],
        target: "BUILDKITE_PULL_REQUEST_BASE_BRANCH",
        fetch: "fetch the target branch in a pre-command hook of the agent",
    },
    Service {
        name: "Jenkins",
        pull_request: ("CHANGE_ID", &[]),
        bases: &[],
        target: "CHANGE_TARGET",
        fetch: "turn the shallow clone off, and add the target branch to the refspec",
    },
    Service {
        name: "Azure Pipelines",
        pull_request: ("BUILD_REASON", &["PullRequest"]),
        bases: &[],
        target: "SYSTEM_PULLREQUEST_TARGETBRANCH",
        fetch: "set `fetchDepth: 0` in the checkout step",
    },
    Service {
        name: "Bitbucket Pipelines",
        pull_request: ("BITBUCKET_PR_ID", &[]),
        bases: &[],
        target: "BITBUCKET_PR_DESTINATION_BRANCH",
        fetch: "set `clone: depth: full`",
    },
];

/// Every environment variable that decides whose rules count.
pub fn variables() -> impl Iterator<Item = &'static str> {
    SERVICES.iter().flat_map(|service| {
        let bases = service.bases.iter().copied();
        bases.chain([service.pull_request.0, service.target])
    })
}

/// The revision to judge by; `None` for the files of the working tree. `asked` is the value of
/// `--baseline-ref`, `variable` reads the environment.
///
/// # Errors
/// [`Error::Usage`] where the revision that was asked for does not exist; [`Error::Environment`]
/// where the run is one of a pull request and its base is unknown: the files of the working tree
/// are never used instead.
pub fn root(
    folder: &Path,
    asked: Option<&str>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Root>, Error> {
    match asked {
        Some("none" | "worktree") => Ok(None),
        Some(revision) => {
            let commit = git::commit_of(folder, revision).ok_or_else(|| {
                Error::Usage(format!(
                    "`--baseline-ref {revision}`: {}",
                    git::why_unknown(folder)
                ))
            })?;
            Ok(Some(Root {
                commit,
                found_by: format!("--baseline-ref {revision}"),
            }))
        }
        None => SERVICES
            .iter()
            .find(|service| service.runs_pull_request(&variable))
            .map(|service| service.root(folder, &variable))
            .transpose(),
    }
}

impl Service {
    fn runs_pull_request(&self, variable: &impl Fn(&str) -> Option<String>) -> bool {
        let (name, values) = self.pull_request;
        variable(name).is_some_and(|value| {
            if values.is_empty() {
                !value.is_empty() && value != "false"
            } else {
                values.contains(&value.as_str())
            }
        })
    }

    fn root(
        &self,
        folder: &Path,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Result<Root, Error> {
        let stated = |name: &str| variable(name).filter(|value| !value.is_empty());
        let unknown = |what: String| {
            // An error that keeps git from reading anything, such as another owner, comes first.
            let (what, next) = match git::repository(folder) {
                Err(why) => (why, "give git the right to read the folder".to_owned()),
                Ok(_) if git::is_shallow(folder) => {
                    (what, format!("the clone is shallow: {}", self.fetch))
                }
                Ok(_) => (what, self.fetch.to_owned()),
            };
            Error::Environment {
                what: format!(
                    "{} runs a pull request, and the base revision with its baselines and tolerances is missing: {what}",
                    self.name
                ),
                next: format!(
                    "{next}; or name the revision: --baseline-ref REV (`none` uses the working tree, which the pull request may have edited)"
                ),
            }
        };
        let mut bases = self.bases.iter();
        if let Some((name, base)) = bases.find_map(|name| Some((*name, stated(name)?))) {
            let commit = git::commit_of(folder, &base)
                .ok_or_else(|| unknown(format!("{name} is {base}, and there is no such commit")))?;
            return Ok(Root {
                commit,
                found_by: name.to_owned(),
            });
        }
        let target =
            stated(self.target).ok_or_else(|| unknown(format!("{} is not set", self.target)))?;
        let branch = target.strip_prefix("refs/heads/").unwrap_or(&target);
        // A local branch of that name may belong to the pull request: forks have a `main` too.
        let upstream = format!("origin/{branch}");
        let head = git::commit_of(folder, "HEAD");
        let tip = git::commit_of(folder, &format!("refs/remotes/{upstream}"))
            .ok_or_else(|| unknown(format!("there is no {upstream}")))?;
        let commit = head
            .and_then(|head| git::merge_base(folder, &tip, &head))
            .ok_or_else(|| {
                unknown(format!(
                    "the history here does not contain the merge base of HEAD and {upstream}"
                ))
            })?;
        Ok(Root {
            commit,
            found_by: format!("merge base with {upstream}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(environment: &[(&str, &str)]) -> Option<&'static str> {
        let variable = |name: &str| {
            let found = environment.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let mut services = SERVICES.iter();
        services
            .find(|service| service.runs_pull_request(&variable))
            .map(|service| service.name)
    }

    #[test]
    fn a_pull_request_is_recognized_among_the_runs_of_a_service() {
        for (environment, expected) in [
            (
                ("GITHUB_EVENT_NAME", "pull_request"),
                Some("GitHub Actions"),
            ),
            (("GITHUB_EVENT_NAME", "push"), None),
            (("BUILDKITE_PULL_REQUEST", "false"), None),
            (("BUILDKITE_PULL_REQUEST", "17"), Some("Buildkite")),
            (("BUILD_REASON", "IndividualCI"), None),
            (("BUILD_REASON", "PullRequest"), Some("Azure Pipelines")),
            (("CHANGE_ID", "3"), Some("Jenkins")),
            (("CI_MERGE_REQUEST_IID", "3"), Some("GitLab CI")),
            (("BITBUCKET_PR_ID", "3"), Some("Bitbucket Pipelines")),
            (("CI", "true"), None),
        ] {
            assert_eq!(service(&[environment]), expected, "{environment:?}");
        }
    }

    #[test]
    fn a_pull_request_without_its_base_is_never_judged_by_the_working_tree() {
        let nowhere = tempfile::tempdir().unwrap();
        for service in &SERVICES {
            let (name, values) = service.pull_request;
            let value = values.first().copied().unwrap_or("1");
            let found = root(nowhere.path(), None, |asked| {
                (asked == name).then(|| value.to_owned())
            });
            assert!(
                matches!(found, Err(Error::Environment { .. })),
                "{}: {found:?}",
                service.name
            );
        }
    }
}
