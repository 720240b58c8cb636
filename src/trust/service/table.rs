//! The CI services that are known.

use super::entry::{Form, PLAIN, Push, Queue, Service, Sign, one_of, set};

/// Sources: each service's page on its predefined variables, named above its entry.
pub(super) const SERVICES: &[Service] = &[
    // docs.github.com: "Variables reference", "Events that trigger workflows", "Webhook events and
    // payloads". `GITHUB_BASE_REF` is set for two of the four events on pull requests only.
    Service {
        name: "GitHub Actions",
        own: &[set("GITHUB_ACTIONS"), set("GITHUB_EVENT_NAME")],
        change: &[
            one_of(
                "GITHUB_EVENT_NAME",
                &[
                    "pull_request",
                    "pull_request_target",
                    "pull_request_review",
                    "pull_request_review_comment",
                ],
            ),
            set("GITHUB_BASE_REF"),
            set("GITHUB_HEAD_REF"),
        ],
        target: &["GITHUB_BASE_REF", "event.pull_request.base.ref"],
        former: &["event.pull_request.base.sha"],
        // Where these events run, `actions/checkout` takes the default branch unless the
        // workflow names a commit.
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
            when: one_of("GITHUB_EVENT_NAME", &["push"]),
            branch: &["GITHUB_REF", "event.ref"],
            default: &["event.repository.default_branch"],
            before: "event.before",
            forced: Some("event.forced"),
        }),
        queue: Some(Queue {
            when: one_of("GITHUB_EVENT_NAME", &["merge_group"]),
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
            set("GITLAB_CI"),
            set("CI_MERGE_REQUEST_IID"),
            set("CI_PIPELINE_SOURCE"),
        ],
        change: &[
            set("CI_MERGE_REQUEST_IID"),
            set("CI_MERGE_REQUEST_ID"),
            set("CI_EXTERNAL_PULL_REQUEST_IID"),
            one_of(
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
            when: one_of("CI_PIPELINE_SOURCE", &["push"]),
            branch: &["CI_COMMIT_BRANCH"],
            default: &["CI_DEFAULT_BRANCH"],
            before: "CI_COMMIT_BEFORE_SHA",
            forced: None,
        }),
        queue: Some(Queue {
            when: one_of("CI_MERGE_REQUEST_EVENT_TYPE", &["merge_train"]),
            base: "CI_MERGE_REQUEST_TARGET_BRANCH_SHA",
            target: "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
        }),
        fetch: "set `GIT_DEPTH: 0`, and fetch the target branch: git fetch origin \"+refs/heads/$CI_MERGE_REQUEST_TARGET_BRANCH_NAME:refs/remotes/origin/$CI_MERGE_REQUEST_TARGET_BRANCH_NAME\"",
        ..PLAIN
    },
    // buildkite.com/docs: "Environment variables", "Using GitHub merge queues".
    Service {
        name: "Buildkite",
        own: &[set("BUILDKITE"), set("BUILDKITE_BUILD_ID")],
        change: &[set("BUILDKITE_PULL_REQUEST")],
        target: &["BUILDKITE_PULL_REQUEST_BASE_BRANCH"],
        source: &["BUILDKITE_PULL_REQUEST_REPO"],
        home: &["BUILDKITE_REPO"],
        number: &[("BUILDKITE_PULL_REQUEST", Form::Number)],
        queue: Some(Queue {
            when: set("BUILDKITE_MERGE_QUEUE_BASE_COMMIT"),
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
        own: &[set("JENKINS_URL"), set("HUDSON_URL")],
        change: &[
            set("CHANGE_ID"),
            set("ghprbPullId"),
            set("gitlabMergeRequestIid"),
            set("gitlabMergeRequestId"),
            one_of("gitlabActionType", &["MERGE", "NOTE"]),
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
];

/// Signs that some service runs the check. Of a service that is not in the table nothing else is known,
/// so the revision to judge by must be named. Most services set `CI`; the others are those that do not,
/// and what a container of a service may get alone.
pub(super) const OF_ANY: &[Sign] = &[
    set("CI"),
    set("CONTINUOUS_INTEGRATION"),
    set("BUILD_NUMBER"),
    set("BUILD_ID"),
    set("CI_NAME"),
    set("CI_COMMIT_SHA"),
    set("CI_PROJECT_ID"),
    set("CI_JOB_ID"),
    set("CI_PIPELINE_ID"),
    set("CI_PIPELINE_EVENT"),
    set("GITHUB_RUN_ID"),
    set("GITHUB_SHA"),
    set("GITHUB_REF"),
    set("GITHUB_EVENT_PATH"),
    set("GITEA_ACTIONS"),
    set("FORGEJO_ACTIONS"),
    set("JENKINS_HOME"),
    set("HUDSON_HOME"),
    // Azure Pipelines, TeamCity, AWS CodeBuild, Google Cloud Build.
    set("TF_BUILD"),
    set("TEAMCITY_VERSION"),
    set("CODEBUILD_BUILD_ID"),
    set("BUILDER_OUTPUT"),
    set("GERRIT_CHANGE_NUMBER"),
    set("bamboo_planKey"),
    set("GO_PIPELINE_NAME"),
    set("PROW_JOB_ID"),
    set("ZUUL_CHANGE"),
    set("HARNESS_BUILD_ID"),
    set("TASKCLUSTER_ROOT_URL"),
    set("ARGO_NODE_ID"),
    set("ATC_EXTERNAL_URL"),
    set("SWARMING_TASK_ID"),
    set("KOKORO_JOB_NAME"),
    set("CI_XCODE_PROJECT"),
    // Bitbucket, Travis, CircleCI, Drone, AppVeyor, Cirrus, Semaphore, Codefresh, Buddy and Bitrise set
    // `CI` too, but a variable can be taken out.
    set("BITBUCKET_BUILD_NUMBER"),
    set("TRAVIS"),
    set("CIRCLECI"),
    set("DRONE"),
    set("APPVEYOR"),
    set("CIRRUS_CI"),
    set("SEMAPHORE"),
    set("CF_BUILD_ID"),
    set("BUDDY"),
    set("BITRISE_IO"),
    // Others; and more than one of a service, since a step in a container may get only some.
    set("AC_APPCIRCLE"),
    set("AGENT_JOBSTATUS"),
    set("AGOLA_GIT_REF"),
    set("ALPIC_HOST"),
    set("APPCENTER_BUILD_ID"),
    set("ARGO_CONTAINER_NAME"),
    set("ARGO_TEMPLATE"),
    set("CF_PAGES"),
    set("CI_APP_ID"),
    set("CI_BUILD_ID"),
    set("CI_BUILD_NUMBER"),
    set("CI_PROJECT_PATH"),
    set("CI_REPO"),
    set("CI_SERVER"),
    set("CI_WORKSPACE"),
    set("CM_BUILD_ID"),
    set("CODEBUILD_BUILD_ARN"),
    set("DSARI"),
    set("EARTHLY_CI"),
    set("EAS_BUILD"),
    set("GERRIT_PROJECT"),
    set("GITHUB_JOB"),
    set("GITHUB_RUN_NUMBER"),
    set("GITHUB_WORKFLOW"),
    set("GO_PIPELINE_LABEL"),
    set("GO_SERVER_URL"),
    set("JB_SPACE_EXECUTION_NUMBER"),
    set("LAYERCI"),
    set("MAGNUM"),
    set("NETLIFY"),
    set("NEVERCODE"),
    set("NOW_BUILDER"),
    set("PROBO_ENVIRONMENT"),
    set("RELEASE_BUILD_ID"),
    set("RENDER"),
    set("RUNNER_TRACKING_ID"),
    set("SAILCI"),
    set("SCREWDRIVER"),
    set("SHIPPABLE"),
    set("STRIDER"),
    set("SYSTEM_TEAMFOUNDATIONCOLLECTIONURI"),
    set("TDDIUM"),
    set("TEAMCITY_BUILD_PROPERTIES_FILE"),
    set("VELA"),
    set("VERCEL"),
    set("WERCKER"),
    set("WORKERS_CI"),
    set("XCS"),
    set("bamboo_buildKey"),
];

/// Signs of runs for a pull request that check the target's code out by default.
pub(super) const IN_TARGET: &[Sign] = &[
    one_of("GITHUB_EVENT_NAME", &["pull_request_target"]),
    // A comment on a pull request, which names no commit.
    set("event.issue.pull_request.url"),
];
