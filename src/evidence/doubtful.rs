//! Rules of the configuration that can hardly be meant.

use std::collections::BTreeSet;

use crate::config::{Config, Counts, Metric, Recipe, Variant, Work};
use crate::finding::{Code, Finding};
use crate::metric::{Level, Role, Tolerance, bounds};

/// The smallest tolerance of a duration that a comparison can show, in percent.
const LEAST_PERCENT: f64 = 0.1;
/// A tick of the clock that times kernels, in ns.
const TICK_NS: f64 = 32.0;

/// Warnings about tolerances that no comparison can show, limits that look like fractions, and metrics
/// without a duration.
pub fn doubtful(config: &Config) -> Vec<Finding> {
    let metrics = config.variants().flat_map(|variant| &variant.metrics);
    let gated = metrics.filter(|metric| metric.level != Level::Record);
    let found = gated.flat_map(|metric| {
        let both = [metric.tolerance.stored, metric.tolerance.against];
        let both = both.into_iter().flatten();
        both.filter_map(|tolerance| unlikely(metric, tolerance))
    });
    let variants = config.variants();
    let limited = variants.flat_map(|it| it.metrics.iter().chain(&it.static_metrics));
    let untimed = config.is_untimed.then(|| {
        let mut metrics = config.variants().flat_map(|variant| &variant.metrics);
        let (message, next) = match metrics.any(|metric| metric.alias == "duration") {
            true => (
                "the time is not judged: `duration` reads another counter",
                "remove `counter` from `[metric.duration]`, and give that counter another name",
            ),
            false => (
                "`duration` is not judged: your own `[metric]` replaces the default ones",
                "add `[metric.duration]`, with `level = \"record\"` if it is not to count",
            ),
        };
        (message.to_owned(), next.to_owned())
    });
    let found = found.chain(limited.filter_map(fraction)).chain(untimed);
    let found = found.chain(config.variants().flat_map(of_compiled_code));
    let counted = config.variants().flat_map(|variant| &variant.metrics);
    let uncompared = counted.filter_map(|metric| {
        let (key, is_stated): (_, fn(&Work) -> bool) = match metric.counts? {
            Counts::Flop(_) => ("flop", |work| work.flop.is_some()),
            Counts::BytesWritten(_) => ("bytes_written", |work| work.bytes_written.is_some()),
        };
        let mut variants = config.variants();
        (!variants.any(|variant| is_stated(&variant.work))).then(|| {
            let alias = &metric.alias;
            let message = format!(
                "`counts` of `{alias}` is compared with nothing: no suite states that work"
            );
            (
                message,
                format!("write `work = {{ {key} = ... }}` in the suite, or remove `counts`"),
            )
        })
    });
    let flags = config
        .variants()
        .filter_map(|variant| match &variant.recipe {
            Recipe::Nvcc { flags, .. } => Some(flags),
            Recipe::Command { .. } => None,
        });
    let mut flags = flags.flatten().chain(&config.toolchain.flags);
    let debug = flags.find(|flag| ["-G", "--device-debug"].contains(&flag.as_str()));
    let debug = debug.map(|flag| {
        let message = format!("the flag `{flag}` switches the optimization of device code off");
        (
            message,
            "remove it: `-lineinfo` keeps the lines of the source".to_owned(),
        )
    });
    let found = found.chain(uncompared).chain(debug);
    let found: BTreeSet<_> = found.collect();
    let finding = |(message, next)| Finding::of_project(Code::RuleDoubtful, message, next);
    found.into_iter().map(finding).collect()
}

/// Tolerances of measured metrics that are those of compiled code by name, and have another one there.
fn of_compiled_code(variant: &Variant) -> Vec<(String, String)> {
    let metrics = variant.metrics.iter();
    let gated = metrics.filter(|metric| metric.level != Level::Record && !metric.exact);
    let other = gated.filter(|metric| {
        let mut code = variant.static_metrics.iter();
        code.any(|it| it.alias == metric.alias && it.tolerance != metric.tolerance)
    });
    let words = other.map(|Metric { alias, .. }| {
        (
            format!("the tolerance of `[metric.{alias}]` is for what a run measures alone"),
            format!("state it in `[static.{alias}]` too, if it is for compiled code"),
        )
    });
    words.collect()
}

/// A limit of a percentage that looks like a fraction.
fn fraction(metric: &Metric) -> Option<(String, String)> {
    let alias = &metric.alias;
    let limits = [metric.min, metric.max].into_iter().flatten();
    let is_percentage = alias == "occupancy" || bounds(&metric.counter).is_some();
    let highest = if is_percentage { 100.0 } else { f64::INFINITY };
    if let Some(limit) = limits.clone().find(|limit| *limit > highest) {
        let message = format!("the limit {limit} of `{alias}` is never reached: it is in percent");
        return Some((message, "write at most 100".to_owned()));
    }
    let mut limits = limits;
    let limit = limits.find(|limit| *limit > 0.0 && *limit < 1.0)?;
    let message = format!("the limit {limit} of `{alias}` is {limit} %: it is in percent");
    let next = format!("write {} if a share is meant", percent(limit));
    is_percentage.then_some((message, next))
}

/// A fraction in percent.
fn percent(fraction: f64) -> f64 {
    (fraction * 1e4).round() / 1e2
}

fn unlikely(metric: &Metric, tolerance: Tolerance) -> Option<(String, String)> {
    if let (Tolerance::Absolute(points), Some((_, highest))) = (tolerance, bounds(&metric.counter))
        && points >= highest
    {
        let message = format!(
            "the tolerance of `{}` never fails: {points} points of at most {highest}",
            metric.alias
        );
        return Some((message, "write fewer points".to_owned()));
    }
    if metric.role() != Some(Role::Duration) || metric.exact {
        return None;
    }
    let alias = &metric.alias;
    match tolerance {
        Tolerance::RelativePercent(share) if share > 0.0 && share < LEAST_PERCENT => Some((
            format!("the tolerance {share} % of `{alias}` is less than any comparison shows"),
            format!("write `{} %` if that is meant", percent(share)),
        )),
        Tolerance::Absolute(ns) if ns > 0.0 && ns < TICK_NS => Some((
            format!("the tolerance {ns} ns of `{alias}` is less than a tick of {TICK_NS} ns"),
            format!(
                "write `\"{} %\"` if percent are meant",
                [ns, percent(ns)][usize::from(ns < LEAST_PERCENT)]
            ),
        )),
        _ => None,
    }
}
