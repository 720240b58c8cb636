//! How far a printed number may be from the measured one.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Half a step of the last printed decimal, in base units, for each metric of a page.
///
/// ncu prints two decimals in base units, six in scaled units, and none for whole numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rounding {
    /// Half a step of a number in a base unit; 0 where numbers are exact.
    pub unscaled: f64,
    /// Half a step, in base units, of the metrics that were printed in a scaled unit.
    pub scaled: BTreeMap<Arc<str>, f64>,
}

impl Rounding {
    /// Half a step of the metric's last decimal, in its base unit.
    pub fn half_step(&self, metric: &str) -> f64 {
        self.scaled.get(metric).copied().unwrap_or(self.unscaled)
    }
}
