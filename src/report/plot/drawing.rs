//! One picture: its body, and a description for readers who cannot see it.

use maud::{Markup, PreEscaped, html};

use crate::report::print::one_line;

/// Colours on light and dark, shared by the page and by every SVG file.
pub(in crate::report) const THEME: &str = include_str!("theme.css");
/// What the classes of a picture look like.
pub(in crate::report) const PLOT_STYLE: &str = include_str!("plot.css");

/// Pixels of a picture's width.
pub(super) const WIDTH: f64 = 1000.0;
/// Characters of a caption in a line.
const CAPTION_COLUMNS: usize = 150;
/// Pixels from a line of a caption to the next.
const CAPTION_LINE: f64 = 16.0;
/// Pixels around a picture in a file.
const MARGIN: f64 = 20.0;
/// Pixels above a picture in a file, for its title.
const HEAD: f64 = 34.0;

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

    /// A file that stands by itself.
    pub fn file(&self) -> String {
        let lines = wrapped(&self.caption, CAPTION_COLUMNS);
        let width = WIDTH + 2.0 * MARGIN;
        let foot = CAPTION_LINE * lines.len() as f64;
        let height = self.height + HEAD + foot + 2.0 * MARGIN;
        let head = if self.title.is_empty() { 0.0 } else { HEAD };
        let below = MARGIN + head + self.height + CAPTION_LINE;
        let drawn = html! {
            svg xmlns="http://www.w3.org/2000/svg" class="plot file" viewBox=(format!("0 0 {} {}", px(width), px(height))) width=(px(width)) height=(px(height)) role="img" {
                title { (one_line(&self.title)) }
                desc { (one_line(&self.description)) }
                style { (PreEscaped(THEME)) (PreEscaped(PLOT_STYLE)) }
                rect class="paper" width="100%" height="100%" {}
                text class="title" x=(px(MARGIN)) y=(px(MARGIN + 14.0)) { (one_line(&self.title)) }
                g transform=(format!("translate({} {})", px(MARGIN), px(MARGIN + head))) { (self.body) }
                @for (at, line) in lines.iter().enumerate() {
                    text class="quiet" x=(px(MARGIN)) y=(px(below + CAPTION_LINE * at as f64)) { (one_line(line)) }
                }
            }
        };
        drawn.into_string() + "\n"
    }

    /// A sentence instead of a picture.
    pub fn sentence(why: &str) -> Drawing {
        Drawing {
            height: 0.0,
            title: "No picture".to_owned(),
            description: why.to_owned(),
            caption: why.to_owned(),
            body: html! {},
        }
    }

    /// Several pictures, each below the other.
    pub fn stacked(mut drawings: Vec<Drawing>) -> Drawing {
        if drawings.len() == 1 {
            return drawings.remove(0);
        }
        let mut height = 0.0;
        let body = html! {
            @for drawing in &drawings {
                @let top = { let top = height; height += drawing.height + HEAD + MARGIN; top };
                text class="title" x="0" y=(px(top + 14.0)) { (one_line(&drawing.title)) }
                g transform=(format!("translate(0 {})", px(top + HEAD))) { (drawing.body) }
            }
        };
        let joined = |of: fn(&Drawing) -> &str| {
            let mut parts: Vec<&str> = drawings.iter().map(of).collect();
            parts.dedup();
            parts.join(" ")
        };
        Drawing {
            height,
            title: String::new(),
            description: joined(|drawing| &drawing.description),
            caption: joined(|drawing| &drawing.caption),
            body,
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

fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
