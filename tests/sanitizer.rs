//! compute-sanitizer: what its logs are taken for, and `verify --sanitizer` of the real program on
//! a machine without a GPU. The logs are those that the real one wrote on an H200
//! (`tests/data/sanitizer`).

use std::fs;
use std::path::PathBuf;

use crate::common::stand_in::{Machine, libraries};
use crate::common::{self, Project, Report, install, repository};
use serde_json::Value as Json;
use sparsek_gate::toolchain::SanitizerLog;

/// What the recorded runs found; in the others nothing was found.
const FOUND: &[(&str, &str, u64)] = &[
    ("crash", "memcheck", 385),
    ("out_of_bounds", "memcheck", 2),
    ("race", "racecheck", 16),
];

fn recordings() -> PathBuf {
    repository().join("tests/data/sanitizer")
}

fn recorded_log(name: &str) -> String {
    fs::read_to_string(recordings().join(format!("{name}.log"))).unwrap()
}

#[test]
fn every_recorded_log_counts_the_errors_that_its_exit_status_tells_of() {
    let statuses = fs::read_to_string(recordings().join("statuses.txt")).unwrap();
    let mut logs = 0;
    for line in statuses.lines() {
        let [kernel, tool, status] = line.split(' ').collect::<Vec<_>>()[..] else {
            unreachable!("{line}")
        };
        let log = SanitizerLog::parse(&recorded_log(&format!("{kernel}.{tool}"))).unwrap();
        let found = FOUND
            .iter()
            .find(|(of, under, _)| (*of, *under) == (kernel, tool))
            .map_or(0, |(_, _, errors)| *errors);
        assert_eq!(log.errors, found, "{kernel} under {tool}");
        assert_eq!(log.warnings, 0, "{kernel} under {tool}");
        assert_eq!(log.first.is_some(), found > 0, "{kernel} under {tool}");
        assert_eq!(status == "86", found > 0, "{kernel} under {tool}");
        logs += 1;
    }
    let files = fs::read_dir(recordings()).unwrap();
    let there = files.filter(|file| {
        let path = file.as_ref().unwrap().path();
        path.extension().is_some_and(|ending| ending == "log")
    });
    assert_eq!(logs, there.count());
}

/// A race has two places, and no kernel is made up for it; an error in an inlined function has the lines
/// that lead to it.
#[test]
fn the_first_error_has_its_kernel_its_lines_and_its_address() {
    let between =
        "Race reported between Read access at mma.hpp:91 and Write access at cp_async.cuh:11";
    let invalid = "Invalid __global__ write of size 4 bytes";
    let of_crash = "nvcuda::wmma::store_matrix_sync(";
    let of_race = "nvcuda::wmma::load_matrix_sync(";
    let written = "bsr_gemm_out_of_bounds out_of_bounds.cu:20 0xff04e2890400";
    let inlined = "bsr_gemm_crash mma.hpp:474 baseline.cu:139 crash.cu:13 0x10300";
    for (log, what, function, rest) in [
        ("out_of_bounds.memcheck", invalid, "", written),
        ("crash.memcheck", "", of_crash, inlined),
        ("race.racecheck", between, of_race, "mma.hpp:91"),
    ] {
        let log = SanitizerLog::parse(&recorded_log(log)).unwrap();
        let first = log.first.unwrap();
        assert!(first.what.starts_with(what), "{}", first.what);
        let of_first = first.function.unwrap_or_default();
        assert!(of_first.starts_with(function), "{of_first}");
        let rest: Vec<&str> = rest.split(' ').collect();
        let found = [first.kernel, first.location].into_iter().flatten();
        let found = found.chain(first.callers).chain(first.address);
        assert_eq!(found.collect::<Vec<_>>(), rest);
    }
}

#[test]
fn a_log_that_was_cut_off_is_no_clean_one() {
    for name in ["baseline.memcheck", "race.racecheck", "crash.memcheck"] {
        let whole = recorded_log(name);
        let lines: Vec<&str> = whole.lines().collect();
        // Up to the summary, which is the last or followed by what was not printed.
        let end = lines
            .iter()
            .position(|line| line.contains("SUMMARY"))
            .unwrap();
        for kept in 0..end.min(60) {
            let text = lines[..kept].join("\n");
            let why = SanitizerLog::parse(&text).unwrap_err();
            assert!(why.starts_with("it wrote no summary"), "{name}: {why}");
        }
    }
}

#[test]
fn a_summary_that_the_records_contradict_is_rejected() {
    let log = recorded_log("out_of_bounds.memcheck").replace("2 errors", "0 errors");
    let why = SanitizerLog::parse(&log).unwrap_err();
    assert_eq!(
        why,
        "its summary counts no error, but it reports: Invalid __global__ write of size 4 bytes"
    );
}

#[test]
fn a_summary_in_other_words_is_no_summary() {
    for (from, to) in [
        ("0 errors", "no errors"),
        ("0 errors", "errors"),
        ("ERROR SUMMARY", "SUMMARY OF ERRORS"),
    ] {
        let log = recorded_log("baseline.memcheck").replace(from, to);
        assert!(SanitizerLog::parse(&log).is_err(), "{log}");
    }
    let log = recorded_log("baseline.racecheck").replace(", 0 warnings", "");
    assert!(SanitizerLog::parse(&log).is_err(), "{log}");
}

#[test]
fn one_error_is_counted_as_well_as_two_and_a_thousand() {
    for (count, errors) in [
        ("1 error", 1),
        ("1,385 errors", 1385),
        ("1385 errors", 1385),
    ] {
        let log = recorded_log("out_of_bounds.memcheck").replace("2 errors", count);
        assert_eq!(SanitizerLog::parse(&log).unwrap().errors, errors);
    }
}

const CONFIG: &str = r#"
[toolchain]
compute_sanitizer = "compute-sanitizer"

[metric.duration]
direction = "lower"
tolerance = '3 %'

[suite.s]
args = ["--size", "8192"]
verify_args = ["--check"]
"#;

/// A machine with an H200 and compute-sanitizer, with variants whose programs end with these statuses
/// without the tool.
fn machine(variants: &[(&str, i32)]) -> Machine {
    let machine = Machine::of(Project::empty(), &[&libraries()[0]]);
    let machine = machine.with("SANITIZED", &recordings().display().to_string());
    let mut config = format!("{}{CONFIG}", common::ENV_PASS);
    for (variant, status) in variants {
        config += &format!("[suite.s.variant.{variant}]\nrun = [\"sh\", \"{variant}.sh\"]\n");
        let script = format!("echo 'recorded: {variant}'\nexit {status}\n");
        machine.write(&format!("{variant}.sh"), script);
    }
    machine.write("config.toml", config);
    let stand_in = repository().join("tests/data/stand_in/compute-sanitizer");
    install(&stand_in, &machine.path("compute-sanitizer"));
    machine
}

/// With another compute-sanitizer: the lines of a script, which knows `$log` and the program's
/// argv as `$@`.
fn other_sanitizer(machine: &Machine, lines: &str) {
    let text = format!(
        "#!/bin/sh\n\
         if [ \"$1\" = --version ]; then echo 'Version 2025.3.1.0 (build 1)'; exit 0; fi\n\
         while [ \"${{1#--}}\" != \"$1\" ]; do\n\
         if [ \"$1\" = --log-file ]; then log=$2; fi\nshift 2\ndone\n{lines}\n"
    );
    machine.program("compute-sanitizer", &text);
}

#[track_caller]
fn verify(machine: &Machine, tools: &str, code: i32) -> Report {
    let ran = machine.run(&format!("verify --format json {tools}"));
    ran.exits(code).json()
}

/// What the stand-in was called for.
fn journal(machine: &Machine) -> Vec<String> {
    let text = fs::read_to_string(machine.path("journal")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// `tool result` of each tool, of the only variant.
#[track_caller]
fn results(report: &Report) -> Vec<String> {
    let variants = report.0["sanitizer"]["variants"].as_array().unwrap();
    assert_eq!(variants.len(), 1);
    let tools = variants[0]["tools"].as_array().unwrap();
    let word = |value: &Json| value.as_str().unwrap().to_owned();
    let of_tool = |tool: &Json| format!("{} {}", word(&tool["tool"]), word(&tool["result"]));
    tools.iter().map(of_tool).collect()
}

const ALL: &str = "memcheck,racecheck,initcheck,synccheck";

#[test]
fn a_kernel_without_fault_is_clean_under_every_tool() {
    let machine = machine(&[("cp_async", 0)]);
    let report = verify(&machine, &format!("--sanitizer {ALL}"), 0);
    let tools = || ALL.split(',');
    let clean = tools().map(|tool| format!("{tool} clean"));
    assert!(results(&report).into_iter().eq(clean), "{:#}", report.0);
    assert_eq!(report.0["sanitizer"]["version"], "2025.3.1.0");
    assert_eq!(report.denied(), Vec::<String>::new());
    assert_eq!(report.0["variants"][0]["variant"], "s/cp_async");
    let ran = tools().map(|tool| format!("{tool} sh cp_async.sh --size 8192 --check"));
    assert!(journal(&machine).into_iter().eq(ran));
}

#[test]
fn a_race_whose_numbers_are_right_is_denied_for_the_race() {
    let machine = machine(&[("race", 0)]);
    let report = verify(&machine, "--sanitizer memcheck,racecheck", 5);
    assert_eq!(results(&report), ["memcheck clean", "racecheck errors"]);
    assert_eq!(report.denied(), ["sanitizer"]);
    let found = "racecheck found 16 errors, the first: Race reported between Read access at mma.hpp:91 \
        and Write access at cp_async.cuh:11";
    assert_eq!(report.message("sanitizer"), found);
    let racecheck = &report.0["sanitizer"]["variants"][0]["tools"][1];
    assert_eq!(racecheck["errors"], 16);
    assert_eq!(racecheck["ending"]["exited"], 86);
    assert_eq!(racecheck["first"]["location"], "mma.hpp:91");
}

#[test]
fn numbers_that_are_wrong_only_under_a_tool_that_finds_nothing_are_told_as_such() {
    let machine = machine(&[("race", 0)]);
    let report = verify(&machine, "--sanitizer synccheck", 5);
    assert_eq!(results(&report), ["synccheck clean"]);
    assert_eq!(report.denied(), ["wrong-numbers"]);
    let words = "under synccheck, which found no error: ";
    report.tells_all("wrong-numbers", &[words]);
}

#[test]
fn wrong_numbers_are_no_error_of_the_sanitizer_and_told_once() {
    let machine = machine(&[("wrong_numbers", 1)]);
    let report = verify(&machine, &format!("--sanitizer {ALL}"), 5);
    assert_eq!(report.denied(), ["wrong-numbers"]);
    let mut found = results(&report).into_iter();
    assert!(found.all(|result| result.ends_with(" clean")));
}

#[test]
fn a_program_that_fails_is_told_together_with_where_it_goes_wrong() {
    let machine = machine(&[("out_of_bounds", 4)]);
    let report = verify(&machine, "--sanitizer memcheck", 5);
    assert_eq!(report.denied(), ["wrong-numbers", "sanitizer"]);
    let words = "memcheck found 2 errors, the first: Invalid __global__ write of size 4 bytes in \
        bsr_gemm_out_of_bounds at out_of_bounds.cu:20, address 0xff04e2890400";
    assert_eq!(report.message("sanitizer"), words);
    let found = report.findings("deny")[1];
    assert_eq!(found["kernel"], "bsr_gemm_out_of_bounds");
    let text = |key: &str| found[key].as_str().unwrap();
    common::contains(text("detail"), &["by thread (0,0,0) in block (1,1,0)"]);
    common::contains(text("next"), &["--tool memcheck"]);
}

#[test]
fn the_configuration_asks_for_tools_and_the_command_line_for_others() {
    let machine = machine(&[("cp_async", 0), ("baseline", 0)]);
    let asked = "verify = { sanitizer = [\"memcheck\", \"memcheck\"] }\n";
    let head = "[suite.s.variant.cp_async]\n";
    machine.configure(head, &format!("{head}{asked}"));
    machine.append("config.toml", "[verify]\nsanitizer = [\"initcheck\"]\n");
    verify(&machine, "", 0);
    let tools = |journal: &[String]| -> Vec<String> {
        let words = |line: &String| line.split(' ').take(3).collect::<Vec<_>>().join(" ");
        journal.iter().map(words).collect()
    };
    let configured = ["initcheck sh baseline.sh", "memcheck sh cp_async.sh"];
    assert_eq!(tools(&journal(&machine)), configured);
    verify(&machine, "--sanitizer synccheck", 0);
    let asked = ["synccheck sh baseline.sh", "synccheck sh cp_async.sh"];
    assert_eq!(tools(&journal(&machine)[2..]), asked);
}

#[test]
fn a_smaller_problem_stands_in_the_place_of_all_arguments() {
    let machine = machine(&[("cp_async", 0)]);
    let key = "args = [\"--size\", \"8192\"]\n";
    let smaller = format!(
        "{key}sanitizer_args = [\"--size\", \"256\", \"--launches\", \"{{launches}}\", \"{{seed}}\"]\n"
    );
    machine.configure(key, &smaller);
    verify(&machine, "--sanitizer racecheck,memcheck", 0);
    let calls = journal(&machine);
    let seed = |tool: &str, line: &str| -> u32 {
        let expected = format!("{tool} sh cp_async.sh --size 256 --launches 20 ");
        line.strip_prefix(&expected).unwrap().parse().unwrap()
    };
    assert_ne!(seed("racecheck", &calls[0]), seed("memcheck", &calls[1]));
}

#[test]
fn a_missing_compute_sanitizer_ends_the_run_before_anything_runs() {
    let machine = machine(&[("cp_async", 0)]);
    fs::remove_file(machine.path("compute-sanitizer")).unwrap();
    machine.write("cp_async.sh", "touch ran\n");
    let ran = machine.run("verify --sanitizer memcheck");
    ran.ends(3, "`toolchain.compute_sanitizer` is ");
    assert!(!machine.path("ran").exists());
    machine.run("verify").exits(0);
}

#[test]
fn a_tool_that_does_not_say_that_there_are_no_errors_is_not_trusted() {
    let machine = machine(&[("cp_async", 0)]);
    let clean = recordings().join("cp_async.memcheck.log");
    let clean = format!("cat '{}' >\"$log\"", clean.display());
    // The first is as the recorded one with `--xml` and without `--save`.
    let cases = r#"
echo '--xml was enabled but no save location was specified'; exit 255 | its log cannot be read
: >"$log"; "$@" | it wrote no summary (exit status 0)
CLEAN; "$@"; exit 86 | its log counts no error, but its exit status means that there are some (exit status 86)
CLEAN; "$@"; kill -9 $$ | it ended with signal 9 (SIGKILL)
"#;
    for [lines, why] in &common::rows(&cases.replace("CLEAN", &clean)) {
        other_sanitizer(&machine, lines);
        let report = verify(&machine, "--sanitizer memcheck", 5);
        assert_eq!(report.denied(), ["sanitizer"], "{lines}");
        assert_eq!(results(&report), ["memcheck untrusted"], "{lines}");
        report.tells_all("sanitizer", &[why]);
        let tool = &report.0["sanitizer"]["variants"][0]["tools"][0];
        assert!(tool["errors"].is_null(), "{lines}");
    }
}

#[test]
fn a_tool_that_never_ran_the_program_is_found_by_the_missing_result() {
    let machine = machine(&[("cp_async", 0)]);
    machine.configure("[\"--check\"]", "[\"{result}\"]");
    let writes = "echo '{\"correct\": true}' >\"$3\"\n";
    machine.write("cp_async.sh", writes);
    let clean = recordings().join("cp_async.memcheck.log");
    let clean = format!("cat '{}' >\"$log\"", clean.display());
    other_sanitizer(&machine, &format!("{clean}; \"$@\""));
    verify(&machine, "--sanitizer memcheck", 0);
    other_sanitizer(&machine, &clean);
    let report = verify(&machine, "--sanitizer memcheck", 5);
    assert_eq!(report.denied(), ["program-failed"]);
    // Nor does it vanish behind what was wrong before.
    machine.write("cp_async.sh", "exit 1\n");
    let report = verify(&machine, "--sanitizer memcheck", 5);
    assert_eq!(report.denied(), ["program-failed"; 2]);
    let found = report.findings("deny")[1]["message"].to_string();
    assert!(found.contains("without writing the result file"), "{found}");
}

#[test]
fn a_warning_of_a_tool_is_a_warning() {
    let machine = machine(&[("cp_async", 0)]);
    let log = recorded_log("race.racecheck")
        .replace("Error: Race", "Warning: Race")
        .replace("(16 errors, 0 warnings)", "(0 errors, 16 warnings)");
    let read = SanitizerLog::parse(&log).unwrap();
    assert_eq!((read.errors, read.warnings), (0, 16));
    machine.write("warnings.log", log);
    other_sanitizer(&machine, "cp warnings.log \"$log\"; \"$@\"");
    let report = verify(&machine, "--sanitizer racecheck", 0);
    assert_eq!(results(&report), ["racecheck warnings"]);
    assert_eq!(report.warned(), ["sanitizer"]);
    let words = "racecheck found 16 warnings, the first: Race";
    report.tells_all("sanitizer", &[words]);
}

#[test]
fn a_run_under_a_tool_is_killed_at_its_time_limit() {
    let machine = machine(&[("cp_async", 0)]);
    other_sanitizer(&machine, "exec sleep 600");
    let config = machine.read("config.toml");
    let limit = |seconds: u32| format!("{config}[verify]\ntimeout_s = {seconds}\n");
    // The program, which is verified before, ends within it.
    machine.write("config.toml", limit(3));
    let report = verify(&machine, "--sanitizer memcheck", 5);
    report.denies_only("timed-out", &["under memcheck"]);
    assert_eq!(results(&report), ["memcheck untrusted"]);
    // A program that hangs is not run under the tools.
    machine.write("cp_async.sh", "exec sleep 600\n");
    machine.write("config.toml", limit(1));
    let report = verify(&machine, "--sanitizer racecheck", 5);
    assert_eq!(report.denied(), ["timed-out"]);
    assert_eq!(results(&report), ["racecheck not-run"]);
    assert_eq!(journal(&machine), Vec::<String>::new());
}

#[test]
fn what_the_configured_tool_denies_is_never_profiled() {
    let machine = machine(&[("cp_async", 0), ("race", 0)]);
    let ncu = repository().join("tests/data/stand_in/ncu");
    let config = machine.read("config.toml");
    let found = format!("[toolchain]\nncu = {:?}", ncu.display().to_string());
    let asked = "[verify]\nsanitizer = [\"racecheck\"]\n";
    machine.write("config.toml", config.replace("[toolchain]", &found) + asked);
    let ran = machine.run("profile race").exits(5);
    ran.says("sanitizer s/race: racecheck found 16 errors");
    let of = |name: &str| format!("racecheck sh {name}.sh --size 8192 --check");
    assert_eq!(journal(&machine), [of("race")]);
    // A clean one comes as far as ncu; there are no recordings of that to hand over.
    machine.run("profile cp_async");
    let calls = journal(&machine);
    assert_eq!(calls[1], of("cp_async"));
    assert!(calls[2].contains("timing"), "{calls:?}");
    machine.write("compute-sanitizer", "");
    let ran = machine.run("profile cp_async");
    ran.ends(3, "`toolchain.compute_sanitizer` is ");
}
