//! `--dry-run`: what would be built and run, on a machine of stand-ins.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::fs;
use std::process::Command;

use serde_json::Value as Json;
use sparsek_gate::process::shell_line;

use crate::common::stand_in::Machine;

/// The plan that a command prints as JSON.
fn plan(machine: &Machine, arguments: &[&str]) -> Json {
    let ran = machine.run(&[arguments, &["--dry-run", "--format", "json"]].concat());
    serde_json::from_str(&ran.exits(0).out).unwrap()
}

fn argv(job: &Json) -> Vec<String> {
    let words = job["argv"].as_array().unwrap().iter();
    words
        .map(|word| word.as_str().unwrap().to_owned())
        .collect()
}

/// Task, side and round of each job of the only variant.
fn jobs(plan: &Json) -> Vec<(String, String, Option<u64>)> {
    let text = |value: &Json| value.as_str().unwrap().to_owned();
    let jobs = plan["variants"][0]["jobs"].as_array().unwrap().iter();
    jobs.map(|job| {
        (
            text(&job["task"]),
            text(&job["side"]),
            job["round"].as_u64(),
        )
    })
    .collect()
}

#[test]
fn a_dry_run_starts_no_program_and_leaves_nothing() {
    let machine = Machine::new();
    for arguments in [["profile", "--dry-run"], ["check", "--dry-run"]] {
        let files = || {
            let listed = Command::new("find").arg(machine.project.path("")).output();
            String::from_utf8(listed.unwrap().stdout).unwrap()
        };
        let before = files();
        let ran = machine.run(&arguments);
        let out = ran
            .exits(0)
            .says("nothing is built and no program is started");
        assert!(out.out.contains("{program}"), "{}", out.out);
        assert!(machine.ncu_calls().is_empty() && machine.compiled().is_empty());
        assert_eq!(files(), before);
    }
}

#[test]
fn a_dry_run_prints_the_argv_that_a_profile_then_runs() {
    let machine = Machine::new();
    machine.run(&["profile"]).exits(0);
    let plan = plan(&machine, &["profile"]);
    assert_eq!(plan["builds"][0]["state"], "reused");
    let folder = machine
        .project
        .path(".sparsek-gate/profiles/bsr_gemm/baseline");
    let kept = |stem: &str| fs::read_to_string(folder.join(format!("{stem}.argv"))).ok();
    let measured: Vec<&Json> = plan["variants"][0]["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|job| job["task"] == "counting" || job["task"] == "timing")
        .collect();
    let mut compared = 0;
    for (index, job) in measured.iter().enumerate() {
        let stem = match index {
            0 => "counting".to_owned(),
            process => format!("capture-{process}"),
        };
        // Those after the least number of processes were not needed.
        if let Some(ran) = kept(&stem) {
            assert_eq!(shell_line(&argv(job)), ran.trim_end(), "{stem}");
            compared += 1;
        }
    }
    let least = plan["variants"][0]["least_rounds"].as_u64().unwrap();
    assert_eq!(compared, 1 + least);
}

#[test]
fn side_by_side_the_sides_take_turns_in_being_first_and_last() {
    let machine = Machine::new();
    machine.project.commit();
    let plan = plan(&machine, &["check", "--against", "HEAD"]);
    let variant = &plan["variants"][0];
    assert_eq!(
        (&variant["least_rounds"], &variant["most_rounds"]),
        (&1.into(), &5.into())
    );
    let jobs = jobs(&plan);
    let once = |task: &str, side: &str| (task.to_owned(), side.to_owned(), None);
    assert_eq!(
        jobs[..4],
        [
            once("verify", "current"),
            once("verify", "base"),
            once("counting", "base"),
            once("counting", "current"),
        ]
    );
    let odd = ["base", "current", "current", "base"];
    let even = ["current", "base", "base", "current"];
    let sides = odd.into_iter().chain(even).cycle();
    let expected = (0..20_u64)
        .zip(sides)
        .map(|(index, side)| ("timing".to_owned(), side.to_owned(), Some(1 + index / 4)));
    let mut expected: Vec<_> = expected.collect();
    // Launches are listed while ncu prints the last report before the first look.
    expected.splice(4..4, ["base", "current"].map(|side| once("launches", side)));
    assert_eq!(jobs[4..], expected);
    let sides: Vec<&Json> = plan["builds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|b| &b["side"])
        .collect();
    assert_eq!(sides, ["current", "base"]);
}

#[test]
fn a_dry_run_chooses_no_seed() {
    let machine = Machine::new();
    let machine = machine.configured(
        "\"--blocks-per-row\", \"16\"]",
        "\"--blocks-per-row\", \"16\", \"{seed}\"]",
    );
    let plan = plan(&machine, &["profile"]);
    for job in plan["variants"][0]["jobs"].as_array().unwrap() {
        assert!(argv(job).contains(&"{seed}".to_owned()), "{job}");
    }
    machine
        .run(&["profile", "--dry-run"])
        .exits(0)
        .says("{seed} is chosen afresh for each process");
}

#[test]
fn a_form_that_a_plan_does_not_have_and_recorded_profiles_are_usage_errors() {
    let machine = Machine::new();
    let html = machine.run(&["check", "--dry-run", "--format", "html"]);
    html.exits(2)
        .says("`--dry-run` prints text or json, not html");
    machine
        .run(&["check", "--dry-run", "--from", "profiles"])
        .exits(2);
    machine
        .run(&["profile", "--dry-run", "no_such_variant"])
        .exits(2);
}

#[test]
fn ncu_counts_each_kernel_by_itself_by_an_identifier_that_contains_the_filter() {
    let machine = Machine::new();
    let of = |phase: &str| {
        let plan = plan(&machine, &["profile", "baseline"]);
        let jobs = plan["variants"][0]["jobs"].as_array().unwrap();
        let job = jobs.iter().find(|job| job["task"] == phase).unwrap();
        argv(job)
    };
    let after = |argv: &[String], name: &str| {
        let at = argv.iter().position(|word| word == name)?;
        argv.get(at + 1).cloned()
    };
    assert_eq!(
        after(&of("timing"), "--launch-count").as_deref(),
        Some("20")
    );
    machine.project.replace(
        "config.toml",
        "[profile]\n",
        "[profile]\nper_kernel = true\nskip = 1\n",
    );
    for (phase, numbers) in [
        ("timing", "^([2-9]|1[0-9]|2[0-1])$"),
        ("counting", "^([2-3])$"),
    ] {
        let argv = of(phase);
        let id = after(&argv, "--kernel-id").unwrap();
        assert_eq!(id, format!("::regex:^bsr_gemm_:{numbers}"));
        for other in ["--kernel-name", "--launch-count", "--launch-skip"] {
            assert_eq!(after(&argv, other), None, "{other}");
        }
    }
}
