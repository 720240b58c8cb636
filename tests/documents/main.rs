//! The pages for readers: what they tell to type is typed, what is made from the code is made again,
//! and README can be read in five minutes.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

#[path = "../common/mod.rs"]
mod common;
mod generated;
mod links;
mod markdown;
mod readme;
mod shell;
mod site;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use common::stand_in::Machine;
use common::{Project, Ran, aloud, outside_pull_request};
use markdown::{Block, blocks};
use regex::Regex;
use sparsek_gate::config::Config;
use sparsek_gate::process::shell_line;

/// Types the commands of a document in the folder `work` of a project, and counts them. A block of
/// `sh run` is pasted as a whole, and the block of `text shown` behind it has lines of what it prints.
/// In a `console`, a line after `$` is a command, with lines of what it prints. What is left out of
/// these stands as `…`.
fn go(document: &str, project: &Project, more: &[(&str, String)]) -> usize {
    fs::create_dir_all(project.path("work")).unwrap();
    fs::create_dir_all(project.path("bin")).unwrap();
    let gate = project.path("bin/sparsek-gate");
    if !gate.exists() {
        symlink(env!("CARGO_BIN_EXE_sparsek-gate"), gate).unwrap();
    }
    let mut commands = 0;
    let found = blocks(document);
    for (at, block) in found.iter().enumerate() {
        if block.language == "sh" && block.mark == "run" {
            commands += 1;
            typed(project, &block.text, shown_behind(&found, at), more);
        }
        if block.language == "console" {
            for (command, shown) in typed_in(&block.text) {
                commands += 1;
                typed(project, command, shown, more);
            }
        }
    }
    commands
}

/// What the page shows of what a block prints.
fn shown_behind(all: &[Block], at: usize) -> &str {
    let next = all.get(at + 1);
    let next = next.filter(|next| next.language == "text" && next.mark == "shown");
    next.map_or("", |next| &next.text)
}

/// The commands of a block, each with what it prints.
fn typed_in(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("\n$ ").map(|part| {
        let part = part.trim_start_matches("$ ");
        part.split_once('\n').unwrap_or((part, ""))
    })
}

/// Runs a command, which must print what is shown.
fn typed(project: &Project, command: &str, shown: &str, more: &[(&str, String)]) {
    let path = std::env::var("PATH").unwrap();
    let mut shell = Command::new("bash");
    outside_pull_request(&mut shell);
    let ran = shell
        .args(["-ec", command])
        .current_dir(project.path("work"))
        .env("PATH", format!("{}:{path}", project.path("bin").display()))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("USER", "ada")
        .env("GIT_AUTHOR_NAME", "Ada")
        .env("GIT_AUTHOR_EMAIL", "ada@example.org")
        .env("GIT_COMMITTER_NAME", "Ada")
        .env("GIT_COMMITTER_EMAIL", "ada@example.org")
        .env_remove("NVCC_CCBIN")
        .envs(more.iter().cloned())
        .output()
        .unwrap();
    let ran = Ran::of(&ran);
    let spaced = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let printed = spaced(&format!("{}{}", ran.out, ran.err));
    for line in shown.lines() {
        let pieces = line.split('…').map(spaced);
        for piece in pieces.filter(|piece| !piece.is_empty()) {
            let prints = printed.contains(&piece);
            assert!(
                prints,
                "`{command}`: no {piece:?}\n{}\n{}",
                ran.out, ran.err
            );
        }
    }
    let code = Regex::new(r"exit code (\d+)").unwrap();
    let code = code.captures(shown);
    ran.exits(code.map_or(0, |code| code[1].parse().unwrap()));
}

#[test]
fn the_first_gate_goes_as_its_document_tells() {
    if Command::new("nvcc").arg("--version").output().is_err() {
        aloud(
            "SKIPPED: docs/first-gate.md: there is no nvcc on the PATH (ci/install-cuda.sh FOLDER, \
             and source FOLDER/env.sh)",
        );
        return;
    }
    let project = Project::empty();
    let pasted = go("docs/first-gate.md", &project, &[]);
    assert!((4..10).contains(&pasted), "{pasted} blocks");
    // The report can be read.
    let report = project.read("work/report.md");
    for words in ["regressed", "softmax/cuda registers"] {
        assert!(report.contains(words), "{report}");
    }
}

#[test]
fn the_outputs_for_other_tools_are_made_as_their_document_tells() {
    let project = Project::empty();
    let outcome = common::repository().join("tests/data/outcomes/every_verdict.json");
    project.write("work/outcome.json", fs::read(outcome).unwrap());
    assert_eq!(go("docs/outputs.md", &project, &[]), 4);
}

/// A benchmark of which the stand-in of ncu hands over what was recorded on an H200; "building" it
/// again makes it the worse one.
#[test]
fn a_foreign_project_is_gated_in_six_commands_as_its_document_tells() {
    let machine = Machine::new();
    let program = |recorded: &str| {
        format!("#!/bin/sh\necho 'variant: cp_async'\necho 'recorded: {recorded}'\n")
    };
    machine.program("work/build/bench", &program("h200"));
    machine.program("worse", &program("h200-worse"));
    machine.program("bin/cmake", "#!/bin/sh\ncp ../worse build/bench\n");
    machine.write("work/.gitignore", "/build/\n/.sparsek-gate/\n");
    // What is recorded lacks counters of the metrics that a configuration has by default.
    let metric = "\n[metric.duration]\ndirection = \"lower\"\ntolerance = \"4 %\"\n";
    machine.write("metric.toml", metric);
    let gate = env!("CARGO_BIN_EXE_sparsek-gate");
    let gate = format!(
        "#!/bin/sh\n{gate} \"$@\" || exit\n\
         [ \"$1\" != init ] || cat ../metric.toml >>config.toml\n"
    );
    machine.program("bin/sparsek-gate", &gate);
    common::git::git(&machine.path("work"), "init --quiet");
    let libraries = machine.gate(&[]);
    let env: Vec<(&str, String)> = libraries
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_str()?, value?.to_str()?.to_owned())))
        .filter(|(name, _)| *name != "PATH")
        .collect();
    let commands = go("docs/any-program.md", &machine.project, &env);
    assert!(commands <= 6, "{commands} commands");
}

/// The settings of a block of docs/any-program.md, below what every configuration has.
fn of_benchmarks(file: &str) -> String {
    let page = fs::read_to_string(common::repository().join("docs/any-program.md")).unwrap();
    let (_, block) = page.split_once(&format!("```toml {file}\n")).unwrap();
    let (block, _) = block.split_once("```").unwrap();
    format!(
        "[toolchain]\narch = \"sm_90a\"\nncu = \"bin/ncu\"\n\n\
         [profile]\nclock_control = \"none\"\nprocesses = 2\n\n\
         [metric.duration]\ndirection = \"lower\"\n\
         tolerance = '3 %'\n\n{block}"
    )
}

#[test]
fn the_configurations_for_benchmark_frameworks_are_valid() {
    for (file, argument) in [
        ("google-benchmark.toml", "--benchmark_repetitions=20"),
        ("nvbench.toml", "--axis 'Elements[pow2]=24'"),
    ] {
        let project = Project::empty();
        project.write("config.toml", of_benchmarks(file));
        project.run("list").exits(0);
        fs::create_dir_all(project.path("src")).unwrap();
        fs::create_dir_all(project.path("bench")).unwrap();
        project.write("src/a.cu", "");
        project.write("bench/a.cu", "");
        let config = Config::load(&project.path("config.toml")).unwrap();
        let variant = config.variants().next().unwrap();
        let launches = variant.profile.launches.to_string();
        let words = variant.args.iter().chain(&variant.profile_args);
        let words: Vec<String> = words
            .map(|word| word.replace("{launches}", &launches))
            .collect();
        let arguments = shell_line(&words);
        assert!(arguments.contains(argument), "{arguments}");
    }
}

const OF_GOOGLE_BENCHMARK: &str = r#"
#include <benchmark/benchmark.h>
#include <cstdio>
static int launches = 0;
static void axpy(benchmark::State& state) { for (auto _ : state) ++launches; }
BENCHMARK(axpy)->Arg(8192)->Arg(81920);
int main(int count, char** words) {
  benchmark::Initialize(&count, words);
  benchmark::RunSpecifiedBenchmarks();
  std::FILE* file = std::fopen("launches.txt", "a");
  std::fprintf(file, "%d\n", launches);
  std::fclose(file);
  std::printf("variant: baseline\nrecorded: h200\n");
  return 0;
}
"#;

#[test]
fn google_benchmark_launches_as_often_as_it_is_asked() {
    let machine = Machine::new();
    let project = &machine.project;
    project.write("bench.cc", OF_GOOGLE_BENCHMARK);
    project.write("src/a.cu", "");
    fs::create_dir_all(project.path("build")).unwrap();
    let compiled = Command::new("g++")
        .args(["bench.cc", "-o", "build/bench", "-lbenchmark", "-lpthread"])
        .current_dir(project.path(""))
        .output();
    if !compiled.is_ok_and(|output| output.status.success()) {
        aloud("SKIPPED: Google Benchmark is not here (apt install g++ libbenchmark-dev)");
        return;
    }
    let config = of_benchmarks("google-benchmark.toml")
        .replace("kernels = \"axpy_kernel\"", "kernels = \"regex:_gemm_\"")
        .replace("build = [\"cmake\", \"--build\", \"build\"]\n", "");
    let config: Vec<&str> = config
        .lines()
        .filter(|line| !line.starts_with("program"))
        .collect();
    let config = config.join("\n").replace(
        "[suite.axpy]",
        "[suite.axpy]\nverify_args = [\"--benchmark_min_time=0\"]",
    );
    project.write("config.toml", config);
    machine.run("profile").exits(0);
    let launches = project.read("launches.txt");
    // It verifies, and two processes are measured.
    assert_eq!(launches.lines().collect::<Vec<_>>(), ["1", "20", "20"]);
}
