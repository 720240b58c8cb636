//! Whether a kernel became faster, beside a metric that got worse.

use super::metric::{Case, Pair};
use super::mode::Mode;
use crate::metric::{Level, Role};
use crate::terms::Phase;
use crate::verdict::Verdict;

/// By how many percent the duration changed, where that is known and certain. Only a duration that could itself be judged shows a speed, of a kernel that does the same work.
pub(crate) fn speed_change<'a>(case: &Case<'a>, pair: Pair<'a>) -> Option<f64> {
    let metrics = &case.variant.metrics;
    let metric = metrics
        .iter()
        .find(|metric| metric.role() == Some(Role::Duration) && metric.phase == Phase::Timing)?;
    let other_work = metrics
        .iter()
        .filter(|metric| metric.exact && metric.level != Level::Record)
        .any(|metric| case.quantity(pair, metric).judge().0.verdict != Some(Verdict::Pass));
    if other_work {
        return None;
    }
    let (comparison, gap) = case.quantity(pair, metric).judge();
    let (None, Some(before), Some(now)) = (gap, comparison.reference, comparison.current) else {
        return None;
    };
    let is_certain = match case.mode {
        // GPUs of one model differ by more than the processes of one.
        Mode::Stored => comparison.verdict == Some(Verdict::Improved),
        Mode::Against | Mode::Programs | Mode::New => comparison.change?.size() > comparison.band?,
    };
    (is_certain && before.value > 0.0).then(|| 100.0 * (now.value / before.value - 1.0))
}
