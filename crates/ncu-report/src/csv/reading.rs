//! What was read of the pages so far, and how far their numbers are rounded.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::launch::Launch;
use crate::recording::Recording;
use crate::rounding::Rounding;

/// The decimals that ncu prints in base units. Assumed where all numbers of the pages are whole.
const USUAL_DECIMALS: u8 = 2;

/// What was read so far.
#[derive(Default)]
pub(super) struct Reading {
    pub(super) launches: Vec<Launch>,
    /// Most decimals of any number.
    pub(super) decimals: u8,
    /// Power of ten of each metric in a scaled unit.
    exponents: BTreeMap<Arc<str>, i8>,
}

impl Reading {
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
