//! A run: builds the variants of a plan, and measures them in turn.

pub(in crate::measure) mod built;
pub(in crate::measure) mod compile;
pub(in crate::measure) mod in_turn;
pub(in crate::measure) mod measuring;
pub(in crate::measure) mod unmeasured;
