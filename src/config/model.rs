//! The validated configuration.

use crate::metric::{Direction, Level, Role, Tolerance, Tolerances, capability_of_arch, measures};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ncu_report::Chip;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choices::{
    CacheControl, ClockControl, DEFAULT_ARCH, GraphProfiling, ReplayMode, SanitizerTool,
};
use super::error::suggest_variant;
use super::kernel_filter::KernelFilter;
use super::launches::LaunchSelection;
use super::pins::Pins;
use super::range;
use super::selector::Selector;
use super::stated_by::StatedBy;
use super::tolerance;
use super::unread::Unread;
use crate::binary::{LaunchShape, StaticRule};
use crate::disk;
use crate::git;
use crate::terms::{Phase, Tier, VariantId, joined, nearest};

/// The name of the configuration file.
pub const FILE_NAME: &str = "config.toml";

/// A validated configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The text that was validated.
    pub text: String,
    /// The file it was read from.
    pub path: PathBuf,
    /// The folder of the file; every relative path starts here, and every program runs here.
    pub root: PathBuf,
    /// The folder that outputs are made in and that the user works in. It is another one than
    /// `root` only of a merge of the checkout, and of the base.
    pub checkout: PathBuf,
    /// Folder of the locked baselines.
    pub baselines: PathBuf,
    /// Folder for builds, captures and fresh profiles.
    pub work: PathBuf,
    /// Files that no program reads.
    pub unread: Unread,
    /// Compiler and profiler.
    pub toolchain: Toolchain,
    /// CUDA ordinal of the GPU to measure on.
    pub device: u32,
    /// The suites, by name.
    pub suites: Vec<Suite>,
    /// Findings that only warn until a day.
    pub waivers: Vec<Waiver>,
    /// Whose locks count.
    pub trust: Trust,
    /// Variables of the environment that programs get besides those of the tool's own list.
    pub env_pass: Vec<String>,
    /// A suite takes all metrics, and none of them is a duration.
    pub is_untimed: bool,
}

/// Whose locks count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "trust")]
pub struct Trust {
    /// Whose review accepts what a change does to rules and locks, besides `--accept`. Default: nobody's.
    pub accept: Option<Accept>,
    /// Whether `--resume` may go on with what an interrupted run of a change under review left.
    /// Default: false.
    #[schemars(extend("x-stricter" = "false", "x-absent" = false))]
    pub resume: bool,
}

/// Whose review accepts what a change does to rules and locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Accept {
    /// That of the code owners whom `CODEOWNERS` of the base names, on GitHub and GitLab.
    CodeOwners,
}

/// Makes warnings of the findings on one metric of one variant, until a day or the merge.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "waiver")]
pub struct Waiver {
    /// The variant, as `suite/variant`.
    #[schemars(with = "String")]
    pub variant: VariantId,
    /// The metric's name.
    pub metric: String,
    /// Why it is acceptable.
    pub reason: String,
    /// Who is responsible for it.
    pub who: String,
    /// The last day on which it counts, in UTC, such as 2026-12-31. Default: it counts in the change
    /// that adds it, and ends with the merge.
    #[serde(default, deserialize_with = "range::day")]
    #[schemars(with = "Option<String>", extend("format" = "date"))]
    pub expires: Option<jiff::civil::Date>,
    /// How much worse the metric may be. Default: twice its tolerance; required where that is 0.
    #[serde(default, deserialize_with = "tolerance::tolerance")]
    #[schemars(with = "Option<tolerance::RawTolerance>")]
    pub up_to: Option<Tolerance>,
}

/// Compiler, profiler, and what they work for.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "toolchain")]
pub struct Toolchain {
    /// Target of nvcc, which decides which counters exist. Default: `sm_90a`.
    pub arch: String,
    /// The chip of that target, whose counter names the metrics resolve to; `None` where its counters
    /// are not known.
    #[serde(skip)]
    pub chip: Option<Chip>,
    /// nvcc. Default: CUDA_HOME, CUDA_PATH, the PATH, the usual folders.
    #[schemars(with = "String")]
    pub nvcc: Option<PathBuf>,
    /// ncu. Default: the PATH, CUDA_HOME, CUDA_PATH, the usual folders.
    #[schemars(with = "String")]
    pub ncu: Option<PathBuf>,
    /// compute-sanitizer. Default: the PATH, CUDA_HOME, CUDA_PATH, the usual folders.
    #[schemars(with = "String")]
    pub compute_sanitizer: Option<PathBuf>,
    /// libcupti. Default: the toolkits, Python packages, ncu's own.
    #[schemars(with = "String")]
    pub cupti: Option<PathBuf>,
    /// Flags of every nvcc build. Default: `-O3 -std=c++17 -lineinfo`.
    #[schemars(extend("x-counts" = "change"))]
    pub flags: Vec<String>,
    /// What tools, driver and GPU must be.
    pub pins: Pins,
}

impl Default for Toolchain {
    fn default() -> Toolchain {
        Toolchain {
            arch: DEFAULT_ARCH.to_owned(),
            chip: None,
            nvcc: None,
            ncu: None,
            compute_sanitizer: None,
            cupti: None,
            flags: ["-O3", "-std=c++17", "-lineinfo"]
                .map(String::from)
                .to_vec(),
            pins: Pins::default(),
        }
    }
}

/// The variants of one problem: same inputs, same answer, comparable.
#[derive(Clone, Debug, PartialEq)]
pub struct Suite {
    /// Its name, also its folder under the baselines.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// Its variants, by name. A check has the configuration more than once.
    pub variants: Vec<Arc<Variant>>,
}

/// The work that all kernels of a suite or a variant do together, each launched once: in one run of
/// the problem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "work")]
pub struct Work {
    /// Floating-point operations.
    pub flop: Option<u64>,
    /// Bytes stored to global memory.
    pub bytes_written: Option<u64>,
}

impl Metric {
    /// A metric that is only shown.
    pub(crate) fn shown(alias: &str, counter: &str) -> Metric {
        Metric {
            alias: alias.to_owned(),
            counter: counter.to_owned(),
            direction: Direction::Equal,
            tolerance: Tolerances::default(),
            phase: Phase::Timing,
            exact: false,
            counts: None,
            min: None,
            max: None,
            level: Level::Record,
            unless_faster: false,
            unless_as_fast: false,
            rule: StaticRule::Worse,
        }
    }

    /// What its counter measures; `None` of a counter that only the configuration knows.
    pub fn role(&self) -> Option<Role> {
        Role::of(&self.counter)
    }
}

impl Work {
    /// The key of declared work that none of these metrics counts.
    pub(super) fn uncounted(&self, metrics: &[Metric]) -> Option<&'static str> {
        let counted = |what: fn(&Counts) -> bool| {
            metrics
                .iter()
                .any(|metric| metric.counts.as_ref().is_some_and(what))
        };
        if self.flop.is_some() && !counted(|counts| matches!(counts, Counts::Flop(_))) {
            return Some("flop");
        }
        let bytes = counted(|counts| matches!(counts, Counts::BytesWritten(_)));
        (self.bytes_written.is_some() && !bytes).then_some("bytes_written")
    }
}

/// One version of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Variant {
    /// Its name.
    pub id: VariantId,
    /// One line for people.
    pub description: String,
    /// How its program is made.
    pub recipe: Recipe,
    /// Arguments of every run: the workload. Part of what makes profiles comparable, with the text
    /// `{seed}` and not its value.
    pub args: Vec<String>,
    /// Further arguments of the verifying run; `{result}` is the path of the result file.
    pub verify_args: Vec<String>,
    /// Further arguments of the profiled run; `{launches}` is how many must be launched. With
    /// `{result}` the measured process must report on its own numbers.
    pub profile_args: Vec<String>,
    /// Added to the program's environment.
    pub env: BTreeMap<String, String>,
    /// ncu's kernel-name filter, `NAME` or `regex:PATTERN`.
    pub kernels: Option<String>,
    /// Function names that the capture must contain.
    pub expect: Vec<String>,
    /// The metrics of this variant, by alias.
    pub metrics: Vec<Metric>,
    /// The chip whose counters are recorded besides, to explain what becomes slower; `None` records none.
    #[serde(skip)]
    pub explained_on: Option<Chip>,
    /// The metrics of the compiled kernel, by name.
    pub static_metrics: Vec<Metric>,
    /// What is known of the kernel's launches before they happen.
    pub launch: LaunchShape,
    /// Whether the static gate judges the machine code that its program loads while it runs.
    pub loaded_code: bool,
    /// The work that its suite declares.
    pub work: Work,
    /// A reference whose sources must not change.
    pub immutable: bool,
    /// Left out unless it is asked for.
    pub experimental: bool,
    /// Where its settings come from.
    pub stated_by: StatedBy,
    /// Whether only what lies within its tolerance with its whole interval passes: no key.
    #[serde(skip)]
    pub strict: bool,
    /// How it is profiled.
    pub profile: ProfileSettings,
    /// What shows that its numbers are right.
    pub verification: Verification,
    /// When the verifying run is killed, and each of those under compute-sanitizer.
    pub verify_timeout: Duration,
    /// Tools of compute-sanitizer that the verifying run is repeated under.
    pub sanitizer: Vec<SanitizerTool>,
    /// Arguments of the runs under compute-sanitizer, in the place of `args` and `verify_args`.
    pub sanitizer_args: Option<Vec<String>>,
}

/// What shows that the numbers of a variant are right, before it is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Verification {
    /// A run of its own program with `verify_args`.
    OwnRun,
    /// Another command, which exits with 0.
    Command(Vec<String>),
    /// Nothing: the report says so.
    None,
}

/// How a variant's program is made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Recipe {
    /// CUDA sources, compiled by nvcc to one program.
    Nvcc {
        /// The sources, at least one, relative to the root.
        sources: Vec<String>,
        /// Flags besides the toolchain's.
        flags: Vec<String>,
        /// `-D` constants: name to value; the empty value defines the name alone.
        defines: BTreeMap<String, String>,
    },
    /// Any command that launches kernels.
    Command {
        /// Run before, if anything needs building.
        build: Option<Vec<String>>,
        /// The program and its fixed arguments.
        run: Vec<String>,
        /// Files, folders and patterns of the files that the program is made of, relative to the
        /// root, see [`Config::own_files`]: what "the same source" means.
        inputs: Vec<String>,
        /// Files with the machine code of its kernels, relative to the root: `program` first, then
        /// `libraries`. Without any, the static gate knows nothing of it.
        code: Vec<String>,
    },
}

/// How ncu is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "profile")]
pub struct ProfileSettings {
    /// Launches of each kernel in one process, 1 to 10000. Of a program that CUPTI times, every launch
    /// counts. Default: 20.
    #[serde(deserialize_with = "range::count::<_, 1, 10_000>")]
    #[schemars(extend("x-stricter" = "more"))]
    pub launches: u32,
    /// Launches of each kernel before them that are left out. Default: 0.
    pub skip: u32,
    /// Separate processes of a profile; twice as many where these are too far apart. Default: 4.
    #[serde(deserialize_with = "range::count::<_, 1, 10_000>")]
    #[schemars(extend("x-stricter" = "more"))]
    pub processes: u32,
    /// Launches profiled in the one process of the counting phase: no key.
    #[serde(skip_deserializing)]
    #[schemars(skip)]
    pub counted_launches: u32,
    /// Whether launches are counted for each kernel, at each grid and block, and not over all
    /// kernels together: no key.
    #[serde(skip_deserializing)]
    #[schemars(skip)]
    pub per_kernel: bool,
    /// Whether ncu locks the clocks while it profiles. Default: `base`.
    pub clock_control: ClockControl,
    /// Whether ncu flushes the caches before each replay pass. Default: `all`.
    pub cache_control: CacheControl,
    /// How ncu collects more counters than fit in one pass. Default: `kernel`.
    pub replay_mode: ReplayMode,
    /// How ncu treats CUDA graphs. Default: `node`.
    pub graph_profiling: GraphProfiling,
    /// Profile only between cudaProfilerStart and cudaProfilerStop. Default: false.
    pub profiler_range: bool,
    /// Seconds after which ncu and everything below it is killed, up to a day. Default: 300.
    #[serde(rename = "timeout_s", deserialize_with = "range::seconds")]
    #[schemars(with = "f64")]
    pub timeout: Duration,
    /// Tiers that are accepted where the counters are denied: `kernel-times`, `static`. Default:
    /// none.
    #[serde(deserialize_with = "range::tiers")]
    #[schemars(with = "Vec<String>")]
    #[schemars(extend("x-stricter" = "fewer"))]
    pub accept_tiers: Vec<Tier>,
    /// Whether its times are those of the program as it runs, and counters are read only where these
    /// differ: no key.
    #[serde(skip_deserializing)]
    #[schemars(skip)]
    pub as_it_runs: bool,
    /// How often a measurement is repeated that failed because of the machine, 0 to 10. Default: 0.
    #[serde(deserialize_with = "range::count::<_, 0, 10>")]
    pub retries: u32,
}

impl Default for ProfileSettings {
    fn default() -> ProfileSettings {
        ProfileSettings {
            launches: 20,
            skip: 0,
            processes: 4,
            counted_launches: COUNTED_LAUNCHES,
            per_kernel: true,
            clock_control: ClockControl::Base,
            cache_control: CacheControl::All,
            replay_mode: ReplayMode::Kernel,
            graph_profiling: GraphProfiling::Node,
            profiler_range: false,
            timeout: Duration::from_secs(300),
            accept_tiers: Vec::new(),
            as_it_runs: false,
            retries: 0,
        }
    }
}

/// Launches that the counting phase profiles, or `launches` where these are fewer. Its counters are the
/// same in every launch of the same work: a second launch shows whether they are.
pub(super) const COUNTED_LAUNCHES: u32 = 2;

/// The same where a metric differs from launch to launch: the first does not count, and of the others one is
/// left out at each end.
const LAUNCHES_THAT_VARY: u32 = 9;

/// How the numbers are checked.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "verify")]
pub(super) struct VerifySettings {
    /// Seconds after which the verifying run, and each under compute-sanitizer, is killed. Default:
    /// 120.
    #[serde(rename = "timeout_s", deserialize_with = "range::seconds")]
    #[schemars(with = "f64")]
    pub timeout: Duration,
    /// Tools of compute-sanitizer that the verifying run is repeated under, such as `["memcheck"]`. Default: none.
    #[schemars(extend("x-stricter" = "further", "x-absent" = []))]
    pub sanitizer: Vec<SanitizerTool>,
}

impl Default for VerifySettings {
    fn default() -> VerifySettings {
        VerifySettings {
            timeout: Duration::from_secs(120),
            sanitizer: Vec::new(),
        }
    }
}

/// A metric of the gate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// The name that people read.
    pub alias: String,
    /// The counter, as the configured chip names it.
    pub counter: String,
    /// Which way it gets better.
    pub direction: Direction,
    /// How much worse is no regression.
    pub tolerance: Tolerances,
    /// Which capture measures it.
    pub phase: Phase,
    /// The same in each launch for the same work: a difference means different work, not another speed.
    pub exact: bool,
    /// What its counts stand for.
    pub counts: Option<Counts>,
    /// Smallest value allowed, in the counter's unit.
    pub min: Option<f64>,
    /// Largest value allowed, in the counter's unit.
    pub max: Option<f64>,
    /// What a regression does.
    pub level: Level,
    /// A regression, or an open result, only warns where the kernel became measurably faster.
    pub unless_faster: bool,
    /// A regression of a static metric only warns where the duration, measured side by side, is not
    /// worse.
    pub unless_as_fast: bool,
    /// How a static metric regresses.
    pub rule: StaticRule,
}

/// What one count of a counter stands for; such counters of a profile are added up, and the sum
/// must be what the suite declares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum Counts {
    /// So many floating-point operations.
    Flop(f64),
    /// So many bytes stored to global memory.
    BytesWritten(f64),
}

impl Toolchain {
    /// `major.minor` of the target; empty where its name does not say it.
    pub fn compute_capability(&self) -> String {
        let capability = capability_of_arch(&self.arch);
        capability.map_or_else(String::new, |(major, minor)| format!("{major}.{minor}"))
    }
}

impl Config {
    /// Whether it has the meaning of another one, whatever their texts are.
    pub fn means(&self, other: &Config) -> bool {
        let text = other.text.clone();
        *other
            == Config {
                text,
                ..self.clone()
            }
    }

    /// Every variant, in the order of the names.
    pub fn variants(&self) -> impl Iterator<Item = &Variant> {
        self.shared_variants().map(Arc::as_ref)
    }

    fn shared_variants(&self) -> impl Iterator<Item = &Arc<Variant>> {
        self.suites.iter().flat_map(|suite| &suite.variants)
    }

    /// The variant of that name.
    pub fn variant(&self, id: &VariantId) -> Option<&Variant> {
        self.variants().find(|variant| variant.id == *id)
    }

    /// What a variant is, in one line: its suite's description and its own.
    pub fn describe(&self, variant: &Variant) -> String {
        let suite = self
            .suites
            .iter()
            .find(|suite| suite.name == variant.id.suite);
        let parts = [
            suite.map_or("", |suite| &suite.description),
            &variant.description,
        ];
        joined(parts.into_iter().filter(|part| !part.is_empty()), "; ")
    }

    /// The variants that selectors cover or name. Without any: all. Experimental
    /// variants only when named by themselves or asked for.
    ///
    /// # Errors
    /// Says which name or pattern selects nothing.
    pub(super) fn select(
        &self,
        selectors: &[Selector],
        experimental: bool,
    ) -> Result<Vec<Arc<Variant>>, String> {
        for selector in selectors {
            let selects =
                |variant: &Variant| selector.names(&variant.id) || selector.covers(&variant.id);
            if !self.variants().any(selects) {
                return Err(self.selects_nothing(&selector.text));
            }
            let is_shown = |it: &&Variant| {
                selector.names(&it.id)
                    || selector.covers(&it.id) && (experimental || !it.experimental)
            };
            let mut hidden = self.variants().filter(|it| selector.covers(&it.id));
            if let (None, Some(first)) = (self.variants().find(is_shown), hidden.next()) {
                return Err(format!(
                    "`{}` has experimental variants alone: pass --experimental, or name one, such as {}",
                    selector.text, first.id
                ));
            }
        }
        Ok(self
            .shared_variants()
            .filter(|variant| {
                let named = selectors.iter().any(|one| one.names(&variant.id));
                let covered =
                    selectors.is_empty() || selectors.iter().any(|one| one.covers(&variant.id));
                named || covered && (experimental || !variant.experimental)
            })
            .cloned()
            .collect())
    }

    /// Everything that is the name of a variant or a suite.
    pub fn selectable(&self) -> Vec<String> {
        let variants = self.variants();
        let mut names: Vec<String> = variants.map(|variant| variant.id.to_string()).collect();
        names.extend(self.suites.iter().map(|suite| suite.name.clone()));
        names.extend(self.variants().map(|variant| variant.id.variant.clone()));
        names.sort();
        names.dedup();
        names
    }

    fn selects_nothing(&self, text: &str) -> String {
        let known = self.selectable();
        let is_pattern = text.contains(['*', '?', '[']);
        let suites: Vec<&str> = self
            .suites
            .iter()
            .map(|suite| suite.name.as_str())
            .collect();
        let slip = text.split_once('/').and_then(|(suite, rest)| {
            let near = nearest(suite, &suites).filter(|near| *near != suite)?;
            let meant = format!("{near}/{rest}");
            let of_suite = suggest_variant(&meant, &known);
            let is_known = is_pattern || known.contains(&meant) || !of_suite.ends_with('?');
            Some(if is_known {
                format!("did you mean `{meant}`?")
            } else {
                of_suite
            })
        });
        let help = if text.starts_with('-') {
            "arguments of a program are `args` in the configuration".to_owned()
        } else if text.contains(',') {
            "several names are arguments of their own: `SUITE/A SUITE/B`".to_owned()
        } else if text == "static" {
            "the option is `--static`".to_owned()
        } else if ["memcheck", "racecheck", "initcheck", "synccheck"].contains(&text) {
            "several tools are one argument: `--sanitizer memcheck,racecheck`".to_owned()
        } else if text.starts_with('=') || text.parse::<f64>().is_ok() {
            "a constant is one word: `-D NAME=VALUE`".to_owned()
        } else if disk::is_there(text) {
            "it is a file, and variants have names; a pattern of names is quoted: 'SUITE/*'"
                .to_owned()
        } else if git::commit_of(&self.root, text).is_some() {
            format!("it is a git revision: `--against {text}`")
        } else if let Some(slip) = slip {
            slip
        } else {
            match suggest_variant(text, &known) {
                near if near.ends_with('?') || !near.starts_with("known are ") => near,
                _ if known.len() > 20 => format!("{} names are known", known.len()),
                list if text.contains('/') || is_pattern => list,
                list => format!("{list}; several words of `--reason` are quoted"),
            }
        };
        let is_called = if is_pattern { "matches" } else { "is called" };
        format!("no variant or suite {is_called} `{text}`: {help} (`sparsek-gate list` shows all)")
    }
}

impl Variant {
    /// Whether this tool calls nvcc for it.
    pub fn needs_nvcc(&self) -> bool {
        matches!(self.recipe, Recipe::Nvcc { .. })
    }

    /// Its filter of kernels. A pattern that only ncu understands matches every kernel.
    pub fn kernel_filter(&self) -> KernelFilter {
        KernelFilter::of(self.kernels.as_deref()).unwrap_or(KernelFilter::All)
    }

    /// Why it has no static gate; `None` where it has one.
    pub fn why_no_static_gate(&self) -> Option<&'static str> {
        let gated = |metric: &Metric| metric.level != Level::Record;
        match self.recipe {
            Recipe::Command { ref code, .. } if code.is_empty() && !self.loaded_code => {
                Some("this tool does not build its program, and no `program` that counts is stated")
            }
            _ if self.static_metrics.iter().any(gated) => None,
            _ => Some("every static metric is only recorded"),
        }
    }

    /// Why nothing of it can be judged without a GPU; `None` where a build shows its code.
    pub fn why_nothing_without_gpu(&self) -> Option<&'static str> {
        let loaded = "its machine code is loaded while it runs (`loaded_code`), so that only a measurement shows it";
        self.why_no_static_gate()
            .or(self.loaded_code.then_some(loaded))
    }

    /// Whether its kernels are read from machine code, without the text of a compiler.
    pub fn from_machine_code(&self) -> bool {
        matches!(&self.recipe, Recipe::Command { code, .. } if !code.is_empty())
    }

    /// The metrics that explain, of those that it does not state itself. They are counted where anything is,
    /// and never judged.
    pub fn explaining(&self) -> Vec<Metric> {
        let stated = |role: &Role| self.metrics.iter().any(|one| one.role() == Some(*role));
        let roles = Role::EXPLAINING.iter().filter(|role| !stated(role));
        let counters = roles.filter_map(|role| role.on(Some(self.explained_on?)));
        let metric = |counter| Metric {
            phase: Phase::Counting,
            ..Metric::shown(counter, counter)
        };
        counters.map(metric).collect()
    }

    /// The counters that a phase reads.
    pub fn counters_of(&self, phase: Phase) -> Vec<String> {
        let all = self.metrics.iter().cloned().chain(self.explaining());
        let counters = all.filter(|metric| metric.phase == phase);
        counters.map(|metric| metric.counter).collect()
    }

    /// What the aliases of the metrics that a tier measures stand for, and which phase measures each.
    pub fn counters_on(&self, tier: Tier) -> BTreeMap<String, (String, Phase)> {
        let all = self.metrics.iter().cloned().chain(self.explaining());
        all.filter(|metric| measures(tier, &metric.counter, metric.phase))
            .map(|metric| (metric.alias, (metric.counter, metric.phase)))
            .collect()
    }

    /// Whether any of its metrics is measured in this phase.
    pub fn has_phase(&self, phase: Phase) -> bool {
        self.has_phase_on(Tier::Counters, phase)
    }

    /// Whether a tier measures any of its metrics in this phase.
    pub fn has_phase_on(&self, tier: Tier, phase: Phase) -> bool {
        let mut metrics = self.metrics.iter();
        metrics.any(|metric| metric.phase == phase && measures(tier, &metric.counter, phase))
    }

    /// Whether the configuration takes a profile of this lower tier for a measurement.
    pub fn accepts(&self, tier: Tier) -> bool {
        self.profile.accept_tiers.contains(&tier)
    }

    /// Launches that are profiled in one process of a phase.
    pub fn launches(&self, phase: Phase) -> u32 {
        match phase {
            Phase::Timing => self.profile.launches,
            Phase::Counting => self.profile.counted_launches,
        }
    }

    /// How many steps a program makes, if `{launches}` in its arguments states that; else `None`.
    pub fn steps(&self) -> Option<u32> {
        let mut words = self.args.iter().chain(&self.profile_args);
        let states = words.any(|word| word.contains("{launches}"));
        states.then(|| self.launches_needed(Phase::Timing))
    }

    /// Which of the launches that match its filter are measured in a phase. Of a program that is timed as
    /// it runs, every launch has a time.
    pub fn selection(&self, phase: Phase) -> LaunchSelection {
        LaunchSelection {
            skip: self.profile.skip,
            count: match phase {
                Phase::Timing if self.profile.as_it_runs => u32::MAX,
                _ => self.launches(phase),
            },
            per_kernel: self.profile.counts_each_kernel(),
        }
    }

    /// The same variant, timed as its program runs: every launch of every selected kernel has a time, and the
    /// other metrics are counted in one process. `beside_base` says with what it is compared. `None` where it
    /// has no duration, and where only ncu knows its launches.
    pub fn timed_as_it_runs(&self, beside_base: bool) -> Option<Variant> {
        let settings = &self.profile;
        let is_seen = settings.has_kernels() && KernelFilter::of(self.kernels.as_deref()).is_ok();
        if !is_seen || !self.has_phase_on(Tier::KernelTimes, Phase::Timing) {
            return None;
        }
        let mut timed = self.clone();
        let profile = &mut timed.profile;
        (profile.as_it_runs, profile.per_kernel) = (true, true);
        for metric in &mut timed.metrics {
            if metric.role() != Some(Role::Duration) && metric.phase == Phase::Timing {
                metric.phase = Phase::Counting;
                let tolerance = match beside_base {
                    true => metric.tolerance.against,
                    false => metric.tolerance.stored,
                };
                if tolerance.is_some() && metric.level != Level::Record {
                    let counted = settings.launches.min(LAUNCHES_THAT_VARY);
                    profile.counted_launches = settings.counted_launches.max(counted);
                }
            }
        }
        Some(timed)
    }

    /// Launches that the program must make to be profiled in full, of each kernel where these are
    /// counted by themselves.
    pub fn launches_needed(&self, phase: Phase) -> u32 {
        self.launches(phase).saturating_add(self.profile.skip)
    }
}

impl ProfileSettings {
    /// Whether what ncu measures is a kernel, and no range and no whole graph.
    pub fn has_kernels(&self) -> bool {
        let by_kernel = matches!(
            self.replay_mode,
            ReplayMode::Kernel | ReplayMode::Application
        );
        by_kernel && self.graph_profiling == GraphProfiling::Node
    }

    /// Whether launches are counted for each kernel by itself.
    pub fn counts_each_kernel(&self) -> bool {
        self.per_kernel && self.has_kernels()
    }

    /// The most processes of a profile.
    pub fn most_processes(&self) -> u32 {
        self.processes.saturating_mul(2)
    }
}

#[cfg(test)]
mod tests {
    use crate::config::tests::config;

    #[test]
    fn configurations_of_one_meaning_are_equal_and_of_another_one_are_not() {
        let variant = "[suite.s.variant.v]\nsource = \"v.cu\"\n";
        let paths = |paths: &str| config(&format!("{variant}[paths]\n{paths}"));
        let one = paths("baselines = \"b\"\nunread = [\"*.md\"]");
        assert!(one.means(&paths("# Why.\nunread = [ '*.md' ]\nbaselines = './b/'")));
        for other in [
            "baselines = \"b\"",
            "baselines = \"b\"\nunread = [\"*.m?\"]",
            "baselines = \"c\"\nunread = [\"*.md\"]",
            "baselines = \"b\"\nunread = [\"*.md\"]\n[trust]\nresume = true",
            "baselines = \"b\"\nunread = [\"*.md\"]\n[suite.s]\nkernels = \"k\"",
        ] {
            assert!(!one.means(&paths(other)), "{other}");
        }
    }
}
