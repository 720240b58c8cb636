//! The report as Code Quality of GitLab, as its documentation describes it under "Code Quality
//! report format".

use serde::Serialize;
use serde_json::{Value, json};

use super::concern::{Concern, worst_first};
use super::print::one_line;
use super::screen::no_verdict;
use crate::config::FILE_NAME;
use crate::files::pretty_json;
use crate::finding::{ExitCode, Finding, Severity};
use crate::hash::sha256_hex;
use crate::judge::Outcome;

#[derive(Serialize)]
struct Issue {
    description: String,
    check_name: &'static str,
    fingerprint: String,
    severity: &'static str,
    location: Value,
}

/// A line of a file, from the folder of the configuration.
fn location(path: &str, line: u32) -> Value {
    json!({ "path": path, "lines": { "begin": line } })
}

pub(super) fn render(outcome: &Outcome) -> String {
    let of_run = of_run(outcome);
    let issues: Vec<Issue> = of_run
        .into_iter()
        .chain(worst_first(outcome).iter().map(of_finding))
        .collect();
    pretty_json(&issues)
}

/// Why there is no verdict, where no finding states it.
fn of_run(outcome: &Outcome) -> Option<Issue> {
    let (check_name, description) = no_verdict(outcome)?;
    Some(Issue {
        description: one_line(&description),
        check_name,
        fingerprint: sha256_hex(check_name.as_bytes()),
        severity: "blocker",
        location: location(FILE_NAME, 1),
    })
}

fn of_finding(concern: &Concern<'_>) -> Issue {
    let finding = concern.finding;
    Issue {
        description: one_line(&format!(
            "{}: {} (next: {})",
            finding.subject(),
            finding.message,
            finding.next
        )),
        check_name: finding.code.as_str(),
        fingerprint: concern.fingerprint.clone(),
        severity: severity(finding),
        location: location(&one_line(concern.file), concern.line.unwrap_or(1)),
    }
}

fn severity(finding: &Finding) -> &'static str {
    match (finding.severity, finding.code.exit_code()) {
        (Severity::Warn, _) => "minor",
        (Severity::Deny, ExitCode::Inconclusive) => "major",
        (Severity::Deny, ExitCode::Regressed | ExitCode::Baseline) => "critical",
        (Severity::Deny, _) => "blocker",
    }
}
