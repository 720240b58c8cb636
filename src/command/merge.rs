//! `sparsek-gate merge`.

use std::path::Path;

use crate::cli::MergeArgs;
use crate::finding::{Error, ExitCode};

pub(super) fn run(_config: &Path, _arguments: &MergeArgs) -> Result<ExitCode, Error> {
    Err(Error::Usage(
        "this build cannot merge slices yet".to_owned(),
    ))
}
