//! The command line.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::builder::{
    NonEmptyStringValueParser, PathBufValueParser, PossibleValuesParser, TypedValueParser,
};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::config::{
    CacheControl, ClockControl, GraphProfiling, ReplayMode, SanitizerTool, Selection,
};
use crate::device::GpusAsked;
use crate::engine::engine_parser;
use crate::git::behind_own_links;
use crate::plan::{MOST_SLICES, SlicePlace};
use crate::report::{Detail, Form, form_parser};

/// A path, behind links that its user made.
fn own_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(behind_own_links)
}

/// A whole number of a range; one without a limit ends at `u32::MAX`.
fn whole_number(
    range: RangeInclusive<u32>,
) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| match range.end() {
            &u32::MAX => format!("it is a whole number, {} or more", range.start()),
            most => format!("it is a whole number, {} to {most}", range.start()),
        })
    }
}

/// The number of a pull request.
fn number_of_request(text: &str) -> Result<u64, &'static str> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or(match text.is_empty() {
        true => "the variable that names it is empty: leave the option out there",
        false => "it is a number, 1 or more",
    })
}

/// A git revision.
fn revision(text: &str) -> Result<String, &'static str> {
    let is_cut = text.starts_with("refs/") && text.ends_with('/');
    Err(match text {
        _ if is_cut || matches!(text, "" | "origin/" | "upstream/") => {
            "the variable that names the branch is empty, as `github.base_ref` is outside of pull requests: leave the option out there, or name the branch, as in `refs/remotes/origin/main`; a `git describe` that prints nothing found no tag: fetch the tags, or make one"
        }
        _ if text.contains('$') => {
            "nothing replaced the variable in it: only a workflow file of GitHub replaces `${{ … }}`, and a shell replaces no `$NAME` between single quotes; in a script write \"refs/remotes/origin/$GITHUB_BASE_REF\", on GitLab \"refs/remotes/origin/$CI_MERGE_REQUEST_TARGET_BRANCH_NAME\""
        }
        _ => return Ok(text.to_owned()),
    })
}

/// The version, and the commit that the tool was built from with its date, where they are known.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("SPARSEK_GATE_ORIGIN"));

const EXIT_CODES: &str = "\
Exit codes:
  0   every gate passed
  1   a gated metric regressed
  2   usage or configuration
  3   a tool, the GPU or the permission is missing
  4   a baseline is missing, tampered with or not comparable, or the kernel does other work
  5   a variant failed: build, wrong numbers, crash, time-out, unreadable output
  6   inconclusive or not measured, and nothing worse
  70  internal error
  130 interrupted
Among findings 5 outranks 3, 3 outranks 4, 4 outranks 1, 1 outranks 6.";

const COMPARE_HELP: &str = "\
Examples:
  sparsek-gate compare './bench_old --n 4096' './bench_new --n 4096'
  sparsek-gate compare './bench --n 4096'
  sparsek-gate compare before.ncu-rep after.ncu-rep

Programs are judged by the rule of `check --against`. Stored measurements (folders, profile.json,
.ncu-rep, CSV) are shown side by side.";

const ARCHIVE_HELP: &str = "\
Examples:
  sparsek-gate archive --output gate.tar.zst
  sparsek-gate archive --output gate.tar.zst --against refs/remotes/origin/main
  sparsek-gate profile --archive gate.tar.zst --slice 2/8 --output slices/2   # on a machine with a GPU

Prints the SHA-256 of the file, for `check --from --archive-sha256`. Equal content makes an equal file.
A variant that cannot be built is reported, and is part of the archive as one that failed.";

const PLAN_HELP: &str = "\
Examples:
  sparsek-gate plan --slices 8
  sparsek-gate plan --slices 8 --format github >.github/workflows/gpu-check.yml
  sparsek-gate plan --slices 8 --format slurm >gate.sh && sh gate.sh --partition=h200

Replace owners, images and tags with your own. docs/many-gpus.md says more.";

/// Gate CUDA kernels on the hardware counters that Nsight Compute reads.
///
/// From one config.toml: build every variant of a kernel, check that its numbers are right,
/// profile it under ncu, lock the measured profiles, and fail when a kernel gets worse.
#[derive(Debug, Parser)]
#[command(version = VERSION, after_long_help = EXIT_CODES, propagate_version = true)]
pub struct Cli {
    /// The configuration file.
    #[arg(long, short = 'C', global = true, value_parser = own_path(), value_name = "FILE", default_value = crate::config::FILE_NAME)]
    pub config: PathBuf,
    /// When to use colours: `auto`, `always` or `never`.
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true
    )]
    pub color: clap::ColorChoice,
    /// End with 3 instead of waiting for another sparsek-gate.
    #[arg(long, global = true)]
    pub no_wait: bool,
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a config.toml for a new project.
    #[command(
        after_help = "Examples:\n  sparsek-gate init\n  sparsek-gate init --all\n  sparsek-gate init -- ./bench --n 4096\n\nWith a program, it is run once under ncu, in the folder of the configuration. Its kernels that\ntake 5 % of the time or more become the suite: the filter, the launches of whole steps, and those\nto skip. Read what was written: a run shows what is launched, and not which of it matters."
    )]
    Init(InitArgs),
    /// Check what this machine can do, and how to fix what it cannot; changes nothing.
    #[command(
        after_help = "Examples:\n  sparsek-gate doctor\n  sparsek-gate doctor --format json | jq '.checks[] | select(.state == \"fail\")'\n\nExits with 0, or with 3 if something that the configuration needs does not work."
    )]
    Doctor {
        /// Output format.
        #[arg(long, default_value = "text")]
        format: Format,
    },
    /// Build, verify, run under ncu, normalize; keeps report, CSV, logs and argv.
    #[command(
        after_help = "Examples:\n  sparsek-gate profile\n  sparsek-gate profile bsr_gemm/cp_async -D SMEM_PAD=0 --output trial\n\nA variant whose numbers are wrong is never profiled. Captures (report, CSV, logs, argv) stay\nbeside each profile."
    )]
    Profile(ProfileArgs),
    /// Lock the latest profiles as baselines, or verify or show the locked ones.
    #[command(
        after_help = "Examples:\n  sparsek-gate baseline --lock --reason 'faster epilogue' bsr_gemm/cp_async\n  sparsek-gate baseline --verify --captures captures\n  sparsek-gate baseline --show"
    )]
    Baseline(BaselineArgs),
    /// Verify the locks, measure, compare with the baselines, report, and set the exit code.
    #[command(
        after_help = "Examples:\n  sparsek-gate check\n  sparsek-gate check --from profiles --report out.md\n  sparsek-gate check --static\n  sparsek-gate check bsr_gemm --format json"
    )]
    Check(CheckArgs),
    /// Measure two programs side by side and judge the second by the first; or show what one
    /// launches.
    ///
    /// Each program is one argument, run without a shell.
    #[command(after_help = COMPARE_HELP)]
    Compare(CompareArgs),
    /// Render the outcome of a check again, in another form.
    ///
    /// Nothing is computed again. An outcome of an unknown version of the format, or one whose findings
    /// do not give its exit code, is rejected.
    #[command(
        after_help = "Exits with 0 after rendering, whatever the outcome says.\n\nExamples:\n  sparsek-gate check --report outcome.json\n  sparsek-gate report outcome.json --report report.html --report junit.xml\n  sparsek-gate report outcome.json --format markdown"
    )]
    Report(ReportArgs),
    /// List variants with their programs, kernels and baselines.
    #[command(
        after_help = "Examples:\n  sparsek-gate list\n  sparsek-gate list 'bsr_gemm/tma*'\n  sparsek-gate list --format json | jq -r '.variants[].variant'\n\nWithout a name experimental variants are listed too."
    )]
    List(ListArgs),
    /// Build variants with nvcc, in parallel; an unchanged variant is not built again.
    #[command(
        after_help = "Examples:\n  sparsek-gate build\n  sparsek-gate build bsr_gemm/cp_async -D STAGES=3"
    )]
    Build(StageArgs),
    /// Build variants and run the check of each: are its numbers right?
    #[command(
        after_help = "Examples:\n  sparsek-gate verify bsr_gemm\n  sparsek-gate verify --sanitizer memcheck,racecheck\n\nThe program decides: exit status 0, and `\"correct\": true` in its result file if verify_args\npass it one as {result}."
    )]
    Verify(VerifyArgs),
    /// Make a profile of .ncu-rep files or CSVs that were recorded elsewhere, one for each process.
    #[command(
        after_help = "Examples:\n  sparsek-gate import theirs.ncu-rep --variant bsr_gemm/baseline\n  sparsek-gate import run-*.ncu-rep --variant bsr_gemm/baseline\n  sparsek-gate import raw.csv --variant bsr_gemm/baseline --clock-control none \\\n      --cache-control all --replay-mode kernel --graph-profiling node\n\nA condition that is neither in the file nor stated is unknown. Such a profile cannot be compared."
    )]
    Import(ImportArgs),
    /// Show what is in a .ncu-rep or CSV: kernels, launches, metrics, units, provenance.
    #[command(
        after_help = "Examples:\n  sparsek-gate inspect report.ncu-rep\n  sparsek-gate inspect report.ncu-rep --metric throughput\n  sparsek-gate inspect report.ncu-rep --format json | jq '.launches[0].metrics | keys'"
    )]
    Inspect(InspectArgs),
    /// Copy a capture or a folder of captures without paths, names, sources and machine code.
    #[command(
        after_help = "Examples:\n  sparsek-gate strip report.ncu-rep public.ncu-rep\n  sparsek-gate strip .sparsek-gate/profiles published"
    )]
    Strip(StripArgs),
    /// Pack what a machine with a GPU needs into one file: programs, configuration, rules, locks.
    ///
    /// Needs nvcc and git, but no GPU. The machine that measures needs neither of them:
    /// `profile --archive FILE`.
    #[command(after_help = ARCHIVE_HELP)]
    Archive(ArchiveArgs),
    /// Show the slices of a check, or print the pipeline, manifest or script that measures them.
    ///
    /// Runs nothing. What is printed packs an archive, measures its slices on other machines, and
    /// judges them with `check --from`.
    #[command(after_help = PLAN_HELP)]
    Plan(PlanArgs),
    /// Print the JSON Schema of the configuration, the completions of a shell, or the man pages.
    #[command(subcommand)]
    Generate(Generated),
    /// Launch one empty kernel, for the doctor to profile.
    #[command(hide = true)]
    Probe {
        /// CUDA ordinal of the GPU.
        #[arg(long, default_value_t = 0)]
        device: u32,
    },
}

/// Arguments of `list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// Selected variants.
    #[command(flatten)]
    pub selection: Selection,
    /// Print only what selects variants, one name a line.
    #[arg(long = "names", conflicts_with = "format")]
    pub names_only: bool,
    /// Output format.
    #[arg(long, default_value = "text")]
    pub format: Format,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For scripts.
    Json,
}

/// How much is printed.
#[derive(Args, Clone, Copy, Debug)]
pub struct Verbosity {
    /// Print all tables and values.
    #[arg(long, short, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Print the verdict alone.
    #[arg(long, short)]
    pub quiet: bool,
}

impl Verbosity {
    /// The same in one word.
    pub fn detail(self) -> Detail {
        match self {
            Verbosity { quiet: true, .. } => Detail::Verdict,
            Verbosity { verbose: true, .. } => Detail::All,
            _ => Detail::Attention,
        }
    }
}

/// Arguments of `init`.
#[derive(Args, Debug)]
pub struct InitArgs {
    /// Write every key with its meaning, instead of a short configuration.
    #[arg(long)]
    pub all: bool,
    /// Replace an existing file.
    #[arg(long)]
    pub force: bool,
    /// CUDA ordinal of the GPU; with a program.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "program", value_parser = whole_number(0..=u32::MAX))]
    pub gpu: u32,
    /// Run this program once under ncu, and write a configuration for what it launches.
    #[arg(last = true, value_name = "PROGRAM")]
    pub program: Vec<String>,
}

/// Arguments of `verify`.
#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// The arguments of `build`.
    #[command(flatten)]
    pub stage: StageArgs,
    /// Repeat the verifying run under these tools of compute-sanitizer, instead of those in
    /// `verify.sanitizer`.
    #[arg(long, value_name = "TOOL", value_delimiter = ',', value_parser = sanitizer_tools())]
    pub sanitizer: Vec<SanitizerTool>,
}

/// Arguments of `build`.
#[derive(Args, Debug)]
pub struct StageArgs {
    /// Selected variants.
    #[command(flatten)]
    pub selection: Selection,
    /// Set a preprocessor constant for this run only. Such a profile cannot be locked.
    #[arg(long, short = 'D', allow_hyphen_values = true)]
    #[arg(value_name = "NAME[=VALUE]")]
    pub define: Vec<String>,
    /// Output format.
    #[arg(long, default_value = "text")]
    pub format: Format,
}

/// Arguments of `profile`.
#[derive(Args, Debug)]
pub struct ProfileArgs {
    /// Selected variants.
    #[command(flatten)]
    pub selection: Selection,
    /// Set a preprocessor constant for this run only. Such a profile cannot be locked.
    #[arg(long, short = 'D', allow_hyphen_values = true)]
    #[arg(value_name = "NAME[=VALUE]")]
    pub define: Vec<String>,
    /// Folder for profiles and captures [default: profiles in the work folder]
    #[arg(long, short, value_parser = own_path(), value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Go on with a run that was interrupted: what it measured of the same programs is used.
    #[arg(long)]
    pub resume: bool,
    /// Profile every variant on each of these GPUs of this host at once: `all`, ordinals or UUIDs.
    /// `baseline --lock` locks from all of them. With --against or --archive, share the variants out.
    #[arg(long, value_name = "GPUS", conflicts_with = "define")]
    pub gpus: Option<GpusAsked>,
    /// Measure this git revision too, in turn on the same GPU, for `check --from`.
    #[arg(
        long,
        value_parser = revision, value_name = "REV",
        requires = "output",
        conflicts_with = "define"
    )]
    pub against: Option<String>,
    /// Measure what `archive` packed, for `check --from --archive`.
    #[arg(long, value_name = "FILE", requires = "output", conflicts_with_all = ["names", "experimental", "define", "against", "baseline_ref", "accept", "pull_request"])]
    pub archive: Option<PathBuf>,
    /// Refuse an archive with another SHA-256.
    #[arg(long, value_name = "HASH", requires = "archive", value_parser = NonEmptyStringValueParser::new())]
    pub archive_sha256: Option<String>,
    /// Measure this slice, such as `2/8`, for `check --from` with the others.
    #[arg(long, value_name = "I/N", requires = "output", conflicts_with_all = ["define", "gpus"])]
    pub slice: Option<SlicePlace>,
    /// Whose rules count.
    #[command(flatten)]
    pub trusted: TrustArgs,
    /// Output format.
    #[arg(long, default_value = "text")]
    pub format: Format,
    /// How much is printed.
    #[command(flatten)]
    pub verbosity: Verbosity,
}

/// Arguments of `import`.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// A .ncu-rep or .ncu-repz, or the CSV of its raw page; one for each process.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The variant that was recorded.
    #[arg(long, value_name = "VARIANT")]
    pub variant: String,
    /// Folder for profiles and captures [default: profiles in the work folder]
    #[arg(long, short, value_parser = own_path(), value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// The clock control, where the file does not say it: base (ncu's default) or none.
    #[arg(long, value_parser = parse_spelled::<ClockControl>)]
    pub clock_control: Option<ClockControl>,
    /// The cache control, where the file does not say it: all (ncu's default) or none.
    #[arg(long, value_parser = parse_spelled::<CacheControl>)]
    pub cache_control: Option<CacheControl>,
    /// The replay mode, where the file does not say it: kernel (ncu's default), application, range or
    /// app-range.
    #[arg(long, value_parser = parse_spelled::<ReplayMode>)]
    pub replay_mode: Option<ReplayMode>,
    /// How graphs were profiled, where the file does not say it: node (ncu's default) or graph.
    #[arg(long, value_parser = parse_spelled::<GraphProfiling>)]
    pub graph_profiling: Option<GraphProfiling>,
    /// Output format.
    #[arg(long, default_value = "text")]
    pub format: Format,
}

/// Arguments of `inspect`.
#[derive(Args, Debug)]
pub struct InspectArgs {
    /// A .ncu-rep, .ncu-repz or a CSV.
    pub file: PathBuf,
    /// All launches, with the metrics whose names contain this text.
    #[arg(long, value_name = "TEXT")]
    pub metric: Option<String>,
    /// All launches, with all metrics.
    #[arg(long, conflicts_with = "metric")]
    pub all: bool,
    /// Output format.
    #[arg(long, default_value = "text")]
    pub format: Format,
}

/// The actions of `baseline` but for `--lock`. clap does not enforce `requires` between an option and an
/// action where another action is given.
const NOT_LOCK: [&str; 2] = ["verify", "show"];

/// Arguments of `baseline`.
#[derive(Args, Debug)]
#[command(mut_arg("verbose", |option| option.conflicts_with_all(NOT_LOCK)))]
#[command(mut_arg("quiet", |option| option.conflicts_with_all(NOT_LOCK)))]
#[command(group(clap::ArgGroup::new("action").required(true).args(["lock", "verify", "show"])))]
pub struct BaselineArgs {
    /// Selected variants.
    #[command(flatten)]
    pub selection: Selection,
    /// Accept the latest profiles as baselines; requires --reason.
    #[arg(long, requires = "reason")]
    pub lock: bool,
    /// With --lock: lock only the static profiles.
    #[arg(long, requires = "lock", conflicts_with_all = NOT_LOCK)]
    pub r#static: bool,
    /// Verify that the locked files are unchanged; with --captures, also the numbers.
    #[arg(long)]
    pub verify: bool,
    /// Show the locked values and the ledger.
    #[arg(long)]
    pub show: bool,
    /// Why the profiles are accepted; goes into the ledger.
    #[arg(long, value_name = "TEXT", requires = "lock", conflicts_with_all = NOT_LOCK)]
    pub reason: Option<String>,
    /// Who accepts [default: git's user.name]
    #[arg(long, value_name = "NAME")]
    pub who: Option<String>,
    /// Folder of the profiles to lock [default: profiles in the work folder]. Repeatable for several
    /// GPUs of one model.
    #[arg(long, value_parser = own_path(), value_name = "DIR", requires = "lock", conflicts_with_all = NOT_LOCK)]
    pub from: Vec<PathBuf>,
    /// Derive every locked number again from the captures in this folder.
    #[arg(long, value_parser = own_path(), value_name = "DIR", requires = "verify", conflicts_with_all = ["lock", "show"])]
    pub captures: Option<PathBuf>,
    /// Lock nothing if a selected variant cannot be locked.
    #[arg(long, requires = "lock", conflicts_with_all = NOT_LOCK)]
    pub all_or_none: bool,
    /// Lock even if the environment variable CI is set.
    #[arg(long, requires = "lock", conflicts_with_all = NOT_LOCK)]
    pub in_ci: bool,
    /// Also lock profiles that were imported, not measured by this tool.
    #[arg(long, requires = "lock", conflicts_with_all = NOT_LOCK)]
    pub accept_imported: bool,
    /// Also lock an immutable variant whose sources or flags changed.
    #[arg(long, requires = "lock", conflicts_with_all = NOT_LOCK)]
    pub accept_immutable: bool,
    /// How much is printed.
    #[command(flatten)]
    pub verbosity: Verbosity,
    /// Output format.
    #[arg(long, default_value = "text")]
    pub format: Format,
}

/// Arguments of `report`.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// An outcome, as `check --report FILE.json` writes it.
    pub outcome: PathBuf,
    /// Also write the report to this file, whose ending names the form. Repeatable.
    #[arg(long, value_name = "[FORMAT:]FILE")]
    pub report: Vec<PathBuf>,
    /// How much is printed.
    #[command(flatten)]
    pub verbosity: Verbosity,
    /// Output format.
    #[arg(long, default_value = "text", value_parser = form_parser())]
    pub format: &'static Form,
}

/// Arguments of `strip`.
#[derive(Args, Debug)]
pub struct StripArgs {
    /// A .ncu-rep, a .ncu-repz, a CSV, a profile, or a folder of them.
    pub from: PathBuf,
    /// The path of the copy; must not exist.
    pub to: PathBuf,
    /// Keep the machine code in a report, without its debug information.
    #[arg(long)]
    pub keep_machine_code: bool,
    /// Output format.
    #[arg(long, default_value = "text")]
    pub format: Format,
}

/// Arguments of `check`.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Selected variants.
    #[command(flatten)]
    pub selection: Selection,
    /// Judge what `profile` measured into this folder, or a recording, instead of measuring.
    /// Repeatable.
    #[arg(long, value_parser = own_path(), value_name = "DIR")]
    pub from: Vec<PathBuf>,
    /// Measure this git revision too, in turn on the same GPU.
    #[arg(long, value_parser = revision, value_name = "REV", conflicts_with = "from")]
    pub against: Option<String>,
    /// A pass needs the whole interval within the tolerance.
    #[arg(long, conflicts_with_all = ["static", "gpus", "archive"])]
    pub strict: bool,
    /// Also measure variants whose program is the same on both sides.
    #[arg(long, requires = "against", conflicts_with_all = ["from", "static"])]
    pub measure_all: bool,
    /// Judge only what the compiler makes. Requires no GPU.
    #[arg(long, conflicts_with = "from")]
    pub r#static: bool,
    /// Whose rules count.
    #[command(flatten)]
    pub trusted: TrustArgs,
    /// Folder for new profiles and captures [default: profiles in the work folder]
    #[arg(long, short, value_parser = own_path(), value_name = "DIR", conflicts_with = "from")]
    pub output: Option<PathBuf>,
    /// Go on with a check that was interrupted: what it measured of the same programs is used.
    #[arg(long, conflicts_with_all = ["from", "static", "gpus"])]
    pub resume: bool,
    /// Judge by the rules that `archive` packed what was measured of it. Requires --from and --archive-sha256.
    #[arg(long, value_name = "FILE", requires_all = ["from", "archive_sha256"], conflicts_with_all = ["names", "experimental", "against", "static", "baseline_ref", "accept", "pull_request"])]
    pub archive: Option<PathBuf>,
    /// Refuse an archive with another SHA-256.
    #[arg(long, value_name = "HASH", requires = "archive", value_parser = NonEmptyStringValueParser::new())]
    pub archive_sha256: Option<String>,
    /// Measure on these GPUs of this host at once: `all`, ordinals or UUIDs.
    #[arg(long, value_name = "GPUS", conflicts_with_all = ["from", "static", "output"])]
    pub gpus: Option<GpusAsked>,
    /// Also write the report to this file, whose ending names the form. Repeatable.
    #[arg(long, value_name = "[FORMAT:]FILE")]
    pub report: Vec<PathBuf>,
    /// How much is printed.
    #[command(flatten)]
    pub verbosity: Verbosity,
    /// Output format.
    #[arg(long, default_value = "text", value_parser = form_parser())]
    pub format: &'static Form,
}

/// Arguments of `archive`.
#[derive(Args, Debug)]
pub struct ArchiveArgs {
    /// Selected variants.
    #[command(flatten)]
    pub selection: Selection,
    /// The file to write, `.tar.zst`, in a folder that exists.
    #[arg(long, short, value_parser = own_path(), value_name = "FILE")]
    pub output: PathBuf,
    /// Also pack this git revision, to measure both, interleaved on the same GPU.
    #[arg(long, value_parser = revision, value_name = "REV")]
    pub against: Option<String>,
    /// Also pack variants whose program is the same on both sides for measuring.
    #[arg(long, requires = "against")]
    pub measure_all: bool,
    /// Whose rules count.
    #[command(flatten)]
    pub trusted: TrustArgs,
    /// Output format.
    #[arg(long, default_value = "text")]
    pub format: Format,
}

/// Arguments of `plan`.
#[derive(Args, Debug)]
pub struct PlanArgs {
    /// Selected variants.
    #[command(flatten)]
    pub selection: Selection,
    /// How many slices, each for a machine with one GPU, at most one for each variant [default: 8]
    #[arg(long, value_name = "N", value_parser = whole_number(1..=MOST_SLICES))]
    pub slices: Option<u32>,
    /// Measure beside this git revision.
    #[arg(long, value_parser = revision, value_name = "REV")]
    pub against: Option<String>,
    /// What to print.
    #[arg(long, default_value = "text", value_parser = engine_parser())]
    pub format: String,
}

/// Whose rules count.
#[derive(Args, Clone, Debug)]
pub struct TrustArgs {
    /// Judge by the rules and locks of this revision; `none`: of the working tree [default: the base that
    /// the CI service names]
    #[arg(long, value_parser = revision, value_name = "REV")]
    pub baseline_ref: Option<String>,
    /// Accept what a finding reports, by the token that it prints. Repeatable.
    #[arg(long, value_name = "TOKEN", value_delimiter = ',')]
    pub accept: Vec<String>,
    /// The number of the pull request [default: as the CI service names it]
    #[arg(long, value_name = "N", value_parser = number_of_request)]
    pub pull_request: Option<u64>,
}

/// Arguments of `compare`.
#[derive(Args, Debug)]
pub struct CompareArgs {
    /// A program with its arguments, machine code, or a stored measurement.
    #[arg(value_name = "COMMAND", required_unless_present = "nvcc", num_args = 1..)]
    pub programs: Vec<String>,
    /// Compare the machine code of executables, as of libraries.
    #[arg(long = "static")]
    pub only_code: bool,
    /// Compile variants with this nvcc, then another, and compare the code.
    #[arg(long, value_name = "NVCC")]
    pub nvcc: Vec<PathBuf>,
    /// How much is printed.
    #[command(flatten)]
    pub verbosity: Verbosity,
    /// Run this first; it must exit with 0. Once for both, or for each.
    #[arg(long, value_name = "CMD")]
    pub verify: Vec<String>,
    /// Which kernels to measure, `NAME` or `regex:PATTERN` [default: all]
    #[arg(long, value_name = "FILTER")]
    pub kernels: Option<String>,
    /// Launches left out first; of two programs, of each kernel [default: 0]
    #[arg(long, value_name = "N", value_parser = whole_number(0..=u32::MAX))]
    pub skip: Option<u32>,
    /// Launches measured of one program, and `{launches}` in an argument. Of two, all are timed. [default: 20]
    #[arg(long, value_name = "N", value_parser = whole_number(1..=10_000))]
    pub launches: Option<u32>,
    /// How much longer a kernel, or all, may take, in percent [default: 0.5]
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_negative_numbers = true)]
    pub tolerance: Option<f64>,
    /// Seconds after which a process is killed [default: 300]
    #[arg(long, value_name = "SECONDS", value_parser = whole_number(1..=86_400))]
    pub timeout: Option<u32>,
    /// A pass needs the whole interval within the tolerance.
    #[arg(long)]
    pub strict: bool,
    /// Read counters whatever the times say.
    #[arg(long)]
    pub counters: bool,
    /// Whether ncu locks the clocks [default: none]
    #[arg(long, value_parser = parse_spelled::<ClockControl>)]
    pub clock_control: Option<ClockControl>,
    /// CUDA ordinal of the GPU [default: 0]
    #[arg(long, value_name = "N", value_parser = whole_number(0..=u32::MAX))]
    pub gpu: Option<u32>,
    /// Pass these variables to the programs.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub env_pass: Vec<String>,
    /// Keep profiles and captures in this folder.
    #[arg(long, short, value_parser = own_path(), value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Folder for logs [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    pub work: Option<PathBuf>,
    /// Also write the report to this file, whose ending names the form. Repeatable.
    #[arg(long, value_name = "[FORMAT:]FILE")]
    pub report: Vec<PathBuf>,
    /// Output format; of one program `text` or `json`.
    #[arg(long, default_value = "text", value_parser = form_parser())]
    pub format: &'static Form,
}

impl CompareArgs {
    /// The stated options that steer how programs are measured and judged.
    pub fn of_measuring(&self) -> String {
        let stated = [
            self.verify.first().map(|_| "--verify"),
            self.kernels.as_ref().map(|_| "--kernels"),
            self.skip.map(|_| "--skip"),
            self.launches.map(|_| "--launches"),
            self.tolerance.map(|_| "--tolerance"),
            self.timeout.map(|_| "--timeout"),
            self.strict.then_some("--strict"),
            self.counters.then_some("--counters"),
            self.clock_control.map(|_| "--clock-control"),
            self.gpu.map(|_| "--gpu"),
            self.env_pass.first().map(|_| "--env-pass"),
            self.output.as_ref().map(|_| "--output"),
        ];
        stated.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// A share that a tolerance may be.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches(['%', ' ']);
    let value: f64 = number
        .parse()
        .map_err(|_| "not a number of percent, such as 0.5")?;
    if (0.0..100.0).contains(&value) {
        Ok(value)
    } else {
        Err("must be at least 0 and below 100".to_owned())
    }
}

/// What `generate` prints.
#[derive(Debug, Subcommand)]
pub enum Generated {
    /// Print the JSON Schema of config.toml, for editors.
    #[command(
        after_help = "Editors with taplo (Even Better TOML) read its path in the first line of the configuration:\n  #:schema ./.sparsek-gate.schema.json\nwhich `sparsek-gate init` writes; after an update of sparsek-gate:\n  sparsek-gate generate schema > .sparsek-gate.schema.json"
    )]
    Schema {
        /// Print the schema of `check --format json` instead.
        #[arg(long)]
        outcome: bool,
    },
    /// Print the completions of a shell.
    #[command(
        after_help = "Examples:\n  sparsek-gate generate completions bash > ~/.local/share/bash-completion/completions/sparsek-gate\n  sparsek-gate generate completions fish > ~/.config/fish/completions/sparsek-gate.fish"
    )]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the man page, or write one for each subcommand.
    #[command(
        after_help = "Examples:\n  sparsek-gate generate man | man -l -\n  sparsek-gate generate man --output ~/.local/share/man/man1"
    )]
    Man {
        /// Folder to write a page for the program and for each subcommand to.
        #[arg(long, short, value_name = "DIR")]
        output: Option<PathBuf>,
    },
}

/// The tools, spelled as in the configuration.
fn sanitizer_tools() -> impl TypedValueParser<Value = SanitizerTool> {
    let names = SanitizerTool::ALL.iter().map(|tool| tool.as_str());
    PossibleValuesParser::new(names).try_map(|text| parse_spelled(&text))
}

/// The configuration's spelling of a choice, on the command line.
fn parse_spelled<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(serde_json::Value::String(text.to_owned()))
        .map_err(|error| error.to_string())
}
