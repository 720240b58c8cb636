//! `sparsek-gate diff`.

use crate::cli::DiffArgs;
use crate::error::Error;
use crate::verdict::ExitCode;

pub(super) fn run(_arguments: &DiffArgs) -> Result<ExitCode, Error> {
    Err(Error::Usage("`diff` is not there yet".to_owned()))
}
