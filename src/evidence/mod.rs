//! Whether a profile is evidence: complete, undisturbed, plausible, and of the code that was built.

mod clock;
mod complete;
mod disturbed;
mod doubtful;
mod launched;
mod other_launches;
mod pins;
mod plausible;
mod proven;
mod sick;
mod table;
mod tuning;

pub use clock::SameClock;
pub use complete::{conditions_unknown, import_again, selects_none};
pub use complete::{fewer_imported, incomplete, incomplete_compiled, incomplete_side};
pub(crate) use complete::{
    missing_launches_side, static_value, tier_gap_accepted, why_not_measured,
};
pub use disturbed::{below_counters, disturbed};
pub(crate) use disturbed::{disturbances, unwatched};
pub use doubtful::doubtful;
pub use launched::{launch_mismatches, stated_otherwise};
pub use pins::{gpu_pins, pins_of, recorded_unpinned, unpinned};
pub use plausible::{Measurand, Purpose, device_findings, implausible, too_good};
pub use proven::numbers_unchecked;
pub use sick::{SetAside, SickGpu, Symptom, of_a_process, set_aside, symptoms_in, symptoms_of};
pub use table::{Examined, When};
pub(crate) use tuning::chosen;
pub use tuning::tuning_measured;
