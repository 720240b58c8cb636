//! Counter names, the chips that have them, and the units they are in.

mod catalog;
mod nearest;
mod unit;

pub use catalog::{Chip, Existence, exists, unit_of};
pub(crate) use unit::decimal_scale;
pub use unit::{Symbol, Unit};
