//! `sparsek-gate strip`.

use crate::cli::StripArgs;
use crate::error::Error;
use crate::verdict::ExitCode;

pub(super) fn run(_arguments: &StripArgs) -> Result<ExitCode, Error> {
    Err(Error::Usage("`strip` is not there yet".to_owned()))
}
