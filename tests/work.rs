//! The work that exact counters show, implausible values, and causes of regressions.

use crate::common::{self, Project, Ran, Report, refresh, samples, scale, shift};
use serde_json::{Value as Json, json};

const DURATION: &str = "duration";

/// Sets every sample of a metric.
fn set(profile: &mut Json, metric: &str, value: f64) {
    for sample in samples(profile, metric) {
        *sample = json!(value);
    }
    refresh(profile);
}

fn set_config(project: &Project, table: &str, line: &str) {
    project.configure(table, &format!("{table}\n{line}"));
}

/// A project for either mode: against the baseline, and against a base beside it.
fn both_modes() -> [(&'static str, Project); 2] {
    let beside = Project::steady();
    beside.add_base("cp_async", |_| {});
    [("stored", Project::steady()), ("against", beside)]
}

#[test]
fn a_faster_kernel_that_does_less_work_is_not_improved() {
    for (mode, project) in both_modes() {
        project.edit_profile("cp_async", |profile| {
            scale(profile, "flop_wmma", 0.75);
            scale(profile, DURATION, 0.75);
        });
        let report = project.check(&["cp_async"], 4);
        let judged = report.variant("cp_async");
        assert_eq!(judged["mode"], mode);
        // Against the reference, and against the declaration.
        assert_eq!(report.denied(), ["work-changed", "work-changed"], "{mode}");
        assert_eq!(report.verdict("cp_async", "flop_wmma"), "regressed");
        assert_eq!(report.verdict("cp_async", DURATION), "inconclusive");
        let comparison = report.comparison("cp_async", DURATION);
        assert!(comparison["why"].as_str().unwrap().contains("other work"));
        let comparisons = judged["comparisons"].as_array().unwrap();
        let improved = comparisons.iter().find(|it| it["verdict"] == "improved");
        assert_eq!(improved, None, "{mode}");
    }
}

#[test]
fn more_sectors_of_stores_for_the_declared_bytes_are_a_regression_and_fewer_are_other_work() {
    for (mode, project) in both_modes() {
        project.edit_profile("cp_async", |profile| {
            scale(profile, "stored_sectors", 4.0);
        });
        let report = project.check(&["cp_async"], 1);
        // Against the reference, and against the declaration.
        assert_eq!(report.denied(), ["regressed", "regressed"], "{mode}");
        let messages = report.0["findings"].to_string();
        for words in [
            "8388608 → 33554432, +300.00 %: more sectors for the bytes that the suite declares: its stores are less coalesced, or bytes are written twice",
            "(400.0 %): its stores are not coalesced, or bytes are written twice",
        ] {
            assert!(messages.contains(words), "{mode}: {messages}");
        }
        project.edit_profile("cp_async", |profile| {
            scale(profile, "stored_sectors", 0.125);
        });
        let report = project.check(&["cp_async"], 4);
        assert_eq!(report.denied(), ["work-changed", "work-changed"], "{mode}");
    }
}

#[test]
fn more_sectors_of_stores_are_other_work_where_no_bytes_are_declared() {
    let words = "its stores are less coalesced, or it writes more bytes";
    for (factor, named) in [(4.0, true), (0.5, false)] {
        let project = Project::locked();
        project.drop_config_lines("work = ");
        project.edit_profile("cp_async", |profile| {
            scale(profile, "stored_sectors", factor);
        });
        let report = project.check(&["cp_async"], 4);
        assert_eq!(report.denied(), ["work-changed"]);
        let findings = report.0["findings"].to_string();
        assert_eq!(findings.contains(words), named, "{findings}");
    }
}

#[test]
fn work_that_is_not_the_declared_is_told_even_where_it_is_the_references() {
    for metric in ["flop_wmma", "stored_sectors"] {
        let project = Project::steady();
        project.edit_profile("cp_async", |profile| scale(profile, metric, 0.5));
        project.forge("cp_async", |profile| scale(profile, metric, 0.5));
        let report = project.check(&["cp_async"], 4);
        assert_eq!(report.denied(), ["work-changed"], "{metric}");
        report.tells_all("work-changed", &["its `work` declares", "(50.0 %)"]);
        assert_eq!(report.verdict("cp_async", metric), "pass");
    }
}

#[test]
fn an_exact_counter_that_varies_only_now_is_inconclusive_and_one_that_always_varied_is_not_judged()
{
    for (mode, project) in both_modes() {
        project.drop_config_lines("work = ");
        project.edit_profile("cp_async", |profile| {
            let sample = &mut samples(profile, "flop_wmma")[1];
            **sample = json!(sample.as_f64().unwrap() + 1.0);
        });
        let report = project.check(&["cp_async"], 6);
        assert_eq!(report.denied(), ["inconclusive"], "{mode}");
        assert_eq!(report.verdict("cp_async", "flop_wmma"), "inconclusive");
        report.tells_all("inconclusive", &["from launch to launch"]);
    }
    // What varied in the reference already is not judged, unless it is far away.
    let project = Project::steady();
    project.forge("cp_async", |profile| {
        let sample = &mut samples(profile, "flop_wmma")[1];
        **sample = json!(sample.as_f64().unwrap() + 1.0);
    });
    let report = project.check(&["cp_async"], 0);
    assert_eq!(report.verdict("cp_async", "flop_wmma"), "recorded");
    project.drop_config_lines("work = ");
    project.edit_profile("cp_async", |profile| {
        scale(profile, "flop_wmma", 0.9);
    });
    assert_eq!(project.check(&["cp_async"], 4).denied(), ["work-changed"]);
}

#[test]
fn unless_faster_excuses_nothing_of_a_kernel_that_does_other_work() {
    let other = ["regressed", "work-changed"];
    for (flop, code, expected) in [(1.0, 0, &[][..]), (0.75, 4, &other)] {
        let project = Project::steady();
        project.drop_config_lines("work = ");
        project.edit_profile("cp_async", |profile| {
            scale(profile, DURATION, 0.8);
            shift(profile, "tensor_core", -10.0);
            scale(profile, "flop_wmma", flop);
        });
        assert_eq!(project.check(&["cp_async"], code).denied(), expected);
    }
}

// Implausible values.

#[test]
fn an_average_above_all_of_the_peak_is_implausible() {
    for (mode, project) in both_modes() {
        project.edit_profile("cp_async", |profile| set(profile, "sm_active", 100.6));
        // Side by side it has no tolerance, and is only recorded.
        project.check(&["cp_async"], if mode == "against" { 0 } else { 6 });
        let config = project.read("config.toml");
        let config = config.replace("{ stored = \"1.5\" }", "\"1.5\"");
        project.write("config.toml", config);
        let report = project.check(&["cp_async"], 6);
        assert_eq!(report.denied(), ["implausible"], "{mode}");
        report.tells_all("implausible", &["`sm_active`", "100.5"]);
        project.edit_profile("cp_async", |profile| set(profile, "sm_active", 100.4));
        project.check(&["cp_async"], 0);
    }
}

#[test]
fn what_is_only_recorded_may_be_anything_and_what_only_warns_warns() {
    for (level, warned) in [("record", false), ("warn", true)] {
        let project = Project::steady();
        set_config(
            &project,
            "[metric.sm_active]",
            &format!("level = \"{level}\""),
        );
        project.edit_profile("cp_async", |profile| set(profile, "sm_active", 150.0));
        let report = project.check(&["cp_async"], 0);
        assert_eq!(report.warns("implausible"), warned);
    }
}

// What the GPU said of itself.

fn captures(profile: &mut Json) -> &mut Vec<Json> {
    profile["provenance"]["captures"].as_array_mut().unwrap()
}

/// A state in which there is nothing to report.
fn quiet() -> Json {
    json!({
        "readings": 20, "working_readings": 18,
        "sm_clock_mhz": { "min": 345, "max": 1980 },
    })
}

/// Every capture of every variant has a quiet state, in the recording and in the lock.
fn quiet_project() -> Project {
    fn quieten(profile: &mut Json) {
        for capture in captures(profile) {
            capture["device"] = quiet();
        }
    }
    let project = Project::steady_by_ncu();
    project.edit_profile("cp_async", quieten);
    project.forge("cp_async", quieten);
    project
}

fn disturb(project: &Project, path: &str, count: usize, key: &str, value: &Json) {
    project.edit(path, |profile| {
        for capture in captures(profile).iter_mut().rev().take(count) {
            capture["device"][key] = value.clone();
        }
    });
}

/// Every launch ran at another clock, by the profiler's counter.
fn at_clock(profile: &mut Json, factor: f64) {
    for kernel in profile["kernels"].as_array_mut().unwrap() {
        let samples = kernel["metrics"]["clock"]["samples"].as_array_mut();
        for launch in samples.unwrap().iter_mut().flat_map(launches) {
            *launch = json!(launch.as_f64().unwrap() * factor);
        }
    }
}

fn launches(process: &mut Json) -> &mut Vec<Json> {
    process.as_array_mut().unwrap()
}

#[test]
fn a_clock_held_down_in_some_captures_only_warns_if_the_launches_ran_at_one_clock() {
    let slow = json!({ "min": 345, "max": 1755 });
    let capped = json!({ "sw-power-cap": 5 });
    for (key, value, words) in [
        ("slowdown_readings", &capped, "sw-power-cap"),
        ("sm_clock_mhz", &slow, "1755 MHz in current"),
    ] {
        // More than the duration may change by, in either direction.
        for (factor, code) in [(1.0, 0), (0.96, 6), (1.04, 6)] {
            let project = quiet_project();
            disturb(&project, &Project::profile_path("cp_async"), 2, key, value);
            project.edit_profile("cp_async", |profile| at_clock(profile, factor));
            let report = project.check(&["cp_async"], code);
            report.tells_all("clock-changed", &[words]);
            let message = report.message("clock-changed");
            if code == 0 {
                let same = "ran at the same clock, 0.000 % apart (at most ";
                common::contains(message, &[same]);
            } else {
                assert_eq!(report.denied(), ["clock-changed"]);
                assert!(!message.contains("the same clock,"), "{message}");
            }
        }
    }
}

#[test]
fn side_by_side_the_clock_of_the_launches_is_that_of_the_base() {
    let capped = json!({ "sw-power-cap": 5 });
    // Half of the duration's 0.5 %.
    for (factor, code) in [(1.0024, 0), (1.0026, 6)] {
        let project = quiet_project();
        project.add_base("cp_async", |_| {});
        project.edit(&Project::base_path("cp_async"), |base| {
            at_clock(base, factor)
        });
        let path = Project::profile_path("cp_async");
        disturb(&project, &path, 1, "slowdown_readings", &capped);
        let report = project.check(&["cp_async"], code);
        let message = report.message("clock-changed");
        let same = message.contains("(at most 0.250 %)");
        assert_eq!(same, code == 0, "{message}");
    }
}

/// Locks the disturbed profile of `cp_async`.
fn lock_disturbed(count: usize, key: &str, value: &Json, code: i32) -> (Project, Ran) {
    let project = Project::timed_by_ncu();
    project.lock("first measurement").exits(0);
    project.edit_profile("cp_async", |profile| {
        for capture in captures(profile) {
            capture["device"] = quiet();
        }
    });
    let path = Project::profile_path("cp_async");
    disturb(&project, &path, count, key, value);
    let lock = "baseline --lock --reason noisy --from recorded cp_async";
    let ran = project.run(lock).exits(code);
    (project, ran)
}

#[test]
fn noise_of_the_clock_is_locked_with_a_warning_that_the_baseline_repeats() {
    let capped = json!({ "sw-power-cap": 5 });
    let slow = json!({ "min": 345, "max": 1755 });
    for (key, value, words) in [
        ("slowdown_readings", &capped, "sw-power-cap"),
        ("sm_clock_mhz", &slow, "1755 MHz in current"),
    ] {
        let (project, ran) = lock_disturbed(2, key, value, 0);
        ran.says("cp_async on nvidia-h200: locked")
            .says("warning clock-changed")
            .says(words);
        let shown = project.run("baseline --show cp_async").exits(0);
        shown.says("warning clock-changed").says(words);
        // A check of the same profile has the same noise, at the same clock.
        let report = project.check(&["cp_async"], 0);
        assert!(report.warns("clock-changed"));
    }
}

#[test]
fn heat_and_another_process_are_not_locked() {
    let hot = json!({ "hw-thermal": 50_000_000 });
    let (_, ran) = lock_disturbed(1, "slowdown_ns", &hot, 6);
    ran.says("clock-changed").says("not locked");
    let other = json!([{ "pid": 4711, "name": "train.py" }]);
    let (_, ran) = lock_disturbed(1, "other_processes", &other, 6);
    ran.says("gpu-shared").says("not locked");
}

#[test]
fn captures_that_say_nothing_of_the_gpu_deny_nothing() {
    let project = quiet_project();
    project.edit_profile("cp_async", |profile| {
        for capture in captures(profile) {
            capture.as_object_mut().unwrap().remove("device").unwrap();
        }
    });
    project.check(&["cp_async"], 0);
}

#[test]
fn what_disturbed_the_base_denies_and_what_disturbed_an_old_baseline_does_not() {
    let hot = json!({ "hw-thermal": 50_000_000 });
    let project = quiet_project();
    project.forge("cp_async", |profile| {
        for capture in captures(profile) {
            capture["device"]["slowdown_ns"] = hot.clone();
        }
    });
    project.check(&["cp_async"], 0);
    project.add_base("cp_async", |_| {});
    project.check(&["cp_async"], 0);
    let base = Project::base_path("cp_async");
    disturb(&project, &base, 1, "slowdown_ns", &hot);
    let report = project.check(&["cp_async"], 6);
    report.denies_only("clock-changed", &["base "]);
}

// What moved together.

/// Kinds of the causes that are reported for `cp_async`.
fn kinds(report: &Report) -> Vec<String> {
    let of_kernels = report.variant("cp_async")["causes"].as_array().unwrap();
    of_kernels
        .iter()
        .flat_map(|kernel| kernel["causes"].as_array().unwrap())
        .map(|cause| cause["kind"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_regression_names_what_moved_with_it() {
    for (mode, project) in both_modes() {
        project.edit_profile("cp_async", |head| scale(head, "bank_conflicts", 100.0));
        // Nothing got worse: what moved is nobody's cause.
        let report = project.check(&["cp_async"], 0);
        assert_eq!(kinds(&report), Vec::<String>::new(), "{mode}");
        project.edit_profile("cp_async", |profile| scale(profile, DURATION, 1.2));
        let report = project.check(&["cp_async"], 1);
        assert_eq!(kinds(&report), ["bank-conflicts"], "{mode}");
        report.tells_all("regressed", &["bank conflicts"]);
        let (change, with) = report
            .message("regressed")
            .split_once("; with it: ")
            .unwrap();
        let change = change.split(", +20.0").nth(1).unwrap();
        let change = change.split(" ±").next().unwrap();
        let shown = format!("`duration` +20.0{change}; with it: {with}");
        let ran = project.run("check --from recorded cp_async -v");
        ran.ends(1, &shown);
    }
}
