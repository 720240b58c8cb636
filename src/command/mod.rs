//! The subcommands: each composes the stages.

mod baseline;
mod build;
mod check;
mod completions;
mod diff;
mod doctor;
mod history;
mod import;
mod init;
mod inspect;
mod man;
mod profile;
mod report;
mod schema;
mod strip;
mod verify;

use crate::config::{Config, Pin, Selected};
use std::path::Path;

use serde::Serialize;

use crate::build::Artifact;
use crate::cli::{Cli, Command, Format, Selection, Trial};
use crate::evidence::unpinned;
use crate::finding::{Error, ExitCode, Finding, Severity};
use crate::judge::Outcome;
use crate::report::{self as reports, Capability, Form};
use ncu_report::ReadError;

/// Runs a subcommand and says what to exit with.
pub fn run(cli: Cli) -> ExitCode {
    let config = cli.config;
    let result = match cli.command {
        Command::Init(arguments) => init::run(&config, &arguments),
        Command::Build(arguments) => build::run(&config, &arguments),
        Command::Verify(arguments) => verify::run(&config, &arguments),
        Command::Profile(arguments) => profile::run(&config, &arguments),
        Command::Import(arguments) => import::run(&config, &arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Baseline(arguments) => baseline::run(&config, &arguments),
        Command::Check(arguments) => check::run(&config, &arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::History(arguments) => history::run(&config, &arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Strip(arguments) => strip::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&config, &arguments),
        Command::Probe(arguments) => {
            crate::device::probe::launch(arguments.device).map(|()| ExitCode::Pass)
        }
        Command::Schema(arguments) => schema::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    };
    result.unwrap_or_else(|error| {
        reports::print_error(&error.to_string());
        error.exit_code()
    })
}

/// The variants that the arguments select.
fn select(config: Config, selection: &Selection, trial: Option<&Trial>) -> Result<Selected, Error> {
    let overrides = trial.map_or(&[][..], |trial| &trial.define);
    Selected::new(config, &selection.names, selection.experimental, overrides)
}

/// The same of the configuration at a path.
fn load(config: &Path, selection: &Selection, trial: Option<&Trial>) -> Result<Selected, Error> {
    select(Config::load(config)?, selection, trial)
}

/// That variants were built, and perhaps run, with another toolchain than is pinned.
fn other_toolchain(
    selected: &Selected,
    artifacts: &[Option<Artifact>],
    machine: &[Pin],
) -> Vec<Finding> {
    let pins_of = |artifact: &Artifact| {
        let compiler = artifact.compiler.as_deref();
        let pins = &selected.config.toolchain.pins;
        let cuda = compiler.and_then(|version| pins.cuda(version));
        machine.iter().cloned().chain(cuda).collect::<Vec<_>>()
    };
    let what = if machine.is_empty() { "built" } else { "run" };
    let built = selected.variants.iter().zip(artifacts);
    built
        .filter_map(|(variant, artifact)| unpinned(&variant.id, what, &pins_of(artifact.as_ref()?)))
        .collect()
}

/// What the findings of a run without verdicts exit with.
fn exit_code(findings: &[Finding]) -> ExitCode {
    findings
        .iter()
        .filter(|finding| finding.severity == Severity::Deny)
        .map(|finding| finding.code.exit_code())
        .fold(ExitCode::Pass, ExitCode::worse)
}

/// The JSON form of whatever is not a report.
#[derive(Serialize)]
struct Answer<'a, T: Serialize> {
    schema: u32,
    #[serde(flatten)]
    content: T,
    findings: &'a [Finding],
    exit_code: u8,
}

/// Prints content and findings in the asked form, and says what to exit with.
fn answer<T: Serialize>(
    format: Format,
    content: T,
    findings: &[Finding],
    text: impl FnOnce() -> String,
) -> Result<ExitCode, Error> {
    let code = exit_code(findings);
    let text = match format {
        Format::Text => format!(
            "{}{}",
            reports::clean(&text()),
            reports::findings_text(findings)
        ),
        Format::Json => json(&Answer {
            schema: 1,
            content,
            findings,
            exit_code: code as u8,
        }),
    };
    print(&text)?;
    Ok(code)
}

/// A capture that the user named: missing is not the same as damaged.
fn unreadable(path: &std::path::Path, error: ReadError) -> Error {
    match error {
        ReadError::InFile { source, .. } => unreadable(path, *source),
        ReadError::Io(source) => Error::named(path)(source),
        error => Error::Input {
            path: path.to_path_buf(),
            cause: error.to_string(),
        },
    }
}

fn json(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let mut text = reports::json_for_terminals(text);
    text.push('\n');
    text
}

fn print(text: &str) -> Result<(), Error> {
    reports::print(text).map_err(Error::io("write", "standard output"))
}

/// Prints an outcome. Only a form of commands may command the service that keeps the log.
fn print_outcome(outcome: &Outcome, form: &Form) -> Result<(), Error> {
    let text = form.render(outcome);
    if form.has(Capability::Commands) {
        reports::print_commands(&text)
    } else {
        reports::print(&text)
    }
    .map_err(Error::io("write", "standard output"))
}
