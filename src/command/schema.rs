//! `sparsek-gate schema`.

use super::answer::print;
use crate::cli::SchemaArgs;
use crate::finding::{Error, ExitCode};

pub(super) fn run(arguments: &SchemaArgs) -> Result<ExitCode, Error> {
    print(&if arguments.outcome {
        crate::report::outcome_schema()
    } else {
        crate::config::schema()
    })?;
    Ok(ExitCode::Pass)
}
