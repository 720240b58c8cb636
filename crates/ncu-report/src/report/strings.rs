//! The string table: the names of the metrics.

use super::block::Block;
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

    /// Adds the table of a block.
    pub(super) fn merge(&mut self, block: &Block<'a>) -> Result<(), ReadError> {
        let mut fields = block.header;
        while let Some(field) = fields.field()? {
            if field.number == 4 {
                self.merge_table(field.bytes()?)?;
            }
        }
        Ok(())
    }

    /// `StringTable { 1: repeated string }`. The table of a later block continues the tables of the
    /// earlier blocks. A table that begins with all earlier names replaces them.
    fn merge_table(&mut self, mut message: Slice<'a>) -> Result<(), ReadError> {
        let offset = message.offset();
        let mut strings = Vec::new();
        while let Some(field) = message.field()? {
            if field.number == 1 {
                strings.push(field.bytes()?.bytes);
                if strings.len().saturating_add(self.strings.len()) > self.most {
                    return Err(ReadError::report(
                        offset,
                        format!(
                            "a table of more than {} names, as no real report has",
                            self.most
                        ),
                    ));
                }
            }
        }
        if strings.starts_with(&self.strings) {
            self.strings = strings;
        } else {
            self.strings.extend(strings);
        }
        Ok(())
    }
}
