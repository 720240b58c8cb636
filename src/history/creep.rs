//! Which recorded effects add up to a loss.

use std::collections::BTreeSet;

use crate::baseline::{Anchor, Effect, EffectEntry};
use crate::config::{Metric, Variant};
use crate::metric::{Direction, Level, Role, Tolerance};
use crate::verdict::{Change, Step, creep};

/// Recorded changes of one metric of one kernel that together made it worse.
#[derive(Clone, Debug)]
pub struct RecordedCreep {
    /// The kernel.
    pub kernel: String,
    /// The metric.
    pub metric: String,
    /// How many of the latest recorded changes.
    pub changes: usize,
    /// The commit that the first of them was measured at, or the time.
    pub since: String,
    /// What they add up to, as it is shown: worse by so much.
    pub total: Change,
    /// Half-width of the band around it, in the terms of the total.
    pub band: f64,
    /// The budget of the metric.
    pub budget: Option<Tolerance>,
}

/// The creeps that the recorded effects since the anchor show, of metrics with a budget and of the
/// duration. A metric that should stay equal has no direction to creep in.
pub fn recorded_creeps(
    variant: &Variant,
    anchor: Option<&Anchor>,
    effects: &[EffectEntry],
) -> Vec<RecordedCreep> {
    // All times are of one form, in UTC.
    let counts = |one: &&EffectEntry| anchor.is_none_or(|anchor| one.time > anchor.time);
    let entries: Vec<&EffectEntry> = effects.iter().filter(counts).collect();
    let Some(last) = entries.last() else {
        return Vec::new();
    };
    let watched = |alias: &str| {
        variant.metrics.iter().find(|metric| {
            let judged = metric.level != Level::Record && !metric.exact;
            let timed = metric.role() == Some(Role::Duration);
            let directed = metric.direction != Direction::Equal;
            metric.alias == alias && directed && judged && (timed || metric.budget.is_some())
        })
    };
    let series = last
        .effects
        .iter()
        .filter_map(|effect| Some((effect, watched(&effect.metric)?)));
    let series: Vec<(&Effect, &Metric)> = series.collect();
    let names: BTreeSet<_> = series
        .iter()
        .map(|(effect, _)| (&effect.kernel, &effect.metric))
        .collect();
    let found = series.iter();
    found
        .filter_map(|(effect, metric)| of_series(effect, metric, &entries, names.len()))
        .collect()
}

fn of_series(
    last: &Effect,
    metric: &Metric,
    entries: &[&EffectEntry],
    series: usize,
) -> Option<RecordedCreep> {
    let sign = match metric.direction {
        Direction::Higher => -1.0,
        Direction::Lower | Direction::Equal => 1.0,
    };
    let known = entries.iter().filter_map(|entry| {
        let mut effects = entry.effects.iter();
        let same = effects.find(|one| {
            (&one.kernel, &one.metric, one.relative) == (&last.kernel, &last.metric, last.relative)
        })?;
        let step = Step {
            worse: sign * same.effect,
            rounds: same.rounds,
            variance: same.variance,
        };
        Some((*entry, step))
    });
    let (entries, steps): (Vec<&EffectEntry>, Vec<Step>) = known.unzip();
    let found = creep(&steps, series)?;
    let first = entries[entries.len() - found.changes];
    let shown = |size: f64| {
        if last.relative {
            size.exp_m1() * 100.0
        } else {
            size
        }
    };
    let total = shown(sign * found.total);
    Some(RecordedCreep {
        kernel: last.kernel.clone(),
        metric: last.metric.clone(),
        changes: found.changes,
        since: first.commit.clone().unwrap_or_else(|| first.time.clone()),
        total: match last.relative {
            true => Change::RelativePercent(total),
            false => Change::Absolute(total),
        },
        band: shown(found.band),
        budget: metric.budget,
    })
}
