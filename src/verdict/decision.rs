//! What is asked of a comparison, and its answer.

use super::{Change, Verdict};
use crate::metric::{Direction, Tolerance};

/// What is asked of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// How much worse is still no regression. What is relative is judged as the logarithm of the ratio:
    /// exchanging the sides mirrors a verdict exactly, and a factor on both cancels. What is absolute is judged
    /// as the difference.
    pub tolerance: Tolerance,
    /// Which way the metric gets better.
    pub direction: Direction,
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
