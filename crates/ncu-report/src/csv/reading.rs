//! What was read of the pages so far, and how far their numbers are rounded.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::row::Row;
use crate::error::ReadError;
use crate::launch::Launch;
use crate::recording::Recording;
use crate::rounding::Rounding;

/// The decimals that ncu prints in base units. Assumed where all numbers of the pages are whole.
const USUAL_DECIMALS: u8 = 2;

/// Bytes of memory for each byte of the text. Real pages need less than 4; a crafted one, full of
/// empty cells, is rejected before it fills the memory of the machine. The text itself is one more,
/// its regions are one, and a row that is not plain has a copy.
const PER_TEXT_BYTE: usize = 4;

/// Memory that any text may take, in bytes.
const ANY_TEXT: usize = 32 << 20;

/// What was read so far.
pub(super) struct Reading {
    pub(super) launches: Vec<Launch>,
    /// Most decimals of any number.
    pub(super) decimals: u8,
    /// Power of ten of each metric in a scaled unit.
    exponents: BTreeMap<Arc<str>, i8>,
    /// The memory that is left, in bytes.
    left: usize,
}

impl Reading {
    /// For a text of as many bytes.
    pub(super) fn of_text(bytes: usize) -> Reading {
        Reading {
            launches: Vec::new(),
            decimals: 0,
            exponents: BTreeMap::new(),
            left: bytes.saturating_mul(PER_TEXT_BYTE).saturating_add(ANY_TEXT),
        }
    }

    /// Reserves `bytes` of memory for the content on a line. A list that grows may be half empty,
    /// so its elements count twice.
    pub(super) fn take(
        &mut self,
        bytes: usize,
        line: impl FnOnce() -> u64,
    ) -> Result<(), ReadError> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            ReadError::csv(
                line(),
                format!(
                    "the pages up to here need more memory than {PER_TEXT_BYTE} times the text \
                     and {} MiB, as those of no real run do",
                    ANY_TEXT >> 20
                ),
            )
        })?;
        Ok(())
    }

    /// Adds the launch of a row. The rows of a page have similar lengths, so the room for all of
    /// them is reserved with the first.
    pub(super) fn push(&mut self, launch: Launch, row: &Row<'_, '_>) -> Result<(), ReadError> {
        let before = self.launches.capacity();
        if self.launches.len() == before {
            let more = row.rows_left().max(before / 2);
            self.take(more.saturating_mul(size_of::<Launch>()), || row.line())?;
            self.launches.reserve_exact(more);
        }
        let signature = launch.kernel.demangled.as_ref().map_or(0, String::len);
        let names = launch.kernel.function.len().saturating_add(signature);
        self.take(names.saturating_add(96), || row.line())?;
        self.launches.push(launch);
        Ok(())
    }

    /// Keeps the largest scale of a metric: the details page may scale each launch differently.
    pub(super) fn note_scale(&mut self, name: &Arc<str>, exponent: i8) {
        if exponent == 0 {
            return;
        }
        let largest = self.exponents.entry(Arc::clone(name)).or_insert(exponent);
        *largest = exponent.max(*largest);
    }

    pub(super) fn finish(self) -> Recording {
        let decimals = match self.decimals {
            0 => USUAL_DECIMALS,
            decimals => decimals,
        };
        let half_step = |exponent: i8| 0.5 * 10_f64.powi(i32::from(exponent) - i32::from(decimals));
        let scaled = self.exponents.into_iter();
        Recording {
            launches: self.launches,
            rounding: Rounding {
                unscaled: half_step(0),
                scaled: scaled
                    .map(|(name, exponent)| (name, half_step(exponent)))
                    .collect(),
            },
            ..Recording::default()
        }
    }
}
