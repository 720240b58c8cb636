//! The report for a comment on a pull request.
//!
//! A comment has a largest size (GitHub: 65,536 characters), so findings are shown in the order in which
//! they matter, each whole or left out, and what is left out is counted.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::concern::shortened;
use super::print::{clean, inert, one_line};
use super::rows::head;
use super::screen::{first_line, rows};
use super::weight::{by_origin, by_weight, shows_next};
use crate::finding::{ExitCode, Finding, Severity};
use crate::judge::Outcome;
use crate::terms::{VariantId, counted, more};

/// It identifies the comment of an earlier run.
const MARK: &str = "<!-- sparsek-gate -->";
/// Bytes of the whole report: below the limit of the services, with room for text around it.
const MOST: usize = 60_000;
/// Bytes of it below the findings.
const RESERVE: usize = 1_000;
/// Characters of a text from outside in a line, and of a tool's output.
const LONGEST_TEXT: usize = 1_500;
const LONGEST_DETAIL: usize = 4_000;

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
    let rows = rows(outcome);
    for (at, row) in rows.iter().enumerate() {
        // Indented code: backquotes inside cannot end it.
        let start = if at == 0 { "\n" } else { "" };
        text.push_str(&format!("{start}    {}\n", one_line(row)));
    }
    let found = by_origin(&outcome.findings);
    let all = by_weight(&found, &outcome.variants);
    let left = findings(&all, &mut text);
    text.push_str(&left_out(&left));
    text
}

/// Findings, the weightiest first, as long as there is room. Those in a row that ask for the same next
/// step share it: the last of them shows it.
fn findings<'a>(all: &[&'a Finding], text: &mut String) -> Vec<&'a Finding> {
    let mut left = Vec::new();
    for found in all.chunk_by(|one, other| one.severity == other.severity) {
        let title = match found[0].severity {
            Severity::Deny => "Findings",
            Severity::Warn => "Warnings",
        };
        for (at, one) in found.iter().enumerate() {
            let entry = finding(one, shows_next(found, at));
            if text.len() + entry.len() + title.len() + 8 > MOST - RESERVE {
                // The finding before left its next step to this one.
                if at > 0 && !shows_next(found, at - 1) {
                    text.push_str(&next_step(one));
                }
                left.extend(&found[at..]);
                break;
            }
            if at == 0 {
                text.push_str(&format!("\n**{title}**\n\n"));
            }
            text.push_str(&entry);
        }
    }
    left
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

/// The findings that only the other forms contain.
fn left_out(left: &[&Finding]) -> String {
    let of = |severity| left.iter().filter(move |one| one.severity == severity);
    let denied: BTreeSet<Option<&VariantId>> = of(Severity::Deny)
        .map(|finding| finding.variant.as_ref())
        .collect();
    let mut parts = more(&[
        (of(Severity::Deny).count(), "finding"),
        (of(Severity::Warn).count(), "warning"),
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

/// [`escape`]d text for the start of a line, where a list or a heading could begin.
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
