//! `[metric.NAME]`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::default_metrics::default_counter;
use super::file::File;
use super::static_metric::of_compiler;
use crate::config::error::{ConfigError, suggest, suggest_variant};
use crate::config::model::{Counts, Metric, Suite, Toolchain, Variant};
use crate::config::raw::RawMetric;
use crate::config::tolerance::RawTolerances;
use crate::metric::{self, Direction, Level, Role, Tolerances};
use crate::terms::Phase;
use ncu_report::{Chip, Existence};

impl File<'_> {
    /// Validates every metric; there is at least one.
    pub(super) fn metrics(
        &self,
        raw: &BTreeMap<String, RawMetric>,
        toolchain: &Toolchain,
    ) -> Result<Vec<Metric>, ConfigError> {
        let metrics = raw.iter();
        let metrics = metrics
            .map(|(alias, metric)| self.metric(alias, metric, toolchain))
            .collect::<Result<Vec<_>, _>>()?;
        if metrics.is_empty() {
            let arch = &toolchain.arch;
            return Err(match toolchain.chip {
                _ if !self.tree.contains_key("suite") => self
                    .error(&[], "no suite is configured, so nothing is gated")
                    .help("`sparsek-gate init` writes a first configuration, `--force` in the place of this one"),
                None if !self.tree.contains_key("metric") => self
                    .error(
                        &["toolchain", "arch"],
                        format!("the chip of `{arch}` is not known, so it has no metrics by default"),
                    )
                    .help(format!("{}; or state `[metric.NAME]` with its `counter`", suggest("", &metric::known_archs()))),
                _ => self
                    .error(&["metric"], "no metric is defined, so nothing is gated")
                    .help("add `[metric.duration]`, or see `sparsek-gate init --all`"),
            });
        }
        if let Some(metric) = excused_without_duration(&metrics) {
            return Err(self.error(
                &["metric", &metric.alias, "unless_faster"],
                format!(
                    "`unless_faster` needs a metric of the counter {}, to decide what is faster",
                    Role::Duration
                ),
            ));
        }
        Ok(metrics)
    }

    /// Removes each metric from the variants that its `variants` does not name.
    pub(super) fn narrow(
        &self,
        metrics: &BTreeMap<String, RawMetric>,
        suites: &mut [Suite],
    ) -> Result<(), ConfigError> {
        let ids: Vec<String> = suites
            .iter()
            .flat_map(|suite| suite.variants.iter().map(|variant| variant.id.to_string()))
            .collect();
        for (alias, raw) in metrics {
            let Some(named) = &raw.variants else {
                continue;
            };
            let at = ["metric", alias, "variants"];
            if let Some(unknown) = named.iter().find(|name| !ids.contains(name)) {
                return Err(self
                    .error(&at, format!("no variant is called `{unknown}`"))
                    .help(suggest_variant(unknown, &ids)));
            }
            for variant in suites.iter_mut().flat_map(|suite| &mut suite.variants) {
                let id = variant.id.to_string();
                if named.contains(&id) || !variant.metrics.iter().any(|one| one.alias == *alias) {
                    continue;
                }
                let variant = Arc::make_mut(variant);
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

    /// Refuses two gated metrics of a variant that read one counter: only the narrower could decide.
    pub(super) fn refuse_twins(&self, suites: &[Suite]) -> Result<(), ConfigError> {
        for variant in suites.iter().flat_map(|suite| &suite.variants) {
            let mut read = BTreeMap::new();
            let mut gated = variant.metrics.iter();
            let twin = gated.find_map(|one| {
                let is_gated = one.level != Level::Record;
                let other = is_gated.then(|| read.insert(&one.counter, &one.alias))??;
                Some((one, other))
            });
            if let Some((Metric { alias, counter, .. }, other)) = twin {
                let message = format!("`{other}` and `{alias}` read one counter, {counter}");
                return Err(self.error(&["metric", alias], message).help(
                    "remove one of them; `on` has tolerances of single suites and variants",
                ));
            }
        }
        Ok(())
    }

    /// Applies the tolerances of single suites and variants.
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
        for (alias, raw) in metrics {
            // A suite's name sorts before its variants' names, so the narrower name is applied last.
            for (name, own) in &raw.on {
                let at = ["metric", alias, "on", name];
                if !names.contains(name) {
                    return Err(self
                        .error(&at, format!("no suite and no variant is called `{name}`"))
                        .help(suggest_variant(name, &names)));
                }
                if raw.exact || raw.level == Some(Level::Record) {
                    let why = if raw.exact {
                        "exact = true"
                    } else {
                        "level = \"record\""
                    };
                    let message = format!("`on` has no effect with `{why}` of `{alias}`");
                    return Err(self.error(&at, message).help("remove one of them"));
                }
                let own = self.stated(&at, own)?;
                let of_name = |variant: &&mut Arc<Variant>| {
                    variant.id.suite == *name || variant.id.to_string() == *name
                };
                let variants = suites.iter_mut().flat_map(|suite| &mut suite.variants);
                let metrics = variants
                    .filter(of_name)
                    .flat_map(|v| &mut Arc::make_mut(v).metrics);
                for metric in metrics.filter(|metric| metric.alias == *alias) {
                    metric.tolerance = Tolerances {
                        stored: own.stored.or(metric.tolerance.stored),
                        against: own.against.or(metric.tolerance.against),
                    };
                }
            }
        }
        Ok(())
    }

    fn metric(
        &self,
        alias: &str,
        raw: &RawMetric,
        toolchain: &Toolchain,
    ) -> Result<Metric, ConfigError> {
        self.name(&["metric", alias], alias)?;
        let counter = self.counter(alias, raw, toolchain)?;
        let level = raw.level.unwrap_or(Level::Deny);
        let phase = self.phase(alias, raw)?;
        let can_be_exact =
            Role::of(&counter) != Some(Role::Duration) && metric::bounds(&counter).is_none();
        if raw.exact && !can_be_exact {
            let message =
                "`exact` is for counts: a time or a percentage differs from launch to launch";
            return Err(self.error(&["metric", alias, "exact"], message));
        }
        let counts = self.counts(alias, raw, level)?;
        let direction = self.direction(alias, raw, level, Role::of(&counter))?;
        let tolerance = self.tolerances(alias, raw, level)?;
        if phase == Phase::Counting && !raw.exact && level != Level::Record {
            return Err(self
                .error(
                    &["metric", alias, "phase"],
                    "the counting phase is one process, which does not show how much a value varies, so the metric cannot be judged",
                )
                .help(match can_be_exact {
                    true => "set `exact = true`, `level = \"record\"`, or `phase = \"timing\"`",
                    false => "set `level = \"record\"`, or `phase = \"timing\"`",
                }));
        }
        self.limits(&["metric", alias], level, (raw.min, raw.max))?;
        if raw.unless_faster && Role::of(&counter) == Some(Role::Duration) {
            return Err(self.error(
                &["metric", alias, "unless_faster"],
                "`unless_faster` has no meaning for the duration itself",
            ));
        }
        Ok(Metric {
            direction,
            tolerance,
            phase,
            exact: raw.exact,
            counts,
            min: raw.min,
            max: raw.max,
            level,
            unless_faster: raw.unless_faster,
            ..Metric::shown(alias, &counter)
        })
    }

    /// The counter that is named, or that the short name stands for. It exists on the chip.
    fn counter(
        &self,
        alias: &str,
        raw: &RawMetric,
        toolchain: &Toolchain,
    ) -> Result<String, ConfigError> {
        let at = ["metric", alias, "counter"];
        let Some(counter) = &raw.counter else {
            return self.counter_of_short_name(alias, toolchain);
        };
        let Some(chip) = toolchain.chip else {
            return Ok(counter.clone());
        };
        let lacked = |chip| ncu_report::exists(chip, counter) == Existence::Unknown;
        if !lacked(chip) {
            return Ok(counter.clone());
        }
        let (name, arch) = (chip.name(), &toolchain.arch);
        let message = format!("the chip `{name}` of `{arch}` has no counter `{counter}`");
        let error = self.error(&at, message);
        if metric::alias(counter).is_some() {
            let help =
                format!("a built-in name has its counter: `[metric.{counter}]` without `counter`");
            return Err(error.help(help));
        }
        if let Some(same) = Role::of(counter).and_then(|role| role.on(Some(chip))) {
            return Err(error.help(format!("did you mean `{same}`?")));
        }
        if !Chip::all().all(lacked) {
            let help = "other chips have it: correct `toolchain.arch`, or remove the metric";
            return Err(error.help(help));
        }
        // One of nvprof, which had other names, is like another quantity.
        let is_of_ncu = counter.contains("__");
        Err(
            match is_of_ncu
                .then(|| ncu_report::nearest(chip, counter))
                .flatten()
            {
                Some(name) => error.help(format!("did you mean `{name}`?")),
                None => error
                    .help("`ncu --query-metrics` lists all; docs/counters.md has built-in names"),
            },
        )
    }

    fn counter_of_short_name(
        &self,
        name: &str,
        toolchain: &Toolchain,
    ) -> Result<String, ConfigError> {
        let arch = &toolchain.arch;
        let Some(alias) = metric::alias(name) else {
            let of_types = toolchain.chip.map(metric::tensor_flop).unwrap_or_default();
            if let Some((_, counter)) = of_types.iter().find(|(known, _)| known == name) {
                return Ok(counter.clone());
            }
            if name == metric::TENSOR_FLOP
                || Chip::all()
                    .flat_map(metric::tensor_flop)
                    .any(|(known, _)| known == name)
            {
                return Err(self.error(
                    &["metric", name],
                    format!("`{name}` cannot be measured on `{arch}`: no counter of its tensor cores is known for that; use `tensor_flop`, which stands for all types of the chip, or `tensor_instructions`"),
                ));
            }
            let aliases = metric::ALIASES.iter().map(|alias| alias.name);
            let known: Vec<&str> = aliases
                .chain(of_types.iter().map(|(name, _)| &**name))
                .collect();
            let by_default = default_counter(name).map(|it| format!("by default it is `{it}`"));
            let help = of_compiler(name).or(by_default);
            return Err(self
                .error(
                    &["metric", name],
                    format!("`{name}` is not a built-in name on `{arch}`, so the metric needs a `counter`"),
                )
                .help(help.unwrap_or_else(|| suggest(name, &known))));
        };
        let counter = alias.role.on(toolchain.chip).map(str::to_owned);
        counter.ok_or_else(|| {
            self.error(
                &["metric", name],
                format!("`{name}` cannot be measured on `{arch}`: {}", alias.lacking),
            )
        })
    }

    fn direction(
        &self,
        alias: &str,
        raw: &RawMetric,
        level: Level,
        role: Option<Role>,
    ) -> Result<Direction, ConfigError> {
        let built_in = metric::ALIASES.iter().find(|it| Some(it.role) == role);
        let better = built_in.map_or(Direction::Equal, |it| it.better);
        match raw.direction {
            Some(stated) if stated != better && ![stated, better].contains(&Direction::Equal) => {
                let message = format!("`{alias}` is better where it is {better}, not {stated}");
                Err(self.error(&["metric", alias, "direction"], message))
            }
            Some(direction) => Ok(direction),
            None if raw.exact || level == Level::Record => Ok(Direction::Equal),
            None => Err(self
                .error(
                    &["metric", alias],
                    format!("`{alias}` is gated, so it needs a `direction`"),
                )
                .help(of_compiler(alias).unwrap_or_else(|| match better {
                    Direction::Equal => "`higher` is better, `lower` is better, or `equal`".to_owned(),
                    better => format!("add `direction = \"{better}\"`; your own `[metric]` tables replace all default ones"),
                }))),
        }
    }

    fn tolerances(
        &self,
        alias: &str,
        raw: &RawMetric,
        level: Level,
    ) -> Result<Tolerances, ConfigError> {
        let at = ["metric", alias, "tolerance"];
        match &raw.tolerance {
            Some(_) if raw.exact => Err(self.error(
                &at,
                "an exact metric has no tolerance: a difference means different work",
            )),
            Some(stated) => self.stated(&at, stated),
            None if raw.exact || level == Level::Record => Ok(Tolerances::default()),
            None => Err(self
                .error(
                    &["metric", alias],
                    format!("`{alias}` is gated, so it needs a `tolerance`"),
                )
                .help("such as `\"4 %\"`, or `{ stored = \"4 %\", against = \"0.5 %\" }`")),
        }
    }

    fn stated(&self, at: &[&str], raw: &RawTolerances) -> Result<Tolerances, ConfigError> {
        match raw {
            RawTolerances::Both(one) => Ok(Tolerances::both(one.0)),
            RawTolerances::Each(each) if each.stored.is_none() && each.against.is_none() => {
                Err(self.error(at, "it has none of `stored` and `against`"))
            }
            RawTolerances::Each(each) => Ok(Tolerances {
                stored: each.stored.map(|one| one.0),
                against: each.against.map(|one| one.0),
            }),
        }
    }

    /// Hard limits, of a metric of the gate or of a static metric.
    pub(super) fn limits(
        &self,
        at: &[&str; 2],
        level: Level,
        (min, max): (Option<f64>, Option<f64>),
    ) -> Result<(), ConfigError> {
        let [table, name] = *at;
        for (key, value) in [("min", min), ("max", max)] {
            let at = [table, name, key];
            if value.is_some_and(|value| !value.is_finite()) {
                return Err(self.error(&at, format!("`{key}` must be a finite number")));
            }
            if value.is_some() && level == Level::Record {
                return Err(self.error(
                    &at,
                    format!("`{key}` has no effect: `{name}` is only recorded; set its `level`"),
                ));
            }
        }
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            return Err(self.error(&[table, name, "min"], "`min` is larger than `max`"));
        }
        Ok(())
    }

    fn phase(&self, alias: &str, raw: &RawMetric) -> Result<Phase, ConfigError> {
        match (raw.phase, raw.exact) {
            (Some(Phase::Timing), true) => Err(self.error(
                &["metric", alias, "phase"],
                "an exact metric is counted: its phase must be `counting`",
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
                return Err(self.error(&at, "`counts` is either `flop` or `bytes_written`"));
            }
        };
        if !(factor.is_finite() && factor > 0.0) {
            return Err(self.error(&at, "`counts` takes a number above 0"));
        }
        if !raw.exact || level == Level::Record {
            return Err(self
                .error(
                    &at,
                    "a metric that counts the declared work must be `exact`, and not only recorded",
                )
                .help("write `exact = true`, and no `level = \"record\"`"));
        }
        Ok(Some(counts))
    }
}

/// The metric with `unless_faster`, where none of these measures the duration.
pub(super) fn excused_without_duration(metrics: &[Metric]) -> Option<&Metric> {
    let timed = metrics
        .iter()
        .any(|metric| metric.role() == Some(Role::Duration));
    let mut excused = metrics.iter().filter(|metric| metric.unless_faster);
    if timed { None } else { excused.next() }
}
