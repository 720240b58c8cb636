//! Metrics: short names for counters, what a counter measures, how a metric is judged, and how its
//! values are shown.

mod alias;
mod arch;
mod display;
mod role;
mod terms;

pub use alias::{Alias, Better, aliases, builtin_alias};
pub use arch::chip_of_arch;
pub use display::{display_value, display_values};
pub use role::Role;
pub(crate) use role::{DURATION_COUNTER, measures};
pub use terms::{Direction, Level, Tolerance};
