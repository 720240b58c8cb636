//! From all that was measured and recorded to one outcome.

pub(in crate::judge) mod recorded;
pub(in crate::judge) mod recordings;
pub(in crate::judge) mod rules;
pub(in crate::judge) mod sick;
pub(in crate::judge) mod unchecked;
pub(in crate::judge) mod variant_report;
pub(in crate::judge) mod variants;
pub(in crate::judge) mod waiver;
pub(in crate::judge) mod whole;
