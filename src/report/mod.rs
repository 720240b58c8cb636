//! One outcome, several forms, all from the same rows.

mod checks;
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
mod terminal;

use std::path::Path;

pub use checks::checks as checks_text;
pub use history::{page as history_page, text as history_text};
pub(crate) use print::{clean, one_line};
pub use print::{color, print, print_error, say};
pub use progress::Progress;
pub use terminal::findings as findings_text;

use crate::cli::ReportFormat;
use crate::error::Error;
use crate::files::write_atomically;
use crate::verdict::Outcome;

/// Renders an outcome.
pub fn render(outcome: &Outcome, format: ReportFormat) -> String {
    match format {
        ReportFormat::Text => terminal::render(outcome),
        ReportFormat::Markdown => markdown::render(outcome),
        ReportFormat::Json => json::render(outcome),
        ReportFormat::Junit => junit::render(outcome),
        ReportFormat::Sarif => sarif::render(outcome),
        ReportFormat::Github => github::render(outcome),
        ReportFormat::Gitlab => gitlab::render(outcome),
        ReportFormat::Html => html::render(outcome),
    }
}

/// Renders an outcome to a file, in the form that its ending names.
///
/// # Errors
/// [`Error::Usage`] for an ending that is not known, [`Error::Io`].
pub fn write(outcome: &Outcome, path: &Path) -> Result<(), Error> {
    let format = format_of(path)?;
    let text = match format {
        ReportFormat::Text => anstream::adapter::strip_str(&terminal::render(outcome)).to_string(),
        other => render(outcome, other),
    };
    write_atomically(path, text.as_bytes()).map_err(Error::io("write", path))
}

/// The form that a file's ending names.
///
/// # Errors
/// [`Error::Usage`] for an ending that is not known.
pub fn format_of(path: &Path) -> Result<ReportFormat, Error> {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("md") => Ok(ReportFormat::Markdown),
        Some("json") => Ok(ReportFormat::Json),
        Some("txt") => Ok(ReportFormat::Text),
        _ => Err(Error::Usage(format!(
            "`{}`: the ending says how a report is written: .md, .json or .txt",
            path.display()
        ))),
    }
}
