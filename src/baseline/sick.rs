//! Profiles of GPUs that are in quarantine, or were when these were measured.

use crate::finding::{Code, Finding};
use crate::profile::Profile;
use crate::quarantine::Quarantine;
use crate::terms::VariantId;

/// Why a profile must not be locked: its GPUs are in quarantine, or were when it was measured, so that it
/// may be of a run whose results were set aside. A merged profile has the time of the latest of its parts,
/// so this must be asked of each part.
pub(super) fn of_sick_gpus(
    variant: &VariantId,
    profile: &Profile,
    quarantine: &Quarantine,
) -> Vec<Finding> {
    let refuse =
        |message: String, next: String| Finding::deny(Code::GpuSick, variant, message, next);
    let again = format!("profile it: sparsek-gate profile {variant}");
    let created = &profile.provenance.created;
    let uuids = profile.gpu_uuids();
    let stored = uuids.iter().filter_map(|uuid| quarantine.of_gpu(uuid));
    let stored = stored.map(|stored| {
        let message = format!(
            "it was measured on the GPU {}, which is in quarantine {}",
            stored.uuid,
            stored.words()
        );
        refuse(message, format!("on another GPU, {again}"))
    });
    let then = uuids.iter().filter_map(|uuid| match quarantine.covering(uuid, created) {
        Ok(None) => None,
        Ok(Some(lifting)) => Some(refuse(
            format!(
                "it was measured at {created} on the GPU {uuid}. This GPU was in quarantine at that time, until {}",
                lifting.lifted
            ),
            again.clone(),
        )),
        // To profile again would end here, too.
        Err(why) => Some(refuse(
            format!("whether the GPU {uuid} was in quarantine is not known: {why}"),
            "correct or remove the file that is named, and lock again".to_owned(),
        )),
    });
    stored.chain(then).collect()
}
