//! A signed difference between two values, and the verdict on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::display_value;

/// The verdict on one metric of one kernel. The worst is the least.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Worse by more than the tolerance.
    Regressed,
    /// The samples do not decide.
    Inconclusive,
    /// There is no value to judge.
    NotMeasured,
    /// Better by more than the tolerance.
    Improved,
    /// Shown to be the same within the tolerance.
    Pass,
}

impl Verdict {
    /// All of them, in the order in which reports count them.
    pub const WORST_FIRST: [Verdict; 5] = [
        Verdict::Regressed,
        Verdict::Inconclusive,
        Verdict::NotMeasured,
        Verdict::Improved,
        Verdict::Pass,
    ];

    /// As the reports spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Improved => "improved",
            Verdict::Regressed => "regressed",
            Verdict::Inconclusive => "inconclusive",
            Verdict::NotMeasured => "not measured",
        }
    }
}

/// A signed difference, current minus baseline. Relative and absolute never mix.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Percent of the reference's value.
    RelativePercent(f64),
    /// In the counter's unit; percentage points for a counter in `%`.
    Absolute(f64),
}

impl Change {
    /// `-3.10 %` is relative, `-1.20 pt` is absolute.
    pub fn display(self, unit: Option<&str>) -> String {
        let magnitude = self.magnitude(unit);
        // What rounds to nothing has no direction.
        let sign = match self.value() {
            value if value < 0.0 && magnitude.contains(|c: char| ('1'..='9').contains(&c)) => '-',
            _ => '+',
        };
        format!("{sign}{magnitude}")
    }

    /// The size of the change, without its sign.
    pub fn magnitude(self, unit: Option<&str>) -> String {
        match self {
            Change::RelativePercent(percent) => format!("{:.2} %", percent.abs()),
            Change::Absolute(value) if unit == Some("%") => format!("{:.2} pt", value.abs()),
            Change::Absolute(value) => display_value(value.abs(), unit),
        }
    }

    /// The same kind of change, of another size.
    pub fn with(self, value: f64) -> Change {
        match self {
            Change::RelativePercent(_) => Change::RelativePercent(value),
            Change::Absolute(_) => Change::Absolute(value),
        }
    }

    /// In percent, or in the unit.
    pub fn value(self) -> f64 {
        match self {
            Change::RelativePercent(value) | Change::Absolute(value) => value,
        }
    }

    /// The size, without its sign.
    pub(crate) fn size(&self) -> f64 {
        self.value().abs()
    }
}
