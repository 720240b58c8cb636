//! Launches in a measured process that are not measured.

use crate::config::Variant;
use crate::finding::{Code, Finding, WarnReason};
use crate::profile::{LaunchList, Profile, ProfileOrigin};

/// The finding that the measured command line launches what is not measured, and what no reference
/// launches. It fails where such launches run between the measured ones about once each.
pub fn other_launches(
    variant: &Variant,
    references: &[&Profile],
    current: &Profile,
) -> Option<Finding> {
    let mut lists = references
        .iter()
        .filter_map(|reference| reference.provenance.launch_list.as_ref());
    let reference = lists.next();
    let Some(list) = &current.provenance.launch_list else {
        // That of an import is said as such.
        let is_import = current.provenance.origin == ProfileOrigin::Imported;
        return reference.filter(|_| !is_import).map(|_| unknown(variant));
    };
    let beyond = list.beyond(reference);
    if beyond.others.is_empty() {
        return None;
    }
    let than = match reference {
        Some(_) => "and not by its reference",
        None => "and no reference is known",
    };
    let found = found(variant, &beyond, than);
    Some(found.warn_for((!beyond.interleaved()).then_some(WarnReason::BesideMeasured)))
}

/// The warning about a profile that is not judged yet: something runs between the measured launches
/// about once each. Launches before and after them are usual: they prepare, and check.
pub fn interleaved_launches(variant: &Variant, current: &Profile) -> Option<Finding> {
    let list = current.provenance.launch_list.as_ref()?;
    list.interleaved()
        .then(|| found(variant, list, "by the command line that is measured"))
        .map(|found| found.warn_for(Some(WarnReason::BesideMeasured)))
}

fn found(variant: &Variant, list: &LaunchList, than: &str) -> Finding {
    let message = format!(
        "{} launches beside the {} measured ones are not measured, {than}: {}",
        list.other_launches(),
        list.measured,
        list.words()
    );
    Finding::of(Code::OtherLaunches, &variant.id, message)
}

fn unknown(variant: &Variant) -> Finding {
    let message = "which other kernels the measured processes launch is not known, although it is known of the reference";
    let next = "make CUPTI available where the GPU is measured (`toolchain.cupti`)";
    Finding::deny(Code::OtherLaunches, &variant.id, message, next)
        .warn_for(WarnReason::BesideMeasured)
}
