//! Slices of a check on recordings: the outcome is that of one check, and what a
//! slice does not bring was not measured.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::common::crash::{kill_at_random, kills};
use crate::common::{self, Project, RECORDED, Ran, Report, repository};
use serde_json::{Value as Json, json};

/// `check --from` of one slice, into a folder that does not exist yet.
fn slice(project: &Project, index: usize, count: usize) -> String {
    let (place, output) = (format!("{index}/{count}"), format!("slices/{index}"));
    let arguments = ["check", "--from", RECORDED, "--slice", &place];
    let arguments = [&arguments[..], &["--slice-output", &output]].concat();
    let said = format!("slice {place} is complete");
    project.run(&arguments).exits(0).says(&said);
    output
}

fn slices(project: &Project, count: usize) -> Vec<String> {
    (1..=count)
        .map(|index| slice(project, index, count))
        .collect()
}

fn judge(project: &Project, slices: &[String], more: &[&str]) -> Ran {
    let from = slices.iter().flat_map(|slice| ["--from", slice]);
    let from: Vec<&str> = from.collect();
    project.run(&[&["check"], from.as_slice(), more].concat())
}

/// The check of slices that must not be complete.
#[track_caller]
fn incomplete(project: &Project, slices: &[String]) -> Report {
    let report = judge(project, slices, &["--format", "json"])
        .exits(6)
        .json();
    assert!(report.denied().contains(&"slice-unusable".to_owned()));
    report
}

/// What is wrong with slices, in the words of the report.
fn unusable(report: &Report) -> String {
    let findings = report.findings("deny").into_iter();
    let about = findings.filter(|one| one["code"] == "slice-unusable");
    let words: Vec<&str> = about.map(|one| one["message"].as_str().unwrap()).collect();
    words.join("\n")
}

/// The variants that no slice measured.
fn unmeasured(report: &Report) -> Vec<&str> {
    let findings = report.findings("deny").into_iter();
    let about = findings.filter(|one| one["code"] == "not-measured");
    about.map(|one| one["variant"].as_str().unwrap()).collect()
}

fn edit(project: &Project, path: &str, change: impl FnOnce(&mut Json)) {
    let mut json = project.json(path);
    change(&mut json);
    project.write(path, json.to_string());
}

#[test]
fn slices_of_a_recording_are_one_check_byte_for_byte() {
    let gate = |arguments: &[&str]| {
        let project = Project::empty();
        let mut command = project.gate();
        Ran::of(
            &command
                .current_dir(repository())
                .args(arguments)
                .output()
                .unwrap(),
        )
    };
    // A control beside, a regression, another work, a base that is in the recording.
    for (recording, names, count) in [
        ("ci/recordings/h200", &["bsr_gemm", "attention"][..], 3),
        ("ci/recordings/h200-worse", &["bsr_gemm"], 2),
        ("ci/recordings/faults/less_work", &["bsr_gemm/cp_async"], 1),
        ("ci/recordings/faults/spills", &["bsr_gemm"], 9),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut all = vec!["check".to_owned()];
        for index in 1..=count {
            let output = folder
                .path()
                .join(format!("new/{index}"))
                .display()
                .to_string();
            let place = format!("{index}/{count}");
            let slice = ["--slice", &place, "--slice-output", &output];
            let from = ["check", "--from", recording];
            gate(&[&from[..], &slice, names].concat()).exits(0);
            all.extend(["--from".to_owned(), output]);
        }
        all.extend(names.iter().map(|name| (*name).to_owned()));
        for format in ["json", "text"] {
            let one = gate(&[&["check", "--from", recording, "--format", format], names].concat());
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            let judged = gate(&[&all[..], &["--format", format]].concat());
            assert_eq!(
                (one.code, &one.err),
                (judged.code, &judged.err),
                "{recording}"
            );
            assert!(
                one.out == judged.out,
                "{recording} as {format}: {}",
                judged.out
            );
        }
    }
}

#[test]
fn a_slice_beside_its_base_is_judged_against_it() {
    let project = Project::steady();
    project.add_base("cp_async", |base| {
        base["provenance"]["git"] = json!("0ba5e")
    });
    project.edit_profile("cp_async", |head| common::scale(head, "duration", 1.01));
    let one = project.run(&["check", "--from", RECORDED, "--format", "json"]);
    let judged = judge(&project, &slices(&project, 4), &["--format", "json"]);
    assert_eq!((one.code, judged.code), (1, 1));
    assert_eq!(one.out, judged.out);
}

#[test]
fn a_slice_that_is_missing_or_cut_off_is_named_and_its_variants_are_not_measured() {
    let project = Project::shipped();
    let all = slices(&project, 3);
    let own = |index: usize| -> Vec<String> {
        let manifest = project.json("slices/1/slice.json");
        let own = manifest["slices"][index - 1].as_array().unwrap();
        own.iter()
            .map(|one| one.as_str().unwrap().to_owned())
            .collect()
    };
    judge(&project, &all, &[]).exits(project.run(&["check", "--from", RECORDED]).code);
    // The folder around them has all of them.
    let around = judge(&project, &["slices".to_owned()], &[]);
    assert_eq!(around.out, judge(&project, &all, &[]).out);

    let report = incomplete(&project, &all[..2]);
    assert!(
        unusable(&report).contains("slice 3/3 is missing"),
        "{}",
        unusable(&report)
    );
    assert_eq!(unmeasured(&report), own(3));

    // It was killed before its last file.
    let manifest = project.read("slices/2/slice.json");
    fs::remove_file(project.path("slices/2/slice.json")).unwrap();
    let report = incomplete(&project, &all);
    let said = unusable(&report);
    assert!(
        said.contains("slices/2 is not used: it was cut off"),
        "{said}"
    );
    assert_eq!(unmeasured(&report), own(2));
    let around = incomplete(&project, &["slices".to_owned()]);
    assert!(unusable(&around).contains("slices/2 is not used: it was cut off"));
    // Of slices of which none is whole, nothing else is said.
    let none = [all[1].clone(), "nowhere".to_owned()];
    let codes = incomplete(&project, &none).denied();
    let expected = |code: &String| code == "slice-unusable" || code == "not-measured";
    assert!(codes.iter().all(expected), "{codes:?}");

    // Its artifact was cut off, or written to, on the way.
    let captured = own(2)[0].clone();
    let profile = format!("slices/2/profiles/{captured}/profile.json");
    let whole = project.read(&profile);
    for damage in ["cut", "gone", "more", "link", "json", "folder"] {
        project.write("slices/2/slice.json", &manifest);
        project.write(&profile, &whole);
        let _ = fs::remove_file(project.path("slices/2/profiles/more"));
        match damage {
            "cut" => project.write(&profile, &whole[..whole.len() / 2]),
            "gone" => fs::remove_file(project.path(&profile)).unwrap(),
            "more" => project.write("slices/2/profiles/more", "x"),
            "link" => {
                project.write("elsewhere", &whole);
                fs::remove_file(project.path(&profile)).unwrap();
                symlink(project.path("elsewhere"), project.path(&profile)).unwrap();
            }
            "json" => project.write("slices/2/slice.json", &manifest[..manifest.len() / 2]),
            _ => fs::rename(project.path("slices/2"), project.path("slices/away")).unwrap(),
        }
        let report = incomplete(&project, &all);
        assert!(
            unusable(&report).contains("slices/2"),
            "{damage}: {}",
            unusable(&report)
        );
        assert_eq!(unmeasured(&report), own(2), "{damage}");
    }
}

#[test]
fn a_slice_of_another_plan_or_given_twice_is_named_and_not_used() {
    let project = Project::shipped();
    let all = slices(&project, 2);
    let twice = [all.clone(), vec![all[1].clone()]].concat();
    let report = incomplete(&project, &twice);
    assert!(
        unusable(&report).contains("given 2 times"),
        "{}",
        unusable(&report)
    );
    assert!(!unmeasured(&report).is_empty());

    for (key, value, expected) in [
        ("plan", json!("0".repeat(64)), "another plan"),
        ("tool", json!("9.9.9"), "another plan"),
        ("schema", json!(2), "schema 2"),
        ("archive", json!("0".repeat(64)), "another archive"),
        ("recording", json!(null), "it was measured"),
        ("recording", json!("elsewhere"), "another recording"),
        (
            "same_programs",
            json!([{"variant": "bsr_gemm/cp_async", "base": "0"}]),
            "it leaves out variants",
        ),
        ("place", json!({"index": 3, "count": 2}), "no slice 3"),
        ("slices", json!([[], [], []]), "lists 3 slices of 2"),
        (
            "slices",
            json!([["bsr_gemm/baseline"], []]),
            "another plan, which lacks",
        ),
        ("more", json!(1), "damaged"),
    ] {
        let manifest = project.read("slices/2/slice.json");
        edit(&project, "slices/2/slice.json", |slice| slice[key] = value);
        let report = incomplete(&project, &all);
        let said = unusable(&report);
        assert!(said.contains(expected), "{key}: {said}");
        assert!(!unmeasured(&report).is_empty(), "{key}");
        project.write("slices/2/slice.json", &manifest);
    }
    // The rules of the checkout count: a configuration that measures in another way is another plan.
    let config = project.read("config.toml");
    project.write(
        "config.toml",
        config.replace("\nprocesses = 4", "\nprocesses = 5"),
    );
    let report = incomplete(&project, &all);
    assert!(
        unusable(&report).contains("in another way"),
        "{}",
        unusable(&report)
    );
    // So is another selection.
    project.write("config.toml", &config);
    let select = ["--format", "json", "bsr_gemm/cp_async"];
    let report = judge(&project, &all, &select).exits(6).json();
    assert!(
        unusable(&report).contains("another plan, which has"),
        "{}",
        unusable(&report)
    );
}

#[test]
fn a_slice_cannot_vouch_for_what_its_captures_do_not_show() {
    let project = Project::locked();
    let all = slices(&project, 1);
    let path = "slices/1/profiles/bsr_gemm/cp_async/profile.json";
    edit(&project, path, |profile| {
        common::scale(profile, "duration", 0.5)
    });
    // Whoever wrote it can also write its hash.
    let hash = sparsek_gate::hash::sha256_file(&project.path(path)).unwrap();
    edit(&project, "slices/1/slice.json", |slice| {
        slice["files"]["bsr_gemm/cp_async/profile.json"] = json!(hash);
    });
    let report = judge(&project, &all, &["--format", "json"]).json();
    let altered = [report.denied(), report.warned()].concat();
    assert!(
        altered.contains(&"profile-altered".to_owned()),
        "{altered:?}"
    );
}

#[test]
fn a_slice_replaces_an_earlier_one_and_nothing_else() {
    let project = Project::shipped();
    slice(&project, 1, 2);
    let arguments = [
        "check",
        "--from",
        RECORDED,
        "--slice-output",
        "slices/1",
        "--slice",
    ];
    let run = |place: &str| project.run(&[&arguments[..], &[place]].concat());
    run("2/2").exits(0);
    assert_eq!(project.json("slices/1/slice.json")["place"]["index"], 2);
    project.write("slices/1/notes.txt", "mine");
    run("1/2").exits(2).says("no part of a slice");
    assert_eq!(project.read("slices/1/notes.txt"), "mine");
    run("3/2").exits(2).says("counted from 1 to 2");
    project
        .run(&["check", "--slice", "1/2", "--slice-output", "other"])
        .exits(2)
        .says("requires `--archive FILE`, or one `--from DIR`");
}

#[test]
fn slices_that_are_killed_are_never_taken_for_whole_ones() {
    let project = Project::shipped();
    let expected = project.run(&["check", "--from", RECORDED]).code;
    let all = slices(&project, 2);
    let start = || {
        let mut command = project.gate();
        command.args(["check", "--from", RECORDED, "--slice", "2/2"]);
        command.args(["--slice-output", "slices/2"]);
        command
    };
    kill_at_random("check --slice", kills(5), start, |ended| {
        let whole = project.path("slices/2/slice.json").is_file();
        assert!(whole || !ended);
        let judged = judge(&project, &all, &[]);
        assert_eq!(
            judged.code,
            if whole { expected } else { 6 },
            "{}",
            judged.out
        );
    });
    // The next one replaces what a killed one left.
    slice(&project, 2, 2);
    judge(&project, &all, &[]).exits(expected);
}

/// A project of many variants, all with the recording and the lock of one.
fn many(count: usize) -> Project {
    let project = Project::locked();
    let config = project.read("config.toml");
    let suite = config.find("[suite.").unwrap();
    let names = || (0..count).map(|at| format!("v{at:04}"));
    let variants = names().map(|name| {
        format!("[suite.many.variant.{name}]\nrun = [\"true\"]\ninputs = [\"config.toml\"]\n")
    });
    let suites: String = variants.collect();
    let head = "[suite.many]\nkernels = \"regex:^bsr_gemm_\"\n";
    project.write("config.toml", format!("{}{head}{suites}", &config[..suite]));
    let recorded = project.path(&format!("{RECORDED}/bsr_gemm/cp_async"));
    fs::remove_dir_all(project.path("baselines")).unwrap();
    for name in names() {
        let to = project.path(&format!("{RECORDED}/many/{name}"));
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(&recorded).unwrap() {
            let from = entry.unwrap().path();
            let file = to.join(from.file_name().unwrap());
            if from.ends_with("profile.json") || from.ends_with("static.json") {
                continue;
            }
            fs::hard_link(&from, &file)
                .or_else(|_| fs::copy(&from, &file).map(drop))
                .unwrap();
        }
        let mut profile = project.json(&format!("{RECORDED}/bsr_gemm/cp_async/profile.json"));
        profile["variant"] = json!(format!("many/{name}"));
        let path = format!("{RECORDED}/many/{name}/profile.json");
        project.write(&path, profile.to_string());
    }
    project
}

#[test]
fn a_dozen_variants_in_five_slices_are_one_check() {
    let project = many(12);
    let all = slices(&project, 5);
    let manifest = project.json("slices/1/slice.json");
    for own in manifest["slices"].as_array().unwrap() {
        assert!(own.as_array().unwrap().len().abs_diff(2) <= 1);
    }
    let judged = judge(&project, &all, &["--format", "json"]);
    let one = project.run(&["check", "--from", RECORDED, "--format", "json"]);
    assert_eq!(one.code, judged.code);
    assert!(one.out == judged.out);
    assert!(judged.json().0["findings"].as_array().unwrap().len() >= 12);
}

#[test]
fn a_report_does_not_replace_a_slice() {
    let project = Project::shipped();
    let all = slices(&project, 1);
    let target = ["--report", "json:slices/1/slice.json"];
    judge(&project, &all, &target)
        .exits(2)
        .says("would replace a file");
    assert!(Path::new(&project.path("slices/1/slice.json")).is_file());
}
