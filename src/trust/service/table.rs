//! The CI services that are known.

use super::entry::{Form, Owning, PLAIN, Push, Queue, Service, Sign, one_of, set};

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
                    "pull_request", "pull_request_target", "pull_request_review",
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
            "event.pull_request.head.sha", "event.workflow_run.head_sha",
            "event.check_suite.head_sha", "event.check_run.head_sha", "event.merge_group.head_sha",
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
        owning: Some(Owning::GitHub),
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
        head: &["CI_COMMIT_SHA"],
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
        fetch: "set `GIT_DEPTH: 0`, and fetch the target branch: git fetch --unshallow origin '+refs/heads/*:refs/remotes/origin/*'",
        owning: Some(Owning::GitLab),
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

/// Variables that show that some service runs the check. Of a service that is not in the table nothing
/// else is known, so the revision to judge by must be named. Most services set `CI`; the others are those
/// that do not, what a container of a service may get alone, and, for those that set `CI` too, one of
/// their own, since a variable can be taken out.
pub(super) const OF_ANY: &str = "\
    CI CONTINUOUS_INTEGRATION BUILD_NUMBER BUILD_ID CI_NAME CI_COMMIT_SHA CI_PROJECT_ID CI_JOB_ID \
    CI_PIPELINE_ID CI_PIPELINE_EVENT GITHUB_RUN_ID GITHUB_SHA GITHUB_REF GITHUB_EVENT_PATH \
    GITEA_ACTIONS FORGEJO_ACTIONS JENKINS_HOME HUDSON_HOME \
    TF_BUILD TEAMCITY_VERSION CODEBUILD_BUILD_ID BUILDER_OUTPUT GERRIT_CHANGE_NUMBER bamboo_planKey \
    GO_PIPELINE_NAME PROW_JOB_ID ZUUL_CHANGE HARNESS_BUILD_ID TASKCLUSTER_ROOT_URL ARGO_NODE_ID \
    ATC_EXTERNAL_URL SWARMING_TASK_ID KOKORO_JOB_NAME CI_XCODE_PROJECT \
    BITBUCKET_BUILD_NUMBER TRAVIS CIRCLECI DRONE APPVEYOR CIRRUS_CI SEMAPHORE CF_BUILD_ID BUDDY \
    BITRISE_IO \
    AC_APPCIRCLE AGENT_JOBSTATUS AGOLA_GIT_REF ALPIC_HOST APPCENTER_BUILD_ID ARGO_CONTAINER_NAME \
    ARGO_TEMPLATE CF_PAGES CI_APP_ID CI_BUILD_ID CI_BUILD_NUMBER CI_PROJECT_PATH CI_REPO CI_SERVER \
    CI_WORKSPACE CM_BUILD_ID CODEBUILD_BUILD_ARN DSARI EARTHLY_CI EAS_BUILD GERRIT_PROJECT \
    GITHUB_JOB GITHUB_RUN_NUMBER GITHUB_WORKFLOW GO_PIPELINE_LABEL GO_SERVER_URL \
    JB_SPACE_EXECUTION_NUMBER LAYERCI MAGNUM NETLIFY NEVERCODE NOW_BUILDER PROBO_ENVIRONMENT \
    RELEASE_BUILD_ID RENDER RUNNER_TRACKING_ID SAILCI SCREWDRIVER SHIPPABLE STRIDER \
    SYSTEM_TEAMFOUNDATIONCOLLECTIONURI TDDIUM TEAMCITY_BUILD_PROPERTIES_FILE VELA VERCEL WERCKER \
    WORKERS_CI XCS bamboo_buildKey \
";

/// Signs of runs for a pull request that check the target's code out by default.
pub(super) const IN_TARGET: &[Sign] = &[
    one_of("GITHUB_EVENT_NAME", &["pull_request_target"]),
    // A comment on a pull request, which names no commit.
    set("event.issue.pull_request.url"),
];
