//! Whether autotuners disturbed a measurement.

use std::collections::{BTreeMap, BTreeSet};

use crate::capture::Tuned;
use crate::config::{StatedBy, Variant};
use crate::finding::{Code, Finding, WarnReason};
use crate::profile::Profile;
use crate::terms::joined;

/// The finding that a process tuned a measured kernel, and nothing separates the launches of the
/// tuning from those that are measured: how many they are differs from run to run.
pub fn tuning_measured(variant: &Variant, tuned: &[Tuned]) -> Option<Finding> {
    if variant.profile.profiler_range {
        return None;
    }
    let filter = variant.kernel_filter();
    let mut tuned = tuned.iter();
    let one = tuned.find(|one| one.in_process && filter.matches(&one.kernel))?;
    let no_gate = variant.stated_by != StatedBy::Configuration;
    let message = format!(
        "the measured process tuned `{}`, and launches of the tuning may be among those that are measured; it chose {}",
        one.kernel,
        one.chosen.join(" and ")
    );
    let finding = Finding::of(Code::CodeVaries, &variant.id, message).kernel(&one.kernel);
    Some(finding.warn_for(no_gate.then_some(WarnReason::NoGate)))
}

/// What the processes of a profile chose for each kernel, as far as they report it.
pub(crate) fn chosen(profile: &Profile) -> BTreeMap<&str, BTreeSet<&[String]>> {
    let mut chosen: BTreeMap<&str, BTreeSet<&[String]>> = BTreeMap::new();
    let captures = profile.provenance.captures.iter();
    for tuned in captures.flat_map(|capture| &capture.tuned) {
        let of_kernel = chosen.entry(&tuned.kernel).or_default();
        of_kernel.insert(&tuned.chosen);
    }
    chosen
}

/// Kernels for which the processes of a profile chose differently: it mixes their times.
pub fn tuning_varies(variant: &Variant, profile: &Profile) -> Vec<Finding> {
    let filter = variant.kernel_filter();
    let chosen = chosen(profile).into_iter();
    let varying = chosen.filter(|(kernel, sets)| sets.len() > 1 && filter.matches(kernel));
    let finding = |(kernel, sets): (&str, BTreeSet<&[String]>)| {
        let texts = joined(sets.iter().map(|set| set.join(" and ")), "; ");
        let message = format!(
            "the processes of one measurement chose different configurations of `{kernel}`: {texts}"
        );
        Finding::of(Code::CodeVaries, &variant.id, message)
            .kernel(kernel)
            .warn_for((!variant.loaded_code).then_some(WarnReason::CodeNotGated))
    };
    varying.map(finding).collect()
}
