//! Runs that are interrupted, and others that go on with what they measured. Compiler, ncu and the
//! driver are stand-ins; the reports are those that the real ncu recorded on an H200, and which one a
//! process takes depends on nothing but its number. `SPARSEK_GATE_KILLS=1000` kills that often.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::crash::{contents, is_long, kill_at_random, kills, wait_for_orphans};
use crate::common::stand_in::{Machine, NVCC_OF_C};
use crate::common::{Ran, aloud, repository};
use serde_json::{Value as Json, json};
use sparsek_gate::measure::journal_rounds;

const PROFILES: &str = ".sparsek-gate/profiles";
/// A second variant.
const MORE: &str = r#"
[suite.bsr_gemm.variant.cp_async]
source = "kernels/b.cu"
expect = ["bsr_gemm_cp_async"]
"#;

fn program(variant: &str) -> String {
    format!(
        "int puts(const char *);\nint main(void) {{\n\
         puts(\"variant: {variant}\\nrecorded: h200\");\nreturn 0;\n}}\n"
    )
}

/// A checkout of two locked variants.
struct Checkout(Machine);

impl Checkout {
    fn new() -> Option<Checkout> {
        let machine = Machine::new()?;
        machine.program("toolkit/bin/nvcc", NVCC_OF_C);
        let project = &machine.project;
        // The script of ncu is a file of the checkout, and stays as it is.
        machine.ncu(&format!(
            "export BY_STEM=1; echo \"$*\" >>\"$ARGV\"\n\
             case $* in *--export*$(cat '{}' 2>&1)*) sleep 60 ;; esac",
            project.path("tmp/slow").display()
        ));
        project.write("config.toml", project.read("config.toml") + MORE);
        project.write("kernels/a.cu", program("baseline"));
        project.write("kernels/b.cu", program("cp_async"));
        project.git(&["init", "--quiet"]);
        let ours = "/.sparsek-gate/\n/journal*\n/reports\n/argv\n/tmp/\n/home/\n";
        project.write(".git/info/exclude", ours);
        let checkout = Checkout(machine);
        checkout.run(&["profile"]).exits(0);
        let lock = ["baseline", "--lock", "--reason", "first", "--who", "tester"];
        checkout.run(&lock).exits(0);
        checkout.commit();
        Some(checkout)
    }

    fn commit(&self) {
        self.0.project.git(&["add", "--all"]);
        self.0
            .project
            .git(&["commit", "--quiet", "--allow-empty", "-m", "x"]);
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        self.0.run(arguments)
    }

    /// Forgets what ncu was called for.
    fn calls(&self) -> usize {
        let path = self.0.project.path("argv");
        let text = fs::read_to_string(&path).unwrap_or_default();
        fs::write(&path, "").unwrap();
        let measuring = text.lines().filter(|line| line.contains("--export"));
        measuring.count()
    }

    /// Starts a run, and kills it once the journal of a variant is there.
    fn interrupt(&self, arguments: &[&str], variant: &str) {
        let command = self.0.gate(arguments);
        kill_once(command, &self.journal(variant), |_| true);
        // What it started counts as a call of ncu, even if that comes later.
        wait_for_orphans(&self.0.project.path(""));
    }

    fn journal(&self, variant: &str) -> PathBuf {
        self.0
            .project
            .path(&format!("{PROFILES}/bsr_gemm/{variant}/journal.json"))
    }
}

/// Starts a command, and kills it once a file is there and has such a content.
fn kill_once(mut command: Command, path: &Path, is_so: impl Fn(&str) -> bool) {
    // That of an earlier run would be taken for the one that is waited for.
    let _ = fs::remove_file(path);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while !fs::read_to_string(path).is_ok_and(|text| is_so(&text)) {
        assert!(Instant::now() < end, "{}", path.display());
        assert_eq!(child.try_wait().unwrap(), None, "it ended before");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// What an outcome says, without times, and without what says that a run was interrupted.
fn essence(outcome: &Json) -> Json {
    let list = |name: &str| outcome[name].as_array().cloned().unwrap_or_default();
    let variants: Vec<Json> = list("variants")
        .iter()
        .map(|variant| {
            json!({
                "variant": variant["variant"],
                "comparisons": variant["comparisons"],
                "processes": variant["current"]["processes"],
            })
        })
        .collect();
    let mut findings = list("findings");
    findings.retain(|finding| finding["code"] != "resumed");
    let chosen = list("chosen_launches");
    let chosen: Vec<Json> = chosen
        .iter()
        .map(|chosen| json!([chosen["variant"], chosen["launches"]]))
        .collect();
    json!({
        "exit_code": outcome["exit_code"],
        "variants": variants,
        "findings": findings,
        "same_programs": outcome["same_programs"],
        "chosen_launches": chosen,
    })
}

/// The outcome is that of another run.
#[track_caller]
fn same(found: &Json, expected: &Json) {
    let (found, expected) = (essence(found), essence(expected));
    for (part, value) in expected.as_object().unwrap() {
        let found = &found[part];
        assert!(found == value, "{part}: {found:#}\nexpected: {value:#}");
    }
}

/// Variants, rounds and processes that were taken over.
fn resumed(outcome: &Json) -> Vec<(String, u64, u64)> {
    let all = outcome["resumed"].as_array().cloned().unwrap_or_default();
    all.iter()
        .map(|one| {
            let variant = one["variant"].as_str().unwrap().to_owned();
            let number = |name: &str| one[name].as_u64().unwrap();
            (variant, number("rounds"), number("processes"))
        })
        .collect()
}

const SIDE_BY_SIDE: [&str; 3] = ["--against", "HEAD", "--measure-all"];

#[test]
fn whole_rounds_of_an_interrupted_run_are_used_and_the_rest_is_measured() {
    let Some(checkout) = Checkout::new() else {
        return;
    };
    for against in [&[][..], &SIDE_BY_SIDE] {
        let check = [&["check", "--format", "json"], against].concat();
        checkout.calls();
        let whole = checkout.run(&check).exits(0).json();
        let all = checkout.calls();
        assert!(!checkout.journal("baseline").exists());
        // The first variant is finished, and of the second what comes before its rounds.
        checkout.interrupt(&check, "cp_async");
        let kept = contents(&checkout.0.project.path(PROFILES));
        checkout.calls();
        let report = checkout.run(&[&check[..], &["--resume"]].concat());
        let report = report.exits(0).json();
        same(&report.0, &whole.0);
        let taken = resumed(&report.0);
        let names: Vec<&str> = taken.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["bsr_gemm/baseline", "bsr_gemm/cp_async"]);
        let processes: u64 = taken.iter().map(|(.., processes)| processes).sum();
        let after = checkout.calls();
        assert_eq!(after + processes as usize, all, "{taken:?}");
        let message = report.message("resumed");
        assert!(message.contains("bsr_gemm/baseline ("), "{message}");
        // Captures that were taken over are the files that the interrupted run wrote.
        let now = contents(&checkout.0.project.path(PROFILES));
        let reports = kept.iter().filter(|(path, _)| {
            let of_first = path.starts_with("bsr_gemm/baseline");
            of_first && path.extension().is_some_and(|ending| ending == "ncu-rep")
        });
        let reports: Vec<_> = reports.collect();
        assert!(reports.len() > 2);
        assert!(
            reports
                .iter()
                .all(|(path, hash)| now.get(*path) == Some(*hash))
        );
        checkout.run(&["check", "--from", PROFILES]).exits(0);

        // Nothing is left to go on with, so all of it is measured.
        assert!(now.keys().all(|path| !path.ends_with("journal.json")));
        let again = checkout.run(&[&check[..], &["--resume"]].concat());
        assert_eq!(resumed(&again.exits(0).json().0), []);
        assert_eq!(checkout.calls(), all);
        // Without --resume, too.
        checkout.interrupt(&check, "cp_async");
        checkout.calls();
        assert_eq!(resumed(&checkout.run(&check).exits(0).json().0), []);
        assert_eq!(checkout.calls(), all);
    }
    // `profile` the same.
    checkout.interrupt(&["profile"], "cp_async");
    checkout.calls();
    let ran = checkout.run(&["profile", "--resume"]).exits(0);
    ran.says("what it measured in whole rounds is used: bsr_gemm/baseline (4 rounds)");
    assert!(checkout.calls() < 6);
}

/// What is done between the two runs, to which variant, and why that is then measured anew.
type Case = (
    &'static str,
    fn(&Checkout),
    &'static [&'static str],
    &'static str,
);

#[test]
fn whatever_is_another_measurement_or_was_changed_is_measured_anew() {
    const BASE: &str = ".sparsek-gate/profiles/bsr_gemm/baseline";
    const BOTH: &[&str] = &["baseline", "cp_async"];
    const FIRST: &[&str] = &["baseline"];
    let cases: [Case; 11] = [
        (
            "a source",
            |it| {
                it.0.project
                    .replace("kernels/a.cu", "return 0", "return 0 + 0 * 7")
            },
            // The same machine code, perhaps, and another source.
            FIRST,
            "its program is another one now",
        ),
        (
            "a setting",
            |it| {
                it.0.project
                    .replace("config.toml", "\n[profile]\n", "\n[profile]\nretries = 5\n")
            },
            BOTH,
            "its configuration is another one now",
        ),
        (
            "a file that a program may read",
            |it| it.0.project.write("data.txt", "1"),
            BOTH,
            "a file that it could read is another one now",
        ),
        (
            "a report",
            |it| {
                it.0.project
                    .write(&format!("{BASE}/capture-1.ncu-rep"), "x")
            },
            FIRST,
            "`capture-1.ncu-rep` is not what the interrupted run wrote",
        ),
        (
            "a page",
            |it| it.0.project.write(&format!("{BASE}/capture-2.csv"), "x"),
            FIRST,
            "`capture-2.csv` is not what the interrupted run wrote",
        ),
        (
            "a log",
            |it| it.0.project.write(&format!("{BASE}/capture-2.argv"), "x"),
            FIRST,
            "`capture-2.argv` is not what the interrupted run wrote",
        ),
        (
            "a number in a journal",
            |it| {
                let path = format!("{BASE}/journal.json");
                let text = it.0.project.read(&path);
                let other = text.replacen("\"checked\":true", "\"checked\":false", 1);
                let other = other.replacen("\"rounds\":", "\"rounds\":1", 1);
                it.0.project.write(&path, other);
            },
            FIRST,
            "its journal is damaged: its content has another sha256",
        ),
        (
            "a journal that was cut",
            |it| {
                let path = format!("{BASE}/journal.json");
                let text = it.0.project.read(&path);
                it.0.project.write(&path, &text[..text.len() / 2]);
            },
            FIRST,
            "its journal is damaged: ",
        ),
        (
            "a journal of another run",
            |it| {
                let journal = it.0.project.read(&format!("{BASE}/journal.json"));
                it.interrupt(&["check"], "cp_async");
                it.0.project.write(&format!("{BASE}/journal.json"), journal);
            },
            FIRST,
            "its journal is that of another run",
        ),
        (
            "the journal of the run",
            |it| {
                it.0.project
                    .write(&format!("{PROFILES}/journal.json"), "{}")
            },
            &[],
            "everything is measured: its journal is damaged: ",
        ),
        (
            "nothing that matters",
            |it| it.0.project.write("journal2", "1"),
            &[],
            "",
        ),
    ];
    let Some(checkout) = Checkout::new() else {
        return;
    };
    for (what, change, variants, why) in cases {
        checkout.interrupt(&["check"], "cp_async");
        change(&checkout);
        let report = checkout.run(&["check", "--resume", "--format", "json"]);
        let report = report.json();
        let anew = report.0["findings"].as_array().unwrap().iter();
        let anew = anew.filter(|finding| finding["code"] == "not-resumed");
        let anew: Vec<(String, String)> = anew
            .map(|finding| {
                let name = finding["variant"].as_str().unwrap_or_default();
                let message = finding["message"].as_str().unwrap().to_owned();
                (name.replace("bsr_gemm/", ""), message)
            })
            .collect();
        if variants.is_empty() {
            assert_eq!(anew.is_empty(), why.is_empty(), "{what}: {anew:?}");
        } else {
            let names: Vec<&str> = anew.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, variants, "{what}: {anew:?}");
        }
        assert!(
            anew.iter().all(|(_, message)| message.contains(why)),
            "{what}: {anew:?}"
        );
        // What is measured anew is whole, and never taken over in part.
        let taken = resumed(&report.0);
        let both = taken.iter().map(|(name, ..)| name.replace("bsr_gemm/", ""));
        assert!(
            both.clone().all(|name| !variants.contains(&name.as_str())),
            "{what}"
        );
        let expected = if variants.is_empty() && !why.is_empty() {
            0
        } else {
            2 - variants.len()
        };
        assert_eq!(taken.len(), expected, "{what}: {taken:?}");
        for variant in BOTH {
            let found = report.variant(variant)["current"]["processes"].as_u64();
            assert!(found >= Some(3), "{what}: {variant} {found:?}");
        }
    }
}

#[test]
fn a_journal_of_which_any_byte_changed_does_not_count() {
    for name in ["alone", "beside"] {
        let path = repository().join(format!("fuzz/corpus/journal/{name}.json"));
        let text = fs::read(path).unwrap();
        assert_eq!(journal_rounds(&text), Ok(1), "{name}");
        for at in 0..text.len() {
            let mut other = text.clone();
            other[at] = if other[at] == b'1' { b'2' } else { b'1' };
            let found = journal_rounds(&other);
            assert!(found.is_err(), "{name}, byte {at}: {found:?}");
            assert!(journal_rounds(&text[..at]).is_err());
        }
    }
}

/// After each kill `--resume` gives the outcome of an uninterrupted run; every second of them is killed
/// itself before.
fn killed_and_resumed(checkout: &Checkout, further: &[&str], count: u32) {
    let report = checkout.0.project.path("tmp/outcome.json");
    let target = format!("json:{}", report.display());
    let check = [&["check", "--report", &target], further].concat();
    let outcome = || {
        let text = fs::read_to_string(&report).unwrap();
        fs::remove_file(&report).unwrap();
        serde_json::from_str::<Json>(&text).unwrap()
    };
    checkout.run(&check).exits(0);
    let whole = outcome();
    let resume = [&check[..], &["--resume"]].concat();
    let (runs, interrupted) = (RefCell::new(0_u32), RefCell::new(false));
    let taken_over = RefCell::new(0);
    let start = || {
        let again = *interrupted.borrow() && *runs.borrow() % 2 == 1;
        checkout.0.gate(if again { &resume } else { &check })
    };
    kill_at_random(&check.join(" "), count, start, |ended| {
        *runs.borrow_mut() += 1;
        *interrupted.borrow_mut() = !ended;
        if !ended && *runs.borrow() % 2 == 0 {
            // It may have been killed after it said everything.
            let _ = fs::remove_file(&report);
            checkout.run(&resume).exits(0);
            *interrupted.borrow_mut() = false;
        }
        if *interrupted.borrow() {
            if report.exists() {
                same(&outcome(), &whole);
            }
        } else {
            let found = outcome();
            same(&found, &whole);
            *taken_over.borrow_mut() += resumed(&found).len();
            // A run that ended leaves no process, and ends those of the run before it.
            wait_for_orphans(&checkout.0.project.path(""));
            assert!(!checkout.journal("baseline").exists());
        }
    });
    aloud(&format!(
        "variants that were taken over: {}",
        taken_over.borrow()
    ));
}

#[test]
fn whatever_is_killed_a_run_that_goes_on_has_the_outcome_of_an_uninterrupted_one() {
    let Some(checkout) = Checkout::new() else {
        return;
    };
    killed_and_resumed(&checkout, &SIDE_BY_SIDE, kills(2));
    if is_long() {
        killed_and_resumed(&checkout, &[], kills(0));
    }
}

#[test]
fn two_queues_that_are_killed_go_on_and_have_the_outcome_of_an_uninterrupted_run() {
    let Some(Checkout(machine)) = Checkout::new() else {
        return;
    };
    let checkout = Checkout(machine.with("CUDA_GPUS", "2"));
    killed_and_resumed(&checkout, &["--gpus", "all"], kills(3));
}

#[test]
fn the_newest_interrupted_run_of_the_same_plan_and_gpus_goes_on() {
    let Some(Checkout(machine)) = Checkout::new() else {
        return;
    };
    let checkout = Checkout(machine.with("CUDA_GPUS", "2"));
    let runs = || {
        let all = fs::read_dir(checkout.0.project.path(".sparsek-gate/gpus")).unwrap();
        all.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    let check = ["check", "--gpus", "all", "--format", "json"];
    let whole = checkout.run(&check).exits(0).json();
    // Both queues are interrupted after one of them measured its variant.
    let old = runs();
    let slow = checkout.0.project.path("tmp/slow");
    fs::write(&slow, "cp_async/capture-3").unwrap();
    let mut child = checkout.0.gate(&check);
    let mut child = child
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let whole_slice = |run: &PathBuf| {
        let mut slices = ["slices/1", "slices/2"].into_iter();
        slices.any(|slice| run.join(slice).join("slice.json").is_file())
    };
    let end = Instant::now() + Duration::from_secs(60);
    while !runs()
        .iter()
        .any(|run| !old.contains(run) && whole_slice(run))
    {
        assert!(Instant::now() < end);
        assert_eq!(child.try_wait().unwrap(), None, "it ended");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    fs::remove_file(&slow).unwrap();
    checkout.calls();
    // Other GPUs are another run.
    let resume = [&check[..], &["--resume"]].concat();
    let other = ["check", "--gpus", "1", "--resume", "--format", "json"];
    assert_eq!(resumed(&checkout.run(&other).exits(0).json().0), []);
    checkout.calls();
    let count = runs().len();
    let report = checkout.run(&resume).exits(0).json();
    same(&report.0, &whole.0);
    let taken = resumed(&report.0);
    assert_eq!(taken.len(), 2, "{taken:?}");
    // Which of them is in the first slice follows from how long they took before.
    let whole = ("bsr_gemm/baseline".to_owned(), 4, 5);
    assert!(taken.contains(&whole), "{taken:?}");
    assert!(checkout.calls() < 5);
    assert_eq!(runs().len(), count, "the same folder");
    wait_for_orphans(&checkout.0.project.path(""));
    for run in runs() {
        let left = contents(&run);
        let journals = left.keys().filter(|path| path.ends_with("journal.json"));
        assert_eq!(journals.count(), 0, "{}", run.display());
    }
    assert_eq!(resumed(&checkout.run(&resume).exits(0).json().0), []);
    assert_eq!(runs().len(), count + 1);
}

#[test]
fn what_a_change_could_have_left_is_not_used_unless_the_base_allows_it() {
    const REFUSED: &str = "`--resume` is refused: a change is under review";
    let Some(checkout) = Checkout::new() else {
        return;
    };
    let project = &checkout.0.project;
    let resume = ["check", "--resume"];
    let ci = |arguments: &[&str]| {
        let mut command = checkout.0.gate(arguments);
        Ran::of(&command.env("CI", "true").output().unwrap())
    };
    checkout.interrupt(&["check"], "cp_async");
    for further in [&["--baseline-ref", "HEAD"][..], &["--pull-request", "3"]] {
        let ran = checkout.run(&[&resume[..], further].concat());
        ran.exits(2).says(REFUSED).says("next: ");
    }
    let none = ["--baseline-ref", "none"];
    ci(&[&resume[..], &none].concat()).exits(2).says(REFUSED);
    ci(&["profile", "--resume"]).exits(2).says(REFUSED);
    // The change itself cannot allow it.
    let config = project.read("config.toml");
    project.write("config.toml", format!("{config}\n[trust]\nresume = true\n"));
    let ran = checkout.run(&[&resume[..], &["--baseline-ref", "HEAD"]].concat());
    ran.exits(2).says(REFUSED);
    checkout.commit();
    let ran = checkout.run(&[&resume[..], &["--baseline-ref", "HEAD"]].concat());
    ran.exits(0).says("not-resumed");
    ci(&[&resume[..], &none].concat()).exits(0);
    project.write(
        "config.toml",
        format!("{config}\n[trust]\nresume = \"yes\"\n"),
    );
    checkout.run(&resume).exits(2).says("resume = \"yes\"");
    project.write("config.toml", config);
    for other in ["--static", "--dry-run"] {
        checkout.run(&["check", "--resume", other]).exits(2);
    }
}

#[test]
fn a_run_that_still_measures_was_not_interrupted() {
    let Some(checkout) = Checkout::new() else {
        return;
    };
    let slow = checkout.0.project.path("tmp/slow");
    fs::write(&slow, "").unwrap();
    let mut check = checkout.0.gate(&["check"]);
    let mut check = check
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let journal = checkout.0.project.path(&format!("{PROFILES}/journal.json"));
    while !journal.exists() {
        assert_eq!(check.try_wait().unwrap(), None);
        std::thread::sleep(Duration::from_millis(2));
    }
    let ran = checkout.run(&["check", "--resume"]).exits(3);
    ran.says("was not interrupted: it still measures into")
        .says("fuser -v");
    check.kill().unwrap();
    check.wait().unwrap();
    // Its programs would go on for a minute.
    let begun = Instant::now();
    fs::remove_file(&slow).unwrap();
    checkout.run(&["check", "--resume"]).exits(0);
    wait_for_orphans(&checkout.0.project.path(""));
    assert!(begun.elapsed() < Duration::from_secs(50));
}

#[test]
fn a_slice_that_was_interrupted_goes_on() {
    let Some(checkout) = Checkout::new() else {
        return;
    };
    let project = &checkout.0.project;
    let [archive, whole, slice] = ["a.tar.zst", "whole", "slice"];
    let [archive, whole, slice] = [archive, whole, slice].map(|name| format!("tmp/{name}"));
    checkout.run(&["archive", "--output", &archive]).exits(0);
    let measure = [
        "check",
        "--archive",
        &archive,
        "--slice",
        "1/1",
        "--slice-output",
    ];
    let ran = checkout.run(&["check", "--archive", &archive, "--resume"]);
    ran.exits(2)
        .says("`--resume` with `--archive` requires `--output DIR`");
    let merged = |folder: &str| {
        let ran = checkout.run(&["merge", folder, "--format", "json"]);
        ran.exits(0).json().0
    };
    checkout.run(&[&measure[..], &[&whole]].concat()).exits(0);
    let expected = merged(&whole);
    let resume = [&measure[..], &[&slice, "--resume"]].concat();
    // Without an interrupted one it is as without --resume.
    checkout.run(&resume).exits(0);
    assert_eq!(resumed(&merged(&slice)), []);
    let journal = project.path(&format!("{slice}/profiles/bsr_gemm/cp_async/journal.json"));
    let command = checkout.0.gate(&[&measure[..], &[&slice]].concat());
    kill_once(command, &journal, |_| true);
    checkout.run(&resume).exits(0);
    let found = merged(&slice);
    same(&found, &expected);
    assert_eq!(resumed(&found).len(), 2, "{:#}", found["resumed"]);
    let left = contents(&project.path(&slice));
    assert!(
        left.keys().all(|path| !path.ends_with("journal.json")),
        "{left:?}"
    );
    // What a killed run leaves of its journals is no part of the slice.
    project.write(&format!("{slice}/profiles/journal.json"), "{}");
    same(&merged(&slice), &expected);
}

#[test]
fn a_run_that_goes_on_repeats_no_more_than_one_that_was_not_interrupted() {
    let Some(checkout) = Checkout::new() else {
        return;
    };
    let checkout = Checkout(checkout.0.with("NVML_PROCESS", "4242"));
    let project = &checkout.0.project;
    project.replace("config.toml", "\n[profile]\n", "\n[profile]\nretries = 1\n");
    let check = ["check", "--format", "json", "baseline"];
    checkout.calls();
    let expected = checkout.run(&check).exits(6).json();
    let of_one_try = checkout.calls() / 2;
    let repeated = |codes: Vec<String>| codes.iter().filter(|code| *code == "retried").count();
    let times = repeated(expected.warned());
    assert_eq!(times, 1);
    let command = checkout.0.gate(&check);
    kill_once(command, &checkout.journal("baseline"), |text| {
        text.contains("\"retried\"")
    });
    checkout.calls();
    let report = checkout
        .run(&[&check[..], &["--resume"]].concat())
        .exits(6)
        .json();
    assert_eq!(checkout.calls(), of_one_try);
    assert_eq!(repeated(report.warned()), times);
    assert_eq!(report.denied(), expected.denied());
}
