//! `check --from` a recording that holds a base beside the head, and `check --against` up to where
//! it needs a GPU.

use crate::common::{
    self, Damage, Project, RECORDED, gaps, keep_launches, keep_processes, samples, scale,
    scale_processes, shift,
};
use serde_json::{Value as Json, json};
use sparsek_gate::config::Config;
use sparsek_gate::finding::{Error, ExitCode};
use sparsek_gate::measure::BaseProject;
use sparsek_gate::trust::{Asked, Bases, bases};

const DURATION: &str = "duration";
const GATED: [&str; 4] = ["duration", "sm_active", "tensor_core", "dram_bw"];

/// A recording in which base and head of `cp_async` are the same. Utilizations are judged side by side too.
fn recorded() -> Project {
    with_base(Project::steady())
}

fn with_base(project: Project) -> Project {
    let mut config = project.read("config.toml");
    for points in ["1.5", "2.5"] {
        let stored = format!("tolerance = {{ stored = \"{points}\" }}");
        assert!(config.contains(&stored));
        config = config.replace(&stored, &format!("tolerance = \"{points}\""));
    }
    project.write("config.toml", config);
    project.add_base("cp_async", |base| {
        base["provenance"]["git"] = json!("0ba5e")
    });
    project
}

fn percent(comparison: &Json) -> f64 {
    comparison["change"]["relative_percent"].as_f64().unwrap()
}

#[test]
fn a_head_that_is_its_base_passes_and_is_judged_against_that() {
    let report = recorded().check(&["cp_async"], 0);
    let judged = report.variant("cp_async");
    assert_eq!(judged["mode"], "against");
    assert_eq!(judged["reference"]["git"], "0ba5e");
    for metric in GATED {
        assert_eq!(report.verdict("cp_async", metric), "pass", "{metric}");
    }
    assert!(!report.warns("drift"));
}

#[test]
fn a_head_slower_by_less_than_the_stored_tolerance_regresses_against_its_base() {
    let project = recorded();
    project.edit_profile("cp_async", |head| scale(head, DURATION, 1.01));
    let report = project.check(&["cp_async"], 1);
    assert_eq!(report.denied(), ["regressed"]);
    assert_eq!(report.verdict("cp_async", DURATION), "regressed");
    assert!((percent(report.comparison("cp_async", DURATION)) - 1.0).abs() < 1e-6);
    for metric in &GATED[1..] {
        assert_eq!(report.verdict("cp_async", metric), "pass", "{metric}");
    }
    // Without the base the stored tolerance holds, and it passes.
    std::fs::remove_file(project.path(&Project::base_path("cp_async"))).unwrap();
    let report = project.check(&["cp_async"], 0);
    assert_eq!(report.variant("cp_async")["mode"], "stored");
    assert_eq!(report.verdict("cp_async", DURATION), "pass");
}

#[test]
fn a_utilization_that_is_open_only_warns_where_the_kernel_became_faster() {
    for (duration, code) in [(0.96, 0), (1.0, 6)] {
        let project = with_base(Project::steady_by_ncu());
        project.edit_profile("cp_async", |head| {
            scale(head, DURATION, duration);
            shift(head, "sm_active", -1.5);
            scale_processes(head, "sm_active", &[0.999, 1.001]);
        });
        let report = project.check(&["cp_async"], code);
        let open = report.comparison("cp_async", "sm_active");
        assert_eq!(open["verdict"], "inconclusive");
        assert_eq!(open["open"], duration == 1.0);
        assert_eq!(report.warns("inconclusive"), duration < 1.0);
    }
}

#[test]
fn what_drifts_on_both_sides_is_a_warning_and_fails_nothing() {
    for factor in [1.1, 0.9] {
        let project = recorded();
        for edit in [Project::edit_profile, edit_base] {
            edit(&project, "cp_async", |profile: &mut Json| {
                scale(profile, DURATION, factor);
            });
        }
        let report = project.check(&["cp_async"], 0);
        assert_eq!(report.verdict("cp_async", DURATION), "pass");
        assert_eq!(report.denied(), Vec::<String>::new());
        let warned = report.findings("warn");
        let drift: Vec<&&Json> = warned
            .iter()
            .filter(|text| text["code"] == "drift")
            .collect();
        assert_eq!(drift.len(), 1, "{warned:#?}");
        assert_eq!(drift[0]["metric"], DURATION);
        let text = drift[0]["message"].as_str().unwrap();
        common::contains(text, &[&format!("{:+.2} %", (factor - 1.0) * 100.0)]);
        let of_base = report.variant("cp_async")["drift"].as_array().unwrap();
        let of_base = of_base.iter().find(|drift| drift["metric"] == DURATION);
        assert!((percent(of_base.unwrap()) - (factor - 1.0) * 100.0).abs() < 1e-6);
        project
            .run("check --from recorded cp_async -v")
            .ends(0, "drift of the base from its locked baseline: ");
    }
}

fn edit_base(project: &Project, variant: &str, edit: impl FnOnce(&mut Json)) {
    project.edit(&Project::base_path(variant), edit);
}

#[test]
fn a_base_of_another_variant_or_one_that_cannot_be_read_is_refused() {
    let other = Project::unlocked().read(&Project::profile_path("occupancy"));
    for (what, text, words) in [
        ("another variant", other.as_str(), "bsr_gemm/occupancy"),
        ("cut", &other[..other.len() / 2], "base/profile.json"),
        (
            "NaN",
            &other.replacen("[[", "[[NaN, ", 1),
            "base/profile.json",
        ),
    ] {
        let project = recorded();
        project.write(&Project::base_path("cp_async"), text);
        let report = project.check(&["cp_async"], 5);
        assert_eq!(report.denied(), ["capture-unreadable"], "{what}");
        report.tells_all("capture-unreadable", &[words]);
    }
}

#[test]
fn a_metric_that_either_side_did_not_measure_never_passes() {
    for (what, damage) in gaps() {
        for (of_base, code, finding) in [(false, 6, "not-measured"), (true, 4, "not-comparable")] {
            let project = recorded();
            match of_base {
                true => edit_base(&project, "cp_async", damage),
                false => project.edit_profile("cp_async", damage),
            }
            let report = project.check(&["cp_async"], code);
            let denied = match of_base {
                true => report.denied(),
                false => report.denied_besides(&["implausible"]),
            };
            assert_eq!(denied, [finding], "{what}");
            let verdict = |metric| report.verdict("cp_async", metric);
            assert_eq!(verdict("tensor_core"), "not-measured", "{what}");
            assert_eq!(verdict(DURATION), "pass", "{what}");
        }
    }
}

#[test]
fn a_side_that_measured_another_counter_or_in_another_unit_never_passes() {
    let edits: [Damage; 2] = [
        ("counter", |profile| {
            profile["identity"]["metrics"]["tensor_core"]["counter"] =
                json!("sm__throughput.avg.pct_of_peak_sustained_elapsed");
        }),
        ("unit", |profile| {
            profile["identity"]["metrics"]["tensor_core"]["unit"] = json!("us");
        }),
    ];
    for (what, edit) in edits {
        let head = recorded();
        head.edit_profile("cp_async", edit);
        let base = recorded();
        edit_base(&base, "cp_async", edit);
        for (side, project) in [("head", head), ("base", base)] {
            let report = project.check(&["cp_async"], 4);
            assert_eq!(report.denied(), ["not-comparable"], "{what} of the {side}");
            assert_eq!(report.verdict("cp_async", "tensor_core"), "not-measured");
        }
    }
}

#[test]
fn sides_under_other_conditions_are_not_comparable() {
    let edits: [Damage; 3] = [
        ("clock control", |profile| {
            profile["identity"]["clock_control"] = json!("base");
        }),
        ("the workload", |profile| {
            profile["identity"]["workload"][1] = json!("4096");
        }),
        ("the GPU", |profile| {
            profile["identity"]["gpu"] = json!("NVIDIA-H200");
        }),
    ];
    for (what, edit) in edits {
        let project = recorded();
        edit_base(&project, "cp_async", edit);
        let report = project.check(&["cp_async"], 4);
        assert_eq!(report.denied(), ["not-comparable"], "{what}");
        let message = report.message("not-comparable");
        assert!(
            message.starts_with("base ") && message.contains(what),
            "{message}"
        );
    }
}

#[test]
fn a_kernel_under_another_name_or_in_another_shape_is_judged_and_warned_of() {
    let edits: [Damage; 2] = [
        ("kernels-changed", |head| {
            head["kernels"][0]["name"] = json!("bsr_gemm_other");
            head["kernels"][0]["mangled"] = json!("_Z14bsr_gemm_other");
        }),
        ("launch-changed", |head| {
            head["kernels"][0]["block"] = json!([256, 1, 1])
        }),
    ];
    for (code, edit) in edits {
        let project = recorded();
        project.drop_config_lines("expect = ");
        project.edit_profile("cp_async", edit);
        let report = project.check(&["cp_async"], 0);
        assert!(report.warned().contains(&code.to_owned()), "{code}");
        project.edit_profile("cp_async", |head| scale(head, DURATION, 1.01));
        assert_eq!(
            project.check(&["cp_async"], 1).denied(),
            ["regressed"],
            "{code}"
        );
    }
}

#[test]
fn a_variant_beside_its_base_needs_no_lock() {
    let project = recorded();
    std::fs::remove_dir_all(project.path("baselines")).unwrap();
    project.edit_profile("cp_async", |head| scale(head, DURATION, 1.05));
    let report = project.check(&["cp_async"], 1);
    assert_eq!(report.denied(), ["regressed"]);
    assert_eq!(report.variant("cp_async")["drift"], json!([]));
}

#[test]
fn a_locked_metric_that_the_configuration_no_longer_names_is_reported_beside_a_base_too() {
    let project = recorded();
    let config = project.read("config.toml");
    let (before, rest) = config.split_once("[metric.sm_active]").unwrap();
    let (_, after) = rest.split_once("\n[").unwrap();
    project.write("config.toml", format!("{before}[{after}"));
    for mode in ["against", "stored"] {
        let report = project.check(&["cp_async"], 4);
        assert_eq!(report.variant("cp_async")["mode"], mode);
        assert_eq!(report.denied(), ["variant-gone"], "{mode}");
        report.tells_all(
            "variant-gone",
            &["`sm_active` (sm__cycles_active", "is locked"],
        );
        let _ = std::fs::remove_file(project.path(&Project::base_path("cp_async")));
    }
}

#[test]
fn the_tables_show_the_tolerance_of_this_mode_and_where_it_fails() {
    let project = recorded();
    project.edit_profile("cp_async", |head| {
        scale(head, DURATION, 1.01);
        shift(head, "sm_active", -3.0);
    });
    let report = project.check(&["cp_async"], 1);
    for (metric, unit) in [(DURATION, "%"), ("sm_active", "pt")] {
        let comparison = report.comparison("cp_async", metric);
        let tolerance = &comparison["tolerance"];
        let tolerance = [&tolerance["relative_percent"], &tolerance["absolute"]]
            .into_iter()
            .find_map(Json::as_f64)
            .unwrap();
        let threshold = comparison["threshold"].as_f64().unwrap();
        // The width of the interval comes on top of it, in the direction that is worse.
        assert!(threshold.abs() > tolerance, "{threshold} {tolerance}");
        assert_eq!(threshold > 0.0, metric == DURATION);
        let ran = project
            .run("check --from recorded cp_async -v")
            .ends(1, "fails beyond")
            .says("base");
        let mut lines = ran.out.lines();
        let line = lines.find(|line| line.trim_start().starts_with(metric));
        let line = line.unwrap();
        for shown in [
            format!(" {tolerance} {unit} "),
            format!(" {threshold:+.2} {unit} "),
        ] {
            assert!(line.contains(&shown), "{shown:?} is not in {line}");
        }
    }
}

#[test]
fn a_side_of_fewer_launches_or_processes_than_asked_never_passes() {
    let edits: [Damage; 2] = [
        ("launches", |profile| keep_launches(profile, 10)),
        ("processes", |profile| keep_processes(profile, 2)),
    ];
    for (what, edit) in edits {
        let project = recorded();
        edit_base(&project, "cp_async", edit);
        let ran = project.run("check --from recorded cp_async");
        assert_ne!(ran.code, 0, "{what}: {}", ran.out);
        let project = recorded();
        project.edit_profile("cp_async", edit);
        let ran = project.run("check --from recorded cp_async --format json");
        assert_ne!(ran.code, 0, "{what}: {}", ran.out);
        let expected = match what {
            "launches" => "not-measured",
            _ => "not-comparable",
        };
        let denied = ran.json().denied();
        assert!(denied.contains(&expected.to_owned()), "{what}: {denied:?}");
    }
}

#[test]
fn an_edited_base_is_told() {
    let project = Project::locked();
    let head = project.path(&format!("{RECORDED}/bsr_gemm/cp_async"));
    common::copy(&head, &project.path("captures"));
    std::fs::rename(project.path("captures"), head.join("base")).unwrap();
    // Whether its noise reaches across the tolerance is not the question here.
    let warned = || {
        let ran = project.run("check --from recorded --format json cp_async");
        ran.json().warned()
    };
    assert_eq!(warned(), Vec::<String>::new());
    edit_base(&project, "cp_async", |base| {
        let sample = &mut samples(base, DURATION)[0];
        **sample = json!(sample.as_f64().unwrap() + 32.0);
    });
    assert_eq!(warned(), ["profile-altered"]);
}

#[test]
fn a_base_of_an_earlier_measurement_is_not_judged_against() {
    let project = recorded();
    let id = "bsr_gemm/cp_async".to_owned().try_into().unwrap();
    sparsek_gate::files::empty_variant_folder(&project.path(RECORDED), &id).unwrap();
    assert!(!project.path(&Project::base_path("cp_async")).exists());
    let counted = format!("{RECORDED}/bsr_gemm/cp_async/counting.ncu-rep");
    assert!(!project.path(&counted).exists());
}

// `--against`, as far as it goes without a GPU.

const CONFIG: &str = "[metric.duration]\ndirection = \"lower\"\n\
    tolerance = '3 %'\n[suite.s.variant.v]\nrun = [\"true\"]\n";

/// A repository with one commit, and a change that is not in it.
fn repository() -> Project {
    let project = Project::empty();
    project.write("config.toml", CONFIG);
    project.write(".gitignore", ".sparsek-gate/\n");
    project.commit();
    project.write("config.toml", CONFIG.replace("3 %", "4 %"));
    project
}

/// HEAD beside the work.
fn check_out(project: &Project, config: &str) -> BaseProject {
    let config = Config::load(&project.path(config)).unwrap();
    BaseProject::check_out(&config, &project.git("rev-parse HEAD")).unwrap()
}

/// What a person asks to compare with.
fn against(project: &Project, revision: &str) -> Result<Bases, Error> {
    let asked = Asked {
        against: Some(revision),
        ..Asked::default()
    };
    bases(&project.path("."), asked, |_| None)
}

/// Worktrees that git knows, and folders that are left of one.
fn worktrees(project: &Project) -> (usize, usize) {
    let folder = project.path(".sparsek-gate/worktrees");
    let left = std::fs::read_dir(folder).map_or(0, Iterator::count);
    let known = project.git("worktree list");
    (known.lines().count(), left)
}

#[test]
fn a_base_is_checked_out_beside_the_work_and_leaves_nothing_behind() {
    let project = repository();
    let base = check_out(&project, "config.toml");
    assert_eq!(base.commit(), Some(&*project.git("rev-parse HEAD")));
    assert_eq!(worktrees(&project), (2, 1));
    drop(base);
    assert_eq!(worktrees(&project), (1, 0));
    assert!(project.read("config.toml").contains("4 %"));
}

#[test]
fn what_a_killed_run_left_does_not_stand_in_the_way() {
    let project = repository();
    let places = ".sparsek-gate/worktrees";
    let clears = || {
        drop(check_out(&project, "config.toml"));
        assert_eq!(worktrees(&project), (1, 0));
    };
    // In a container the process numbers start again each time.
    std::mem::forget(check_out(&project, "config.toml"));
    clears();
    // Without its folder git still knows it.
    std::mem::forget(check_out(&project, "config.toml"));
    std::fs::remove_dir_all(project.path(places)).unwrap();
    clears();
    // Git does not know a cached work folder beside a fresh clone. No process has a number so high.
    project.write(&format!("{places}/0123456789ab-4194305/config.toml"), "");
    clears();
}

#[test]
fn a_revision_that_is_not_there_is_a_slip_and_leaves_no_worktree() {
    let project = repository();
    project.git("tag on-a-file HEAD:config.toml");
    for revision in [
        "nowhere", "", "HEAD~7", "on-a-file", "--help", "-1", "--output=x", "a b",
        "HEAD:config.toml",
    ] {
        let error = against(&project, revision).unwrap_err();
        assert_eq!(error.exit_code(), ExitCode::Usage, "{revision}");
        let told = error.to_string();
        let words = format!("`--against {revision}`: there is no such revision");
        assert!(told.contains(&words), "{told}");
        assert_eq!(worktrees(&project), (1, 0), "{revision}");
    }
    assert!(!project.path("x").exists());
}

#[test]
fn a_folder_that_is_no_repository_has_no_revisions() {
    let project = Project::empty();
    project.write("config.toml", CONFIG);
    let error = against(&project, "HEAD").unwrap_err();
    assert_eq!(error.exit_code(), ExitCode::Environment);
    assert!(
        error
            .to_string()
            .contains("`--against HEAD`: fatal: not a git repository"),
        "{error}"
    );
}

#[test]
fn a_project_below_the_root_of_its_repository_is_found_in_the_base() {
    let project = Project::empty();
    project.write("below/config.toml", CONFIG);
    project.commit();
    let base = check_out(&project, "below/config.toml");
    let places: Vec<_> = std::fs::read_dir(project.path("below/.sparsek-gate/worktrees"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(matches!(&places[..], [place] if place.join("below/config.toml").exists()));
    assert!(!format!("{base:?}").contains("cannot read"), "{base:?}");
}

#[test]
fn against_needs_a_gpu_and_no_recording() {
    let project = repository();
    project
        .run("check --against HEAD --from .")
        .ends(2, "cannot be used with");
    if common::has_driver() {
        return;
    }
    project
        .run("check --against HEAD")
        // Without ncu that is named first.
        .ends(3, "next: ");
    assert_eq!(worktrees(&project), (1, 0));
}

#[test]
fn a_slip_in_the_revision_is_told_before_a_gpu_is_asked_for() {
    let project = repository();
    for revision in ["nowhere", "--help"] {
        let revision = format!("--against={revision}");
        project
            .run(&["check", &revision])
            .ends(2, "there is no such revision");
        assert_eq!(worktrees(&project), (1, 0));
    }
}
