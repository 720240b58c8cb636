//! What is asked of a comparison, and its answer.

use super::{Change, Verdict};
use crate::metric::{Direction, Tolerance};

/// In which terms a change is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// As the logarithm of the ratio; the tolerance is in percent. Exchanging the sides mirrors a
    /// verdict exactly, and a factor on both cancels.
    Relative,
    /// As the difference; the tolerance is in the metric's unit.
    Absolute,
}

impl Scale {
    /// The terms of a tolerance, and its size: percent, or the metric's unit.
    pub fn of(tolerance: Tolerance) -> (Scale, f64) {
        match tolerance {
            Tolerance::RelativePercent(percent) => (Scale::Relative, percent),
            Tolerance::Absolute(value) => (Scale::Absolute, value),
        }
    }

    /// A tolerance as it is compared with a change: a logarithm, or the difference itself. NaN of what is
    /// no tolerance.
    pub(crate) fn in_terms(self, tolerance: f64, direction: Direction) -> f64 {
        match (self, direction) {
            _ if !(tolerance >= 0.0 && tolerance.is_finite()) => f64::NAN,
            (Scale::Absolute, _) => tolerance,
            (Scale::Relative, Direction::Lower | Direction::Equal) => (tolerance / 100.0).ln_1p(),
            (Scale::Relative, Direction::Higher) if tolerance >= 100.0 => f64::INFINITY,
            (Scale::Relative, Direction::Higher) => -(-tolerance / 100.0).ln_1p(),
        }
    }
}

/// What is asked of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// In which terms.
    pub scale: Scale,
    /// Which way the metric gets better.
    pub direction: Direction,
    /// How much worse is still no regression: percent, or the metric's unit.
    pub tolerance: f64,
    /// Whether the values are times in nanoseconds, of a clock that ticks.
    pub is_time: bool,
    /// What part of a judged total it is, from 0 to 1; 1 of what is no part of one.
    pub part: f64,
    /// Whether only what lies within the tolerance with its whole interval passes.
    pub strict: bool,
}

/// The verdict, and everything it follows from.
///
/// The numbers are in the terms of the change: percent of the base for a relative one, otherwise the
/// metric's unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The verdict.
    pub verdict: Verdict,
    /// Current against base. A relative question about values that are not all positive is answered
    /// absolutely. Absent where nothing was measured.
    pub change: Option<Change>,
    /// Half of the width of the interval; absent where there is none.
    pub band: Option<f64>,
    /// The change beyond which these samples would have regressed, signed. Where any change is worse, the
    /// upper one of the two.
    pub threshold: Option<f64>,
    /// More samples may decide what is inconclusive.
    pub open: bool,
    /// Why.
    pub why: String,
}

impl Decision {
    /// A verdict without numbers.
    pub(super) fn nothing(verdict: Verdict, open: bool, why: String) -> Decision {
        Decision {
            verdict,
            change: None,
            band: None,
            threshold: None,
            open,
            why,
        }
    }
}
