//! Whether two measurements are comparable, and if not, the list of their differences.

mod merge;
mod profiles;
mod project;

pub use merge::{merge, same_captures};
pub use profiles::{added_sources, compiled, measured, measured_where_known, side_by_side};
pub use project::{
    NAMED, changed_code, changed_conditions, changed_flags, has_other_line_ends, lacks_source,
};
