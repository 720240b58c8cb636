//! Raw configuration to validated configuration; every complaint points at its line.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, suggest};
use super::raw::{
    Counter, Define, ExpiryDate, RawConfig, RawMetric, RawProfile, RawSuite, RawTolerance,
    RawVariant, RawWaiver,
};
use super::{
    CacheControl, ClockControl, Config, Counts, Direction, GraphProfiling, Level, Metric, Pass,
    Plausible, ProfileSettings, Recipe, ReplayMode, Suite, Tolerance, Toolchain, Variant,
    VariantId, Waiver, Work,
};
use crate::metric::{self, Existence};

const DEFAULT_LAUNCHES: u32 = 20;
const DEFAULT_PROCESSES: u32 = 4;
const DEFAULT_COUNTED_LAUNCHES: u32 = 2;
const DEFAULT_ROUNDS: u32 = 3;
const DEFAULT_MAX_ROUNDS: u32 = 5;
const DEFAULT_PROFILE_TIMEOUT_S: f64 = 300.0;
const DEFAULT_VERIFY_TIMEOUT_S: f64 = 120.0;
/// Longest time limit accepted, a day: beyond it the number is a slip.
const LONGEST_TIMEOUT_S: f64 = 86_400.0;
/// ncu's counter for the device's own time of a launch.
pub(crate) const DURATION_COUNTER: &str = "gpu__time_duration.sum";
/// Arguments of ncu that the tool sets itself, and that would break its reading if set twice.
const OWN_NCU_ARGS: &[&str] = &[
    "-o",
    "--export",
    "-f",
    "--force-overwrite",
    "--log-file",
    "--csv",
    "--page",
    "--print-units",
    "--import",
    "--metrics",
    "--launch-count",
    "-c",
    "--launch-skip",
    "-s",
    "--clock-control",
    "--cache-control",
    "--replay-mode",
    "--graph-profiling",
    "-k",
    "--kernel-name",
    "--quiet",
];

pub(super) fn validate(path: &Path, source: &str) -> Result<Config, ConfigError> {
    let raw: RawConfig =
        toml::from_str(source).map_err(|error| ConfigError::from_toml(path, source, &error))?;
    let tree =
        DeTable::parse(source).map_err(|error| ConfigError::from_toml(path, source, &error))?;
    let file = File {
        path,
        source,
        tree: tree.get_ref(),
    };
    file.config(raw)
}

/// A name becomes a folder or a file: it must not leave its place.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

struct File<'a> {
    path: &'a Path,
    source: &'a str,
    tree: &'a DeTable<'a>,
}

impl File<'_> {
    /// Where the value of a key path stands, or the nearest table around it that exists.
    fn span(&self, keys: &[&str]) -> Option<Range<usize>> {
        let mut table = self.tree;
        let mut found = None;
        for (depth, key) in keys.iter().enumerate() {
            let Some((name, value)) = table.iter().find(|(name, _)| name.get_ref() == key) else {
                break;
            };
            let last = depth + 1 == keys.len();
            match value.get_ref() {
                DeValue::Table(inner) => {
                    found = Some(name.span());
                    table = inner;
                }
                _ if last => found = Some(value.span()),
                _ => break,
            }
        }
        found
    }

    fn error(&self, keys: &[&str], message: impl Into<String>) -> ConfigError {
        ConfigError::new(self.path, self.source, self.span(keys), message.into())
    }

    fn config(&self, raw: RawConfig) -> Result<Config, ConfigError> {
        let root = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
            _ => PathBuf::from("."),
        };
        let root = std::path::absolute(&root).map_err(|error| {
            ConfigError::new(
                self.path,
                "",
                None,
                format!("cannot tell the current folder: {error}"),
            )
        })?;
        let folder = |value: &Option<String>, key: &str, default: &str| {
            let text = value.as_deref().unwrap_or(default);
            if text.is_empty() {
                return Err(self.error(&["paths", key], format!("`{key}` must name a folder")));
            }
            Ok(root.join(text))
        };
        let baselines = folder(&raw.paths.baselines, "baselines", "baselines")?;
        // The folder is replaced as a whole, so `kernels/..` must not get by either.
        let (within, whole) = (resolved(&baselines), resolved(&root));
        if within == whole || !within.starts_with(&whole) {
            return Err(self.error(
                &["paths", "baselines"],
                "`baselines` must be a folder below the configuration",
            ));
        }
        let work = folder(&raw.paths.work, "work", ".sparsek-gate")?;

        let arch = raw
            .toolchain
            .arch
            .clone()
            .unwrap_or_else(|| "sm_90a".to_owned());
        let Some((chip, chip_name)) = metric::chip_of_arch(&arch) else {
            return Err(self
                .error(
                    &["toolchain", "arch"],
                    format!("`{arch}` is not a GPU target"),
                )
                .help(Some(
                    "write it as nvcc does, such as `sm_90a` or `sm_80`".into(),
                )));
        };
        let toolchain = Toolchain {
            arch,
            chip,
            chip_name,
            nvcc: raw.toolchain.nvcc.map(|path| root.join(path)),
            ncu: raw.toolchain.ncu.map(|path| root.join(path)),
            flags: raw.toolchain.flags.unwrap_or_else(|| {
                ["-O3", "-std=c++17", "-lineinfo"]
                    .map(String::from)
                    .to_vec()
            }),
        };

        self.profile(&["profile"], &[&raw.profile])?;
        if let Some(seconds) = raw.verify.timeout_s {
            self.timeout(&["verify", "timeout_s"], seconds)?;
        }

        let mut metrics = Vec::new();
        for (alias, raw_metric) in &raw.metric {
            metrics.push(self.metric(alias, raw_metric, &toolchain)?);
        }
        if metrics.is_empty() {
            return Err(self
                .error(
                    &["metric"],
                    "no metric is defined, so nothing could be gated",
                )
                .help(Some(
                    "add `[metric.duration]`, or see `sparsek-gate init`".into(),
                )));
        }
        if !metrics
            .iter()
            .any(|metric| metric.counter == DURATION_COUNTER)
            && let Some(metric) = metrics.iter().find(|metric| metric.unless_faster)
        {
            return Err(self.error(
                    &["metric", &metric.alias, "unless_faster"],
                    format!("`unless_faster` needs a metric of the counter {DURATION_COUNTER} to tell what is faster"),
                ));
        }

        let mut suites = Vec::new();
        for (name, raw_suite) in &raw.suite {
            suites.push(self.suite(
                name,
                raw_suite,
                &raw.profile,
                raw.verify.timeout_s,
                &metrics,
            )?);
        }
        let waivers = raw
            .waiver
            .iter()
            .enumerate()
            .map(|(index, waiver)| self.waiver(index, waiver, &suites))
            .collect::<Result<_, _>>()?;
        Ok(Config {
            path: self.path.to_path_buf(),
            root,
            baselines,
            work,
            toolchain,
            device: raw.gpu.device.unwrap_or(0),
            suites,
            waivers,
        })
    }

    fn waiver(
        &self,
        index: usize,
        raw: &RawWaiver,
        suites: &[Suite],
    ) -> Result<Waiver, ConfigError> {
        let complain = |key: &str, message: String| {
            let span = self.span_in_waiver(index, key);
            ConfigError::new(self.path, self.source, span, message)
        };
        for (key, text) in [("reason", &raw.reason), ("who", &raw.who)] {
            if text.trim().is_empty() || text.chars().any(char::is_control) {
                return Err(complain(
                    key,
                    format!("the waiver of {} needs a `{key}`, in one line", raw.variant),
                ));
            }
        }
        let variants: Vec<&Variant> = suites.iter().flat_map(|suite| &suite.variants).collect();
        let Some(variant) = variants
            .iter()
            .find(|variant| variant.id.to_string() == raw.variant)
        else {
            let names: Vec<String> = variants.iter().map(|v| v.id.to_string()).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let message = format!("a waiver names no variant `{}`", raw.variant);
            let help = suggest(&raw.variant, &names);
            return Err(complain("variant", message).help(Some(help)));
        };
        let mut metrics = variant.metrics.iter();
        if !metrics.any(|metric| metric.alias == raw.metric) {
            let names: Vec<&str> = variant.metrics.iter().map(|m| m.alias.as_str()).collect();
            let message = format!("{} has no metric `{}` to waive", raw.variant, raw.metric);
            let help = suggest(&raw.metric, &names);
            return Err(complain("metric", message).help(Some(help)));
        }
        let text = match &raw.expires {
            ExpiryDate::Text(text) => text.clone(),
            ExpiryDate::Date(date) => date.to_string(),
        };
        let expires = text.parse().map_err(|_| {
            complain(
                "expires",
                format!("`expires` is a day such as 2026-12-31, not `{text}`"),
            )
        })?;
        Ok(Waiver {
            variant: variant.id.clone(),
            metric: raw.metric.clone(),
            reason: raw.reason.trim().to_owned(),
            who: raw.who.trim().to_owned(),
            expires,
        })
    }

    /// Where a key of one of the waivers stands, or the waiver.
    fn span_in_waiver(&self, index: usize, key: &str) -> Option<Range<usize>> {
        let (_, waivers) = self
            .tree
            .iter()
            .find(|(name, _)| name.get_ref() == "waiver")?;
        let DeValue::Array(waivers) = waivers.get_ref() else {
            return None;
        };
        let waiver = waivers.get(index)?;
        let DeValue::Table(table) = waiver.get_ref() else {
            return Some(waiver.span());
        };
        let value = table.iter().find(|(name, _)| name.get_ref() == key);
        Some(value.map_or_else(|| waiver.span(), |(_, value)| value.span()))
    }

    fn metric(
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
        if let Existence::Unknown { nearest } = metric::exists(chip, &counter) {
            return Err(self
                .error(
                    &["metric", alias, "counter"],
                    format!("the chip `{chip_name}` has no counter `{counter}`"),
                )
                .help(nearest.map(|name| format!("did you mean `{name}`?"))));
        }
        let level = raw.level.unwrap_or(Level::Deny);
        let pass = self.pass(alias, raw)?;
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
        if pass == Pass::Counting && !raw.exact && level != Level::Record {
            return Err(self
                .error(
                    &["metric", alias, "pass"],
                    "one process of the counting pass does not tell how much a value varies, so it cannot be judged",
                )
                .help(Some(
                    "set `exact = true`, `level = \"record\"`, or `pass = \"timing\"`".into(),
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
        if raw.unless_faster && counter == DURATION_COUNTER {
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
            pass,
            exact: raw.exact,
            counts,
            plausible,
            min: raw.min,
            max: raw.max,
            level,
            unless_faster: raw.unless_faster,
        })
    }

    fn tolerance(&self, at: &[&str], raw: &RawTolerance) -> Result<Tolerance, ConfigError> {
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
        Ok(tolerance)
    }

    fn pass(&self, alias: &str, raw: &RawMetric) -> Result<Pass, ConfigError> {
        match (raw.pass, raw.exact) {
            (Some(Pass::Timing), true) => Err(self.error(
                &["metric", alias, "pass"],
                "an exact metric is counted: its pass is `counting`",
            )),
            (pass, true) => Ok(pass.unwrap_or(Pass::Counting)),
            (pass, false) => Ok(pass.unwrap_or(Pass::Timing)),
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

    fn suite(
        &self,
        name: &str,
        raw: &RawSuite,
        profile: &RawProfile,
        verify_timeout_s: Option<f64>,
        metrics: &[Metric],
    ) -> Result<Suite, ConfigError> {
        let at = ["suite", name];
        self.name(&at, name)?;
        let metrics = match &raw.metrics {
            None => metrics.to_vec(),
            Some(aliases) => aliases
                .iter()
                .map(|alias| {
                    metrics
                        .iter()
                        .find(|metric| metric.alias == *alias)
                        .cloned()
                        .ok_or_else(|| {
                            let known: Vec<&str> =
                                metrics.iter().map(|metric| metric.alias.as_str()).collect();
                            self.error(
                                &["suite", name, "metrics"],
                                format!("no metric is called `{alias}`"),
                            )
                            .help(Some(suggest(alias, &known)))
                        })
                })
                .collect::<Result<_, _>>()?,
        };
        if metrics.is_empty() {
            return Err(self.error(
                &["suite", name, "metrics"],
                "a suite without metrics gates nothing",
            ));
        }
        let work = Work {
            flop: raw.work.flop,
            bytes_written: raw.work.bytes_written,
        };
        let counted = |what: fn(&Counts) -> bool| {
            metrics
                .iter()
                .any(|metric| metric.counts.as_ref().is_some_and(what))
        };
        for (key, declared, counted) in [
            ("flop", work.flop, counted(|c| matches!(c, Counts::Flop(_)))),
            (
                "bytes_written",
                work.bytes_written,
                counted(|c| matches!(c, Counts::BytesWritten(_))),
            ),
        ] {
            if declared.is_some() && !counted {
                return Err(self
                    .error(
                        &["suite", name, "work", key],
                        format!("nothing counts the declared `{key}`"),
                    )
                    .help(Some(format!(
                        "give an exact metric of the suite `counts = {{ {key} = ... }}`"
                    ))));
            }
        }
        if metrics.iter().all(|metric| metric.level == Level::Record) {
            return Err(self
                .error(
                    &at,
                    format!(
                        "every metric of the suite `{name}` is only recorded, so it gates nothing"
                    ),
                )
                .help(Some("give one of them the level `deny` or `warn`".into())));
        }
        if let Some(metric) = metrics.iter().find(|metric| metric.unless_faster)
            && !metrics
                .iter()
                .any(|metric| metric.counter == DURATION_COUNTER)
        {
            return Err(self.error(
                &["suite", name, "metrics"],
                format!(
                    "`unless_faster` of `{}` needs a metric of the counter {DURATION_COUNTER} in the suite",
                    metric.alias
                ),
            ));
        }
        if raw.variant.is_empty() {
            return Err(self
                .error(&at, format!("the suite `{name}` has no variants"))
                .help(Some(format!("add `[suite.{name}.variant.NAME]`"))));
        }
        // What every variant sets otherwise is wrong all the same.
        self.profile(&["suite", name, "profile"], &[&raw.profile])?;
        if let Some(seconds) = raw.verify.timeout_s {
            self.timeout(&["suite", name, "verify", "timeout_s"], seconds)?;
        }
        let inherited = Inherited {
            suite: raw,
            profile,
            verify_timeout_s: raw.verify.timeout_s.or(verify_timeout_s),
            metrics: &metrics,
            work,
        };
        let mut variants = Vec::new();
        for (variant_name, raw_variant) in &raw.variant {
            variants.push(self.variant(name, variant_name, raw_variant, &inherited)?);
        }
        Ok(Suite {
            name: name.to_owned(),
            description: raw.description.clone().unwrap_or_default(),
            variants,
        })
    }

    fn variant(
        &self,
        suite: &str,
        name: &str,
        raw: &RawVariant,
        inherited: &Inherited<'_>,
    ) -> Result<Variant, ConfigError> {
        let at = ["suite", suite, "variant", name];
        let key = |key| ["suite", suite, "variant", name, key];
        self.name(&at, name)?;
        let recipe = match (&raw.source, &raw.run) {
            (Some(source), None) => {
                for (unwanted, present) in [
                    ("build", raw.build.is_some()),
                    ("inputs", raw.inputs.is_some()),
                ] {
                    if present {
                        return Err(self
                            .error(&key(unwanted), format!("`{unwanted}` belongs to a variant with `run`, not to one with `source`")));
                    }
                }
                self.path_below(&key("source"), source)?;
                Recipe::Nvcc {
                    source: source.clone(),
                    flags: raw.flags.clone(),
                    defines: self.defines(&key("defines"), &raw.defines)?,
                }
            }
            (None, Some(run)) => {
                for (unwanted, present) in [
                    ("flags", !raw.flags.is_empty()),
                    ("defines", !raw.defines.is_empty()),
                ] {
                    if present {
                        return Err(self
                            .error(&key(unwanted), format!("`{unwanted}` belongs to a variant with `source`, not to one with `run`")));
                    }
                }
                for (argv_key, argv) in [("run", Some(run)), ("build", raw.build.as_ref())] {
                    if argv.is_some_and(|argv| argv.first().is_none_or(String::is_empty)) {
                        return Err(self.error(&key(argv_key), format!("`{argv_key}` is a program and its arguments, such as [\"python3\", \"kernel.py\"]")));
                    }
                }
                let inputs = raw.inputs.clone().unwrap_or_default();
                for input in &inputs {
                    self.path_below(&key("inputs"), input)?;
                }
                if raw.immutable && inputs.is_empty() {
                    return Err(self.error(&key("immutable"), "an immutable variant with `run` needs `inputs`: the files that must not change"));
                }
                Recipe::Command {
                    build: raw.build.clone(),
                    run: run.clone(),
                    inputs,
                }
            }
            (Some(_), Some(_)) => {
                return Err(
                    self.error(&key("run"), "a variant has a `source` or a `run`, not both")
                );
            }
            (None, None) => {
                return Err(self
                    .error(&at, format!("the variant `{suite}/{name}` needs a `source` (a .cu file) or a `run` (a command)")));
            }
        };
        let profile_at = key("profile");
        let profile = self.profile(
            &profile_at,
            &[&raw.profile, &inherited.suite.profile, inherited.profile],
        )?;
        let kernels = raw
            .kernels
            .clone()
            .or_else(|| inherited.suite.kernels.clone());
        if let Some(pattern) = kernels
            .as_deref()
            .and_then(|filter| filter.strip_prefix("regex:"))
            && let Err(error) = regex::Regex::new(pattern)
        {
            let message = error.to_string();
            let last = message.lines().last().unwrap_or_default().to_owned();
            // ncu knows look-around and back-references, this library says that it does not.
            if !last.contains("not supported") {
                let at: &[&str] = if raw.kernels.is_some() {
                    &key("kernels")
                } else {
                    &["suite", suite, "kernels"]
                };
                return Err(self.error(at, format!("not a regular expression: {last}")));
            }
        }
        let mut args = inherited.suite.args.clone();
        args.extend(raw.args.iter().cloned());
        let verify_timeout = raw
            .verify
            .timeout_s
            .or(inherited.verify_timeout_s)
            .unwrap_or(DEFAULT_VERIFY_TIMEOUT_S);
        Ok(Variant {
            id: VariantId {
                suite: suite.to_owned(),
                variant: name.to_owned(),
            },
            description: raw.description.clone().unwrap_or_default(),
            recipe,
            args,
            verify_args: raw
                .verify_args
                .clone()
                .or_else(|| inherited.suite.verify_args.clone())
                .unwrap_or_default(),
            profile_args: raw
                .profile_args
                .clone()
                .or_else(|| inherited.suite.profile_args.clone())
                .unwrap_or_default(),
            env: raw.env.clone(),
            kernels,
            expect: raw
                .expect
                .clone()
                .or_else(|| inherited.suite.expect.clone())
                .unwrap_or_default(),
            metrics: inherited.metrics.to_vec(),
            work: inherited.work,
            immutable: raw.immutable,
            experimental: raw.experimental,
            profile,
            verify_timeout: self.timeout(
                &["suite", suite, "variant", name, "verify", "timeout_s"],
                verify_timeout,
            )?,
        })
    }

    /// The first of the layers that sets a value decides.
    fn profile(&self, at: &[&str], layers: &[&RawProfile]) -> Result<ProfileSettings, ConfigError> {
        fn first<'a, T: Clone + 'a>(
            layers: &[&'a RawProfile],
            field: impl Fn(&'a RawProfile) -> &'a Option<T>,
        ) -> Option<T> {
            layers.iter().find_map(|layer| field(layer).clone())
        }
        let launches = first(layers, |p| &p.launches).unwrap_or(DEFAULT_LAUNCHES);
        let processes = first(layers, |p| &p.processes).unwrap_or(DEFAULT_PROCESSES);
        let max_processes =
            first(layers, |p| &p.max_processes).unwrap_or(processes.saturating_mul(2));
        let counted_launches =
            first(layers, |p| &p.counted_launches).unwrap_or(DEFAULT_COUNTED_LAUNCHES);
        let rounds = first(layers, |p| &p.rounds).unwrap_or(DEFAULT_ROUNDS);
        let max_rounds = first(layers, |p| &p.max_rounds).unwrap_or(DEFAULT_MAX_ROUNDS.max(rounds));
        // The setting may stand in any of three tables; the variant's own is named, the others found.
        let place = |setting: &str| -> Vec<String> {
            let own: Vec<String> = at
                .iter()
                .map(|key| (*key).to_owned())
                .chain([setting.to_owned()])
                .collect();
            let suite = at.get(1).map(|suite| {
                vec![
                    "suite".to_owned(),
                    (*suite).to_owned(),
                    "profile".to_owned(),
                    setting.to_owned(),
                ]
            });
            let global = vec!["profile".to_owned(), setting.to_owned()];
            [Some(own), suite, Some(global.clone())]
                .into_iter()
                .flatten()
                .find(|keys| self.has(keys))
                .unwrap_or(global)
        };
        let complain = |setting: &str, message: String| {
            let keys = place(setting);
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            self.error(&keys, message)
        };
        for (setting, value) in [
            ("launches", launches),
            ("processes", processes),
            ("max_processes", max_processes),
            ("counted_launches", counted_launches),
            ("rounds", rounds),
            ("max_rounds", max_rounds),
        ] {
            if value == 0 || value > 10_000 {
                return Err(complain(
                    setting,
                    format!("`{setting}` is a number from 1 to 10000"),
                ));
            }
        }
        for (setting, most, least) in [
            ("max_processes", max_processes, processes),
            ("max_rounds", max_rounds, rounds),
        ] {
            if most < least {
                return Err(complain(
                    setting,
                    format!(
                        "`{setting}` is {most}, fewer than the {least} that are always measured"
                    ),
                ));
            }
        }
        let ncu_args = first(layers, |p| &p.ncu_args).unwrap_or_default();
        if let Some(argument) = ncu_args.iter().find(|argument| {
            let name = argument.split('=').next().unwrap_or_default();
            OWN_NCU_ARGS.contains(&name)
        }) {
            return Err(complain(
                "ncu_args",
                format!("`{argument}` is set by the tool itself"),
            ));
        }
        let timeout_s = first(layers, |p| &p.timeout_s).unwrap_or(DEFAULT_PROFILE_TIMEOUT_S);
        let keys = place("timeout_s");
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        Ok(ProfileSettings {
            launches,
            skip: first(layers, |p| &p.skip).unwrap_or(0),
            processes,
            max_processes,
            counted_launches,
            rounds,
            max_rounds,
            clock_control: first(layers, |p| &p.clock_control).unwrap_or(ClockControl::Base),
            cache_control: first(layers, |p| &p.cache_control).unwrap_or(CacheControl::All),
            replay_mode: first(layers, |p| &p.replay_mode).unwrap_or(ReplayMode::Kernel),
            graph_profiling: first(layers, |p| &p.graph_profiling).unwrap_or(GraphProfiling::Node),
            nvtx: first(layers, |p| &p.nvtx).unwrap_or_default(),
            profiler_range: first(layers, |p| &p.profiler_range).unwrap_or(false),
            keep_sass: first(layers, |p| &p.keep_sass).unwrap_or(false),
            timeout: self.timeout(&keys, timeout_s)?,
            ncu_args,
        })
    }

    fn has(&self, keys: &[String]) -> bool {
        let mut table = Some(self.tree);
        for (depth, key) in keys.iter().enumerate() {
            let Some((_, value)) =
                table.and_then(|table| table.iter().find(|(name, _)| name.get_ref() == key))
            else {
                return false;
            };
            table = match value.get_ref() {
                DeValue::Table(inner) => Some(inner),
                _ => return depth + 1 == keys.len(),
            };
        }
        true
    }

    fn timeout(&self, at: &[&str], seconds: f64) -> Result<Duration, ConfigError> {
        if seconds > 0.0 && seconds <= LONGEST_TIMEOUT_S {
            Ok(Duration::from_secs_f64(seconds))
        } else {
            Err(self.error(
                at,
                format!("`timeout_s` is a number of seconds above 0 and up to {LONGEST_TIMEOUT_S}"),
            ))
        }
    }

    fn defines(
        &self,
        at: &[&str],
        raw: &BTreeMap<String, Define>,
    ) -> Result<BTreeMap<String, String>, ConfigError> {
        let mut defines = BTreeMap::new();
        for (name, value) in raw {
            let text = match value {
                Define::Flag(true) => String::new(),
                Define::Flag(false) => continue,
                Define::Number(number) => number.to_string(),
                Define::Text(text) => text.clone(),
            };
            if !is_macro_name(name) {
                return Err(self.error(
                    at,
                    format!("`{name}` cannot be the name of a preprocessor constant"),
                ));
            }
            defines.insert(name.clone(), text);
        }
        Ok(defines)
    }

    fn name(&self, at: &[&str], name: &str) -> Result<(), ConfigError> {
        if is_name(name) {
            return Ok(());
        }
        Err(self
            .error(at, format!("`{name}` cannot be a name"))
            .help(Some("a name has letters, digits, `_` and `-`, at most 64, and begins with a letter or digit".into())))
    }

    fn path_below(&self, at: &[&str], path: &str) -> Result<(), ConfigError> {
        let below = !path.is_empty()
            && Path::new(path)
                .components()
                .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if below {
            return Ok(());
        }
        Err(self.error(
            at,
            format!("`{path}` must be a path below the configuration's folder"),
        ))
    }
}

/// The path without `.` and `..`, by its words alone: the folder need not exist yet.
fn resolved(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts
}

/// Whether `-D` can define it.
pub(crate) fn is_macro_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

struct Inherited<'a> {
    suite: &'a RawSuite,
    profile: &'a RawProfile,
    verify_timeout_s: Option<f64>,
    metrics: &'a [Metric],
    work: Work,
}
