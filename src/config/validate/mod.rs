//! Raw configuration to validated configuration; every complaint points at its line.

mod metric;
mod profile;
mod static_metric;
mod suite;
mod toolchain;
mod trust;
mod waiver;

use crate::metric::Role;
use crate::terms::is_name;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use toml::de::{DeTable, DeValue};

pub(crate) use suite::is_macro_name;

use super::Config;
use super::error::ConfigError;
use super::old_words::old_name;
use super::raw::RawConfig;

/// Longest time limit accepted, a day: beyond it the number is a slip.
const LONGEST_TIMEOUT_S: f64 = 86_400.0;
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
            let named = |wanted: &str| table.iter().find(|(name, _)| name.get_ref() == wanted);
            let Some((name, value)) = named(key).or_else(|| named(old_name(key)?)) else {
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

        let toolchain = self.toolchain(raw.toolchain, &root)?;
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
            .any(|metric| metric.role() == Some(Role::Duration))
            && let Some(metric) = metrics.iter().find(|metric| metric.unless_faster)
        {
            return Err(self.error(
                &["metric", &metric.alias, "unless_faster"],
                format!(
                    "`unless_faster` needs a metric of the counter {}, which shows what is faster",
                    Role::Duration
                ),
            ));
        }

        let static_metrics = self.static_metrics(&raw.r#static)?;

        let mut suites = Vec::new();
        for (name, raw_suite) in &raw.suite {
            suites.push(self.suite(
                name,
                raw_suite,
                &raw.profile,
                &raw.verify,
                &metrics,
                &static_metrics,
            )?);
        }
        self.narrow(&raw.metric, &mut suites)?;
        self.tolerate(&raw.metric, &mut suites)?;
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
            trust: self.trust(raw.trust)?,
        })
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
