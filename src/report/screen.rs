//! A comparison in one screen: the answer in the first line, and a line for what weighs most.

use std::collections::{BTreeMap, BTreeSet};

use super::code_table;
use super::print::{cut_middle, one_line};
use super::rows::{counts, headline, several_kernels, several_shapes};
use crate::binary::static_rank;
use crate::finding::{Code, Compared, ExitCode, Finding};
use crate::judge::{Comparison, KernelShare, Mode, Outcome, VariantReport};
use crate::metric::display_value;
use crate::profile::TOTAL;
use crate::terms::{Tier, counted, dimensions};
use crate::verdict::{Change, Verdict};

/// The most lines.
const MOST_ROWS: usize = 10;
/// The characters of a row, and of a cell that all rows make room for.
const COLUMNS: usize = 80;
const CELL: usize = 21;
/// The most characters of a kernel's name in the first line, and of a variant with its kernel and metric.
const FIRST_NAME: usize = 36;
const FIRST_SUBJECT: usize = 100;

/// The answer in one line: what was measured, or what else decides.
pub(super) fn first_line(outcome: &Outcome) -> String {
    let measured = match outcome.programs {
        Some(_) => of_programs(outcome),
        None => of_variants(outcome),
    };
    measured.unwrap_or_else(|| headline(outcome))
}

/// Why there is no verdict, where no finding says it: a word for it, and the text.
pub(super) fn no_verdict(outcome: &Outcome) -> Option<(&'static str, String)> {
    let denied = outcome.findings.iter().any(Finding::denies);
    match &outcome.ended {
        Some(ended) => Some(("ended", format!("the run ended: {}", ended.message))),
        None if !denied && outcome.exit_code() != ExitCode::Pass => {
            Some(("not-judged", first_line(outcome)))
        }
        None => None,
    }
}

/// What a screen shows below the first lines.
pub(super) fn rows(outcome: &Outcome) -> Vec<String> {
    let programs = outcome.programs.as_ref().and(outcome.variants.first());
    programs.map_or_else(|| rows_of_variants(outcome), rows_of_programs)
}

/// A judged metric of a variant.
#[derive(Clone, Copy)]
struct Judged<'o> {
    report: &'o VariantReport,
    one: &'o Comparison,
    verdict: Verdict,
}

/// What weighs most first: what fails, then what is open, then what is better, each by its size in
/// tolerances. Of what passes, durations alone.
fn judged(outcome: &Outcome) -> Vec<Judged<'_>> {
    let mut all = Vec::new();
    for report in &outcome.variants {
        for one in &report.comparisons {
            let Some(verdict) = one.verdict else { continue };
            if verdict != Verdict::Pass || one.is_duration() {
                let judged = Judged {
                    report,
                    one,
                    verdict,
                };
                all.push(judged);
            }
        }
    }
    let denying = outcome.findings.iter().filter(|one| one.denies());
    let denying: BTreeSet<Compared<'_>> = denying.filter_map(Finding::compared).collect();
    let rank = |one: &Judged<'_>| {
        // What is waived or excused decides nothing.
        let decides = denying.contains(&one.report.compared(one.one));
        let is_time = one.one.is_duration();
        (
            one.verdict,
            !decides,
            !is_time,
            static_rank(&one.one.metric),
        )
    };
    let size = |one: &Judged<'_>| {
        let change = one.one.change.map_or(0.0, |change| change.size());
        let threshold = one.one.threshold.map_or(1.0, f64::abs);
        change / threshold.max(f64::MIN_POSITIVE)
    };
    let mut all: Vec<_> = all.into_iter().map(|one| (rank(&one), one)).collect();
    all.sort_by(|(a_rank, a), (b_rank, b)| a_rank.cmp(b_rank).then(size(b).total_cmp(&size(a))));
    all.into_iter().map(|(_, one)| one).collect()
}

impl Judged<'_> {
    /// The variant, with the kernel where it has several, and the metric; `short` omits the duration, and
    /// that a metric is one of compiled code.
    fn subject(&self, most: usize, short: bool) -> String {
        let mut metric = match (self.one.is_duration(), self.report.tier) {
            (true, _) if short => String::new(),
            (_, Tier::Static) if !short => format!(" {} (static)", self.one.metric),
            _ => format!(" {}", self.one.metric),
        };
        metric = cut_middle(&one_line(&metric), most / 2);
        let left = most.saturating_sub(metric.chars().count());
        let mut subject = one_line(&self.report.variant.to_string());
        if several_kernels(self.report) {
            let mut shape = String::new();
            if several_shapes(self.report).contains(self.one.kernel.as_str()) {
                shape = format!(" {}", dimensions(self.one.grid));
            }
            let taken = subject.chars().count() + 1 + shape.chars().count();
            let kernel = name(&self.one.kernel, left.saturating_sub(taken).max(left / 3));
            subject.push_str(&format!(" {kernel}{shape}"));
        }
        cut_middle(&subject, left) + &metric
    }

    /// The change: both values of compiled code, and a factor where it is large.
    fn factor(&self) -> String {
        /// In percent.
        const LARGE: f64 = 50.0;
        let change = self.one.interval().unwrap_or_default();
        if let (true, [_, Some(is)]) = (self.one.exceeds_limit(), self.one.shown()) {
            return format!("{is}, {}", self.one.why);
        }
        let large = |percent: f64| !(-100.0 / 3.0..LARGE).contains(&percent);
        match self.one.change {
            Some(Change::RelativePercent(percent)) if large(percent) => {
                format!("{:.2}× ({change})", 1.0 + percent / 100.0)
            }
            _ if self.report.tier == Tier::Static => values(self.one).unwrap_or(change),
            _ => change,
        }
    }

    fn word(&self) -> &'static str {
        if self.one.exceeds_limit() {
            return "limit";
        }
        word(self.verdict, self.one.is_duration())
    }
}

fn word(verdict: Verdict, of_duration: bool) -> &'static str {
    match (verdict, of_duration) {
        (Verdict::Regressed, true) => "slower",
        (Verdict::Regressed, false) => "worse",
        (Verdict::Improved, true) => "faster",
        (Verdict::Improved, false) => "better",
        (Verdict::Inconclusive, _) => "unclear",
        (Verdict::NotMeasured, _) => "unmeasured",
        (Verdict::Pass, _) => "",
    }
}

/// The answer of a check in one line; `None` where no metric decides, and where no time was judged.
fn of_variants(outcome: &Outcome) -> Option<String> {
    let all = judged(outcome);
    let (code, first) = (outcome.exit_code(), all.first()?);
    let (subject, change) = (first.subject(FIRST_SUBJECT, false), first.factor());
    let what = match (code, first.verdict) {
        (ExitCode::Regressed, Verdict::Regressed)
        | (ExitCode::Inconclusive, Verdict::Inconclusive)
        | (ExitCode::Pass, Verdict::Improved)
            if code != ExitCode::Pass || first.one.is_duration() =>
        {
            format!("{}: {subject} {change}", first.word())
        }
        (ExitCode::Pass, Verdict::Pass) => {
            let caught = first.one.change?.with(first.one.threshold?);
            let caught = caught.display(first.one.unit.as_deref());
            let measured = outcome
                .variants
                .iter()
                .filter(|one| one.tier != Tier::Static);
            let of = match measured.count() {
                1 => String::new(),
                _ => format!("the largest change {subject} "),
            };
            format!("same: {of}{change}, would have caught {caught}")
        }
        _ => return None,
    };
    let counts = counts(outcome);
    Some(format!("{what}; {counts}, exit code {}", code as u8))
}

/// Lines that fit a narrow terminal: the subject in as many characters as the cells leave, and the cells.
fn aligned<T>(rows: &[(T, Vec<String>)], subject: impl Fn(&T, usize) -> String) -> Vec<String> {
    let count = rows.iter().map(|(_, cells)| cells.len()).max();
    let width = |texts: &mut dyn Iterator<Item = &String>| {
        texts.map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let column = |at| width(&mut rows.iter().filter_map(|(_, cells)| cells.get(at)));
    let columns = (0..count.unwrap_or(0)).map(|at| column(at).min(CELL));
    let columns: Vec<usize> = columns.collect();
    let taken: usize = columns.iter().map(|width| width + 1).sum();
    let room = COLUMNS.saturating_sub(taken);
    let subjects: Vec<String> = rows.iter().map(|(row, _)| subject(row, room)).collect();
    let first = width(&mut subjects.iter());
    let lines = rows.iter().zip(&subjects).map(|((_, cells), subject)| {
        let mut line = format!("{subject:<first$}");
        for (at, (cell, width)) in cells.iter().zip(&columns).enumerate() {
            line.push_str(&match at + 1 == columns.len() {
                true => format!(" {cell}"),
                false => format!(" {cell:>width$}"),
            });
        }
        line.trim_end().to_owned()
    });
    lines.collect()
}

/// Both values, in the same unit.
fn values(one: &Comparison) -> Option<String> {
    let [was, is] = one.shown();
    Some(format!("{} → {}", was?, is?))
}

/// A line for each judged metric that weighs most.
fn rows_of_variants(outcome: &Outcome) -> Vec<String> {
    let all = judged(outcome);
    let cells = |judged: &Judged<'_>| {
        let values = values(judged.one).unwrap_or_default();
        let change = judged.one.interval().unwrap_or_default();
        vec![values, change, judged.word().to_owned()]
    };
    let shown = all.iter().take(MOST_ROWS);
    let mut rows: Vec<_> = shown.map(|one| (*one, cells(one))).collect();
    let lines_of = |rows: &[_]| aligned(rows, |one: &Judged<'_>, most| one.subject(most, true));
    let mut lines = lines_of(&rows);
    let more = all.len().saturating_sub(MOST_ROWS);
    if more > 0 {
        lines.push(format!("{} more (-v)", counted(more, "metric", "metrics")));
    }
    rows.clear();
    for report in outcome.variants.iter().filter(|one| one.mode == Mode::New) {
        let times = report.comparisons.iter().filter(|one| one.is_duration());
        rows.extend(times.take(MOST_ROWS).map(|one| {
            let [_, value] = one.shown().map(Option::unwrap_or_default);
            let verdict = Verdict::Pass;
            let judged = Judged {
                report,
                one,
                verdict,
            };
            (judged, vec![value, "new".to_owned()])
        }));
    }
    lines.extend(lines_of(&rows));
    let code = code_table::changed(&outcome.variants, MOST_ROWS);
    if !code.is_empty() && !lines.is_empty() {
        lines.push(String::new());
    }
    lines.extend(code);
    let unknown = |one: &&VariantReport| one.tier == Tier::Static && one.current.compiler.is_none();
    let unknown = outcome.variants.iter().filter(unknown).count();
    if unknown > 0 {
        let of = counted(unknown, "variant", "variants");
        lines.push(format!(
            "of {of} spilled bytes and the compiler's warnings are not known"
        ));
    }
    lines
}

/// The answer of two programs in one line; `None` where the sum of both was not compared, or where something
/// else than a time decides.
fn of_programs(outcome: &Outcome) -> Option<String> {
    let report = outcome.variants.first()?;
    let sum = report.sum()?;
    let all = sum.interval()?;
    let (word, verdict) = match (outcome.exit_code(), sum.verdict?) {
        (ExitCode::Regressed, _) => ("slower", Verdict::Regressed),
        (ExitCode::Inconclusive, _) => ("unclear", Verdict::Inconclusive),
        (ExitCode::Pass, verdict @ Verdict::Improved) => ("faster", verdict),
        (ExitCode::Pass, verdict) => ("same", verdict),
        _ => {
            let other_work = |one: &&Finding| one.denies() && one.code == Code::WorkChanged;
            let found = outcome.findings.iter().find(other_work)?;
            let kernel = name(found.kernel.as_deref().unwrap_or_default(), FIRST_NAME);
            return Some(format!(
                "other work: {kernel}; the sum of all kernels {all}"
            ));
        }
    };
    let of_verdict: Vec<&Comparison> = kernels(report)
        .filter(|one| one.verdict == Some(verdict))
        .collect();
    let by_sum = sum.verdict == Some(verdict);
    let caught = |one: &Comparison| Some(one.change?.with(one.threshold?).display(None));
    let mut line = match of_verdict.first() {
        // A kernel decides.
        Some(first) if !by_sum => {
            let (name, change) = (
                name(&first.kernel, FIRST_NAME),
                first.interval().unwrap_or_default(),
            );
            format!("{word}: {name} {change}; the sum of all kernels {all}")
        }
        _ => format!("{word}: {all}"),
    };
    if let (false, Some(caught)) = (word == "slower" || word == "faster", caught(sum)) {
        line.push_str(&format!(", would have caught {caught}"));
    }
    let shares = report.shares.iter();
    let gone = shares
        .clone()
        .filter(|share| share.current.is_none())
        .count();
    let new: Vec<&KernelShare> = shares.filter(|share| share.reference.is_none()).collect();
    let count = |count| counted(count, "kernel", "kernels");
    let replaced = match (gone, new.len()) {
        (0, 0) => None,
        (gone, 0) => Some(format!("{} gone", count(gone))),
        (0, new) => Some(format!("{} new", count(new))),
        (gone, new) => Some(format!("{} gone, {new} new", count(gone))),
    };
    if let Some(replaced) = replaced {
        line.push_str(&format!("; {replaced}"));
        if let Some(largest) = new.first() {
            let name = name(&largest.kernel, FIRST_NAME);
            line.push_str(&format!(", largest {name} {:.0} %", largest.largest()));
        }
    } else if let (true, "slower", [first, ..]) = (by_sum, word, of_verdict.as_slice()) {
        let (count, name) = (count(of_verdict.len()), name(&first.kernel, FIRST_NAME));
        line.push_str(&format!("; {count} slower, first {name}"));
    }
    if let Some(waits) = report.waits.filter(|waits| waits.is_why) {
        let longer = display_value(waits.longer_ns, Some("ns"));
        line.push_str(&format!("; the GPU waits {longer} longer between kernels"));
    }
    Some(line)
}

/// The kernels of two programs that weigh most, a line each.
fn rows_of_programs(report: &VariantReport) -> Vec<String> {
    let total = KernelShare {
        kernel: TOTAL.to_owned(),
        current: Some(100.0),
        ..KernelShare::default()
    };
    let mut shares: Vec<&KernelShare> = report.shares.iter().collect();
    shares.sort_by(|one, other| other.largest().total_cmp(&one.largest()));
    if report.sum().is_some() {
        shares.insert(0, &total);
    }
    let mut shapes: BTreeMap<&str, usize> = BTreeMap::new();
    for share in &shares {
        *shapes.entry(&share.kernel).or_default() += 1;
    }
    let name = |share: &&KernelShare, most: usize| match shapes.get(share.kernel.as_str()) {
        Some(2..) => {
            let grid = format!(" {}", dimensions(share.grid));
            name(&share.kernel, most.saturating_sub(grid.len())) + &grid
        }
        _ => name(&share.kernel, most),
    };
    let shown = shares.iter().take(MOST_ROWS);
    let rows: Vec<_> = shown.map(|share| (*share, cells(report, share))).collect();
    let mut lines = aligned(&rows, name);
    let more = shares.len().saturating_sub(MOST_ROWS);
    if more > 0 {
        lines.push(format!("{} more (-v)", counted(more, "kernel", "kernels")));
    }
    if let Some(waits) = report.waits {
        lines.push(format!(
            "between kernels the GPU waits {:.1} % → {:.1} % of the time",
            waits.reference_percent, waits.current_percent
        ));
    }
    lines
}

/// What is shown of a kernel beside its name: its share, both values, the change, the verdict.
fn cells(report: &VariantReport, share: &KernelShare) -> Vec<String> {
    let mut durations = report.comparisons.iter().filter(|one| one.is_duration());
    let one = durations.find(|one| share.is_of(one));
    let said = one.and_then(|one| one.verdict);
    let said = said.map_or("", |verdict| word(verdict, true));
    let change = one.and_then(|one| Some((values(one)?, one.interval()?)));
    let (values, change) = match (share.reference, share.current, change) {
        (None, Some(_), _) if share.kernel != TOTAL => ("new".to_owned(), String::new()),
        (Some(_), None, _) => ("gone".to_owned(), String::new()),
        (.., Some(values_and_change)) => values_and_change,
        _ if said.is_empty() && one.is_some() => ("varies".to_owned(), String::new()),
        _ => Default::default(),
    };
    let percent = format!("{:.1} %", share.largest());
    vec![percent, values, change, said.to_owned()]
}

fn kernels(report: &VariantReport) -> impl Iterator<Item = &Comparison> {
    let all = report.comparisons.iter();
    all.filter(|one| one.is_duration() && one.kernel != TOTAL)
}

/// A kernel's name without its result and parameters; where that is too long, also without its template
/// arguments, and shortened in its middle.
fn name(kernel: &str, most: usize) -> String {
    let kernel = one_line(kernel);
    let whole = kernel.strip_prefix("void ").unwrap_or(&kernel);
    let mut depth = 0_usize;
    let parameters = whole.char_indices().find(|(at, c)| {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        // Not `(total)`, and not a function in an `(anonymous namespace)`.
        *c == '(' && depth == 0 && *at > 0 && !whole[..*at].ends_with("::")
    });
    let whole = parameters.map_or(whole, |(at, _)| &whole[..at]);
    let kernel = match whole.chars().count() > most {
        true => without_arguments(whole),
        false => whole.to_owned(),
    };
    cut_middle(&kernel, most)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_folded_first_and_then_cut_in_its_middle() {
        let name = |kernel: &str| name(kernel, FIRST_NAME);
        assert_eq!(name("(total)"), "(total)");
        assert_eq!(name("void f<int, 3>(float*, int)"), "f<int, 3>");
        assert_eq!(
            name("void cub::merge<cub::policy<int, float>, std::less<int> >(int*, (lambda))"),
            "cub::merge<…>"
        );
        assert_eq!(
            name("(anonymous namespace)::f(int)"),
            "(anonymous namespace)::f"
        );
        let cut = name("nvjet_tst_128x128_64x5_2x1_v_bz_coopA_NNT_and_more");
        assert_eq!(cut, "nvjet_tst_128x128_…oopA_NNT_and_more");
        assert_eq!(cut.chars().count(), FIRST_NAME);
    }
}
