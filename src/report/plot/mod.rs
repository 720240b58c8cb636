//! The picture of an outcome, as SVG, which a page contains.

mod axis;
mod samples;

pub(super) use samples::troubled;

/// Colours on light and dark, of the page and its picture.
pub(super) const THEME: &str = include_str!("theme.css");
/// What the classes of a picture look like.
pub(super) const PLOT_STYLE: &str = include_str!("plot.css");
