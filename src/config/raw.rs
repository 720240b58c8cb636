//! `config.toml` as written. Nothing after [`super::Config`] reads these types.

use std::collections::BTreeMap;

use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawConfig {
    pub paths: RawPaths,
    pub toolchain: RawToolchain,
    pub gpu: RawGpu,
    pub profile: RawProfile,
    pub verify: RawVerify,
    pub metric: BTreeMap<String, RawMetric>,
    pub suite: BTreeMap<String, RawSuite>,
    pub waiver: Vec<RawWaiver>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawWaiver {
    pub variant: String,
    pub metric: String,
    pub reason: String,
    pub who: String,
    pub expires: ExpiryDate,
}

/// A date, written as TOML's own or as text.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a date such as 2026-12-31")]
pub(super) enum ExpiryDate {
    Date(toml::value::Datetime),
    Text(String),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawPaths {
    pub baselines: Option<String>,
    pub work: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawToolchain {
    pub arch: Option<String>,
    pub nvcc: Option<String>,
    pub ncu: Option<String>,
    pub cupti: Option<String>,
    pub flags: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawGpu {
    pub device: Option<u32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawProfile {
    pub launches: Option<u32>,
    pub skip: Option<u32>,
    pub processes: Option<u32>,
    pub max_processes: Option<u32>,
    pub counted_launches: Option<u32>,
    pub rounds: Option<u32>,
    pub max_rounds: Option<u32>,
    pub clock_control: Option<ClockControl>,
    pub cache_control: Option<CacheControl>,
    pub replay_mode: Option<ReplayMode>,
    pub graph_profiling: Option<GraphProfiling>,
    pub nvtx: Option<Vec<String>>,
    pub profiler_range: Option<bool>,
    pub keep_sass: Option<bool>,
    pub timeout_s: Option<f64>,
    pub ncu_args: Option<Vec<String>>,
    pub accept_rungs: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawVerify {
    pub timeout_s: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawMetric {
    pub counter: Option<Counter>,
    pub direction: Option<Direction>,
    pub tolerance: Option<RawTolerance>,
    pub against: Option<RawTolerance>,
    pub pass: Option<Pass>,
    pub exact: bool,
    pub counts: Option<RawCounts>,
    pub plausible: RawPlausible,
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub level: Option<Level>,
    pub unless_faster: bool,
}

/// One counter for every chip, or one a chip.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "a counter name, or a table of chip = \"counter name\""
)]
pub(super) enum Counter {
    Same(String),
    PerChip(BTreeMap<String, String>),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawTolerance {
    pub relative_percent: Option<f64>,
    pub absolute: Option<f64>,
}

/// What one count of the counter stands for.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawCounts {
    pub flop: Option<f64>,
    pub bytes_written: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawPlausible {
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub gain_percent: Option<f64>,
}

/// What a suite's kernels have to do, all of them together, in one run of the problem.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawWork {
    pub flop: Option<u64>,
    pub bytes_written: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawSuite {
    pub description: Option<String>,
    pub args: Vec<String>,
    pub verify_args: Option<Vec<String>>,
    pub profile_args: Option<Vec<String>>,
    pub time_args: Option<Vec<String>>,
    pub kernels: Option<String>,
    pub expect: Option<Vec<String>>,
    pub metrics: Option<Vec<String>>,
    pub work: RawWork,
    pub profile: RawProfile,
    pub verify: RawVerify,
    pub variant: BTreeMap<String, RawVariant>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawVariant {
    pub description: Option<String>,
    pub source: Option<String>,
    pub flags: Vec<String>,
    pub defines: BTreeMap<String, Define>,
    pub build: Option<Vec<String>>,
    pub run: Option<Vec<String>>,
    pub inputs: Option<Vec<String>>,
    pub args: Vec<String>,
    pub verify_args: Option<Vec<String>>,
    pub profile_args: Option<Vec<String>>,
    pub time_args: Option<Vec<String>>,
    pub kernels: Option<String>,
    pub expect: Option<Vec<String>>,
    pub env: BTreeMap<String, String>,
    pub immutable: bool,
    pub experimental: bool,
    pub profile: RawProfile,
    pub verify: RawVerify,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a whole number, a text or a boolean")]
pub(super) enum Define {
    Flag(bool),
    Number(i64),
    Text(String),
}

macro_rules! spelled {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $text)] $variant),+
        }

        impl $name {
            /// As the configuration and the reports spell it.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

spelled! {
    /// Whether ncu locks the clocks to base while it profiles (`--clock-control`).
    ClockControl {
        /// Locked to base: steadier numbers, needs the right to change clocks.
        Base = "base",
        /// Left alone.
        None = "none",
    }
}

spelled! {
    /// Whether ncu flushes the caches before each replay pass (`--cache-control`).
    CacheControl {
        /// Flushed.
        All = "all",
        /// Left as the launch before left them.
        None = "none",
    }
}

spelled! {
    /// How ncu collects more counters than fit in one pass (`--replay-mode`).
    ReplayMode {
        /// Each kernel is run again.
        Kernel = "kernel",
        /// The whole program is run again.
        Application = "application",
        /// A marked range is run again.
        Range = "range",
        /// A marked range is run again by running the program again.
        ApplicationRange = "app-range",
    }
}

spelled! {
    /// How ncu treats CUDA graphs (`--graph-profiling`).
    GraphProfiling {
        /// Each node is a launch.
        Node = "node",
        /// The whole graph is a launch.
        Graph = "graph",
    }
}

spelled! {
    /// Which of a variant's captures measures a metric. Counters that do not fit into one replay
    /// pass cost several, so what varies and what does not are captured apart.
    Pass {
        /// Many launches in several processes: what varies from launch to launch.
        Timing = "timing",
        /// A few launches in a process of their own: what is exact, or only explains.
        Counting = "counting",
    }
}

spelled! {
    /// Which way a metric gets better.
    Direction {
        /// More is better.
        Higher = "higher",
        /// Less is better.
        Lower = "lower",
        /// Any change is a regression.
        Equal = "equal",
    }
}

spelled! {
    /// What a regression of a metric does.
    Level {
        /// Fails the gate.
        Deny = "deny",
        /// Is reported and passes.
        Warn = "warn",
        /// The metric is measured and shown, and never judged.
        Record = "record",
    }
}
