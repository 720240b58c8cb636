//! Evaluates the gate on recordings of unchanged kernels and programs, and of kernels that are slower on
//! purpose: false alarms, checks that do not pass, and how many regressions are caught. Needs no GPU.
//!
//! ```text
//! cargo run --release -p evaluation
//! ```

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use sparsek_gate::config::Config;
use sparsek_gate::report;

use evaluation::{Evaluation, Recordings, evaluate, unpacked};

/// Judges simulated checks, drawn from recordings, and fails if a target is missed.
#[derive(Parser)]
struct Arguments {
    /// Folder of all recordings.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ci/recordings"))]
    recordings: PathBuf,
    /// The configuration whose tolerances are judged.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config.toml"))]
    config: PathBuf,
    /// Checks of kernels drawn for each question.
    #[arg(long, default_value_t = 20_000)]
    checks: usize,
    /// The same of programs.
    #[arg(long, default_value_t = 5_000)]
    programs: usize,
    /// Seed of the random numbers: the same seed draws the same checks.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    let done = evaluation(&Arguments::parse())
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

fn evaluation(arguments: &Arguments) -> Result<Evaluation, Box<dyn Error>> {
    let config = Config::load(&arguments.config)?;
    let folder = tempfile::tempdir()?;
    let recordings = unpacked(&arguments.recordings, folder.path())?;
    let recordings = Recordings::read(&recordings, &config)?;
    let (checks, programs) = (arguments.checks, arguments.programs);
    Ok(evaluate(&recordings, checks, programs, arguments.seed))
}
