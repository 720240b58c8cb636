//! `sparsek-gate completions`.

use clap::CommandFactory as _;

use super::answer::print;
use crate::cli::{Cli, CompletionsArgs};
use crate::finding::{Error, ExitCode};

pub(super) fn run(arguments: &CompletionsArgs) -> Result<ExitCode, Error> {
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::Pass)
}
