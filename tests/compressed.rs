//! Compressed reports (`.ncu-repz`), which ncu writes since 2026.3, are what other reports are: measured,
//! imported, locked, stripped, shown.

use std::fs;

use ncu_report::report;

use crate::common::stand_in::Machine;
use crate::common::{Project, repository};

const PROFILES: &str = ".sparsek-gate/profiles";
const VARIANT: &str = "bsr_gemm/baseline";
const STEMS: [&str; 5] = [
    "counting", "capture-1", "capture-2", "capture-3", "capture-4",
];

/// Compresses the report at a path of the repository.
fn compressed(from: &str) -> Vec<u8> {
    let report = fs::read(repository().join(from)).unwrap();
    let compressed = report::compress(&report);
    assert!(compressed.len() < report.len() / 2);
    assert!(report::read(&compressed).unwrap() == report::read(&report).unwrap());
    compressed
}

/// A machine whose ncu compresses its reports.
fn machine() -> Machine {
    let machine = Machine::new();
    for stem in STEMS {
        let from = format!("tests/data/stand_in/recordings/h200/{VARIANT}/{stem}");
        let to = format!("compressed/h200/{VARIANT}/{stem}");
        let project = &machine.project;
        project.write(
            &format!("{to}.ncu-repz"),
            compressed(&format!("{from}.ncu-rep")),
        );
        fs::copy(
            repository().join(format!("{from}.csv")),
            project.path(&format!("{to}.csv")),
        )
        .unwrap();
    }
    let recordings = machine.path("compressed");
    machine.ncu(&format!("export RECORDINGS='{}'", recordings.display()));
    machine
}

#[test]
fn what_a_newer_ncu_writes_is_measured_locked_checked_and_stripped() {
    let machine = machine();
    let project = &machine.project;
    machine.lock_measured();
    let profile = project.json(&format!("{PROFILES}/{VARIANT}/profile.json"));
    let captures = profile["provenance"]["captures"].as_array().unwrap().iter();
    let files = captures.map(|capture| capture["report"]["file"].as_str().unwrap().to_owned());
    let written = STEMS.map(|stem| format!("{stem}.ncu-repz"));
    assert_eq!(files.collect::<Vec<_>>(), written);
    for file in &written {
        let path = project.path(&format!("{PROFILES}/{VARIANT}/{file}"));
        assert_eq!(report::ending(&fs::read(path).unwrap()), Some("ncu-repz"));
    }
    machine
        .run(&["baseline", "--verify", "--captures", PROFILES])
        .exits(0);
    // A copy has the names that the profile states, and a hash of each.
    machine.run(&["strip", PROFILES, "public"]).exits(0);
    for from in [PROFILES, "public"] {
        machine
            .run(&["check", "--from", from, "--baseline-ref", "none"])
            .exits(0);
    }
    let copy = fs::read(project.path(&format!("public/{VARIANT}/{}", written[1]))).unwrap();
    assert_eq!(report::ending(&copy), Some("ncu-repz"));
    // A change of one capture is seen.
    let path = format!("public/{VARIANT}/{}", written[1]);
    project.write(
        &path,
        report::compress(&fs::read(repository().join("tests/data/ncu/full_set.ncu-rep")).unwrap()),
    );
    machine
        .run("check --from public --baseline-ref none")
        .says("profile-altered");
}

#[test]
fn of_two_reports_of_one_process_none_is_taken() {
    let machine = Machine::new();
    let good = repository().join(format!(
        "tests/data/stand_in/recordings/h200/{VARIANT}/capture-1.ncu-rep"
    ));
    // Something else writes beside ncu.
    machine.ncu(&format!(
        "for word; do [ \"$last\" != --export ] || cp '{}' \"$word.ncu-repz\"; last=$word; done",
        good.display()
    ));
    let ran = machine.run("profile --format json").exits(5);
    assert_eq!(ran.json().denied(), ["altered-during-run"]);
    let message = ran.json().message("altered-during-run").to_owned();
    for ending in report::ENDINGS {
        assert!(message.contains(&format!("counting.{ending}")), "{message}");
    }
}

#[test]
fn a_compressed_report_is_shown_compared_and_imported_by_its_content() {
    let project = Project::unlocked();
    let from = format!("tests/data/stand_in/recordings/h200/{VARIANT}/capture-1.ncu-rep");
    let plain = repository().join(&from).display().to_string();
    let shown = |path: &str| {
        let ran = project.run(&["inspect", path, "--format", "json"]).exits(0);
        ran.json().0
    };
    for name in ["theirs.ncu-repz", "renamed.ncu-rep"] {
        project.write(name, compressed(&from));
        assert_eq!(shown(name), shown(&plain));
    }
    let diff = ["compare", &plain, "theirs.ncu-repz", "--format", "json"];
    let kernel = project.run(&diff).exits(0).json().0["kernels"][0].clone();
    assert_eq!(kernel["before"], kernel["after"]);
    for metric in kernel["metrics"].as_array().unwrap() {
        assert_eq!(metric["before"], metric["after"]);
    }
    // The name of the copy decides, as in NVIDIA's tools.
    for (copy, ending) in [("copy.ncu-rep", "ncu-rep"), ("copy.ncu-repz", "ncu-repz")] {
        for from in ["theirs.ncu-repz", &plain] {
            project.run(&["strip", from, copy]).exits(0);
            let bytes = fs::read(project.path(copy)).unwrap();
            assert_eq!(report::ending(&bytes), Some(ending), "{from} to {copy}");
            assert_eq!(shown(copy)["launches"].as_array().unwrap().len(), 20);
            fs::remove_file(project.path(copy)).unwrap();
        }
    }
    let import = ["import", "renamed.ncu-rep", "--variant", VARIANT];
    // The counting process of the variant is another capture.
    project.run(&import).exits(6);
    let imported = project.path(&format!("{PROFILES}/{VARIANT}/imported.ncu-repz"));
    assert!(fs::read(imported).unwrap() == compressed(&from));
    // What else is compressed is named.
    project.write("other.ncu-repz", report::compress(b"hello there"));
    let ran = project.run("inspect other.ncu-repz");
    let ran = ran.ends(2, "found a Zstandard frame around a text of 11 bytes");
    assert!(!ran.err.contains("hello"), "{}", ran.err);
}
