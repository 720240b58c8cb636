//! The memory that the content of a file may take.

use crate::error::ReadError;

/// Bytes of memory for each byte of the file. Real reports need less than 2; a crafted one, full
/// of empty results, is rejected before it fills the memory of the machine.
pub(super) const PER_FILE_BYTE: usize = 16;

/// The memory that is left.
pub(super) struct Memory {
    left: usize,
}

impl Memory {
    pub(super) fn for_file(file_size: usize) -> Memory {
        Memory {
            // A small file may have overheads that the factor alone would not allow.
            left: file_size
                .saturating_mul(PER_FILE_BYTE)
                .saturating_add(1 << 16),
        }
    }

    /// Reserves `bytes` for the content at `offset` of the file.
    #[inline]
    pub(super) fn take(&mut self, bytes: usize, offset: usize) -> Result<(), ReadError> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            ReadError::report(
                offset,
                format!(
                    "the results up to here need more than {PER_FILE_BYTE} times the memory of the \
                     file, as those of no real report do"
                ),
            )
        })?;
        Ok(())
    }
}
