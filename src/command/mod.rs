//! The subcommands: each composes the stages.

mod answer;
mod archive;
mod baseline;
mod build;
mod check;
mod command_line;
mod compare;
mod compare_code;
mod doctor;
mod from;
mod generate;
mod import;
mod init;
mod inspect;
mod judging;
mod list;
mod on_gpus;
mod overview;

mod plan;
mod profile;
mod program;
mod report;
mod resume;
mod run_folder;
mod select;
mod slice;
mod stored;
mod strip;
mod survey;
mod verify;

use std::path::Path;

use crate::cli::{Cli, Command};
use crate::config::FILE_NAME;
use crate::device::probe;
use crate::finding::{ExitCode, name_config, with_files};
use crate::report as reports;
use answer::unreadable;

/// Runs a subcommand and returns its exit code.
pub fn run(cli: Cli) -> ExitCode {
    let config = cli.config;
    if config != Path::new(FILE_NAME) {
        name_config(&config);
    }
    let result = match cli.command {
        Command::Init(arguments) => init::run(&config, &arguments),
        Command::List(arguments) => list::run(&config, &arguments),
        Command::Build(arguments) => build::run(&config, &arguments),
        Command::Verify(arguments) => verify::run(&config, &arguments),
        Command::Profile(arguments) => profile::run(&config, &arguments),
        Command::Import(arguments) => import::run(&config, &arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Baseline(arguments) => baseline::run(&config, &arguments),
        Command::Check(arguments) => check::run(&config, &arguments),
        Command::Archive(arguments) => archive::run(&config, &arguments),
        Command::Plan(arguments) => plan::run(&config, &arguments),
        Command::Compare(arguments) => compare::run(&config, &arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Strip(arguments) => strip::run(&arguments),
        Command::Doctor { format } => doctor::run(&config, format),
        Command::Probe { device } => probe::launch(device).map(|()| ExitCode::Pass),
        Command::Generate(what) => generate::run(&what),
    };
    result.unwrap_or_else(|error| {
        reports::print_error(&with_files(error.to_string()));
        error.exit_code()
    })
}
