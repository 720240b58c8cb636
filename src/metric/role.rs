//! What a counter measures, so that its literal name stands in this room alone.

use crate::terms::{Phase, Tier};

/// ncu's counter for the device's own time of a launch.
pub(crate) const DURATION_COUNTER: &str = "gpu__time_duration.sum";

/// Whether a tier can measure a counter in a pass: below the counters, times of launches alone.
pub(crate) fn measures(tier: Tier, counter: &str, phase: Phase) -> bool {
    match tier {
        Tier::Counters => true,
        Tier::KernelTimes | Tier::EventTimes => {
            counter == DURATION_COUNTER && phase == Phase::Timing
        }
        Tier::Static => false,
    }
}
