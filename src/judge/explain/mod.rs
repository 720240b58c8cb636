//! Why something got worse, and what of two measurements differs without a verdict.

pub(in crate::judge) mod cause;
pub(in crate::judge) mod code;
pub(in crate::judge) mod explanation;
pub(in crate::judge) mod origin;
pub(in crate::judge) mod overview;
pub(in crate::judge) mod proposal;
pub(in crate::judge) mod stall;
pub(in crate::judge) mod stored;
pub(in crate::judge) mod tuning;
