//! The recorded effects of checks on the target branch, and the creep that they reveal.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use crate::common::{Project, RECORDED, Ran, scale};
use serde_json::{Value as Json, json};

const CP_ASYNC: &str = "bsr_gemm/cp_async";

fn effects_file() -> String {
    Project::baseline_path("cp_async", "effects.jsonl")
}

/// A recording of a change that made the kernel slower by this factor, between two revisions.
fn change(project: &Project, number: usize, factor: f64) {
    let code = |number: usize| json!({ "kernels/bsr_gemm/cp_async.cu": number.to_string() });
    project.edit(&Project::base_path("cp_async"), |base| {
        base["provenance"]["sources"] = code(number);
        base["provenance"]["artifact_sha256"] = json!(format!("program {number}"));
    });
    project.edit(&Project::profile_path("cp_async"), |head| {
        head["provenance"]["created"] = json!(format!("2999-01-01T00:00:{number:02}Z"));
        head["provenance"]["git"] = json!(format!("commit {}", number + 1));
        head["provenance"]["sources"] = code(number + 1);
        head["provenance"]["artifact_sha256"] = json!(format!("program {}", number + 1));
        scale(head, "duration", factor);
    });
}

/// Base and head of `cp_async` are the same, and noisy.
fn recorded() -> Project {
    let project = Project::locked();
    project.add_base("cp_async", |_| {});
    project
}

/// What a check on the target branch reports, with an outcome that can be recorded.
fn checked(project: &Project) -> Json {
    let arguments = ["--report", "outcome.json", "--format", "json", "cp_async"];
    let mut all = vec!["check", "--from", RECORDED];
    all.extend(arguments);
    project.run(&all).json().0
}

fn record(project: &Project) -> Ran {
    project.run(&["baseline", "--record", "outcome.json"])
}

fn codes(report: &Json) -> Vec<&str> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings.map(|one| one["code"].as_str().unwrap()).collect()
}

#[test]
fn a_check_of_the_target_branch_is_recorded_once_and_a_later_lock_keeps_it() {
    let project = recorded();
    change(&project, 1, 1.002);
    checked(&project);
    record(&project)
        .exits(0)
        .says("bsr_gemm/cp_async on nvidia-h200: recorded, 1 check now");
    record(&project)
        .exits(0)
        .says("recorded already, 1 check now");
    let text = project.read(&effects_file());
    let line: Json = serde_json::from_str(text.trim_end()).unwrap();
    assert_eq!(line["commit"], "commit 2");
    let effects = line["effects"].as_array().unwrap();
    let duration = effects
        .iter()
        .find(|one| one["metric"] == "duration")
        .unwrap();
    let effect = duration["effect"].as_f64().unwrap();
    assert!((effect - 1.002_f64.ln()).abs() < 1e-9, "{effect}");
    assert!(duration["variance"].as_f64().unwrap() > 0.0);
    assert_eq!(duration["rounds"], 4);
    // Counts of work have no effect of a size.
    assert!(!effects.iter().any(|one| one["metric"] == "flop_wmma"));
    project.run(&["baseline", "--verify", CP_ASYNC]).exits(0);
    let profile = project.read(&Project::baseline_path("cp_async", "profile.json"));
    let profile = sparsek_gate::profile::Profile::parse(profile.as_bytes()).unwrap();
    project.relock("cp_async", &profile, |_| {});
    assert_eq!(project.read(&effects_file()), text);
}

#[test]
fn a_run_for_code_under_review_records_nothing() {
    let project = recorded();
    checked(&project);
    for variables in [
        &[("CI", "true")][..],
        &[("CI", "true"), ("GITHUB_EVENT_NAME", "pull_request")],
        &[("GITHUB_EVENT_NAME", "merge_group")],
        &[("CI_MERGE_REQUEST_IID", "3")],
    ] {
        let mut command = project.gate();
        command.args(["baseline", "--record", "outcome.json"]);
        command.envs(variables.iter().copied());
        Ran::of(&command.output().unwrap())
            .exits(2)
            .says("a change may not record its own effect");
    }
    assert!(!project.path(&effects_file()).exists());
}

#[test]
fn what_is_no_comparison_side_by_side_is_not_recorded() {
    let project = Project::locked();
    checked(&project);
    record(&project)
        .exits(2)
        .says("nothing in this outcome was measured side by side");
    project.write("outcome.json", "{}");
    record(&project)
        .exits(5)
        .says("it is not the outcome of a check");
    for further in ["--anchor", "--lock", "--verify"] {
        let ran = project.run(&["baseline", "--record", "outcome.json", further]);
        ran.exits(2);
    }
    assert!(!project.path(&effects_file()).exists());
}

#[test]
fn a_change_without_a_recorded_effect_is_reported() {
    let project = recorded();
    change(&project, 1, 1.0);
    assert!(!codes(&checked(&project)).contains(&"effects-missing"));
    record(&project).exits(0);
    // The base is the code that was recorded last.
    change(&project, 2, 1.0);
    assert!(!codes(&checked(&project)).contains(&"effects-missing"));
    // Changes 2 and 3 are not recorded.
    change(&project, 4, 1.0);
    let report = checked(&project);
    assert!(codes(&report).contains(&"effects-missing"), "{report}");
    record(&project)
        .exits(0)
        .says("effects-missing")
        .says("no effect of that is recorded");
    change(&project, 5, 1.0);
    let report = checked(&project).to_string();
    assert!(report.contains("between commit 2 and commit 5 without a recorded effect"));
}

#[test]
fn edited_effects_are_found() {
    let project = recorded();
    for number in [1, 2] {
        change(&project, number, 1.0);
        checked(&project);
        record(&project).exits(0);
    }
    let text = project.read(&effects_file());
    let (first, second) = text.split_once('\n').unwrap();
    let edits = [
        text.replacen("commit 2", "commit 9", 1),
        second.to_owned(),
        format!("{first}\n{}", second.trim_end()),
        format!("{text}no JSON\n"),
    ];
    for edit in edits {
        project.write(&effects_file(), edit);
        let ran = project.run(&["baseline", "--verify", CP_ASYNC]);
        ran.exits(4).says("tampered").says("effects.jsonl");
        change(&project, 3, 1.0);
        checked(&project);
        record(&project)
            .exits(4)
            .says("restore it from version control");
    }
}

#[test]
fn small_losses_that_add_up_are_reported_before_the_tenth_and_end_with_a_new_anchor() {
    let project = recorded();
    let table = "[metric.duration]\n";
    let budget = format!("{table}budget = {{ relative_percent = 5.0 }}\n");
    project.replace("config.toml", table, &budget);
    let mut first = None;
    for number in 1..=10 {
        change(&project, number, if number == 1 { 1.002 } else { 1.0 });
        let report = checked(&project);
        if codes(&report).contains(&"creep") {
            let text = report.to_string();
            assert!(text.contains("recorded changes add up to +"), "{text}");
            assert!(text.contains("(budget 5 %)"));
            first = Some(number);
            break;
        }
        record(&project).exits(0);
    }
    let recorded = first.unwrap_or_default() - 1;
    project
        .run(&["history", CP_ASYNC, "--output", "history.html"])
        .exits(0)
        .says(&format!(
            "recorded effects: duration of bsr_gemm_cp_async: {recorded} changes, together +"
        ));
    assert!(
        project
            .read("history.html")
            .contains("Recorded effects of changes")
    );
    // A check reports what was recorded before it.
    assert!(
        first.is_some_and(|first| (3..=10).contains(&first)),
        "{first:?}"
    );
    // The effects of before a new anchor no longer count.
    let profile = project.read(&Project::baseline_path("cp_async", "profile.json"));
    let profile = sparsek_gate::profile::Profile::parse(profile.as_bytes()).unwrap();
    project.relock("cp_async", &profile, |lock| {
        lock.anchor.as_mut().unwrap().time = "2999-02-01T00:00:00Z".to_owned();
    });
    assert!(!codes(&checked(&project)).contains(&"creep"));
}
