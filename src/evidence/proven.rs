//! Whether the processes that were measured are those whose numbers were checked.

use crate::config::Variant;
use crate::finding::{Code, Finding};
use crate::profile::{Profile, ProfileOrigin};

/// The finding that the measured processes no longer report on their own numbers, although those of
/// a reference did: a program could then compute right numbers where it is checked, and less where
/// it is measured.
pub fn numbers_unchecked(
    variant: &Variant,
    references: &[&Profile],
    current: &Profile,
) -> Option<Finding> {
    let reference = references
        .iter()
        .find(|reference| reference.checked_processes() > 0)?;
    let (checked, all) = (
        current.checked_processes(),
        current.provenance.captures.len(),
    );
    (checked < all).then(|| {
        let message = format!(
            "{checked} of {all} measured processes report that their numbers are correct; of the reference {} of {} did",
            reference.checked_processes(),
            reference.provenance.captures.len()
        );
        let (id, is_imported) = (&variant.id, current.provenance.origin == ProfileOrigin::Imported);
        let measure = format!("an import has no results of its program: measure it (`sparsek-gate profile {id}`), or compare it with the lock of an earlier import");
        let next = is_imported.then_some(measure);
        Finding::of(Code::NumbersUnchecked, id, message).or_next(next)
    })
}
