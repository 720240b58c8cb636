//! What the roofline and the ladder need of a variant, read from its comparisons by the name of the
//! counter: an alias may be anything.

use crate::judge::{Comparison, Summary, VariantReport};
use crate::metric::DURATION_COUNTER;
use crate::verdict::Verdict;

const DRAM_READ: &str = "dram__bytes_read.sum";
const DRAM_WRITTEN: &str = "dram__bytes_write.sum";
/// Share of the DRAM's peak, in percent.
pub(super) const DRAM_SHARE: &str = "dram__throughput.avg.pct_of_peak_sustained_elapsed";
/// Counters of how busy the tensor pipe is, in percent of its peak.
const TENSOR_SHARE_PREFIX: &str = "sm__pipe_tensor_";
const TENSOR_SHARE_SUFFIX: &str = ".avg.pct_of_peak_sustained_elapsed";
/// Counters of the FLOP that the tensor pipe did.
const TENSOR_FLOP_PREFIX: &str = "sm__ops_path_tensor_op_";

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
        .filter(|comparison| comparison.metric == *alias)
        .map(|comparison| {
            let value = side.of(comparison)?.value;
            (comparison.unit.as_deref() == Some(unit) && value.is_finite()).then_some(value)
        })
        .collect()
}

/// Seconds of one launch of each kernel, added up.
pub(super) fn duration(report: &VariantReport, side: Side) -> Option<f64> {
    let seconds = durations(report, side)?.iter().sum::<f64>();
    (seconds > 0.0).then_some(seconds)
}

fn durations(report: &VariantReport, side: Side) -> Option<Vec<f64>> {
    let values = values(report, side, "ns", |counter| counter == DURATION_COUNTER)?;
    Some(values.iter().map(|value| value * 1e-9).collect())
}

/// Bytes that one launch of each kernel moved to and from DRAM.
pub(super) fn dram_bytes(report: &VariantReport, side: Side) -> Option<f64> {
    let sum = |name: &str| {
        let values = values(report, side, "byte", |counter| counter == name)?;
        Some(values.iter().sum::<f64>())
    };
    let bytes = sum(DRAM_READ)? + sum(DRAM_WRITTEN)?;
    (bytes > 0.0).then_some(bytes)
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
    (seconds > 0.0).then_some(seconds)
}

/// Bytes per second at which the DRAM would be at its peak.
pub(super) fn dram_ceiling(report: &VariantReport, side: Side) -> Option<f64> {
    let busy = busy(report, side, |counter| counter == DRAM_SHARE)?;
    Some(dram_bytes(report, side)? / busy)
}

/// The counter of how busy the tensor pipe is, if one is measured.
pub(super) fn tensor_counter(report: &VariantReport) -> Option<&str> {
    report
        .comparisons
        .iter()
        .map(|comparison| comparison.counter.as_str())
        .find(|counter| is_tensor_share(counter))
}

fn is_tensor_share(counter: &str) -> bool {
    counter.starts_with(TENSOR_SHARE_PREFIX) && counter.ends_with(TENSOR_SHARE_SUFFIX)
}

/// FLOP per second at which the tensor pipe would be at its peak, at the clock it ran at: what it
/// was counted to do. `None` where that was not counted: FLOP of other pipes must not raise it.
pub(super) fn tensor_ceiling(report: &VariantReport, side: Side) -> Option<f64> {
    let busy = busy(report, side, is_tensor_share)?;
    let mut counted = 0.0;
    let mut any = false;
    for comparison in &report.comparisons {
        let is_flop = comparison.counter.starts_with(TENSOR_FLOP_PREFIX)
            && comparison.counter.ends_with(".sum");
        if is_flop {
            counted += side.of(comparison)?.value;
            any = true;
        }
    }
    let declared = report.work.flop? as f64;
    let flop = if any { counted.min(declared) } else { declared };
    (flop > 0.0).then_some(flop / busy)
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
