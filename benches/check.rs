//! Whole-process times of the commands that run in every pipeline.

use std::process::{Command, Stdio};

fn main() {
    divan::main();
}

fn gate(arguments: &[&str]) {
    let status = Command::new(env!("CARGO_BIN_EXE_sparsek-gate"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .stdout(Stdio::null())
        .status();
    assert!(status.is_ok_and(|status| status.success()));
}

#[divan::bench(sample_count = 50)]
fn check_of_the_recorded_profiles() {
    gate(&[
        "check",
        "--from",
        "ci/recordings/h200",
        "--baseline-ref",
        "none",
    ]);
}

#[divan::bench(sample_count = 50)]
fn re_derivation_of_every_locked_number() {
    gate(&["baseline", "--verify", "--captures", "ci/recordings"]);
}
