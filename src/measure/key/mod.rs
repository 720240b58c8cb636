//! Whether it is the same: as what was measured, verified or built before, or as the base.

pub(in crate::measure) mod parts;
pub(in crate::measure) mod readable;
pub(in crate::measure) mod same;
pub(in crate::measure) mod verified;
