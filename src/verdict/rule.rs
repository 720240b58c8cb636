//! The rule of the verdict on one metric of one kernel.
//!
//! Let `d` be how much worse the current median is, in the metric's direction, and `u` its
//! uncertainty, three standard errors of the difference of two medians. The metric regressed if
//! `d - u` exceeds the tolerance, passes if `d + u` does not, and is inconclusive otherwise; it
//! improved if `-d - u` exceeds the tolerance. The spread comes from the samples of both sides.

use serde::{Deserialize, Serialize};

use super::measured::why_not_measured;
use super::statistics::Summary;
use crate::config::{Direction, Level, Metric, Tolerance};
use crate::profile::{KernelProfile, MetricIdentity, Series};

/// Standard errors that make a difference certain enough to be named.
const CERTAINTY: f64 = 3.0;

/// What is said of one metric of one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Not worse by more than the tolerance.
    Pass,
    /// Better by more than the tolerance.
    Improved,
    /// Worse by more than the tolerance.
    Regressed,
    /// The samples do not tell.
    Inconclusive,
    /// There is no value to judge.
    NotMeasured,
}

/// A signed difference, current minus baseline. Relative and absolute never mix.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Percent of the baseline's median.
    RelativePercent(f64),
    /// In the counter's unit; percentage points for a counter in `%`.
    Absolute(f64),
}

/// One metric of one kernel, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The kernel's function name.
    pub kernel: String,
    /// Blocks in x, y, z.
    pub grid: [u64; 3],
    /// Threads a block in x, y, z.
    pub block: [u64; 3],
    /// The metric's alias.
    pub metric: String,
    /// The counter behind it.
    pub counter: String,
    /// Its unit.
    pub unit: Option<String>,
    /// Which way it gets better.
    pub direction: Direction,
    /// Whether a regression fails the gate.
    pub level: Level,
    /// How much worse is still no regression.
    pub tolerance: Tolerance,
    /// The locked samples.
    pub baseline: Option<Summary>,
    /// The current samples.
    pub current: Option<Summary>,
    /// Current against baseline.
    pub change: Option<Change>,
    /// Half-width of the band around the change, in the terms of the change.
    pub uncertainty: Option<f64>,
    /// The judgement; a metric that is only recorded has none.
    pub verdict: Option<Verdict>,
    /// Why.
    pub why: String,
}

/// Which profile lacks a value that could be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    Baseline,
    Current,
    /// Each has one, in a unit of its own.
    Unit,
}

pub(super) fn judge(
    metric: &Metric,
    (locked_definition, definition): (Option<&MetricIdentity>, Option<&MetricIdentity>),
    locked: &KernelProfile,
    now: &KernelProfile,
) -> (Comparison, Option<Gap>) {
    let summary =
        |kernel: &KernelProfile| kernel.metrics.get(&metric.alias).and_then(Series::summary);
    let mut comparison = Comparison {
        kernel: now.name.clone(),
        grid: now.grid,
        block: now.block,
        metric: metric.alias.clone(),
        counter: metric.counter.clone(),
        unit: definition.and_then(|definition| definition.unit.clone()),
        direction: metric.direction,
        level: metric.level,
        tolerance: metric.tolerance,
        baseline: summary(locked),
        current: summary(now),
        change: None,
        uncertainty: None,
        verdict: None,
        why: String::new(),
    };
    let gap = match (
        why_not_measured(metric, definition, now),
        why_not_measured(metric, locked_definition, locked),
    ) {
        (Some(why), _) => Some((Gap::Current, why)),
        (None, Some(why)) => Some((Gap::Baseline, format!("in the baseline: {why}"))),
        (None, None) => {
            let unit = |definition: Option<&MetricIdentity>| {
                definition.and_then(|d| d.unit.clone()).unwrap_or_default()
            };
            let (was, is) = (unit(locked_definition), unit(definition));
            (was != is).then(|| (Gap::Unit, format!("the unit was `{was}`, is `{is}`")))
        }
    };
    let (baseline, current) = match (gap, comparison.baseline, comparison.current) {
        (None, Some(baseline), Some(current)) => (baseline, current),
        (gap, _, _) => {
            let (side, why) = gap.unwrap_or((Gap::Current, "there is no sample".to_owned()));
            comparison.verdict = (metric.level != Level::Record).then_some(Verdict::NotMeasured);
            comparison.why = why;
            return (comparison, Some(side));
        }
    };
    let per_unit = match metric.tolerance {
        Tolerance::RelativePercent(_) if baseline.median != 0.0 => {
            Some(100.0 / baseline.median.abs())
        }
        _ => None,
    };
    let difference = current.median - baseline.median;
    comparison.change = Some(match per_unit {
        Some(factor) => Change::RelativePercent(difference * factor),
        None => Change::Absolute(difference),
    });
    let uncertainty = uncertainty(&baseline, &current);
    comparison.uncertainty = uncertainty.map(|value| value * per_unit.unwrap_or(1.0));
    if metric.level == Level::Record {
        comparison.why = "recorded, not judged".to_owned();
        return (comparison, None);
    }
    let allowed = match (metric.tolerance, per_unit) {
        (Tolerance::RelativePercent(percent), Some(factor)) => percent / factor,
        // A share of nothing is nothing.
        (Tolerance::RelativePercent(_), None) => 0.0,
        (Tolerance::Absolute(value), _) => value,
    };
    let worse = match metric.direction {
        Direction::Higher => -difference,
        Direction::Lower => difference,
        Direction::Equal => difference.abs(),
    };
    let (verdict, why) = decide(worse, allowed, uncertainty, metric.direction);
    comparison.verdict = Some(verdict);
    comparison.why = why;
    (comparison, None)
}

fn decide(
    worse: f64,
    allowed: f64,
    uncertainty: Option<f64>,
    direction: Direction,
) -> (Verdict, String) {
    let Some(uncertainty) = uncertainty else {
        let why = "fewer than three launches on both sides: nothing tells how much the values vary";
        return (Verdict::Inconclusive, why.to_owned());
    };
    if worse - uncertainty > allowed {
        return (
            Verdict::Regressed,
            "worse by more than the tolerance and the noise".to_owned(),
        );
    }
    if direction != Direction::Equal && -worse - uncertainty > allowed {
        return (
            Verdict::Improved,
            "better by more than the tolerance and the noise".to_owned(),
        );
    }
    // Written so that a comparison with NaN never passes.
    if worse + uncertainty <= allowed {
        return (Verdict::Pass, "within the tolerance".to_owned());
    }
    (
        Verdict::Inconclusive,
        "the noise reaches across the tolerance: measure more launches".to_owned(),
    )
}

/// Half-width of the band around the difference of two medians, in the samples' unit. A side with
/// too few samples to show a spread borrows the other's; `None` where neither shows one.
pub(super) fn uncertainty(baseline: &Summary, current: &Summary) -> Option<f64> {
    let baseline_sigma = baseline.sigma.or(current.sigma)?;
    let current_sigma = current.sigma.or(baseline.sigma)?;
    let errors = (
        baseline.median_error(baseline_sigma),
        current.median_error(current_sigma),
    );
    Some(CERTAINTY * errors.0.hypot(errors.1))
}
