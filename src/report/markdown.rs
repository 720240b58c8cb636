//! The report for a comment on a pull request.
//!
//! A comment has a largest size (GitHub: 65,536 characters), so the parts are made in the order in
//! which they matter, each whole or left out, and what is left out is counted.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::code_table;
use super::concern::shortened;
use super::print::{clean, inert};
use super::rows::{
    Row, causes_and_drift, class, columns, counts_of, head, left_out, provenance, several_kernels,
    several_shapes, shown, title, verdict_word,
};
use super::screen::first_line;
use super::weight::{badly, badness, by_badness, by_origin, by_weight};
use crate::finding::{ExitCode, Finding, Severity};
use crate::judge::{Comparison, Outcome, VariantReport};
use crate::terms::{VariantId, counted, more};

/// It identifies the comment of an earlier run.
const MARK: &str = "<!-- sparsek-gate -->";
/// Bytes of the whole report: below the limit of the services, with room for text around it.
const MOST: usize = 60_000;
/// Bytes of it for the findings, and for the variants that pass.
const MOST_OF_FINDINGS: usize = 24_000;
const MOST_OF_PASSING: usize = 8_000;
/// Bytes kept for the last line, which counts what is left out.
const RESERVE: usize = 1_000;
/// Characters of a text from outside in a line, and of a tool's output.
const LONGEST_TEXT: usize = 1_500;
const LONGEST_CELL: usize = 200;
const LONGEST_DETAIL: usize = 4_000;
/// Kernels whose compiled code is shown.
const KERNELS: usize = 20;

/// What the report could not show.
#[derive(Default)]
struct LeftOut<'a> {
    findings: Vec<&'a Finding>,
    kernels: BTreeSet<(String, &'a str)>,
    /// Of tables that are shown.
    rows: usize,
    variants: usize,
}

pub(super) fn render(outcome: &Outcome) -> String {
    // A step may print it from its file, too.
    inert(&report(outcome)).into_owned()
}

fn report(outcome: &Outcome) -> String {
    let sign = match outcome.exit_code() {
        ExitCode::Pass => "✅",
        ExitCode::Inconclusive => "❔",
        _ => "❌",
    };
    let mut lines = head(outcome).into_iter();
    let mut text = format!(
        "### {sign} sparsek-gate {} {MARK}\n\n{}\n",
        escape(&first_line(outcome)),
        line(&shortened(&lines.next().unwrap_or_default(), LONGEST_TEXT))
    );
    for below in lines {
        let below = line(&shortened(&below, LONGEST_TEXT));
        text.push_str(&format!("\n<sub>{below}</sub>\n"));
    }
    if let Some(ended) = &outcome.ended {
        text.push_str("\n**The run ended**\n\n");
        for of_message in shortened(&ended.message, LONGEST_TEXT).lines() {
            text.push_str(&format!("- {}\n", line(of_message)));
        }
    }
    let found = by_origin(&outcome.findings);
    let mut left = LeftOut::default();
    findings(&found, outcome, &mut text, &mut left);
    let code = code_table::changed(&outcome.variants, KERNELS);
    if !code.is_empty() {
        text.push_str("\n**Compiled code**\n\n");
    }
    for line in code {
        // Indented code: backquotes inside cannot end it.
        text.push_str(&format!("    {}\n", clean(&line)));
    }
    let (passing, eventful): (Vec<&VariantReport>, Vec<&VariantReport>) =
        outcome.variants.iter().partition(passes);
    let passing = passing_table(&passing, &mut left);
    let most = MOST - RESERVE - passing.len();
    for report in by_badness(eventful) {
        variant(report, most, &mut text, &mut left);
    }
    text.push_str(&passing);
    text.push_str(&left.line());
    text
}

/// Findings, the weightiest first, as long as there is room. Those in a row that ask for the same next
/// step share it: the last of them shows it.
fn findings<'a>(
    found: &'a [Finding],
    outcome: &Outcome,
    text: &mut String,
    left: &mut LeftOut<'a>,
) {
    let all = by_weight(found, &outcome.variants);
    let most = text.len() + MOST_OF_FINDINGS;
    for (title, severity) in [("Findings", Severity::Deny), ("Warnings", Severity::Warn)] {
        let of_severity: Vec<&Finding> = all
            .iter()
            .copied()
            .filter(|finding| finding.severity == severity)
            .collect();
        let mut titled = false;
        for (index, one) in of_severity.iter().enumerate() {
            let following = of_severity.get(index + 1);
            let last = following.is_none_or(|following| following.next != one.next);
            let entry = finding(one, last);
            if text.len() + entry.len() + title.len() + 8 > most {
                // The finding before left its next step to this one.
                let before = index.checked_sub(1).and_then(|at| of_severity.get(at));
                if titled && before.is_some_and(|before| before.next == one.next) {
                    text.push_str(&next_step(one));
                }
                left.findings.extend(&of_severity[index..]);
                break;
            }
            if !titled {
                text.push_str(&format!("\n**{title}**\n\n"));
                titled = true;
            }
            text.push_str(&entry);
        }
    }
}

fn finding(finding: &Finding, shows_next: bool) -> String {
    let mut text = format!(
        "- `{}` **{}**: {}",
        finding.code.as_str(),
        escape(&finding.subject()),
        escape(&shortened(&finding.message, LONGEST_TEXT)),
    );
    if shows_next {
        text.push_str("  ");
    }
    text.push('\n');
    if shows_next {
        text.push_str(&next_step(finding));
    }
    if let Some(detail) = &finding.detail {
        // Indented code: backquotes inside cannot end it.
        text.push_str("\n  <details><summary>output</summary>\n\n");
        for line in clean(&shortened(detail, LONGEST_DETAIL)).lines() {
            text.push_str(&format!("      {line}\n"));
        }
        text.push_str("\n  </details>\n\n");
    }
    text
}

fn next_step(finding: &Finding) -> String {
    let next = shortened(&finding.next, LONGEST_TEXT);
    format!("  next: {}\n", escape(&next))
}

/// Whether no row of a report needs a reader: nothing got worse or better, and nothing is open.
fn passes(report: &&VariantReport) -> bool {
    report.comparisons.iter().all(|one| badly(one) == 0)
        && report.causes.is_empty()
        && report.drift.is_empty()
}

/// A folded table of a variant, as many of its rows as there is room for, or nothing of it.
fn variant<'a>(report: &'a VariantReport, most: usize, text: &mut String, left: &mut LeftOut<'a>) {
    let mut comparisons = shown(report);
    let shapes = several_kernels(report).then(|| several_shapes(report));
    let mut room = most.saturating_sub(text.len());
    let mut after = String::new();
    for of_report in left_out(report).into_iter().chain(causes_and_drift(report)) {
        let of_report = format!("\n{}\n", line(&shortened(&of_report, LONGEST_TEXT)));
        // The table comes first.
        if after.len() + of_report.len() > room / 3 {
            break;
        }
        after.push_str(&of_report);
    }
    after.push_str(&format!(
        "\n<sub>{}</sub>\n\n</details>\n",
        escape(&shortened(&provenance(report), LONGEST_TEXT))
    ));
    let mut before = format!(
        "\n<details><summary><b>{}</b>: {}</summary>\n\n",
        escape_html(&title(report)),
        counts_of(report)
    );
    if !comparisons.is_empty() {
        before.push_str(&table_head(report, shapes.is_some()));
    }
    let rows: Vec<String> = comparisons
        .iter()
        .map(|one| row(one, shapes.as_ref()))
        .collect();
    let whole: usize = rows.iter().map(String::len).sum();
    room = room.saturating_sub(before.len() + after.len());
    if whole > room {
        comparisons.sort_by(|one, other| {
            let by_size = || badness(other).total_cmp(&badness(one));
            badly(other).cmp(&badly(one)).then_with(by_size)
        });
    }
    let mut table = String::new();
    let mut rows_shown = 0;
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for comparison in &comparisons {
        let row = row(comparison, shapes.as_ref());
        if table.len() + row.len() > room {
            break;
        }
        table.push_str(&row);
        rows_shown += 1;
        seen.insert(&comparison.kernel);
    }
    let frame = text.len() + before.len() + after.len();
    if frame > most || (table.is_empty() && !comparisons.is_empty()) {
        left.variants += 1;
        seen.clear();
    } else {
        text.push_str(&before);
        text.push_str(&table);
        text.push_str(&after);
        left.rows += comparisons.len() - rows_shown;
    }
    let name = report.variant.to_string();
    let missing = comparisons
        .iter()
        .map(|comparison| comparison.kernel.as_str())
        .filter(|kernel| !seen.contains(kernel));
    left.kernels
        .extend(missing.map(|kernel| (name.clone(), kernel)));
}

fn table_head(report: &VariantReport, kernels: bool) -> String {
    let rule = if kernels { "|---" } else { "" };
    format!(
        "| {} |\n{rule}|---|--:|--:|--:|--:|--:|---|---|\n",
        columns(report, kernels).join(" | ")
    )
}

/// `shapes` where the kernels have a column.
fn row(comparison: &Comparison, shapes: Option<&BTreeSet<&str>>) -> String {
    let row = Row::of(comparison, shapes.unwrap_or(&BTreeSet::new()));
    let mut cells: Vec<String> = row
        .cells(shapes.is_some())
        .iter()
        .map(|text| escape(&shortened(text, LONGEST_CELL)))
        .collect();
    if matches!(class(comparison.verdict), "bad" | "open") {
        let word = cells.len() - 2;
        cells[word] = format!("**{}**", verdict_word(comparison.verdict));
    }
    format!("| {} |\n", cells.join(" | "))
}

/// The variants that pass: a folded line each.
fn passing_table<'a>(reports: &[&'a VariantReport], left: &mut LeftOut<'a>) -> String {
    if reports.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n<details><summary>{} in which nothing got worse</summary>\n\n| variant | verdicts | conditions |\n|---|---|---|\n",
        counted(reports.len(), "report", "reports")
    );
    for report in reports {
        let row = format!(
            "| {} | {} | {} |\n",
            escape(&title(report)),
            counts_of(report),
            escape(&shortened(&provenance(report), LONGEST_CELL))
        );
        if text.len() + row.len() > MOST_OF_PASSING {
            left.variants += 1;
            continue;
        }
        text.push_str(&row);
    }
    text.push_str("\n</details>\n");
    text
}

impl LeftOut<'_> {
    /// What only the other forms contain.
    fn line(&self) -> String {
        let count = |severity| {
            let of = |finding: &&&Finding| finding.severity == severity;
            self.findings.iter().filter(of).count()
        };
        let denied: BTreeSet<Option<&VariantId>> = self
            .findings
            .iter()
            .filter(|finding| finding.severity == Severity::Deny)
            .map(|finding| finding.variant.as_ref())
            .collect();
        let mut parts = more(&[
            (count(Severity::Deny), "finding"),
            (count(Severity::Warn), "warning"),
            (self.variants, "table"),
            (self.rows, "row"),
            (self.kernels.len(), "kernel"),
        ]);
        if !denied.is_empty() {
            let variants = counted(denied.len(), "variant", "variants");
            parts[0].push_str(&format!(" in {variants}"));
        }
        if parts.is_empty() {
            return String::new();
        }
        format!("\n**{}**: see the HTML or JSON report\n", parts.join(", "))
    }
}

/// The same for the start of a line, where a list or a heading could begin.
fn line(text: &str) -> String {
    let escaped = escape(text);
    let trimmed = escaped.trim_start();
    let digits = trimmed.trim_start_matches(|c: char| c.is_ascii_digit());
    match trimmed.chars().next() {
        // A slash begins a command of GitLab's.
        Some('-' | '+' | '=' | '/') => format!("\\{trimmed}"),
        Some('0'..='9') if digits.starts_with('.') => {
            let number = &trimmed[..trimmed.len() - digits.len()];
            format!("{number}\\{digits}")
        }
        _ => trimmed.to_owned(),
    }
}

/// Text within HTML, where Markdown's own marks are text.
fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '\n' | '\t' => escaped.push(' '),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '@' => escaped.push_str("@\u{2060}"),
            // `<summary>` may be read as Markdown by some services.
            '_' => escaped.push_str("&#95;"),
            '*' => escaped.push_str("&#42;"),
            '`' => escaped.push('\''),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Text from outside is data: nothing in it is markup, HTML, a mention or a link.
fn escape(text: &str) -> String {
    let text = clean(text);
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' | '\t' => escaped.push(' '),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => {
                escaped.push_str("&amp;");
                // An epic of this number.
                if rest.peek().is_some_and(|c| c.is_alphanumeric()) {
                    escaped.push('\u{2060}');
                }
            }
            // The word joiner prevents a mention or a link.
            '@' => escaped.push_str("@\u{2060}"),
            // A milestone; of a percentage the sign comes last.
            '%' if rest
                .peek()
                .is_some_and(|c| c.is_alphanumeric() || *c == '"') =>
            {
                escaped.push_str("%\u{2060}");
            }
            // Quotes in prose; a service would start code at the first and end it at the next.
            '`' => escaped.push('\''),
            '\\' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '#' | '|' | '~' | '!' | '$' => {
                escaped.push('\\');
                escaped.push(c);
                // An issue, a merge request, a snippet, a label of this number.
                if matches!(c, '#' | '!' | '$' | '~')
                    && rest.peek().is_some_and(|c| c.is_alphanumeric())
                {
                    escaped.push('\u{2060}');
                }
            }
            c => escaped.push(c),
        }
    }
    without_links(&escaped)
}

/// Issues by the names that GitHub and GitLab give them, `GH-1`, and pictures, `:name:`, which
/// C++ spells in `a::name::b` too.
fn without_names(text: &str) -> String {
    static NAMES: LazyLock<Option<Regex>> = LazyLock::new(|| {
        const ISSUE: &str = r"(\bG[HL])(-[0-9])";
        // No other begins with a digit; times do.
        const PICTURE: &str = r"(?:[a-z+-]|\\_)(?:\\?[a-z0-9_+-])*|100|1234|8ball";
        Regex::new(&format!("(?i){ISSUE}|(:)((?:{PICTURE}):)")).ok()
    });
    let broken = |text: &str| match NAMES.as_ref() {
        Some(names) => names.replace_all(text, "$1$3\u{2060}$2$4").into_owned(),
        None => text.to_owned(),
    };
    // Of `:a:b:` the first takes the colon that begins the second.
    broken(&broken(text))
}

/// Breaks what services turn into links without any mark around it.
fn without_links(text: &str) -> String {
    let mut text = without_names(text).replace("://", ":\u{2060}//");
    for start in ["www.", "mailto:", "xmpp:"] {
        let lower = text.to_ascii_lowercase();
        let (word, end) = start.split_at(start.len() - 1);
        for (at, _) in lower.rmatch_indices(start) {
            text.replace_range(at + word.len()..at + start.len(), &format!("\u{2060}{end}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{escape, line};

    #[test]
    fn names_cannot_become_markup() {
        let hostile = "a|b <img src=x> @someone `x` [l](https://e.org) **bold**\n# title";
        let escaped = escape(hostile);
        assert_eq!(
            escaped,
            "a\\|b &lt;img src=x&gt; @\u{2060}someone 'x' \\[l\\]\\(https:\u{2060}//e.org\\) \\*\\*bold\\*\\* \\# title"
        );
        assert_eq!(
            escape("#12 !3 WWW.e.org mailto:x"),
            "\\#\u{2060}12 \\!\u{2060}3 WWW\u{2060}.e.org mailto\u{2060}:x"
        );
        assert_eq!(
            escape("GH-1 gl-2 &3 %4 5 % ~b a::fire::b :a_b:c: a::b c: d 06:56:45Z: x :100:"),
            "GH\u{2060}-1 gl\u{2060}-2 &amp;\u{2060}3 %\u{2060}4 5 % \\~\u{2060}b a::\u{2060}fire::b :\u{2060}a\\_b:\u{2060}c: a::b c: d 06:56:45Z: x :\u{2060}100:"
        );
        assert_eq!(line("/close"), "\\/close");
        assert_eq!(line("- 1"), "\\- 1");
        assert_eq!(line("  12. x"), "12\\. x");
        assert_eq!(line("    code"), "code");
        assert_eq!(line("==="), "\\===");
    }
}
