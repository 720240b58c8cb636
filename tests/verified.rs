//! A verification that an earlier run recorded is not repeated by `check`, and every case in which it
//! must be. Compiler, ncu and the driver are stand-ins; the program is a small C program, and the
//! reports that are handed over are those that the real ncu recorded on an H200.

use std::sync::OnceLock;

use crate::common::stand_in::{Machine, NVCC_OF_C};
use crate::common::{Arguments, Ran, Report, repository};

/// Notes each run in `runs`, and reports correct numbers unless the file `wrong` is there.
const PROGRAM: &str = r#"#include <stdio.h>
#include <string.h>
int main(int count, char **words) {
    FILE *runs = fopen("runs", "a");
    fprintf(runs, "%s\n", count > 1 ? words[count - 1] : "");
    fclose(runs);
    FILE *wrong = fopen("wrong", "r");
    for (int at = 1; at + 1 < count; at++)
        if (strcmp(words[at], "--result") == 0) {
            FILE *result = fopen(words[at + 1], "w");
            fputs(wrong ? "{\"correct\": false}" : "{\"correct\": true}", result);
            fclose(result);
        }
    BODY
    puts("variant: baseline\nrecorded: h200");
    return 0;
}
"#;

const SOURCE: &str = "source = \"kernels/a.cu\"\n";
const ARGS: &str = "verify_args = [\"--result\", \"{result}\", \"verify\"]\n\
    profile_args = [\"--result\", \"{result}\", \"profile\"]\n";
const RECORDS: &str = ".sparsek-gate/verified.json";
const REUSED: [(&str, bool); 1] = [("bsr_gemm/baseline", false)];

/// One variant that checks itself, locked and committed, and verified by a run that measured it.
fn checkout() -> Machine {
    static LOCKED: OnceLock<Vec<u8>> = OnceLock::new();
    let checkout = Machine::once(&LOCKED, make);
    checkout.commit();
    // That record is of the variables of another folder.
    std::fs::remove_file(checkout.path(RECORDS)).unwrap();
    checkout.run("profile").exits(0);
    assert_eq!(verified(&checkout), 1);
    checkout
}

fn make() -> Machine {
    let machine = Machine::new();
    machine.program("toolkit/bin/nvcc", NVCC_OF_C);
    let project = &machine.project;
    project.configure(SOURCE, &format!("{SOURCE}{ARGS}"));
    let config = project.read("config.toml");
    let listed = config.lines().find(|line| line.starts_with("unread = "));
    let unread = "unread = [\"*.md\", \"baselines/**\", \"config.toml\"]";
    project.configure(listed.unwrap(), unread);
    let other = "gpus = [\"NVIDIA H200\", \"NVIDIA H100 80GB HBM3\"]";
    project.configure("gpus = [\"NVIDIA H200\"]", other);
    // Programs need not know which GPU it is.
    project.configure("\"CUDA_NAME\", ", "");
    project.write("kernels/a.cu", PROGRAM.replace("BODY", ""));
    project.write("weights.txt", "1\n");
    machine.without("/runs\n/wrong\n");
    machine.commit();
    machine.lock_measured();
    machine.commit();
    assert_eq!(verified(&machine), 1);
    machine
}

fn run(checkout: &Machine, arguments: impl Arguments) -> Ran {
    let check = vec!["check", "--format", "json"];
    checkout.run(&[check, arguments.list()].concat())
}

fn check(checkout: &Machine) -> Report {
    run(checkout, "").exits(0).json()
}

/// How often the program verified itself since the last question.
fn verified(checkout: &Machine) -> usize {
    let runs = checkout.read("runs");
    std::fs::write(checkout.path("runs"), "").unwrap();
    runs.lines().filter(|line| *line == "verify").count()
}

fn records(checkout: &Machine) -> Option<String> {
    std::fs::read_to_string(checkout.path(RECORDS)).ok()
}

/// The variants whose verification a report says was reused, and whether it is the base's.
fn reused(report: &Report) -> Vec<(&str, bool)> {
    let reused = report.0["reused_verifications"].as_array();
    let each = reused.into_iter().flatten();
    each.map(|one| {
        let of_base = one["of_base"].as_bool().unwrap();
        (one["variant"].as_str().unwrap(), of_base)
    })
    .collect()
}

#[test]
fn a_verification_is_not_repeated_and_every_report_says_so() {
    let checkout = checkout();
    let ran = run(&checkout, "").exits(0);
    assert_eq!(verified(&checkout), 0);
    assert!(ran.err.contains("reused: correct on 2"), "{}", ran.err);
    let report = ran.json();
    assert_eq!(reused(&report), REUSED);
    let record = &report.0["reused_verifications"][0];
    assert_eq!(record["gpu"], "NVIDIA H200");
    assert_eq!(record["tool"], env!("CARGO_PKG_VERSION"));
    for format in ["text", "markdown", "html"] {
        let arguments = ["check", "--format", format];
        let text = checkout.run(&arguments).exits(0).out;
        assert!(text.contains("verification reused"), "{format}: {text}");
    }
    assert_eq!(verified(&checkout), 0);
    // A commit that the program cannot read changes nothing.
    checkout.write("README.md", "Words.\n");
    checkout.commit();
    assert_eq!(reused(&check(&checkout)), REUSED);
}

#[test]
fn a_run_of_all_variants_serves_a_check_of_one() {
    let checkout = checkout();
    let other = format!("[suite.bsr_gemm.variant.other]\nsource = \"kernels/other.cu\"\n{ARGS}");
    checkout.write("kernels/other.cu", PROGRAM.replace("BODY", "puts(\"\");"));
    let last = "[suite.bsr_gemm.variant.baseline]";
    checkout.configure(last, &format!("{other}\n{last}"));
    checkout.run("profile").exits(0);
    assert_eq!(verified(&checkout), 2);
    let report = run(&checkout, "baseline").exits(0).json();
    assert_eq!(reused(&report), REUSED);
    assert_eq!(verified(&checkout), 0);
}

#[test]
fn the_base_that_is_measured_beside_a_change_is_not_verified_again() {
    let checkout = checkout();
    let changed = PROGRAM.replace("BODY", "puts(\"more\");");
    checkout.write("kernels/a.cu", &changed);
    let report = run(&checkout, "--against HEAD").exits(0).json();
    assert_eq!(reused(&report), [("bsr_gemm/baseline", true)]);
    assert_eq!(verified(&checkout), 1);
    // This run verified the change, and recorded it.
    let report = run(&checkout, "--against HEAD").exits(0).json();
    let both = [("bsr_gemm/baseline", false), ("bsr_gemm/baseline", true)];
    assert_eq!(reused(&report), both);
}

#[test]
fn whatever_could_change_the_answer_is_verified_again() {
    type Change = fn(&Machine);
    let cases: [(&str, Change); 9] = [
        ("a changed source", |it| {
            let changed = PROGRAM.replace("BODY", "puts(\"more\");");
            it.write("kernels/a.cu", &changed);
        }),
        ("a source with other words and the same program", |it| {
            let changed = PROGRAM.replace("    BODY\n", "    /* words */\n");
            it.write("kernels/a.cu", &changed);
        }),
        ("other arguments", |it| {
            it.configure("verify_args = [", "verify_args = [\"--more\", ")
        }),
        ("other variables", |it| {
            it.configure(SOURCE, &format!("{SOURCE}env = {{ MODE = \"fast\" }}\n"))
        }),
        ("another time limit", |it| {
            it.configure(SOURCE, &format!("{SOURCE}verify = {{ timeout_s = 9 }}\n"))
        }),
        ("a file that it may read", |it| {
            it.write("weights.txt", "2\n")
        }),
        ("a new file that it may read", |it| {
            it.write("more.txt", "1\n")
        }),
        ("a record of something else", |it| {
            let records = records(it).unwrap();
            let key = &records[2..66];
            let other: String = key.chars().rev().collect();
            it.write(RECORDS, records.replace(key, &other));
        }),
        ("a damaged record", |it| {
            let records = records(it).unwrap();
            it.write(RECORDS, records.replace("\"verified\"", "\"verifed\""));
        }),
    ];
    for (what, change) in cases {
        let checkout = checkout();
        change(&checkout);
        let report = run(&checkout, "").json();
        assert_eq!(reused(&report), [], "{what}");
        assert_eq!(verified(&checkout), 1, "{what}");
    }
}

#[test]
fn another_driver_gpu_model_or_variable_is_another_verification() {
    for (name, value) in [
        ("NVML_DRIVER", "590.1.1"),
        ("CUDA_NAME", "NVIDIA H100 80GB HBM3"),
        ("OMP_NUM_THREADS", "3"),
    ] {
        let checkout = checkout();
        let other = checkout.with(name, value);
        let report = run(&other, &[]).json();
        assert_eq!(reused(&report), [], "{name}");
        assert_eq!(verified(&other), 1, "{name}");
    }
}

#[test]
fn a_record_covers_the_tools_of_compute_sanitizer_that_ran() {
    let checkout = checkout();
    let log = repository().join("tests/data/sanitizer/baseline");
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'Version 2025.3.1.0 (build 1) (public-release)'; exit 0; fi\n\
         while :; do case $1 in --tool) tool=$2 ;; --log-file) log=$2 ;; --*) ;; *) break ;; esac; shift 2; done\n\
         cp {}.$tool.log \"$log\"\nexec \"$@\"\n",
        log.display()
    );
    checkout.program("toolkit/bin/compute-sanitizer", &script);
    let tools = |tools: &str| format!("{SOURCE}verify = {{ sanitizer = [{tools}] }}\n");
    let mut before = SOURCE.to_owned();
    for (list, expected) in [
        ("\"memcheck\"", 2),
        ("\"memcheck\"", 0),
        ("\"memcheck\", \"racecheck\"", 3),
        ("\"racecheck\"", 0),
        ("\"initcheck\"", 2),
    ] {
        checkout.configure(&before, &tools(list));
        before = tools(list);
        check(&checkout);
        assert_eq!(verified(&checkout), expected, "{list}");
    }
    // The base, which has the same program, runs under no tool and takes nothing away.
    std::fs::remove_file(checkout.path(RECORDS)).unwrap();
    checkout.commit();
    let beside = ["--against", "HEAD", "--measure-all"];
    run(&checkout, &beside).exits(0);
    assert_eq!(verified(&checkout), 2);
    let report = run(&checkout, &beside).exits(0).json();
    assert_eq!(reused(&report).len(), 2);
}

#[test]
fn what_is_locked_was_verified_by_the_run_that_measured_it() {
    let checkout = checkout();
    assert_eq!(reused(&check(&checkout)), REUSED);
    let lock = ["baseline", "--lock", "--reason", "more", "--who", "tester"];
    let refused = checkout.run(&lock).exits(6);
    assert!(
        refused.err.contains("did not verify it") || refused.out.contains("did not verify it"),
        "{}{}",
        refused.out,
        refused.err
    );
    checkout.run("profile").exits(0);
    assert_eq!(verified(&checkout), 1);
    checkout.run(&lock).exits(0);
    checkout.run("verify").exits(0);
    assert_eq!(verified(&checkout), 1);
}

#[test]
fn the_check_of_what_is_measured_is_made_all_the_same() {
    let checkout = checkout();
    // Git does not show this file.
    checkout.write("wrong", "");
    let report = run(&checkout, "").exits(5).json();
    assert_eq!(reused(&report), REUSED);
    assert_eq!(report.denied(), ["wrong-numbers"]);
}

#[test]
fn a_program_that_is_not_known_for_certain_is_always_verified() {
    type Change = fn(&Machine);
    let cases: [(&str, Change); 4] = [
        ("a command", |it| {
            let built = ".sparsek-gate/a.out";
            let compiler = std::process::Command::new("gcc")
                .args(["-x", "c", "kernels/a.cu", "-o", built])
                .current_dir(it.path("."))
                .status();
            assert!(compiler.unwrap().success());
            it.configure(SOURCE, &format!("run = [\"{built}\"]\n"));
        }),
        ("a program that may start others", |it| {
            let text = PROGRAM.replace("#include", "int system(const char *);\n#include");
            let text = text.replacen("BODY", "if (count > 99) system(words[1]);", 1);
            it.write("kernels/a.cu", &text);
        }),
        ("measured processes without a check", |it| {
            it.configure(
                "profile_args = [\"--result\", \"{result}\", \"profile\"]",
                "profile_args = [\"profile\"]",
            )
        }),
        ("a tier without a check", |it| {
            let profile = format!("{SOURCE}profile = {{ accept_tiers = [\"static\"] }}\n");
            it.configure(SOURCE, &profile);
        }),
    ];
    for (what, change) in cases {
        let checkout = checkout();
        change(&checkout);
        for _ in 0..2 {
            let report = run(&checkout, "").json();
            assert_eq!(reused(&report), [], "{what}");
            assert_eq!(verified(&checkout), 1, "{what}");
        }
    }
}

#[test]
fn a_project_without_git_is_always_verified() {
    let checkout = checkout();
    std::fs::remove_dir_all(checkout.path(".git")).unwrap();
    assert_eq!(reused(&check(&checkout)), []);
}

#[test]
fn a_trial_is_neither_recorded_nor_reused() {
    let checkout = checkout();
    std::fs::remove_file(checkout.path(RECORDS)).unwrap();
    checkout.run("profile --define A=1").exits(0);
    assert_eq!(records(&checkout), None);
}

#[test]
fn a_pull_request_reuses_records_and_writes_none() {
    let checkout = checkout();
    checkout.git("update-ref refs/remotes/origin/main HEAD");
    checkout.git("checkout --quiet -b change");
    checkout.write("README.md", "Words.\n");
    checkout.commit();
    let before = records(&checkout);
    let of_service = |checkout: Machine, name, value| checkout.with(name, value);
    let checkout = of_service(checkout, "GITHUB_BASE_REF", "main");
    assert_eq!(reused(&check(&checkout)), REUSED);
    assert_eq!(verified(&checkout), 0);

    let changed = PROGRAM.replace("BODY", "puts(\"more\");");
    checkout.write("kernels/a.cu", &changed);
    checkout.commit();
    for _ in 0..2 {
        assert_eq!(reused(&check(&checkout)), []);
        checkout.run("profile").exits(0);
        assert_eq!(verified(&checkout), 2);
    }
    assert_eq!(records(&checkout), before);
}

#[test]
fn a_run_for_a_pull_request_by_hand_writes_no_record() {
    let checkout = checkout();
    std::fs::remove_file(checkout.path(RECORDS)).unwrap();
    run(&checkout, "--pull-request 7").exits(0);
    assert_eq!(records(&checkout), None);
    check(&checkout);
    assert!(records(&checkout).is_some());
}

#[test]
fn what_another_run_records_before_this_one_has_the_gpu_is_no_manipulation() {
    let checkout = checkout();
    let own = checkout.path(RECORDS);
    let elsewhere = checkout.path(".sparsek-gate/elsewhere.json");
    // The other run ends while this one compiles.
    let (from, to) = (elsewhere.display(), own.display());
    let ends = format!("if [ -e '{from}' ]; then cp '{from}' '{to}'; fi\n");
    let nvcc = NVCC_OF_C.replacen('\n', &format!("\n{ends}"), 1);
    checkout.program("toolkit/bin/nvcc", &nvcc);
    checkout.commit();
    check(&checkout);
    assert_eq!(verified(&checkout), 1);
    std::fs::rename(&own, &elsewhere).unwrap();
    std::fs::remove_dir_all(checkout.path(".sparsek-gate/builds")).unwrap();
    let report = check(&checkout);
    assert_eq!(reused(&report), REUSED);
    assert_eq!(verified(&checkout), 0);
    assert!(records(&checkout).is_some());
}

#[test]
fn a_program_that_writes_a_record_is_found_and_the_records_are_removed() {
    let checkout = checkout();
    let interrupts = "kill(getppid(), 15); sleep(1);";
    for (at, then, code) in [
        ("profile", "", 5),
        ("verify", "", 5),
        ("verify", interrupts, 130),
    ] {
        check(&checkout);
        assert!(records(&checkout).is_some());
        let body = format!(
            "if (strcmp(words[count - 1], \"{at}\") == 0) {{\n\
             FILE *forged = fopen(\".sparsek-gate/verified.json\", \"a\");\n\
             fputs(\" \", forged); fclose(forged); {then} }}"
        );
        let program = PROGRAM.replace(
            "#include <string.h>",
            "#include <string.h>\n#include <signal.h>\n#include <unistd.h>",
        );
        checkout.write("kernels/a.cu", program.replace("BODY", &body));
        let report = run(&checkout, "").exits(code).json();
        if code == 5 {
            assert_eq!(report.denied(), ["altered-during-run"], "{at}");
        }
        assert_eq!(records(&checkout), None, "{at}");
        checkout.write("kernels/a.cu", PROGRAM.replace("BODY", ""));
    }
}
