//! `sparsek-gate report`.

use crate::cli::ReportArgs;
use crate::error::Error;
use crate::verdict::ExitCode;

pub(super) fn run(_arguments: &ReportArgs) -> Result<ExitCode, Error> {
    Err(Error::Usage("`report` is not there yet".to_owned()))
}
