//! The report for a comment on a pull request.

use super::print::clean;
use super::rows::{
    Row, causes_and_drift, headline, left_out, origin, provenance, several_kernels, shown, title,
    verdict_word,
};
use crate::verdict::{ExitCode, Finding, Outcome, Severity, VariantReport, Verdict};

pub(super) fn render(outcome: &Outcome) -> String {
    let sign = match outcome.exit_code() {
        ExitCode::Pass => "✅",
        ExitCode::Inconclusive => "❔",
        _ => "❌",
    };
    let mut text = format!(
        "### {sign} sparsek-gate {}\n\n{}\n",
        escape(&headline(outcome)),
        escape(&origin(outcome))
    );
    let findings = |severity| {
        outcome
            .findings
            .iter()
            .filter(move |finding| finding.severity == severity)
    };
    for (title, severity) in [("Findings", Severity::Deny), ("Warnings", Severity::Warn)] {
        if findings(severity).next().is_some() {
            text.push_str(&format!("\n**{title}**\n\n"));
            let of_severity: Vec<&Finding> = findings(severity).collect();
            for (index, one) in of_severity.iter().enumerate() {
                let following = of_severity.get(index + 1);
                let last = following.is_none_or(|following| following.next != one.next);
                text.push_str(&finding(one, last));
            }
        }
    }
    for report in &outcome.variants {
        text.push('\n');
        text.push_str(&variant(report));
    }
    text
}

/// Findings in a row that ask for the same next step share it: the last of them shows it.
fn finding(finding: &Finding, shows_next: bool) -> String {
    let mut text = format!(
        "- `{}` **{}**: {}",
        finding.code.as_str(),
        escape(&finding.subject()),
        escape(&finding.message),
    );
    if shows_next {
        text.push_str(&format!("  \n  next: {}", escape(&finding.next)));
    }
    text.push('\n');
    if let Some(detail) = &finding.detail {
        // Indented code: no run of backquotes inside can end it.
        text.push_str("\n  <details><summary>output</summary>\n\n");
        for line in clean(detail).lines() {
            text.push_str(&format!("      {line}\n"));
        }
        text.push_str("\n  </details>\n\n");
    }
    text
}

fn variant(report: &VariantReport) -> String {
    let mut text = format!("**{}**\n\n", escape(&title(report)));
    let shown = shown(report);
    let kernels = several_kernels(report);
    let columns = [
        "metric",
        report.mode.reference(),
        "current",
        "change",
        "tolerance",
        "fails beyond",
        "verdict",
        "why",
    ];
    let kernel_column = if kernels { "| kernel " } else { "" };
    if !shown.is_empty() {
        text.push_str(&format!("{kernel_column}| {} |\n", columns.join(" | ")));
        text.push_str(&format!(
            "{}|---|--:|--:|--:|--:|--:|---|---|\n",
            if kernels { "|---" } else { "" }
        ));
    }
    for comparison in &shown {
        let row = Row::of(comparison);
        let verdict = match row.verdict {
            Some(Verdict::Pass | Verdict::Improved) | None => verdict_word(row.verdict).to_owned(),
            Some(_) => format!("**{}**", verdict_word(row.verdict)),
        };
        if kernels {
            text.push_str(&format!("| {} ", escape(&row.kernel)));
        }
        let cells = [
            &row.metric,
            &row.reference,
            &row.current,
            &row.change,
            &row.tolerance,
            &row.threshold,
        ]
        .map(|cell| escape(cell));
        text.push_str(&format!(
            "| {} | {verdict} | {} |\n",
            cells.join(" | "),
            escape(&row.why)
        ));
    }
    for line in left_out(report).into_iter().chain(causes_and_drift(report)) {
        text.push_str(&format!("\n{}\n", escape(&line)));
    }
    text.push_str(&format!("\n<sub>{}</sub>\n", escape(&provenance(report))));
    text
}

/// Text from outside is data: nothing in it is markup, HTML, a mention or a link.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '\n' | '\t' => escaped.push(' '),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            // The word joiner breaks what a service would make a mention or a link of.
            '@' => escaped.push_str("@\u{2060}"),
            // Quotes in prose; a service would start code at the first and end it at the next.
            '`' => escaped.push('\''),
            '\\' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '#' | '|' | '~' | '!' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
    escaped.replace("://", ":\u{2060}//")
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_cannot_become_markup() {
        let hostile = "a|b <img src=x> @someone `x` [l](https://e.org) **bold**\n# title";
        let escaped = escape(hostile);
        assert_eq!(
            escaped,
            "a\\|b &lt;img src=x&gt; @\u{2060}someone 'x' \\[l\\]\\(https:\u{2060}//e.org\\) \\*\\*bold\\*\\* \\# title"
        );
    }
}
