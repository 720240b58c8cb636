//! The normalized result of a variant: samples, medians and spread, the identity that makes two
//! profiles comparable, and the provenance that is only shown.

mod derive;
pub mod import;
mod norm;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use derive::{DeriveError, Derived, Source, derive};
pub use norm::norm_text;

use crate::config::{
    CacheControl, ClockControl, GraphProfiling, ProfileSettings, ReplayMode, Variant, VariantId,
};
use crate::error::Error;
use crate::files::variant_folder;
use crate::verdict::Summary;

/// Name of the profile in a variant's folder.
pub const FILE_NAME: &str = "profile.json";

/// The normalized result of profiling one variant (`<variant>.profile.json`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Version of this format.
    pub schema: u32,
    /// Which variant.
    pub variant: VariantId,
    /// What must match for two profiles to be comparable.
    pub identity: Identity,
    /// The kernels, in the order of their first launch.
    pub kernels: Vec<KernelProfile>,
    /// What may differ, and is shown.
    pub provenance: Provenance,
}

/// What must match for two profiles to be comparable. An unknown condition matches nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// The program's arguments: the problem it solved.
    pub workload: Vec<String>,
    /// Name of the GPU model, as the report gives it.
    pub gpu: String,
    /// `major.minor`.
    pub compute_capability: String,
    /// How ncu was told to measure.
    #[serde(flatten)]
    pub conditions: Conditions,
    /// How it was measured.
    pub rung: Rung,
    /// What each alias stands for.
    pub metrics: BTreeMap<String, MetricIdentity>,
}

/// How ncu was told to measure, as far as that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conditions {
    /// Clocks.
    pub clock_control: Option<ClockControl>,
    /// Caches.
    pub cache_control: Option<CacheControl>,
    /// Replay.
    pub replay_mode: Option<ReplayMode>,
    /// CUDA graphs.
    pub graph_profiling: Option<GraphProfiling>,
}

impl Conditions {
    /// Each by name and as it is spelt.
    pub fn named(&self) -> [(&'static str, Option<&'static str>); 4] {
        [
            ("clock control", self.clock_control.map(|c| c.as_str())),
            ("cache control", self.cache_control.map(|c| c.as_str())),
            ("replay mode", self.replay_mode.map(|c| c.as_str())),
            ("graph profiling", self.graph_profiling.map(|c| c.as_str())),
        ]
    }

    /// What is known here, else what is known there.
    pub fn or(self, other: Conditions) -> Conditions {
        Conditions {
            clock_control: self.clock_control.or(other.clock_control),
            cache_control: self.cache_control.or(other.cache_control),
            replay_mode: self.replay_mode.or(other.replay_mode),
            graph_profiling: self.graph_profiling.or(other.graph_profiling),
        }
    }
}

impl From<&ProfileSettings> for Conditions {
    fn from(settings: &ProfileSettings) -> Conditions {
        Conditions {
            clock_control: Some(settings.clock_control),
            cache_control: Some(settings.cache_control),
            replay_mode: Some(settings.replay_mode),
            graph_profiling: Some(settings.graph_profiling),
        }
    }
}

/// How much of the machine's counters could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// Hardware counters, through ncu.
    Counters,
}

/// What an alias stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricIdentity {
    /// The counter.
    pub counter: String,
    /// Its unit; `None` where nothing says it.
    pub unit: Option<String>,
}

/// One kernel at one grid and block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelProfile {
    /// The function's name, for people.
    pub name: String,
    /// The linker's name; CSV files do not hold it.
    pub mangled: Option<String>,
    /// The signature as the report spells it.
    pub demangled: Option<String>,
    /// Blocks in x, y, z.
    pub grid: [u64; 3],
    /// Threads a block in x, y, z.
    pub block: [u64; 3],
    /// By alias.
    pub metrics: BTreeMap<String, Series>,
}

/// The samples of one metric of one kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Median of all samples; absent where one is missing.
    pub median: Option<f64>,
    /// Robust standard deviation of all samples, see [`Summary::sigma`].
    pub sigma: Option<f64>,
    /// One list a profiler process, one entry a launch, in launch order; `null` is a launch
    /// without a value.
    pub samples: Vec<Vec<Option<f64>>>,
}

/// Where a profile came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// Measured by this tool, or imported.
    pub origin: ProfileOrigin,
    /// This tool's version.
    pub tool: String,
    /// When it was measured, RFC 3339, UTC.
    pub created: String,
    /// Launches asked for in each process.
    pub launches: u32,
    /// Separate profiler processes asked for.
    pub processes: u32,
    /// ncu's version.
    pub profiler: Option<String>,
    /// nvcc's version.
    pub compiler: Option<String>,
    /// The driver's version.
    pub driver: Option<String>,
    /// UUID of the GPU.
    pub gpu_uuid: Option<String>,
    /// Commit of the working tree, with `+dirty` where it had changes.
    pub git: Option<String>,
    /// sha256 of the program.
    pub artifact_sha256: Option<String>,
    /// The argv of the build.
    pub build_argv: Vec<String>,
    /// sha256 of the source and of each header, by path below the configuration.
    pub sources: BTreeMap<String, String>,
    /// Constants that the command line set for a trial (`--define`).
    pub overrides: Vec<String>,
    /// The captures it was read from.
    pub captures: Vec<CaptureRecord>,
}

/// Who measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileOrigin {
    /// `sparsek-gate profile`.
    Measured,
    /// `sparsek-gate import`.
    Imported,
}

/// One capture that a profile was read from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureRecord {
    /// The report, or an imported CSV.
    pub report: FileHash,
    /// The CSV beside it.
    pub csv: Option<FileHash>,
    /// The profiler's argv.
    pub argv: Vec<String>,
}

/// A file by name and content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHash {
    /// File name, without folder.
    pub file: String,
    /// Its sha256, in hex.
    pub sha256: String,
}

impl Profile {
    /// Version of the JSON form.
    pub const SCHEMA: u32 = 1;

    /// The profile of a variant, from what its captures say and how they were taken.
    pub fn new(
        variant: &Variant,
        derived: Derived,
        conditions: Conditions,
        provenance: Provenance,
    ) -> Profile {
        Profile {
            schema: Profile::SCHEMA,
            variant: variant.id.clone(),
            identity: Identity {
                workload: variant.args.clone(),
                gpu: derived.gpu,
                compute_capability: derived.compute_capability,
                conditions,
                rung: Rung::Counters,
                metrics: derived.metrics,
            },
            kernels: derived.kernels,
            provenance,
        }
    }

    /// Reads a profile.
    ///
    /// # Errors
    /// [`Error::Io`], or [`Error::Input`] where the text is no profile of this version.
    pub fn read(path: &Path) -> Result<Profile, Error> {
        let text = crate::files::read_regular(path).map_err(Error::io("read", path))?;
        Profile::parse(&text).map_err(|cause| Error::Input {
            path: path.to_path_buf(),
            cause,
        })
    }

    /// The recorded profile of a variant below a folder of profiles, if there is one.
    ///
    /// # Errors
    /// As [`Profile::read`].
    pub fn recorded(folder: &Path, variant: &VariantId) -> Result<Option<Profile>, Error> {
        let path = variant_folder(folder, variant).join(FILE_NAME);
        match std::fs::metadata(&path) {
            Ok(_) => Profile::read(&path).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("read", &path)(error)),
        }
    }

    /// Reads a profile from its JSON form.
    ///
    /// # Errors
    /// Says what is wrong with the text.
    pub fn parse(text: &[u8]) -> Result<Profile, String> {
        #[derive(Deserialize)]
        struct Schema {
            schema: u32,
        }
        let found = serde_json::from_slice::<Schema>(text)
            .map_err(|error| format!("not a profile: {error}"))?;
        if found.schema != Profile::SCHEMA {
            return Err(format!(
                "profile schema {} (this version reads {})",
                found.schema,
                Profile::SCHEMA
            ));
        }
        serde_json::from_slice(text).map_err(|error| format!("not a profile: {error}"))
    }

    /// The JSON form, with a newline at the end.
    pub fn to_json(&self) -> String {
        // No key is anything but text and no number but finite, so this cannot fail.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Launches of all kernels in all processes.
    pub fn launch_count(&self) -> usize {
        self.kernels.iter().map(KernelProfile::launch_count).sum()
    }
}

impl KernelProfile {
    /// Launches in all processes.
    pub fn launch_count(&self) -> usize {
        self.metrics
            .values()
            .map(Series::launch_count)
            .max()
            .unwrap_or(0)
    }

    /// What identifies the kernel's code: the mangled name, or the best the file had.
    pub fn identity(&self) -> &str {
        self.mangled
            .as_deref()
            .or(self.demangled.as_deref())
            .unwrap_or(&self.name)
    }
}

impl Series {
    /// Of samples as the captures gave them.
    pub fn new(samples: Vec<Vec<Option<f64>>>) -> Series {
        let mut series = Series {
            median: None,
            sigma: None,
            samples,
        };
        let summary = series.summary();
        series.median = summary.map(|summary| summary.median);
        series.sigma = summary.and_then(|summary| summary.sigma);
        series
    }

    /// Median and spread, computed anew from the samples; `None` where any launch has no value.
    pub fn summary(&self) -> Option<Summary> {
        let samples: Option<Vec<f64>> = self.samples.iter().flatten().copied().collect();
        Summary::of(&samples?)
    }

    /// Launches in all processes, with or without a value.
    pub fn launch_count(&self) -> usize {
        self.samples.iter().map(Vec::len).sum()
    }
}
