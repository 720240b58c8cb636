//! What a counter measures, so that its literal name stands in this room alone.
//!
//! Names are those of Nsight Compute on NVIDIA's chips. A profiler of another kind reports its
//! values by role; a profile keeps them under the counter's name of that role.

use crate::terms::{Phase, Tier};

/// What a counter measures, whatever tool measured it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// How long a launch ran on the GPU, in ns.
    Duration,
    /// Name of the GPU model.
    DeviceName,
    /// The first number of the device's compute capability.
    ComputeCapabilityMajor,
    /// The second number of the device's compute capability.
    ComputeCapabilityMinor,
    /// Registers of a thread.
    RegistersPerThread,
}

impl Role {
    /// The counter that ncu reports it under.
    pub const fn counter(self) -> &'static str {
        match self {
            Role::Duration => "gpu__time_duration.sum",
            Role::DeviceName => "device__attribute_display_name",
            Role::ComputeCapabilityMajor => "device__attribute_compute_capability_major",
            Role::ComputeCapabilityMinor => "device__attribute_compute_capability_minor",
            Role::RegistersPerThread => "launch__registers_per_thread",
        }
    }
}

/// ncu's counter for the device's own time of a launch.
pub(crate) const DURATION_COUNTER: &str = Role::Duration.counter();

/// Whether a tier can measure a counter in a phase. The tiers below the counters measure how long
/// launches took, and nothing else.
pub(crate) fn measures(tier: Tier, counter: &str, phase: Phase) -> bool {
    match tier {
        Tier::Counters => true,
        Tier::KernelTimes | Tier::EventTimes => {
            counter == DURATION_COUNTER && phase == Phase::Timing
        }
        Tier::Static => false,
    }
}
