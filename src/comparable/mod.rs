//! Whether two measurements are comparable, and if not, the list of their differences.

mod difference;
mod merge;
mod profiles;
mod project;

pub use difference::{Difference, Property, words};
pub use merge::merge;
pub use profiles::{added_sources, compiled, measured, mergeable, side_by_side};
pub use project::{changed_code, changed_conditions};
