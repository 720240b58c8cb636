//! The rule of the verdict: decisions on numbers, with no file; and the rule by which a run stops.

mod band;
mod change;
mod quantile;
mod rule;
mod stopping;

pub use band::{Decision, Question, Scale, Timed, against_stored, side_by_side};
pub use change::{Change, Verdict};
pub use rule::{LOOKS, in_turn};
pub use stopping::{Fewest, Look, Stopping};
