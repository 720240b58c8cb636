//! The differences of two profiles.

use std::collections::BTreeSet;

use super::difference::{Difference, Property};
use crate::process::shell_line;
use crate::profile::{Profile, ProfileOrigin};
use crate::terms::{Phase, Tier};

fn stated(property: Property, was: Option<String>, is: Option<String>) -> Option<Difference> {
    (was != is).then_some(Difference::Stated { property, was, is })
}

/// Conditions in which two measured profiles differ. Metrics are compared one by one elsewhere.
pub fn measured(reference: &Profile, current: &Profile) -> Vec<Difference> {
    let (was, is) = (&reference.identity, &current.identity);
    let of = |property, was: String, is: String| stated(property, Some(was), Some(is));
    let (was_tier, is_tier) = (was.tier.to_string(), is.tier.to_string());
    let (was_args, is_args) = (shell_line(&was.workload), shell_line(&is.workload));
    let capability = (&was.compute_capability, &is.compute_capability);
    let mut differences: Vec<Difference> = [
        of(Property::Gpu, was.gpu.clone(), is.gpu.clone()),
        of(
            Property::ComputeCapability,
            capability.0.clone(),
            capability.1.clone(),
        ),
        of(Property::Workload, was_args, is_args),
        of(Property::Tier, was_tier, is_tier),
    ]
    .into_iter()
    .flatten()
    .collect();
    // Below the counters nothing sets the conditions.
    if was.tier == Tier::Counters && is.tier == Tier::Counters {
        let conditions = was.conditions.named().into_iter();
        let conditions = conditions.zip(is.conditions.named());
        // Two unknown conditions are not known to be the same.
        let differing = conditions.filter(|((_, was), (_, is))| was.is_none() || was != is);
        differences.extend(differing.map(|((name, was), (_, is))| Difference::Stated {
            property: Property::Condition(name),
            was: was.map(str::to_owned),
            is: is.map(str::to_owned),
        }));
    }
    differences
}

/// Why a base and a current profile were not measured side by side.
pub fn side_by_side(base: &Profile, current: &Profile) -> Vec<Difference> {
    let mut differences = Vec::new();
    let (was, is) = (base.gpu_uuids(), current.gpu_uuids());
    if was != is || was.len() != 1 {
        let owned = |uuids: Vec<&str>| uuids.into_iter().map(str::to_owned).collect();
        differences.push(Difference::Machines {
            base: owned(was),
            current: owned(is),
        });
    }
    let processes = |profile: &Profile| profile.machines(Phase::Timing).len();
    if processes(base) != processes(current) {
        differences.push(Difference::Processes {
            base: processes(base),
            current: processes(current),
        });
    }
    fn hashes(profile: &Profile) -> BTreeSet<&str> {
        let captures = profile.provenance.captures.iter();
        captures
            .map(|capture| capture.report.sha256.as_str())
            .collect()
    }
    if !hashes(base).is_disjoint(&hashes(current)) {
        differences.push(Difference::SameCaptures);
    }
    if base.provenance.origin != ProfileOrigin::Measured {
        differences.push(Difference::BaseImported);
    }
    if !base.provenance.overrides.is_empty() {
        let overrides = base.provenance.overrides.clone();
        differences.push(Difference::BaseTrial(overrides));
    }
    differences
}

/// Why the code of two static profiles was not compiled alike.
pub fn compiled(reference: &Profile, current: &Profile) -> Vec<Difference> {
    let (was, is) = (&reference.identity, &current.identity);
    let tier = |tier: Tier| Some(tier.to_string());
    [
        stated(
            Property::Target,
            Some(was.gpu.clone()),
            Some(is.gpu.clone()),
        ),
        stated(
            Property::Compiler,
            was.compiler.clone(),
            is.compiler.clone(),
        ),
        stated(Property::Tier, tier(was.tier), tier(is.tier)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Files that only the current profile was made from. A profile that lists no file is not known
/// to lack one.
pub fn added_sources(reference: &Profile, current: &Profile) -> Vec<Difference> {
    let listed = &reference.provenance.sources;
    let added = current.provenance.sources.keys();
    added
        .filter(|path| !listed.is_empty() && !listed.contains_key(*path))
        .map(|path| Difference::AddedSource(path.clone()))
        .collect()
}

/// What must not differ between profiles that are merged.
pub fn mergeable(one: &Profile, other: &Profile) -> Vec<Difference> {
    let (was, is) = (&one.provenance, &other.provenance);
    let differing = [
        ("the variant", one.variant != other.variant),
        ("the conditions", one.identity != other.identity),
        ("the sources", was.sources != is.sources),
        ("the flags", was.build_argv != is.build_argv),
        ("the constants of the trial", was.overrides != is.overrides),
        ("the launches a process", was.launches != is.launches),
        ("who measured", was.origin != is.origin),
    ];
    let differing = differing.into_iter().filter(|(_, differs)| *differs);
    let mut differences: Vec<Difference> = differing
        .map(|(what, _)| Difference::Merged(what))
        .collect();
    if one.kernels.len() != other.kernels.len() {
        differences.push(Difference::KernelCount(
            one.kernels.len(),
            other.kernels.len(),
        ));
    }
    differences
}
