//! The report as workflow commands of GitHub Actions: annotations at source lines.
//!
//! A command is a line that begins with `::`. GitHub shows at most ten annotations of a kind in
//! a step, so the worst come first and the rest is counted.

use super::concern::{Concern, shortened, worst_first};
use super::print::{clean, one_line};
use super::screen::{first_line, no_verdict};
use crate::finding::Severity;
use crate::judge::Outcome;
use crate::terms::more;

/// Annotations of a kind that GitHub shows of a step.
const MOST: usize = 10;
/// Characters of a message; GitHub cuts what is much longer.
const LONGEST: usize = 4_000;
/// Characters of a title or a path.
const LONGEST_PROPERTY: usize = 500;

pub(super) fn render(outcome: &Outcome) -> String {
    let mut text = String::new();
    let all = worst_first(outcome);
    let (denied, warned): (Vec<_>, Vec<_>) = all
        .iter()
        .partition(|concern| concern.finding.severity == Severity::Deny);
    // The reason why there is no verdict is one of the errors.
    let of_run = no_verdict(outcome);
    let of_run = of_run.map(|(_, why)| command("error", "sparsek-gate", None, &why));
    let denied = denied.iter().map(|concern| annotation("error", concern));
    let errors: Vec<String> = of_run.into_iter().chain(denied).collect();
    let warnings: Vec<String> = warned
        .iter()
        .map(|concern| annotation("warning", concern))
        .collect();
    let shown = [&errors, &warnings].into_iter();
    text.extend(shown.flat_map(|all| all.iter().take(MOST).cloned()));
    text.push_str(&command(
        "notice",
        "sparsek-gate",
        None,
        &first_line(outcome),
    ));
    let left_out = |commands: &[String]| commands.len().saturating_sub(MOST);
    let counts = more(&[
        (left_out(&errors), "error"),
        (left_out(&warnings), "warning"),
    ]);
    if !counts.is_empty() {
        text.push_str(&format!(
            "{} left out: GitHub shows {MOST} of each kind; the other forms of the report contain all\n",
            counts.join(" and ")
        ));
    }
    text
}

fn annotation(kind: &str, concern: &Concern<'_>) -> String {
    let finding = concern.finding;
    let title = format!("{} {}", finding.code.as_str(), finding.subject());
    let is_error = |line: &&str| line.contains("error");
    let detail = finding.detail.as_deref().unwrap_or_default();
    let error = detail
        .lines()
        .find(is_error)
        .map(|line| format!("\n{line}"));
    let error = error.unwrap_or_default();
    let message = format!("{}{error}\nnext: {}", finding.message, finding.next);
    let place = (concern.file, concern.line.unwrap_or(1));
    command(kind, &title, Some(place), &message)
}

fn command(kind: &str, title: &str, place: Option<(&str, u32)>, message: &str) -> String {
    let place = place.map_or_else(String::new, |(file, line)| {
        format!("file={},line={line},", property(file))
    });
    let message = shortened(&clean(message), LONGEST);
    format!(
        "::{kind} {place}title={}::{}\n",
        property(title),
        data(&message)
    )
}

/// A command's data: characters that end a line are written as their numbers.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
        // The older form of a command works anywhere in a line.
        .replace("##[", "##\u{2060}[")
}

/// A property's value: characters that end it are written as their numbers, too.
fn property(text: &str) -> String {
    data(&shortened(&one_line(text), LONGEST_PROPERTY))
        .replace(':', "%3A")
        .replace(',', "%2C")
}
