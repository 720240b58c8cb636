//! Fields that are copied unchanged, and the writing of new ones.

use super::wire::Slice;
use crate::error::ReadError;

/// A field with its bytes.
pub(super) struct Raw<'a> {
    pub(super) number: u64,
    /// Key and content.
    pub(super) whole: &'a [u8],
    /// The content of a string or a message; `None` for numbers.
    pub(super) content: Option<Slice<'a>>,
}

/// The next field of the message, or `None` at its end.
pub(super) fn next<'a>(message: &mut Slice<'a>) -> Result<Option<Raw<'a>>, ReadError> {
    let before = message.bytes;
    let Some(field) = message.field()? else {
        return Ok(None);
    };
    Ok(Some(Raw {
        number: field.number,
        whole: &before[..before.len().saturating_sub(message.bytes.len())],
        content: field.bytes().ok(),
    }))
}

fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes a number as the field `number`.
pub(super) fn write_integer(out: &mut Vec<u8>, number: u64, value: u64) {
    write_varint(out, number << 3);
    write_varint(out, value);
}

/// Writes a string or a message as the field `number`.
pub(super) fn write_bytes(out: &mut Vec<u8>, number: u64, content: &[u8]) {
    write_varint(out, number << 3 | 2);
    write_varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

/// Writes key and length of the field `number` before its content, which is what `out` has from
/// `start` on.
pub(super) fn insert_key(out: &mut Vec<u8>, number: u64, start: usize) {
    let mut key = Vec::new();
    write_varint(&mut key, number << 3 | 2);
    write_varint(&mut key, out.len().saturating_sub(start) as u64);
    out.splice(start..start, key);
}

/// Writes a message after its length in four bytes.
///
/// # Errors
/// Where the message has 4 GiB: the caller's rules made it longer than any report.
pub(super) fn write_sized(out: &mut Vec<u8>, content: &[u8]) -> Result<(), ReadError> {
    let length = u32::try_from(content.len())
        .map_err(|_| ReadError::report(0, "a part of the copy has more than 4 GiB"))?;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(content);
    Ok(())
}
