//! How a metric is judged: which way it gets better, by how much it may get worse, and what a
//! regression does.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finding::WarnReason;
use crate::terms::spelled;

spelled! {
    /// Which way a metric gets better.
    Direction {
        /// More is better.
        Higher = "higher",
        /// Less is better.
        Lower = "lower",
        /// Any change is a regression.
        Equal = "equal",
    }
}

spelled! {
    /// What a regression of a metric does.
    Level {
        /// Fails the gate.
        Deny = "deny",
        /// Is reported and passes.
        Warn = "warn",
        /// The metric is measured and shown, and never judged.
        Record = "record",
    }
}

impl Level {
    /// Why a finding about a metric of this level only warns, where it does.
    pub fn warn_reason(self) -> Option<WarnReason> {
        (self == Level::Warn).then_some(WarnReason::MetricLevel)
    }
}

/// How much worse a metric may read without being a regression. Relative and absolute never mix.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tolerance {
    /// Percent of the reference's value.
    RelativePercent(f64),
    /// In the unit of the counter; for a counter in `%` these are percentage points.
    Absolute(f64),
}

/// How much worse is no regression, by what a metric is compared with. Without a tolerance it is recorded
/// there, and not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Tolerances {
    /// Against a locked baseline, from any GPU of the model.
    pub stored: Option<Tolerance>,
    /// Against a base or a program that is measured side by side.
    pub against: Option<Tolerance>,
}

impl Tolerances {
    /// The same for both.
    pub fn both(tolerance: Tolerance) -> Tolerances {
        Tolerances {
            stored: Some(tolerance),
            against: Some(tolerance),
        }
    }

    /// Whether nothing worse is within them.
    pub fn is_zero(&self) -> bool {
        use Tolerance::{Absolute, RelativePercent};
        let mut each = [self.stored, self.against].into_iter().flatten();
        let is_zero = |one| matches!(one, RelativePercent(0.0) | Absolute(0.0));
        *self != Tolerances::default() && each.all(is_zero)
    }
}
