//! How far a printed number may lie from the measured one.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Half a step of the last printed decimal, in base units, for each counter of a page.
///
/// ncu prints two decimals in base units and six in scaled ones, whole numbers without any.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rounding {
    /// Half a step of an unscaled number; 0 where numbers are exact.
    pub unscaled: f64,
    /// Half a step, in base units, of the counters that were printed in a scaled unit.
    pub scaled: BTreeMap<Arc<str>, f64>,
}

impl Rounding {
    /// Half a step of the counter's last decimal, in its base unit.
    pub fn half_step(&self, counter: &str) -> f64 {
        self.scaled.get(counter).copied().unwrap_or(self.unscaled)
    }
}
