//! The normalized result of a variant: samples, values and spread, the identity that makes two
//! profiles comparable, and the provenance that is only shown.

mod derive;
pub mod import;
mod kernel;
mod launch_list;
mod launch_of;
mod norm;
mod total;

use crate::disk;
use crate::files::{
    PROFILE_FILE, STATIC_PROFILE_FILE, if_there, json, pretty_json_in_lines, recorded_folder,
    write_atomically,
};
use crate::git;
use crate::hash::sha256_hex;
use crate::metric::measures;
use crate::terms::{Phase, Seed, Tier, VariantId};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

pub use derive::{DeriveError, Derived, Source, derive};
pub use kernel::{Code, KernelProfile, MetricIdentity, Series};
pub use launch_list::{KernelLaunches, LaunchList, OtherLaunches};
pub use launch_of::Taken;
pub use norm::norm_text;
pub use total::TOTAL;

use crate::binary::CompilerWarning;
use crate::capture::{Span, Tuned};
use crate::config::{
    CacheControl, ClockControl, GraphProfiling, Pin, ProfileSettings, ReplayMode, Variant,
};
use crate::device::State;
use crate::finding::Error;
use crate::statistics::Samples;

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
    /// Name of the GPU model, as the report gives it; the compiler's target on the static tier.
    pub gpu: String,
    /// `major.minor`.
    pub compute_capability: String,
    /// Version of the compiler, on the static tier: another compiler makes other code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiler: Option<String>,
    /// How ncu measured; nothing is known on a tier without ncu.
    #[serde(flatten)]
    pub conditions: Conditions,
    /// How it was measured.
    pub tier: Tier,
    /// What each alias stands for.
    pub metrics: BTreeMap<String, MetricIdentity>,
}

impl Identity {
    /// The folder of the baselines that such a profile is compared with.
    pub fn folder(&self) -> String {
        self.tier.folder(&self.gpu)
    }
}

/// How ncu measured, as far as that is known.
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

/// Where a profile came from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// Measured by this tool, or imported.
    pub origin: ProfileOrigin,
    /// This tool's version.
    pub tool: String,
    /// When it was measured, RFC 3339, UTC.
    pub created: String,
    /// Launches asked for in each process.
    pub launches: u32,
    /// Separate profiler processes that measured many launches each, on all machines.
    pub processes: u32,
    /// ncu's version.
    pub profiler: Option<String>,
    /// nvcc's version.
    pub compiler: Option<String>,
    /// The driver's version.
    pub driver: Option<String>,
    /// UUID of the GPU.
    pub gpu_uuid: Option<String>,
    /// What the configuration pinned of these, and whether it matched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<Pin>,
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
    /// Warnings of the compiler that cost performance, on the static tier.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<CompilerWarning>,
    /// The captures it was read from.
    pub captures: Vec<CaptureRecord>,
    /// What the measured command line launches; `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_list: Option<LaunchList>,
    /// The compiled kernels, where `kernels` selects none of them; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unselected: Vec<String>,
    /// Nothing of it runs: it is code that other programs launch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub library: bool,
    /// When an earlier run verified this program, where the run that measured it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_before: Option<String>,
    /// Whether its times are those of all launches of the program as it runs, and not ncu's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_it_runs: bool,
    /// Whether it is a copy without what named machine and people: its captures are not those that
    /// were measured, and its GPUs have names that are valid within the copy alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stripped: bool,
}

/// Who measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileOrigin {
    /// `sparsek-gate profile`.
    #[default]
    Measured,
    /// `sparsek-gate import`.
    Imported,
}

/// One capture that a profile was read from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureRecord {
    /// Which metrics it measured; `None` where that is not known.
    pub phase: Option<Phase>,
    /// UUID of the GPU, where it is known.
    pub gpu_uuid: Option<String>,
    /// The state of the GPU during the capture, where the driver reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<State>,
    /// The report, or an imported CSV.
    pub report: FileHash,
    /// The CSV beside it.
    pub csv: Option<FileHash>,
    /// The profiler's argv.
    pub argv: Vec<String>,
    /// What the process was given to make the values of its inputs from. No condition: profiles
    /// with other seeds are comparable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<Seed>,
    /// Whether the process itself reported that the numbers of the measured launches are correct.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checked: bool,
    /// What autotuners chose in the process, where it shows that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tuned: Vec<Tuned>,
    /// How long it kept the GPU, of a program that was timed as it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
}

/// A file by name and content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileHash {
    /// File name, without folder.
    pub file: String,
    /// Its sha256, in hex.
    pub sha256: String,
}

impl FileHash {
    /// That of a file with this content.
    pub fn of(path: &Path, content: &[u8]) -> FileHash {
        let name = path.file_name().unwrap_or_default();
        FileHash {
            file: name.to_string_lossy().into_owned(),
            sha256: sha256_hex(content),
        }
    }
}

impl Profile {
    /// Version of the JSON form.
    pub const SCHEMA: u32 = 3;

    /// The profile of a variant, from what its captures show and how they were taken.
    pub fn new(
        variant: &Variant,
        derived: Derived,
        tier: Tier,
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
                compiler: None,
                conditions,
                tier,
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
        Profile::parse(&text).map_err(|cause| {
            let conflict = |line| format!("git left a conflict of a merge in line {line}");
            Error::input(path, git::conflict(&text).map_or(cause, conflict))
        })
    }

    /// The recorded profile of a variant below a folder of profiles, if there is one.
    ///
    /// # Errors
    /// As [`Profile::read`].
    pub fn recorded(folder: &Path, variant: &VariantId) -> Result<Option<Profile>, Error> {
        Profile::at(&recorded_folder(folder, variant).join(PROFILE_FILE))
    }

    /// The same of the static tier.
    ///
    /// # Errors
    /// As [`Profile::read`].
    pub fn recorded_static(folder: &Path, variant: &VariantId) -> Result<Option<Profile>, Error> {
        Profile::at(&recorded_folder(folder, variant).join(STATIC_PROFILE_FILE))
    }

    /// Writes it to a file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        write_atomically(path, self.to_json().as_bytes()).map_err(Error::io("write", path))
    }

    /// The profile in a file, if there is one.
    ///
    /// # Errors
    /// As [`Profile::read`].
    pub fn at(path: &Path) -> Result<Option<Profile>, Error> {
        let there = if_there(disk::metadata(path)).map_err(Error::io("read", path))?;
        there.map(|_| Profile::read(path)).transpose()
    }

    /// Reads a profile from its JSON form.
    ///
    /// # Errors
    /// Names what is wrong with the text.
    pub fn parse(text: &[u8]) -> Result<Profile, String> {
        #[derive(Deserialize)]
        struct Schema {
            schema: u32,
            kernels: Option<IgnoredAny>,
        }
        let no_profile = |cause: String| format!("not a profile: {cause}");
        let found: Schema = json(text).map_err(no_profile)?;
        if found.kernels.is_none() && found.schema != Profile::SCHEMA {
            let cause =
                "it has no `kernels`; the outcome of a check is rendered by `sparsek-gate report`";
            return Err(no_profile(cause.to_owned()));
        }
        if found.schema != Profile::SCHEMA {
            let newer = match found.schema > Profile::SCHEMA {
                true => ": a newer version of this tool wrote it",
                false => "",
            };
            return Err(format!(
                "profile schema {} (this version reads {}){newer}",
                found.schema,
                Profile::SCHEMA
            ));
        }
        let profile: Profile = json(text).map_err(no_profile)?;
        // Its lists have room for more, and those of a copy have none.
        Ok(profile.clone())
    }

    /// The JSON form, with a newline at the end.
    pub fn to_json(&self) -> String {
        // No key is anything but text and no number but finite, so this cannot fail.
        pretty_json_in_lines(self)
    }

    /// How many of its processes reported that the numbers of their measured launches are correct.
    pub fn checked_processes(&self) -> usize {
        let captures = self.provenance.captures.iter();
        captures.filter(|capture| capture.checked).count()
    }

    /// Whether its tier measures any of its metrics in a phase.
    pub fn measures(&self, phase: Phase) -> bool {
        let tier = self.identity.tier;
        let mut metrics = self.identity.metrics.values();
        metrics.any(|metric| metric.phase == phase && measures(tier, &metric.counter, phase))
    }

    /// Launches of all kernels in all processes of a phase.
    pub fn launch_count(&self, phase: Phase) -> usize {
        self.kernels
            .iter()
            .map(|kernel| self.launches_of(kernel, phase))
            .sum()
    }

    /// Launches of one of its kernels in all processes of a phase.
    pub fn launches_of(&self, kernel: &KernelProfile, phase: Phase) -> usize {
        let counts = self.series_of(kernel, phase).map(Series::launch_count);
        counts.max().unwrap_or(0)
    }

    fn series_of<'k>(
        &self,
        kernel: &'k KernelProfile,
        phase: Phase,
    ) -> impl Iterator<Item = &'k Series> {
        let metrics = kernel.metrics.iter().filter(move |(alias, _)| {
            let metric = self.identity.metrics.get(*alias);
            metric.is_some_and(|metric| metric.phase == phase)
        });
        metrics.map(|(_, series)| series)
    }

    /// Launches of one of its kernels in one process of a phase.
    pub fn launches_in(&self, kernel: &KernelProfile, phase: Phase, process: usize) -> usize {
        let series = self.series_of(kernel, phase);
        let samples = series.filter_map(|series| series.samples.get(process));
        samples.map(Vec::len).max().unwrap_or(0)
    }

    /// Whether a kernel was launched in some of the processes that were timed, and not in others.
    pub fn varies(&self, kernel: &KernelProfile) -> bool {
        let mut processes = 0..self.machines(Phase::Timing).len();
        processes.any(|process| self.launches_in(kernel, Phase::Timing, process) == 0)
    }

    /// How long each process that was timed kept the GPU; `None` where that is not known of one.
    pub fn spans(&self) -> Option<Vec<Span>> {
        let captures = self.provenance.captures.iter();
        let timed = captures.filter(|capture| capture.phase == Some(Phase::Timing));
        timed.map(|capture| capture.span).collect()
    }

    /// The samples of a metric of one of its kernels, by machine and process; `None` where any
    /// launch has no value.
    pub fn samples(&self, kernel: &KernelProfile, alias: &str) -> Option<Samples> {
        let phase = self.identity.metrics.get(alias)?.phase;
        kernel.metrics.get(alias)?.grouped(&self.machines(phase))
    }

    /// The GPU of each process of a phase, in the order of the samples.
    pub fn machines(&self, phase: Phase) -> Vec<Option<&str>> {
        self.provenance
            .captures
            .iter()
            .filter(|capture| capture.phase.is_none_or(|own| own == phase))
            .map(|capture| capture.gpu_uuid.as_deref())
            .collect()
    }

    /// UUIDs of the GPUs it was measured on, in order, each once.
    pub fn gpu_uuids(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let all = self.machines(Phase::Timing).into_iter().flatten();
        all.filter(|uuid| seen.insert(*uuid)).collect()
    }

    /// The name by which people know a kernel of this profile: the function's own, or the whole
    /// signature where overloads or template instances share that.
    pub fn label<'k>(&self, kernel: &'k KernelProfile) -> &'k str {
        let shared = self
            .kernels
            .iter()
            .any(|other| other.name == kernel.name && other.identity() != kernel.identity());
        let signature = kernel.demangled.as_deref().or(kernel.mangled.as_deref());
        signature.filter(|_| shared).unwrap_or(&kernel.name)
    }
}

/// When this process began to work, RFC 3339, UTC, in whole seconds: the time of the first call.
pub fn began() -> &'static str {
    static BEGAN: OnceLock<String> = OnceLock::new();
    BEGAN.get_or_init(now)
}

/// The time now, RFC 3339, UTC, in whole seconds.
pub fn now() -> String {
    let seconds = jiff::Timestamp::now().as_second();
    jiff::Timestamp::from_second(seconds)
        .map(|time| time.to_string())
        .unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use super::{KernelLaunches, KernelProfile, LaunchList, Profile};

    /// One that ncu measured on an H200, of one kernel.
    pub(crate) fn recorded() -> Profile {
        let path = "tests/data/stand_in/recordings/h200/bsr_gemm/cp_async/profile.json";
        Profile::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
    }

    /// A second kernel, with the measurements of the first.
    pub(crate) fn with_another(mut profile: Profile) -> Profile {
        let mut other = profile.kernels[0].clone();
        other.name = "another".to_owned();
        other.mangled = Some("another".to_owned());
        profile.kernels.push(other);
        profile
    }

    /// Each kernel is launched so often in these steps.
    pub(crate) fn listed(profile: &mut Profile, launches: &[u32], steps: Option<u32>) {
        let samples = |kernel: &KernelProfile| kernel.metrics["duration"].samples[0].len();
        let measured: usize = profile.kernels.iter().map(samples).sum();
        let kernels = profile.kernels.iter().zip(launches);
        let kernels = kernels.map(|(kernel, launches)| KernelLaunches {
            mangled: kernel.mangled.clone().unwrap(),
            grid: kernel.grid,
            block: kernel.block,
            launches: *launches,
        });
        profile.provenance.launch_list = Some(LaunchList {
            measured: measured.try_into().unwrap(),
            others: Vec::new(),
            kernels: kernels.collect(),
            steps,
        });
    }
}
