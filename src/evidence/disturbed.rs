//! Disturbances of a measurement: other users of the GPU, a clock that changed, counters that could
//! not be read.

use std::collections::BTreeMap;

use super::plausible::{Purpose, device_findings};
use crate::config::{StatedBy, Variant};
use crate::device::State;
use crate::finding::{Code, Finding, WarnReason};
use crate::profile::{Profile, ProfileOrigin};
use crate::terms::{Tier, VariantId};

/// What disturbed a profile while it was measured: counters that could not be read, and the state
/// that the GPU reported. Each GPU is compared with itself alone.
pub fn disturbed(variant: &Variant, profile: &Profile, purpose: Purpose) -> Vec<Finding> {
    let mut states: BTreeMap<Option<&str>, Vec<&State>> = BTreeMap::new();
    for capture in &profile.provenance.captures {
        let of_gpu = states.entry(capture.gpu_uuid.as_deref()).or_default();
        of_gpu.extend(&capture.device);
    }
    let of_one = |states| device_findings(&variant.id, &[("current", states)], purpose);
    let disturbances = states.into_values().flat_map(of_one);
    below_counters(variant, profile)
        .into_iter()
        .chain(disturbances)
        .chain(unwatched(&variant.id, profile))
        .collect()
}

/// The finding that a profile was measured without the counters. It only warns where the
/// configuration accepts that tier by name.
pub fn below_counters(variant: &Variant, profile: &Profile) -> Option<Finding> {
    let tier = profile.identity.tier;
    // `compare` reads them where they explain something, and says there that they are denied.
    let may_lack = profile.provenance.as_it_runs && variant.stated_by != StatedBy::Configuration;
    if tier == Tier::Counters || may_lack {
        return None;
    }
    let message = format!(
        "the GPU's counters could not be read: measured by {tier}, which gives only the time of each launch"
    );
    let finding = Finding::of(Code::NoPermission, &variant.id, message);
    let accepted = variant.accepts(tier);
    Some(finding.warn_for(accepted.then_some(WarnReason::TierAccepted)))
}

/// The finding that it is not known whether the GPU was disturbed.
pub(crate) fn unwatched(variant: &VariantId, profile: &Profile) -> Option<Finding> {
    let captures = &profile.provenance.captures;
    let unwatched = profile.provenance.origin == ProfileOrigin::Measured
        && captures.iter().all(|capture| capture.device.is_none());
    unwatched.then(|| {
        let message = "the driver's library NVML did not report the GPU's state: whether the GPU was shared, or its clock was lowered, is not known";
        Finding::of(Code::GpuUnwatched, variant, message)
    })
}

/// What the state of the GPU shows against the captures of both sides of a comparison.
pub(crate) fn disturbances(
    variant: &VariantId,
    sides: &[(&str, &Profile)],
    purpose: Purpose,
) -> Vec<Finding> {
    let states: Vec<(&str, Vec<&State>)> = sides
        .iter()
        .map(|(name, profile)| {
            let captures = profile.provenance.captures.iter();
            let states = captures.filter_map(|capture| capture.device.as_ref());
            (*name, states.collect())
        })
        .collect();
    device_findings(variant, &states, purpose)
}
