//! The pictures of an outcome and of a history, as SVG text: pure functions from data to a
//! drawing, which a page holds inline and a file holds with its own style sheet.

mod drawing;
mod ladder;
mod measured;
mod roofline;
mod samples;
mod scale;
mod trend;

pub(super) use drawing::{Drawing, PLOT_STYLE, Size, THEME};
pub(super) use measured::worst;
pub(super) use samples::{LEGEND, Process, Strip};

use crate::judge::{Outcome, VariantReport};
use crate::terms::{Tier, VariantId};
use crate::verdict::Verdict;

/// What there is to draw of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picture {
    /// FLOP/s over FLOP per DRAM byte of the variants of a suite, under measured ceilings.
    Roofline,
    /// How long each variant of a suite takes, the slowest first.
    Ladder,
    /// The samples of every judged metric beside those of its reference.
    Samples,
}

/// An SVG file of a picture, readable on light and on dark; one part a suite, below each other.
///
/// # Errors
/// Says why it cannot be drawn: what is not measured, not declared, or not there.
pub fn picture(outcome: &Outcome, what: Picture) -> Result<String, String> {
    let drawn = |group: &Group<'_>| match what {
        Picture::Roofline => roofline::roofline(group, Size::Wide),
        Picture::Ladder => ladder::ladder(group, Size::Wide),
        Picture::Samples => samples::sheet(group, Size::Wide),
    };
    let groups = groups(outcome);
    if groups.is_empty() {
        return Err("the outcome holds no variant that ran".to_owned());
    }
    let (drawings, reasons): (Vec<_>, Vec<_>) = groups.iter().map(drawn).partition(Result::is_ok);
    let drawings: Vec<Drawing> = drawings.into_iter().filter_map(Result::ok).collect();
    if drawings.is_empty() {
        let reasons: Vec<String> = reasons.into_iter().filter_map(Result::err).collect();
        return Err(reasons.join("; "));
    }
    Ok(Drawing::stacked(&drawings).file())
}

/// The same, or a file that says in its place why there is no picture.
pub(super) fn picture_or_reason(outcome: &Outcome, what: Picture) -> String {
    picture(outcome, what).unwrap_or_else(|why| Drawing::sentence(&why).file())
}

/// An SVG file of how the metrics of a baseline went from acceptance to acceptance.
///
/// # Errors
/// Says why there is nothing to draw.
pub fn trend_file(trends: &[crate::history::Trend]) -> Result<String, String> {
    let drawings = trend_drawings(trends, Size::Wide);
    match drawings.as_slice() {
        [] => Err("no acceptance has a value to draw".to_owned()),
        drawings => Ok(Drawing::stacked(drawings).file()),
    }
}

/// The same, one drawing a folder of baselines.
pub(super) fn trend_drawings(trends: &[crate::history::Trend], size: Size) -> Vec<Drawing> {
    trends
        .iter()
        .filter_map(|of_folder| trend::trend(of_folder, size))
        .collect()
}

/// The variants of one suite on one model of GPU, measured alike.
pub(super) struct Group<'a> {
    pub suite: &'a str,
    pub gpu: &'a str,
    pub tier: Tier,
    pub reports: Vec<&'a VariantReport>,
}

impl Group<'_> {
    /// For a title: the suite, and what is measured below the counters.
    fn name(&self) -> String {
        match self.tier {
            Tier::Counters => format!("{} on {}", self.suite, self.gpu),
            tier => format!("{} ({tier}) on {}", self.suite, self.gpu),
        }
    }

    /// The variant that never changes, by which the others bound the machine's difference.
    fn control(&self) -> Option<&VariantId> {
        self.reports
            .iter()
            .find_map(|report| report.control.as_ref())
            .map(|control| &control.variant)
    }
}

/// What ran, by suite, GPU and tier, in the order of the outcome. Nothing runs on the static tier.
pub(super) fn groups(outcome: &Outcome) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for report in &outcome.variants {
        if report.tier == Tier::Static {
            continue;
        }
        let of_group = groups.iter_mut().find(|group| {
            group.suite == report.variant.suite
                && group.gpu == report.gpu
                && group.tier == report.tier
        });
        match of_group {
            Some(group) => group.reports.push(report),
            None => groups.push(Group {
                suite: &report.variant.suite,
                gpu: &report.gpu,
                tier: report.tier,
                reports: vec![report],
            }),
        }
    }
    groups
}

/// The roofline of each group, or one line why there is none.
pub(super) fn rooflines(outcome: &Outcome, size: Size) -> Vec<Result<Drawing, String>> {
    let of_group = |group: &Group<'_>| roofline::roofline(group, size);
    groups(outcome).iter().map(of_group).collect()
}

/// The ladder of each group, or one line why there is none.
pub(super) fn ladders(outcome: &Outcome, size: Size) -> Vec<Result<Drawing, String>> {
    let of_group = |group: &Group<'_>| ladder::ladder(group, size);
    groups(outcome).iter().map(of_group).collect()
}

/// Strips that a page shows without being asked.
const TROUBLED: usize = 6;

/// The samples of the first metrics that regressed or are open.
pub(super) fn troubled_strips(outcome: &Outcome, size: Size) -> Option<Drawing> {
    let several = outcome.variants.len() > 1;
    // Chosen before any is drawn: of many there may be tens of thousands.
    let of_verdict = |verdict: Verdict| {
        outcome
            .variants
            .iter()
            .flat_map(|report| report.comparisons.iter().map(move |one| (report, one)))
            .filter(move |(_, one)| one.samples.is_some() && one.verdict == Some(verdict))
            .take(TROUBLED)
    };
    let strips: Vec<Strip> = of_verdict(Verdict::Regressed)
        .chain(of_verdict(Verdict::Inconclusive))
        .take(TROUBLED)
        .filter_map(|(report, comparison)| {
            let kernels = super::rows::several_kernels(report);
            let strip = Strip::of(report, comparison, kernels)?;
            Some(if several {
                strip.within(&super::rows::title(report))
            } else {
                strip
            })
        })
        .collect();
    (!strips.is_empty())
        .then(|| samples::strips(&strips, size, "The samples of what regressed or is open"))
}
