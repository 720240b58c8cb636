//! What a subcommand prints, and its exit code.

use std::collections::BTreeMap;
use std::path::Path;

use ncu_report::ReadError;
use serde::Serialize;

use crate::cli::Format;
use crate::files::{ends_in, pretty_json};
use crate::finding::{Error, ExitCode, Finding, worst};
use crate::judge::{Ended, Origin, Outcome};
use crate::report::{self as reports, Capability, Detail, Form, Rendering, Target};

/// The JSON form of an answer that is not a report.
#[derive(Serialize)]
struct Answer<'a, T: Serialize> {
    schema: u32,
    #[serde(flatten)]
    content: T,
    findings: &'a [Finding],
    exit_code: u8,
}

/// Content of one field.
pub(super) fn named<'a, T: Serialize>(
    name: &'static str,
    content: &'a T,
) -> BTreeMap<&'static str, &'a T> {
    BTreeMap::from([(name, content)])
}

/// Prints content and findings in the requested format, and returns the exit code.
pub(super) fn answer<T: Serialize>(
    format: Format,
    content: T,
    findings: &[Finding],
    text: impl FnOnce() -> String,
) -> Result<ExitCode, Error> {
    answer_in(Detail::All, format, content, findings, text)
}

/// The same; where people ask for the verdict alone, without the findings.
pub(super) fn answer_in<T: Serialize>(
    detail: Detail,
    format: Format,
    content: T,
    findings: &[Finding],
    text: impl FnOnce() -> String,
) -> Result<ExitCode, Error> {
    let code = worst(findings, ExitCode::Pass);
    answer_with(code, detail, format, content, findings, text)?;
    Ok(code)
}

/// The same with an exit code that does not follow from the findings.
pub(super) fn answer_with<T: Serialize>(
    code: ExitCode,
    detail: Detail,
    format: Format,
    content: T,
    findings: &[Finding],
    text: impl FnOnce() -> String,
) -> Result<(), Error> {
    let text = match (format, detail) {
        (Format::Text, Detail::Verdict) => reports::clean(&text()),
        (Format::Text, _) => format!(
            "{}{}",
            reports::clean(&text()),
            reports::findings_text(findings)
        ),
        (Format::Json, _) => json(&Answer {
            schema: 1,
            content,
            findings,
            exit_code: code as u8,
        }),
    };
    print(&text)
}

/// The error on a capture that the user named: it is missing, or damaged.
pub(super) fn unreadable(path: &Path, error: ReadError) -> Error {
    match error {
        ReadError::InFile { source, .. } => unreadable(path, *source),
        ReadError::Io(source) => Error::named(path)(source),
        // Reports of Nsight Systems have no sign of their own.
        ReadError::OtherFile(_) if ends_in(path, &["nsys-rep", "qdrep", "qdstrm"]) => {
            Error::Usage(format!(
                "{}: by its name it is a report of Nsight Systems; name a report of Nsight Compute (`.ncu-rep`)",
                path.display()
            ))
        }
        ReadError::OtherFile(why) => Error::Usage(format!("{}: {why}", path.display())),
        error => Error::input(path.to_path_buf(), error.to_string()),
    }
}

pub(super) fn json(value: &impl Serialize) -> String {
    reports::json_for_terminals(pretty_json(value))
}

pub(super) fn print(text: &str) -> Result<(), Error> {
    reports::print(text).map_err(Error::io("write", "standard output"))
}

/// Prints an outcome and writes the reports of it. `ended` is the error that ended the run before
/// everything was judged: the reports say so, and it is returned.
pub(super) fn report(
    outcome: &Outcome,
    ended: Option<Error>,
    form: &Form,
    detail: Detail,
    targets: &[Target],
) -> Result<ExitCode, Error> {
    // The verdict first: a report that cannot be written must not take it along.
    if ended.is_none() || !form.has(Capability::Terminal) {
        print_outcome(outcome, form, detail)?;
    }
    for target in targets {
        target.write(outcome)?;
    }
    match ended {
        Some(error) => Err(error),
        None => Ok(outcome.exit_code()),
    }
}

/// What was judged; or an outcome that says why the run ended before, with the error: the reports must say
/// why there is no verdict.
///
/// # Errors
/// [`Error::Usage`]: nothing was begun.
pub(super) fn or_ended(
    judged: Result<Outcome, Error>,
    origin: Origin,
) -> Result<(Outcome, Option<Error>), Error> {
    match judged {
        Err(Error::Usage(why)) => Err(Error::Usage(why)),
        Ok(outcome) => Ok((outcome, None)),
        Err(error) => {
            let mut outcome = Outcome::new(origin);
            outcome.ended = Some(Ended {
                message: error.to_string(),
                exit_code: error.exit_code() as u8,
            });
            Ok((outcome, Some(error)))
        }
    }
}

/// Prints an outcome, for people with as much detail as they ask for. Only a form of commands may command the service that keeps the log.
fn print_outcome(outcome: &Outcome, form: &Form, detail: Detail) -> Result<(), Error> {
    match form.rendering {
        Rendering::InParts(write) => reports::print_written(|out| write(outcome, out)),
        Rendering::Whole(_) if form.has(Capability::Terminal) => {
            reports::print(&reports::outcome_text(outcome, detail))
        }
        Rendering::Whole(render) if form.has(Capability::Commands) => {
            reports::print_commands(&render(outcome))
        }
        Rendering::Whole(render) => reports::print(&render(outcome)),
    }
    .map_err(Error::io("write", "standard output"))
}
