//! The report as one self-contained page: no network, no script, no font from elsewhere. The policy in
//! the page's head admits its own style by hash, and nothing else.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use super::code_table;
use super::concern::{Places, shortened};
use super::plot::{PLOT_STYLE, THEME, troubled};
use super::print::{clean, one_line};
use super::rows::{
    Row, causes_and_drift, columns, counts_of, head, left_out, look, provenance, several_kernels,
    several_shapes, shown, title,
};
use super::screen::first_line;
use super::weight::{by_origin, groups};
use crate::finding::{ExitCode, Finding, Severity};
use crate::judge::{Outcome, VariantReport};

const PAGE_STYLE: &str = include_str!("page.css");

/// Findings of a severity, and rows of all variants, that a page has room for.
const FINDINGS: usize = 400;
const ROWS: usize = 2_000;
/// Kernels of a severity whose first finding is shown in full, and variants that are open. The others
/// are folded to one line each.
const IN_FULL: usize = 3;
/// Rows of the table of times, and kernels whose compiled code is shown.
const TIMES: usize = 40;
const CODE: usize = 20;
/// Characters of the one line of a folded finding.
const LINE: usize = 110;

pub(super) fn render(outcome: &Outcome) -> String {
    let first = first_line(outcome);
    let class = match outcome.exit_code() {
        ExitCode::Pass => "good",
        ExitCode::Inconclusive => "open",
        _ => "bad",
    };
    let style = format!("{THEME}{PLOT_STYLE}{PAGE_STYLE}");
    let hash = BASE64_STANDARD.encode(Sha256::digest(&style));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'"
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (one_line(&first)) " – sparsek-gate" }
                style { (PreEscaped(&style)) }
            }
            body {
                header class=(class) {
                    h1 { (name(&one_line(&first))) }
                    @for line in head(outcome) { p class="quiet" { (one_line(&line)) } }
                    @if let Some(ended) = &outcome.ended {
                        p class="ended" role="alert" {
                            strong { "The run ended before everything was judged: " }
                            (one_line(&ended.message))
                        }
                    }
                }
                main {
                    (findings(outcome, Severity::Deny))
                    (findings(outcome, Severity::Warn))
                    (times(outcome))
                    @if let Some(figure) = troubled(outcome) { (figure) }
                    (compiled_code(outcome))
                    (variants(outcome))
                }
                footer class="quiet" { "sparsek-gate " (env!("CARGO_PKG_VERSION")) ", outcome schema " (outcome.schema) ". This page is one file and loads nothing." }
            }
        }
    };
    page.into_string()
}

/// The findings of a severity, the weightiest first: those on one kernel together, as many as there is
/// room for.
fn findings(outcome: &Outcome, severity: Severity) -> Markup {
    let (id, title, class) = match severity {
        Severity::Deny => ("fails", "What fails, and why", "bad"),
        Severity::Warn => ("warns", "Warnings", "open"),
    };
    let found = by_origin(&outcome.findings);
    let mut groups = groups(&found, &outcome.variants);
    groups.retain(|group| group[0].severity == severity);
    let count: usize = groups.iter().map(Vec::len).sum();
    let mut room = FINDINGS;
    for group in &mut groups {
        group.truncate(room);
        room -= group.len();
    }
    let places = Places::of(outcome);
    let full = |finding| in_full(&places, finding);
    html! {
        @if count > 0 {
            section id=(id) {
                h2 { (title) " " span class="quiet" { (count) } }
                ol class="findings" {
                    @for (at, group) in groups.iter().enumerate() {
                        @if let Some((first, others)) = group.split_first() {
                            li class=(class) {
                                @if at < IN_FULL { (subject(first)) (full(first)) } @else {
                                    details class="brief" {
                                        summary { (subject(first)) ": " (prose(&shortened(&first.message, LINE))) }
                                        (full(first))
                                    }
                                }
                                @if !others.is_empty() {
                                    details {
                                        summary { (others.len()) " more of this " @if first.kernel.is_some() { "kernel" } @else { "variant" } }
                                        ol class="findings" {
                                            @for other in others { li class=(class) { (subject(other)) (full(other)) } }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
                @if count > FINDINGS {
                    p class="quiet" { (count - FINDINGS) " further are left out to keep this page small; the JSON form contains them." }
                }
            }
        }
    }
}

/// The durations of all variants: what they were, are, and would have failed at.
fn times(outcome: &Outcome) -> Markup {
    let mut rows = Vec::new();
    for report in &outcome.variants {
        let shapes = several_shapes(report);
        let durations = report.comparisons.iter().filter(|one| one.is_duration());
        rows.extend(durations.map(|one| (report, one.verdict, Row::of(one, &shapes))));
    }
    html! {
        @if rows.len() > 1 {
            section id="times" {
                h2 { "Times " span class="quiet" { (rows.len()) } }
                div class="scroll" tabindex="0" role="region" aria-label="Times" {
                    table {
                        thead { tr { @for name in ["variant", "change", "before", "now", "fails beyond", ""] { th scope="col" { (name) } } } }
                        tbody {
                            @for (report, verdict, row) in rows.iter().take(TIMES) {
                                tr class=(look(*verdict).class) {
                                    td class="name" { (name(&one_line(&report.variant.to_string()))) @if several_kernels(report) { " " (name(&one_line(&row.kernel))) } }
                                    @for cell in [&row.change, &row.reference, &row.current, &row.threshold] { td { (one_line(cell)) } }
                                    td { (look(*verdict).mark) }
                                }
                            }
                        }
                    }
                }
                @if rows.len() > TIMES { p class="quiet" { (rows.len() - TIMES) " further are below." } }
            }
        }
    }
}

/// What the compiler made of the kernels that changed.
fn compiled_code(outcome: &Outcome) -> Markup {
    let lines = code_table::changed(&outcome.variants, CODE);
    html! {
        @if !lines.is_empty() {
            section id="code" {
                h2 { "Compiled code that changed" }
                pre tabindex="0" { (clean(&lines.join("\n"))) }
            }
        }
    }
}

fn subject(finding: &Finding) -> Markup {
    html! { code { (finding.code.as_str()) } " " strong { (name(&one_line(&finding.subject()))) } }
}

/// A finding: message, place, output and next step.
fn in_full<'a>(places: &Places<'a>, finding: &'a Finding) -> Markup {
    html! {
        p { (prose(&finding.message)) }
        @if let Some((file, line)) = places.of_finding(finding) {
            @let shown = line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"));
            p { code { (one_line(&shown)) } }
        }
        @if let Some(detail) = &finding.detail {
            details { summary { "output" } pre tabindex="0" { (clean(detail)) } }
        }
        p class="quiet" { "Next: " (prose(&finding.next)) }
    }
}

/// Text, in which the parts between backquotes are code.
fn prose(text: &str) -> Markup {
    let text = one_line(text);
    let parts: Vec<&str> = text.split('`').collect();
    // A backquote without a second one is text.
    if parts.len().is_multiple_of(2) {
        return html! { (text) };
    }
    html! {
        @for (at, part) in parts.iter().enumerate() {
            @if at % 2 == 1 { code { (name(part)) } } @else { (name(part)) }
        }
    }
}

/// Text with names, which a narrow page breaks behind `_` only.
fn name(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('_').enumerate() {
            @if at > 0 { "_" wbr; }
            (part)
        }
    }
}

/// The variants, those first that need a reader, with as many rows as there is room for.
fn variants(outcome: &Outcome) -> Markup {
    let mut room = ROWS;
    let reports = outcome.variants.iter().map(|report| {
        let worst = report
            .comparisons
            .iter()
            .filter_map(|one| one.verdict)
            .min();
        (worst, report)
    });
    let mut reports: Vec<_> = reports.collect();
    reports.sort_by_key(|(worst, _)| (worst.is_none(), *worst));
    html! {
        section id="variants" {
            h2 { "Variants " span class="quiet" { (reports.len()) } }
            @if reports.is_empty() { p class="quiet" { "No variant was judged." } }
            @for (at, (worst, report)) in reports.into_iter().enumerate() {
                @let opens = at < IN_FULL && matches!(look(worst).class, "bad" | "open");
                details class="box" open[opens] {
                    summary { h3 { (name(&one_line(&title(report)))) } " " span class=(look(worst).class) { (look(worst).mark) " " (counts_of(report)) } }
                    p class="quiet" { (one_line(&provenance(report))) }
                    (table(report, &mut room))
                    ul class="quiet" {
                        @for line in left_out(report).into_iter().chain(causes_and_drift(report)) { li { (one_line(&line)) } }
                    }
                }
            }
        }
    }
}

fn table(report: &VariantReport, room: &mut usize) -> Markup {
    let mut comparisons = shown(report);
    let all = comparisons.len();
    if all > *room {
        comparisons.sort_by_key(|one| (one.verdict.is_none(), one.verdict));
        comparisons.truncate(*room);
    }
    *room -= comparisons.len();
    let (kernels, shapes) = (several_kernels(report), several_shapes(report));
    html! {
        @if !comparisons.is_empty() {
            div class="scroll" tabindex="0" role="region" aria-label="Metrics" {
                table {
                    thead { tr { @for name in columns(report, kernels) { th scope="col" { (name) } } } }
                    tbody {
                        @for comparison in &comparisons {
                            tr class=(look(comparison.verdict).class) {
                                @for cell in Row::of(comparison, &shapes).cells(kernels) { td { (one_line(&cell)) } }
                            }
                        }
                    }
                }
            }
        }
        @if all > comparisons.len() {
            p class="quiet" { (all - comparisons.len()) " rows are left out to keep this page small; the JSON form contains them." }
        }
    }
}
