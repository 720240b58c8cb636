//! Which variables of the environment reach the programs that the tool runs, and what of the tool
//! itself they can read.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::stand_in::Machine;
use crate::common::{self, Arguments, Project, Ran, aloud};

/// What a job of a pipeline has in its environment, and must not reach the code of a change.
const SECRETS: [&str; 15] = [
    "GH_TOKEN", "GITHUB_TOKEN", "GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH",
    "GITHUB_STEP_SUMMARY", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_URL",
    "AWS_SECRET_ACCESS_KEY", "CI_JOB_TOKEN", "SPARSEK_GATE_TOKEN", "SSH_AUTH_SOCK",
    "NVIDIA_API_KEY", "HF_TOKEN", "GIT_ASKPASS",
];
/// What the user's locale is made of.
const OF_LOCALE: [&str; 4] = ["LANG", "LANGUAGE", "LC_ALL", "LC_NUMERIC"];
/// What only a compiler gets, whose builds record it.
const OF_COMPILER: [&str; 2] = ["LIBRARY_PATH", "COMPILER_PATH"];
/// What no list names.
const UNKNOWN: [&str; 4] = [
    "MY_DATA", "PYTHONSTARTUP", "BASH_ENV", "CUDA_INJECTION64_PATH",
];
/// What programs need.
const NEEDED: [&str; 6] = [
    "HOME", "LC_ALL", "CUDA_CACHE_PATH", "OMP_NUM_THREADS", "VIRTUAL_ENV", "TZ",
];

/// A machine with a variant of each kind; every program leaves its environment in a file of its
/// name.
fn machine() -> Machine {
    let machine = Machine::new();
    let notes = |name: &str| format!("env >'{}'", machine.path(name).display());
    let after_shebang = |path: &str, name: &str| {
        let text = machine.read(path);
        let text = text.replacen("#!/bin/sh\n", &format!("#!/bin/sh\n{}\n", notes(name)), 1);
        machine.program(path, &text);
    };
    after_shebang("bin/ncu", "env.ncu");
    after_shebang("toolkit/bin/nvcc", "env.nvcc");
    after_shebang("toolkit/bin/compute-sanitizer", "env.sanitizer");
    machine.program(
        "host/git",
        &format!(
            "#!/bin/sh\n{}\nPATH=${{PATH#*:}} exec git \"$@\"\n",
            notes("env.git")
        ),
    );
    let own = "\n[suite.bsr_gemm.variant.own]\nbuild = [\"sh\", \"build.sh\"]\n\
               run = [\"sh\", \"own.sh\"]\ninputs = [\"own.sh\"]\nexpect = [\"bsr_gemm_baseline\"]\n";
    let config = machine.read("config.toml");
    machine.write("config.toml", format!("{config}{own}"));
    machine.write("build.sh", notes("env.build"));
    machine.write(
        "own.sh",
        format!(
            "{}\necho 'variant: baseline'\necho 'recorded: h200'\n",
            notes("env.program")
        ),
    );
    machine
}

fn names(project: &Project, file: &str) -> Vec<String> {
    let text = project.read(file);
    let name = |line: &str| Some(line.split_once('=')?.0.to_owned());
    text.lines().filter_map(name).collect()
}

fn gate(machine: &Machine, arguments: impl Arguments) -> Command {
    let mut gate = machine.gate(arguments);
    let all = SECRETS.iter().chain(&UNKNOWN).chain(&NEEDED);
    for name in all.chain(&OF_COMPILER) {
        if *name != "HOME" {
            gate.env(name, "C");
        }
    }
    gate.envs(OF_LOCALE.map(|name| (name, "de_DE.UTF-8")));
    gate
}

#[test]
fn no_program_gets_a_credential_and_each_gets_what_it_needs() {
    let machine = machine();
    Ran::of(&gate(&machine, "profile").output().unwrap()).exits(0);
    // Asks git for the names of the committed files, and the sanitizer for its version.
    Ran::of(&gate(&machine, "doctor").output().unwrap());
    Ran::of(
        &gate(&machine, "check --baseline-ref HEAD")
            .output()
            .unwrap(),
    );
    for file in "env.ncu env.nvcc env.build env.program env.sanitizer env.git".split(' ') {
        let names = names(&machine.project, file);
        for name in SECRETS.iter().chain(&UNKNOWN) {
            assert!(!names.iter().any(|it| it == name), "{file} has {name}");
        }
        let text = machine.read(file);
        let is_locale = |line: &&str| line.starts_with("LC_") || line.starts_with("LANG");
        let locale: Vec<&str> = text.lines().filter(is_locale).collect();
        assert_eq!(locale, ["LC_ALL=C"], "{file}");
        for name in OF_COMPILER {
            let has = names.iter().any(|it| it == name);
            assert!(!has || file == "env.nvcc", "{file} has {name}");
        }
        for name in NEEDED {
            assert!(
                names.iter().any(|it| it == name),
                "{file} lacks {name}: {names:?}"
            );
        }
    }
    // Such variables lead git to another repository, configuration or program.
    for file in ["env.git", "env.program"] {
        let names = names(&machine.project, file);
        let led = names.iter().any(|it| it == "GIT_CONFIG_GLOBAL");
        assert!(!led, "{file}: {names:?}");
    }
}

#[test]
fn env_pass_names_what_programs_get_besides_and_doctor_prints_the_names() {
    let machine = machine();
    let machine = machine.configured("env_pass = [", "env_pass = [\"MY_DATA\", ");
    Ran::of(&gate(&machine, "profile").output().unwrap()).exits(0);
    assert!(names(&machine.project, "env.program").contains(&"MY_DATA".to_owned()));

    let ran = Ran::of(&gate(&machine, "doctor").output().unwrap());
    let line = ran.out.lines().find(|line| line.contains("LC_ALL, "));
    let line = line.unwrap_or_else(|| panic!("{}{}", ran.out, ran.err));
    assert!(
        line.contains("MY_DATA") && line.contains("PATH") && !line.contains("GH_TOKEN"),
        "{line}"
    );
}

#[test]
fn a_credential_in_env_pass_is_reported() {
    let machine = machine();
    let machine = machine.configured("env_pass = [", "env_pass = [\"GH_TOKEN\", ");
    let ran = gate(&machine, "check --format json").output().unwrap();
    let report = Ran::of(&ran).json();
    report.tells_all("credential-passed", &["`GH_TOKEN`"]);
    assert!(report.warns("credential-passed"));
    Ran::of(&gate(&machine, "doctor").output().unwrap())
        .says("by their names, these hold credentials: GH_TOKEN");
}

#[test]
fn a_program_of_the_path_is_not_looked_for_in_the_folder_of_the_change() {
    let machine = machine();
    machine.program("planted/sh", "#!/bin/sh\ntouch planted/ran\n");
    let path = std::env::var("PATH").unwrap();
    let host = machine.path("host");
    let mut gate = machine.gate("profile bsr_gemm/own");
    gate.env("PATH", format!("planted::{}:{path}", host.display()));
    Ran::of(&gate.output().unwrap()).exits(0);
    assert!(!machine.path("planted/ran").exists());
}

#[test]
fn a_program_cannot_read_the_environment_of_the_tool() {
    // With the rights of root nothing is hidden.
    let may_trace = || {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("CapEff:"))
            .unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap() >> 19 & 1 == 1
    };
    let setpriv = Command::new("setpriv").arg("--version").output().is_ok();
    if may_trace() && !setpriv {
        aloud(
            "SKIPPED: reading the tool's environment, there is no setpriv (apt-get install util-linux)",
        );
        return;
    }
    let machine = machine();
    let read = "cat /proc/$PPID/environ >seen || echo denied >>log\n";
    machine.write("build.sh", read);
    let gate = gate(&machine, "build bsr_gemm/own");
    let mut command = if may_trace() {
        let mut command = Command::new("setpriv");
        let caps = common::words("--bounding-set=-all --inh-caps=-all --ambient-caps=-all");
        command.args(caps).args(["--no-new-privs", "--"]);
        command.arg(gate.get_program()).args(gate.get_args());
        command.current_dir(gate.get_current_dir().unwrap_or(Path::new(".")));
        command.envs(
            gate.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        command
    } else {
        gate
    };
    Ran::of(&command.output().unwrap()).exits(0);
    assert_eq!(machine.read("seen"), "");
    assert_eq!(machine.read("log"), "denied\n");
}

#[test]
fn without_a_folder_for_temporary_files_git_is_asked_and_what_needs_one_names_the_variable() {
    let project = Project::locked();
    project.commit();
    let recorded = ["check", "--from", common::RECORDED];
    let without = |arguments: &[&str]| Ran::by(project.gate_of(arguments).env("TMPDIR", "/none"));
    without(&[&recorded[..], &["--baseline-ref", "HEAD"]].concat())
        .ends(3, "TMPDIR must name a folder that can be written to");
    without(&[&recorded[..], &["--baseline-ref", "none"]].concat()).exits(0);
}
