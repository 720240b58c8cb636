//! The program ncu: where it is and how it is called.

use std::path::{Path, PathBuf};

use ncu_report::report;

use crate::config::{ClockControl, LaunchSelection, Toolchain, Variant};
use crate::disk;
use crate::finding::Error;
use crate::metric::Role;
use crate::terms::Phase;
use crate::toolchain::{Tool, configured, in_toolkit, versioned};

/// An ncu that was found. Its version is such as `2025.3.1.0`.
#[derive(Clone, Debug)]
pub struct Ncu(pub Tool);

impl Ncu {
    /// Where ncu is: the configuration, the PATH, `CUDA_HOME`, `CUDA_PATH`, the usual folders.
    ///
    /// # Errors
    /// [`Error::Environment`], with the places that were looked at.
    pub fn path(toolchain: &Toolchain) -> Result<PathBuf, Error> {
        let further = versioned("/opt/nvidia/nsight-compute", "");
        let path = in_toolkit("ncu", configured("ncu", &toolchain.ncu)?, None, further);
        path.map_err(|places| {
            Error::environment(
                format!("no ncu (NVIDIA Nsight Compute) was found; {places}"),
                "where a GPU is, install Nsight Compute (it comes with the CUDA toolkit), or set `toolchain.ncu`; \
                       without a GPU, `sparsek-gate check --static` judges compiled code, and `check --from DIR` what was recorded elsewhere",
            )
        })
    }

    /// Finds ncu and asks it for its version.
    ///
    /// # Errors
    /// [`Error::Environment`], with the places that were looked at.
    pub fn locate(toolchain: &Toolchain, work: &Path) -> Result<Ncu, Error> {
        Ok(Ncu(Tool::at(Ncu::path(toolchain)?, work)?.with_version()?))
    }

    /// The argv that profiles `program` (itself an argv) into one of `reports`. Counters alone need no section: ncu would read all of its section files before it
    /// starts the program, 0.4 s a process, so it is given an empty folder for them.
    pub fn profile_argv(
        &self,
        variant: &Variant,
        phase: Phase,
        stem: &Path,
        log: &Path,
        program: &[String],
    ) -> Vec<String> {
        let settings = &variant.profile;
        let mut counters = variant.counters_of(phase);
        counters.sort_unstable();
        counters.dedup();
        let mut options = Vec::new();
        let mut option = |name: &'static str, value: String| options.push((name, value));
        if !counters.is_empty() {
            option("--metrics", counters.join(","));
        }
        option("--section-folder", sections(stem).display().to_string());
        let selection = variant.selection(phase);
        match selection.per_kernel {
            true => {
                if variant.kernels.is_none() {
                    // Instances of a template are kernels of their own.
                    option("--kernel-name-base", "mangled".to_owned());
                }
                option("--kernel-id", kernel_id(variant, selection));
            }
            false => {
                option("--launch-skip", selection.skip.to_string());
                option("--launch-count", selection.count.to_string());
            }
        }
        option("--clock-control", settings.clock_control.to_string());
        option("--cache-control", settings.cache_control.to_string());
        option("--replay-mode", settings.replay_mode.to_string());
        option("--graph-profiling", settings.graph_profiling.to_string());
        option("--target-processes", "all".to_owned());
        let sass = match variant.loaded_code {
            true => "yes",
            false => "no",
        };
        option("--import-sass", sass.to_owned());
        option("--log-file", log.display().to_string());
        option("--export", stem.display().to_string());
        // An identifier contains the filter.
        if let (Some(filter), false) = (&variant.kernels, selection.per_kernel) {
            option("--kernel-name", filter.clone());
        }
        if settings.profiler_range {
            option("--profile-from-start", "off".to_owned());
        }
        self.argv(options, program)
    }

    /// The argv that reads one counter of one launch of `program`, into one of `reports`.
    pub fn probe_argv(
        &self,
        clocks: ClockControl,
        stem: &Path,
        log: &Path,
        program: &[String],
    ) -> Vec<String> {
        let options = vec![
            ("--metrics", Role::Duration.to_string()),
            ("--launch-count", "1".to_owned()),
            ("--clock-control", clocks.to_string()),
            ("--log-file", log.display().to_string()),
            ("--export", stem.display().to_string()),
        ];
        self.argv(options, program)
    }

    /// The argv with options, each with its value, for `program`.
    fn argv(&self, options: Vec<(&str, String)>, program: &[String]) -> Vec<String> {
        let mut argv = vec![self.0.path.display().to_string()];
        argv.extend(self.without_file());
        let options = options.into_iter();
        argv.extend(options.flat_map(|(name, value)| [name.to_owned(), value]));
        argv.push("--force-overwrite".to_owned());
        argv.extend(program.iter().cloned());
        argv
    }

    /// The argv that prints the raw page of a report, in base units.
    pub fn csv_argv(&self, report: &Path) -> Vec<String> {
        let mut argv = vec![
            self.0.path.display().to_string(),
            "--import".to_owned(),
            report.display().to_string(),
        ];
        argv.extend(["--csv", "--page", "raw", "--print-units", "base"].map(String::from));
        argv.extend(self.without_file());
        argv
    }

    /// The option by which ncu reads no `config.ncu-cfg`: by default it takes options from such a file
    /// in the folder where it runs, which a change can bring. ncu 2022 and newer are known to have it.
    fn without_file(&self) -> Vec<String> {
        let year = self.0.version.split('.').next();
        match year.and_then(|year| year.parse::<u32>().ok()) {
            Some(year) if year < 2022 => Vec::new(),
            _ => ["--config-file", "off"].map(String::from).to_vec(),
        }
    }
}

/// The reports at `stem`. ncu writes one; since 2026.3 it is compressed, unless the export has another
/// ending.
pub(crate) fn reports(stem: &Path) -> Vec<PathBuf> {
    let at = |ending| PathBuf::from(format!("{}.{ending}", stem.display()));
    let mut paths = report::ENDINGS.map(at).to_vec();
    paths.retain(|path| disk::is_there(path));
    paths
}

/// The launches of each kernel, in any context and stream, as `--kernel-id` selects them: ncu counts
/// those of a name, a grid, a block and a size of shared memory by themselves, from 1: of a linker's name
/// without a filter, and of a function's with one.
fn kernel_id(variant: &Variant, selection: LaunchSelection) -> String {
    let name = variant.kernels.as_deref().unwrap_or_default();
    format!("::{name}:{}", selection.pattern())
}

/// What the configuration selects by another value than an argv that [`Ncu::profile_argv`] made for this
/// phase; `None` of any other argv. What follows the last option is the program's.
pub(crate) fn other_selection(variant: &Variant, phase: Phase, argv: &[String]) -> Option<String> {
    let own = argv.iter().position(|word| word == "--force-overwrite")?;
    let options = argv.get(..own)?;
    let value = |name: &str| {
        let at = options.iter().position(|word| word == name)?;
        options.get(at + 1).map(String::as_str)
    };
    // `::FILTER:INVOCATIONS`, and a filter contains no colon but that of `regex:`.
    let id = value("--kernel-id").and_then(|id| id.strip_prefix("::")?.rsplit_once(':'));
    let filter = value("--kernel-name").or(id.map(|(filter, _)| filter));
    let filters = [filter, variant.kernels.as_deref()].map(Option::unwrap_or_default);
    if filters[0] != filters[1] {
        let [was, now] = filters.map(|filter| match filter {
            "" => "every kernel".to_owned(),
            filter => format!("`{filter}`"),
        });
        return Some(format!(
            "`kernels` in the configuration (it selected {was}, and now {now})"
        ));
    }
    let own = variant.selection(phase);
    let same_skip = match id {
        Some((_, pattern)) => {
            (1..=10_000).any(|count| LaunchSelection { count, ..own }.pattern() == pattern)
        }
        None => value("--launch-skip").is_none_or(|skip| skip == own.skip.to_string()),
    };
    let in_range = value("--profile-from-start").is_some();
    let other = match in_range == variant.profile.profiler_range {
        true if same_skip => return None,
        true => "`skip` in the configuration",
        false => "`profiler_range` in the configuration",
    };
    Some(other.to_owned())
}

/// The folder of section files of a process whose files begin with `stem`. It is empty.
pub(super) fn sections(stem: &Path) -> PathBuf {
    PathBuf::from(format!("{}.sections", stem.display()))
}

/// A HOME for ncu, which writes below it, where the environment has none.
pub(crate) fn home(folder: &Path) -> Option<(String, String)> {
    let homeless = std::env::var_os("HOME").is_none_or(|home| home.is_empty());
    homeless.then(|| ("HOME".to_owned(), folder.display().to_string()))
}
