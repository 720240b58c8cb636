//! The CI services that are known.

use super::entry::{Form, PLAIN, Push, Queue, Service, Sign, one_of, set, shared};

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
    // learn.microsoft.com/azure/devops: "Use predefined variables".
    Service {
        name: "Azure Pipelines",
        own: &[set("TF_BUILD"), set("BUILD_REASON")],
        change: &[
            one_of("BUILD_REASON", &["PullRequest"]),
            set("SYSTEM_PULLREQUEST_PULLREQUESTID"),
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
        own: &[set("BITBUCKET_BUILD_NUMBER"), set("BITBUCKET_COMMIT")],
        change: &[set("BITBUCKET_PR_ID")],
        target: &["BITBUCKET_PR_DESTINATION_BRANCH"],
        number: &[("BITBUCKET_PR_ID", Form::Number)],
        fetch: "set `clone: depth: full`, and fetch the target branch",
        ..PLAIN
    },
    // docs.travis-ci.com: "Environment variables". The branch is the target's in pull requests.
    Service {
        name: "Travis CI",
        own: &[set("TRAVIS")],
        change: &[
            set("TRAVIS_PULL_REQUEST"),
            one_of("TRAVIS_EVENT_TYPE", &["pull_request"]),
        ],
        target: &["TRAVIS_BRANCH"],
        source: &["TRAVIS_PULL_REQUEST_SLUG"],
        home: &["TRAVIS_REPO_SLUG"],
        number: &[("TRAVIS_PULL_REQUEST", Form::Number)],
        push: Some(Push {
            when: one_of("TRAVIS_EVENT_TYPE", &["push"]),
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
        own: &[set("CIRCLECI")],
        change: &[
            set("CIRCLE_PULL_REQUEST"),
            set("CIRCLE_PULL_REQUESTS"),
            set("CIRCLE_PR_NUMBER"),
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
        own: &[set("DRONE")],
        change: &[
            set("DRONE_PULL_REQUEST"),
            one_of("DRONE_BUILD_EVENT", &["pull_request"]),
        ],
        target: &["DRONE_TARGET_BRANCH", "DRONE_BRANCH"],
        number: &[("DRONE_PULL_REQUEST", Form::Number)],
        push: Some(Push {
            when: one_of("DRONE_BUILD_EVENT", &["push"]),
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
            one_of("CI", &["woodpecker"]),
            one_of("CI_SYSTEM_NAME", &["woodpecker"]),
            set("CI_PIPELINE_EVENT"),
        ],
        change: &[
            set("CI_COMMIT_PULL_REQUEST"),
            one_of(
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
        own: &[set("APPVEYOR")],
        change: &[set("APPVEYOR_PULL_REQUEST_NUMBER")],
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
        own: &[set("CIRRUS_CI")],
        change: &[set("CIRRUS_PR")],
        target: &["CIRRUS_BASE_BRANCH"],
        number: &[("CIRRUS_PR", Form::Number)],
        fetch: "remove `CIRRUS_CLONE_DEPTH`, and fetch the target branch",
        ..PLAIN
    },
    // docs.semaphoreci.com: "Environment variables". The branch is the target's in pull requests.
    Service {
        name: "Semaphore",
        own: &[set("SEMAPHORE")],
        change: &[
            one_of("SEMAPHORE_GIT_REF_TYPE", &["pull-request"]),
            set("SEMAPHORE_GIT_PR_NUMBER"),
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
        own: &[set("PROW_JOB_ID")],
        change: &[
            shared("JOB_TYPE", &["presubmit"]),
            shared("PULL_NUMBER", &[]),
        ],
        target: &["PULL_BASE_REF"],
        tip: &["PULL_BASE_SHA"],
        number: &[("PULL_NUMBER", Form::Number)],
        queue: Some(Queue {
            when: shared("JOB_TYPE", &["batch"]),
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
        own: &[set("TEAMCITY_VERSION")],
        ..PLAIN
    },
    // codefresh.io/docs: "Variables".
    Service {
        name: "Codefresh",
        own: &[set("CF_BUILD_ID")],
        change: &[set("CF_PULL_REQUEST_NUMBER"), set("CF_PULL_REQUEST_ID")],
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
        own: &[set("BUDDY"), set("BUDDY_WORKSPACE_ID")],
        change: &[
            set("BUDDY_RUN_PR_ID"),
            set("BUDDY_RUN_PR_NO"),
            set("BUDDY_EXECUTION_PULL_REQUEST_ID"),
            set("BUDDY_EXECUTION_PULL_REQUEST_NO"),
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
        own: &[set("BITRISE_IO"), set("BITRISE_BUILD_NUMBER")],
        change: &[set("BITRISE_PULL_REQUEST"), shared("PR", &["true"])],
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
        own: &[set("CODEBUILD_BUILD_ID")],
        change: &[one_of(
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
            when: one_of("CODEBUILD_WEBHOOK_EVENT", &["PUSH"]),
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
pub(super) const OF_ANY: &[Sign] = &[
    set("CI"),
    set("CONTINUOUS_INTEGRATION"),
    set("BUILD_NUMBER"),
    set("BUILD_ID"),
    set("CI_NAME"),
    set("CI_COMMIT_SHA"),
    set("CI_PROJECT_ID"),
    set("CI_PROJECT_PATH"),
    set("CI_REPO"),
    set("CI_SERVER"),
    set("CI_WORKSPACE"),
    set("CI_APP_ID"),
    set("CI_BUILD_ID"),
    set("CI_BUILD_NUMBER"),
    set("CI_JOB_ID"),
    set("CI_PIPELINE_ID"),
    // A step in a container of its own may get only some of them.
    set("GITHUB_RUN_ID"),
    set("GITHUB_RUN_NUMBER"),
    set("GITHUB_WORKFLOW"),
    set("GITHUB_JOB"),
    set("GITHUB_SHA"),
    set("GITHUB_REF"),
    set("GITHUB_EVENT_PATH"),
    set("RUNNER_TRACKING_ID"),
    set("GITEA_ACTIONS"),
    set("FORGEJO_ACTIONS"),
    // Jenkins without its address among its settings.
    set("JENKINS_HOME"),
    set("HUDSON_HOME"),
    set("GERRIT_PROJECT"),
    set("GERRIT_CHANGE_NUMBER"),
    set("bamboo_planKey"),
    set("bamboo_buildKey"),
    set("GO_SERVER_URL"),
    set("GO_PIPELINE_NAME"),
    set("GO_PIPELINE_LABEL"),
    // Google Cloud Build.
    set("BUILDER_OUTPUT"),
    set("HARNESS_BUILD_ID"),
    set("TASKCLUSTER_ROOT_URL"),
    set("SCREWDRIVER"),
    set("VELA"),
    set("WERCKER"),
    set("SHIPPABLE"),
    set("STRIDER"),
    set("MAGNUM"),
    set("SAILCI"),
    set("AGOLA_GIT_REF"),
    set("AC_APPCIRCLE"),
    set("CM_BUILD_ID"),
    set("EARTHLY_CI"),
    set("NETLIFY"),
    set("XCS"),
    set("CI_XCODE_PROJECT"),
    set("CODEBUILD_BUILD_ARN"),
    set("SYSTEM_TEAMFOUNDATIONCOLLECTIONURI"),
    set("AGENT_JOBSTATUS"),
    set("TEAMCITY_BUILD_PROPERTIES_FILE"),
    set("ARGO_TEMPLATE"),
    set("ARGO_NODE_ID"),
    set("ARGO_CONTAINER_NAME"),
    set("ATC_EXTERNAL_URL"),
    set("ALPIC_HOST"),
    set("APPCENTER_BUILD_ID"),
    set("CF_PAGES"),
    set("WORKERS_CI"),
    set("DSARI"),
    set("EAS_BUILD"),
    set("JB_SPACE_EXECUTION_NUMBER"),
    set("KOKORO_JOB_NAME"),
    set("LAYERCI"),
    set("NEVERCODE"),
    set("NOW_BUILDER"),
    set("VERCEL"),
    set("PROBO_ENVIRONMENT"),
    set("RELEASE_BUILD_ID"),
    set("RENDER"),
    set("SWARMING_TASK_ID"),
    set("TDDIUM"),
    set("ZUUL_CHANGE"),
];

/// Signs of runs for a pull request that check the target's code out by default.
pub(super) const IN_TARGET: &[Sign] = &[
    one_of("GITHUB_EVENT_NAME", &["pull_request_target"]),
    // A comment on a pull request, which names no commit.
    set("event.issue.pull_request.url"),
];
