//! `[static.NAME]`.

use std::collections::BTreeMap;

use super::file::File;
use crate::binary::{STATIC_METRICS, StaticMetric, StaticRule};
use crate::config::error::{ConfigError, suggest};
use crate::config::model::Metric;
use crate::config::raw::RawStatic;
use crate::metric::{Level, Tolerance, Tolerances, alias};
use crate::terms::Phase;

/// What to write for a static metric in the place of another one.
pub(super) fn of_compiler(name: &str) -> Option<String> {
    let mut names = STATIC_METRICS.iter().map(|metric| metric.name);
    let is_one = names.any(|one| one == name);
    is_one.then(|| format!("the compiler's output has it: `[static.{name}]`, for every variant"))
}

/// What to write for a metric that a run measures in the place of a static one.
fn measured(name: &str) -> Option<String> {
    alias(name).map(|_| format!("a run measures it, and no compiler: `[metric.{name}]`"))
}

impl File<'_> {
    /// The static metrics of a compiler's target, each as configured or by default.
    pub(super) fn static_metrics(
        &self,
        raw: &BTreeMap<String, RawStatic>,
        arch: &str,
    ) -> Result<Vec<Metric>, ConfigError> {
        let names: Vec<&str> = STATIC_METRICS.iter().map(|metric| metric.name).collect();
        if let Some(unknown) = raw.keys().find(|name| !names.contains(&name.as_str())) {
            return Err(self
                .error(
                    &["static", unknown],
                    format!("no static metric is called `{unknown}`"),
                )
                .help(measured(unknown).unwrap_or_else(|| suggest(unknown, &names))));
        }
        let unset = RawStatic::default();
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            STATIC_METRICS.iter().partition(|metric| metric.is_on(arch));
        if let Some(other) = elsewhere.iter().find(|it| raw.contains_key(it.name)) {
            return Err(self
                .error(
                    &["static", other.name],
                    format!("code for `{arch}` cannot have `{}`", other.name),
                )
                .help("remove the table: `tensor_instructions` counts those of every chip"));
        }
        here.into_iter()
            .map(|metric| {
                let raw = raw.get(metric.name).unwrap_or(&unset);
                self.static_metric(metric, raw)
            })
            .collect()
    }

    fn static_metric(&self, metric: &StaticMetric, raw: &RawStatic) -> Result<Metric, ConfigError> {
        let name = metric.name;
        let level = raw.level.unwrap_or(metric.level);
        let never_zero = metric.rule == StaticRule::NeverZero;
        if never_zero && raw.tolerance.is_some() {
            return Err(self.error(
                &["static", name, "tolerance"],
                "only a change to 0 is a regression of it, so it takes no tolerance",
            ));
        }
        if raw.tolerance.is_some() && raw.level.is_none() && level == Level::Record {
            let message =
                format!("`tolerance` has no effect: `{name}` is only recorded; set its `level`");
            return Err(self.error(&["static", name, "tolerance"], message));
        }
        let tolerance = raw.tolerance.map_or(Tolerance::Absolute(0.0), |one| one.0);
        self.limits(&["static", name], level, (raw.min, raw.max))?;
        Ok(Metric {
            direction: metric.direction,
            tolerance: Tolerances::both(tolerance),
            phase: Phase::Counting,
            min: raw.min,
            max: raw.max,
            level,
            unless_as_fast: raw.unless_as_fast.unwrap_or(metric.is_means()),
            // A level that somebody wrote counts as it is.
            rule: match raw.level {
                Some(_) if !never_zero => StaticRule::Worse,
                _ => metric.rule,
            },
            ..Metric::shown(name, &metric.counter())
        })
    }
}
