//! From a recording of somebody else to a profile.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{
    CaptureRecord, Conditions, DeriveError, FileHash, Profile, ProfileOrigin, Provenance, Source,
    derive,
};
use crate::capture::Format;
use crate::config::Variant;
use crate::metric::Role;
use crate::terms::{Tier, VariantId, first};
use ncu_report::{Launch, Recording, ResultKind, report};

/// The ending of a file of this format and content that can be imported; `None` for what only this
/// tool measures.
pub fn importable(format: Format, bytes: &[u8]) -> Option<&'static str> {
    match format {
        Format::Report => report::ending(bytes),
        Format::Csv => Some("csv"),
        Format::KernelRecords => None,
    }
}

/// Whether the folder contains a profile of the variant that this tool measured. An import must not
/// delete it.
pub fn is_measured(folder: &Path, variant: &VariantId) -> bool {
    Profile::recorded(folder, variant).is_ok_and(|profile| {
        profile.is_some_and(|profile| profile.provenance.origin == ProfileOrigin::Measured)
    })
}

/// Keeps the launches that the variant's filter selects.
///
/// # Errors
/// The names of the kernels, where it selects none of them.
pub fn select(variant: &Variant, recording: &mut Recording) -> Result<(), BTreeSet<String>> {
    let filter = variant.kernel_filter();
    // A graph or a range as one has no name of a kernel, and ncu's filter by name leaves it in.
    let selects = |launch: &Launch| {
        launch.kind != ResultKind::Kernel || filter.matches(&launch.kernel.function)
    };
    let launches = &mut recording.launches;
    if !launches.is_empty() && !launches.iter().any(selects) {
        return Err(kernels_of(recording));
    }
    launches.retain(selects);
    Ok(())
}

/// What the launches of a kernel show of the program that they are of.
const OF_PROGRAM: [(Role, &str); 3] = [
    (Role::RegistersPerThread, "registers a thread"),
    (Role::StaticSharedBytes, "bytes of static shared memory"),
    (Role::DynamicSharedBytes, "bytes of dynamic shared memory"),
];

/// The first recording that is of another program than the first one, and how that shows.
pub fn other_program(recordings: &[(Recording, FileHash)]) -> Option<(usize, String)> {
    let ((before, _), others) = recordings.split_first()?;
    let (kernels, before) = (kernels_of(before), of_program(before));
    let listed = |names: &BTreeSet<String>| first(names.iter().cloned(), 5);
    others.iter().zip(1..).find_map(|((other, _), at)| {
        let others = kernels_of(other);
        if others.is_disjoint(&kernels) {
            let [here, there] = [&others, &kernels].map(listed);
            return Some((at, format!("it has {here}, and no launch of {there}")));
        }
        let (key, [here, there]) = of_program(other).into_iter().find_map(|(key, values)| {
            let both = [&values, before.get(&key)?].map(listed);
            (both[0] != both[1]).then_some((key, both))
        })?;
        let (kernel, _, _, what) = key;
        Some((at, format!("{kernel} has {here} {what}, there {there}")))
    })
}

fn kernels_of(recording: &Recording) -> BTreeSet<String> {
    let launches = recording.launches.iter();
    let names = launches.map(|launch| launch.kernel.function.clone());
    names.collect()
}

/// Each value once, by kernel, grid, block and what it is.
fn of_program(recording: &Recording) -> BTreeMap<OfProgram<'_>, BTreeSet<String>> {
    let mut values: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for launch in &recording.launches {
        for (role, what) in OF_PROGRAM {
            let key = (&*launch.kernel.function, launch.grid, launch.block, what);
            if let Some(value) = role.number(launch) {
                let value = value.round().to_string();
                values.entry(key).or_default().insert(value);
            }
        }
    }
    values
}

type OfProgram<'a> = (&'a str, [u64; 3], [u64; 3], &'static str);

/// Makes a profile of recordings, each of a process of its own. What is stated counts where the files
/// do not say it.
///
/// # Errors
/// [`DeriveError`].
pub fn profile_of(
    variant: &Variant,
    recordings: &[(Recording, FileHash)],
    stated: &Conditions,
) -> Result<Profile, DeriveError> {
    let sources = recordings.iter().map(|(recording, _)| Source {
        report: recording,
        csv: None,
        phase: None,
        gpu_uuid: None,
    });
    let derived = derive(
        &variant.counters_on(Tier::Counters),
        &sources.collect::<Vec<_>>(),
    )?;
    let derived = derived.without_unmeasured(&variant.explaining());
    let (first, _) = recordings.first().ok_or(DeriveError::Empty)?;
    let conditions = conditions_of(first).or(*stated);
    let mut others = recordings.iter().map(|(other, _)| conditions_of(other));
    if others.any(|other| other.or(*stated) != conditions) {
        return Err(DeriveError::SeveralConditions);
    }
    if stated.or(conditions) != conditions {
        return Err(DeriveError::OtherConditions);
    }
    let launches = recordings.iter().map(|(one, _)| one.launches.len());
    let launches = launches.max().unwrap_or_default();
    let provenance = Provenance {
        origin: ProfileOrigin::Imported,
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        created: first
            .created_unix_s
            .and_then(|seconds| jiff::Timestamp::from_second(i64::try_from(seconds).ok()?).ok())
            .map_or_else(crate::profile::now, |time| time.to_string()),
        launches: u32::try_from(launches).unwrap_or(u32::MAX),
        processes: u32::try_from(recordings.len()).unwrap_or(u32::MAX),
        // The number alone, as `ncu --version` is read: a report also has the build.
        profiler: (first.profiler_version.as_deref())
            .map(|it| it.split(' ').next().unwrap_or(it).to_owned()),
        captures: recordings.iter().map(capture).collect(),
        ..Provenance::default()
    };
    Ok(Profile::new(
        variant,
        derived,
        Tier::Counters,
        conditions,
        provenance,
    ))
}

/// A profile of every number in a recording, under the names of the counters.
///
/// # Errors
/// Why there is none, in words.
pub fn whole_profile(recording: &Recording) -> Result<Profile, String> {
    let launches = recording.launches.iter();
    let metrics = launches.flat_map(|launch| &launch.metrics);
    let numbers = metrics.filter(|(_, measured)| measured.value.number().is_some());
    let names: BTreeSet<String> = numbers.map(|(name, _)| name.to_string()).collect();
    let variant = Variant::of_counters(names).map_err(|error| error.to_string())?;
    let recordings = [(recording.clone(), FileHash::default())];
    profile_of(&variant, &recordings, &Conditions::default()).map_err(|error| error.to_string())
}

fn capture((recording, file): &(Recording, FileHash)) -> CaptureRecord {
    let line = recording.command_line.iter();
    let words = line.flat_map(|line| line.split_whitespace());
    CaptureRecord {
        report: file.clone(),
        argv: words.map(str::to_owned).collect(),
        ..CaptureRecord::default()
    }
}

/// The conditions in the profiler's command line of a recording, with ncu's defaults for options
/// that it does not name. Nothing is known where the recording has no command line.
pub fn conditions_of(recording: &Recording) -> Conditions {
    let Some(line) = &recording.command_line else {
        return Conditions::default();
    };
    let argv: Vec<&str> = line.split_whitespace().collect();
    let option =
        |name: &str, default: &'static str| option_of(&argv, name).unwrap_or(default).to_owned();
    Conditions {
        clock_control: spelled(option("--clock-control", "base")),
        cache_control: spelled(option("--cache-control", "all")),
        replay_mode: spelled(option("--replay-mode", "kernel")),
        graph_profiling: spelled(option("--graph-profiling", "node")),
    }
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

fn spelled<T: serde::de::DeserializeOwned>(text: String) -> Option<T> {
    serde_json::from_value(serde_json::Value::String(text)).ok()
}
