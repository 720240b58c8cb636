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
fn a_head_slower_by_less_than_the_stored_tolerance_regresses_against_its_base() {
    let project = recorded();
    project.edit_profile("cp_async", |head| scale(head, DURATION, 1.01));
    let report = project.check(&["cp_async"], 1);
    let judged = report.variant("cp_async");
    assert_eq!(judged["mode"], "against");
    assert_eq!(judged["reference"]["git"], "0ba5e");
    assert_eq!(report.denied(), ["regressed"]);
    assert!(!report.warns("drift"));
    let verdicts = GATED.map(|metric| report.verdict("cp_async", metric));
    assert_eq!(verdicts, ["regressed", "pass", "pass", "pass"]);
    assert!((percent(report.comparison("cp_async", DURATION)) - 1.0).abs() < 1e-6);
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
            edit(&project, "cp_async", |it: &mut Json| {
                scale(it, DURATION, factor);
            });
        }
        let report = project.check(&["cp_async"], 0);
        assert_eq!(report.verdict("cp_async", DURATION), "pass");
        assert_eq!(report.denied(), Vec::<String>::new());
        let by = (factor - 1.0) * 100.0;
        report.tells_all("drift", &["`duration`", &format!("{by:+.2} %")]);
        let of_base = report.variant("cp_async")["drift"].as_array().unwrap();
        let of_base = of_base.iter().find(|drift| drift["metric"] == DURATION);
        assert!((percent(of_base.unwrap()) - by).abs() < 1e-6);
        let shown = project.run("check --from recorded cp_async -v");
        shown.ends(0, "drift of the base from its locked baseline: ");
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
fn a_metric_that_either_side_did_not_measure_or_measured_otherwise_never_passes() {
    let otherwise: [Damage; 2] = [
        ("counter", |profile| {
            profile["identity"]["metrics"]["tensor_core"]["counter"] =
                json!("sm__throughput.avg.pct_of_peak_sustained_elapsed");
        }),
        ("unit", |profile| {
            profile["identity"]["metrics"]["tensor_core"]["unit"] = json!("us");
        }),
    ];
    let (absent, other) = ((6, "not-measured"), (4, "not-comparable"));
    let gaps = gaps().into_iter().map(|damage| (damage, absent));
    let all = gaps.chain(otherwise.map(|damage| (damage, other)));
    for ((what, damage), of_head) in all {
        for (of_base, (code, finding)) in [(false, of_head), (true, other)] {
            let project = recorded();
            match of_base {
                true => edit_base(&project, "cp_async", damage),
                false => project.edit_profile("cp_async", damage),
            }
            let report = project.check(&["cp_async"], code);
            let denied = report.denied_besides(&["implausible"]);
            assert_eq!(denied, [finding], "{what}");
            let verdicts = ["tensor_core", DURATION].map(|it| report.verdict("cp_async", it));
            assert_eq!(verdicts, ["not-measured", "pass"], "{what}");
        }
    }
}

#[test]
fn sides_under_other_conditions_are_not_comparable() {
    for (place, value, what) in [
        ("clock_control", "base", "clock control"),
        ("workload/1", "4096", "the workload"),
        ("gpu", "NVIDIA-H200", "the GPU"),
    ] {
        let project = recorded();
        edit_base(&project, "cp_async", |base| {
            *base.pointer_mut(&format!("/identity/{place}")).unwrap() = json!(value);
        });
        let report = project.check(&["cp_async"], 4);
        report.denies_only("not-comparable", &[what]);
        assert!(report.message("not-comparable").starts_with("base "));
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
        assert!(project.check(&["cp_async"], 0).warns(code), "{code}");
        project.edit_profile("cp_async", |head| scale(head, DURATION, 1.01));
        let denied = project.check(&["cp_async"], 1).denied();
        assert_eq!(denied, ["regressed"], "{code}");
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
        let words = ["`sm_active` (sm__cycles_active", "is locked"];
        report.denies_only("variant-gone", &words);
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
    let shown = project.run("check --from recorded cp_async -v");
    let shown = shown.ends(1, "fails beyond").says("base").out;
    for (metric, key, unit) in [
        (DURATION, "relative_percent", "%"),
        ("sm_active", "absolute", "pt"),
    ] {
        let comparison = report.comparison("cp_async", metric);
        let tolerance = comparison["tolerance"][key].as_f64().unwrap();
        let threshold = comparison["threshold"].as_f64().unwrap();
        // The width of the interval comes on top of it, in the direction that is worse.
        assert!(threshold.abs() > tolerance, "{threshold} {tolerance}");
        assert_eq!(threshold > 0.0, metric == DURATION);
        let mut lines = shown.lines();
        let line = lines.find(|line| line.trim_start().starts_with(metric));
        let words = [
            format!(" {tolerance} {unit} "),
            format!(" {threshold:+.2} {unit} "),
        ];
        common::contains(line.unwrap(), &words.each_ref().map(String::as_str));
    }
}

#[test]
fn a_side_of_fewer_launches_or_processes_than_asked_never_passes() {
    let edits: [Damage; 2] = [
        ("not-measured", |profile| keep_launches(profile, 10)),
        ("not-comparable", |profile| keep_processes(profile, 2)),
    ];
    for (expected, edit) in edits {
        for path in [Project::profile_path, Project::base_path] {
            let project = recorded();
            project.edit(&path("cp_async"), edit);
            let ran = project.run("check --from recorded cp_async --format json");
            assert_ne!(ran.code, 0, "{expected}: {}", ran.out);
            let of_base = path("") == Project::base_path("");
            assert!(of_base || ran.json().denies(expected), "{}", ran.out);
        }
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
fn check_out(project: &Project) -> BaseProject {
    let config = Config::load(&project.path("config.toml")).unwrap();
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
fn what_a_killed_run_left_does_not_stand_in_the_way() {
    let project = repository();
    let places = ".sparsek-gate/worktrees";
    let clears = || {
        drop(check_out(&project));
        assert_eq!(worktrees(&project), (1, 0));
    };
    // In a container the process numbers start again each time.
    std::mem::forget(check_out(&project));
    clears();
    // Without its folder git still knows it.
    std::mem::forget(check_out(&project));
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
        let said = error.to_string();
        let words = format!("`--against {revision}`: there is no such revision");
        assert!(said.contains(&words), "{said}");
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
    let words = "`--against HEAD`: fatal: not a git repository";
    common::contains(&error.to_string(), &[words]);
}

#[test]
fn against_needs_a_gpu_and_no_recording_and_a_slip_in_the_revision_is_told_before() {
    let project = repository();
    let both = project.run("check --against HEAD --from .");
    both.ends(2, "cannot be used with");
    for (revision, answer) in [
        ("nowhere", "there is no such revision"),
        ("--help", "there is no such revision"),
        (
            "HEAD~1..HEAD",
            "it is a range\n  next: name one revision, such as its first: HEAD~1",
        ),
    ] {
        let ran = project.run(&format!("check --against={revision}"));
        ran.ends(2, answer);
        assert_eq!(worktrees(&project), (1, 0));
    }
    if common::has_driver() {
        return;
    }
    // Without ncu that is named first.
    project.run("check --against HEAD").ends(3, "next: ");
    assert_eq!(worktrees(&project), (1, 0));
}
