//! What is said of the gate's error rates holds on the recorded rounds, with fewer checks than
//! `cargo run --profile dist --example evaluate` draws.

#[path = "../ci/evaluation/mod.rs"]
mod evaluation;

use evaluation::{Evaluation, Settings, evaluate};

#[expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]
fn evaluated(checks: usize, seed: u64) -> Evaluation {
    let repository = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    evaluate(&Settings {
        data: repository.join("ci/recordings/rounds"),
        recordings: repository.join("ci/recordings"),
        config: repository.join("config.toml"),
        checks,
        seed,
        sweep: false,
        locked_launches: None,
    })
    .unwrap()
}

#[test]
fn the_recorded_rounds_hold_every_target() {
    let checks = if cfg!(debug_assertions) { 16 } else { 400 };
    let done = evaluated(checks, 1);
    assert!(
        done.missed.is_empty(),
        "{}\n{}",
        done.missed.join("\n"),
        done.text
    );
}

#[test]
fn a_seed_draws_the_same_checks_every_time() {
    let (one, same, other) = (evaluated(2, 2), evaluated(2, 2), evaluated(2, 3));
    assert_eq!(one.text, same.text);
    assert_ne!(one.text, other.text);
}
