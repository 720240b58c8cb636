//! The control: what an unchanged variant says of the machine, in `check --from`.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use crate::common::{self, Project, RECORDED, Report, scale, shift};
use serde_json::Value as Json;

const DURATION: &str = "duration";
const CONTROL: &str = "baseline";

fn remove_control(project: &Project) {
    let folder = format!("{RECORDED}/bsr_gemm/{CONTROL}");
    std::fs::remove_dir_all(project.path(&folder)).unwrap();
}

/// The values that a reader sees of every metric of `cp_async`.
fn displayed(report: &Report) -> Vec<[Json; 4]> {
    let comparisons = report.variant("cp_async")["comparisons"].as_array();
    comparisons
        .unwrap()
        .iter()
        .map(|shown| ["metric", "reference", "current", "change"].map(|key| shown[key].clone()))
        .collect()
}

fn number(report: &Report, metric: &str, key: &str) -> f64 {
    report.comparison("cp_async", metric)[key].as_f64().unwrap()
}

#[test]
fn an_unchanged_kernel_on_a_machine_that_is_another_is_open_and_not_regressed() {
    // Slower or faster, the control moves by as much as the kernel that is judged: its sign says
    // nothing, since machines displace kernels in different directions.
    for of_control in [1.06, 0.94] {
        let project = Project::steady();
        project.edit_profile("cp_async", |profile| scale(profile, DURATION, 1.05));
        project.edit_profile(CONTROL, |profile| scale(profile, DURATION, of_control));
        let with = project.check(&["cp_async"], 6);
        assert_eq!(with.denied(), ["inconclusive"], "{of_control}");
        assert_eq!(with.verdict("cp_async", DURATION), "inconclusive");
        // More samples of the same machine would not tell.
        assert_eq!(with.comparison("cp_async", DURATION)["open"], false);
        with.tells_all("inconclusive", &["machines"]);
        let control = &with.variant("cp_async")["control"];
        assert_eq!(control["variant"], "bsr_gemm/baseline");
        let displaced = &control["displacements"][DURATION]["relative_percent"];
        let displaced = displaced.as_f64().unwrap();
        assert!((displaced - (of_control - 1.0) * 100.0).abs() < 1e-6);

        remove_control(&project);
        let without = project.check(&["cp_async"], 1);
        assert_eq!(without.denied(), ["regressed"]);
        assert!(without.variant("cp_async")["control"].is_null());
        assert_eq!(displayed(&with), displayed(&without));
        assert!(number(&with, DURATION, "band") > number(&without, DURATION, "band") + 4.9);
        assert!(without.comparison("cp_async", DURATION)["allowance"].is_null());
    }
}

#[test]
fn a_control_that_says_nothing_of_a_variant_does_not_widen_its_bands() {
    let project = Project::steady();
    let cp_async = "[suite.bsr_gemm.variant.cp_async]\n";
    let config = project.read("config.toml");
    assert!(config.contains(cp_async));
    project.write(
        "config.toml",
        config.replace(cp_async, &format!("{cp_async}control = false\n")),
    );
    project.edit_profile("cp_async", |profile| scale(profile, DURATION, 1.05));
    project.edit_profile(CONTROL, |profile| scale(profile, DURATION, 1.06));
    let report = project.check(&["cp_async"], 1);
    assert_eq!(report.denied(), ["regressed"]);
    assert!(report.variant("cp_async")["control"].is_null());
    assert!(report.comparison("cp_async", DURATION)["allowance"].is_null());
    // It widens those of the other variants.
    project.edit_profile("occupancy", |profile| scale(profile, DURATION, 1.05));
    let other = project.check(&["occupancy"], 6);
    assert_eq!(other.verdict("occupancy", DURATION), "inconclusive");
    assert!(!other.variant("occupancy")["control"].is_null());
}

#[test]
fn a_displaced_control_widens_a_metric_in_its_own_unit() {
    let project = Project::steady();
    project.edit_profile("cp_async", |profile| shift(profile, "sm_active", -3.0));
    project.edit_profile(CONTROL, |profile| shift(profile, "sm_active", -4.0));
    let report = project.check(&["cp_async"], 6);
    assert_eq!(report.verdict("cp_async", "sm_active"), "inconclusive");
    assert!((number(&report, "sm_active", "allowance") - 4.0).abs() < 1e-6);
    // Of what the control does not show displaced, everything else still passes.
    assert_eq!(report.verdict("cp_async", DURATION), "pass");
}

#[test]
fn a_control_speaks_in_the_terms_that_the_kernel_is_judged_in() {
    let project = Project::steady();
    // 8 us of 271 are 2.95 %, and the control's own tolerance is in percent.
    let on =
        "\n[metric.duration.on]\n\"bsr_gemm/cp_async\" = '8000'\n";
    project.write("config.toml", project.read("config.toml") + on);
    project.edit_profile(CONTROL, |profile| scale(profile, DURATION, 1.05));
    let report = project.check(&["cp_async"], 6);
    let displaced = &report.variant("cp_async")["control"]["displacements"][DURATION];
    let displaced = displaced["absolute"].as_f64().unwrap();
    assert!(displaced > 10_000.0, "{displaced}");
    assert_eq!(report.verdict("cp_async", DURATION), "inconclusive");
}

#[test]
fn a_control_where_it_was_locked_changes_no_verdict() {
    for (factor, code) in [(1.05, 1), (1.0, 0)] {
        let project = Project::steady();
        project.edit_profile("cp_async", |profile| scale(profile, DURATION, factor));
        let with = project.check(&["cp_async"], code);
        assert!(with.variant("cp_async")["control"].is_object());
        assert!(number(&with, DURATION, "allowance").abs() < 1e-6);
        remove_control(&project);
        let without = project.check(&["cp_async"], code);
        assert_eq!(
            with.verdict("cp_async", DURATION),
            without.verdict("cp_async", DURATION)
        );
    }
}

#[test]
fn the_control_is_no_control_of_itself_and_its_own_regression_fails() {
    let project = Project::steady();
    project.edit_profile(CONTROL, |profile| scale(profile, DURATION, 1.06));
    let report = project.check(&[], 1);
    // The others are as they were locked, which this machine does not tell any more.
    assert_eq!(report.denied_besides(&["inconclusive"]), ["regressed"]);
    assert_eq!(report.verdict(CONTROL, DURATION), "regressed");
    assert!(report.variant(CONTROL)["control"].is_null());
    assert!(report.variant("occupancy")["control"].is_object());
}

#[test]
fn a_control_that_is_not_locked_says_nothing() {
    let project = Project::steady();
    for ending in common::ENDINGS {
        let path = Project::baseline_path(CONTROL, ending);
        std::fs::remove_file(project.path(&path)).unwrap();
    }
    project.edit_profile("cp_async", |profile| scale(profile, DURATION, 1.05));
    project.edit_profile(CONTROL, |profile| scale(profile, DURATION, 1.06));
    let report = project.check(&["cp_async"], 1);
    assert_eq!(report.denied(), ["regressed"]);
    assert!(report.variant("cp_async")["control"].is_null());
}

#[test]
fn a_tampered_lock_of_the_control_fails_a_check_of_another_variant() {
    let project = Project::steady();
    let path = Project::baseline_path(CONTROL, "norm.txt");
    project.write(&path, project.read(&path) + "\n");
    let report = project.check(&["cp_async"], 4);
    for finding in report.findings("deny") {
        assert_eq!(finding["code"], "tampered");
        assert_eq!(finding["variant"], "bsr_gemm/baseline");
    }
}

#[test]
fn a_control_that_is_no_whole_measurement_bounds_nothing_and_fails_the_check() {
    for (what, damage) in common::gaps() {
        let project = Project::steady();
        project.edit_profile(CONTROL, damage);
        let ran = project.run(&["check", "--from", RECORDED, "cp_async", "--format", "json"]);
        assert_ne!(ran.code, 0, "{what}");
        let report = ran.json();
        assert!(report.variant("cp_async")["control"].is_null(), "{what}");
        for finding in report.findings("deny") {
            assert_eq!(finding["variant"], "bsr_gemm/baseline", "{what}");
        }
    }
    let project = Project::steady();
    let control = Project::profile_path(CONTROL);
    project.write(&control, "{");
    let ran = project.run(&["check", "--from", RECORDED, "cp_async"]);
    assert_ne!(ran.code, 0);
    ran.says(&control);
}

#[test]
fn an_edited_control_is_told() {
    let project = Project::locked();
    project.edit_profile(CONTROL, |profile| scale(profile, DURATION, 1.06));
    let report = project.check(&["cp_async"], 6);
    assert!(report.warned().contains(&"profile-altered".to_owned()));
}

#[test]
fn a_regression_larger_than_a_displaced_control_allows_is_one() {
    let project = Project::steady();
    project.edit_profile(CONTROL, |profile| scale(profile, DURATION, 1.06));
    project.edit_profile("cp_async", |profile| scale(profile, DURATION, 1.2));
    assert_eq!(project.check(&["cp_async"], 1).denied(), ["regressed"]);
}

#[test]
fn a_control_of_another_gpu_says_nothing_of_this_one() {
    let project = Project::steady();
    project.edit_profile(CONTROL, |profile| {
        let text = profile.to_string();
        let uuid = profile["provenance"]["gpu_uuid"].as_str().unwrap();
        let other = format!("GPU-ffffffff{}", &uuid[12..]);
        *profile = serde_json::from_str(&text.replace(uuid, &other)).unwrap();
        scale(profile, DURATION, 1.06);
    });
    project.edit_profile("cp_async", |profile| scale(profile, DURATION, 1.05));
    let report = project.check(&["cp_async"], 1);
    assert!(report.variant("cp_async")["control"].is_null());
}
