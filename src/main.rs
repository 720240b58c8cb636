//! The `sparsek-gate` command: parse, run, exit.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use sparsek_gate::cli::{Cli, Command};
use sparsek_gate::tips::with_tip;
use sparsek_gate::{command, process, profile, report};

fn main() -> ExitCode {
    profile::began();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
            let error = with_tip(error, &words.collect::<Vec<_>>());
            // Help and version go to standard output and are no error.
            let code = match error.use_stderr() {
                true => sparsek_gate::ExitCode::Usage,
                false => sparsek_gate::ExitCode::Pass,
            };
            // Arguments may be names of files that somebody else chose.
            let plain = |argument: OsString| report::is_plain(&argument.to_string_lossy());
            if std::env::args_os().all(plain) {
                let _ = error.print();
            } else {
                report::say(error.render().to_string().trim_end());
            }
            return ExitCode::from(code as u8);
        }
    };
    report::color(cli.color);
    if cli.no_wait {
        process::never_wait();
    }
    // A command that only reads has nothing to stop or to clean up.
    let only_reads = matches!(
        cli.command,
        Command::Inspect(_)
            | Command::Report(_)
            | Command::List(_)
            | Command::Plan(_)
            | Command::Generate(_)
    );
    let is_probe = matches!(cli.command, Command::Probe { .. });
    if !only_reads
        && !is_probe
        && let Err(error) = process::guard()
    {
        report::say(&format!(
            "processes that lose their parent cannot be adopted ({error}): a program may leave processes running"
        ));
    }
    let handled = match cli.command {
        _ if only_reads => process::end_on_signals(),
        _ => process::stop_on_signals(),
    };
    if let Err(error) = handled {
        report::say(&format!(
            "signals cannot be handled ({error}): an interrupt may leave programs running"
        ));
    }
    let code = std::panic::catch_unwind(|| command::run(cli)).unwrap_or_else(|_| {
        report::print_error("this is a defect of sparsek-gate; report it with the message above");
        sparsek_gate::ExitCode::Internal
    });
    process::over();
    let code = match process::was_ended() {
        true => sparsek_gate::ExitCode::Interrupted,
        false => code,
    };
    ExitCode::from(code as u8)
}
