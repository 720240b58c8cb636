//! `check --from`: recorded profiles against baselines.

use std::collections::BTreeSet;
use std::process::Stdio;

use crate::common::{
    self, Damage, Project, RECORDED, Report, VARIANTS, gaps, keep_launches, keep_processes,
    refresh, samples, scale, scale_processes, shift,
};
use serde_json::{Value as Json, json};
use sparsek_gate::judge::Outcome;

const DURATION: &str = "duration";
const GATED: [&str; 4] = ["duration", "sm_active", "tensor_core", "dram_bw"];

#[test]
fn the_shipped_recordings_pass_against_the_shipped_baselines() {
    let project = Project::shipped();
    let report = project.check(&[], 0);
    assert_eq!(report.0["schema"], Outcome::SCHEMA);
    assert_eq!(report.0["origin"]["kind"], "recorded");
    assert_eq!(report.denied(), Vec::<String>::new());
    assert_eq!(report.warned(), Vec::<String>::new());
    for variant in VARIANTS.iter() {
        for metric in GATED {
            let comparison = report.comparison(variant, metric);
            assert_eq!(comparison["verdict"], "pass", "{variant} {metric}");
            assert!(comparison["threshold"].is_number(), "{variant} {metric}");
        }
        assert_eq!(report.verdict(variant, "flop_wmma"), "pass", "{variant}");
        assert!(report.comparison(variant, "dram_read")["verdict"].is_null());
    }
    project
        .run("check --from recorded")
        .ends(0, "same: ")
        .says("recorded profiles from recorded, not measured in this run");
    let locks = project.run("check --from baselines/nvidia-h200");
    locks.ends(2, "`--from baselines/nvidia-h200` has the locked baselines");
}

#[test]
fn the_first_line_answers_and_a_line_follows_for_each_metric_that_weighs_most() {
    let project = Project::locked();
    let check = |more: &str, code: i32| {
        let ran = project.run(&format!("check --from recorded {more}"));
        ran.exits(code).out
    };
    let text = check("", 0);
    assert_eq!(text.lines().count(), 2 + 1 + VARIANTS.len(), "{text}");
    let mut rows = text.lines().skip(2);
    assert!(rows.all(|line| line.chars().count() <= 80), "{text}");
    for variant in VARIANTS.iter() {
        let row = format!("\nbsr_gemm/{variant} ");
        assert_eq!(text.matches(&row).count(), 1, "{text}");
    }
    let all = check("-v", 0);
    let passing = all.matches("not worse by more than the tolerance");
    assert_eq!(passing.count(), 4 * VARIANTS.len());
    /// The one line of a check that prints nothing else.
    #[track_caller]
    fn line(text: &str, begins: &str) {
        assert!(
            text.starts_with(begins) && text.lines().count() == 1,
            "{text}"
        );
    }
    line(&check("-q", 0), "same: the largest change bsr_gemm/");
    let one = check("-q cp_async", 0);
    line(&one, "same: -0.0");
    let words = [", would have caught +4.00 %; ", " pass, exit code 0"];
    common::contains(&one, &words);

    project.edit_profile("cp_async", |profile| {
        scale(profile, DURATION, 1.5);
        shift(profile, "tensor_core", -10.0);
    });
    let text = check("", 1);
    let lines: Vec<&str> = text.lines().collect();
    line(lines[0], "slower: bsr_gemm/cp_async duration +49.");
    assert!(lines[3].ends_with(" slower"), "{text}");
    assert!(lines[4].starts_with("bsr_gemm/cp_async tensor_core "));
    assert!(lines[4].ends_with(" worse"), "{text}");
    assert!(!text.contains("\n metric "), "{text}");
    project.edit_profile("cp_async", |profile| scale(profile, DURATION, 2.0 / 3.0));
    line(&check("-q", 1), "worse: bsr_gemm/cp_async tensor_core -");
    project.edit_profile("cp_async", |profile| {
        scale(profile, DURATION, 0.75);
        shift(profile, "tensor_core", 10.0);
    });
    line(&check("-q", 0), "faster: bsr_gemm/cp_async duration -2");
    // What is excused does not come before what fails.
    project.edit_profile("cp_async", |profile| shift(profile, "tensor_core", -20.0));
    project.edit_profile("baseline", |profile| scale(profile, DURATION, 1.1));
    line(&check("-q", 1), "slower: bsr_gemm/baseline duration +10.0");
    project.edit_profile("cp_async", |profile| scale(profile, DURATION, 2.0));
    // A file has all of it.
    check("--report all.txt", 1);
    let all = project.read("all.txt");
    assert_eq!(all.matches("\n metric ").count(), VARIANTS.len());
}

#[test]
fn every_variant_of_the_repository_passes_on_its_recording() {
    let project = Project::empty();
    let root = common::repository();
    for folder in ["kernels", "baselines", "ci/recordings/h200"] {
        common::copy(&root.join(folder), &project.path(folder));
    }
    let config = std::fs::read(root.join("config.toml")).unwrap();
    project.write("config.toml", config);
    let ran = project.run("check --from ci/recordings/h200 --format json");
    let report = ran.exits(0).json();
    assert_eq!(report.warned(), Vec::<String>::new());
    let judged = report.0["variants"].as_array().unwrap().iter();
    let judged: BTreeSet<String> = judged.map(|one| one["variant"].to_string()).collect();
    assert_eq!(judged.len(), 18, "{judged:?}");
}

#[test]
fn unchanged_kernels_of_every_family_pass_side_by_side_where_the_noise_allows_an_answer() {
    let project = Project::empty();
    let root = common::repository();
    for folder in ["kernels", "baselines"] {
        common::copy(&root.join(folder), &project.path(folder));
    }
    let recorded = common::recordings().join("unchanged");
    let config = std::fs::read_to_string(root.join("config.toml")).unwrap();
    let check = |config: &str, gpu: &str, variants: &[&str]| {
        project.write("config.toml", config);
        let from = recorded.join(gpu).join("aa").display().to_string();
        project.run(&[&["check", "--from", &from], variants].concat())
    };
    let some = [
        "attention/wgmma", "bsr_gemm/tma_wgmma", "bsr_gemm/warp_specialized",
        "trajectory_resample/tma", "trajectory_resample_cached/tma",
        "trajectory_resample_dense/tma",
    ];
    // The profiles are of kernels with the same machine code, but of older sources.
    let stale = |ran: &common::Ran| {
        let findings = ran.out.matches("\nprofile-stale ");
        assert_eq!(findings.count(), some.len(), "{}", ran.out);
    };
    // After three rounds only the noisiest, of 6.4 us, is open: its interval reaches beyond twice the tolerance.
    let ran = check(&config, "c1819a56", &some).exits(4);
    let ran = ran.says("(1 inconclusive, 62 pass, no capture proves the values of 6 variants)");
    stale(&ran.says("inconclusive attention/wgmma"));
    let wider = config.replace("against = \"0.5 %\"", "against = \"1 %\"");
    let ran = check(&wider, "c1819a56", &some).exits(4);
    stale(&ran.says("(63 pass, no capture proves the values of 6 variants)"));
    let strictly = [&some[..], &["--strict"]].concat();
    let ran = check(&wider, "c1819a56", &strictly).exits(4);
    stale(&ran.says("inconclusive attention/wgmma"));
}

#[test]
fn no_unchanged_kernel_regressed_beside_itself_even_without_a_baseline() {
    let project = Project::empty();
    let root = common::repository();
    common::copy(&root.join("kernels"), &project.path("kernels"));
    let config = std::fs::read(root.join("config.toml")).unwrap();
    project.write("config.toml", config);
    let from = common::recordings().join("unchanged/0e1a1be9/aa");
    let from = from.display().to_string();
    let judged = [
        "attention", "bsr_gemm/warp_specialized", "bsr_gemm/tma", "bsr_gemm/tma_wgmma",
        "trajectory_resample", "trajectory_resample_cached", "trajectory_resample_dense",
    ];
    let check = ["check", "--format", "json", "--from", &from];
    let report = project.run(&[&check[..], &judged].concat()).json();
    let mut verdicts = Vec::new();
    for variant in report.0["variants"].as_array().unwrap() {
        for comparison in variant["comparisons"].as_array().unwrap() {
            verdicts.extend(comparison["verdict"].as_str());
        }
    }
    assert!(verdicts.len() > 60, "{}", verdicts.len());
    assert!(!verdicts.contains(&"regressed") && !verdicts.contains(&"not-measured"));
}

/// The check of `cp_async` after an edit of its recording.
#[track_caller]
fn edited(edit: impl FnOnce(&mut Json), code: i32) -> Report {
    let project = Project::locked();
    project.edit_profile("cp_async", edit);
    project.check(&["cp_async"], code)
}

#[test]
fn the_verdict_follows_every_sample_being_edited_and_the_edit_is_told() {
    for (metric, factor, verdict, code) in [
        (DURATION, 1.1, "regressed", 1),
        (DURATION, 0.9, "improved", 0),
        (DURATION, 1.001, "pass", 0),
        ("tensor_core", 0.8, "regressed", 1),
        ("tensor_core", 1.2, "improved", 0),
    ] {
        let report = edited(|profile| scale(profile, metric, factor), code);
        let found = report.verdict("cp_async", metric);
        assert_eq!(found, verdict, "{metric} {factor}");
        assert_eq!(report.warned(), ["profile-altered"]);
        report.tells_all("profile-altered", &[metric]);
    }
    // An edited value alone changes no verdict.
    let edit = |it: &mut Json| it["kernels"][0]["metrics"][DURATION]["value"] = json!(1.0);
    let report = edited(edit, 0);
    assert_eq!(report.verdict("cp_async", DURATION), "pass");
    assert_eq!(report.warned(), ["profile-altered"]);
    // One launch counts as one. The stored value and spread stay: the samples decide, not these.
    let slow = |profile: &mut Json| {
        let mut samples = samples(profile, DURATION);
        *samples[0] = json!(samples[0].as_f64().unwrap() * 5.0);
    };
    let report = edited(slow, 0);
    assert_eq!(report.verdict("cp_async", DURATION), "pass");
    assert_eq!(report.warned(), ["profile-altered"]);
    // A launch that took no time makes nothing faster.
    let report = edited(|profile| scale(profile, DURATION, 0.0), 6);
    assert_eq!(report.denied_besides(&["implausible"]), ["not-measured"]);
    assert_eq!(report.verdict("cp_async", DURATION), "not-measured");
}

#[test]
fn processes_that_differ_by_more_than_the_tolerance_are_inconclusive_and_open_until_there_are_twice_as_many()
 {
    for (processes, open) in [(4, true), (8, false)] {
        let edit = |it: &mut Json| {
            keep_processes(it, processes);
            scale_processes(it, DURATION, &[0.9, 1.1]);
        };
        let report = edited(edit, 6);
        assert_eq!(report.denied(), ["inconclusive"]);
        let comparison = report.comparison("cp_async", DURATION);
        assert_eq!(comparison["verdict"], "inconclusive");
        assert_eq!(comparison["open"], open);
    }
    // One of eight is no reason.
    let one = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0];
    edited(|it| scale_processes(it, DURATION, &one), 0);
}

#[test]
fn launches_that_differ_within_their_process_are_no_noise_between_processes() {
    let project = Project::locked();
    let edit = |profile: &mut Json| {
        for (index, sample) in samples(profile, DURATION).into_iter().enumerate() {
            let factor = if index % 2 == 0 { 0.8 } else { 1.2 };
            *sample = json!(sample.as_f64().unwrap() * factor);
        }
        refresh(profile);
    };
    project.edit_profile("cp_async", edit);
    project.forge("cp_async", edit);
    let report = project.check(&["cp_async"], 0);
    assert_eq!(report.verdict("cp_async", DURATION), "pass");
}

fn pipe(path: &std::path::Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn a_recording_with_a_pipe_or_a_circle_of_links_ends() {
    let project = Project::locked();
    let folder = project.path(&format!("{RECORDED}/bsr_gemm/cp_async"));
    std::os::unix::fs::symlink(".", folder.join("a")).unwrap();
    std::os::unix::fs::symlink(".", folder.join("b")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.join("c.csv")).unwrap();
    project.check(&["cp_async"], 0);
    std::fs::remove_file(folder.join("profile.json")).unwrap();
    pipe(&folder.join("profile.json"));
    let report = project.check(&["cp_async"], 5);
    assert_eq!(report.denied(), ["capture-unreadable"]);
}

#[test]
fn a_gated_metric_that_was_not_measured_never_passes() {
    let project = Project::locked();
    let whole = project.read(&Project::profile_path("cp_async"));
    for (what, damage) in gaps() {
        project.write(&Project::profile_path("cp_async"), &whole);
        project.edit_profile("cp_async", damage);
        let report = project.check(&["cp_async"], 6);
        // A value that no counter has is named so, too.
        let denied = report.denied_besides(&["implausible"]);
        assert_eq!(denied, ["not-measured"], "{what}");
        let verdicts = ["tensor_core", DURATION].map(|it| report.verdict("cp_async", it));
        assert_eq!(verdicts, ["not-measured", "pass"], "{what}");
    }
    // One of level `warn` warns.
    let counter = "pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed\"\n";
    project.configure(counter, &format!("{counter}level = \"warn\"\n"));
    for (what, damage) in gaps() {
        project.write(&Project::profile_path("cp_async"), &whole);
        project.edit_profile("cp_async", damage);
        let report = project.check(&["cp_async"], 0);
        assert!(report.warns("not-measured"), "{what}");
        let verdict = report.verdict("cp_async", "tensor_core");
        assert_eq!(verdict, "not-measured", "{what}");
    }
}

#[test]
fn a_metric_in_another_unit_or_of_another_counter_is_not_measured_and_never_passes() {
    for (metric, key, value, words) in [
        (DURATION, "unit", "us", "`us`"),
        ("tensor_core", "counter", "sm__other.max", "sm__other.max"),
    ] {
        let edit = |profile: &mut Json| profile["identity"]["metrics"][metric][key] = json!(value);
        let report = edited(edit, 4);
        assert_eq!(report.verdict("cp_async", metric), "not-measured");
        report.denies_only("not-comparable", &[words]);
    }
}

#[test]
fn a_value_that_is_no_number_makes_the_profile_unreadable() {
    let project = Project::locked();
    let path = Project::profile_path("cp_async");
    project.edit(&path, |it| *samples(it, DURATION)[3] = json!("REPLACED"));
    let text = project.read(&path);
    for value in ["\"n/a\"", "NaN", "1e999", "true"] {
        project.write(&path, text.replace("\"REPLACED\"", value));
        let report = project.check(&["cp_async"], 5);
        assert_eq!(report.denied(), ["capture-unreadable"], "{value}");
    }
}

#[test]
fn fewer_launches_or_processes_than_were_asked_for_are_not_measured() {
    let launches = "at most 10 launches of a kernel were measured in a process of the timing phase, but 20 of each kernel were requested";
    let processes = "processes were measured in the timing phase, but 4 were requested";
    let counted = "at most 1 launches of a kernel were measured in a process of the counting phase, but 2 of each kernel were requested";
    let edits: [Damage; 4] = [
        (launches, |profile| keep_launches(profile, 10)),
        (counted, |profile| {
            let known = profile["identity"]["metrics"].clone();
            for (alias, series) in profile["kernels"][0]["metrics"].as_object_mut().unwrap() {
                if known[alias]["phase"] == "counting" {
                    series["samples"][0].as_array_mut().unwrap().truncate(1);
                }
            }
            refresh(profile);
        }),
        (processes, |profile| keep_processes(profile, 2)),
        // A process that is not named either.
        (processes, |profile| {
            keep_processes(profile, 3);
            profile["provenance"]["processes"] = json!(4);
        }),
    ];
    for (words, edit) in edits {
        let report = edited(edit, 6);
        // Fewer processes may tell less, too.
        assert_eq!(report.denied_besides(&["inconclusive"]), ["not-measured"]);
        report.tells_all("not-measured", &[words]);
    }
}

#[test]
fn a_finding_names_the_grid_only_where_one_kernel_has_several() {
    let project = Project::locked();
    project.edit_profile("cp_async", |profile| scale(profile, DURATION, 1.5));
    let report = project.check(&["cp_async"], 1);
    assert_eq!(report.findings("deny")[0]["launch"]["only"], true);
    let shown = project.run(&["check", "cp_async", "--from", common::RECORDED]);
    let shown = shown.ends(1, "bsr_gemm/cp_async: `duration`").out;
    assert!(!shown.contains("grid ("), "{shown}");
    let twice = |profile: &mut Json| {
        let mut second = profile["kernels"][0].clone();
        second["grid"] = json!([7, 1, 1]);
        profile["kernels"].as_array_mut().unwrap().push(second);
    };
    project.forge("cp_async", twice);
    project.edit_profile("cp_async", twice);
    // The hardware counts twice the work that is declared.
    let report = project.check(&["cp_async"], 4);
    let mut regressed = report.findings("deny");
    regressed.retain(|one| one["code"] == "regressed" && one["metric"].is_string());
    let grids = regressed
        .into_iter()
        .map(|one| one["launch"]["grid"].to_string());
    assert_eq!(grids.collect::<Vec<_>>(), ["null", "[64,64,1]", "[7,1,1]"]);
    let shown = project.run(&["check", "cp_async", "--from", common::RECORDED]);
    shown.ends(4, "cp_async, grid (7, 1, 1), block (128, 1, 1): `duration`");
}

#[test]
fn the_time_of_one_process_is_inconclusive_however_equal() {
    let project = Project::locked();
    project.configure("processes = 4", "processes = 1");
    project.edit_profile("cp_async", |profile| keep_processes(profile, 1));
    let inconclusive = || {
        let report = project.check(&["cp_async"], 6);
        for metric in GATED {
            let comparison = report.comparison("cp_async", metric);
            // Of a counter, launches stand for processes.
            let is_time = metric == "duration";
            let verdict = if is_time { "inconclusive" } else { "pass" };
            assert_eq!(comparison["verdict"], verdict, "{metric}");
            assert_eq!(comparison["open"], is_time, "{metric}");
            let why = comparison["why"].as_str().unwrap();
            assert_eq!(why.contains("it has one value"), is_time, "{why}");
        }
    };
    inconclusive();
    project.forge("cp_async", |profile| keep_processes(profile, 1));
    inconclusive();
}

#[test]
fn profiles_taken_under_other_conditions_are_not_comparable() {
    for (place, value, words) in [
        ("compute_capability", json!("8.0"), "the compute capability"),
        // The folder of the baselines that there are is named.
        ("gpu", json!("NVIDIA A100-SXM4-80GB"), common::GPU),
        // Another model whose name makes the same folder.
        ("gpu", json!("NVIDIA-H200"), "NVIDIA-H200"),
        ("clock_control", json!("base"), "clock control"),
        ("clock_control", Json::Null, "clock control"),
        ("cache_control", json!("none"), "cache control"),
        ("replay_mode", json!("application"), "replay mode"),
        ("graph_profiling", json!("graph"), "graph profiling"),
        ("workload/1", json!("4096"), "the workload"),
    ] {
        // Code for the target does not run on such a GPU.
        let (code, expected): (i32, &[&str]) = match place {
            "gpu" | "compute_capability" => (3, &["toolchain-mismatch", "not-comparable"]),
            _ => (4, &["not-comparable"]),
        };
        let edit = |profile: &mut Json| {
            // Slower too: which must not be said of what cannot be compared.
            scale(profile, DURATION, 2.0);
            *profile.pointer_mut(&format!("/identity/{place}")).unwrap() = value;
        };
        let report = edited(edit, code);
        assert_eq!(report.denied(), expected, "{place}");
        report.tells_all("not-comparable", &[words]);
    }
}

/// Leaves the kernels free to differ from what the configuration expects.
fn expecting_nothing() -> Project {
    let project = Project::locked();
    project.drop_config_lines("expect = ");
    project.drop_config_lines("work = ");
    project
}

fn second_kernel(profile: &mut Json) {
    let mut kernel = profile["kernels"][0].clone();
    kernel["name"] = json!("bsr_gemm_second");
    kernel["mangled"] = json!("_Z15bsr_gemm_second");
    kernel["demangled"] = Json::Null;
    profile["kernels"].as_array_mut().unwrap().push(kernel);
}

/// The verdict on the duration of a launch.
fn of_launch(report: &Report) -> &str {
    let comparisons = report.variant("cp_async")["comparisons"].as_array();
    let comparisons = comparisons.unwrap().iter();
    let mut of_kernel = comparisons.filter(|one| one["kernel"] == "bsr_gemm_cp_async");
    let duration = of_kernel.find(|one| one["metric"] == DURATION);
    duration.unwrap()["verdict"].as_str().unwrap()
}

#[test]
fn a_kernel_that_is_new_or_gone_is_a_finding_of_its_own() {
    for is_new in [true, false] {
        let project = expecting_nothing();
        match is_new {
            true => project.edit_profile("cp_async", second_kernel),
            false => project.forge("cp_async", second_kernel),
        }
        let report = project.check(&["cp_async"], 4);
        // The sum is twice as long, or half: more than is believed.
        let of_sum = if is_new { "regressed" } else { "implausible" };
        assert_eq!(report.denied(), [of_sum, "kernels-changed"]);
        report.tells_all("kernels-changed", &["bsr_gemm_second"]);
        assert_eq!(of_launch(&report), "pass");
    }
}

#[test]
fn a_kernel_that_is_launched_a_thousand_times_is_reported_though_no_launch_is_slower() {
    let project = expecting_nothing();
    project.forge("cp_async", second_kernel);
    project.edit_profile("cp_async", |profile| {
        second_kernel(profile);
        let metrics = profile["kernels"][1]["metrics"].as_object_mut().unwrap();
        for series in metrics.values_mut() {
            for process in series["samples"].as_array_mut().unwrap() {
                let launches = process.as_array_mut().unwrap();
                let once = launches.clone();
                launches.extend(once.into_iter().cycle().take(1000));
            }
        }
    });
    // The sum is longer.
    let report = project.check(&["cp_async"], 1);
    assert_eq!(report.denied(), ["regressed"]);
    report.tells_all("regressed", &["`duration` of (total)"]);
    assert_eq!(of_launch(&report), "pass");
}

#[test]
fn a_kernel_under_another_name_is_renamed_rather_than_new_and_gone() {
    let project = expecting_nothing();
    project.edit_profile("cp_async", |profile| {
        profile["kernels"][0]["name"] = json!("bsr_gemm_other");
        profile["kernels"][0]["mangled"] = json!("_Z14bsr_gemm_other");
    });
    let report = project.check(&["cp_async"], 4);
    assert_eq!(report.denied(), ["kernels-changed"]);
    let message = report.message("kernels-changed");
    assert!(message.contains("bsr_gemm_other") && message.contains("bsr_gemm_cp_async"));
}

#[test]
fn a_kernel_launched_in_another_shape_is_a_finding_of_its_own() {
    for dimension in ["grid", "block"] {
        let edit = |profile: &mut Json| {
            profile["kernels"][0][dimension] = json!([7, 5, 3]);
            // Slower too: another shape must not hide that.
            scale(profile, DURATION, 2.0);
        };
        let report = edited(edit, 4);
        assert_eq!(report.denied(), ["launch-changed", "regressed"]);
        report.tells_all("launch-changed", &["(7, 5, 3)"]);
    }
}

#[test]
fn a_kernel_that_the_configuration_expects_and_is_not_there_fails() {
    let project = Project::locked();
    project.configure(
        "expect = [\"bsr_gemm_cp_async\"]",
        "expect = [\"bsr_gemm_cp_async\", \"bsr_gemm_more\"]",
    );
    let report = project.check(&["cp_async"], 5);
    report.denies_only("kernel-missing", &["bsr_gemm_more"]);
}

#[test]
fn a_variant_without_a_baseline_is_new_and_the_command_that_locks_it_is_told() {
    let report = Project::unlocked().check(&["cp_async"], 4);
    assert_eq!(report.denied(), ["new-baseline"]);
    let next = report.findings("deny")[0]["next"].as_str().unwrap();
    let lock = "sparsek-gate baseline --lock --from recorded --reason '...' bsr_gemm/cp_async";
    assert!(next.contains(lock), "{next}");
}

#[test]
fn a_missing_profile_is_not_measured() {
    let project = Project::locked();
    std::fs::remove_dir_all(project.path("recorded/bsr_gemm/cp_async")).unwrap();
    assert_eq!(project.check(&[], 6).denied(), ["profile-missing"]);
}

#[test]
fn a_profile_that_cannot_be_read_fails_its_variant() {
    let project = Project::locked();
    let whole = project.read(&Project::profile_path("cp_async"));
    let with = |from: &str, to: &str| {
        assert!(whole.contains(from));
        whole.replacen(from, to, 1)
    };
    for text in [
        whole[..whole.len() / 2].to_owned(),
        String::new(),
        "sparsek".to_owned(),
        with("\"schema\": 3", "\"schema\": 99"),
        // The one before had no phases and no machines.
        with("\"schema\": 3", "\"schema\": 1"),
        with("\"kernels\"", "\"colonels\""),
        with("bsr_gemm/cp_async", "bsr_gemm/occupancy"),
    ] {
        project.write(&Project::profile_path("cp_async"), text);
        let report = project.check(&[], 5);
        report.denies_only("capture-unreadable", &["bsr_gemm/cp_async"]);
    }
}

#[test]
fn a_capture_of_other_bytes_beside_a_profile_is_not_a_missing_one() {
    let project = Project::locked();
    let capture = "recorded/bsr_gemm/cp_async/counting.csv";
    project.write(capture, project.read(capture) + "\n");
    let report = project.check(&["cp_async"], 0);
    assert_eq!(report.warned(), ["profile-altered"]);
    report.tells_all("profile-altered", &["counting.csv"]);
    // One that is missing changes no verdict.
    std::fs::remove_file(project.path(capture)).unwrap();
    std::fs::remove_file(project.path(&capture.replace("csv", "ncu-rep"))).unwrap();
    let report = project.check(&["cp_async"], 0);
    assert_eq!(report.warned(), ["capture-missing"]);
    assert_eq!(report.verdict("cp_async", DURATION), "pass");
}

#[test]
fn a_capture_is_found_by_its_bytes_whatever_its_name() {
    let project = Project::locked();
    let folder = project.path("recorded/bsr_gemm/cp_async");
    let rename = |from: &str, to: &str| {
        std::fs::create_dir_all(folder.join(to).parent().unwrap()).unwrap();
        std::fs::rename(folder.join(from), folder.join(to)).unwrap();
    };
    // Each of two has the name of the other one, and a third is elsewhere.
    rename("capture-1.records", "kept.records");
    rename("capture-2.records", "capture-1.records");
    rename("kept.records", "capture-2.records");
    rename("counting.csv", "below/it/page.csv");
    let report = project.check(&["cp_async"], 0);
    assert_eq!(report.warned(), Vec::<String>::new());
    // A copy under the name of another one is not that one, although its own hash is known.
    std::fs::remove_file(folder.join("capture-2.records")).unwrap();
    std::os::unix::fs::symlink("capture-1.records", folder.join("capture-2.records")).unwrap();
    let report = project.check(&["cp_async"], 0);
    assert_eq!(report.warned(), ["profile-altered"]);
    report.tells_all("profile-altered", &["`capture-"]);
}

#[test]
fn findings_have_the_order_of_the_variants_in_every_run() {
    let project = Project::locked();
    for variant in VARIANTS.iter() {
        for ending in ["ncu-rep", "csv"] {
            let capture = format!("recorded/bsr_gemm/{variant}/counting.{ending}");
            std::fs::remove_file(project.path(&capture)).unwrap();
        }
    }
    let findings = || {
        let report = project.check(&[], 0);
        let findings = report.findings("warn");
        let of = |finding: &Json| (finding["variant"].clone(), finding["message"].clone());
        findings.into_iter().map(of).collect::<Vec<_>>()
    };
    let first = findings();
    let variants = first.iter().map(|(variant, _)| variant.as_str().unwrap());
    let expected = VARIANTS.iter().map(|variant| format!("bsr_gemm/{variant}"));
    assert!(variants.eq(expected), "{first:?}");
    assert_eq!(findings(), first);
}

#[test]
fn a_report_goes_where_a_link_leads_and_into_a_pipe_and_never_over_the_configuration() {
    let project = Project::locked();
    project.write("real.md", "old");
    std::os::unix::fs::symlink("real.md", project.path("link.md")).unwrap();
    let path = project.path("pipe");
    pipe(&path);
    let reader = std::thread::spawn(move || std::fs::read_to_string(path).unwrap());
    let reports = "--report link.md --report text:pipe";
    let check = |more| project.run(&format!("check --from recorded cp_async {more}"));
    check(reports).exits(0);
    assert!(reader.join().unwrap().starts_with("same: "));
    assert!(project.path("link.md").is_symlink());
    assert!(project.read("real.md").contains("sparsek-gate"));
    let refused = check("--report text:config.toml").exits(2);
    refused.says("would replace a file that is read");
    check("--report nowhere/a.md").ends(2, "nowhere/a.md");
    let kept = format!("--report {}", Project::profile_path("cp_async"));
    check(&kept).ends(2, "would replace");
}

#[test]
fn what_is_worse_decides_the_exit_code() {
    let project = Project::locked();
    // 6: nothing but an inconclusive metric.
    project.edit_profile("occupancy", |profile| {
        *samples(profile, "tensor_core")[0] = Json::Null;
    });
    project.check(&[], 6);
    // 1 outranks 6.
    project.edit_profile("cp_async", |profile| scale(profile, DURATION, 1.5));
    let denied = project.check(&[], 1).denied();
    assert_eq!(denied, ["regressed", "not-measured"]);
    // 4 outranks 1.
    project.edit_profile("baseline", |profile| {
        profile["kernels"][0]["grid"] = json!([1, 1, 1]);
    });
    project.check(&[], 4);
    // 5 outranks 4.
    project.write(&Project::profile_path("occupancy"), "{");
    let report = project.check(&[], 5);
    for code in ["regressed", "launch-changed", "capture-unreadable"] {
        assert!(report.denies(code), "{code}");
    }
}

#[test]
fn a_hard_limit_holds_whatever_the_baseline_says() {
    let project = Project::locked();
    let config = project.read("config.toml");
    let metrics = &project.json(&Project::profile_path("cp_async"))["kernels"][0]["metrics"];
    let value = metrics["sm_active"]["value"].as_f64().unwrap();
    for (limit, by, code) in [
        ("min", 0.5, 1),
        ("min", -0.5, 0),
        ("max", -0.5, 1),
        ("max", 0.5, 0),
    ] {
        let bound = value + by;
        let metric = format!("[metric.sm_active]\n{limit} = {bound:.4}");
        project.write("config.toml", config.replace("[metric.sm_active]", &metric));
        let report = project.check(&["cp_async"], code);
        if code == 1 {
            assert_eq!(report.denied(), ["limit-exceeded"], "{limit} {by}");
            assert_eq!(report.verdict("cp_async", "sm_active"), "regressed");
            report.tells_all("limit-exceeded", &[&format!("{bound:.2} %")]);
        }
    }
}

#[test]
fn a_limit_is_not_applied_to_a_value_that_is_not_the_metrics() {
    for (key, value) in [("counter", "sm__throughput.max"), ("unit", "")] {
        let project = Project::locked();
        let metric = "[metric.sm_active]";
        project.configure(metric, &format!("{metric}\nmin = 60"));
        project.edit_profile("cp_async", |profile| {
            scale(profile, "sm_active", 0.01);
            profile["identity"]["metrics"]["sm_active"][key] = json!(value);
        });
        let report = project.check(&["cp_async"], 4);
        assert_eq!(report.verdict("cp_async", "sm_active"), "not-measured");
    }
}

#[test]
fn direction_equal_refuses_a_change_either_way() {
    for by in [-5.0, 0.0, 5.0] {
        let project = Project::locked();
        let counter = "counter = \"sm__cycles_active.avg.pct_of_peak_sustained_elapsed\"\n";
        let direction = |direction: &str| format!("{counter}direction = \"{direction}\"");
        project.configure(&direction("higher"), &direction("equal"));
        project.edit_profile("cp_async", |profile| shift(profile, "sm_active", by));
        let report = project.check(&["cp_async"], i32::from(by != 0.0));
        let expected = if by == 0.0 { "pass" } else { "regressed" };
        assert_eq!(report.verdict("cp_async", "sm_active"), expected);
    }
}

#[test]
fn a_regression_of_level_warn_warns_and_one_of_level_record_is_only_shown() {
    for (level, verdict, warned) in [("warn", "regressed", true), ("record", "recorded", false)] {
        let project = Project::locked();
        project.configure(
            "direction = \"lower\"\n",
            &format!("direction = \"lower\"\nlevel = \"{level}\"\n"),
        );
        project.edit_profile("cp_async", |profile| scale(profile, DURATION, 2.0));
        let report = project.check(&["cp_async"], 0);
        assert_eq!(report.verdict("cp_async", DURATION), verdict);
        assert_eq!(report.warns("regressed"), warned);
        assert_eq!(report.denied(), Vec::<String>::new());
    }
}

#[test]
fn relative_and_absolute_changes_are_shown_in_their_own_terms() {
    let project = Project::locked();
    project.edit_profile("cp_async", |profile| {
        scale(profile, DURATION, 1.1);
        shift(profile, "tensor_core", -10.0);
    });
    let ran = project.run("check --from recorded cp_async -v").exits(1);
    let line = |metric: &str| {
        let mut lines = ran.out.lines();
        let line = lines.find(|line| line.trim_start().starts_with(metric));
        line.unwrap().to_owned()
    };
    let duration = line(DURATION);
    common::contains(&duration, &["+9.99 % ±", " 4 % "]);
    assert!(!duration.contains(" pt"), "{duration}");
    common::contains(&line("tensor_core"), &["-9.96 pt ±", " 1.5 pt "]);
    let report = project.check(&["cp_async"], 1);
    let change = &report.comparison("cp_async", "tensor_core")["change"];
    assert!((change["absolute"].as_f64().unwrap() + 10.0).abs() < 0.06);
    let change = &report.comparison("cp_async", DURATION)["change"];
    assert!((change["relative_percent"].as_f64().unwrap() - 10.0).abs() < 0.05);
}

#[test]
fn a_utilization_that_fell_while_the_kernel_became_faster_says_both_in_one_breath() {
    let project = Project::locked();
    let config = project.read("config.toml");
    let strict = config.replace("unless_faster = true", "unless_faster = false");
    project.write("config.toml", strict);
    project.edit_profile("cp_async", |profile| {
        scale(profile, DURATION, 0.8);
        shift(profile, "tensor_core", -10.0);
    });
    let report = project.check(&["cp_async"], 1);
    assert_eq!(report.denied(), ["regressed"]);
    let words = ["-9.96 pt", "while the kernel became 20.0 % faster"];
    report.tells_all("regressed", &words);
    let why = report.comparison("cp_async", "tensor_core")["why"].to_string();
    assert!(why.contains("20.0 % faster"), "{why}");

    project.write("config.toml", config);
    let report = project.check(&["cp_async"], 0);
    assert_eq!(report.denied(), Vec::<String>::new());
    assert!(report.warns("regressed"));
    report.tells_all("regressed", &["20.0 % faster"]);
}

#[test]
fn unless_faster_excuses_nothing_where_the_kernel_did_not_become_measurably_faster() {
    for factor in [1.0, 1.02, 0.9999] {
        let edit = |profile: &mut Json| {
            scale(profile, DURATION, factor);
            shift(profile, "tensor_core", -10.0);
        };
        let report = edited(edit, 1);
        assert_eq!(report.denied(), ["regressed"], "{factor}");
        assert!(!report.message("regressed").contains("faster"), "{factor}");
    }
}

#[test]
fn a_share_of_a_baseline_of_nothing_is_nothing() {
    let relative = |project: &Project| {
        let of_tensor_core = "active.avg.pct_of_peak_sustained_elapsed\"\ndirection = \"higher\"\n";
        project.configure(
            &format!("tensor_cycles_{of_tensor_core}tolerance = {{ stored = \"1.5\" }}"),
            &format!("tensor_cycles_{of_tensor_core}tolerance = \"5 %\""),
        );
        project.forge("cp_async", |profile| scale(profile, "tensor_core", 0.0));
    };
    // Nothing against nothing passes.
    let project = Project::locked();
    relative(&project);
    project.edit_profile("cp_async", |profile| scale(profile, "tensor_core", 0.0));
    let report = project.check(&["cp_async"], 0);
    assert_eq!(report.verdict("cp_async", "tensor_core"), "pass");
    // Something against nothing is a change, shown in the counter's own terms and not as a share.
    let project = Project::locked();
    relative(&project);
    project.configure("counter = \"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed\"\ndirection = \"higher\"",
        "counter = \"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed\"\ndirection = \"equal\"",
    );
    let report = project.check(&["cp_async"], 1);
    assert_eq!(report.verdict("cp_async", "tensor_core"), "regressed");
    assert!(report.comparison("cp_async", "tensor_core")["change"]["absolute"].is_number());
}

#[test]
fn the_baseline_lacking_a_metric_is_not_comparable() {
    let project = Project::locked();
    project.forge("cp_async", |profile| {
        for place in ["/identity/metrics", "/kernels/0/metrics"] {
            let metrics = profile.pointer_mut(place).unwrap();
            metrics.as_object_mut().unwrap().remove("tensor_core");
        }
    });
    let report = project.check(&["cp_async"], 4);
    assert_eq!(report.denied(), ["not-comparable"]);
    assert_eq!(report.verdict("cp_async", "tensor_core"), "not-measured");
}

#[test]
fn reports_are_written_in_the_form_that_their_ending_names() {
    let project = Project::locked();
    project.edit_profile("cp_async", |profile| scale(profile, DURATION, 1.1));
    let reports = "--report a.md --report b.json --report c.txt";
    let check = format!("--color always check --from recorded {reports}");
    assert!(project.run(&check).exits(1).out.contains('\u{1b}'));
    let markdown = project.read("a.md");
    let first = "### ❌ sparsek-gate slower: ";
    assert!(markdown.starts_with(first), "{markdown}");
    assert!(markdown.contains("    bsr_gemm/cp_async ") && markdown.contains("`regressed`"));
    let json = project.json("b.json");
    assert_eq!(json["schema"], Outcome::SCHEMA);
    assert_eq!(json["exit_code"], 1);
    let text = project.read("c.txt");
    assert!(text.starts_with("slower: "), "{text}");
    let plain = project.run("check --from recorded").exits(1).out;
    assert!(!text.contains('\u{1b}') && !plain.contains('\u{1b}'));
}

#[test]
fn a_reader_that_closes_the_pipe_early_is_no_error() {
    let project = Project::locked();
    for code in [0, 1] {
        if code == 1 {
            project.edit_profile("cp_async", |profile| scale(profile, DURATION, 1.1));
        }
        let mut command = project.gate_of("check --from recorded");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let ran = common::Ran::of(&child.wait_with_output().unwrap());
        assert_eq!((ran.code, ran.err.as_str()), (code, ""));
    }
}

#[test]
fn a_recording_of_other_code_does_not_pass_for_this_code() {
    let project = Project::locked();
    let source = "kernels/bsr_gemm/cp_async.cu";
    project.write(source, project.read(source) + "// edited\n");
    let report = project.check(&["cp_async"], 4);
    report.denies_only("profile-stale", &[source]);
    // It read the source, too, and another one was compiled.
    let project = Project::locked();
    project.edit_profile("cp_async", |profile| {
        let argv = profile["provenance"]["build_argv"].as_array_mut();
        *argv.unwrap().last_mut().unwrap() = json!("kernels/bsr_gemm/harness.cuh");
    });
    let report = project.check(&["cp_async"], 4);
    report.denies_only("profile-stale", &["the flags in the configuration"]);
}

#[test]
fn a_recording_under_conditions_that_the_configuration_left_is_not_comparable() {
    let project = Project::locked();
    project.configure("clock_control = \"none\"", "clock_control = \"base\"");
    let report = project.check(&["cp_async"], 4);
    report.denies_only("not-comparable", &["clock control"]);
}

#[test]
fn what_is_locked_and_the_configuration_dropped_does_not_leave_the_gate_unseen() {
    let project = Project::locked();
    let config = project.read("config.toml");
    let without = |table: &str| {
        let (before, rest) = config.split_once(table).unwrap();
        let (_, after) = rest.split_once("\n[").unwrap();
        project.write("config.toml", format!("{before}[{after}"));
    };
    let occupancy = "[suite.bsr_gemm.variant.occupancy]";
    without(occupancy);
    assert_eq!(project.check(&[], 4).denied(), ["variant-gone"]);
    // Asked for the others by name, there is nothing to say of it.
    project.check(&["baseline", "cp_async"], 0);

    // So is a metric.
    without("[metric.sm_active]");
    assert_eq!(project.check(&["cp_async"], 4).denied(), ["variant-gone"]);

    let experimental = format!("{occupancy}\nexperimental = true");
    project.write("config.toml", config.replace(occupancy, &experimental));
    assert_eq!(project.check(&[], 4).denied(), ["variant-gone"]);
    assert_eq!(project.check(&["bsr_gemm"], 4).denied(), ["variant-gone"]);
}

#[test]
fn a_duration_of_another_counter_excuses_nothing() {
    let edit = |profile: &mut Json| {
        shift(profile, "tensor_core", -10.0);
        scale(profile, DURATION, 0.5);
        profile["identity"]["metrics"][DURATION]["counter"] = json!("launch__registers_per_thread");
    };
    assert_eq!(edited(edit, 4).denied(), ["not-comparable", "regressed"]);
}

#[test]
fn names_of_files_in_the_store_cannot_steer_the_terminal() {
    let project = Project::locked();
    let folder = project.path(&format!("baselines/{}/x\u{1b}[31m", common::GPU));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("v.lock.toml"), "").unwrap();
    let ran = project.run("--color never check --from recorded").exits(0);
    assert!(!ran.out.contains('\u{1b}'), "{}", ran.out);
}

#[test]
fn the_same_recording_gives_the_same_report_to_the_byte() {
    let project = Project::shipped();
    let report = |variants: &str| {
        let ran = project.run(&format!("check --from recorded --format json {variants}"));
        ran.json();
        ran.out
    };
    assert_eq!(report(""), report(""));
    // In whatever order the variants are named.
    assert_eq!(report("cp_async baseline"), report("baseline cp_async"));
}

#[test]
fn what_else_lies_in_a_recording_changes_nothing_that_is_said_of_a_variant() {
    let project = Project::locked();
    project.edit_profile("cp_async", |profile| scale(profile, DURATION, 1.1));
    let report = || {
        let ran = project.run("check --from recorded --format json cp_async");
        ran.exits(1).out
    };
    let whole = report();
    // Files that nobody wrote here, and profiles of variants that were not asked for.
    for path in [
        "notes.txt", "profile.json", "bsr_gemm/profile.json", "bsr_gemm/cp_async/capture-9.csv",
        "bsr_gemm/nobody/profile.json", "faults/crash/profile.json",
    ] {
        project.write(&format!("{RECORDED}/{path}"), "{");
    }
    assert_eq!(report(), whole);
    for variant in VARIANTS.iter().filter(|v| *v != "cp_async") {
        std::fs::remove_dir_all(project.path(&format!("{RECORDED}/bsr_gemm/{variant}"))).unwrap();
    }
    assert_eq!(report(), whole);
}

#[test]
fn launches_of_longer_processes_do_not_make_up_for_processes_that_are_missing() {
    let project = Project::locked();
    // As many launches, in half of the processes that are asked for.
    project.configure("launches = 20", "launches = 10");
    project.configure("processes = 4", "processes = 16");
    assert_eq!(project.check(&["cp_async"], 6).denied(), ["not-measured"]);
}

#[test]
fn the_page_on_reports_shows_what_the_program_prints_of_the_worse_recording() {
    let page = std::fs::read_to_string(common::repository().join("docs/reports.md")).unwrap();
    let check = "check bsr_gemm/cp_async --from ci/recordings/h200-worse";
    let shown = page.split(&format!("$ sparsek-gate {check}\n")).nth(1);
    let shown = shown.unwrap().split("```").next().unwrap();
    assert_eq!(
        common::in_repository(&common::words(check)).exits(1).out,
        shown
    );
}

#[test]
fn where_no_metric_has_a_tolerance_for_the_comparison_nothing_passes() {
    let project = Project::locked();
    let config = project.read("config.toml");
    let exact = regex::Regex::new(r"exact = true\n").unwrap();
    let config = config.replace("stored = ", "against = ");
    // The duration has two tolerances, of which one is left.
    let config = config.replace("against = \"4 %\", ", "");
    let config = exact.replace_all(&config, "exact = true\nlevel = \"record\"\n");
    let config = regex::Regex::new(
        r"(level = \x22record\x22\n)(counts = [^\n]*\n)?(level = \x22record\x22\n)?",
    )
    .unwrap()
    .replace_all(&config, "$1");
    project.write("config.toml", &*config);
    project.drop_config_lines("work = ");
    let report = project.check(&["cp_async"], 6);
    assert_eq!(report.denied(), ["not-measured"]);
    report.tells_all("not-measured", &["no metric of it is judged"]);
}
