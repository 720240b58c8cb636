//! `history`: what was accepted, in which commit, and what its metrics were.

use std::process::Command;

use crate::common::{GPU, Project, RECORDED, Ran, copy, recordings};
use serde_json::{Value as Json, json};

const CP_ASYNC: &str = "bsr_gemm/cp_async";

fn commit(project: &Project, message: &str) -> String {
    project.git(&["add", "--all", "baselines"]);
    project.git(&["commit", "--quiet", "--message", message]);
    project.git(&["rev-parse", "HEAD"])
}

/// Locks cp_async from these recordings and commits that.
fn lock(project: &Project, from: &[&str], reason: &str) -> String {
    let mut arguments = vec![
        "baseline", "--lock", "--who", "a tester", "--reason", reason, CP_ASYNC,
    ];
    for folder in from {
        arguments.extend(["--from", folder]);
    }
    project.run(&arguments).exits(0);
    commit(project, reason)
}

/// A repository in which one GPU was locked, then two, then the first again for another reason.
fn locked_thrice() -> (Project, [String; 3]) {
    let project = Project::unlocked();
    let locked = recordings().join("h200-locked");
    let folders = ["ac5792cf", "af96af16"];
    for folder in folders {
        copy(&locked.join(folder), &project.path(folder));
    }
    project.git(&["init", "--quiet"]);
    let first = lock(&project, &[RECORDED], "the first measurement");
    let second = lock(&project, &folders, "two GPUs <b>now</b>");
    let third = lock(&project, &[RECORDED], "back to one");
    (project, [first, second, third])
}

fn history(project: &Project, more: &[&str]) -> Json {
    let mut arguments = vec!["history", CP_ASYNC, "--format", "json"];
    arguments.extend(more);
    let answer = project.run(&arguments).exits(0).json().0;
    assert_eq!(answer["baselines"].as_array().unwrap().len(), 1);
    answer["baselines"][0].clone()
}

fn durations(baseline: &Json) -> Vec<Json> {
    let metrics = baseline["metrics"].as_array().unwrap();
    let duration = metrics.iter().find(|course| course["metric"] == "duration");
    duration.unwrap()["values"].as_array().unwrap().clone()
}

fn locked_duration(text: &str) -> Json {
    let profile: Json = serde_json::from_str(text).unwrap();
    profile["kernels"][0]["metrics"]["duration"].clone()
}

#[test]
fn every_acceptance_is_shown_with_its_commit_and_the_values_of_then() {
    let (project, commits) = locked_thrice();
    let path = Project::baseline_path("cp_async", "profile.json");
    let baseline = history(&project, &[]);
    assert_eq!(baseline["gpu"], GPU);
    let acceptances = baseline["acceptances"].as_array().unwrap();
    assert_eq!(acceptances.len(), 3);
    let values = durations(&baseline);
    for (at, id) in commits.iter().enumerate() {
        assert_eq!(acceptances[at]["commit"], json!(id), "{at}");
        assert_eq!(acceptances[at]["missing"], Json::Null);
        let then = project.git(&["show", &format!("{id}:./{path}")]);
        assert_eq!(values[at]["value"], locked_duration(&then)["value"], "{at}");
    }
    // Two GPUs are farther apart than the processes of one.
    assert!(values[1]["noise"].as_f64() > values[0]["noise"].as_f64());
    assert_eq!(values[0], values[2]);
    // Noise of a share is in points, as in every other report.
    let text = project.run(&["history", "cp_async"]).exits(0).out;
    let noisy = text
        .lines()
        .find(|line| line.contains(" sm_active "))
        .unwrap();
    let mut noises = noisy.split('±').skip(1);
    assert!(noises.clone().next().is_some(), "{noisy}");
    assert!(
        noises.all(|noise| noise.split(' ').nth(1) == Some("pt")),
        "{noisy}"
    );

    let shown = project.run(&["history", "cp_async"]).exits(0);
    let shown = shown.says("the first measurement").says("back to one");
    assert!(shown.out.contains(&commits[1][..10]));
    assert!(!shown.out.contains('\u{1b}'), "{}", shown.out);
    // From any folder.
    let config = project.path("config.toml");
    let elsewhere = Command::new(env!("CARGO_BIN_EXE_sparsek-gate"))
        .args(["-C", config.to_str().unwrap(), "history", CP_ASYNC])
        .current_dir("/")
        .output()
        .unwrap();
    assert_eq!(Ran::of(&elsewhere).exits(0).out, shown.out);

    // A profile that was not committed yet is the one at hand.
    project
        .run(&[
            "baseline", "--lock", "--who", "a tester", "--reason", "fourth", CP_ASYNC, "--from",
            "af96af16",
        ])
        .exits(0);
    let baseline = history(&project, &["--metric", "duration", "--metric", "clock"]);
    assert_eq!(baseline["acceptances"][3]["commit"], Json::Null);
    assert!(durations(&baseline)[3]["value"].is_f64());
    assert_eq!(baseline["metrics"].as_array().unwrap().len(), 2);
    project
        .run(&["history", CP_ASYNC, "--metric", "duratoin"])
        .ends(2, "did you mean `duration`?");
}

#[test]
fn a_missing_past_profile_is_reported_and_is_never_a_number() {
    let (project, commits) = locked_thrice();
    let profile = Project::baseline_path("cp_async", "profile.json");
    let whole = history(&project, &[]);

    // The last two commits alone: a shallow clone.
    let clone = project.path("clone");
    let source = format!("file://{}", project.path(".").display());
    let folder = clone.to_str().unwrap();
    project.git(&["clone", "--quiet", "--depth", "1", &source, folder]);
    std::fs::copy(project.path("config.toml"), clone.join("config.toml")).unwrap();
    copy(&project.path("kernels"), &clone.join("kernels"));
    let config = clone.join("config.toml");
    let shallow = history(&project, &["-C", config.to_str().unwrap()]);
    let [first, second, third] = shallow["acceptances"].as_array().unwrap().as_slice() else {
        panic!("{shallow:#}")
    };
    // The first was accepted again as it was, so its profile is here.
    assert_eq!(
        (&first["missing"], &third["missing"]),
        (&Json::Null, &Json::Null)
    );
    assert!(second["missing"].as_str().unwrap().contains("--unshallow"));
    assert_eq!(durations(&shallow)[1], Json::Null);
    assert_eq!(durations(&shallow)[0], durations(&whole)[0]);

    // A commit whose profile is not the accepted one does not count.
    project.git(&["checkout", "--quiet", &commits[1]]);
    let text = project.read(&profile);
    project.write(&profile, text.replacen("\"value\": ", "\"value\":  ", 1));
    let edited = history(&project, &[]);
    assert!(
        durations(&edited)[1]["value"].is_f64(),
        "the commit contains it"
    );
    std::fs::remove_dir_all(project.path(".git")).unwrap();
    let alone = history(&project, &["--metric", "duration"]);
    for acceptance in alone["acceptances"].as_array().unwrap() {
        assert_eq!(acceptance["commit"], Json::Null);
        assert!(acceptance["missing"].is_string(), "{acceptance}");
    }
    project
        .run(&["history", CP_ASYNC])
        .ends(0, "not a git repository");

    // A ledger that contradicts itself is no history.
    let lock = Project::baseline_path("cp_async", "lock.toml");
    project.replace(&lock, "the first measurement", "another reason");
    project
        .run(&["history", CP_ASYNC])
        .ends(4, "the ledger was edited");
    project
        .run(&["history", "bsr_gemm/baseline"])
        .ends(4, "nothing is locked yet");
    project
        .run(&["history", "bsr_gemm/cp_asinc"])
        .ends(2, "did you mean");
}
