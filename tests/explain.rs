//! A report that explains: what moved together, and two measurements side by side.

use std::fs;

use crate::common::{self, Project, RECORDED, Ran, scale};
use serde_json::{Value as Json, json};

const DURATION: &str = "duration";

#[test]
fn registers_and_spills_of_the_compiled_code_are_among_the_causes() {
    let project = Project::whole();
    let path = format!("{RECORDED}/bsr_gemm/cp_async/static.json");
    project.edit(&path, |profile| {
        let kernel = &mut profile["kernels"][0];
        kernel["code"]["text_sha256"] = json!("0".repeat(64));
        kernel["code"]["opcodes"]["LDL"] = json!(40);
        for (metric, value) in [("registers", 255.0), ("spill_bytes", 96.0)] {
            kernel["metrics"][metric]["value"] = json!(value);
            kernel["metrics"][metric]["samples"] = json!([[value]]);
        }
    });
    project.edit_profile("cp_async", |profile| scale(profile, DURATION, 1.2));
    let report = project.check(&["bsr_gemm/cp_async"], 1);
    let causes = &report.variant("cp_async")["causes"][0];
    let texts: Vec<&str> = causes["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cause| cause["text"].as_str().unwrap())
        .collect();
    let expected = "registers 248 → 255, spilled bytes 0 → 96, SASS: 40 LDL more";
    assert!(texts.contains(&expected), "{texts:?}");
    let findings = report.findings("deny");
    let mut messages = findings.iter().map(|one| one["message"].as_str().unwrap());
    assert!(
        messages.any(|text| text.contains("`duration` of") && text.contains(expected)),
        "{findings:#?}"
    );
    let duration = causes["duration"].as_str().unwrap();
    assert!(duration.starts_with("`duration` +19.26"), "{duration}");
}

fn stored(arguments: &[&str]) -> Ran {
    common::in_repository(&[&["compare"], arguments].concat())
}

fn source(name: &str) -> String {
    format!("tests/data/ncu/source/{name}.ncu-rep")
}

#[test]
fn two_reports_side_by_side_show_what_moved() {
    let (a, b) = (source("uncoalesced"), source("bank_conflict"));
    let ran = stored(&[&a, &b]).exits(0);
    let ran = ran.says("nothing was measured in this run, so there is no verdict");
    let out = ran.out;
    let row = |name: &str| {
        out.lines()
            .find(|line| line.trim_start().starts_with(name))
            .unwrap()
    };
    assert!(row("gpu__time_duration.sum").contains(" us"), "{out}");
    assert!(row("lts__throughput").contains(" pt"), "{out}");
    // What moved most stands first.
    let json: Json =
        serde_json::from_str(&stored(&[&a, &b, "--format", "json"]).exits(0).out).unwrap();
    assert_eq!(json["schema"], 1);
    assert_eq!(json["warnings"], json!([]));
    assert!(json["kernels"][0]["metrics"].as_array().unwrap().len() > 20);
}

#[test]
fn profiles_reports_and_csv_pages_mix() {
    let folder = "tests/data/stand_in/recordings/h200/bsr_gemm/cp_async";
    let profile = &format!("{folder}/profile.json");
    let worse = "tests/data/stand_in/recordings/h200-worse/bsr_gemm/cp_async";
    for other in ["profile.json", "capture-1.ncu-rep", "capture-1.csv"] {
        let ran = stored(&[profile, &format!("{worse}/{other}")]).exits(0);
        let duration = ran
            .out
            .lines()
            .find(|line| line.trim_start().starts_with("duration "))
            .unwrap();
        common::contains(duration, &["257.", "540."]);
        assert!(duration.contains("+109."), "{duration}");
        assert!(!ran.out.contains("not comparable"), "{}", ran.out);
    }
    // A folder of a variant is its profile.
    stored(&[folder, worse]).ends(0, "+109.");
    // A report and the page that ncu printed of it are the same, but for rounding.
    let file = |ending: &str| format!("tests/data/ncu/twenty_launches.{ending}");
    let json = stored(&[&file("ncu-rep"), &file("raw.csv"), "--format", "json"]);
    let json: Json = serde_json::from_str(&json.exits(0).out).unwrap();
    assert_eq!(json["judged"], false);
    let mut metrics = json["kernels"][0]["metrics"].as_array().unwrap().iter();
    let duration = metrics.find(|row| row["counter"] == "gpu__time_duration.sum");
    let duration = duration.unwrap();
    assert_eq!(duration["before"], duration["after"]);
}

#[test]
fn what_is_not_like_for_like_is_told_first_and_what_is_left_over_last() {
    let profile = "ci/recordings/h200/bsr_gemm/cp_async/profile.json";
    let mut other: Json =
        serde_json::from_slice(&fs::read(common::repository().join(profile)).unwrap()).unwrap();
    other["identity"]["clock_control"] = json!("base");
    other["identity"]["gpu"] = json!("NVIDIA H100");
    other["kernels"][0]["grid"] = json!([32, 64, 1]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.json");
    fs::write(&path, other.to_string()).unwrap();
    stored(&[profile, path.to_str().unwrap()])
        .ends(0, "not comparable: the GPU was NVIDIA H200, is NVIDIA H100")
        .says("not comparable: clock control was none, is base")
        .says("A: bsr_gemm_cp_async grid [64, 64, 1]")
        .says("B: bsr_gemm_cp_async grid [32, 64, 1]");
    let reports = ["two_kernels_three_times", "four_metrics"];
    let reports = reports.map(|name| format!("tests/data/ncu/{name}.ncu-rep"));
    stored(&[&reports[0], &reports[1]]).ends(0, "only in A: ");
    let scalar = "ci/recordings/h200/attention/scalar/profile.json";
    stored(&[profile, scalar]).ends(0, "the names differ: they are compared");
}

#[test]
fn a_file_that_cannot_be_read_is_told_as_inspect_tells_it() {
    let good = source("uncoalesced");
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.json");
    fs::write(&bad, "{ \"schema\": 3 }").unwrap();
    let bad = bad.to_str().unwrap();
    let text = folder.path().join("text.csv");
    fs::write(&text, "true\n").unwrap();
    stored(&[&good, text.to_str().unwrap()]).ends(2, "no CSV header");
    stored(&[bad, &good]).ends(2, "not a profile");
    stored(&[&good, "nowhere.csv"]).ends(2, "there is no file nowhere.csv");
    stored(&[&good, "nowhere"]).ends(2, "state two files or folders that are there");
    stored(&[&good, &good, "--report", "out.html"])
        .ends(2, "--report is of two programs that are measured");
}
