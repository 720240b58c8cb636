//! Files that say their own hash, for a run that resumes another one.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::evidence::SickGpu;
use crate::files::{RESUME_FILE, bounded_json, most, read_regular_up_to, write_atomically};
use crate::hash::sha256_hex;

/// Keeps in the folder of a run that a GPU is sick. Nothing depends on the file in this run, so a failed
/// write is ignored.
pub(super) fn keep_sick(path: &Path, sick: &SickGpu) {
    let _ = write_atomically(path, sealed(sick).as_bytes());
}

/// A content as JSON, after a line with the sha256 of that.
pub(super) fn sealed(content: &impl Serialize) -> String {
    let text = serde_json::to_string(content).unwrap_or_default();
    format!("{}\n{text}", sha256_hex(text.as_bytes()))
}

/// The content of a sealed file, where there is one.
///
/// # Errors
/// In words, what is wrong with it.
pub(super) fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Option<T>, String> {
    match read_regular_up_to(path, most::OUTCOME) {
        Ok(bytes) => parse(&bytes).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
    }
}

pub(super) fn parse<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Result<T, String> {
    let lines = bytes.split_at_checked(65);
    let (sha256, text) = lines.unwrap_or_default();
    if sha256 != format!("{}\n", sha256_hex(text)).as_bytes() {
        return Err(format!("its {RESUME_FILE} is damaged"));
    }
    bounded_json(text).map_err(|why| format!("its {RESUME_FILE} is refused: {why}"))?;
    serde_json::from_slice(text).map_err(|why| format!("its {RESUME_FILE} is damaged: {why}"))
}
