//! The memory that the content of a file may take.

use crate::error::ReadError;

/// Bytes of memory for each byte of the file. Real reports need less than 2; a crafted one, full
/// of empty results, is rejected before it fills the memory of the machine.
const PER_FILE_BYTE: usize = 4;

/// Memory that any file may take, in bytes. A small file may need more than the factor allows.
const ANY_FILE: usize = 24 << 20;

/// The memory that is left.
pub(super) struct Memory {
    /// In bytes.
    left: usize,
}

impl Memory {
    pub(super) fn for_file(file_size: usize) -> Memory {
        Memory {
            // A small file may have overheads that the factor alone would not allow.
            left: file_size
                .saturating_mul(PER_FILE_BYTE)
                .saturating_add(ANY_FILE),
        }
    }

    /// Reserves `bytes` for the content at `offset` of the file. A list that grows may be half
    /// empty, so its elements count twice.
    #[inline]
    pub(super) fn take(&mut self, bytes: usize, offset: usize) -> Result<(), ReadError> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            ReadError::report(
                offset,
                format!(
                    "the content up to here needs more memory than {PER_FILE_BYTE} times the file \
                     and {} MiB, as that of no real report does",
                    ANY_FILE >> 20
                ),
            )
        })?;
        Ok(())
    }
}
