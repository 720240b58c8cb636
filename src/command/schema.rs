//! `sparsek-gate schema`.

use super::print;
use crate::error::Error;
use crate::verdict::ExitCode;

pub(super) fn run() -> Result<ExitCode, Error> {
    print(&crate::config::schema())?;
    Ok(ExitCode::Pass)
}
