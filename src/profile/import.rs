//! Somebody else's recording to a profile.

use super::{
    CaptureRecord, DeriveError, FileHash, Identity, Profile, ProfileOrigin, Provenance, Rung,
    Source, derive,
};
use crate::capture::Recording;
use crate::config::{CacheControl, ClockControl, GraphProfiling, ReplayMode, Variant};

/// Conditions that the user states because the file does not hold them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stated {
    /// Clocks.
    pub clock_control: Option<ClockControl>,
    /// Caches.
    pub cache_control: Option<CacheControl>,
    /// Replay.
    pub replay_mode: Option<ReplayMode>,
    /// CUDA graphs.
    pub graph_profiling: Option<GraphProfiling>,
}

/// Makes a profile of a recording. What the file holds outranks what is stated.
///
/// # Errors
/// [`DeriveError`].
pub fn profile_of(
    variant: &Variant,
    recording: &Recording,
    file: &FileHash,
    stated: &Stated,
) -> Result<Profile, DeriveError> {
    let source = Source {
        report: recording,
        csv: None,
    };
    let derived = derive(&variant.counters(), &[source])?;
    let argv: Option<Vec<&str>> = recording
        .command_line
        .as_deref()
        .map(|line| line.split_whitespace().collect());
    let option = |name: &str, default: &str| {
        argv.as_ref()
            .map(|argv| option_of(argv, name).unwrap_or(default).to_owned())
    };
    let clock = option("--clock-control", "base");
    Ok(Profile {
        schema: Profile::SCHEMA,
        variant: variant.id.clone(),
        identity: Identity {
            workload: variant.args.clone(),
            gpu: derived.gpu,
            compute_capability: derived.compute_capability,
            clock_control: spelled(clock).or(stated.clock_control),
            cache_control: spelled(option("--cache-control", "all")).or(stated.cache_control),
            replay_mode: spelled(option("--replay-mode", "kernel")).or(stated.replay_mode),
            graph_profiling: spelled(option("--graph-profiling", "node"))
                .or(stated.graph_profiling),
            rung: Rung::Counters,
            metrics: derived.metrics,
        },
        kernels: derived.kernels,
        provenance: Provenance {
            origin: ProfileOrigin::Imported,
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            created: recording
                .created_unix_s
                .and_then(|seconds| jiff::Timestamp::from_second(i64::try_from(seconds).ok()?).ok())
                .map_or_else(crate::measure::now, |time| time.to_string()),
            launches: u32::try_from(recording.launches.len()).unwrap_or(u32::MAX),
            processes: 1,
            profiler: recording.profiler_version.clone(),
            compiler: None,
            driver: None,
            gpu_uuid: None,
            git: None,
            artifact_sha256: None,
            build_argv: Vec::new(),
            sources: Default::default(),
            overrides: Vec::new(),
            captures: vec![CaptureRecord {
                report: file.clone(),
                csv: None,
                argv: argv
                    .unwrap_or_default()
                    .into_iter()
                    .map(str::to_owned)
                    .collect(),
            }],
        },
    })
}

/// `--name value` or `--name=value`.
fn option_of<'a>(argv: &[&'a str], name: &str) -> Option<&'a str> {
    argv.iter()
        .enumerate()
        .find_map(|(index, word)| match word.strip_prefix(name)? {
            "" => argv.get(index + 1).copied(),
            rest => rest.strip_prefix('='),
        })
}

fn spelled<T: serde::de::DeserializeOwned>(text: Option<String>) -> Option<T> {
    serde_json::from_value(serde_json::Value::String(text?)).ok()
}
