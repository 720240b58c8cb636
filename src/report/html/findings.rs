//! The findings of a page: the weightiest in full with its cause, the others folded.

use maud::{Markup, html};

use super::prose::prose;
use crate::finding::{Finding, Severity};
use crate::judge::Outcome;
use crate::report::concern::{Places, shortened};
use crate::report::print::{clean, one_line};
use crate::report::weight::groups;

/// Kernels of a severity whose findings are in the document; the script shows the others.
const GROUPS: usize = 15;
/// Findings of one kernel that are in the document.
const OF_KERNEL: usize = 12;
/// Kernels whose first finding is shown in full. The others are folded to one line each.
const IN_FULL: usize = 3;
/// Up to so many kernels with warnings are shown unfolded.
const OPEN_WARNINGS: usize = 4;
/// Characters of the one line of a folded finding.
const LINE: usize = 110;

/// The findings of one severity, by weight.
pub(super) struct Listed<'a> {
    severity: Severity,
    /// Those in the document, the ones on one kernel together.
    groups: Vec<Vec<&'a Finding>>,
    /// Those that the script shows when they are asked for.
    pub further: Vec<&'a Finding>,
}

impl<'a> Listed<'a> {
    pub(super) fn of(outcome: &'a Outcome, severity: Severity) -> Listed<'a> {
        let mut listed = Listed {
            severity,
            groups: Vec::new(),
            further: Vec::new(),
        };
        let all = groups(&outcome.findings, &outcome.variants).into_iter();
        for mut group in all.filter(|group| group[0].severity == severity) {
            if listed.groups.len() == GROUPS {
                listed.further.extend(group);
                continue;
            }
            let rest = group.split_off(group.len().min(OF_KERNEL));
            listed.further.extend(rest);
            listed.groups.push(group);
        }
        listed
    }

    /// The number of all of them.
    pub(super) fn count(&self) -> usize {
        self.groups.iter().map(Vec::len).sum::<usize>() + self.further.len()
    }

    /// The part of the page, and of addresses within it.
    pub(super) fn id(&self) -> &'static str {
        match self.severity {
            Severity::Deny => "fails",
            Severity::Warn => "warns",
        }
    }

    /// The heading.
    pub(super) fn title(&self) -> &'static str {
        match self.severity {
            Severity::Deny => "What fails, and why",
            Severity::Warn => "Warnings",
        }
    }

    /// The section; nothing where there is no finding.
    pub(super) fn section(&self, outcome: &'a Outcome) -> Markup {
        if self.groups.is_empty() {
            return html! {};
        }
        let places = Places::of(outcome);
        let id = self.id();
        let list = html! {
            ol class="findings" {
                @for (at, group) in self.groups.iter().enumerate() {
                    (self.group(outcome, &places, group, at >= IN_FULL))
                }
            }
            @if !self.further.is_empty() {
                details class="further" data-severity=(id) {
                    summary { (self.further.len()) " further" }
                }
            }
        };
        let folded = self.severity == Severity::Warn && self.groups.len() > OPEN_WARNINGS;
        html! {
            section id=(id) aria-labelledby=(format!("{id}-title")) {
                h2 id=(format!("{id}-title")) { (self.title()) " " span class="count" { (self.count()) } }
                @if folded {
                    details class="folded" { summary { "Show the warnings; they do not fail the check" } (list) }
                } @else { (list) }
            }
        }
    }

    /// The first finding on a kernel, and the others below it, folded.
    fn group(
        &self,
        outcome: &Outcome,
        places: &Places<'a>,
        group: &[&'a Finding],
        folded: bool,
    ) -> Markup {
        let class = match self.severity {
            Severity::Deny => "bad",
            Severity::Warn => "open",
        };
        let Some((first, others)) = group.split_first() else {
            return html! {};
        };
        let of_kernel = if first.kernel.is_some() {
            "this kernel"
        } else {
            "this variant"
        };
        let inside = html! {
            (body(outcome, places, first, true))
            @if !others.is_empty() {
                details class="also" {
                    summary { (others.len()) " more of " (of_kernel) }
                    ol class="findings" {
                        @for other in others { li class=(class) { (head(other)) (body(outcome, places, other, other.next != first.next)) } }
                    }
                }
            }
        };
        html! {
            li class=(class) {
                @if folded {
                    details class="brief" {
                        summary { (head_of_line(first)) " " span class="line" { (prose(&brief(&first.message))) } }
                        (inside)
                    }
                } @else { (head(first)) (inside) }
            }
        }
    }
}

/// The start of a message, which says what changed and by how much.
fn brief(message: &str) -> String {
    let start = message.split(" (tolerance").next().unwrap_or(message);
    let start = start.split("; ").next().unwrap_or(start);
    match start.char_indices().nth(LINE) {
        None => start.to_owned(),
        Some(_) => shortened(start, LINE)
            .split('…')
            .next()
            .map_or_else(String::new, |start| format!("{start}…")),
    }
}

fn head_of_line(finding: &Finding) -> Markup {
    html! {
        span class="code" { (finding.code.as_str()) } " "
        strong { (one_line(&finding.subject())) }
    }
}

fn head(finding: &Finding) -> Markup {
    html! { p class="what" { (head_of_line(finding)) } }
}

/// What follows the head of a finding: message, cause, output, place and next step.
fn body<'a>(
    outcome: &Outcome,
    places: &Places<'a>,
    finding: &'a Finding,
    shows_next: bool,
) -> Markup {
    // What changed with it is what a reader looks for next.
    let (message, cause) = match finding.message.split_once("; with it: ") {
        Some((message, cause)) => (message, Some(cause)),
        None => (finding.message.as_str(), None),
    };
    html! {
        p { (prose(message)) }
        @if let Some(cause) = cause {
            p class="cause" { span { "With it" } " " (prose(cause)) }
        }
        @if let Some((file, line)) = places.of_finding(finding) {
            p class="place" { (place(outcome, file, line)) }
        }
        @if let Some(detail) = &finding.detail {
            details { summary { "output" } pre tabindex="0" { (clean(detail)) } }
        }
        @if shows_next { p class="next" { span { "Next" } " " (prose(&finding.next)) } }
    }
}

/// A file and line, as a link where the service shows it.
fn place(outcome: &Outcome, file: &str, line: Option<u32>) -> Markup {
    let shown = match line {
        Some(line) => format!("{file}:{line}"),
        None => file.to_owned(),
    };
    let shown = html! { code { (one_line(&shown)) } };
    match outcome.web.as_ref().and_then(|web| web.of_line(file, line)) {
        Some(address) => html! { a href=(address) rel="noreferrer" { (shown) } },
        None => shown,
    }
}

/// A commit by its start, as a link where the service shows it.
pub(super) fn commit(outcome: &Outcome, commit: &str) -> Markup {
    let short: String = one_line(commit).chars().take(10).collect();
    match outcome.web.as_ref().and_then(|web| web.of_commit(commit)) {
        Some(address) => html! { a href=(address) rel="noreferrer" { code { (short) } } },
        None => html! { code { (short) } },
    }
}
