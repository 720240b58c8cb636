//! A report that explains: samples by instruction and line, where the time of a slower kernel
//! moved, and two measurements side by side.

use std::fs;

use crate::common::{self, Project, RECORDED, Ran, scale};
use ncu_report::report;
use serde_json::{Value as Json, json};
use sparsek_gate::config::{Config, Toolchain};
use sparsek_gate::profile::Hotspots;
use sparsek_gate::profiler::Ncu;
use sparsek_gate::terms::Phase;
use sparsek_gate::toolchain::Nvdisasm;
use sparsek_gate::toolchain::Tool;

const DURATION: &str = "duration";

fn recorded(name: &str) -> Vec<u8> {
    fs::read(format!("tests/data/ncu/source/{name}.ncu-rep")).unwrap()
}

#[test]
fn instructions_read_as_ncu_disassembles_them() {
    let work = tempfile::tempdir().unwrap();
    let Ok(nvdisasm) = Nvdisasm::locate(&Toolchain::default(), work.path()) else {
        assert!(std::env::var_os("CI").is_none(), "no nvdisasm on the PATH");
        common::aloud(
            "SKIPPED: instructions were not named, there is no nvdisasm on the PATH; \
             `ci/install-cuda.sh target/cuda && source target/cuda/env.sh` installs one",
        );
        return;
    };
    let report = report::read(&recorded("baseline")).unwrap();
    let cubin = report.launches[0].source.as_ref().unwrap().cubin.clone();
    let listing = nvdisasm.listing(&cubin.unwrap()).unwrap();
    let text = &listing["bsr_gemm_baseline"];
    let page = fs::read_to_string("tests/data/ncu/source/baseline.source.csv").unwrap();
    let mut page = csv::Reader::from_reader(page.as_bytes());
    let mut compared = 0;
    for (index, row) in page.records().enumerate() {
        let row = row.unwrap();
        let own = &text[&(index as u64 * 16)];
        let words = |text: &str| text.split_whitespace().next().unwrap().to_owned();
        // Targets of branches are addresses there, and offsets here.
        assert_eq!(words(own), words(&row[1]), "{own}");
        compared += 1;
    }
    assert_eq!(compared, text.len());
    let mut hotspots = Hotspots::of(&report.launches, &[]).unwrap();
    hotspots.name_instructions(text);
    assert!(hotspots.lines.iter().all(|line| line.instruction.is_some()));
    let plain = hotspots.without_instructions();
    assert!(plain.lines.iter().all(|line| line.instruction.is_none()));
}

#[test]
fn a_hotspot_without_readable_machine_code_names_its_instruction() {
    let mut bytes = recorded("bank_conflict");
    let elf = bytes.windows(4).position(|bytes| bytes == b"\x7fELF");
    let cubin = elf.unwrap();
    bytes[cubin..cubin + 64].fill(0xff);
    let launch = &report::read(&bytes).unwrap().launches[0];
    let hottest = &Hotspots::of([launch], &[]).unwrap().lines[0];
    assert_eq!((&hottest.file, hottest.line), (&None, None));
    assert!(
        hottest.place().starts_with("instruction 0x"),
        "{}",
        hottest.place()
    );
}

/// The samples of a recorded report as they stand in a profile.
fn hotspots(name: &str) -> Json {
    let report = report::read(&recorded(name)).unwrap();
    json!(Hotspots::of(&report.launches, &[]).unwrap())
}

/// A project whose baseline and recording of `cp_async` have these samples, the recording twice as
/// slow.
fn sampled(baseline: &Json, current: &Json) -> Project {
    let project = Project::locked();
    let put = |hotspots: &Json, profile: &mut Json| {
        profile["kernels"][0]["hotspots"] = hotspots.clone();
    };
    project.forge("cp_async", |profile| put(baseline, profile));
    project.edit_profile("cp_async", |profile| {
        scale(profile, DURATION, 2.0);
        put(current, profile);
    });
    project
}

#[test]
fn a_regression_says_at_which_lines_the_time_moved() {
    let project = sampled(&hotspots("uncoalesced"), &hotspots("bank_conflict"));
    let report = project.check(&["bsr_gemm/cp_async"], 1);
    let moved = &report.variant("cp_async")["hotspots"][0];
    assert_eq!(moved["lines"][0]["file"], "ring.cuh");
    assert_eq!(moved["lines"][0]["line"], 174);
    assert_eq!(moved["lines"][0]["reason"], "short_scoreboard");
    // 31.2 % of 257.3 us before, 47.4 % of 514.6 us now.
    let number = |of: &Json, key: &str| of[key].as_f64().unwrap();
    let [was, is] = ["reference_ns", "current_ns"].map(|key| number(moved, key));
    assert!((is / was - 2.0).abs() < 0.01, "{moved}");
    let line = &moved["lines"][0];
    let [before, now] = ["reference_share", "share"].map(|key| number(line, key));
    let by = number(line, "moved_ns");
    assert!((by - (now * is - before * was)).abs() < 1.0, "{moved}");
    let text = moved["text"].as_str().unwrap();
    common::contains(
        text,
        &["at ring.cuh:174: waiting for shared memory or a special function (short scoreboard)"],
    );
    assert!(!text.contains("cannot be compared"), "{text}");
    // Every form shows it, and the finding in a few words.
    for (format, words) in [("text", "time moved: +"), ("markdown", "; with it: +")] {
        let ran = project.run(&[
            "check", "--from", RECORDED, "cp_async", "-v", "--format", format,
        ]);
        ran.ends(1, "ring.cuh:174").says(words);
    }
    report.tells_all("regressed", &["; with it: +"]);
}

#[test]
fn lines_of_a_file_that_changed_are_not_compared() {
    let before = hotspots("uncoalesced");
    let mut now = hotspots("bank_conflict");
    now["file_bytes"]["ring.cuh"] = json!(1);
    let project = sampled(&before, &now);
    let report = project.check(&["bsr_gemm/cp_async"], 1);
    let moved = &report.variant("cp_async")["hotspots"][0];
    let lines = moved["lines"].as_array().unwrap();
    assert!(
        lines.iter().all(|line| line["file"] != "ring.cuh"),
        "{moved}"
    );
    assert_eq!(moved["now"][0]["line"], 174);
    let text = moved["text"].as_str().unwrap();
    common::contains(
        text,
        &["lines cannot be compared; the time is now: 47.4 % at ring.cuh:174"],
    );
    // What the whole kernel waits for can be compared.
    assert_eq!(moved["stalls"][0]["reason"], "short_scoreboard");
}

#[test]
fn samples_judge_nothing_and_need_not_be_on_both_sides() {
    let samples = hotspots("bank_conflict");
    let plain = Project::locked();
    let with = Project::locked();
    with.edit_profile("cp_async", |profile| {
        profile["kernels"][0]["hotspots"] = samples.clone();
    });
    let judged = |project: &Project| {
        let report = project.check(&["bsr_gemm/cp_async"], 0);
        report.variant("cp_async")["comparisons"].clone()
    };
    assert_eq!(judged(&plain), judged(&with));
    // The same samples moved nowhere, though all of it is slower.
    let project = sampled(&samples, &samples);
    let report = project.check(&["bsr_gemm/cp_async"], 1);
    let moved = &report.variant("cp_async")["hotspots"][0];
    let selected = moved["lines"].as_array().unwrap();
    assert!(
        selected.len() <= 3 && moved["now"].as_array().unwrap().is_empty(),
        "{moved}"
    );
}

#[test]
fn samples_that_the_captures_do_not_hold_are_told() {
    let project = Project::locked();
    let report = common::repository().join("tests/data/ncu/source/bank_conflict.ncu-rep");
    let folder = "imported";
    let import = [
        "import",
        report.to_str().unwrap(),
        "--variant",
        "faults/bank_conflict",
        "--output",
        folder,
    ];
    project.run(&import);
    let path = format!("{folder}/faults/bank_conflict/profile.json");
    let profile = project.json(&path);
    assert_eq!(
        profile["kernels"][0]["hotspots"]["lines"][0]["file"],
        "ring.cuh"
    );
    let altered = || {
        let ran = project.run(&[
            "check", "--from", folder, "faults/bank_conflict", "--format", "json",
        ]);
        let report = ran.json();
        let said = report.fields("profile-altered", "message");
        said.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(altered(), Vec::<String>::new());
    // The text of an instruction needs a disassembler, and is not checked against the captures.
    project.edit(&path, |profile| {
        profile["kernels"][0]["hotspots"]["lines"][0]["instruction"] = json!("LDS.128 R4, [R2]");
    });
    assert_eq!(altered(), Vec::<String>::new());
    project.edit(&path, |profile| {
        profile["kernels"][0]["hotspots"]["lines"][0]["samples"] = json!(1);
    });
    let findings = altered();
    assert!(
        findings.len() == 1 && findings[0].contains("other hotspots"),
        "{findings:?}"
    );
}

#[test]
fn only_the_counting_pass_samples_and_only_where_it_is_asked_for() {
    let project = Project::locked();
    let ncu = Ncu(Tool {
        path: "ncu".into(),
        version: "2025.3.1.0".to_owned(),
    });
    let argv = |pass| {
        let config = Config::load(&project.path("config.toml")).unwrap();
        let variant = config.variants().next().unwrap();
        let stem = project.path("x");
        ncu.profile_argv(variant, pass, &stem, &stem, &["program".to_owned()])
    };
    let plain = [argv(Phase::Timing), argv(Phase::Counting)];
    assert!(plain.iter().flatten().all(|word| word != "SourceCounters"));
    project.configure("[profile]\n", "[profile]\nhotspots = true\n");
    let [timing, counting] = plain;
    assert_eq!(argv(Phase::Timing), timing);
    let sampling = argv(Phase::Counting);
    let added: Vec<&String> = sampling
        .iter()
        .filter(|word| !counting.contains(word))
        .collect();
    assert_eq!(added, ["--section", "SourceCounters", "yes"]);
    // Without the section files ncu starts sooner, but it must find what it is asked for.
    let searches = |argv: &[String]| argv.iter().any(|word| word == "--section-folder");
    assert!(searches(&timing) && searches(&counting) && !searches(&sampling));
}

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
fn two_reports_side_by_side_tell_what_moved_and_where() {
    let (a, b) = (source("uncoalesced"), source("bank_conflict"));
    let ran = stored(&[&a, &b]).exits(0);
    let ran = ran
        .says("nothing was measured in this run, so there is no verdict")
        .says("more time in B: time moved: +1")
        .says("at ring.cuh:174: waiting for shared memory or a special function (short scoreboard)")
        .says("more time in A: time moved: +");
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
    let more = json["kernels"][0]["more_time"].as_str().unwrap();
    assert!(more.contains("ring.cuh:174"), "{more}");
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
    let good = source("baseline");
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
