//! The pictures of an outcome and of a history, as SVG: a page contains them, and a file contains one
//! with its own style sheet.

mod axis;
mod drawing;
mod samples;
mod trend;

pub(super) use drawing::{Drawing, PLOT_STYLE, THEME};
pub(super) use samples::{FORM, troubled};
pub use trend::history_picture;
