//! The CI services that are known, and what the environment says of a run: whether it is one of a
//! pull request, of a push or of a merge queue, and which commits and branches it names.

use std::cell::OnceCell;
use std::path::Path;

use serde_json::Value;

use crate::files::read_regular;

/// A variable, with the values that count; without values, any besides the empty one and `false`.
pub(super) struct Sign(&'static str, &'static [&'static str]);

/// How a service names a push.
pub(super) struct Push {
    when: &'static [Sign],
    /// The branch.
    branch: &'static [&'static str],
    /// The default branch of the repository.
    default: &'static [&'static str],
    /// The commit that the branch was at before; `BEFORE...AFTER` is read too.
    before: &'static str,
    /// `true` where history was rewritten.
    forced: Option<&'static str>,
}

/// How a service names a merge queue.
pub(super) struct Queue {
    when: Sign,
    /// The commit that the queue merges onto.
    base: &'static str,
    /// The branch that the queue is for.
    target: &'static str,
}

/// How a variable names a pull request.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// As its number. `false`, `0` and the empty text mean that there is none.
    Number,
    /// As the part after the last `/` of an address or a name, such as `…/pull/7`.
    Last,
    /// As the number in `refs/pull/7/merge`.
    Ref,
}

/// A CI service. A name that begins with `event.` is a field of the file that GitHub's
/// `GITHUB_EVENT_PATH` names, any other an environment variable. Of several names, the first that
/// is set counts.
pub(super) struct Service {
    pub name: &'static str,
    /// It runs where one of these is set.
    own: &'static [Sign],
    /// And it runs a pull request where one of these is.
    change: &'static [Sign],
    /// The branch that the pull request is to be merged into.
    target: &'static [&'static str],
    /// The commit that this branch was at when the run was made.
    tip: &'static [&'static str],
    /// A commit that this branch was at earlier.
    former: &'static [&'static str],
    /// The last commit of the change.
    head: &'static [&'static str],
    /// The repository of the branch that is to be merged, by its path or address.
    source: &'static [&'static str],
    /// The repository that it is to be merged into.
    home: &'static [&'static str],
    /// The number of the pull request, and how each of these names it.
    number: &'static [(&'static str, Form)],
    push: Option<Push>,
    queue: Option<Queue>,
    /// How to fetch what is missing.
    pub fetch: &'static str,
}

/// A service that names nothing: what the table below does not override.
const PLAIN: Service = Service {
    name: "CI",
    own: &[],
    change: &[],
    target: &[],
    tip: &[],
    former: &[],
    head: &[],
    source: &[],
    home: &[],
    number: &[],
    push: None,
    queue: None,
    fetch: "fetch the whole history and the target branch: git fetch --unshallow origin '+refs/heads/*:refs/remotes/origin/*'",
};

/// Sources: each service's page on its predefined variables, named above its entry.
const SERVICES: [Service; 19] = [
    // docs.github.com: "Variables reference", "Events that trigger workflows", "Webhook events and
    // payloads". `GITHUB_BASE_REF` is set for two of the four events on pull requests only.
    Service {
        name: "GitHub Actions",
        own: &[Sign("GITHUB_ACTIONS", &[]), Sign("GITHUB_EVENT_NAME", &[])],
        change: &[
            Sign(
                "GITHUB_EVENT_NAME",
                &[
                    "pull_request",
                    "pull_request_target",
                    "pull_request_review",
                    "pull_request_review_comment",
                ],
            ),
            Sign("GITHUB_BASE_REF", &[]),
            Sign("GITHUB_HEAD_REF", &[]),
        ],
        target: &["GITHUB_BASE_REF", "event.pull_request.base.ref"],
        former: &["event.pull_request.base.sha"],
        // Where these events run, `actions/checkout` takes the default branch unless it is told.
        head: &[
            "event.pull_request.head.sha",
            "event.workflow_run.head_sha",
            "event.check_suite.head_sha",
            "event.check_run.head_sha",
            "event.merge_group.head_sha",
        ],
        source: &[
            "event.pull_request.head.repo.full_name",
            "event.workflow_run.head_repository.full_name",
        ],
        home: &[
            "event.pull_request.base.repo.full_name",
            "event.workflow_run.repository.full_name",
            "GITHUB_REPOSITORY",
        ],
        number: &[
            ("GITHUB_REF", Form::Ref),
            ("event.pull_request.number", Form::Number),
            ("event.issue.pull_request.url", Form::Last),
        ],
        push: Some(Push {
            when: &[Sign("GITHUB_EVENT_NAME", &["push"])],
            branch: &["GITHUB_REF", "event.ref"],
            default: &["event.repository.default_branch"],
            before: "event.before",
            forced: Some("event.forced"),
        }),
        queue: Some(Queue {
            when: Sign("GITHUB_EVENT_NAME", &["merge_group"]),
            base: "event.merge_group.base_sha",
            target: "event.merge_group.base_ref",
        }),
        fetch: "set `fetch-depth: 0` in actions/checkout",
        ..PLAIN
    },
    // docs.gitlab.com: "Predefined CI/CD variables reference". The commit of the target is set only
    // for merged results and merge trains. The base of the diff is a merge base, and no tip.
    Service {
        name: "GitLab CI",
        own: &[
            Sign("GITLAB_CI", &[]),
            Sign("CI_MERGE_REQUEST_IID", &[]),
            Sign("CI_PIPELINE_SOURCE", &[]),
        ],
        change: &[
            Sign("CI_MERGE_REQUEST_IID", &[]),
            Sign("CI_MERGE_REQUEST_ID", &[]),
            Sign("CI_EXTERNAL_PULL_REQUEST_IID", &[]),
            Sign(
                "CI_PIPELINE_SOURCE",
                &["merge_request_event", "external_pull_request_event"],
            ),
        ],
        target: &[
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
            "CI_EXTERNAL_PULL_REQUEST_TARGET_BRANCH_NAME",
        ],
        tip: &[
            "CI_MERGE_REQUEST_TARGET_BRANCH_SHA",
            "CI_EXTERNAL_PULL_REQUEST_TARGET_BRANCH_SHA",
        ],
        // The pipeline of a merge request from a fork runs in the fork, unless a member starts it.
        source: &["CI_MERGE_REQUEST_SOURCE_PROJECT_PATH"],
        home: &["CI_MERGE_REQUEST_PROJECT_PATH"],
        number: &[
            ("CI_MERGE_REQUEST_IID", Form::Number),
            ("CI_MERGE_REQUEST_ID", Form::Number),
            ("CI_EXTERNAL_PULL_REQUEST_IID", Form::Number),
        ],
        push: Some(Push {
            when: &[Sign("CI_PIPELINE_SOURCE", &["push"])],
            branch: &["CI_COMMIT_BRANCH"],
            default: &["CI_DEFAULT_BRANCH"],
            before: "CI_COMMIT_BEFORE_SHA",
            forced: None,
        }),
        queue: Some(Queue {
            when: Sign("CI_MERGE_REQUEST_EVENT_TYPE", &["merge_train"]),
            base: "CI_MERGE_REQUEST_TARGET_BRANCH_SHA",
            target: "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
        }),
        fetch: "set `GIT_DEPTH: 0`, and fetch the target branch: git fetch origin \"+refs/heads/$CI_MERGE_REQUEST_TARGET_BRANCH_NAME:refs/remotes/origin/$CI_MERGE_REQUEST_TARGET_BRANCH_NAME\"",
        ..PLAIN
    },
    // buildkite.com/docs: "Environment variables", "Using GitHub merge queues".
    Service {
        name: "Buildkite",
        own: &[Sign("BUILDKITE", &[]), Sign("BUILDKITE_BUILD_ID", &[])],
        change: &[Sign("BUILDKITE_PULL_REQUEST", &[])],
        target: &["BUILDKITE_PULL_REQUEST_BASE_BRANCH"],
        source: &["BUILDKITE_PULL_REQUEST_REPO"],
        home: &["BUILDKITE_REPO"],
        number: &[("BUILDKITE_PULL_REQUEST", Form::Number)],
        queue: Some(Queue {
            when: Sign("BUILDKITE_MERGE_QUEUE_BASE_COMMIT", &[]),
            base: "BUILDKITE_MERGE_QUEUE_BASE_COMMIT",
            target: "BUILDKITE_MERGE_QUEUE_BASE_BRANCH",
        }),
        fetch: "fetch the target branch in a pre-command hook of the agent",
        ..PLAIN
    },
    // jenkins.io: "Branches and pull requests" of multibranch pipelines; the pages of the plugins
    // "GitHub Pull Request Builder" (ghprb) and "GitLab".
    Service {
        name: "Jenkins",
        own: &[Sign("JENKINS_URL", &[]), Sign("HUDSON_URL", &[])],
        change: &[
            Sign("CHANGE_ID", &[]),
            Sign("ghprbPullId", &[]),
            Sign("gitlabMergeRequestIid", &[]),
            Sign("gitlabMergeRequestId", &[]),
            Sign("gitlabActionType", &["MERGE", "NOTE"]),
        ],
        target: &["CHANGE_TARGET", "ghprbTargetBranch", "gitlabTargetBranch"],
        source: &["ghprbAuthorRepoGitUrl", "gitlabSourceRepoHttpUrl"],
        home: &["ghprbGhRepository", "gitlabTargetRepoHttpUrl"],
        number: &[
            ("CHANGE_ID", Form::Number),
            ("ghprbPullId", Form::Number),
            ("gitlabMergeRequestIid", Form::Number),
            ("gitlabMergeRequestId", Form::Number),
        ],
        fetch: "turn the shallow clone off, and add the target branch to the refspec",
        ..PLAIN
    },
    // learn.microsoft.com/azure/devops: "Use predefined variables".
    Service {
        name: "Azure Pipelines",
        own: &[Sign("TF_BUILD", &[]), Sign("BUILD_REASON", &[])],
        change: &[
            Sign("BUILD_REASON", &["PullRequest"]),
            Sign("SYSTEM_PULLREQUEST_PULLREQUESTID", &[]),
        ],
        target: &["SYSTEM_PULLREQUEST_TARGETBRANCH"],
        source: &["SYSTEM_PULLREQUEST_SOURCEREPOSITORYURI"],
        home: &["BUILD_REPOSITORY_URI"],
        number: &[("SYSTEM_PULLREQUEST_PULLREQUESTID", Form::Number)],
        fetch: "set `fetchDepth: 0` in the checkout step",
        ..PLAIN
    },
    // support.atlassian.com/bitbucket-cloud: "Variables and secrets".
    Service {
        name: "Bitbucket Pipelines",
        own: &[
            Sign("BITBUCKET_BUILD_NUMBER", &[]),
            Sign("BITBUCKET_COMMIT", &[]),
        ],
        change: &[Sign("BITBUCKET_PR_ID", &[])],
        target: &["BITBUCKET_PR_DESTINATION_BRANCH"],
        number: &[("BITBUCKET_PR_ID", Form::Number)],
        fetch: "set `clone: depth: full`, and fetch the target branch",
        ..PLAIN
    },
    // docs.travis-ci.com: "Environment variables". The branch is the target's in pull requests.
    Service {
        name: "Travis CI",
        own: &[Sign("TRAVIS", &[])],
        change: &[
            Sign("TRAVIS_PULL_REQUEST", &[]),
            Sign("TRAVIS_EVENT_TYPE", &["pull_request"]),
        ],
        target: &["TRAVIS_BRANCH"],
        source: &["TRAVIS_PULL_REQUEST_SLUG"],
        home: &["TRAVIS_REPO_SLUG"],
        number: &[("TRAVIS_PULL_REQUEST", Form::Number)],
        push: Some(Push {
            when: &[Sign("TRAVIS_EVENT_TYPE", &["push"])],
            branch: &["TRAVIS_BRANCH"],
            default: &[],
            before: "TRAVIS_COMMIT_RANGE",
            forced: None,
        }),
        fetch: "set `git: depth: false`, and fetch the target branch",
        ..PLAIN
    },
    // circleci.com/docs: "Project values and variables". It does not name the target.
    Service {
        name: "CircleCI",
        own: &[Sign("CIRCLECI", &[])],
        change: &[
            Sign("CIRCLE_PULL_REQUEST", &[]),
            Sign("CIRCLE_PULL_REQUESTS", &[]),
            Sign("CIRCLE_PR_NUMBER", &[]),
        ],
        number: &[
            ("CIRCLE_PULL_REQUEST", Form::Last),
            ("CIRCLE_PR_NUMBER", Form::Number),
        ],
        ..PLAIN
    },
    // docs.drone.io: "Environment reference".
    Service {
        name: "Drone",
        own: &[Sign("DRONE", &[])],
        change: &[
            Sign("DRONE_PULL_REQUEST", &[]),
            Sign("DRONE_BUILD_EVENT", &["pull_request"]),
        ],
        target: &["DRONE_TARGET_BRANCH", "DRONE_BRANCH"],
        number: &[("DRONE_PULL_REQUEST", Form::Number)],
        push: Some(Push {
            when: &[Sign("DRONE_BUILD_EVENT", &["push"])],
            branch: &["DRONE_BRANCH"],
            default: &["DRONE_REPO_BRANCH"],
            before: "DRONE_COMMIT_BEFORE",
            forced: None,
        }),
        fetch: "set `clone: depth: 0`, and fetch the target branch",
        ..PLAIN
    },
    // woodpecker-ci.org/docs: "Environment variables". The previous commit there is that of the
    // previous pipeline, and not documented to be the branch's.
    Service {
        name: "Woodpecker",
        own: &[
            Sign("CI", &["woodpecker"]),
            Sign("CI_SYSTEM_NAME", &["woodpecker"]),
            Sign("CI_PIPELINE_EVENT", &[]),
        ],
        change: &[
            Sign("CI_COMMIT_PULL_REQUEST", &[]),
            Sign(
                "CI_PIPELINE_EVENT",
                &[
                    "pull_request",
                    "pull_request_closed",
                    "pull_request_metadata",
                ],
            ),
        ],
        target: &["CI_COMMIT_TARGET_BRANCH"],
        number: &[("CI_COMMIT_PULL_REQUEST", Form::Number)],
        fetch: "set `partial: false` and `depth: 0` of the clone, and fetch the target branch",
        ..PLAIN
    },
    // appveyor.com/docs: "Environment variables". The branch is the target's in pull requests.
    Service {
        name: "AppVeyor",
        own: &[Sign("APPVEYOR", &[])],
        change: &[Sign("APPVEYOR_PULL_REQUEST_NUMBER", &[])],
        target: &["APPVEYOR_REPO_BRANCH"],
        source: &["APPVEYOR_PULL_REQUEST_HEAD_REPO_NAME"],
        home: &["APPVEYOR_REPO_NAME"],
        number: &[("APPVEYOR_PULL_REQUEST_NUMBER", Form::Number)],
        fetch: "remove `clone_depth` and `shallow_clone`, and fetch the target branch",
        ..PLAIN
    },
    // cirrus-ci.org: "Environment variables".
    Service {
        name: "Cirrus CI",
        own: &[Sign("CIRRUS_CI", &[])],
        change: &[Sign("CIRRUS_PR", &[])],
        target: &["CIRRUS_BASE_BRANCH"],
        number: &[("CIRRUS_PR", Form::Number)],
        fetch: "remove `CIRRUS_CLONE_DEPTH`, and fetch the target branch",
        ..PLAIN
    },
    // docs.semaphoreci.com: "Environment variables". The branch is the target's in pull requests.
    Service {
        name: "Semaphore",
        own: &[Sign("SEMAPHORE", &[])],
        change: &[
            Sign("SEMAPHORE_GIT_REF_TYPE", &["pull-request"]),
            Sign("SEMAPHORE_GIT_PR_NUMBER", &[]),
        ],
        target: &["SEMAPHORE_GIT_BRANCH"],
        source: &["SEMAPHORE_GIT_PR_SLUG"],
        home: &["SEMAPHORE_GIT_REPO_SLUG"],
        number: &[("SEMAPHORE_GIT_PR_NUMBER", Form::Number)],
        fetch: "run `git fetch --unshallow`, and fetch the target branch",
        ..PLAIN
    },
    // docs.prow.k8s.io: "ProwJobs", "Job environment variables". A batch is a run of its merge queue.
    Service {
        name: "Prow",
        own: &[Sign("PROW_JOB_ID", &[])],
        change: &[Sign("JOB_TYPE", &["presubmit"]), Sign("PULL_NUMBER", &[])],
        target: &["PULL_BASE_REF"],
        tip: &["PULL_BASE_SHA"],
        number: &[("PULL_NUMBER", Form::Number)],
        queue: Some(Queue {
            when: Sign("JOB_TYPE", &["batch"]),
            base: "PULL_BASE_SHA",
            target: "PULL_BASE_REF",
        }),
        fetch: "remove `clone_depth` from the job, and fetch the target branch",
        ..PLAIN
    },
    // jetbrains.com/help/teamcity: "List of predefined build parameters". What it knows of pull
    // requests are parameters of the configuration, and no environment variables.
    Service {
        name: "TeamCity",
        own: &[Sign("TEAMCITY_VERSION", &[])],
        ..PLAIN
    },
    // codefresh.io/docs: "Variables".
    Service {
        name: "Codefresh",
        own: &[Sign("CF_BUILD_ID", &[])],
        change: &[
            Sign("CF_PULL_REQUEST_NUMBER", &[]),
            Sign("CF_PULL_REQUEST_ID", &[]),
        ],
        target: &["CF_PULL_REQUEST_TARGET"],
        number: &[
            ("CF_PULL_REQUEST_NUMBER", Form::Number),
            ("CF_PULL_REQUEST_ID", Form::Number),
        ],
        fetch: "remove `depth` from the clone step, and fetch the target branch",
        ..PLAIN
    },
    // buddy.works/docs: "Default variables"; the names with `EXECUTION` are the older ones.
    Service {
        name: "Buddy",
        own: &[Sign("BUDDY", &[]), Sign("BUDDY_WORKSPACE_ID", &[])],
        change: &[
            Sign("BUDDY_RUN_PR_ID", &[]),
            Sign("BUDDY_RUN_PR_NO", &[]),
            Sign("BUDDY_EXECUTION_PULL_REQUEST_ID", &[]),
            Sign("BUDDY_EXECUTION_PULL_REQUEST_NO", &[]),
        ],
        target: &[
            "BUDDY_RUN_PR_BASE_BRANCH",
            "BUDDY_EXECUTION_PULL_REQUEST_BASE_BRANCH",
        ],
        number: &[
            ("BUDDY_RUN_PR_NO", Form::Number),
            ("BUDDY_EXECUTION_PULL_REQUEST_NO", Form::Number),
            ("BUDDY_RUN_PR_ID", Form::Number),
            ("BUDDY_EXECUTION_PULL_REQUEST_ID", Form::Number),
        ],
        ..PLAIN
    },
    // docs.bitrise.io: "Available environment variables".
    Service {
        name: "Bitrise",
        own: &[Sign("BITRISE_IO", &[]), Sign("BITRISE_BUILD_NUMBER", &[])],
        change: &[Sign("BITRISE_PULL_REQUEST", &[]), Sign("PR", &["true"])],
        target: &["BITRISEIO_GIT_BRANCH_DEST"],
        source: &["BITRISEIO_PULL_REQUEST_REPOSITORY_URL"],
        home: &["GIT_REPOSITORY_URL"],
        number: &[("BITRISE_PULL_REQUEST", Form::Number)],
        fetch: "set `clone_depth: -1` in the step Git Clone, and fetch the target branch",
        ..PLAIN
    },
    // docs.aws.amazon.com/codebuild: "Environment variables in build environments". The commit
    // before a push is that of the branch which was pushed; the default branch is not named.
    Service {
        name: "AWS CodeBuild",
        own: &[Sign("CODEBUILD_BUILD_ID", &[])],
        change: &[Sign(
            "CODEBUILD_WEBHOOK_EVENT",
            &[
                "PULL_REQUEST_CREATED",
                "PULL_REQUEST_UPDATED",
                "PULL_REQUEST_REOPENED",
            ],
        )],
        target: &["CODEBUILD_WEBHOOK_BASE_REF"],
        number: &[
            ("CODEBUILD_WEBHOOK_TRIGGER", Form::Last),
            ("CODEBUILD_SOURCE_VERSION", Form::Last),
        ],
        push: Some(Push {
            when: &[Sign("CODEBUILD_WEBHOOK_EVENT", &["PUSH"])],
            branch: &["CODEBUILD_WEBHOOK_HEAD_REF", "CODEBUILD_WEBHOOK_TRIGGER"],
            default: &[],
            before: "CODEBUILD_WEBHOOK_PREV_COMMIT",
            forced: None,
        }),
        fetch: "set `git-clone-depth` of the source to full, and fetch the target branch",
        ..PLAIN
    },
];

/// Variables that services set which are not in the table, or only some of their runs: not all set
/// `CI`. Sources: each service's page on its variables, and the list of the package `ci-info`.
const OF_ANY: [Sign; 78] = [
    Sign("CI", &[]),
    Sign("CONTINUOUS_INTEGRATION", &[]),
    Sign("BUILD_NUMBER", &[]),
    Sign("BUILD_ID", &[]),
    Sign("CI_NAME", &[]),
    Sign("CI_COMMIT_SHA", &[]),
    Sign("CI_PROJECT_ID", &[]),
    Sign("CI_PROJECT_PATH", &[]),
    Sign("CI_REPO", &[]),
    Sign("CI_SERVER", &[]),
    Sign("CI_WORKSPACE", &[]),
    Sign("CI_APP_ID", &[]),
    Sign("CI_BUILD_ID", &[]),
    Sign("CI_BUILD_NUMBER", &[]),
    Sign("CI_JOB_ID", &[]),
    Sign("CI_PIPELINE_ID", &[]),
    // A step in a container of its own may get only some of them.
    Sign("GITHUB_RUN_ID", &[]),
    Sign("GITHUB_RUN_NUMBER", &[]),
    Sign("GITHUB_WORKFLOW", &[]),
    Sign("GITHUB_JOB", &[]),
    Sign("GITHUB_SHA", &[]),
    Sign("GITHUB_REF", &[]),
    Sign("GITHUB_EVENT_PATH", &[]),
    Sign("RUNNER_TRACKING_ID", &[]),
    Sign("GITEA_ACTIONS", &[]),
    Sign("FORGEJO_ACTIONS", &[]),
    // Jenkins without its address among its settings.
    Sign("JENKINS_HOME", &[]),
    Sign("HUDSON_HOME", &[]),
    Sign("GERRIT_PROJECT", &[]),
    Sign("GERRIT_CHANGE_NUMBER", &[]),
    Sign("bamboo_planKey", &[]),
    Sign("bamboo_buildKey", &[]),
    Sign("GO_SERVER_URL", &[]),
    Sign("GO_PIPELINE_NAME", &[]),
    Sign("GO_PIPELINE_LABEL", &[]),
    // Google Cloud Build.
    Sign("BUILDER_OUTPUT", &[]),
    Sign("HARNESS_BUILD_ID", &[]),
    Sign("TASKCLUSTER_ROOT_URL", &[]),
    Sign("SCREWDRIVER", &[]),
    Sign("VELA", &[]),
    Sign("WERCKER", &[]),
    Sign("SHIPPABLE", &[]),
    Sign("STRIDER", &[]),
    Sign("MAGNUM", &[]),
    Sign("SAILCI", &[]),
    Sign("AGOLA_GIT_REF", &[]),
    Sign("AC_APPCIRCLE", &[]),
    Sign("CM_BUILD_ID", &[]),
    Sign("EARTHLY_CI", &[]),
    Sign("NETLIFY", &[]),
    Sign("XCS", &[]),
    Sign("CI_XCODE_PROJECT", &[]),
    Sign("CODEBUILD_BUILD_ARN", &[]),
    Sign("SYSTEM_TEAMFOUNDATIONCOLLECTIONURI", &[]),
    Sign("AGENT_JOBSTATUS", &[]),
    Sign("TEAMCITY_BUILD_PROPERTIES_FILE", &[]),
    Sign("ARGO_TEMPLATE", &[]),
    Sign("ARGO_NODE_ID", &[]),
    Sign("ARGO_CONTAINER_NAME", &[]),
    Sign("ATC_EXTERNAL_URL", &[]),
    Sign("ALPIC_HOST", &[]),
    Sign("APPCENTER_BUILD_ID", &[]),
    Sign("CF_PAGES", &[]),
    Sign("WORKERS_CI", &[]),
    Sign("DSARI", &[]),
    Sign("EAS_BUILD", &[]),
    Sign("JB_SPACE_EXECUTION_NUMBER", &[]),
    Sign("KOKORO_JOB_NAME", &[]),
    Sign("LAYERCI", &[]),
    Sign("NEVERCODE", &[]),
    Sign("NOW_BUILDER", &[]),
    Sign("VERCEL", &[]),
    Sign("PROBO_ENVIRONMENT", &[]),
    Sign("RELEASE_BUILD_ID", &[]),
    Sign("RENDER", &[]),
    Sign("SWARMING_TASK_ID", &[]),
    Sign("TDDIUM", &[]),
    Sign("ZUUL_CHANGE", &[]),
];

/// Signs of runs for a pull request that check the target's code out by default.
const IN_TARGET: [Sign; 2] = [
    Sign("GITHUB_EVENT_NAME", &["pull_request_target"]),
    // A comment on a pull request, which names no commit.
    Sign("event.issue.pull_request.url", &[]),
];

/// The variable of the file with GitHub's event.
const EVENT_FILE: &str = "GITHUB_EVENT_PATH";

/// What the environment says of a run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
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

/// A commit that a service names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stated {
    /// The variable, or the field of the event.
    pub by: &'static str,
    /// The text, which should be a whole hash.
    pub commit: String,
}

/// A run, by its environment.
pub(super) struct Run {
    /// The service, for people.
    pub service: &'static str,
    /// How to fetch what is missing there.
    pub fetch: &'static str,
    pub kind: Kind,
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
pub(super) struct Fork {
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
            for service in &SERVICES {
                if let Some(kind) = kind(service, &environment) {
                    return run(service, kind);
                }
            }
        }
        let by_any = OF_ANY.iter().any(|sign| environment.shows(sign));
        run(&PLAIN, if by_any { Kind::Other } else { Kind::Person })
    }
}

/// The path of a repository from its address, such as `https://host/owner/name.git` and
/// `git@host:owner/name`, or from a path.
pub(super) fn repository_path(address: &str) -> String {
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
        let shown = self.shows(&queue.when, environment);
        shown.then(|| Kind::Queue {
            base: environment.commit(&[queue.base]),
            target: environment.branch(&[queue.target]),
        })
    }

    fn change(&self, environment: &Environment<'_>) -> Option<Kind> {
        let mut signs = self.change.iter();
        signs
            .any(|sign| self.shows(sign, environment))
            .then(|| Kind::Change {
                target: environment.branch(self.target),
                tip: environment.commit(self.tip),
                former: environment.commit(self.former),
            })
    }

    fn push(&self, environment: &Environment<'_>) -> Option<Kind> {
        let push = self.push.as_ref()?;
        let when = push.when.iter().all(|sign| environment.shows(sign));
        when.then(|| Kind::Push {
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
        self.runs(environment).then_some(Kind::Other)
    }

    fn fork(&self, environment: &Environment<'_>) -> Option<Fork> {
        let path = |names: &[&'static str]| {
            let address = names.iter().find_map(|name| environment.read(name))?;
            Some(repository_path(&address)).filter(|path| !path.is_empty())
        };
        let (source, home) = (path(self.source)?, path(self.home)?);
        (source != home).then_some(Fork { source, home })
    }

    /// Whether a sign is there. A variable such as `PR` is the service's only where the service runs.
    fn shows(&self, sign: &Sign, environment: &Environment<'_>) -> bool {
        let general = matches!(sign.0, "PR" | "JOB_TYPE" | "PULL_NUMBER");
        environment.shows(sign) && (!general || self.runs(environment))
    }

    fn runs(&self, environment: &Environment<'_>) -> bool {
        self.own.iter().any(|sign| environment.shows(sign))
    }

    /// The first name of the pull request that is set.
    fn number(&self, environment: &Environment<'_>) -> Option<(&'static str, String)> {
        let mut names = self.number.iter();
        names.find_map(|(name, form)| Some((*name, form.number(&environment.read(name)?)?)))
    }

    /// Every variable that the table names of it.
    fn variables(&self) -> Vec<&'static str> {
        let signs = self.own.iter().chain(self.change).map(|sign| sign.0);
        let mut names: Vec<&'static str> = signs.collect();
        names.extend(self.target.iter().chain(self.tip).chain(self.former));
        names.extend(self.head.iter().chain(self.source).chain(self.home));
        names.extend(self.number.iter().map(|(name, _)| name));
        if let Some(push) = &self.push {
            names.extend(push.when.iter().map(|sign| sign.0));
            names.extend(push.branch.iter().chain(push.default));
            names.push(push.before);
        }
        if let Some(queue) = &self.queue {
            names.extend([queue.when.0, queue.base, queue.target]);
        }
        names
    }
}

impl Form {
    fn number(self, value: &str) -> Option<String> {
        let text = match self {
            Form::Number => value,
            Form::Last => {
                let (before, last) = value.rsplit_once('/')?;
                // CodeBuild also names branches and tags: `branch/7`.
                let of_pull_request = ["pr", "pull", "pull-requests", "merge_requests", "pulls"];
                let kind = before.rsplit('/').next().unwrap_or(before);
                of_pull_request.contains(&kind).then_some(last)?
            }
            Form::Ref => {
                let rest = value.strip_prefix("refs/pull/")?;
                rest.split('/').next().unwrap_or(rest)
            }
        };
        // `007` and `7` are the same.
        let text = match text.parse::<u64>() {
            Ok(number) => number.to_string(),
            Err(_) => text.to_owned(),
        };
        (!matches!(text.as_str(), "" | "0" | "false" | "null")).then_some(text)
    }
}

/// The pull request of a run, as the service names it, and the variable that does; `variable` reads
/// the environment.
pub(super) fn number(variable: &dyn Fn(&str) -> Option<String>) -> Option<(&'static str, String)> {
    let environment = Environment::of(variable);
    let mut services = SERVICES.iter();
    services.find_map(|service| service.number(&environment))
}

/// Every environment variable that decides whose rules count, or what consent is for.
pub fn variables() -> impl Iterator<Item = &'static str> {
    let of_any = OF_ANY.iter().map(|sign| sign.0);
    let named = SERVICES.iter().flat_map(Service::variables);
    named
        .filter(|name| !name.starts_with("event."))
        .chain(of_any)
        .chain([EVENT_FILE])
}

struct Environment<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    event: OnceCell<Value>,
}

impl<'a> Environment<'a> {
    fn of(variable: &'a dyn Fn(&str) -> Option<String>) -> Environment<'a> {
        Environment {
            variable,
            event: OnceCell::new(),
        }
    }

    /// A variable or a field of the event that is not empty.
    fn read(&self, name: &str) -> Option<String> {
        let value = match name.strip_prefix("event.") {
            None => (self.variable)(name)?,
            Some(field) => {
                let mut value = self.event();
                for key in field.split('.') {
                    value = value.get(key)?;
                }
                match value {
                    Value::String(text) => text.clone(),
                    Value::Bool(flag) => flag.to_string(),
                    Value::Number(number) => number.to_string(),
                    _ => return None,
                }
            }
        };
        Some(value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    fn event(&self) -> &Value {
        self.event.get_or_init(|| {
            (self.variable)(EVENT_FILE)
                .and_then(|path| read_regular(Path::new(&path)).ok())
                .and_then(|bytes| serde_json::from_slice(&bytes).ok())
                .unwrap_or_default()
        })
    }

    fn shows(&self, sign: &Sign) -> bool {
        self.read(sign.0).is_some_and(|value| match sign.1 {
            [] => !value.eq_ignore_ascii_case("false") && value != "0",
            values => values.contains(&value.as_str()),
        })
    }

    /// The branch in the first variable that is set, without `refs/heads/`. A tag stays
    /// `refs/tags/…`, and so is no branch.
    fn branch(&self, names: &[&'static str]) -> Option<String> {
        let value = names.iter().find_map(|name| self.read(name))?;
        let value = value
            .strip_prefix("branch/")
            .map_or(value.clone(), str::to_owned);
        let branch = value.strip_prefix("refs/heads/").unwrap_or(&value);
        Some(branch.to_owned())
    }

    /// The commit in the first variable that is set; `None` of one that is all zeros.
    fn commit(&self, names: &[&'static str]) -> Option<Stated> {
        let (by, value) = names
            .iter()
            .find_map(|name| Some((*name, self.read(name)?)))?;
        let commit = value.split("..").next().unwrap_or_default().to_owned();
        let known = commit.chars().any(|digit| digit != '0');
        known.then_some(Stated { by, commit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(environment: &[(&str, &str)]) -> (&'static str, String) {
        let run = Run::of(&|name: &str| {
            let found = environment.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        });
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
        for (environment, service, expected) in [
            (&[][..], "CI", "person"),
            (&[("CI", "false")], "CI", "person"),
            (&[("CI", "true")], "CI", "other"),
            (&[("CI", "1")], "CI", "other"),
            (&[("BUILD_NUMBER", "7")], "CI", "other"),
            (&[("bamboo_planKey", "A-B")], "CI", "other"),
            (&[("GITHUB_EVENT_NAME", "push")], "GitHub Actions", "push  "),
            (
                &[("GITHUB_EVENT_NAME", "schedule")],
                "GitHub Actions",
                "other",
            ),
            (
                &[("GITHUB_BASE_REF", "main")],
                "GitHub Actions",
                "change main",
            ),
            (
                &[("BUILDKITE", "true"), ("BUILDKITE_PULL_REQUEST", "false")],
                "Buildkite",
                "other",
            ),
            (&[("BUILDKITE_PULL_REQUEST", "17")], "Buildkite", "change "),
            (
                &[("BUILD_REASON", "IndividualCI")],
                "Azure Pipelines",
                "other",
            ),
            (
                &[
                    ("BUILD_REASON", "PullRequest"),
                    ("SYSTEM_PULLREQUEST_TARGETBRANCH", "refs/heads/a/b"),
                ],
                "Azure Pipelines",
                "change a/b",
            ),
            (&[("CI", "woodpecker")], "Woodpecker", "other"),
            (&[("PR", "true")], "CI", "person"),
            (&[("JOB_TYPE", "presubmit")], "CI", "person"),
            (&[("TEAMCITY_VERSION", "2026.1")], "TeamCity", "other"),
            (
                &[
                    ("TRAVIS_EVENT_TYPE", "push"),
                    ("TRAVIS_COMMIT_RANGE", "ab...cd"),
                    ("TRAVIS_BRANCH", "main"),
                ],
                "Travis CI",
                "push main ab",
            ),
            (
                &[
                    ("CI_PIPELINE_SOURCE", "push"),
                    ("CI_COMMIT_BEFORE_SHA", "0000"),
                    ("CI_COMMIT_BRANCH", "x"),
                ],
                "GitLab CI",
                "push x ",
            ),
            (
                &[
                    ("CI_MERGE_REQUEST_IID", "3"),
                    ("CI_MERGE_REQUEST_EVENT_TYPE", "merge_train"),
                ],
                "GitLab CI",
                "queue false",
            ),
        ] {
            let expected = (service, expected.to_owned());
            assert_eq!(kind(environment), expected, "{environment:?}");
        }
    }

    #[test]
    fn each_sign_that_is_the_number_of_a_pull_request_ties_consent_to_it() {
        for service in &SERVICES {
            for Sign(name, values) in service.change {
                let number = name.ends_with("ID")
                    || name.ends_with("NO")
                    || name.ends_with("NUMBER")
                    || name.ends_with("Id")
                    || name.ends_with("Iid");
                if values.is_empty() && number {
                    let variable = |asked: &str| (asked == *name).then(|| "7".to_owned());
                    let found = super::super::pull_request(None, variable);
                    assert_eq!(found.unwrap().as_deref(), Some("7"), "{name}");
                }
            }
        }
    }

    #[test]
    fn no_service_of_the_table_is_taken_for_a_person() {
        for service in &SERVICES {
            for sign in service.own.iter().chain(service.change) {
                let value = sign.1.first().copied().unwrap_or("1");
                let first = service.own[0].1.first().copied().unwrap_or("1");
                let found = kind(&[(sign.0, value), (service.own[0].0, first)]);
                assert_ne!(found.1, "person", "{}: {}", service.name, sign.0);
            }
        }
    }
}
