//! Evaluates the gate on recorded rounds of unchanged kernels and of kernels that are slower on
//! purpose: false alarms, inconclusive verdicts, and how many regressions are caught. Needs no GPU.
//!
//! ```text
//! cargo run --profile dist --example evaluate -- --sweep
//! ```

mod evaluation;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use sparsek_gate::report;

use evaluation::{Settings, evaluate};

/// Judges simulated checks, drawn from recorded rounds, and fails if a target is missed.
#[derive(Parser)]
struct Arguments {
    /// Folder of the recorded machine starts.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/ci/recordings/rounds"))]
    data: PathBuf,
    /// Folder of all recordings, for the values of many GPUs.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/ci/recordings"))]
    recordings: PathBuf,
    /// The configuration whose tolerances are judged.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/config.toml"))]
    config: PathBuf,
    /// Checks drawn for each question.
    #[arg(long, default_value_t = 2000)]
    checks: usize,
    /// Seed of the random numbers: the same seed draws the same checks.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also try other tolerances.
    #[arg(long)]
    sweep: bool,
    /// Lock only so many launches of each process, fewer than are judged.
    #[arg(long)]
    locked_launches: Option<usize>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let settings = Settings {
        data: arguments.data,
        recordings: arguments.recordings,
        config: arguments.config,
        checks: arguments.checks,
        seed: arguments.seed,
        sweep: arguments.sweep,
        locked_launches: arguments.locked_launches,
    };
    match evaluate(&settings).and_then(|done| Ok((report::print(&done.text)?, done.missed))) {
        Ok(((), missed)) if missed.is_empty() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            report::print_error(&error.to_string());
            ExitCode::from(2)
        }
    }
}
