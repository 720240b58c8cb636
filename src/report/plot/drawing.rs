//! One picture: its body, and a description for readers who cannot see it.

use maud::{Markup, html};

use crate::report::print::one_line;

/// Colours on light and dark, of the page and its picture.
pub(in crate::report) const THEME: &str = include_str!("theme.css");
/// What the classes of a picture look like.
pub(in crate::report) const PLOT_STYLE: &str = include_str!("plot.css");

/// Pixels of a picture's width.
pub(super) const WIDTH: f64 = 1000.0;

/// A picture without a frame.
pub(in crate::report) struct Drawing {
    /// Pixels.
    pub height: f64,
    /// What it shows, in a few words.
    pub title: String,
    /// What it shows, as text.
    pub description: String,
    /// How to read it, and the formulas behind it.
    pub caption: String,
    /// Elements of SVG, from the origin.
    pub body: Markup,
}

impl Drawing {
    /// For a page, which has the style.
    pub fn inline(&self) -> Markup {
        html! {
            svg class="plot" viewBox=(format!("0 0 {} {}", px(WIDTH), px(self.height))) width=(px(WIDTH)) height=(px(self.height)) role="img" aria-label=(one_line(&self.title)) {
                title { (one_line(&self.title)) }
                desc { (one_line(&self.description)) }
                (self.body)
            }
        }
    }
}

/// A coordinate: a tenth of a pixel is not seen.
pub(super) fn px(value: f64) -> String {
    // SVG has neither infinity nor numbers that are none; nobody sees what lies so far outside.
    const FAR: f64 = 1e6;
    let value = if value.is_nan() {
        0.0
    } else {
        value.clamp(-FAR, FAR)
    };
    let rounded = (value * 10.0).round() / 10.0;
    format!("{rounded}")
}
