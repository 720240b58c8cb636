//! The locked baselines of the past: the ledger says what was accepted, and git's commits contain
//! the files.
//!
//! A past profile counts only if its sha256 is the one in the ledger's entry, so only accepted
//! numbers are shown. Where a profile is missing, the reason is shown instead.

mod all;
mod creep;
mod past;
mod selection;
mod trend;

pub use crate::profile::{Acceptance, Course, EffectCourse, LevelChange, Point, Trend};
pub use all::{PastVariant, all_trends};
pub use creep::{RecordedCreep, recorded_creeps};
pub use past::{PastKernel, PastProfile, PastSeries};
pub use selection::{find_variant, judged_only, keep_metrics};
pub use trend::{trend, trends};
