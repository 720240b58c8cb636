//! Rules of the configuration that can hardly be meant.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::{Config, Metric};
use crate::finding::{Code, Finding};
use crate::metric::{Level, Role, Tolerance};

/// The smallest tolerance of a duration that a comparison can show, in percent.
const LEAST_PERCENT: f64 = 0.1;
/// A tick of the clock that times kernels, in ns.
const TICK_NS: f64 = 32.0;

/// Warnings about tolerances that no comparison can show, and about gated metrics that read one counter.
pub fn doubtful(config: &Config) -> Vec<Finding> {
    let mut found: BTreeSet<(String, String)> = BTreeSet::new();
    for variant in config.variants() {
        let mut of_counter: BTreeMap<&str, &str> = BTreeMap::new();
        let gated = variant
            .metrics
            .iter()
            .filter(|one| one.level != Level::Record);
        for metric in gated {
            let other = of_counter.insert(&metric.counter, &metric.alias);
            found.extend(other.map(|other| {
                let both = format!("`{other}` and `{}` read one counter", metric.alias);
                (both, "remove one of them".to_owned())
            }));
            let tolerances = [metric.tolerance.stored, metric.tolerance.against];
            found.extend(
                tolerances
                    .into_iter()
                    .flatten()
                    .filter_map(|one| unlikely(metric, one)),
            );
        }
    }
    let finding = |(message, next)| Finding::of_project(Code::RuleDoubtful, message, next);
    found.into_iter().map(finding).collect()
}

fn unlikely(metric: &Metric, tolerance: Tolerance) -> Option<(String, String)> {
    if metric.role() != Some(Role::Duration) || metric.exact {
        return None;
    }
    let alias = &metric.alias;
    match tolerance {
        Tolerance::RelativePercent(percent) if percent > 0.0 && percent < LEAST_PERCENT => Some((
            format!("the tolerance {percent} % of `{alias}` is less than any comparison shows"),
            format!("write `{} %` if that is meant", percent * 100.0),
        )),
        Tolerance::Absolute(ns) if ns > 0.0 && ns < TICK_NS => Some((
            format!(
                "the tolerance {ns} ns of `{alias}` is less than a tick of the clock, {TICK_NS} ns"
            ),
            format!("write `\"{ns} %\"` if percent are meant"),
        )),
        _ => None,
    }
}
