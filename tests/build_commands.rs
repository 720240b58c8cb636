//! The `build` commands of variants that are not compiled by this tool.

use std::process::Stdio;

use crate::common::Project;

/// Notes when it starts and ends, and is slow enough for another one to start meanwhile.
const SLOW: &str = "echo begin $1 >>journal\nsleep 0.2\necho end $1 >>journal\ncp own.sh $1\n";

fn project(variants: &[(&str, &str)]) -> Project {
    let project = Project::empty();
    let mut config = "[toolchain]\narch = \"sm_90a\"\n\
        [metric.duration]\ncounter = \"gpu__time_duration.sum\"\ndirection = \"lower\"\ntolerance = '1 %'\n"
        .to_owned();
    for (name, keys) in variants {
        config.push_str(&format!("[suite.s.variant.{name}]\n{keys}\n"));
    }
    project.write("config.toml", config);
    project.write("make.sh", SLOW);
    project.write("own.sh", "true\n");
    project
}

fn made(program: &str) -> String {
    format!("build = [\"sh\", \"make.sh\", \"{program}\"]\nrun = [\"sh\", \"{program}\"]")
}

#[test]
fn variants_that_share_a_build_command_are_built_by_one_run_of_it() {
    let shared = made("bench");
    let other_environment = format!("{shared}\nenv = {{ WIDTH = \"8\" }}");
    let project = project(&[("a", &shared), ("b", &shared), ("c", &other_environment)]);
    project.run("build").exits(0);
    let one = "begin bench\nend bench\n";
    assert_eq!(project.read("journal"), [one, one].concat());
}

#[test]
fn build_commands_of_one_project_run_one_at_a_time() {
    let names = ["a", "b", "c"];
    let keys = names.map(made);
    let variants: Vec<(&str, &str)> = names
        .into_iter()
        .zip(keys.iter().map(String::as_str))
        .collect();
    let project = project(&variants);
    // Two runs of the tool at the same time.
    let mut other = project.gate_of("build");
    let other = other.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    project.run("build").exits(0);
    assert!(other.unwrap().wait().unwrap().success());
    let journal = project.read("journal");
    let lines: Vec<&str> = journal.lines().collect();
    assert_eq!(lines.len(), 12, "{journal}");
    for pair in lines.chunks(2) {
        assert_eq!(pair[0].replace("begin", "end"), pair[1], "{journal}");
    }
}

#[test]
fn a_shared_build_command_that_fails_is_reported_for_each_of_its_variants() {
    let shared = made("bench");
    let project = project(&[("a", &shared), ("b", &shared)]);
    project.write(
        "make.sh",
        "echo once >>journal\necho no rule to make bench\nexit 2\n",
    );
    let ran = project.run("build").exits(5);
    let ran = ran.says("s/a").says("s/b").says("the build ended with");
    ran.says("no rule to make bench");
    assert_eq!(project.read("journal"), "once\n");
}
