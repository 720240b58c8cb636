//! The report for a terminal.

use anstyle::{AnsiColor, Style};

use super::code_table;
use super::detail::Detail;
use super::print::{clean, inert, one_line};
use super::rows::{
    Row, causes_and_drift, columns, head, left_out, look, provenance, several_kernels,
    several_shapes, shown, title,
};
use super::screen;
use super::table::plain_table;
use super::weight::{by_origin, by_weight, shows_next};
use crate::finding::{ExitCode, Finding, Severity};
use crate::judge::{Outcome, VariantReport};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

fn colored(color: AnsiColor) -> Style {
    Style::new().bold().fg_color(Some(color.into()))
}

pub(super) fn render(outcome: &Outcome) -> String {
    // A step may print it from its file, too.
    inert(&report(outcome, Detail::All)).into_owned()
}

/// An outcome for a terminal, with as much of it as is asked for.
pub fn report(outcome: &Outcome, detail: Detail) -> String {
    let style = match outcome.exit_code() {
        ExitCode::Pass => colored(AnsiColor::Green),
        ExitCode::Inconclusive => colored(AnsiColor::Yellow),
        _ => colored(AnsiColor::Red),
    };
    let first = screen::first_line(outcome);
    let mut text = format!("{style}{}{style:#}\n", one_line(&first));
    if detail == Detail::Verdict {
        return text;
    }
    for line in head(outcome) {
        text.push_str(&format!("{DIM}{}{DIM:#}\n", one_line(&line)));
    }
    if let Some(ended) = &outcome.ended {
        text.push_str(&format!(
            "\n{style}ended{style:#} {}\n",
            clean(&ended.message)
        ));
    }
    if detail == Detail::All {
        for report in &outcome.variants {
            text.push('\n');
            text.push_str(&variant(report));
        }
        let code = code_table::all(&outcome.variants);
        let code = code.iter().map(|line| one_line(line));
        let code: String = code.map(|line| format!("\n{line}")).collect();
        if !code.is_empty() {
            text.push_str(&format!("{code}\n"));
        }
    } else {
        let rows = screen::rows(outcome);
        if !rows.is_empty() {
            text.push('\n');
        }
        for line in rows {
            text.push_str(&format!("{}\n", one_line(&line)));
        }
    }
    if !outcome.findings.is_empty() {
        text.push('\n');
        let findings = by_origin(&outcome.findings);
        text.push_str(&listed(&by_weight(&findings, &outcome.variants)));
    }
    text
}

fn variant(report: &VariantReport) -> String {
    let mut text = format!(
        "{BOLD}{}{BOLD:#}  {DIM}{}{DIM:#}\n",
        one_line(&title(report)),
        one_line(&provenance(report))
    );
    if report.comparisons.is_empty() {
        return text;
    }
    let shown = shown(report);
    let (kernels, shapes) = (several_kernels(report), several_shapes(report));
    let mut table = plain_table(&columns(report, kernels));
    for comparison in &shown {
        let cells = Row::of(comparison, &shapes).cells(kernels);
        table.add_row(cells.iter().map(|cell| clean(cell).replace('\n', " ")));
    }
    // The header is the first line; each further line is one comparison.
    let styles = shown.iter().map(|one| match one.verdict {
        None => DIM,
        verdict => Style::new().fg_color(look(verdict).color.map(Into::into)),
    });
    let lines = std::iter::once(DIM).chain(styles).zip(table.lines());
    for (style, line) in lines.filter(|_| !shown.is_empty()) {
        text.push_str(&format!("{style}{}{style:#}\n", line.trim_end()));
    }
    for line in left_out(report).into_iter().chain(causes_and_drift(report)) {
        text.push_str(&format!(" {DIM}{}{DIM:#}\n", one_line(&line)));
    }
    text
}

/// Findings, those that deny first. Findings in a row that ask for the same next step share it.
pub fn findings(findings: &[Finding]) -> String {
    listed(&by_weight(findings, &[]))
}

/// Findings in their order: those that deny come before the warnings.
fn listed(findings: &[&Finding]) -> String {
    let mut text = String::new();
    for found in findings.chunk_by(|one, other| one.severity == other.severity) {
        let (style, label) = match found[0].severity {
            Severity::Deny => (colored(AnsiColor::Red), ""),
            Severity::Warn => (colored(AnsiColor::Yellow), "warning "),
        };
        for (at, finding) in found.iter().enumerate() {
            text.push_str(&format!(
                "{style}{label}{}{style:#} {BOLD}{}{BOLD:#}: {}\n",
                finding.code.as_str(),
                clean(&finding.subject()),
                one_line(&finding.message),
            ));
            for line in finding.detail.iter().flat_map(|detail| detail.lines()) {
                text.push_str(&format!("  {DIM}|{DIM:#} {}\n", clean(line)));
            }
            if shows_next(found, at) {
                text.push_str(&format!("  next: {}\n", one_line(&finding.next)));
            }
        }
    }
    text
}
