//! `sparsek-gate report`.

use super::judging::refuse_targets;
use super::print_outcome;
use crate::cli::ReportArgs;
use crate::finding::{Error, ExitCode};
use crate::report;

pub(super) fn run(arguments: &ReportArgs) -> Result<ExitCode, Error> {
    let targets = report::targets(&arguments.report)?;
    let source = &arguments.outcome;
    refuse_targets(&targets, None, &[source])?;
    let outcome = report::read(source)?;
    print_outcome(&outcome, arguments.format, arguments.verbosity.detail())?;
    for target in &targets {
        target.write(&outcome)?;
    }
    Ok(ExitCode::Pass)
}
