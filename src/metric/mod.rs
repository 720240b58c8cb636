//! Metrics: short names for counters, what a counter measures, how a metric is judged, and how its
//! values are shown.

mod alias;
mod arch;
mod display;
mod family;
mod role;
mod stall;
mod terms;

pub use alias::{ALIASES, Alias, TENSOR_FLOP, alias, tensor_flop};
pub use arch::{arch_of_capability, capability_of_arch, chip_of_arch, known_archs};
pub use display::{display_value, display_values};
pub use family::bounds;
pub(crate) use family::{
    block_limit, is_circumstance, is_part_of, is_tensor_flop, is_time, source_type, thread_flop,
};
pub use role::Role;
pub(crate) use role::measures;
pub(crate) use stall::{Stall, StallUnit, is_stall_sample};
pub use terms::{Direction, Level, Tolerance, Tolerances};
