//! `config.toml` as written. Nothing after [`super::Config`] reads these types.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use super::model::{ProfileSettings, Toolchain, Trust, VerifySettings, Waiver, Work};
use super::range;
use super::tolerance::{RawTolerance, RawTolerances};
use crate::metric::{Direction, Level};
use crate::terms::Phase;

/// What sparsek-gate builds, measures and gates.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "config.toml of sparsek-gate")]
pub(super) struct RawConfig {
    /// Variables of the environment that programs, compilers and profilers get besides those of the
    /// tool's own list (`sparsek-gate doctor` shows them). Default: none.
    #[serde(deserialize_with = "range::variables")]
    #[schemars(extend("x-stricter" = "fewer", "x-absent" = []))]
    pub env_pass: Vec<String>,
    /// Folders of the tool.
    pub paths: RawPaths,
    /// Compiler, profiler, and what they work for.
    pub toolchain: Toolchain,
    /// How ncu is run. A suite or a variant may override any of it.
    pub profile: ProfileSettings,
    /// How the numbers are checked. A suite or a variant may override any of it.
    pub verify: VerifySettings,
    /// What is measured, by the name that people read.
    pub metric: BTreeMap<String, RawMetric>,
    /// How what the compiler makes is gated, by the name of the static metric.
    pub r#static: BTreeMap<String, RawStatic>,
    /// Problems to solve, each with its variants: same inputs, same answer.
    pub suite: BTreeMap<String, RawSuite>,
    /// Findings that only warn until a day or the merge, each in a `[[waiver]]` of its own.
    pub waiver: Vec<Waiver>,
    /// Whose locks count.
    pub trust: Trust,
}

/// Folders, seen from the folder of the configuration.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "paths")]
pub(super) struct RawPaths {
    /// Locked baselines; belongs in version control. Default: `baselines`.
    pub baselines: Option<String>,
    /// Builds, captures and fresh profiles; does not belong there. Default: `.sparsek-gate`.
    pub work: Option<String>,
    /// Files that no program reads: patterns from the top of the repository, `*` without slashes,
    /// `**` for any folders, and folders with all below them. `check --against` measures nothing compiled for a change of these
    /// alone. Default: none.
    #[schemars(extend("x-stricter" = "fewer", "x-absent" = []))]
    pub unread: Vec<String>,
}

/// A metric of the gate.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "metric")]
pub(super) struct RawMetric {
    /// ncu's counter. Default: what the metric's name stands for, where it is a built-in one.
    pub counter: Option<String>,
    /// Which direction is better. Required if the metric is judged, unless `exact`.
    pub direction: Option<Direction>,
    /// How much worse is no regression: `"4 %"` of the value, or `"1.5"` in the counter's unit (points, for a
    /// counter in `%`). A table has one for each comparison.
    #[schemars(extend("x-stricter" = "tolerance"))]
    pub tolerance: Option<RawTolerances>,
    /// Which capture measures it. Default: `timing`, or `counting` for an `exact` one.
    pub phase: Option<Phase>,
    /// The same in each launch for the same work, so a difference means different work; takes no tolerance.
    pub exact: bool,
    /// What its counts stand for; requires `exact`. They must add up to the suite's `work`.
    pub counts: Option<RawCounts>,
    /// Smallest value allowed, in the counter's unit, ns of a duration.
    #[schemars(extend("x-stricter" = "more", "x-absent" = "none"))]
    pub min: Option<f64>,
    /// Largest value allowed, in the counter's unit, ns of a duration.
    #[schemars(extend("x-stricter" = "less", "x-absent" = "none"))]
    pub max: Option<f64>,
    /// What a regression does. Default: `deny`.
    #[schemars(extend("x-stricter" = "level", "x-absent" = "deny"))]
    pub level: Option<Level>,
    /// A regression, or an open result, only warns where the kernel became measurably faster.
    #[schemars(extend("x-stricter" = "false", "x-absent" = false))]
    pub unless_faster: bool,
    /// The variants that it is measured on. Default: all whose suite takes it.
    pub variants: Option<Vec<String>>,
    /// Tolerances of some kernels, such as `on."SUITE/VARIANT" = "1 %"`, or of `SUITE`; the narrower name takes precedence.
    pub on: BTreeMap<String, RawTolerances>,
}

/// How a static metric is gated; the metric itself is the tool's own.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "static")]
pub(super) struct RawStatic {
    /// What a regression does. Default: `deny` or `record`, as the metric is.
    #[schemars(extend("x-stricter" = "level"))]
    pub level: Option<Level>,
    /// How much worse is no regression. Default: nothing.
    #[schemars(extend("x-stricter" = "tolerance"))]
    pub tolerance: Option<RawTolerance>,
    /// A regression only warns where the same check shows that the duration is not worse. Default:
    /// true, but not for compiler warnings and tensor-core instructions.
    #[schemars(extend("x-stricter" = "false"))]
    pub unless_as_fast: Option<bool>,
    /// Smallest value allowed, in the metric's unit.
    #[schemars(extend("x-stricter" = "more", "x-absent" = "none"))]
    pub min: Option<f64>,
    /// Largest value allowed, in the metric's unit.
    #[schemars(extend("x-stricter" = "less", "x-absent" = "none"))]
    pub max: Option<f64>,
}

/// What one count of the counter stands for: one of the two.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "counts")]
pub(super) struct RawCounts {
    /// So many floating-point operations.
    pub flop: Option<f64>,
    /// So many bytes stored to global memory.
    pub bytes_written: Option<f64>,
}

/// The variants of one problem: same inputs, same answer, comparable.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "suite")]
pub(super) struct RawSuite {
    /// One line for people.
    #[schemars(extend("x-counts" = "change"))]
    pub description: Option<String>,
    /// Arguments of every run: the workload. Profiles of another are not comparable. `{seed}` in
    /// any arguments is a new number for each process.
    pub args: Vec<String>,
    /// Further arguments of the verifying run; `{result}` is where to write `{"correct": true}`.
    pub verify_args: Vec<String>,
    /// Arguments under compute-sanitizer, in the place of `args` and `verify_args`. Default: those.
    pub sanitizer_args: Option<Vec<String>>,
    /// Further arguments of the profiled run; `{launches}` is how many must be launched, `{skip}`
    /// of them before the measured ones. With `{result}`, it must write there after its launches
    /// whether their numbers are correct.
    pub profile_args: Vec<String>,
    /// ncu's filter: which kernels to profile, `NAME` or `regex:PATTERN`. Default: all.
    pub kernels: Option<String>,
    /// The metrics of this suite. Default: all of them.
    pub metrics: Option<Vec<String>>,
    /// The work that all its kernels do together, such as `{ flop = 4096 }`; checked by the metrics with `counts`.
    pub work: Work,
    /// Overrides of `[profile]`.
    pub profile: ProfileSettings,
    /// Overrides of `[verify]`.
    pub verify: VerifySettings,
    /// The variants, by name.
    pub variant: BTreeMap<String, RawVariant>,
}

/// One version of a kernel: a `source` for nvcc, or any program to `run`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "variant")]
pub(super) struct RawVariant {
    /// One line for people.
    #[schemars(extend("x-counts" = "change"))]
    pub description: Option<String>,
    /// A variant for each combination of values, one of each axis; `{axis}` stands for the value in
    /// all texts of this table. Default: none.
    #[schemars(schema_with = "axes")]
    pub matrix: IgnoredAny,
    /// The .cu file or files that nvcc compiles to one program. Exit status 0 means right numbers.
    #[schemars(extend("x-counts" = "change"))]
    pub source: Option<Source>,
    /// nvcc flags besides the toolchain's; with `source`.
    #[schemars(extend("x-counts" = "change"))]
    pub flags: Vec<String>,
    /// `-D` constants, such as `{ TILE = 64 }`; true defines the name alone, false does not. With
    /// `source`.
    #[schemars(extend("x-counts" = "change"))]
    pub defines: BTreeMap<String, Define>,
    /// Command that builds the program; with `run`.
    #[schemars(extend("x-counts" = "change"))]
    pub build: Option<Vec<String>>,
    /// The program and its fixed arguments, such as `["python3", "kernel.py"]`.
    #[schemars(extend("x-counts" = "change"))]
    pub run: Option<Vec<String>>,
    /// Files, folders and patterns that the program is made of; with `run`. Python scripts in
    /// `run`, and the modules of the project that they import, need not be named.
    #[schemars(extend("x-counts" = "change"))]
    pub inputs: Option<Vec<String>>,
    /// The executable with the kernels, whose machine code the static gate judges; with `run`.
    /// Default: none, and no static gate.
    pub program: Option<String>,
    /// Shared libraries, fatbins and cubins with further kernels; with `run`. Default: none.
    pub libraries: Option<Vec<String>>,
    /// The static gate judges the machine code that the program loads while it runs (Triton,
    /// NVRTC); with `run`, in the place of `program`. Default: false.
    #[schemars(extend("x-stricter" = "true"))]
    pub loaded_code: bool,
    /// Arguments of every run, behind those of the suite.
    pub args: Vec<String>,
    /// Further arguments of the verifying run. Default: those of the suite.
    pub verify_args: Vec<String>,
    /// Arguments under compute-sanitizer, in the place of all others. Default: those of the suite.
    pub sanitizer_args: Option<Vec<String>>,
    /// Further arguments of the profiled run. Default: those of the suite.
    pub profile_args: Vec<String>,
    /// Which kernels to profile, `NAME` or `regex:PATTERN`. Default: that of the suite.
    pub kernels: Option<String>,
    /// Function names that must have been measured. Default: all that `kernels` selects.
    pub expect: Vec<String>,
    /// Added to the program's environment, such as `{ NAME = "value" }`.
    pub env: BTreeMap<String, String>,
    /// Dynamic shared memory a block of the launch, in bytes, for a static check before a launch
    /// was measured.
    #[schemars(extend("x-counts" = "stated"))]
    pub dynamic_shared_bytes: Option<u32>,
    /// Threads a block of the launch, for a static check before a launch was measured.
    #[schemars(extend("x-counts" = "stated"), range(min = 1, max = 1024))]
    pub threads_per_block: Option<u32>,
    /// The work that its kernels do together, such as `{ flop = 4096 }`. Default: that of the suite.
    pub work: Work,
    /// A reference: its sources, headers and flags are locked too.
    #[schemars(extend("x-stricter" = "true"))]
    pub immutable: bool,
    /// Left out unless it is named, or asked for with --experimental.
    #[schemars(extend("x-stricter" = "false", "x-absent" = false))]
    pub experimental: bool,
    /// Overrides of `[profile]`.
    #[schemars(extend("x-counts" = "base"))]
    pub profile: ProfileSettings,
    /// Overrides of `[verify]`.
    #[schemars(extend("x-counts" = "base"))]
    pub verify: VerifySettings,
}

/// The CUDA sources of a program.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a text, or a list of texts")]
#[schemars(rename = "source")]
pub(super) enum Source {
    /// One file.
    One(String),
    /// Several files, compiled and linked together.
    Several(Vec<String>),
}

impl Source {
    /// The files, in the order in which they are written.
    pub fn files(&self) -> &[String] {
        match self {
            Source::One(file) => std::slice::from_ref(file),
            Source::Several(files) => files,
        }
    }
}

/// Axes by name, each a list of values, or a table of named values: a value stands for a text, or
/// where an item `"{axis}"` of a list is replaced by all of them, for arguments.
fn axes(_: &mut SchemaGenerator) -> Schema {
    let value = ["string", "number", "boolean"];
    let named = json!({ "anyOf": [
        { "type": value },
        { "type": "array", "items": { "type": "string" } },
    ] });
    json_schema!({ "type": "object", "additionalProperties": { "anyOf": [
        { "type": "array", "items": { "type": value } },
        { "type": "object", "additionalProperties": named },
    ] } })
}

/// The value of a `-D` constant.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a whole number, a text or a boolean; `matrix` makes a variant of each value"
)]
#[schemars(rename = "define")]
pub(super) enum Define {
    /// The name alone, or nothing.
    Flag(bool),
    /// A whole number.
    Number(i64),
    /// A text.
    Text(String),
}
