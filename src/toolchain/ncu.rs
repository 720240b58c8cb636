//! The profiler: how it is called and what its messages mean. Its exit status proves nothing.

use std::path::{Path, PathBuf};

use super::version::remembered;
use super::{env_folder, find, path_folders, query, versioned};
use crate::config::{ClockControl, Toolchain, Variant};
use crate::finding::Error;
use crate::metric::DURATION_COUNTER;
use crate::terms::Phase;

/// The file in the temporary folder by which several ncu take turns. It stays when they are over.
pub(crate) const NCU_LOCK: &str = "nsight-compute-lock";

/// An ncu that was found.
#[derive(Clone, Debug)]
pub struct Ncu {
    /// The program.
    pub path: PathBuf,
    /// `2025.3.1.0`, as `ncu --version` prints it.
    pub version: String,
}

/// What ncu's log says went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// `ERR_NVGPUCTRPERM`: the counters need a right that is not given.
    NoPermission,
    /// Another profiler holds the counters.
    Busy,
    /// The filters matched no kernel.
    NoKernels,
    /// The file by which several ncu take turns cannot be opened: it is another user's.
    Locked,
    /// The profiler's libraries do not work here, as seen on some virtual GPUs.
    NotSupported,
}

impl Ncu {
    /// Finds ncu: the configuration, the PATH, `CUDA_HOME`, `CUDA_PATH`, the usual folders.
    ///
    /// # Errors
    /// [`Error::Environment`], with the places that were looked at.
    pub fn locate(toolchain: &Toolchain, work: &Path) -> Result<Ncu, Error> {
        let mut folders = path_folders();
        folders.extend(
            ["CUDA_HOME", "CUDA_PATH"]
                .iter()
                .filter_map(|name| env_folder(name))
                .map(|root| root.join("bin")),
        );
        folders.push("/usr/local/cuda/bin".into());
        folders.extend(versioned("/opt/nvidia/nsight-compute", ""));
        let path = find("ncu", toolchain.ncu.as_deref(), &folders).map_err(|places| {
            Error::Environment {
                what: format!("no ncu (NVIDIA Nsight Compute) was found; {places}"),
                next: "install Nsight Compute (it comes with the CUDA toolkit), or set `toolchain.ncu`; \
                       profiles recorded elsewhere need no ncu: `sparsek-gate check --from DIR`"
                    .to_owned(),
            }
        })?;
        let program = path.display().to_string();
        let banner = remembered(work, &path, || query(vec![program, "--version".to_owned()]))?;
        let version = banner
            .lines()
            .find_map(|line| line.strip_prefix("Version "))
            .and_then(|rest| rest.split_whitespace().next())
            .ok_or_else(|| Error::Environment {
                what: format!("`{} --version` names no version", path.display()),
                next: "check the installation".to_owned(),
            })?
            .to_owned();
        Ok(Ncu { path, version })
    }

    /// The argv that profiles `program` (itself an argv) into `<stem>.ncu-rep`. With hotspots the
    /// counting phase also samples where warps are; lines need the machine code in the report, and
    /// no source.
    pub fn profile_argv(
        &self,
        variant: &Variant,
        phase: Phase,
        stem: &Path,
        log: &Path,
        program: &[String],
    ) -> Vec<String> {
        let settings = &variant.profile;
        let mut counters: Vec<&str> = variant
            .metrics
            .iter()
            .filter(|metric| metric.phase == phase)
            .map(|metric| metric.counter.as_str())
            .collect();
        counters.sort_unstable();
        counters.dedup();
        let mut argv = vec![self.path.display().to_string()];
        let mut option = |name: &str, value: String| argv.extend([name.to_owned(), value]);
        if !counters.is_empty() {
            option("--metrics", counters.join(","));
        }
        // Times are never taken while warps are sampled.
        let hotspots = settings.hotspots && phase == Phase::Counting;
        if hotspots {
            option("--section", "SourceCounters".to_owned());
        }
        option("--launch-skip", settings.skip.to_string());
        option("--launch-count", variant.launches(phase).to_string());
        option("--clock-control", settings.clock_control.to_string());
        option("--cache-control", settings.cache_control.to_string());
        option("--replay-mode", settings.replay_mode.to_string());
        option("--graph-profiling", settings.graph_profiling.to_string());
        option("--target-processes", "all".to_owned());
        option(
            "--import-sass",
            if settings.keep_sass || hotspots {
                "yes"
            } else {
                "no"
            }
            .to_owned(),
        );
        option("--log-file", log.display().to_string());
        option("--export", stem.display().to_string());
        if let Some(filter) = &variant.kernels {
            option("--kernel-name", filter.clone());
        }
        if !settings.nvtx.is_empty() {
            argv.push("--nvtx".to_owned());
            for range in &settings.nvtx {
                argv.extend(["--nvtx-include".to_owned(), range.clone()]);
            }
        }
        if settings.profiler_range {
            argv.extend(["--profile-from-start".to_owned(), "off".to_owned()]);
        }
        argv.push("--force-overwrite".to_owned());
        argv.extend(settings.ncu_args.iter().cloned());
        argv.extend(program.iter().cloned());
        argv
    }

    /// The argv that reads one counter of one launch of `program`, into `<stem>.ncu-rep`.
    pub fn probe_argv(
        &self,
        clocks: ClockControl,
        stem: &Path,
        log: &Path,
        program: &[String],
    ) -> Vec<String> {
        let mut argv = vec![self.path.display().to_string()];
        let mut option = |name: &str, value: String| argv.extend([name.to_owned(), value]);
        option("--metrics", DURATION_COUNTER.to_owned());
        option("--launch-count", "1".to_owned());
        option("--clock-control", clocks.to_string());
        option("--log-file", log.display().to_string());
        option("--export", stem.display().to_string());
        argv.push("--force-overwrite".to_owned());
        argv.extend(program.iter().cloned());
        argv
    }

    /// The argv that prints the raw page of a report, in base units.
    pub fn csv_argv(&self, report: &Path) -> Vec<String> {
        let mut argv = vec![
            self.path.display().to_string(),
            "--import".to_owned(),
            report.display().to_string(),
        ];
        argv.extend(["--csv", "--page", "raw", "--print-units", "base"].map(String::from));
        argv
    }

    /// Base names of the counters of a chip, for chips that have no table here.
    ///
    /// # Errors
    /// [`Error::Environment`] where ncu does not know the chip.
    pub fn counters(&self, chip: &str) -> Result<Vec<String>, Error> {
        let argv = vec![
            self.path.display().to_string(),
            "--query-metrics".to_owned(),
            "--chips".to_owned(),
            chip.to_owned(),
            "--csv".to_owned(),
        ];
        let text = query(argv)?;
        Ok(text
            .lines()
            .filter_map(|line| line.strip_prefix('"')?.split('"').next())
            .filter(|name| name.contains("__"))
            .map(str::to_owned)
            .collect())
    }
}

impl Trouble {
    /// What it is, in words, where it is the machine's.
    pub fn words(self) -> &'static str {
        match self {
            Trouble::NoPermission => "ncu may not read the GPU's counters (ERR_NVGPUCTRPERM)",
            Trouble::Busy => "another profiler holds the counters of this GPU",
            Trouble::Locked => {
                "ncu cannot open the file by which several ncu take turns (InterprocessLockFailed): it is another user's"
            }
            Trouble::NoKernels => "ncu profiled no kernel",
            Trouble::NotSupported => {
                "ncu's libraries do not work on this machine (LibraryNotLoaded), as on some virtual GPUs"
            }
        }
    }

    /// What mends it.
    pub fn next(self) -> &'static str {
        match self {
            Trouble::NoPermission => {
                "as root: echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' > /etc/modprobe.d/nvidia-profiling.conf \
                 and reboot; or run as root, or give the container `--cap-add SYS_ADMIN`"
            }
            Trouble::Busy => {
                "stop the other ncu, or pause DCGM with `dcgmi profile --pause`, and run again"
            }
            Trouble::Locked => {
                "have its owner remove nsight-compute-lock from the temporary folder, or set TMPDIR to a folder of your own"
            }
            Trouble::NoKernels => "see whether the program launches any",
            Trouble::NotSupported => "profile on a machine with direct access to the GPU",
        }
    }

    /// What a log of ncu, or the output it shares with the program, says.
    pub fn in_log(log: &str) -> Option<Trouble> {
        const SIGNS: &[(&str, Trouble)] = &[
            ("ERR_NVGPUCTRPERM", Trouble::NoPermission),
            ("because a driver resource was unavailable", Trouble::Busy),
            ("InterprocessLockFailed", Trouble::Locked),
            (NCU_LOCK, Trouble::Locked),
            ("No kernels were profiled", Trouble::NoKernels),
            ("LibraryNotLoaded", Trouble::NotSupported),
        ];
        // Only ncu's own lines count: the program may print anything.
        let own = |line: &&str| line.starts_with("==ERROR==") || line.starts_with("==WARNING==");
        SIGNS
            .iter()
            .find(|(sign, _)| log.lines().filter(own).any(|line| line.contains(sign)))
            .map(|(_, trouble)| *trouble)
    }
}

/// A home for ncu, which writes below it, where there is none.
pub(crate) fn home(folder: &Path) -> Option<(String, String)> {
    let homeless = std::env::var_os("HOME").is_none_or(|home| home.is_empty());
    homeless.then(|| ("HOME".to_owned(), folder.display().to_string()))
}

/// The kernels that ncu saw and did not profile, where its log lists them.
pub(crate) fn available_kernels(log: &str) -> Vec<String> {
    log.lines()
        .skip_while(|line| !line.starts_with("Available Kernels:"))
        .skip(1)
        .map_while(|line| {
            let (number, name) = line.trim().split_once(". ")?;
            number.parse::<u32>().ok()?;
            Some(name.to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ncu_says_that_nothing_was_profiled_and_what_there_was() {
        let log = "\
==WARNING== Note: Running with unmodified GPU clocks. If not controlled otherwise, profiling results may be inconsistent.
==PROF== Connected to process 1396 (/opt/sample/graph)
==PROF== Disconnected from process 1396
==WARNING== No kernels were profiled.
Available Kernels:
1. k1
2. k2
";
        assert_eq!(Trouble::in_log(log), Some(Trouble::NoKernels));
        assert_eq!(available_kernels(log), ["k1", "k2"]);
    }

    #[test]
    fn the_lock_of_another_users_ncu_is_told_apart() {
        let log = "\
==ERROR== Failed to open/create lock file /tmp/nsight-compute-lock. Please check that this process has write permissions on this file.
==ERROR== Failed to prepare kernel for profiling
";
        assert_eq!(Trouble::in_log(log), Some(Trouble::Locked));
    }

    #[test]
    fn what_the_program_prints_is_not_taken_for_a_word_of_ncus() {
        assert_eq!(
            Trouble::in_log("my log: ERR_NVGPUCTRPERM was seen yesterday\n"),
            None
        );
    }
}
