//! Counter names, the chips that have them, and the units they are in.

mod alias;
mod arch;
mod catalog;
mod display;
mod nearest;
mod role;
mod terms;
mod unit;

pub use alias::{Alias, Better, aliases, builtin_alias};
pub use arch::chip_of_arch;
pub use catalog::{Chip, Existence, exists, unit_of};
pub use display::{display_value, display_values};
pub(crate) use role::{DURATION_COUNTER, measures};
pub use terms::{Direction, Level, Tolerance};
pub use unit::Unit;
pub(crate) use unit::decimal_scale;
