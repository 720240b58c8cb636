//! Rules of the configuration that can hardly be meant.

use std::collections::BTreeSet;

use crate::config::{Config, Metric};
use crate::finding::{Code, Finding};
use crate::metric::{Level, Role, Tolerance};

/// The smallest tolerance of a duration that a comparison can show, in percent.
const LEAST_PERCENT: f64 = 0.1;
/// A tick of the clock that times kernels, in ns.
const TICK_NS: f64 = 32.0;

/// Warnings about tolerances that no comparison can show.
pub fn doubtful(config: &Config) -> Vec<Finding> {
    let metrics = config.variants().flat_map(|variant| &variant.metrics);
    let gated = metrics.filter(|metric| metric.level != Level::Record);
    let tolerances = gated.flat_map(|metric| {
        let both = [metric.tolerance.stored, metric.tolerance.against];
        both.into_iter().flatten().map(move |one| (metric, one))
    });
    let found: BTreeSet<_> = tolerances
        .filter_map(|(metric, tolerance)| unlikely(metric, tolerance))
        .collect();
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
