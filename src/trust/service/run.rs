//! Which kind of run it is.

use super::entry::{Owning, PLAIN, Service, set};
use super::environment::{Environment, Stated};
use super::table::{IN_TARGET, OF_ANY, SERVICES};

/// What the environment says of a run.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    /// No CI service runs it.
    Person,
    /// A change that is to be merged into a branch.
    Change {
        /// The branch.
        target: Option<String>,
        /// The commit that it was at when the run was made, and which variable names it.
        tip: Option<Stated>,
        /// A commit that it was at earlier.
        former: Option<Stated>,
    },
    /// Commits that were pushed to a branch.
    Push {
        /// The branch.
        branch: Option<String>,
        /// The default branch.
        default: Option<String>,
        /// The commit that it was at before; `None` of a new branch.
        before: Option<Stated>,
        /// Whether the push is known to have rewritten history.
        forced: bool,
    },
    /// A merge queue.
    Queue {
        /// The commit that the queue merges onto.
        base: Option<Stated>,
        /// The branch that the queue is for.
        target: Option<String>,
    },
    /// Anything else that a service runs.
    Other,
}

/// A run, by its environment.
pub struct Run {
    /// The service, for people.
    pub service: &'static str,
    /// How to fetch what is missing there.
    pub fetch: &'static str,
    pub kind: Kind,
    /// How the service reads code owners, where it knows any.
    pub owning: Option<Owning>,
    /// The last commit of the change.
    pub head: Option<Stated>,
    /// Whether it is for a pull request, and begins with the target's code unless it asks for other.
    pub in_target: bool,
    /// The repository that the change comes from, where that is another one than it is to be merged
    /// into, and that one.
    pub fork: Option<Fork>,
}

/// The repositories of a pull request from a fork, each by its path, without host.
#[derive(Debug, PartialEq, Eq)]
pub struct Fork {
    pub source: String,
    pub home: String,
}

impl Run {
    /// What the environment says; `variable` reads it.
    pub fn of(variable: &dyn Fn(&str) -> Option<String>) -> Run {
        let environment = Environment::of(variable);
        let run = |service: &Service, kind: Kind| Run {
            service: service.name,
            fetch: service.fetch,
            kind,
            owning: service.owning,
            head: SERVICES.iter().find_map(|it| environment.commit(it.head)),
            in_target: IN_TARGET.iter().any(|sign| environment.shows(sign)),
            fork: SERVICES.iter().find_map(|it| it.fork(&environment)),
        };
        // A queue first: a merge train of GitLab has the variables of a merge request too. Then a
        // pull request of any service, because its rules are the strictest.
        let kinds = [
            Service::queue as fn(&Service, &Environment<'_>) -> Option<Kind>,
            Service::change,
            Service::push,
            Service::other,
        ];
        for kind in kinds {
            for service in SERVICES {
                if let Some(kind) = kind(service, &environment) {
                    return run(service, kind);
                }
            }
        }
        let by_any = OF_ANY
            .split_whitespace()
            .any(|name| environment.shows(&set(name)));
        run(&PLAIN, if by_any { Kind::Other } else { Kind::Person })
    }
}

/// The path of a repository from its address, such as `https://host/owner/name.git` and
/// `git@host:owner/name`, or from a path.
pub fn repository_path(address: &str) -> String {
    let path = match address.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None => match address.split_once(':') {
            Some((host, path)) if !host.contains('/') => path,
            _ => address,
        },
    };
    let path = path.trim_matches('/');
    path.strip_suffix(".git").unwrap_or(path).to_lowercase()
}

impl Service {
    fn queue(&self, environment: &Environment<'_>) -> Option<Kind> {
        let queue = self.queue.as_ref()?;
        let shown = environment.shows(&queue.when);
        shown.then(|| Kind::Queue {
            base: environment.commit(&[queue.base]),
            target: environment.branch(&[queue.target]),
        })
    }

    fn change(&self, environment: &Environment<'_>) -> Option<Kind> {
        let mut signs = self.change.iter();
        signs
            .any(|sign| environment.shows(sign))
            .then(|| Kind::Change {
                target: environment.branch(self.target),
                tip: environment.commit(self.tip),
                former: environment.commit(self.former),
            })
    }

    fn push(&self, environment: &Environment<'_>) -> Option<Kind> {
        let push = self.push.as_ref()?;
        let shown = environment.shows(&push.when);
        shown.then(|| Kind::Push {
            branch: environment.branch(push.branch),
            default: environment.branch(push.default),
            before: environment.commit(&[push.before]),
            forced: push
                .forced
                .and_then(|name| environment.read(name))
                .is_some_and(|forced| forced == "true"),
        })
    }

    fn other(&self, environment: &Environment<'_>) -> Option<Kind> {
        let mut own = self.own.iter();
        own.any(|sign| environment.shows(sign))
            .then_some(Kind::Other)
    }

    fn fork(&self, environment: &Environment<'_>) -> Option<Fork> {
        let path = |names: &[&'static str]| {
            let address = names.iter().find_map(|name| environment.read(name))?;
            Some(repository_path(&address)).filter(|path| !path.is_empty())
        };
        let (source, home) = (path(self.source)?, path(self.home)?);
        (source != home).then_some(Fork { source, home })
    }

    /// The first name of the pull request that is set.
    fn number(&self, environment: &Environment<'_>) -> Option<(&'static str, String)> {
        let mut names = self.number.iter();
        names.find_map(|(name, form)| Some((*name, form.number(&environment.read(name)?)?)))
    }
}

/// The pull request of a run, as the service names it, and the variable that does; `variable` reads
/// the environment.
pub fn number(variable: &dyn Fn(&str) -> Option<String>) -> Option<(&'static str, String)> {
    let environment = Environment::of(variable);
    let mut services = SERVICES.iter();
    services.find_map(|service| service.number(&environment))
}

/// Whether a CI service runs this that is not in the table.
pub fn is_unknown(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    let run = Run::of(variable);
    run.service == PLAIN.name && run.kind == Kind::Other
}

#[cfg(test)]
mod tests {
    use super::super::entry::Sign;
    use super::*;
    use crate::trust::tests::environment;

    /// The service and the kind of a run with these variables.
    fn kind(variables: &str) -> (&'static str, String) {
        let run = Run::of(&environment(variables));
        let text = match run.kind {
            Kind::Person => "person".to_owned(),
            Kind::Change { target, .. } => format!("change {}", target.unwrap_or_default()),
            Kind::Push { branch, before, .. } => format!(
                "push {} {}",
                branch.unwrap_or_default(),
                before.map_or_else(String::new, |before| before.commit)
            ),
            Kind::Queue { base, .. } => format!("queue {}", base.is_some()),
            Kind::Other => "other".to_owned(),
        };
        (run.service, text)
    }

    #[test]
    fn every_kind_of_run_is_recognized_by_its_variables() {
        let runs = "
            | CI | person
            CI=false | CI | person
            CI=true | CI | other
            CI=1 | CI | other
            BUILD_NUMBER=7 | CI | other
            bamboo_planKey=A-B | CI | other
            GITHUB_EVENT_NAME=push | GitHub Actions | push
            GITHUB_EVENT_NAME=schedule | GitHub Actions | other
            GITHUB_BASE_REF=main | GitHub Actions | change main
            GITHUB_EVENT_NAME=pull_request_target GITHUB_BASE_REF=main | GitHub Actions | change main
            BUILDKITE=true BUILDKITE_PULL_REQUEST=false | Buildkite | other
            BUILDKITE_PULL_REQUEST=17 | Buildkite | change
            BUILDKITE_PULL_REQUEST=7 BUILDKITE_PULL_REQUEST_BASE_BRANCH=main | Buildkite | change main
            CI_PIPELINE_SOURCE=push CI_COMMIT_BEFORE_SHA=0000 CI_COMMIT_BRANCH=x | GitLab CI | push x
            CI_MERGE_REQUEST_IID=3 CI_MERGE_REQUEST_EVENT_TYPE=merge_train | GitLab CI | queue false
            CI_MERGE_REQUEST_IID=7 CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main | GitLab CI | change main
            JENKINS_URL=http://j CHANGE_ID=7 CHANGE_TARGET=main | Jenkins | change main
            JENKINS_URL=http://j ghprbPullId=7 ghprbTargetBranch=main | Jenkins | change main
            JENKINS_URL=http://j gitlabMergeRequestIid=7 gitlabTargetBranch=main | Jenkins | change main";
        for [variables, service, expected] in crate::files::tests::rows(runs) {
            let (found, kind) = kind(variables);
            assert_eq!((found, kind.trim()), (service, expected), "{variables}");
        }
    }

    #[test]
    fn a_service_that_is_not_in_the_table_names_no_base_whatever_it_runs() {
        for environment in [
            "TF_BUILD=True BUILD_REASON=PullRequest SYSTEM_PULLREQUEST_TARGETBRANCH=refs/heads/main",
            "TF_BUILD=True BUILD_REASON=IndividualCI",
            "BITBUCKET_BUILD_NUMBER=1 BITBUCKET_PR_ID=7 BITBUCKET_PR_DESTINATION_BRANCH=main",
            "TRAVIS=true TRAVIS_EVENT_TYPE=pull_request TRAVIS_PULL_REQUEST=7 TRAVIS_BRANCH=main",
            "TRAVIS=true TRAVIS_EVENT_TYPE=push TRAVIS_BRANCH=main TRAVIS_COMMIT_RANGE=ab...cd",
            "CIRCLECI=true CIRCLE_PULL_REQUEST=https://p/7",
            "CIRCLECI=true",
            "DRONE=true DRONE_BUILD_EVENT=pull_request DRONE_PULL_REQUEST=7 DRONE_TARGET_BRANCH=main",
            "DRONE=true DRONE_BUILD_EVENT=push DRONE_BRANCH=main DRONE_COMMIT_BEFORE=ab",
            "CI=woodpecker CI_PIPELINE_EVENT=pull_request CI_COMMIT_TARGET_BRANCH=main",
            "CI_PIPELINE_EVENT=push CI_PREV_COMMIT_SHA=ab",
            "APPVEYOR=True APPVEYOR_PULL_REQUEST_NUMBER=7 APPVEYOR_REPO_BRANCH=main",
            "CIRRUS_CI=true CIRRUS_PR=7 CIRRUS_BASE_BRANCH=main",
            "SEMAPHORE=true SEMAPHORE_GIT_REF_TYPE=pull-request SEMAPHORE_GIT_BRANCH=main",
            "PROW_JOB_ID=1 JOB_TYPE=presubmit PULL_NUMBER=7 PULL_BASE_REF=main",
            "PROW_JOB_ID=1 JOB_TYPE=batch PULL_BASE_REF=main PULL_BASE_SHA=ab",
            "PROW_JOB_ID=1 JOB_TYPE=periodic",
            "TEAMCITY_VERSION=2026.1",
            "CF_BUILD_ID=1 CF_PULL_REQUEST_NUMBER=7 CF_PULL_REQUEST_TARGET=main",
            "BUDDY=true BUDDY_RUN_PR_NO=7 BUDDY_RUN_PR_BASE_BRANCH=main",
            "BITRISE_IO=true BITRISE_PULL_REQUEST=7 BITRISEIO_GIT_BRANCH_DEST=main",
            "CODEBUILD_BUILD_ID=1 CODEBUILD_WEBHOOK_EVENT=PULL_REQUEST_UPDATED",
            "CODEBUILD_BUILD_ID=1 CODEBUILD_WEBHOOK_EVENT=PUSH CODEBUILD_WEBHOOK_PREV_COMMIT=ab",
            "bamboo_planKey=A-B bamboo_buildKey=A-B-C",
            "GO_SERVER_URL=https://g GO_PIPELINE_NAME=p",
            "BUILDER_OUTPUT=/builder/outputs",
            "GITEA_ACTIONS=true",
            "BUILD_NUMBER=7 BUILD_ID=7 BUILD_TAG=jenkins-x-7",
            "CI=false BUILD_NUMBER=7",
            "ARGO_TEMPLATE={} ARGO_NODE_ID=n",
            "BUILD_ID=7",
            "CONTINUOUS_INTEGRATION=yes",
            "GITHUB_SHA=ab",
            "CI_COMMIT_SHA=ab",
            "CI_XCODE_PROJECT=x",
        ] {
            let other = ("CI", "other".to_owned());
            assert_eq!(kind(environment), other, "{environment}");
        }
    }

    #[test]
    fn each_sign_that_is_the_number_of_a_pull_request_ties_consent_to_it() {
        for service in SERVICES {
            for Sign { name, values, .. } in service.change {
                let mut endings = ["ID", "NO", "NUMBER", "Id", "Iid"].into_iter();
                if values.is_empty() && endings.any(|ending| name.ends_with(ending)) {
                    let variable = |asked: &str| (asked == *name).then(|| "7".to_owned());
                    let found = super::super::super::pull_request(None, variable);
                    assert_eq!(found.unwrap().as_deref(), Some("7"), "{name}");
                }
            }
        }
    }

    #[test]
    fn no_service_of_the_table_is_taken_for_a_person() {
        for service in SERVICES {
            for sign in service.own.iter().chain(service.change) {
                let value = sign.values.first().copied().unwrap_or("1");
                let found = kind(&format!("{}={value}", sign.name));
                assert_ne!(found.1, "person", "{}: {}", service.name, sign.name);
            }
        }
    }
}
