//! The string table: the names of the metrics.

use super::wire::Slice;
use crate::error::ReadError;

/// Memory of a name without its letters, in bytes, rounded up.
pub(super) const MEMORY_PER_NAME: usize = 160;

/// The names that any file may have.
const ANY_FILE: usize = 1 << 16;

/// The bytes of a file for each name beyond those: a name of a real report is longer.
const BYTES_PER_NAME: usize = 64;

/// Names by `NameId`, in the encoding of the file.
pub(super) struct StringTable<'a> {
    pub(super) strings: Vec<&'a [u8]>,
    most: usize,
}

impl<'a> StringTable<'a> {
    pub(super) fn new(file_size: usize) -> StringTable<'a> {
        StringTable {
            strings: Vec::new(),
            most: (file_size / BYTES_PER_NAME).saturating_add(ANY_FILE),
        }
    }

    /// `StringTable { 1: repeated string }`. The table of a later block continues the tables of the
    /// earlier blocks. A table that begins with all earlier names replaces them.
    pub(super) fn merge(&mut self, message: Slice<'a>) -> Result<(), ReadError> {
        let offset = message.offset();
        let mut strings = Vec::new();
        message.each(1, |name| {
            strings.push(name.bytes);
            match strings.len().saturating_add(self.strings.len()) > self.most {
                true => Err(ReadError::report(
                    offset,
                    format!(
                        "a table of more than {} names, as no real report has",
                        self.most
                    ),
                )),
                false => Ok(()),
            }
        })?;
        if strings.starts_with(&self.strings) {
            self.strings = strings;
        } else {
            self.strings.extend(strings);
        }
        Ok(())
    }
}
