//! Causes: the other counters of a kernel that moved with a regression.
//!
//! A cause is what the counters show, not a proof. It is one where it explains a third of the added time;
//! else it only changed, too. The thresholds lie well above the noise of an
//! unchanged kernel (bank conflicts 0.002 %, DRAM bytes 0.06 %, instructions none).

mod added;
mod count;
mod kind;
mod memory;
mod moved;
mod rules;
mod slower;
#[cfg(test)]
pub(crate) mod tests;
mod waiting;
mod work;

pub(crate) use count::counted;
pub use kind::{Cause, CauseKind};
pub use rules::causes;
pub(crate) use slower::slower;
