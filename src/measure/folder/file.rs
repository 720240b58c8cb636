//! JSON files that say their own hash: `{"sha256":"…","content":…}`, with the hash of the bytes of the
//! content as they stand there.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::files::{if_there, json, most, read_regular_up_to};
use crate::hash::sha256_hex;

const BEGIN: &[u8] = b"{\"sha256\":\"";
const MIDDLE: &[u8] = b"\",\"content\":";
const END: &[u8] = b"}\n";

/// The text of a file with this content.
pub fn sealed(content: &impl Serialize) -> Vec<u8> {
    // No key is anything but text, so this cannot fail.
    let content = serde_json::to_vec(content).unwrap_or_default();
    let sha256 = sha256_hex(&content);
    [BEGIN, sha256.as_bytes(), MIDDLE, &content, END].concat()
}

/// The sha256 that a sealed text says.
pub(super) fn seal_of(text: &[u8]) -> String {
    let said = text.strip_prefix(BEGIN).and_then(|rest| rest.get(..64));
    String::from_utf8_lossy(said.unwrap_or_default()).into_owned()
}

/// The content of a file with its sha256, where there is one.
///
/// # Errors
/// In words, what is wrong with it.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<(T, String)>, String> {
    let bytes = if_there(read_regular_up_to(path, most::OUTCOME))
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let Some(bytes) = bytes else {
        return Ok(None);
    };
    let content = unsealed(&bytes).map_err(|why| {
        let name = path.file_name().unwrap_or_default();
        format!("its {} {why}", name.display())
    })?;
    Ok(Some((content, seal_of(&bytes))))
}

/// The content of such a text.
///
/// # Errors
/// In words, what is wrong with it.
pub fn unsealed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let content = content(bytes).ok_or("is damaged")?;
    json(content).map_err(|why| format!("is damaged: {why}"))
}

/// The bytes of the content, if they have their hash.
fn content(bytes: &[u8]) -> Option<&[u8]> {
    let (sha256, rest) = bytes.strip_prefix(BEGIN)?.split_at_checked(64)?;
    let content = rest.strip_prefix(MIDDLE)?.strip_suffix(END)?;
    (sha256 == sha256_hex(content).as_bytes()).then_some(content)
}
