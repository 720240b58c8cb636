//! Profiles of one variant from several machines to one.

use std::collections::BTreeSet;

use crate::profile::{KernelProfile, Profile, Provenance, Series};
use crate::terms::Phase;

/// One profile of the same variant and code, measured on several machines or in several runs: it
/// then states how far the machines differ.
///
/// # Errors
/// Says what differs that must not.
pub fn merge(profiles: Vec<Profile>) -> Result<Profile, String> {
    let mut profiles = profiles.into_iter();
    let mut merged = profiles
        .next()
        .ok_or_else(|| "there is no profile to merge".to_owned())?;
    for profile in profiles {
        let differences = mergeable(&merged, &profile);
        if !differences.is_empty() {
            return Err(format!(
                "{} differ between the profiles of {}",
                differences.join(", "),
                merged.variant
            ));
        }
        join_provenance(&mut merged.provenance, profile.provenance);
        join_samples(&mut merged, profile.kernels)?;
    }
    Ok(merged)
}

/// Whether both name a capture of the same content.
pub fn same_captures(one: &Profile, other: &Profile) -> bool {
    let [mut one, other] = [one, other].map(|profile| profile.provenance.captures.iter());
    one.any(|one| {
        other
            .clone()
            .any(|it| it.report.sha256 == one.report.sha256)
    })
}

/// What must not differ between profiles that are merged.
fn mergeable(one: &Profile, other: &Profile) -> Vec<String> {
    let (was, is) = (&one.provenance, &other.provenance);
    let (kernels, others) = (one.kernels.len(), other.kernels.len());
    let numbers = format!("the numbers of kernels ({kernels} and {others} kernels)");
    let differing = [
        ("the variant", one.variant != other.variant),
        ("the conditions", one.identity != other.identity),
        ("the sources", was.sources != is.sources),
        ("the flags", was.build_argv != is.build_argv),
        ("the constants of the trial", was.overrides != is.overrides),
        ("the launches a process", was.launches != is.launches),
        ("who measured", was.origin != is.origin),
        ("whose times they are", was.as_it_runs != is.as_it_runs),
        (&numbers, kernels != others),
    ];
    let differing = differing.into_iter().filter(|(_, differs)| *differs);
    differing.map(|(what, _)| what.to_owned()).collect()
}

/// Of both. A version that one of them does not state is not known.
fn join_provenance(one: &mut Provenance, other: Provenance) {
    one.created = one.created.clone().max(other.created);
    one.processes = one.processes.saturating_add(other.processes);
    one.captures.extend(other.captures);
    one.verified_before = one.verified_before.take().or(other.verified_before);
    if one.launch_list != other.launch_list {
        one.launch_list = None;
    }
    for (own, others) in [
        (&mut one.profiler, other.profiler),
        (&mut one.compiler, other.compiler),
        (&mut one.driver, other.driver),
        (&mut one.gpu_uuid, other.gpu_uuid),
        (&mut one.git, other.git),
        (&mut one.artifact_sha256, other.artifact_sha256),
    ] {
        *own = match (own.take(), others) {
            (Some(own), Some(others)) if own.split(", ").any(|part| part == others) => Some(own),
            (Some(own), Some(others)) => Some(format!("{own}, {others}")),
            _ => None,
        };
    }
    for pin in other.pins {
        if !one.pins.contains(&pin) {
            one.pins.push(pin);
        }
    }
}

/// The provenance names the captures of both by now, in the order of the samples.
fn join_samples(one: &mut Profile, kernels: Vec<KernelProfile>) -> Result<(), String> {
    let mut joined = std::mem::take(&mut one.kernels);
    for mut kernel in kernels {
        let own = joined
            .iter_mut()
            .find(|own| {
                own.identity() == kernel.identity()
                    && own.grid == kernel.grid
                    && own.block == kernel.block
            })
            .ok_or_else(|| {
                format!(
                    "only one of the profiles of {} has the kernel `{}`",
                    one.variant, kernel.name
                )
            })?;
        own.dynamic_shared_bytes =
            joined_sizes(&own.dynamic_shared_bytes, &kernel.dynamic_shared_bytes);
        for (alias, series) in &mut own.metrics {
            let further = kernel
                .metrics
                .remove(alias)
                .ok_or_else(|| format!("only one of the profiles has the metric `{alias}`"))?;
            let metric = one.identity.metrics.get(alias);
            let phase = metric.map_or(Phase::Timing, |metric| metric.phase);
            let mut samples = std::mem::take(&mut series.samples);
            samples.extend(further.samples);
            *series = Series::new(samples, &one.machines(phase));
        }
    }
    one.kernels = joined;
    Ok(())
}

/// The sizes of both. That some launches do not show theirs makes all unknown.
fn joined_sizes(one: &[u32], other: &[u32]) -> Vec<u32> {
    if one.is_empty() || other.is_empty() {
        return Vec::new();
    }
    let sizes: BTreeSet<u32> = one.iter().chain(other).copied().collect();
    sizes.into_iter().collect()
}
