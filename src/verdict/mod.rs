//! The rule of the verdict: decisions on numbers, with no file; and the rule by which a run stops.

mod change;
mod decision;
mod rule;
mod stopping;

pub use change::{Change, Verdict};
pub use decision::{Decision, Question};
pub use rule::{LOOKS, against_stored, in_turn};
pub use stopping::{Fewest, Look, Stopping};
