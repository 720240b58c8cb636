//! `[metric.NAME]`.

use std::collections::BTreeMap;

use super::File;
use crate::config::error::{ConfigError, suggest};
use crate::config::raw::{Counter, RawMetric, RawTolerance};
use crate::config::{Counts, Metric, Plausible, Suite, Toolchain, Variant};
use crate::metric::{self, Direction, Level, Role, Tolerance};
use crate::terms::Phase;
use ncu_report::Existence;

impl File<'_> {
    /// Takes each metric from the variants that its `variants` do not name.
    pub(super) fn narrow(
        &self,
        metrics: &BTreeMap<String, RawMetric>,
        suites: &mut [Suite],
    ) -> Result<(), ConfigError> {
        let ids: Vec<String> = suites
            .iter()
            .flat_map(|suite| suite.variants.iter().map(|variant| variant.id.to_string()))
            .collect();
        let known: Vec<&str> = ids.iter().map(String::as_str).collect();
        for (alias, raw) in metrics {
            let Some(named) = &raw.variants else {
                continue;
            };
            let at = ["metric", alias, "variants"];
            if let Some(unknown) = named.iter().find(|name| !ids.contains(name)) {
                return Err(self
                    .error(&at, format!("no variant is called `{unknown}`"))
                    .help(Some(suggest(unknown, &known))));
            }
            for variant in suites.iter_mut().flat_map(|suite| &mut suite.variants) {
                let id = variant.id.to_string();
                if named.contains(&id) || !variant.metrics.iter().any(|one| one.alias == *alias) {
                    continue;
                }
                variant.metrics.retain(|metric| metric.alias != *alias);
                if !variant.metrics.iter().any(|one| one.level != Level::Record) {
                    return Err(self.error(&at, format!("without `{alias}`, `{id}` gates nothing")));
                }
                if let Some(key) = variant.work.uncounted(&variant.metrics) {
                    return Err(self.error(
                        &at,
                        format!("without `{alias}`, nothing counts the declared `{key}` of `{id}`"),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Gives variants the tolerances that are theirs alone.
    pub(super) fn tolerate(
        &self,
        metrics: &BTreeMap<String, RawMetric>,
        suites: &mut [Suite],
    ) -> Result<(), ConfigError> {
        let names: Vec<String> = suites
            .iter()
            .flat_map(|suite| {
                let variants = suite.variants.iter().map(|variant| variant.id.to_string());
                std::iter::once(suite.name.clone()).chain(variants)
            })
            .collect();
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        for (alias, raw) in metrics {
            // A suite's name is the beginning of its variants': they come later, and count.
            for (name, own) in &raw.on {
                let at = ["metric", alias, "on", name];
                if !names.contains(name) {
                    return Err(self
                        .error(&at, format!("no suite and no variant is called `{name}`"))
                        .help(Some(suggest(name, &known))));
                }
                if raw.exact || raw.level == Some(Level::Record) {
                    return Err(self.error(&at, format!("`{alias}` is not judged by a tolerance")));
                }
                if own.tolerance.is_none() && own.against.is_none() {
                    return Err(self.error(&at, "it holds neither `tolerance` nor `against`"));
                }
                let at = |key| ["metric", alias, "on", name, key];
                let read = |key, raw: &Option<RawTolerance>| {
                    let raw = raw.as_ref();
                    raw.map(|raw| self.tolerance(&at(key), raw)).transpose()
                };
                let tolerance = read("tolerance", &own.tolerance)?;
                let against = read("against", &own.against)?;
                let of_name = |variant: &&mut Variant| {
                    variant.id.suite == *name || variant.id.to_string() == *name
                };
                let inherited = if raw.against.is_some() {
                    None
                } else {
                    tolerance
                };
                let variants = suites.iter_mut().flat_map(|suite| &mut suite.variants);
                let metrics = variants.filter(of_name).flat_map(|v| &mut v.metrics);
                for metric in metrics.filter(|metric| metric.alias == *alias) {
                    metric.tolerance = tolerance.unwrap_or(metric.tolerance);
                    metric.against = against.or(inherited).unwrap_or(metric.against);
                }
            }
        }
        Ok(())
    }

    pub(super) fn metric(
        &self,
        alias: &str,
        raw: &RawMetric,
        toolchain: &Toolchain,
    ) -> Result<Metric, ConfigError> {
        let at = ["metric", alias];
        self.name(&at, alias)?;
        let (chip, chip_name) = (toolchain.chip, toolchain.chip_name);
        let counter = match &raw.counter {
            Some(Counter::Same(counter)) => counter.clone(),
            Some(Counter::PerChip(table)) => table.get(chip_name).cloned().ok_or_else(|| {
                self.error(
                    &["metric", alias, "counter"],
                    format!("no counter is named for the chip `{chip_name}`"),
                )
                .help(Some(format!("add `{chip_name} = \"...\"`")))
            })?,
            None => metric::builtin_alias(chip, alias)
                .map(str::to_owned)
                .ok_or_else(|| {
                    self.error(
                        &at,
                        format!(
                            "`{alias}` is no built-in alias on `{}`, so it needs a `counter`",
                            toolchain.arch
                        ),
                    )
                    .help(Some(suggest(
                        alias,
                        &metric::aliases(chip)
                            .iter()
                            .map(|alias| alias.name)
                            .collect::<Vec<_>>(),
                    )))
                })?,
        };
        if let Existence::Unknown { nearest } = ncu_report::exists(chip, &counter) {
            return Err(self
                .error(
                    &["metric", alias, "counter"],
                    format!("the chip `{chip_name}` has no counter `{counter}`"),
                )
                .help(nearest.map(|name| format!("did you mean `{name}`?"))));
        }
        let level = raw.level.unwrap_or(Level::Deny);
        let phase = self.phase(alias, raw)?;
        let direction = match (raw.direction, level) {
            (Some(direction), _) => direction,
            (None, _) if raw.exact => Direction::Equal,
            (None, Level::Record) => Direction::Equal,
            (None, _) => {
                return Err(self
                    .error(
                        &at,
                        format!("`{alias}` is gated, so it needs a `direction`"),
                    )
                    .help(Some(
                        "`higher` is better, `lower` is better, or `equal`".into(),
                    )));
            }
        };
        let tolerance = match (&raw.tolerance, level) {
            (Some(_), _) if raw.exact => {
                return Err(self.error(
                    &["metric", alias, "tolerance"],
                    "an exact metric has no tolerance: any difference is other work",
                ));
            }
            (Some(tolerance), _) => self.tolerance(&["metric", alias, "tolerance"], tolerance)?,
            (None, _) if raw.exact => Tolerance::Absolute(0.0),
            (None, Level::Record) => Tolerance::Absolute(0.0),
            (None, _) => {
                return Err(self
                    .error(
                        &at,
                        format!("`{alias}` is gated, so it needs a `tolerance`"),
                    )
                    .help(Some(
                        "such as `{ relative_percent = 2.0 }` or `{ absolute = 1.0 }`".into(),
                    )));
            }
        };
        let against = match &raw.against {
            None => tolerance,
            Some(_) if raw.exact => {
                return Err(self.error(
                    &["metric", alias, "against"],
                    "an exact metric has no tolerance: any difference is other work",
                ));
            }
            Some(against) => self.tolerance(&["metric", alias, "against"], against)?,
        };
        let counts = self.counts(alias, raw, level)?;
        let plausible = Plausible {
            min: raw.plausible.min,
            max: raw.plausible.max,
            gain_percent: raw.plausible.gain_percent,
        };
        let believed = [plausible.min, plausible.max, plausible.gain_percent];
        if believed.iter().flatten().any(|value| !value.is_finite()) {
            return Err(self.error(
                &["metric", alias, "plausible"],
                "`plausible` takes finite numbers",
            ));
        }
        let excludes_everything = plausible
            .min
            .zip(plausible.max)
            .is_some_and(|(min, max)| min > max);
        if excludes_everything || plausible.gain_percent.is_some_and(|gain| gain < 0.0) {
            return Err(self.error(
                &["metric", alias, "plausible"],
                "nothing could be within these bounds of `plausible`",
            ));
        }
        if phase == Phase::Counting && !raw.exact && level != Level::Record {
            return Err(self
                .error(
                    &["metric", alias, "phase"],
                    "one process of the counting phase does not tell how much a value varies, so it cannot be judged",
                )
                .help(Some(
                    "set `exact = true`, `level = \"record\"`, or `phase = \"timing\"`".into(),
                )));
        }
        for (key, value) in [("min", raw.min), ("max", raw.max)] {
            if value.is_some_and(|value| !value.is_finite()) {
                return Err(self.error(
                    &["metric", alias, key],
                    format!("`{key}` is a finite number"),
                ));
            }
            if value.is_some() && level == Level::Record {
                return Err(self.error(
                    &["metric", alias, key],
                    format!(
                        "`{key}` would hold nothing: a metric of level `record` is never judged"
                    ),
                ));
            }
        }
        if let (Some(min), Some(max)) = (raw.min, raw.max)
            && min > max
        {
            return Err(self.error(&["metric", alias, "min"], "`min` is larger than `max`"));
        }
        if raw.unless_faster && Role::of(&counter) == Some(Role::Duration) {
            return Err(self.error(
                &["metric", alias, "unless_faster"],
                "`unless_faster` on the duration itself would excuse nothing",
            ));
        }
        Ok(Metric {
            alias: alias.to_owned(),
            counter,
            direction,
            tolerance,
            against,
            phase,
            exact: raw.exact,
            counts,
            plausible,
            min: raw.min,
            max: raw.max,
            level,
            unless_faster: raw.unless_faster,
            never_zero: false,
        })
    }

    pub(super) fn tolerance(
        &self,
        at: &[&str],
        raw: &RawTolerance,
    ) -> Result<Tolerance, ConfigError> {
        let (value, tolerance) = match (raw.relative_percent, raw.absolute) {
            (Some(percent), None) => (percent, Tolerance::RelativePercent(percent)),
            (None, Some(value)) => (value, Tolerance::Absolute(value)),
            _ => {
                return Err(self.error(
                    at,
                    "a tolerance is `relative_percent` or `absolute`, one of the two",
                ));
            }
        };
        if !(value.is_finite() && value >= 0.0) {
            return Err(self.error(at, "a tolerance is a finite number, 0 or more"));
        }
        if matches!(tolerance, Tolerance::RelativePercent(percent) if percent >= 100.0) {
            return Err(self.error(
                at,
                "a tolerance is below 100 %: nothing falls by more, so that nothing could fail",
            ));
        }
        Ok(tolerance)
    }

    fn phase(&self, alias: &str, raw: &RawMetric) -> Result<Phase, ConfigError> {
        match (raw.phase, raw.exact) {
            (Some(Phase::Timing), true) => Err(self.error(
                &["metric", alias, "phase"],
                "an exact metric is counted: its phase is `counting`",
            )),
            (phase, true) => Ok(phase.unwrap_or(Phase::Counting)),
            (phase, false) => Ok(phase.unwrap_or(Phase::Timing)),
        }
    }

    fn counts(
        &self,
        alias: &str,
        raw: &RawMetric,
        level: Level,
    ) -> Result<Option<Counts>, ConfigError> {
        let Some(counts) = &raw.counts else {
            return Ok(None);
        };
        let at = ["metric", alias, "counts"];
        let (factor, counts) = match (counts.flop, counts.bytes_written) {
            (Some(factor), None) => (factor, Counts::Flop(factor)),
            (None, Some(factor)) => (factor, Counts::BytesWritten(factor)),
            _ => {
                return Err(
                    self.error(&at, "`counts` is `flop` or `bytes_written`, one of the two")
                );
            }
        };
        if !(factor.is_finite() && factor > 0.0) {
            return Err(self.error(&at, "one count stands for a number above 0"));
        }
        if !raw.exact || level == Level::Record {
            return Err(self.error(
                &at,
                "what counts the declared work must be `exact`, and not only recorded",
            ));
        }
        Ok(Some(counts))
    }
}
