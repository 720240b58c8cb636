//! What is said of the gate's error rates holds on the recorded rounds, with fewer checks than
//! `cargo run --profile dist --example evaluate` draws.

#[path = "../ci/evaluation/mod.rs"]
mod evaluation;

use std::path::Path;

use evaluation::{Evaluation, Settings, evaluate};

/// All recordings.
const RECORDINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/ci/recordings");

#[expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]
fn evaluated(recordings: &Path, checks: usize, seed: u64) -> Evaluation {
    evaluate(&Settings {
        data: Path::new(RECORDINGS).join("rounds"),
        recordings: recordings.to_path_buf(),
        config: Path::new(env!("CARGO_MANIFEST_DIR")).join("config.toml"),
        checks,
        seed,
        sweep: false,
        locked_launches: None,
    })
    .unwrap()
}

#[test]
fn the_recorded_rounds_hold_every_target() {
    let done = evaluated(Path::new(RECORDINGS), 16, 1);
    assert!(
        done.missed.is_empty(),
        "{}\n{}",
        done.missed.join("\n"),
        done.text
    );
}

#[test]
fn a_seed_draws_the_same_checks_every_time() {
    // A few GPUs are enough, and take less time.
    let few = tempfile::tempdir().unwrap();
    for folder in ["machines", "rounds", "unchanged"] {
        std::fs::create_dir(few.path().join(folder)).unwrap();
    }
    for folder in ["h200", "h200-locked"] {
        let all = Path::new(RECORDINGS).join(folder);
        std::os::unix::fs::symlink(all, few.path().join(folder)).unwrap();
    }
    let drawn = |seed: u64| evaluated(few.path(), 2, seed);
    let (one, same, other) = (drawn(2), drawn(2), drawn(3));
    assert_eq!(one.text, same.text);
    assert_ne!(one.text, other.text);
}
