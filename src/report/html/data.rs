//! The data from which the script builds tables and strips, as JSON: repeated words are stored once,
//! and positions of samples are two characters each.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Serialize;

use super::findings::Listed;
use crate::finding::Finding;
use crate::judge::{Comparison, Outcome, VariantReport};
use crate::profile::Provenance;
use crate::report::plot::{Process, Strip};
use crate::report::print::{clean, one_line};
use crate::report::rows::{
    Row, causes_and_drift, left_out, provenance, several_kernels, several_shapes, shown, title,
    verdict_word,
};
use crate::verdict::Verdict;

/// Bytes for the rows of metrics that pass or are recorded; rows that fail are always included.
const ROW_BUDGET: usize = 2_400_000;
/// Bytes for the strips of samples.
const STRIP_BUDGET: usize = 1_400_000;

#[derive(Serialize)]
struct Data {
    words: Vec<String>,
    variants: Vec<Variant>,
    findings: BTreeMap<&'static str, Vec<FindingData>>,
    legend: &'static str,
}

/// Numbers are places in `words`.
#[derive(Serialize)]
struct Variant {
    title: String,
    provenance: String,
    /// Name, start of the hash and address of each commit that the service shows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    commits: Vec<[String; 3]>,
    class: &'static str,
    counts: Vec<String>,
    lines: Vec<String>,
    reference: &'static str,
    kernels: bool,
    rows: Vec<RowCells>,
    /// Rows of metrics that did not move.
    still: Vec<RowCells>,
    strips: Vec<StripData>,
    /// Rows and strips that are left out for the size of the page.
    omitted: [usize; 2],
}

/// Kernel, metric, reference, current, change, tolerance, threshold, verdict, why, class.
#[derive(Serialize)]
struct RowCells(
    usize,
    usize,
    String,
    String,
    String,
    usize,
    String,
    usize,
    usize,
    usize,
);

#[derive(Serialize)]
struct StripData {
    name: String,
    verdict: usize,
    class: &'static str,
    summary: String,
    reference: String,
    current: String,
    values: [u16; 2],
    band: Option<[u16; 2]>,
    limits: Vec<u16>,
    ticks: Vec<(u16, String)>,
}

/// A finding that is not in the document itself.
#[derive(Serialize)]
struct FindingData {
    code: &'static str,
    subject: String,
    message: String,
    detail: Option<String>,
    next: String,
}

#[derive(Default)]
struct Words {
    list: Vec<String>,
    places: HashMap<String, usize>,
}

impl Words {
    fn place(&mut self, word: &str) -> usize {
        let word = one_line(word);
        if let Some(place) = self.places.get(&word) {
            return *place;
        }
        self.list.push(word.clone());
        self.places.insert(word, self.list.len() - 1);
        self.list.len() - 1
    }
}

/// The JSON, safe within a script element, with the findings that are not in the document.
pub(super) fn embedded(outcome: &Outcome, listed: &[Listed<'_>]) -> String {
    let mut words = Words::default();
    let mut room = ROW_BUDGET;
    let mut variants: Vec<Variant> = outcome
        .variants
        .iter()
        .map(|report| variant(outcome, report, &mut words, &mut room))
        .collect();
    let mut room = STRIP_BUDGET;
    // Those that did not pass come first: there may be no room for all.
    for passing in [false, true] {
        for (report, variant) in outcome.variants.iter().zip(&mut variants) {
            add_strips(report, variant, passing, &mut words, &mut room);
        }
    }
    let findings = listed.iter().map(|part| {
        (
            part.id(),
            part.further.iter().copied().map(finding_data).collect(),
        )
    });
    let data = Data {
        words: words.list,
        variants,
        findings: findings.collect(),
        legend: crate::report::plot::LEGEND,
    };
    // No text in it can end the element, or begin another.
    serde_json::to_string(&data)
        .unwrap_or_else(|_| "{}".to_owned())
        .replace('<', "\\u003c")
}

fn finding_data(finding: &Finding) -> FindingData {
    FindingData {
        code: finding.code.as_str(),
        subject: one_line(&finding.subject()),
        message: one_line(&finding.message),
        detail: finding.detail.as_deref().map(clean),
        next: one_line(&finding.next),
    }
}

/// The commits of both sides, each with its name and its page, where the service shows them.
fn commits(outcome: &Outcome, report: &VariantReport) -> Vec<[String; 3]> {
    let sides = [
        (report.mode.reference(), &report.reference),
        ("current", &report.current),
    ];
    let link = |(name, side): (&str, &Provenance)| {
        let git = side.git.as_deref()?;
        let commit = git.split_once('+').map_or(git, |(commit, _)| commit);
        let address = outcome.web.as_ref()?.of_commit(commit)?;
        let short = commit.chars().take(10).collect();
        Some([name.to_owned(), short, address])
    };
    sides.into_iter().filter_map(link).collect()
}

fn variant(
    outcome: &Outcome,
    report: &VariantReport,
    words: &mut Words,
    room: &mut usize,
) -> Variant {
    let shown = shown(report);
    let shapes = several_shapes(report);
    let mut omitted = 0;
    let mut row = |comparison: &Comparison| {
        let cells = cells(comparison, &shapes, words);
        let fails = matches!(
            comparison.verdict,
            Some(Verdict::Regressed | Verdict::Inconclusive | Verdict::NotMeasured)
        );
        let size = 45 + cells.2.len() + cells.3.len() + cells.4.len() + cells.6.len();
        if !fails && *room < size {
            omitted += 1;
            return None;
        }
        *room = room.saturating_sub(size);
        Some(cells)
    };
    let rows = shown
        .iter()
        .filter_map(|comparison| row(comparison))
        .collect();
    // By place in memory: each comparison of the report is another.
    let known: HashSet<*const Comparison> =
        shown.iter().map(|one| std::ptr::from_ref(*one)).collect();
    let still = report
        .comparisons
        .iter()
        .filter(|one| !known.contains(&std::ptr::from_ref(*one)))
        .filter_map(&mut row)
        .collect();
    let counts = Verdict::WORST_FIRST.into_iter().filter_map(|verdict| {
        let count = report
            .comparisons
            .iter()
            .filter(|comparison| comparison.verdict == Some(verdict))
            .count();
        (count > 0).then(|| format!("{count} {}", verdict.as_str()))
    });
    Variant {
        title: one_line(&title(report)),
        provenance: one_line(&provenance(report)),
        commits: commits(outcome, report),
        class: class(crate::report::plot::worst(report)),
        counts: counts.collect(),
        lines: left_out(report)
            .into_iter()
            .chain(causes_and_drift(report))
            .map(|line| one_line(&line))
            .collect(),
        reference: report.mode.reference(),
        kernels: several_kernels(report),
        rows,
        still,
        strips: Vec::new(),
        omitted: [omitted, 0],
    }
}

fn cells(comparison: &Comparison, shapes: &BTreeSet<&str>, words: &mut Words) -> RowCells {
    let row = Row::of(comparison, shapes);
    RowCells(
        words.place(&row.kernel),
        words.place(&row.metric),
        one_line(&row.reference),
        one_line(&row.current),
        one_line(&row.change),
        words.place(&row.tolerance),
        one_line(&row.threshold),
        words.place(verdict_word(row.verdict)),
        words.place(&row.why),
        words.place(class(row.verdict)),
    )
}

/// The class that colours a verdict, and by which the script chooses its mark.
fn class(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Regressed) => "bad",
        Some(Verdict::NotMeasured | Verdict::Inconclusive) => "open",
        Some(Verdict::Improved) => "good",
        Some(Verdict::Pass) => "plain",
        None => "quiet",
    }
}

fn add_strips(
    report: &VariantReport,
    variant: &mut Variant,
    passing: bool,
    words: &mut Words,
    room: &mut usize,
) {
    let kernels = several_kernels(report);
    for comparison in &report.comparisons {
        let passed = comparison.verdict == Some(Verdict::Pass);
        let Some(samples) = comparison.samples.as_ref().filter(|_| passed == passing) else {
            continue;
        };
        // Two characters for each launch: what does not fit is not drawn first.
        let sides = samples.reference.iter().chain(&samples.current);
        let launches: usize = sides.map(Vec::len).sum();
        if *room < 2 * launches {
            variant.omitted[1] += 1;
            continue;
        }
        let Some(strip) = Strip::of(report, comparison, kernels) else {
            continue;
        };
        let strip = StripData {
            name: strip.name,
            verdict: words.place(verdict_word(strip.verdict)),
            class: class(strip.verdict),
            summary: strip.summary,
            reference: coded(&strip.reference),
            current: coded(&strip.current),
            values: strip.values,
            band: strip.band,
            limits: strip.limits,
            ticks: strip.ticks,
        };
        let size = 200 + strip.name.len() + strip.reference.len() + strip.current.len();
        *room = room.saturating_sub(size);
        variant.strips.push(strip);
    }
}

/// Processes separated by blanks: the location, then the launches, two digits of base 64 each.
fn coded(processes: &[Process]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let step = |step: u16, text: &mut String| {
        for digit in [step >> 6 & 63, step & 63] {
            text.push(char::from(DIGITS[usize::from(digit)]));
        }
    };
    let mut text = String::new();
    for (at, process) in processes.iter().enumerate() {
        if at > 0 {
            text.push(' ');
        }
        step(process.location, &mut text);
        for launch in &process.launches {
            step(*launch, &mut text);
        }
    }
    text
}
