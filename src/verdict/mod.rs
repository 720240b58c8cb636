//! From two profiles to findings, and from findings to one exit code.

mod band;
mod cause;
mod compare;
mod compiled;
mod control;
mod display;
mod exit_code;
mod finding;
mod hotspot;
mod kernels;
mod launched;
mod measured;
mod outcome;
mod plausible;
mod rule;
mod sample;
mod stall;
mod statistics;
mod waiver;
mod work;

pub use band::{Decision, Question, Scale, against_stored, side_by_side};
pub use cause::{Cause, CauseKind, causes};
pub use compare::{
    KernelCauses, Mode, VariantReport, below_counters, compare, comparison_count, disturbed,
};
pub use compiled::{compare_compiled, explain_by_code, incomplete_compiled};
pub use control::Control;
pub use display::{display_value, display_values};
pub use exit_code::ExitCode;
pub use finding::{Code, Finding, Severity};
pub use hotspot::{KernelHotspots, LineMove, Sampled, StallMove, moved};
pub use launched::launch_mismatches;
pub use measured::{incomplete, incomplete_side};
pub use outcome::{Authority, Ended, Origin, Outcome, Place};
pub use plausible::{Measurand, Side, bounds, device_findings, implausible, too_good};
pub use rule::{Change, Comparison, Judged, Reference, Summary, Verdict};
pub use sample::{Noise, Samples, location};
pub use stall::stall_words;
pub use statistics::median;
pub use waiver::apply_waivers;
