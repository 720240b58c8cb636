//! `[suite.NAME]`.

use std::sync::Arc;

use super::default_metrics::default_counter;
use super::file::{Common, File};
use super::metric::excused_without_duration;
use super::static_metric::of_compiler;
use crate::binary::STATIC_METRICS;
use crate::config::error::{ConfigError, suggest};
use crate::config::model::{Metric, Suite, Work};
use crate::config::raw::RawSuite;
use crate::metric::{ALIASES, Level, Role};
use crate::terms::nearest;

impl File<'_> {
    pub(super) fn suite(
        &self,
        name: &str,
        raw: &RawSuite,
        common: &Common<'_>,
    ) -> Result<Suite, ConfigError> {
        let at = ["suite", name];
        self.name(&at, name)?;
        let metrics = self.metrics_of_suite(name, raw, common.metrics)?;
        self.work(&["suite", name, "work"], &raw.work, &metrics)?;
        self.suite_gates(name, &metrics, common.metrics)?;
        if raw.variant.is_empty() {
            return Err(self
                .error(&at, format!("the suite `{name}` has no variants"))
                .help(format!("add `[suite.{name}.variant.NAME]`")));
        }
        // A wrong setting is an error even if every variant overrides it.
        let variants = raw.variant.iter();
        Ok(Suite {
            name: name.to_owned(),
            description: raw.description.clone().unwrap_or_default(),
            variants: variants
                .map(|(variant, raw)| {
                    let variant = self.variant([name, variant], raw, &metrics, common);
                    variant.map(Arc::new)
                })
                .collect::<Result<_, _>>()?,
        })
    }

    /// The metrics that the suite names, or all.
    fn metrics_of_suite(
        &self,
        name: &str,
        raw: &RawSuite,
        metrics: &[Metric],
    ) -> Result<Vec<Metric>, ConfigError> {
        let at = ["suite", name, "metrics"];
        let Some(aliases) = &raw.metrics else {
            return Ok(metrics.to_vec());
        };
        if aliases.is_empty() {
            return Err(self.error(&at, "a suite without metrics gates nothing"));
        }
        let mut rest = aliases.iter().enumerate();
        if let Some((_, twice)) = rest.find(|(count, one)| aliases[..*count].contains(one)) {
            return Err(self.error(&at, format!("`{twice}` is named twice")));
        }
        let named = |alias: &String| {
            let mut all = metrics.iter();
            let found = all.find(|metric| metric.alias == *alias).cloned();
            found.ok_or_else(|| {
                let known: Vec<&str> = metrics.iter().map(|metric| metric.alias.as_str()).collect();
                let built_in: Vec<&str> = ALIASES.iter().map(|alias| alias.name).collect();
                let of_counter = ALIASES.iter().find(|one| one.role.counter() == alias);
                let of_code: Vec<&str> = STATIC_METRICS.iter().map(|one| one.name).collect();
                let add = || match nearest(alias, &[&known[..], &built_in, &of_code].concat()) {
                    Some(near) if of_code.contains(&near) && !known.contains(&near) => format!(
                        "did you mean `{near}`? {}",
                        of_compiler(near).unwrap_or_default()
                    ),
                    Some(near) if near != alias => format!("did you mean `{near}`?"),
                    _ if ["*", "all"].contains(&alias.as_str()) => "leave `metrics` out: all is the default".to_owned(),
                    _ if of_counter.is_some() => format!("it is the counter of `{}`", of_counter.map_or("", |one| one.name)),
                    _ if alias.contains('.') => "it is a counter: a metric has a name of your own, `[metric.NAME]`, and this as its `counter`".to_owned(),
                    _ => format!("{}; or add `[metric.{alias}]`, and a table for each default metric that stays: the default ones are those of a file without `[metric]`", suggest("", &known)),
                };
                self.error(&at, format!("no metric is called `{alias}`"))
                    .help(of_compiler(alias).unwrap_or_else(add))
            })
        };
        aliases.iter().map(named).collect()
    }

    /// Whether any metric of a suite is judged, and `unless_faster` can be decided.
    fn suite_gates(
        &self,
        name: &str,
        metrics: &[Metric],
        all: &[Metric],
    ) -> Result<(), ConfigError> {
        if metrics.iter().all(|metric| metric.level == Level::Record) {
            let message = format!(
                "every metric of the suite `{name}` is only recorded, so the suite gates nothing"
            );
            return Err(self
                .error(&["suite", name], message)
                .help("add `[metric.duration]`, which is gated where no `[metric]` is stated; or give one of them the level `deny` or `warn`"));
        }
        if let Some(metric) = excused_without_duration(metrics) {
            let mut all = all.iter();
            let timed = all.find(|one| one.role() == Some(Role::Duration));
            let help = timed.map_or_else(String::new, |one| {
                format!("add `{}` to `metrics`", one.alias)
            });
            let error = self.error(
                &["suite", name, "metrics"],
                format!(
                    "`unless_faster` of `{}` needs a metric of the counter {} in the suite",
                    metric.alias,
                    Role::Duration
                ),
            );
            return Err(error.help(help));
        }
        Ok(())
    }

    /// The declared work, if these metrics count it.
    pub(super) fn work(
        &self,
        at: &[&str],
        work: &Work,
        metrics: &[Metric],
    ) -> Result<Work, ConfigError> {
        let Some(key) = work.uncounted(metrics) else {
            return Ok(*work);
        };
        let (name, each) = if key == "flop" {
            ("fma", 2)
        } else {
            ("stored_sectors", 32)
        };
        let counter = default_counter(name).unwrap_or_default();
        let such_as =
            format!("{name} = {{ {counter}, exact = true, counts = {{ {key} = {each} }} }}");
        Err(self
            .error(
                &[at, &[key]].concat(),
                format!("nothing counts the declared `{key}`"),
            )
            .help(format!(
                "give the suite a metric that counts it, such as `{such_as}` below `[metric]`, or remove `{key}`; docs/counters.md has others"
            )))
    }
}
