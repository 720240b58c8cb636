//! The metrics that a chip has, and the unit of each.

mod chip;
mod exists;
mod nearest;
mod suffix;
mod table;
mod unit;
mod unit_of;

pub use chip::Chip;
pub use exists::{Existence, exists};
pub use nearest::nearest;
pub(crate) use unit::decimal_scale;
pub use unit::{Symbol, Unit};
pub use unit_of::unit_of;
