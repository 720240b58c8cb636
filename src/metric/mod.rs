//! Counter names, the chips that have them, and the units they are in.

mod alias;
mod arch;
mod catalog;
mod nearest;
mod unit;

pub use alias::{Alias, Better, aliases, builtin_alias};
pub use arch::chip_of_arch;
pub use catalog::{Chip, Existence, exists, unit_of};
pub use unit::Unit;
pub(crate) use unit::decimal_scale;
