//! Two stored profiles side by side, paired as the judge pairs them. Nothing is judged.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::comparable::measured_where_known;
use crate::judge::compare::metric::Pair;
use crate::judge::compare::mode::Mode;
use crate::judge::pair::kernels::pair_kernels;
use crate::profile::{KernelProfile, MetricIdentity, Profile, Series};
use crate::statistics::median;
use crate::verdict::Change;

/// A metric of two kernels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoredMetric {
    /// The name that a profile gives it, or the counter.
    pub metric: String,
    /// The counter.
    pub counter: String,
    /// The unit, where both sides state the same.
    pub unit: Option<String>,
    /// Median of the launches of the first side.
    pub before: Option<f64>,
    /// Median of the launches of the second side.
    pub after: Option<f64>,
    /// Second less first: points of a metric in percent, else percent, or the unit where the first is
    /// zero.
    pub change: Option<Change>,
    /// Whether the launches of one side reach into those of the other.
    pub within_spread: bool,
}

/// Two kernels side by side.
#[derive(Clone, Debug, Serialize)]
pub struct StoredKernel {
    /// The kernel of the first side.
    pub before: String,
    /// The kernel of the second side.
    pub after: String,
    /// The metrics of either side, what moved most first.
    pub metrics: Vec<StoredMetric>,
}

/// Two profiles side by side.
#[derive(Clone, Debug, Serialize)]
pub struct Stored {
    /// In which conditions the sides differ, where both state them.
    pub warnings: Vec<String>,
    /// The kernels of both.
    pub kernels: Vec<StoredKernel>,
    /// Kernels of the first side alone.
    pub only_before: Vec<String>,
    /// Kernels of the second side alone.
    pub only_after: Vec<String>,
}

impl Stored {
    /// Puts two profiles side by side.
    pub fn of(before: &Profile, after: &Profile) -> Stored {
        let pairing = pair_kernels(before, after, Mode::Programs, false);
        let all = |kernels: &[&KernelProfile]| kernels.iter().map(|one| named(one)).collect();
        Stored {
            // What one side does not state is no difference.
            warnings: measured_where_known(before, after),
            kernels: pairing
                .pairs()
                .map(|pair| StoredKernel::of(pair, before, after))
                .collect(),
            only_before: all(&pairing.gone),
            only_after: all(&pairing.new),
        }
    }
}

impl StoredKernel {
    fn of(pair: Pair<'_>, before: &Profile, after: &Profile) -> StoredKernel {
        let (was, is) = (
            by_counter(before, pair.reference),
            by_counter(after, pair.current),
        );
        let counters: BTreeSet<&str> = was.keys().chain(is.keys()).copied().collect();
        let metrics = counters.into_iter();
        let mut metrics: Vec<(f64, StoredMetric)> = metrics
            .map(|counter| StoredMetric::of(counter, was.get(counter), is.get(counter)))
            .collect();
        metrics.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        StoredKernel {
            before: named(pair.reference),
            after: named(pair.current),
            metrics: metrics.into_iter().map(|(_, metric)| metric).collect(),
        }
    }
}

/// A metric of one side: what a profile calls it, what it is, and its samples.
type OneSide<'a> = (&'a str, &'a MetricIdentity, &'a Series);

impl StoredMetric {
    /// The metric, and how far it moved, to sort by: points, or percent of the mean of both.
    fn of(
        counter: &str,
        before: Option<&OneSide<'_>>,
        after: Option<&OneSide<'_>>,
    ) -> (f64, StoredMetric) {
        let unit_of = |side: Option<&OneSide<'_>>| side.and_then(|(_, one, _)| one.unit.clone());
        let unit = match (unit_of(before), unit_of(after)) {
            (was, is) if before.is_some() && after.is_some() => {
                was.filter(|it| Some(it) == is.as_ref())
            }
            (was, is) => was.or(is),
        };
        let (was, is) = (before.and_then(range), after.and_then(range));
        let mut metric = StoredMetric {
            metric: before
                .or(after)
                .map_or(counter, |(alias, _, _)| alias)
                .to_owned(),
            counter: counter.to_owned(),
            unit,
            before: was.map(|(value, _, _)| value),
            after: is.map(|(value, _, _)| value),
            change: None,
            within_spread: false,
        };
        let (Some((was, was_min, was_max)), Some((is, is_min, is_max))) = (was, is) else {
            return (0.0, metric);
        };
        let Some(unit) = &metric.unit else {
            return (0.0, metric);
        };
        let (step, percent) = (is - was, unit == "%");
        metric.change = Some(match percent || was == 0.0 {
            true => Change::Absolute(step),
            false => Change::RelativePercent(100.0 * step / was.abs()),
        });
        metric.within_spread = is_min <= was_max && was_min <= is_max;
        let size = match was.abs() + is.abs() {
            0.0 => 0.0,
            _ if percent => step.abs(),
            both => 200.0 * step.abs() / both,
        };
        (size, metric)
    }
}

fn by_counter<'a>(
    profile: &'a Profile,
    kernel: &'a KernelProfile,
) -> BTreeMap<&'a str, OneSide<'a>> {
    let metrics = kernel.metrics.iter();
    let known = metrics.filter_map(|(alias, series)| {
        let identity = profile.identity.metrics.get(alias)?;
        Some((
            identity.counter.as_str(),
            (alias.as_str(), identity, series),
        ))
    });
    known.collect()
}

/// Median, smallest and largest of the launches that have a value.
fn range((_, _, series): &OneSide<'_>) -> Option<(f64, f64, f64)> {
    let mut values: Vec<f64> = series.samples.iter().flatten().flatten().copied().collect();
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    Some((median(&values)?, *values.first()?, *values.last()?))
}

fn named(kernel: &KernelProfile) -> String {
    let name = kernel.demangled.as_deref().filter(|name| !name.is_empty());
    let (name, launches) = (name.unwrap_or(&kernel.name), kernel.metrics.values());
    let launches = launches.map(Series::launch_count).max().unwrap_or(0);
    if kernel.grid == [0, 0, 0] {
        return format!("{name}, compiled code without launches");
    }
    format!(
        "{name} grid {:?} block {:?}, {launches} launches",
        kernel.grid, kernel.block
    )
}
