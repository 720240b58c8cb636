//! Profiles of one variant from several machines to one.

use super::difference::words;
use super::profiles::mergeable;
use crate::profile::{Profile, Series};
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
                "the profiles of {} differ in {}",
                merged.variant,
                words(&differences, ", ")
            ));
        }
        merged = joined(merged, profile)?;
    }
    Ok(merged)
}

/// Both in one, of profiles without a difference.
fn joined(mut one: Profile, other: Profile) -> Result<Profile, String> {
    join_provenance(&mut one, &other)?;
    join_samples(&mut one, other)?;
    Ok(one)
}

fn join_provenance(one: &mut Profile, other: &Profile) -> Result<(), String> {
    let shared = |own: Option<String>, others: Option<String>| match (own, others) {
        (Some(own), Some(others)) if own.split(", ").any(|part| part == others) => Some(own),
        (Some(own), Some(others)) => Some(format!("{own}, {others}")),
        _ => None,
    };
    let provenance = other.provenance.clone();
    let own = &mut one.provenance;
    own.created = own.created.clone().max(provenance.created);
    own.processes = own
        .processes
        .checked_add(provenance.processes)
        .ok_or_else(|| "no profile has so many processes".to_owned())?;
    own.captures.extend(provenance.captures);
    own.profiler = shared(own.profiler.take(), provenance.profiler);
    own.compiler = shared(own.compiler.take(), provenance.compiler);
    own.driver = shared(own.driver.take(), provenance.driver);
    own.gpu_uuid = shared(own.gpu_uuid.take(), provenance.gpu_uuid);
    for pin in provenance.pins {
        if !own.pins.contains(&pin) {
            own.pins.push(pin);
        }
    }
    own.git = shared(own.git.take(), provenance.git);
    own.artifact_sha256 = shared(own.artifact_sha256.take(), provenance.artifact_sha256);
    Ok(())
}

fn join_samples(one: &mut Profile, other: Profile) -> Result<(), String> {
    // The provenance names the machines of both by now, in the order of the samples.
    let machines = |phase| -> Vec<Option<String>> {
        one.machines(phase)
            .into_iter()
            .map(|uuid| uuid.map(str::to_owned))
            .collect()
    };
    let (timing, counting) = (machines(Phase::Timing), machines(Phase::Counting));
    for mut kernel in other.kernels {
        let own = one
            .kernels
            .iter_mut()
            .find(|own| {
                own.identity() == kernel.identity()
                    && own.grid == kernel.grid
                    && own.block == kernel.block
            })
            .ok_or_else(|| {
                format!(
                    "`{}` is in only one of the profiles of {}",
                    kernel.name, one.variant
                )
            })?;
        for (alias, series) in &mut own.metrics {
            let further = kernel
                .metrics
                .remove(alias)
                .ok_or_else(|| format!("`{alias}` is in only one of the profiles"))?;
            let phase = one.identity.metrics.get(alias).map(|metric| metric.phase);
            let machines: Vec<Option<&str>> = match phase {
                Some(Phase::Counting) => &counting,
                _ => &timing,
            }
            .iter()
            .map(Option::as_deref)
            .collect();
            let mut samples = std::mem::take(&mut series.samples);
            samples.extend(further.samples);
            *series = Series::new(samples, &machines);
        }
    }
    Ok(())
}
