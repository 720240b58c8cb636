//! `sparsek-gate archive`.

use std::path::Path;

use crate::cli::ArchiveArgs;
use crate::finding::{Error, ExitCode};

pub(super) fn run(_config: &Path, _arguments: &ArchiveArgs) -> Result<ExitCode, Error> {
    Err(Error::Usage(
        "this build cannot pack archives yet".to_owned(),
    ))
}
