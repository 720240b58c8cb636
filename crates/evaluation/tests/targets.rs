//! What is said of the gate's error rates is true of the recordings, with fewer checks than
//! `cargo run --release -p evaluation` draws.

use std::path::Path;
use std::sync::LazyLock;

use evaluation::{Recordings, evaluate, unpacked};
use sparsek_gate::config::Config;

/// The repository.
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]
static RECORDINGS: LazyLock<Recordings> = LazyLock::new(|| {
    let repository = Path::new(REPOSITORY);
    let config = Config::load(&repository.join("config.toml")).unwrap();
    let into = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = unpacked(&repository.join("ci/recordings"), into).unwrap();
    Recordings::read(&folder, &config).unwrap()
});

#[test]
fn the_recordings_meet_every_target() {
    let done = evaluate(&RECORDINGS, 1000, 100, 1);
    let missed = done.missed.join("\n");
    assert!(done.missed.is_empty(), "{missed}\n\n{}", done.text);
}

#[test]
fn a_seed_draws_the_same_checks_every_time() {
    let drawn = |seed: u64| evaluate(&RECORDINGS, 100, 2, seed).text;
    let one = drawn(2);
    assert_eq!(one, drawn(2));
    assert_ne!(one, drawn(3));
}
