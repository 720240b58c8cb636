//! The file header.

use super::wire::Slice;
use crate::describe::describe;
use crate::error::ReadError;

/// The first bytes of every report.
pub const MAGIC: &[u8; 4] = b"NVR\0";

/// The format version that this reader was checked against. The file header states the version.
pub const KNOWN_FORMAT_VERSION: u64 = 7;

/// A report: its file header, and its blocks.
pub(super) struct File<'a> {
    pub(super) version: Option<u64>,
    pub(super) header: Slice<'a>,
    pub(super) blocks: Slice<'a>,
}

impl<'a> File<'a> {
    /// `FileHeader { 1: Version }`.
    pub(super) fn open(bytes: &'a [u8]) -> Result<File<'a>, ReadError> {
        if !bytes.starts_with(MAGIC) {
            return Err(ReadError::NotAReport {
                found: describe(bytes),
            });
        }
        let mut rest = Slice::of_file(bytes);
        rest.take(MAGIC.len() as u64, "the magic number")?;
        let header = rest.take_sized("the file header")?;
        if rest.bytes.is_empty() {
            return Err(ReadError::report(
                rest.offset(),
                "expected a block after the file header: the file is cut, copy it again",
            ));
        }
        Ok(File {
            version: header.integer(1)?,
            header,
            blocks: rest,
        })
    }
}
