//! What is said of the gate's error rates holds on the recorded rounds, with fewer checks than
//! `cargo run --release -p evaluation` draws.

use std::fs;
use std::path::{Path, PathBuf};

use evaluation::{Evaluation, Settings, evaluate, unpacked};

/// The repository.
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]
fn evaluated(recordings: &Path, checks: usize, seed: u64) -> Evaluation {
    evaluate(&Settings {
        recordings: recordings.to_path_buf(),
        config: Path::new(REPOSITORY).join("config.toml"),
        checks,
        seed,
        sweep: false,
        locked_launches: None,
    })
    .unwrap()
}

#[expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]
fn recordings(into: &Path) -> PathBuf {
    unpacked(&Path::new(REPOSITORY).join("ci/recordings"), into).unwrap()
}

#[test]
fn the_recorded_rounds_hold_every_target() {
    let done = evaluated(&recordings(env!("CARGO_TARGET_TMPDIR").as_ref()), 16, 1);
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
    let folder = tempfile::tempdir().unwrap();
    let few = recordings(folder.path());
    for folder in ["machines", "unchanged"] {
        let folder = few.join(folder);
        fs::remove_dir_all(&folder).unwrap();
        fs::create_dir(folder).unwrap();
    }
    let drawn = |seed: u64| evaluated(&few, 2, seed);
    let (one, same, other) = (drawn(2), drawn(2), drawn(3));
    assert_eq!(one.text, same.text);
    assert_ne!(one.text, other.text);
}
