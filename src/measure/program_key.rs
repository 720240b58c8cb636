//! The bytes of a program that is all that runs.

use std::path::Path;

use crate::binary::{loads_at_run_time, needs_system_alone};
use crate::build::Artifact;
use crate::files::{most, read_regular_up_to};
use crate::hash::sha256_hex;

/// The sha256 and the bytes of a program that is still what was built, and that neither loads code
/// while it runs nor needs libraries besides the system's; `None` of any other.
pub(super) fn known_bytes(artifact: &Artifact) -> Option<(&str, Vec<u8>)> {
    let sha256 = artifact.sha256.as_deref()?;
    let program = read_regular_up_to(Path::new(artifact.run.first()?), most::BINARY).ok()?;
    let known = sha256_hex(&program) == sha256
        && loads_at_run_time(&program).is_none()
        && needs_system_alone(&program);
    known.then_some((sha256, program))
}
