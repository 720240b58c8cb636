//! The anchor of a baseline, and budgets: how far all accepted changes together may go.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use crate::common::{Project, RECORDED, Ran, scale};
use sparsek_gate::baseline::Lock;
use sparsek_gate::profile::Profile;

const CP_ASYNC: &str = "bsr_gemm/cp_async";
const KERNEL: &str = "bsr_gemm_cp_async";

fn lock_file() -> String {
    Project::baseline_path("cp_async", "lock.toml")
}

fn read_lock(project: &Project) -> Lock {
    Lock::parse(&project.read(&lock_file())).unwrap()
}

/// A project whose baselines are locked, and whose duration has a budget of 5 %.
fn with_budget() -> Project {
    let project = Project::locked();
    let table = "[metric.duration]\n";
    let budget = format!("{table}budget = {{ relative_percent = 5.0 }}\n");
    project.replace("config.toml", table, &budget);
    project
}

/// Locks the same profile again, with an anchor from which its duration is so far away: as if other
/// changes had been accepted before.
fn after_changes_of(project: &Project, factor: f64) {
    let profile = project.read(&Project::baseline_path("cp_async", "profile.json"));
    let profile = Profile::parse(profile.as_bytes()).unwrap();
    project.relock("cp_async", &profile, |lock| {
        let anchor = lock.anchor.as_mut().unwrap();
        let values = anchor.values.get_mut(KERNEL).unwrap();
        *values.get_mut("duration").unwrap() /= factor;
    });
}

fn lock(project: &Project, more: &[&str]) -> Ran {
    let mut arguments = vec![
        "baseline", "--lock", "--who", "Ada", "--reason", "x", "--from", RECORDED, CP_ASYNC,
    ];
    arguments.extend(more);
    project.run(&arguments)
}

#[test]
fn the_first_lock_is_the_anchor_and_later_locks_keep_it() {
    let project = with_budget();
    let first = read_lock(&project);
    let anchor = first.anchor.clone().unwrap();
    assert_eq!(anchor.time, first.ledger[0].time);
    assert_eq!(first.ledger[0].anchor_sha256, first.anchor_sha256());
    let profile = project.json(&Project::baseline_path("cp_async", "profile.json"));
    let duration = &profile["kernels"][0]["metrics"]["duration"]["value"];
    assert_eq!(
        anchor.values[KERNEL]["duration"],
        duration.as_f64().unwrap()
    );
    // What is only recorded, and counts of work, cannot creep.
    assert!(!anchor.values[KERNEL].contains_key("clock"));
    assert!(!anchor.values[KERNEL].contains_key("flop_wmma"));
    after_changes_of(&project, 1.03);
    let kept = read_lock(&project).anchor;
    // The same profile again is no new baseline.
    lock(&project, &[])
        .exits(0)
        .says("already locked, unchanged");
    assert_eq!(read_lock(&project).anchor, kept);
    project
        .run(&["baseline", "--show", CP_ASYNC])
        .exits(0)
        .says(&format!("anchor: the values of {}", anchor.time));
}

#[test]
fn changes_that_are_together_beyond_the_budget_are_locked_only_with_anchor() {
    let project = with_budget();
    after_changes_of(&project, 1.06);
    let before = project.read(&lock_file());
    lock(&project, &[])
        .exits(1)
        .says("over-budget")
        .says("+6.00 % from its anchor of")
        .says("baseline --lock --anchor --reason");
    assert_eq!(project.read(&lock_file()), before);
    lock(&project, &["--anchor"])
        .exits(0)
        .says("the anchor is now at these values");
    let lock_now = read_lock(&project);
    assert_eq!(lock_now.contradictions(), Vec::<String>::new());
    let last = lock_now.ledger.last().unwrap();
    assert_eq!(lock_now.anchor.as_ref().unwrap().time, last.time);
    lock(&project, &[]).exits(0);
    // An anchor that is at these values already is not moved, and keeps its time.
    let long_ago = "2026-11-20T00:00:00Z";
    let profile = project.read(&Project::baseline_path("cp_async", "profile.json"));
    let profile = Profile::parse(profile.as_bytes()).unwrap();
    project.relock("cp_async", &profile, |lock| {
        lock.anchor.as_mut().unwrap().time = long_ago.to_owned();
    });
    lock(&project, &["--anchor"])
        .exits(0)
        .says("already locked, unchanged");
    assert_eq!(read_lock(&project).anchor.unwrap().time, long_ago);
}

#[test]
fn a_kernel_that_the_profile_lacks_does_not_escape_its_budget() {
    let project = with_budget();
    let profile = project.read(&Project::baseline_path("cp_async", "profile.json"));
    let profile = Profile::parse(profile.as_bytes()).unwrap();
    project.relock("cp_async", &profile, |lock| {
        let values = &mut lock.anchor.as_mut().unwrap().values;
        let of_kernel = values.remove(KERNEL).unwrap();
        values.insert("bsr_gemm_of_old".to_owned(), of_kernel);
    });
    lock(&project, &[])
        .exits(1)
        .says("`duration` of bsr_gemm_of_old has a budget")
        .says("the profile has no such value");
}

#[test]
fn other_conditions_than_the_anchors_need_a_new_anchor_where_there_is_a_budget() {
    let project = with_budget();
    let profile = project.read(&Project::baseline_path("cp_async", "profile.json"));
    let profile = Profile::parse(profile.as_bytes()).unwrap();
    project.relock("cp_async", &profile, |lock| {
        lock.anchor
            .as_mut()
            .unwrap()
            .conditions
            .push("argument --n".to_owned());
    });
    lock(&project, &[])
        .exits(1)
        .says("was measured under other conditions");
    lock(&project, &["--anchor"]).exits(0);
    lock(&project, &[]).exits(0);
}

#[test]
fn the_values_of_an_older_lock_are_the_anchor_of_the_next() {
    let project = with_budget();
    let profile = project.read(&Project::baseline_path("cp_async", "profile.json"));
    // A lock of an older version, of a kernel that was 6 % faster.
    let mut faster = serde_json::from_str(&profile).unwrap();
    scale(&mut faster, "duration", 1.0 / 1.06);
    let faster = Profile::parse(faster.to_string().as_bytes()).unwrap();
    project.relock("cp_async", &faster, |lock| lock.anchor = None);
    assert_eq!(read_lock(&project).contradictions(), Vec::<String>::new());
    project.run(&["baseline", "--verify", CP_ASYNC]).exits(0);
    let report = project
        .run(&["check", "--from", RECORDED, "--format", "json", "cp_async"])
        .json();
    assert!(report.message("anchor-missing").contains("recorded only"));
    lock(&project, &[])
        .exits(1)
        .says("+6.00 % from its anchor of 2026-11-22");
    lock(&project, &["--anchor"]).exits(0);
    project.check(&["cp_async"], 0);
}

#[test]
fn a_check_reports_how_far_it_is_from_the_anchor_and_fails_beyond_the_budget() {
    let project = with_budget();
    after_changes_of(&project, 1.03);
    let report = project.check(&["cp_async"], 0);
    let comparison = report.comparison("cp_async", "duration");
    let change = comparison["anchored"]["change"]["relative_percent"].as_f64();
    assert!((change.unwrap() - 3.0).abs() < 1e-6, "{comparison}");
    let why = comparison["why"].as_str().unwrap();
    assert!(why.contains("+3.00 % from the anchor of") && why.contains("budget 5 %"));
    // Beyond the budget by less than the noise of two machines.
    after_changes_of(&project, 1.02);
    let report = project.check(&["cp_async"], 0);
    assert_eq!(report.warned(), ["over-budget"]);
    assert!(
        report
            .message("over-budget")
            .contains("by less than the noise")
    );
    after_changes_of(&project, 1.10);
    let report = project.check(&["cp_async"], 1);
    assert_eq!(report.denied(), ["over-budget"]);
}

#[test]
fn an_edited_or_removed_anchor_is_found() {
    let project = with_budget();
    let text = project.read(&lock_file());
    let (head, anchor) = text.split_once("[anchor]").unwrap();
    assert!(anchor.contains("duration"));
    project.write(&lock_file(), head);
    let says = "the anchor in the lock differs from the one that its ledger accepted";
    project
        .run(&["baseline", "--verify", CP_ASYNC])
        .exits(4)
        .says(says);
    let edited = text.replacen("clock control none", "clock control base", 1);
    assert_ne!(edited, text);
    project.write(&lock_file(), edited);
    project
        .run(&["check", "--from", RECORDED, "cp_async"])
        .exits(4)
        .says(says);
}
