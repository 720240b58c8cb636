//! The picture of an outcome, as SVG, which a page contains.

mod axis;
mod drawing;
mod samples;

pub(super) use drawing::{Drawing, PLOT_STYLE, THEME};
pub(super) use samples::troubled;
