//! From a clone of somebody's kernels to a red pull request and an accepted one, as a person would type it,
//! on two services.

use std::path::Path;
use std::process::{Command, Output};

use crate::common::git::git;
use crate::common::{Project, are_here, contains};

const HEADER: &str = "#pragma once\nconstexpr int EACH = 8;\n";

/// A kernel of a library, which launches nothing itself.
fn kernel(name: &str) -> String {
    format!(
        "#include \"each.cuh\"\n__global__ void __launch_bounds__(256) {name}(float *x, float a) {{\n    \
         float all[EACH], sum = a;\n    for (int i = 0; i < EACH; ++i) all[i] = x[threadIdx.x + i];\n    \
         for (int i = 0; i < EACH; ++i) sum = sum * all[i] + 1;\n    \
         for (int i = 0; i < EACH; ++i) sum = sum * all[i] - 1;\n    x[threadIdx.x] = sum;\n}}\n"
    )
}

/// What a person types; `OWNERS` is the file of code owners. The services run the check between them.
const COMMANDS: [&str; 12] = [
    "git clone --quiet upstream work",
    "cat > config.toml <<'END'\n[toolchain]\narch = \"sm_90a\"\n[trust]\naccept = \"code-owners\"\n\
     [suite.ops.variant]\nnorm.source = \"ops/norm.cu\"\nscale.source = \"ops/scale.cu\"\nmix.source = \"ops/mix.cu\"\nEND",
    "mkdir -p $(dirname OWNERS) && printf '/config.toml @us\\n/baselines/ @us\\n/OWNERS @us\\n' > OWNERS",
    "sparsek-gate check --static",
    "sparsek-gate baseline --lock --static --reason 'first'",
    "printf '.sparsek-gate/\\n' > .gitignore && git add --all",
    "git commit --quiet --message 'Gate the kernels'",
    "sed -i 's/EACH = 8/EACH = 64/' ops/each.cuh",
    "git commit --quiet --all --message 'More for each thread'",
    "sparsek-gate check --static",
    "sparsek-gate baseline --lock --static --reason 'fewer launches'",
    "git add --all && git commit --quiet --message 'Accept it'",
];

struct Service {
    name: &'static str,
    owners: &'static str,
    variables: &'static [(&'static str, &'static str)],
}

const SERVICES: [Service; 2] = [
    Service {
        name: "GitHub",
        owners: ".github/CODEOWNERS",
        variables: &[
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_EVENT_NAME", "pull_request"),
            ("GITHUB_BASE_REF", "main"),
        ],
    },
    Service {
        name: "GitLab",
        owners: ".gitlab/CODEOWNERS",
        variables: &[
            ("GITLAB_CI", "true"),
            ("CI_PIPELINE_SOURCE", "merge_request_event"),
            ("CI_MERGE_REQUEST_IID", "7"),
            ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main"),
        ],
    },
];

fn text(output: &Output) -> String {
    let streams = [&output.stdout, &output.stderr].map(|one| String::from_utf8_lossy(one));
    streams.concat()
}

/// Runs a command line with the tool on the PATH.
fn shell(project: &Project, folder: &Path, line: &str, variables: &[(&str, &str)]) -> Output {
    // Its variables are those of a machine outside of any service.
    let tool = project.gate();
    let place = Path::new(tool.get_program()).parent().unwrap();
    let path = format!("{}:{}", place.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    for (name, value) in tool.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let who = [
        ("GIT_AUTHOR_NAME", "Ada"),
        ("GIT_AUTHOR_EMAIL", "ada@localhost"),
        ("GIT_COMMITTER_NAME", "Ada"),
        ("GIT_COMMITTER_EMAIL", "ada@localhost"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("USER", "ada"),
    ];
    command
        .args(["-c", line])
        .current_dir(folder)
        .env("PATH", path);
    command.envs(who).envs(variables.iter().copied());
    command.output().unwrap()
}

#[test]
fn a_foreign_repository_gets_a_red_and_an_accepted_pull_request_in_twelve_commands() {
    if !are_here(&["nvcc", "nvdisasm", "git"]) {
        return;
    }
    for service in SERVICES {
        let project = Project::empty();
        for name in ["norm", "scale", "mix"] {
            project.write(&format!("upstream/ops/{name}.cu"), kernel(name));
        }
        project.write("upstream/ops/each.cuh", HEADER);
        let upstream = project.path("upstream");
        for arguments in [
            &["init", "--quiet", "--initial-branch", "main"][..],
            &["add", "--all"],
            &["commit", "--quiet", "--message", "kernels"],
        ] {
            git(&upstream, arguments);
        }
        let work = project.path("work");
        let typed = |number: usize, code: i32| {
            let line = COMMANDS[number].replace("OWNERS", service.owners);
            let folder = if number == 0 {
                project.path("")
            } else {
                work.clone()
            };
            let ran = shell(&project, &folder, &line, &[]);
            assert_eq!(
                ran.status.code(),
                Some(code),
                "{}: {line}\n{}",
                service.name,
                text(&ran)
            );
            text(&ran)
        };
        let check = |line: &str, code: i32| {
            let variables = [&[("CI", "true")], service.variables].concat();
            let ran = shell(&project, &work, line, &variables);
            assert_eq!(
                ran.status.code(),
                Some(code),
                "{}\n{}",
                service.name,
                text(&ran)
            );
            text(&ran)
        };
        let ci = |code: i32| check("sparsek-gate check --static", code);
        for number in 0..3 {
            typed(number, 0);
        }
        contains(
            &typed(3, 4),
            &["ops/mix mix", "the variant has no baseline yet"],
        );
        for number in 4..7 {
            typed(number, 0);
        }
        contains(&ci(0), &["the gate starts when this is merged"]);
        git(&work, "update-ref refs/remotes/origin/main HEAD");
        typed(7, 0);
        typed(8, 0);
        let one = "metrics of 3 variants got worse by one change: `ops/each.cuh`";
        contains(
            &ci(1),
            &["worse: ops/mix occupancy (static) 100.00 % → ", one],
        );
        typed(9, 1);
        typed(10, 0);
        typed(11, 0);
        let accepted = ci(0);
        let relocked = "accepts: ops/mix: this change re-locks it";
        contains(&accepted, &[relocked, "`fewer launches` by"]);
        assert!(!accepted.contains("of other code"), "{accepted}");
        // And once it is merged.
        git(&work, "update-ref refs/remotes/origin/main HEAD");
        ci(0);
        // Beside the base, a kernel that it lacks passes once its lock is accepted.
        let beside = "sparsek-gate check --static --against refs/remotes/origin/main";
        let type_all = |lines: &[&str]| {
            for line in lines {
                let ran = shell(&project, &work, line, &[]);
                assert!(ran.status.success(), "{line}\n{}", text(&ran));
            }
        };
        type_all(&[
            "echo '__global__ void more(float *x) { *x = 1; }' >> ops/norm.cu",
            "git commit --quiet --all --message 'One kernel more'",
        ]);
        let lock = "if that is meant, lock it: sparsek-gate baseline --lock --static";
        contains(&check(beside, 4), &["`more` is not in the base", lock]);
        type_all(&[
            "sparsek-gate baseline --lock --static --reason more ops/norm",
            "git add --all && git commit --quiet --message 'Lock it'",
        ]);
        let accepted = "`more` is not in the base; the accepted baseline allows it";
        contains(&check(beside, 0), &[accepted]);
        // Where nobody accepts it, it does not count.
        let unowned = format!("{beside} --baseline-ref refs/remotes/origin/main");
        let ran = shell(&project, &work, &unowned, &[("CI", "true")]);
        assert_eq!(ran.status.code(), Some(4), "{}", text(&ran));
        // Nobody wrote the metrics that another chip lacks.
        type_all(&["sed -i s/sm_90a/sm_80/ config.toml && git commit --quiet --all -m chip"]);
        let other = ci(4);
        let why = "from \"sm_90a\" to \"sm_80\"; metrics follow from it";
        contains(&other, &[why]);
        assert!(!other.contains("metric.tensor_flop"), "{other}");
    }
}
