//! From two profiles to comparisons and findings, and from these to one outcome.

mod cause;
mod compare;
mod compiled;
mod control;
mod fresh;
mod hotspot;
mod kernels;
mod metric;
mod outcome;
mod places;
mod recorded;
mod stall;
mod trends;
mod variants;
mod waiver;
mod work;

pub use cause::{Cause, CauseKind, causes};
pub use compare::{KernelCauses, Mode, VariantReport, compare, comparison_count};
pub use compiled::{compare_compiled, explain_by_code};
pub use control::Control;
pub use fresh::{Fresh, measuring_order};
pub use hotspot::{KernelHotspots, LineMove, Sampled, StallMove, moved};
pub use metric::{Comparison, Judged, Reference, Summary};
pub use outcome::{Ended, Origin, Outcome, Place};
pub use places::places;
pub use recorded::read_recorded;
pub use stall::stall_words;
pub use trends::trends;
pub use variants::{Judge, Profiles, unchecked};
pub use waiver::{apply_waivers, waive};
