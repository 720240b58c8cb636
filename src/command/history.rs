//! `sparsek-gate history`.

use std::path::Path;

use crate::cli::HistoryArgs;
use crate::error::Error;
use crate::verdict::ExitCode;

pub(super) fn run(_config: &Path, _arguments: &HistoryArgs) -> Result<ExitCode, Error> {
    Err(Error::Usage("`history` is not there yet".to_owned()))
}
