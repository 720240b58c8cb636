//! `sparsek-gate report`.

use super::answer;
use super::judging::refuse_targets;
use crate::cli::ReportArgs;
use crate::finding::{Error, ExitCode};
use crate::report;

pub(super) fn run(arguments: &ReportArgs) -> Result<ExitCode, Error> {
    let targets = report::targets(&arguments.report)?;
    let source = &arguments.outcome;
    refuse_targets(&targets, None, &[source])?;
    let outcome = report::read(source)?;
    let detail = arguments.verbosity.detail();
    answer::report(&outcome, None, arguments.format, detail, &targets)?;
    Ok(ExitCode::Pass)
}
