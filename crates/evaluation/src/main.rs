//! Evaluates the gate on recorded rounds of unchanged kernels and of kernels that are slower on
//! purpose: false alarms, inconclusive verdicts, and how many regressions are caught. Needs no GPU.
//!
//! ```text
//! cargo run --release -p evaluation -- --sweep
//! ```

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use sparsek_gate::report;

use evaluation::{Evaluation, Settings, evaluate, unpacked};

/// Judges simulated checks, drawn from recorded rounds, and fails if a target is missed.
#[derive(Parser)]
struct Arguments {
    /// Folder of all recordings.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ci/recordings"))]
    recordings: PathBuf,
    /// The configuration whose tolerances are judged.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config.toml"))]
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
    let done = evaluation(Arguments::parse())
        .and_then(|done| Ok((report::print(&done.text)?, done.missed)));
    match done {
        Ok(((), missed)) if missed.is_empty() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            report::print_error(&error.to_string());
            ExitCode::from(2)
        }
    }
}

fn evaluation(arguments: Arguments) -> Result<Evaluation, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    evaluate(&Settings {
        recordings: unpacked(&arguments.recordings, folder.path())?,
        config: arguments.config,
        checks: arguments.checks,
        seed: arguments.seed,
        sweep: arguments.sweep,
        locked_launches: arguments.locked_launches,
    })
}
