//! Raw configuration to validated configuration. Every error points at its line.

mod default_metrics;
mod family;
mod file;
mod matrix;
mod metric;
mod static_metric;
mod suite;
mod variant;
mod waiver;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

use super::error::{ConfigError, ONE_TARGET};
use super::key::{home, meaning};
use super::layers;
use super::model::{Config, Metric, Toolchain};
use super::raw::{RawConfig, RawSuite};
use super::unread::Unread;
use crate::binary::{Limits, ONLY_REPORTED};
use crate::disk::folder_of;
use crate::files::resolved;
use crate::git;
use crate::metric::{Role, capability_of_arch, chip_of_arch};
use file::{Common, File};

/// Reads and validates the text of a configuration.
pub(super) fn validate(path: &Path, source: &str) -> Result<Config, ConfigError> {
    let mut tree = tree(path, source)?;
    layers::merge(tree.get_mut());
    let file = File {
        path,
        source,
        tree: tree.get_ref(),
    };
    let raw = RawConfig::deserialize(Deserializer::from(tree.clone()))
        .map_err(|error| ConfigError::from_toml(path, source, &error))
        .map_err(|error| error.of_key(tree.get_ref(), home, meaning))?;
    file.config(raw)
}

/// The text of a configuration as a table: every variant that a matrix produces is written out.
///
/// # Errors
/// [`ConfigError`] where the text is no TOML, or a matrix is wrong. Nothing else is validated.
pub(crate) fn table(path: &Path, source: &str) -> Result<toml::Table, ConfigError> {
    let table = toml::Table::deserialize(Deserializer::from(tree(path, source)?));
    table.map_err(|error| ConfigError::from_toml(path, source, &error))
}

/// The tree of a text, with the variants that its matrices produce and the metrics that the name of a
/// family stands for.
fn tree<'a>(path: &Path, source: &'a str) -> Result<Spanned<DeTable<'a>>, ConfigError> {
    let mut tree =
        DeTable::parse(source).map_err(|error| ConfigError::no_toml(path, source, &error))?;
    matrix::expand(tree.get_mut()).map_err(|error| error.in_file(path, source))?;
    default_metrics::add(tree.get_mut());
    family::expand(tree.get_mut());
    Ok(tree)
}

impl File<'_> {
    fn config(&self, raw: RawConfig) -> Result<Config, ConfigError> {
        let root = std::path::absolute(folder_of(self.path)).map_err(|error| {
            let message = format!("cannot find the current folder: {error}");
            ConfigError::new(self.path, "", None, message)
        })?;
        let baselines = self.folder(&root, "baselines", &raw.paths.baselines, "baselines")?;
        // The folder is replaced as a whole, so `kernels/..` must be refused too.
        let (within, whole) = (resolved(&baselines), resolved(&root));
        if within == whole || !within.starts_with(&whole) {
            return Err(self.error(
                &["paths", "baselines"],
                "`baselines` must be a folder below the configuration's folder",
            ));
        }
        let work = self.folder(&root, "work", &raw.paths.work, ".sparsek-gate")?;
        let place = resolved(&work);
        if whole.starts_with(&place) || place.starts_with(&within) || within.starts_with(&place) {
            let (key, why) = match raw.paths.work {
                Some(_) => (
                    "work",
                    "`work` must be a folder of its own, neither the configuration's nor one of baselines: leave the key out, or write `.sparsek-gate`",
                ),
                None => (
                    "baselines",
                    "`baselines` must not be in the work folder `.sparsek-gate`: leave the key out, or write `baselines`",
                ),
            };
            return Err(self.error(&["paths", key], why));
        }
        // On another disk, perhaps. Reports name where that is.
        let work = git::behind_own_links(work);
        let unread = Unread::of(&raw.paths.unread);
        let unread = unread.map_err(|why| self.error(&["paths", "unread"], why))?;
        let toolchain = self.toolchain(raw.toolchain, &root)?;
        let metrics = self.metrics(&raw.metric, &toolchain)?;
        let static_metrics = self.static_metrics(&raw.r#static, &toolchain.arch)?;
        // Registers that spill lie in the stack frame, which is gated.
        let mut code_metrics = static_metrics.clone();
        code_metrics.retain(|metric| !ONLY_REPORTED.contains(&metric.alias.as_str()));
        let common = Common {
            metrics: &metrics,
            chip: toolchain.chip,
            static_metrics: &static_metrics,
            code_metrics: &code_metrics,
            limits: Limits::of_arch(&toolchain.arch),
        };
        self.refuse_too_many(&raw.suite, metrics.len())?;
        let suites = raw.suite.iter();
        let mut suites = suites
            .map(|(name, suite)| self.suite(name, suite, &common))
            .collect::<Result<Vec<_>, _>>()?;
        self.narrow(&raw.metric, &mut suites)?;
        self.refuse_twins(&suites)?;
        self.tolerate(&raw.metric, &mut suites)?;
        let mut roles = metrics.iter().map(Metric::role);
        let is_untimed = roles.all(|role| role != Some(Role::Duration))
            && raw.suite.values().any(|suite| suite.metrics.is_none());
        for (index, waiver) in raw.waiver.iter().enumerate() {
            self.waiver(index, waiver, &suites)?;
        }
        Ok(Config {
            text: self.source.to_owned(),
            path: self.path.to_path_buf(),
            checkout: root.clone(),
            root,
            baselines,
            work,
            unread,
            toolchain,
            device: 0,
            suites,
            waivers: raw.waiver,
            trust: raw.trust,
            env_pass: raw.env_pass,
            is_untimed,
        })
    }

    /// Refuses more metrics of variants than a small file can state by a slip: each variant has its
    /// own settings of each metric.
    fn refuse_too_many(
        &self,
        suites: &BTreeMap<String, RawSuite>,
        metrics: usize,
    ) -> Result<(), ConfigError> {
        const MOST: usize = 100_000;
        let of_suite = |suite: &RawSuite| {
            let named = suite.metrics.as_ref().map_or(metrics, Vec::len);
            suite.variant.len().saturating_mul(named)
        };
        let all: usize = suites.values().map(of_suite).sum();
        if all <= MOST {
            return Ok(());
        }
        Err(self.error(
            &["metric"],
            format!("the variants have {all} metrics in all, and {MOST} is the most: name fewer in `metrics` of their suites, or split the configuration"),
        ))
    }

    /// `[toolchain]`, with absolute paths, and with the chip of its target.
    fn toolchain(&self, mut toolchain: Toolchain, root: &Path) -> Result<Toolchain, ConfigError> {
        let arch = &toolchain.arch;
        if capability_of_arch(arch).is_none() {
            let error = self.error(
                &["toolchain", "arch"],
                format!("`{arch}` is not a GPU target"),
            );
            return Err(
                error.help(match arch.contains([',', ';']) || arch.contains(" sm_") {
                    true => ONE_TARGET.to_owned(),
                    false => meant_target(arch),
                }),
            );
        }
        toolchain.chip = chip_of_arch(arch);
        self.no_target(&["toolchain", "flags"], &toolchain.flags)?;
        for (key, tool) in [
            ("nvcc", &mut toolchain.nvcc),
            ("ncu", &mut toolchain.ncu),
            ("compute_sanitizer", &mut toolchain.compute_sanitizer),
            ("cupti", &mut toolchain.cupti),
        ] {
            if let Some(path) = tool.as_deref().and_then(Path::to_str) {
                self.literal(&["toolchain", key], path)?;
            }
            *tool = tool.take().map(|path| root.join(path));
        }
        Ok(toolchain)
    }

    /// A folder of `[paths]`.
    fn folder(
        &self,
        root: &Path,
        key: &str,
        value: &Option<String>,
        default: &str,
    ) -> Result<PathBuf, ConfigError> {
        let text = value.as_deref().unwrap_or(default);
        self.literal(&["paths", key], text)?;
        match text {
            "" => Err(self.error(&["paths", key], format!("`{key}` must name a folder"))),
            text => Ok(root.join(text)),
        }
    }
}

/// Names of GPU models and generations, and their targets.
/// Source: <https://developer.nvidia.com/cuda-gpus>.
const MODELS: [(&str, &str); 8] = [
    ("B300 GB300", "sm_103a"),
    ("B100 B200 GB200 BLACKWELL", "sm_100a"),
    ("H100 H200 H800 GH200 HOPPER", "sm_90a"),
    ("L4 L40 L40S ADA", "sm_89"),
    ("A10 A40 A6000", "sm_86"),
    ("A30 A100 A800 AMPERE", "sm_80"),
    ("T4 TURING", "sm_75"),
    ("V100 VOLTA", "sm_70"),
];

/// The target that was meant by a text that is none.
fn meant_target(text: &str) -> String {
    let text = text.to_uppercase();
    let has = |name: &str| text.split([' ', '-', '_']).any(|word| word == name);
    let of_model = MODELS.iter().find(|(names, _)| names.split(' ').any(has));
    if let Some((_, target)) = of_model {
        return format!("the target of that GPU is `{target}`");
    }
    let number = text.trim_start_matches(|c: char| !c.is_ascii_digit());
    let near = format!("sm_{}", number.replace('.', "").to_lowercase());
    match capability_of_arch(&near) {
        Some(_) => format!("did you mean `{near}`?"),
        None => "write it as nvcc does, such as `sm_90a` or `sm_80`".to_owned(),
    }
}
