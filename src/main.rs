//! The `sparsek-gate` command: parse, run, exit.

use std::process::ExitCode;

use clap::Parser;
use sparsek_gate::cli::Cli;
use sparsek_gate::{command, process, report};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output and are no error.
            let code = if error.use_stderr() {
                sparsek_gate::ExitCode::Usage
            } else {
                sparsek_gate::ExitCode::Pass
            };
            let _ = error.print();
            return ExitCode::from(code as u8);
        }
    };
    report::color(cli.color);
    if let Err(error) = process::stop_on_signals() {
        report::say(&format!(
            "signals cannot be handled ({error}): an interrupt may leave programs running"
        ));
    }
    let code = std::panic::catch_unwind(|| command::run(cli)).unwrap_or_else(|_| {
        report::print_error(
            "this is a defect of sparsek-gate; please report it with the message above",
        );
        sparsek_gate::ExitCode::Internal
    });
    ExitCode::from(code as u8)
}
