//! docs/kernels.md and docs/ladder.md show of the kernels what was measured, and the lines that they have.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use crate::common::{aloud, outside_pull_request, repository};
use std::fs;
use std::process::Command;

/// Runs a script that compares a page with what it is made from.
fn is_current(script: &str) {
    if Command::new("python3").arg("--version").output().is_err() {
        aloud(&format!(
            "SKIPPED: {script}, there is no python3 on the PATH; \
             `apt-get install python3` installs one"
        ));
        return;
    }
    let output = Command::new("python3")
        // Without a folder of byte code beside the scripts.
        .args(["-B", script, "--check"])
        .current_dir(repository())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_tables_of_the_kernels_are_what_the_record_gives() {
    is_current("kernels/peers/picture.py");
}

#[test]
fn the_ladder_shows_the_record_the_recordings_and_the_kernels() {
    is_current("kernels/peers/ladder.py");
}

#[test]
fn the_pictures_of_the_ladder_are_those_of_the_report() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("ladder-pictures");
    fs::create_dir_all(&folder).unwrap();
    let pictures = [
        ("ladder", "ladder.svg"),
        ("roofline", "ladder-roofline.svg"),
    ];
    let mut command = Command::new(env!("CARGO_BIN_EXE_sparsek-gate"));
    outside_pull_request(&mut command);
    command.current_dir(repository()).args([
        "check",
        "bsr_gemm",
        "--from",
        "ci/recordings/h200",
        "--baseline-ref",
        "none",
    ]);
    for (form, file) in pictures {
        let file = folder.join(file);
        command
            .arg("--report")
            .arg(format!("{form}:{}", file.display()));
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    for (_, file) in pictures {
        let made = fs::read_to_string(folder.join(file)).unwrap();
        let shown = repository().join("docs").join(file);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&shown, &made).unwrap();
        }
        let how = "UPDATE_DOCS=1 cargo test --test all kernels_table::";
        let shown = fs::read_to_string(shown).unwrap();
        assert!(shown == made, "docs/{file} is old; to write it: {how}");
    }
}
