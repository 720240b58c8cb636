//! docs/kernels.md and docs/ladder.md show of the kernels what was measured, and the lines that they have.

use crate::common::repository;
use std::process::Command;

/// Runs a script that compares a page with what it is made from.
fn is_current(script: &str) {
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
