//! One outcome, several forms, all from the same rows.

mod checks;
mod concern;
mod github;
mod gitlab;
mod history;
mod html;
mod json;
mod junit;
mod markdown;
pub mod plot;
mod print;
mod progress;
mod rows;
mod sarif;
mod target;
mod terminal;

use std::path::Path;

pub use checks::checks as checks_text;
pub use history::{page as history_page, text as history_text};
pub use json::outcome_schema;
pub(crate) use print::{clean, json_for_terminals, one_line};
pub use print::{color, is_plain, print, print_commands, print_error, say};
pub use progress::Progress;
pub use target::{Target, targets};
pub use terminal::findings as findings_text;

use crate::cli::ReportFormat;
use crate::files::read_regular_up_to;
use crate::finding::Error;
use crate::judge::Outcome;
use plot::Picture;

/// Largest outcome that is read back, 1 GiB: a thousand kernels of thirty metrics with their samples
/// are a tenth of it.
const LARGEST_OUTCOME: u64 = 1 << 30;

/// Renders an outcome.
pub fn render(outcome: &Outcome, format: ReportFormat) -> String {
    match format {
        // A step may print these from their files, too.
        ReportFormat::Text => print::inert(&terminal::render(outcome)).into_owned(),
        ReportFormat::Markdown => print::inert(&markdown::render(outcome)).into_owned(),
        ReportFormat::Json => json::render(outcome),
        ReportFormat::Junit => junit::render(outcome),
        ReportFormat::Sarif => sarif::render(outcome),
        ReportFormat::Github => github::render(outcome),
        ReportFormat::Gitlab => gitlab::render(outcome),
        ReportFormat::Html => html::render(outcome),
        ReportFormat::Ladder => plot::picture_or_reason(outcome, Picture::Ladder),
        ReportFormat::Roofline => plot::picture_or_reason(outcome, Picture::Roofline),
        ReportFormat::Samples => plot::picture_or_reason(outcome, Picture::Samples),
    }
}

/// Reads an outcome from the JSON form of a report.
///
/// # Errors
/// [`Error::Io`], or [`Error::Input`] where the file is no outcome of this version, or contradicts
/// itself.
pub fn read(path: &Path) -> Result<Outcome, Error> {
    let text = read_regular_up_to(path, LARGEST_OUTCOME).map_err(Error::named(path))?;
    json::parse(path, &text)
}
