//! The row of the slowest launches, beside that of the metric itself.

use super::comparison_finding::comparison_finding;
use super::metric::{Comparison, Quantity};
use crate::finding::Finding;
use crate::metric::Tolerance;
use crate::verdict::{Change, Verdict};

/// Judges the slowest launches of a metric, where its tail is judged and it was measured. `every` is the
/// comparison of all launches.
pub(super) fn judge_tail(
    quantity: &Quantity<'_>,
    every: &Comparison,
) -> Option<(Comparison, Option<Finding>)> {
    let is_measured = !matches!(every.verdict, None | Some(Verdict::NotMeasured));
    let quantity = quantity.tail().filter(|_| is_measured)?;
    let (mut tail, gap) = quantity.judge();
    if follows(every, &tail) {
        tail.verdict = None;
        tail.open = false;
        tail.threshold = None;
        tail.why = format!("recorded: it follows `{}`, which regressed", every.metric);
    }
    let finding = comparison_finding(&quantity, gap, &mut tail, None);
    Some((tail, finding))
}

/// Whether all launches became slower, and the slowest ones by no more than that and their tolerance:
/// then the finding on all launches says it.
fn follows(every: &Comparison, tail: &Comparison) -> bool {
    let beyond = match (every.change, tail.change, tail.tolerance) {
        (
            Some(Change::RelativePercent(every)),
            Some(Change::RelativePercent(tail)),
            Tolerance::RelativePercent(tolerance),
        ) => (1.0 + tail / 100.0) / (1.0 + every / 100.0) - (1.0 + tolerance / 100.0),
        (
            Some(Change::Absolute(every)),
            Some(Change::Absolute(tail)),
            Tolerance::Absolute(tolerance),
        ) => tail - every - tolerance,
        _ => return false,
    };
    let fails = matches!(
        tail.verdict,
        Some(Verdict::Regressed | Verdict::Inconclusive)
    );
    fails && every.verdict == Some(Verdict::Regressed) && beyond <= 0.0
}
