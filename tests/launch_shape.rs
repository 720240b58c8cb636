//! What a launch has besides its kernel: dynamic shared memory that is learned, locked and compared, and
//! what the configuration states of it.

use std::collections::BTreeMap;

use crate::common::{self, Project, RECORDED, Report};
use serde_json::{Value as Json, json};
use sparsek_gate::capture;
use sparsek_gate::config::Config;
use sparsek_gate::metric::Role;
use sparsek_gate::profile::{Source, derive};
use sparsek_gate::terms::Phase;

/// What `cp_async` is launched with, and with three of its four stages.
const FOUR_STAGES: u32 = 75776;
const THREE_STAGES: u32 = 56832;

fn static_path() -> String {
    format!("{RECORDED}/bsr_gemm/cp_async/static.json")
}

fn set_launch(profile: &mut Json, bytes: u32) {
    profile["kernels"][0]["dynamic_shared_bytes"] = json!([bytes]);
}

/// As a profile of an older version, which does not state it.
fn hide_launch(profile: &mut Json) {
    let kernel = profile["kernels"][0].as_object_mut().unwrap();
    kernel.remove("dynamic_shared_bytes");
}

/// A project whose `cp_async` was launched with `was` in the reference and is launched with `is`, in
/// either mode; `None` is of an older version.
fn both_modes(was: Option<u32>, is: Option<u32>) -> [(&'static str, Project); 2] {
    let launch = |profile: &mut Json, bytes: Option<u32>| match bytes {
        Some(bytes) => set_launch(profile, bytes),
        None => hide_launch(profile),
    };
    let stored = Project::steady();
    stored.forge("cp_async", |locked| launch(locked, was));
    let beside = Project::steady();
    beside.add_base("cp_async", |base| launch(base, was));
    for project in [&stored, &beside] {
        project.edit_profile("cp_async", |current| launch(current, is));
        project.drop_config_lines("dynamic_shared_bytes = 75776");
    }
    [("baseline", stored), ("base", beside)]
}

fn row(report: &Report) -> &Json {
    report.comparison("cp_async", "dynamic_shared_bytes")
}

#[test]
fn a_profile_has_the_dynamic_shared_memory_of_its_launches() {
    let root = common::repository();
    let config = Config::load(&root.join("config.toml")).unwrap();
    let counters = BTreeMap::from([(
        "duration".to_owned(),
        (Role::Duration.counter().to_owned(), Phase::Timing),
    )]);
    for (capture, bytes) in [
        ("bsr_gemm/cp_async/counting.ncu-rep", FOUR_STAGES),
        ("bsr_gemm/warp_specialized/counting.ncu-rep", 196_736),
        ("trajectory_resample_cached/baseline/counting.ncu-rep", 0),
    ] {
        let path = root.join("ci/recordings/h200").join(capture);
        let (_, report) = capture::read_file(path).unwrap();
        let source = Source {
            report: &report,
            csv: None,
            phase: Some(Phase::Timing),
            gpu_uuid: None,
        };
        let derived = derive(&counters, &[source]).unwrap();
        assert_eq!(
            derived.kernels[0].dynamic_shared_bytes,
            [bytes],
            "{capture}"
        );
        // That is what the configuration of this repository states.
        let mut variants = config.variants();
        let stated = variants
            .find(|one| capture.starts_with(&format!("{}/", one.id)))
            .unwrap();
        assert_eq!(stated.launch.dynamic_shared_bytes, Some(bytes));
    }
}

#[test]
fn launches_that_do_not_all_show_it_have_none_and_several_sizes_are_all_kept() {
    let path = common::handed_over().join("h200/bsr_gemm/cp_async/capture-1.ncu-rep");
    let (_, mut report) = capture::read_file(path).unwrap();
    let counter = Role::DynamicSharedBytes.counter();
    let sizes = |report: &ncu_report::Recording| {
        let source = Source {
            report,
            csv: None,
            phase: None,
            gpu_uuid: None,
        };
        let derived = derive(&BTreeMap::new(), &[source]).unwrap();
        derived.kernels[0].dynamic_shared_bytes.clone()
    };
    let mut set = |value: ncu_report::Value| {
        let measured = report.launches[1].metrics.get_mut(counter);
        measured.unwrap().value = value;
        sizes(&report)
    };
    assert_eq!(set(ncu_report::Value::Integer(1024)), [1024, FOUR_STAGES]);
    assert_eq!(set(ncu_report::Value::Missing), [0; 0]);
    assert_eq!(set(ncu_report::Value::Float(0.5)), [0; 0]);
}

#[test]
fn other_shared_memory_is_a_warning_with_both_sizes_and_no_failed_variant() {
    for (reference, project) in both_modes(Some(FOUR_STAGES), Some(THREE_STAGES)) {
        let report = project.check(&["cp_async"], 0);
        assert_eq!(report.denied(), [""; 0], "{reference}");
        let message = report.message("launch-changed");
        let words = format!(
            "is launched with 56832 bytes of dynamic shared memory a block, the {reference} with 75776 bytes"
        );
        assert!(message.contains(&words), "{message}");
        assert_eq!(
            row(&report)["change"]["absolute"],
            -18944.0,
            "{:#}",
            row(&report)
        );
        // What it costs is judged as ever.
        project.edit_profile("cp_async", |head| common::scale(head, "duration", 1.2));
        let report = project.check(&["cp_async"], 1);
        assert_eq!(report.denied(), ["regressed"]);
        assert!(report.warns("launch-changed"));
    }
    for (_, project) in both_modes(Some(FOUR_STAGES), Some(FOUR_STAGES)) {
        let report = project.check(&["cp_async"], 0);
        assert!(!report.warns("launch-changed"));
    }
}

#[test]
fn what_an_older_baseline_does_not_state_is_recorded_only() {
    for (reference, project) in both_modes(None, Some(FOUR_STAGES)) {
        let report = project.check(&["cp_async"], 0);
        assert_eq!(report.denied(), [""; 0]);
        assert!(!report.warns("launch-changed"));
        let why = format!("recorded only: the {reference} does not state it");
        assert_eq!(row(&report)["why"], why);
        assert_eq!(row(&report)["verdict"], Json::Null);
    }
}

#[test]
fn launches_that_do_not_show_what_the_reference_has_are_reported() {
    for (_, project) in both_modes(Some(FOUR_STAGES), None) {
        let report = project.check(&["cp_async"], 0);
        report.tells_all("not-measured", &["do not show their dynamic shared memory"]);
        let why = "recorded only: the launches do not show it";
        assert_eq!(row(&report)["why"], why);
    }
}

#[test]
fn it_is_locked_shown_for_review_and_compared_with_the_captures() {
    let project = Project::unlocked();
    project.edit_profile("cp_async", |profile| set_launch(profile, FOUR_STAGES));
    project.lock("first measurement").exits(0);
    let norm = project.read(&Project::baseline_path("cp_async", "norm.txt"));
    assert!(norm.contains("dynamic_shared_bytes: 75776.00\n"), "{norm}");
    let locked = project.json(&Project::baseline_path("cp_async", "profile.json"));
    assert_eq!(
        locked["kernels"][0]["dynamic_shared_bytes"],
        json!([FOUR_STAGES])
    );
    // The captures show another size than that.
    project.edit_profile("cp_async", |profile| set_launch(profile, THREE_STAGES));
    let report = project.check(&["cp_async"], 0);
    report.tells_all("profile-altered", &["dynamic shared memory"]);
    project.lock("another size").ends(4, "profile-altered");
}

#[test]
fn a_launch_that_differs_from_what_is_stated_counts_and_is_reported() {
    for (_, project) in both_modes(Some(FOUR_STAGES), Some(THREE_STAGES)) {
        let expect = "expect = [\"bsr_gemm_cp_async\"]";
        let stated = format!("{expect}\ndynamic_shared_bytes = 75776");
        project.configure(expect, &stated);
        let report = project.check(&["cp_async"], 0);
        assert_eq!(report.denied(), [""; 0]);
        let messages = report.0["findings"].to_string();
        let words = "`dynamic_shared_bytes` 75776, but was launched with 56832: the launch counts";
        assert!(messages.contains(words), "{messages}");
    }
}

/// What the static profile of `cp_async` knows of its launch, and with which occupancy.
fn know_launch(profile: &mut Json, bytes: u32) {
    let mut like = profile["kernels"][0]["metrics"]["registers"].clone();
    for (name, value) in [
        ("dynamic_shared_bytes", f64::from(bytes)),
        ("threads_per_block", 128.0),
    ] {
        like["value"] = json!(value);
        like["samples"] = json!([[value]]);
        profile["kernels"][0]["metrics"][name] = like.clone();
        profile["identity"]["metrics"][name] = json!({
            "counter": format!("static__{name}"), "unit": "", "phase": "counting",
        });
    }
}

/// A static profile that was made without any launch, with nothing stated.
fn forget_launch(profile: &mut Json) {
    let of_launch = |name: &str| name.starts_with("occupancy") || name == "dynamic_shared_bytes";
    for metrics in ["/kernels/0/metrics", "/identity/metrics"] {
        let metrics = profile
            .pointer_mut(metrics)
            .unwrap()
            .as_object_mut()
            .unwrap();
        metrics.retain(|name, _| !of_launch(name));
    }
}

/// The shipped project, with its static gate and nothing stated of launches, whose static baseline has
/// the launch that was seen when it was locked.
fn locked_launch() -> Project {
    let project = Project::whole();
    project.drop_config_lines("dynamic_shared_bytes");
    project.edit(&static_path(), |profile| {
        know_launch(profile, FOUR_STAGES);
    });
    project.lock("with its launch").exits(0);
    project.edit(&static_path(), forget_launch);
    project.edit_profile("cp_async", hide_launch);
    project
}

#[test]
fn without_a_launch_occupancy_is_that_of_the_locked_one() {
    let project = locked_launch();
    let report = project.check(&["cp_async"], 0);
    let of_code = |report: &Report| -> Json {
        let reports = report.0["variants"].as_array().unwrap();
        let compiled = reports.iter().find(|one| one["tier"] == "static").unwrap();
        let rows = compiled["comparisons"].as_array().unwrap();
        let occupancy = rows.iter().find(|row| row["metric"] == "occupancy");
        occupancy.unwrap().clone()
    };
    let occupancy = of_code(&report);
    assert_eq!(occupancy["verdict"], "pass");
    assert_eq!(
        occupancy["why"],
        "the same; with the launch of the baseline"
    );
    // With so much static shared memory beside it, one block fits instead of two.
    project.edit(&static_path(), |profile| {
        let bytes = &mut profile["kernels"][0]["metrics"]["static_shared_bytes"];
        bytes["value"] = json!(65536.0);
        bytes["samples"] = json!([[65536.0]]);
    });
    let report = project.check(&["cp_async"], 1);
    assert_eq!(of_code(&report)["verdict"], "regressed");
}

#[test]
fn without_a_launch_and_a_locked_one_occupancy_is_not_known() {
    let project = Project::whole();
    project.drop_config_lines("dynamic_shared_bytes");
    project.edit(&static_path(), forget_launch);
    project.edit_profile("cp_async", hide_launch);
    // As a static lock of an older version, which has the occupancy and not what it follows from.
    project.forge_below("sm-90a+static", "cp_async", |locked| {
        for metrics in ["/kernels/0/metrics", "/identity/metrics"] {
            let metrics = locked
                .pointer_mut(metrics)
                .unwrap()
                .as_object_mut()
                .unwrap();
            metrics.retain(|name, _| name != "dynamic_shared_bytes" && name != "threads_per_block");
        }
    });
    let report = project.check(&["cp_async"], 6);
    assert_eq!(report.denied(), ["not-measured"]);
    let next = report.findings("deny")[0]["next"].as_str().unwrap();
    common::contains(next, &["lock the profile, which has its launch"]);
}

#[test]
fn a_lock_of_code_without_a_launch_keeps_the_launch_that_was_locked() {
    let project = locked_launch();
    project.lock("compiled again").exits(0);
    let locked = project.json("baselines/sm-90a+static/bsr_gemm/cp_async.profile.json");
    let metrics = &locked["kernels"][0]["metrics"];
    assert_eq!(
        metrics["dynamic_shared_bytes"]["value"],
        f64::from(FOUR_STAGES)
    );
    assert_eq!(metrics["occupancy"]["value"], 12.5);
}

#[test]
fn a_statement_that_no_launch_shows_cannot_hide_a_lower_occupancy() {
    let project = locked_launch();
    // With what is stated two blocks fit beside the new static shared memory, with what is locked one.
    project.edit(&static_path(), |profile| {
        know_launch(profile, 1024);
        let bytes = &mut profile["kernels"][0]["metrics"]["static_shared_bytes"];
        bytes["value"] = json!(65536.0);
        bytes["samples"] = json!([[65536.0]]);
    });
    let expect = "expect = [\"bsr_gemm_cp_async\"]";
    let stated = format!("{expect}\ndynamic_shared_bytes = 1024");
    project.configure(expect, &stated);
    let report = project.check(&["cp_async"], 1);
    report.denies_only("regressed", &["`occupancy`"]);
    let message = report.message("launch-mismatch");
    let words = "`dynamic_shared_bytes` 1024, and its baseline has 75776: no launch shows it";
    assert!(message.contains(words), "{message}");
}
