//! The anchor of a baseline: the values that all later locks are compared with. Each lock replaces
//! the baseline, and only the anchor shows how far all of them together went.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::config::{Metric, Variant};
use crate::hash::sha256_hex;
use crate::metric::{Level, Tolerance};
use crate::profile::{MetricIdentity, Profile};
use crate::terms::Tier;
use crate::verdict::Distance;

/// The values of the first lock, or of the last one with `--anchor`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Anchor {
    /// When its values were locked, RFC 3339, UTC.
    pub time: String,
    /// What they were measured under, and what must match for a comparison.
    pub conditions: Vec<String>,
    /// The counter and the unit of each metric.
    pub counters: BTreeMap<String, String>,
    /// The values of the judged metrics, by kernel and metric, in the counter's unit.
    pub values: BTreeMap<String, BTreeMap<String, f64>>,
}

/// A metric with a budget, against the anchor.
#[derive(Clone, Debug)]
pub struct Spent<'a> {
    /// The kernel, by a name that no other of its profile has.
    pub kernel: String,
    /// The metric.
    pub metric: &'a Metric,
    /// Its budget.
    pub budget: Tolerance,
    /// The anchor's value, in the counter's unit.
    pub anchor: f64,
    /// How the profile differs from it; `None` where the profile has no value that can be compared.
    pub distance: Option<Distance>,
}

impl Anchor {
    /// The judged values of a profile.
    pub fn of(variant: &Variant, profile: &Profile, time: &str) -> Anchor {
        let judged: Vec<&Metric> = variant
            .metrics
            .iter()
            .chain(&variant.static_metrics)
            .filter(|metric| metric.level != Level::Record && !metric.exact)
            .collect();
        let mut values = BTreeMap::new();
        for kernel in &profile.kernels {
            let known = judged.iter().filter_map(|metric| {
                let value = kernel.metrics.get(&metric.alias)?.value?;
                value.is_finite().then(|| (metric.alias.clone(), value))
            });
            let known: BTreeMap<String, f64> = known.collect();
            if !known.is_empty() {
                values.insert(profile.label(kernel).to_owned(), known);
            }
        }
        let aliases: Vec<&String> = values.values().flat_map(BTreeMap::keys).collect();
        let counters = profile.identity.metrics.iter();
        let counters = counters
            .filter(|(alias, _)| aliases.contains(alias))
            .map(|(alias, identity)| (alias.clone(), counter(identity)));
        Anchor {
            time: time.to_owned(),
            conditions: conditions(profile),
            counters: counters.collect(),
            values,
        }
    }

    /// sha256 of its JSON form, fields in the order of the type.
    pub fn sha256(&self) -> String {
        sha256_hex(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// Whether all of its values are numbers.
    pub(super) fn is_finite(&self) -> bool {
        let mut values = self.values.values().flat_map(BTreeMap::values);
        values.all(|value| value.is_finite())
    }

    /// Whether a profile was measured under the anchor's conditions.
    pub fn is_comparable(&self, profile: &Profile) -> bool {
        self.conditions == conditions(profile)
    }

    /// With the kernels and metrics that only the other anchor has.
    pub fn with_new(mut self, other: Anchor) -> Anchor {
        for (kernel, values) in other.values {
            let own = self.values.entry(kernel).or_default();
            for (alias, value) in values {
                own.entry(alias).or_insert(value);
            }
        }
        for (alias, counter) in other.counters {
            self.counters.entry(alias).or_insert(counter);
        }
        self
    }

    /// Whether another anchor has another time, other conditions or another value, or lacks a value of
    /// this one.
    pub fn is_moved(&self, other: &Anchor) -> bool {
        // Effects that were recorded before its time do not count for a creep.
        self.time != other.time || self.has_other_values(other)
    }

    /// Whether another anchor has other conditions or another value, or lacks a value of this one.
    pub fn has_other_values(&self, other: &Anchor) -> bool {
        let kept = |kernel: &String, alias: &String, value: f64| {
            let values = other.values.get(kernel);
            values.and_then(|values| values.get(alias)) == Some(&value)
        };
        let mut values = self.values.iter();
        self.conditions != other.conditions
            || self
                .counters
                .iter()
                .any(|(alias, counter)| other.counters.get(alias) != Some(counter))
            || values.any(|(kernel, values)| {
                let mut values = values.iter();
                values.any(|(alias, value)| !kept(kernel, alias, *value))
            })
    }

    /// Every metric with a budget of which the anchor has a value, against a profile that was
    /// measured under the anchor's conditions.
    pub fn spent<'a>(&self, variant: &'a Variant, profile: &Profile) -> Vec<Spent<'a>> {
        let mut found = Vec::new();
        if profile.identity.tier == Tier::Static {
            return found;
        }
        for (kernel, values) in &self.values {
            for metric in &variant.metrics {
                let (Some(budget), Some(anchor)) = (metric.budget, values.get(&metric.alias))
                else {
                    continue;
                };
                let value = self.value(profile, kernel, &metric.alias);
                let distance =
                    value.map(|value| Distance::of(metric.direction, budget, *anchor, value));
                found.push(Spent {
                    kernel: kernel.clone(),
                    metric,
                    budget,
                    anchor: *anchor,
                    distance,
                });
            }
        }
        found
    }

    /// A value of a profile by the anchor's counter.
    fn value(&self, profile: &Profile, kernel: &str, alias: &str) -> Option<f64> {
        let identity = profile.identity.metrics.get(alias)?;
        if self.counters.get(alias) != Some(&counter(identity)) {
            return None;
        }
        let mut kernels = profile.kernels.iter();
        let kernel = kernels.find(|one| profile.label(one) == kernel)?;
        kernel.metrics.get(alias)?.value
    }
}

fn counter(identity: &MetricIdentity) -> String {
    let unit = identity.unit.as_deref().unwrap_or_default();
    format!("{} {unit}", identity.counter).trim_end().to_owned()
}

/// What a profile was measured under, apart from its metrics.
fn conditions(profile: &Profile) -> Vec<String> {
    let identity = &profile.identity;
    let named = identity.conditions.named().into_iter();
    let named = named.filter_map(|(name, value)| Some(format!("{name} {}", value?)));
    let mut all = vec![format!("GPU {}", identity.gpu)];
    all.extend(named);
    all.extend(identity.compiler.iter().map(|it| format!("compiler {it}")));
    all.extend(identity.workload.iter().map(|it| format!("argument {it}")));
    all
}
