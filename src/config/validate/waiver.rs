//! `[[waiver]]`.

use std::ops::Range;
use std::sync::Arc;

use super::file::File;
use crate::config::error::{ConfigError, suggest, suggest_variant};
use crate::config::model::{Metric, Suite, Variant, Waiver};
use crate::metric::Level;

impl File<'_> {
    pub(super) fn waiver(
        &self,
        index: usize,
        waiver: &Waiver,
        suites: &[Suite],
    ) -> Result<(), ConfigError> {
        let wrong = |key: &str, message: String| {
            let span = self.span_in_waiver(index, key);
            ConfigError::new(self.path, self.source, span, message)
        };
        for (key, text) in [("reason", &waiver.reason), ("who", &waiver.who)] {
            if text.trim().is_empty() || text.chars().any(char::is_control) {
                return Err(wrong(
                    key,
                    format!(
                        "the waiver of {} needs a `{key}`, in one line",
                        waiver.variant
                    ),
                ));
            }
        }
        let variants: Vec<&Arc<Variant>> =
            suites.iter().flat_map(|suite| &suite.variants).collect();
        let Some(variant) = variants.iter().find(|variant| variant.id == waiver.variant) else {
            let names: Vec<String> = variants.iter().map(|v| v.id.to_string()).collect();
            let message = format!("there is no variant `{}` for a waiver", waiver.variant);
            let help = match waiver.variant.variant.contains(['*', '?', '[']) {
                true => "no pattern: a `[[waiver]]` for each variant".to_owned(),
                false => suggest_variant(&waiver.variant.to_string(), &names),
            };
            return Err(wrong("variant", message).help(help));
        };
        let metrics = variant.metrics.iter().chain(&variant.static_metrics);
        let metrics: Vec<&Metric> = metrics.collect();
        let Some(metric) = metrics.iter().find(|metric| metric.alias == waiver.metric) else {
            let names: Vec<&str> = metrics.iter().map(|one| one.alias.as_str()).collect();
            let message = format!(
                "{} has no metric `{}` to waive",
                waiver.variant, waiver.metric
            );
            let help = suggest(&waiver.metric, &names);
            return Err(wrong("metric", message).help(help));
        };
        let mut named = metrics.iter().filter(|one| one.alias == waiver.metric);
        if named.all(|one| one.level == Level::Record) {
            let message = format!(
                "`{}` is only recorded: there is nothing to waive",
                waiver.metric
            );
            return Err(wrong("metric", message));
        }
        if waiver.up_to.is_none() && metric.tolerance.is_zero() {
            let message = format!(
                "a waiver covers twice the tolerance, and that of `{}` is 0: it needs an `up_to`",
                waiver.metric
            );
            let help = "write how much worse it may be, in the metric's unit, as in `up_to = \"8\"`, or as a share of the value, `up_to = \"20 %\"`";
            return Err(wrong("up_to", message).help(help));
        }
        Ok(())
    }

    /// The position of a key of a waiver, or of the waiver.
    fn span_in_waiver(&self, index: usize, key: &str) -> Option<Range<usize>> {
        let waiver = self.tree.get("waiver")?.get_ref().get(index)?;
        let value = waiver.get_ref().get(key);
        Some(value.unwrap_or(waiver).span())
    }
}
