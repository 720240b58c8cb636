//! The pictures of an outcome and of a history, as SVG text: pure functions from data to a
//! drawing, which a page contains inline and a file contains with its own style sheet.

mod drawing;
mod group;
mod ladder;
mod measured;
mod picture;
mod roofline;
mod samples;
mod scale;
mod trend;

pub(super) use drawing::{Drawing, PLOT_STYLE, Size, THEME};
pub(super) use measured::worst;
pub(super) use picture::{LADDER, ROOFLINE, SAMPLES, ladders, rooflines, troubled_strips};
pub use picture::{Picture, picture};
pub(super) use samples::{LEGEND, Process, Strip};
pub use trend::history_picture;
