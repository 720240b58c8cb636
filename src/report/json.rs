//! The report for scripts.

use serde::Serialize;

use crate::verdict::Outcome;

/// The outcome with what follows from it, so that a script need not know the rules.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    outcome: &'a Outcome,
    exit_code: u8,
    meaning: &'static str,
}

pub(super) fn render(outcome: &Outcome) -> String {
    let code = outcome.exit_code();
    let report = Report {
        outcome,
        exit_code: code as u8,
        meaning: code.meaning(),
    };
    let mut text = serde_json::to_string_pretty(&report).unwrap_or_default();
    text.push('\n');
    text
}
