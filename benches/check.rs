//! Whole-process times of the commands that run in every pipeline.

use std::io::{Write as _, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const RECORDING: &str = "ci/recordings/h200";

fn main() {
    divan::main();
    beside_sha256sum();
}

fn gate(arguments: &[&str]) {
    let status = Command::new(env!("CARGO_BIN_EXE_sparsek-gate"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .stdout(Stdio::null())
        .status();
    assert!(status.is_ok_and(|status| status.success()));
}

/// What each command pays before it does anything.
#[divan::bench(sample_count = 200)]
fn start() {
    gate(&["--version"]);
}

#[divan::bench(sample_count = 50)]
fn check_of_the_recorded_profiles() {
    gate(&["check", "--from", RECORDING, "--baseline-ref", "none"]);
}

#[divan::bench(sample_count = 50)]
fn re_derivation_of_every_locked_number() {
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("ci/recordings");
    let folder = evaluation::unpacked(&recordings, env!("CARGO_TARGET_TMPDIR").as_ref());
    let captures = folder.map(|folder| folder.join("h200-locked").display().to_string());
    gate(&[
        "baseline",
        "--verify",
        "--captures",
        &captures.unwrap_or_default(),
    ]);
}

/// The check of a recording and `sha256sum` over its files, in turns: no check can be faster than
/// to read and to hash. Which of both has the faster hash depends on the processor and on the
/// build of `sha256sum`.
fn beside_sha256sum() {
    const ROUNDS: usize = 30;
    let mut files = Vec::new();
    list(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join(RECORDING),
        &mut files,
    );
    let hash = || -> std::io::Result<ExitStatus> {
        let mut command = Command::new("sha256sum");
        command.args(&files).stdout(Stdio::null()).status()
    };
    if !hash().is_ok_and(|status| status.success()) {
        let _ = writeln!(
            stderr(),
            "SKIPPED: the comparison with sha256sum, which does not run here \
             (apt-get install coreutils)"
        );
        return;
    }
    let timed = |work: &dyn Fn()| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    let (mut checks, mut hashes) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        checks.push(timed(&check_of_the_recorded_profiles));
        hashes.push(timed(&|| drop(hash())));
    }
    let of = |mut times: Vec<Duration>| {
        times.sort();
        let ms = |time: &Duration| time.as_secs_f64() * 1e3;
        (ms(&times[0]), ms(&times[times.len() / 2]))
    };
    let ((check, check_median), (hash, hash_median)) = (of(checks), of(hashes));
    let _ = writeln!(
        stdout(),
        "ms, min / median: check {check:.1} / {check_median:.1}, sha256sum over its {} files \
         {hash:.1} / {hash_median:.1}, ratio {:.2} / {:.2}",
        files.len(),
        check / hash,
        check_median / hash_median
    );
}

/// Every file below a folder.
fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => list(&path, files),
            false => files.push(path),
        }
    }
}
