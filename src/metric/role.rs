//! What a counter measures, so that its literal name stands in this room alone.

use crate::terms::{Pass, Rung};

/// ncu's counter for the device's own time of a launch.
pub(crate) const DURATION_COUNTER: &str = "gpu__time_duration.sum";

/// Whether a tier can measure a counter in a pass: below the counters, times of launches alone.
pub(crate) fn measures(rung: Rung, counter: &str, pass: Pass) -> bool {
    match rung {
        Rung::Counters => true,
        Rung::KernelTimes | Rung::EventTimes => counter == DURATION_COUNTER && pass == Pass::Timing,
        Rung::Static => false,
    }
}
