//! Two programs in one screen: the answer in the first line, and a line for each kernel that weighs most.

use super::print::one_line;
use crate::judge::{Comparison, KernelShare, Outcome, VariantReport};
use crate::metric::display_values;
use crate::profile::TOTAL;
use crate::verdict::Verdict;

/// The most lines of kernels.
const MOST_ROWS: usize = 10;
/// The most characters of a kernel's name.
const NAME: usize = 36;

/// The answer in one line; `None` where the sum of both programs was not compared.
pub(super) fn answer(outcome: &Outcome) -> Option<String> {
    let report = outcome
        .variants
        .first()
        .filter(|_| outcome.programs.is_some())?;
    let sum = of_sum(report)?;
    let (change, band) = (sum.change?, sum.band?);
    let size = format!(
        "{} ±{}",
        change.display(None),
        change.with(band).magnitude(None)
    );
    let (gone, new) = replaced(report);
    let word = match sum.verdict? {
        Verdict::Regressed => "slower",
        Verdict::Improved => "faster",
        Verdict::Pass => "same",
        Verdict::Inconclusive => "unclear",
        Verdict::NotMeasured => return None,
    };
    let mut line = format!("{word}: {size}");
    if word == "same" || word == "unclear" {
        let caught = sum
            .threshold
            .map(|caught| change.with(caught).display(None));
        line.extend(caught.map(|caught| format!(", would have caught {caught}")));
    }
    let worse: Vec<&Comparison> = kernels(report)
        .filter(|one| one.verdict == Some(Verdict::Regressed))
        .collect();
    match (gone, new, worse.as_slice()) {
        (0, 0, []) => {}
        (0, 0, worse) => {
            let first = worse.first().map_or(String::new(), |one| name(&one.kernel));
            line.push_str(&format!(
                "; {} slower, first {first}",
                counted(worse.len(), "kernel")
            ));
        }
        (gone, new, _) => {
            let parts = [(gone, "gone"), (new, "new")]
                .into_iter()
                .filter(|(count, _)| *count > 0);
            let parts: Vec<String> = parts
                .enumerate()
                .map(|(at, (count, what))| match at {
                    0 => format!("{} {what}", counted(count, "kernel")),
                    _ => format!("{count} {what}"),
                })
                .collect();
            line.push_str(&format!("; {}", parts.join(", ")));
            let largest = report.shares.iter().find(|share| share.reference.is_none());
            if let Some(KernelShare {
                kernel,
                current: Some(percent),
                ..
            }) = largest
            {
                line.push_str(&format!(", largest {} {percent:.0} %", name(kernel)));
            }
        }
    }
    Some(line)
}

/// The kernels that weigh most, a line each.
pub(super) fn rows(report: &VariantReport) -> Vec<String> {
    let mut rows = Vec::new();
    let share_of = |kernel: &str| {
        let mut shares = report.shares.iter();
        shares.find(|share| share.kernel == kernel)
    };
    let weight = |share: Option<&KernelShare>| {
        share.map_or(0.0, |share| {
            share
                .reference
                .unwrap_or(0.0)
                .max(share.current.unwrap_or(0.0))
        })
    };
    for one in of_sum(report).into_iter().chain(kernels(report)) {
        let share = share_of(&one.kernel);
        let percent = match one.kernel == TOTAL {
            true => 100.0,
            false => weight(share),
        };
        let (Some(was), Some(is), Some(change)) = (one.reference, one.current, one.change) else {
            continue;
        };
        let (was, is) = display_values(was.value, is.value, one.unit.as_deref());
        let band = one.band.map_or(String::new(), |band| {
            format!("±{}", change.with(band).magnitude(None))
        });
        let said = match one.verdict {
            Some(Verdict::Regressed) => "slower",
            Some(Verdict::Improved) => "faster",
            Some(Verdict::Inconclusive) => "unclear",
            Some(Verdict::NotMeasured) => "not measured",
            Some(Verdict::Pass) | None => "",
        };
        let cells = format!("{was} → {is}");
        let change = change.display(None);
        rows.push((
            percent,
            format!(
                "{:<NAME$} {percent:>5.1} % {cells:>24} {change:>9} {band:<8} {said}",
                name(&one.kernel),
            ),
        ));
    }
    for share in &report.shares {
        let (said, percent) = match (share.reference, share.current) {
            (None, Some(percent)) => ("new", percent),
            (Some(percent), None) => ("gone", percent),
            _ => continue,
        };
        rows.push((
            percent,
            format!("{:<NAME$} {percent:>5.1} % {said:>24}", name(&share.kernel)),
        ));
    }
    rows.sort_by(|one, other| other.0.total_cmp(&one.0));
    let more = rows.len().saturating_sub(MOST_ROWS);
    let mut lines: Vec<String> = rows
        .into_iter()
        .take(MOST_ROWS)
        .map(|(_, line)| line.trim_end().to_owned())
        .collect();
    if more > 0 {
        lines.push(format!("{} more (-v)", counted(more, "kernel")));
    }
    lines
}

fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

fn of_sum(report: &VariantReport) -> Option<&Comparison> {
    report.comparisons.iter().find(|one| one.kernel == TOTAL)
}

fn kernels(report: &VariantReport) -> impl Iterator<Item = &Comparison> {
    let all = report.comparisons.iter();
    all.filter(|one| one.is_duration() && one.kernel != TOTAL)
}

/// How many kernels only the first program launches, and how many only the second.
fn replaced(report: &VariantReport) -> (usize, usize) {
    let shares = report.shares.iter();
    let gone = shares.clone().filter(|share| share.current.is_none());
    let new = shares.filter(|share| share.reference.is_none());
    (gone.count(), new.count())
}

/// A kernel's name without its result and parameters; where that is too long, also without its template
/// arguments, and shortened in its middle.
fn name(kernel: &str) -> String {
    let kernel = one_line(kernel);
    let whole = kernel.strip_prefix("void ").unwrap_or(&kernel);
    let mut depth = 0_usize;
    let parameters = whole.char_indices().find(|(_, c)| {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        *c == '(' && depth == 0
    });
    // `(total)`, and functions in `(anonymous namespace)`.
    let whole = match parameters {
        Some((at, _)) if at > 0 && !whole[..at].ends_with("::") => &whole[..at],
        _ => whole,
    };
    let kernel = match whole.chars().count() > NAME {
        true => without_arguments(whole),
        false => whole.to_owned(),
    };
    let letters: Vec<char> = kernel.chars().collect();
    if letters.len() <= NAME {
        return kernel;
    }
    let ends = (NAME - 1) / 2;
    let begin: String = letters[..NAME - 1 - ends].iter().collect();
    let end: String = letters[letters.len() - ends..].iter().collect();
    format!("{begin}…{end}")
}

/// A name whose outermost template arguments are replaced by `…`.
fn without_arguments(name: &str) -> String {
    let mut short = String::new();
    let mut depth = 0_usize;
    for c in name.chars() {
        if c == '>' {
            depth = depth.saturating_sub(1);
        }
        if depth == 0 {
            short.push(c);
        }
        if c == '<' {
            if depth == 0 {
                short.push('…');
            }
            depth += 1;
        }
    }
    short
}
