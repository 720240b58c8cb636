//! What makes two programs one, whatever commits they were built from.

use std::path::Path;

use super::readable::ReadableFiles;
use crate::binary::{loads_at_run_time, needs_system_alone};
use crate::build::Artifact;
use crate::config::{Recipe, Unread, Variant};
use crate::files::{most, read_regular_up_to};
use crate::hash::sha256_hex;

/// A hash of the bytes of a program and of every file in its checkout that it could read; `None`
/// where that is not known: of commands, and of what loads code while it runs. Two programs with the
/// same key that are started in the same way are measured alike. Sources count only if the program
/// names them; files that `unread` names do not. `root` is the folder that the program runs in.
pub fn program_key(
    variant: &Variant,
    root: &Path,
    unread: &Unread,
    artifact: &Artifact,
) -> Option<String> {
    if !matches!(variant.recipe, Recipe::Nvcc { .. }) {
        return None;
    }
    let (sha256, program) = known_bytes(artifact)?;
    let files = ReadableFiles::of(root, unread).ok()?;
    let read = files.sha256(variant, &program, artifact.sources.keys());
    Some(sha256_hex(format!("{sha256} {read}").as_bytes()))
}

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
