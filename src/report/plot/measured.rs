//! What the roofline and the ladder need of a variant, read from its comparisons by the name of the
//! counter: an alias may be anything.

use crate::judge::{Comparison, Summary, VariantReport};
use crate::metric::{Role, is_tensor_flop, is_tensor_share};
use crate::profile::TOTAL;
use crate::verdict::Verdict;

/// Which of the two profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Reference,
    Current,
}

impl Side {
    fn of(self, comparison: &Comparison) -> Option<Summary> {
        match self {
            Side::Reference => comparison.reference,
            Side::Current => comparison.current,
        }
    }
}

/// The values of one counter, one a kernel, in the order of the report. `None` where a kernel has
/// none, or one of another unit.
fn values(
    report: &VariantReport,
    side: Side,
    unit: &str,
    counter: impl Fn(&str) -> bool,
) -> Option<Vec<f64>> {
    // Two aliases may stand for one counter, and one is enough.
    let alias = report
        .comparisons
        .iter()
        .find(|comparison| counter(&comparison.counter))
        .map(|comparison| &comparison.metric)?;
    report
        .comparisons
        .iter()
        .filter(|comparison| comparison.metric == *alias && comparison.kernel != TOTAL)
        .map(|comparison| {
            let value = side.of(comparison)?.value;
            (comparison.unit.as_deref() == Some(unit) && value.is_finite()).then_some(value)
        })
        .collect()
}

fn is(role: Role) -> impl Fn(&str) -> bool {
    move |counter| Role::of(counter) == Some(role)
}

/// Seconds of one launch of each kernel, added up.
pub(super) fn duration(report: &VariantReport, side: Side) -> Option<f64> {
    measured(durations(report, side)?.iter().sum())
}

/// A value that something real has: neither zero nor infinite, nor so small that it lost its digits.
pub(super) fn measured(value: f64) -> Option<f64> {
    (value.is_normal() && value > 0.0).then_some(value)
}

fn durations(report: &VariantReport, side: Side) -> Option<Vec<f64>> {
    let values = values(report, side, "ns", is(Role::Duration))?;
    Some(values.iter().map(|value| value * 1e-9).collect())
}

/// Bytes that one launch of each kernel moved to and from DRAM.
pub(super) fn dram_bytes(report: &VariantReport, side: Side) -> Option<f64> {
    let sum = |role| {
        let values = values(report, side, "byte", is(role))?;
        Some(values.iter().sum::<f64>())
    };
    let bytes = sum(Role::DramBytesRead)? + sum(Role::DramBytesWritten)?;
    measured(bytes)
}

/// Seconds for which a unit would have been busy at its peak: duration times share, of each kernel.
fn busy(report: &VariantReport, side: Side, share: impl Fn(&str) -> bool) -> Option<f64> {
    let durations = durations(report, side)?;
    let shares = values(report, side, "%", share)?;
    if durations.len() != shares.len() {
        return None;
    }
    let seconds: f64 = durations
        .iter()
        .zip(shares)
        .map(|(seconds, percent)| seconds * percent / 100.0)
        .sum();
    measured(seconds)
}

/// Bytes per second at which the DRAM would be at its peak.
pub(super) fn dram_ceiling(report: &VariantReport, side: Side) -> Option<f64> {
    let busy = busy(report, side, is(Role::DramThroughput))?;
    measured(dram_bytes(report, side)? / busy)
}

/// The counter of how busy the tensor pipe is, if one is measured.
pub(super) fn tensor_counter(report: &VariantReport) -> Option<&str> {
    report
        .comparisons
        .iter()
        .map(|comparison| comparison.counter.as_str())
        .find(|counter| is_tensor_share(counter))
}

/// FLOP per second at which the tensor pipe would be at its peak, at the clock it ran at: what it
/// was counted to do. `None` where that was not counted: FLOP of other pipes must not raise it.
pub(super) fn tensor_ceiling(report: &VariantReport, side: Side) -> Option<f64> {
    let busy = busy(report, side, is_tensor_share)?;
    let mut counted = 0.0;
    let mut any = false;
    for comparison in &report.comparisons {
        if is_tensor_flop(&comparison.counter) {
            counted += side.of(comparison)?.value;
            any = true;
        }
    }
    let declared = report.work.flop? as f64;
    let flop = if any { counted.min(declared) } else { declared };
    measured(flop / busy)
}

/// The verdict that a reader needs to see first.
pub(in crate::report) fn worst(report: &VariantReport) -> Option<Verdict> {
    [
        Verdict::Regressed,
        Verdict::NotMeasured,
        Verdict::Inconclusive,
        Verdict::Improved,
        Verdict::Pass,
    ]
    .into_iter()
    .find(|verdict| {
        report
            .comparisons
            .iter()
            .any(|comparison| comparison.verdict == Some(*verdict))
    })
}

/// The class that colours a verdict. The word stands beside it.
pub(super) fn class(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Regressed) => "bad",
        Some(Verdict::NotMeasured | Verdict::Inconclusive) => "open",
        Some(Verdict::Improved) => "good",
        Some(Verdict::Pass) | None => "plain",
    }
}
