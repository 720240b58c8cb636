//! The pictures of an outcome and of a history, each as a drawing or as a file.

use super::drawing::{Drawing, Size};
use super::group::{Group, groups};
use super::samples::Strip;
use super::{ladder, roofline, samples};
use crate::judge::Outcome;
use crate::report::form::Form;
use crate::report::rows::{several_kernels, title};
use crate::verdict::Verdict;

/// The form.
pub(in crate::report) const LADDER: Form = Form {
    name: "ladder",
    help: "SVG: how long each variant of a suite takes",
    endings: &[],
    capabilities: &[],
    render: |outcome| picture_or_reason(outcome, Picture::Ladder),
};

/// The form.
pub(in crate::report) const ROOFLINE: Form = Form {
    name: "roofline",
    help: "SVG: FLOP/s over FLOP per DRAM byte, under measured ceilings",
    endings: &[],
    capabilities: &[],
    render: |outcome| picture_or_reason(outcome, Picture::Roofline),
};

/// The form.
pub(in crate::report) const SAMPLES: Form = Form {
    name: "samples",
    help: "SVG: the samples of every judged metric beside those of its reference",
    endings: &[],
    capabilities: &[],
    render: |outcome| picture_or_reason(outcome, Picture::Samples),
};

/// A picture of an outcome.
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
        return Err("no variant of the outcome ran".to_owned());
    }
    let (drawings, reasons): (Vec<_>, Vec<_>) = groups.iter().map(drawn).partition(Result::is_ok);
    let drawings: Vec<Drawing> = drawings.into_iter().filter_map(Result::ok).collect();
    if drawings.is_empty() {
        let reasons: Vec<String> = reasons.into_iter().filter_map(Result::err).collect();
        return Err(reasons.join("; "));
    }
    Ok(Drawing::stacked(&drawings).file())
}

/// The same, or a file that states why there is no picture.
pub(in crate::report) fn picture_or_reason(outcome: &Outcome, what: Picture) -> String {
    picture(outcome, what).unwrap_or_else(|why| Drawing::sentence(&why).file())
}

/// The roofline of each group, or one line why there is none.
pub(in crate::report) fn rooflines(outcome: &Outcome, size: Size) -> Vec<Result<Drawing, String>> {
    let of_group = |group: &Group<'_>| roofline::roofline(group, size);
    groups(outcome).iter().map(of_group).collect()
}

/// The ladder of each group, or one line why there is none.
pub(in crate::report) fn ladders(outcome: &Outcome, size: Size) -> Vec<Result<Drawing, String>> {
    let of_group = |group: &Group<'_>| ladder::ladder(group, size);
    groups(outcome).iter().map(of_group).collect()
}

/// Strips that a page always shows.
const TROUBLED: usize = 6;

/// The samples of the first metrics that regressed or are open.
pub(in crate::report) fn troubled_strips(outcome: &Outcome, size: Size) -> Option<Drawing> {
    let several = outcome.variants.len() > 1;
    // Chosen before any is drawn: there may be tens of thousands.
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
            let kernels = several_kernels(report);
            let strip = Strip::of(report, comparison, kernels)?;
            Some(if several {
                strip.within(&title(report))
            } else {
                strip
            })
        })
        .collect();
    (!strips.is_empty()).then(|| {
        samples::strips(
            &strips,
            size,
            "Samples of the metrics that regressed or are open",
        )
    })
}
