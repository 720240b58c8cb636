//! Causes in how memory is accessed.

use super::moved::{Moved, Step};
use crate::metric::Role;

/// Bank conflicts that were added matter from this share of the instructions, or of the accesses to
/// shared memory: a conflict costs about a cycle of the unit that an instruction also takes.
const CONFLICTS_THAT_MATTER: f64 = 0.02;
/// Where neither of them was measured.
const FEWEST_CONFLICTS: f64 = 100_000.0;

pub(super) fn bank_conflicts(moved: &Moved<'_>) -> Option<String> {
    let step = moved.get(Role::BankConflicts)?;
    let more = step.is - step.was;
    let executed = [Role::SharedWavefronts, Role::Instructions]
        .iter()
        .filter_map(|role| moved.get(*role))
        .map(|step| step.is)
        .filter(|executed| *executed > 0.0)
        .max_by(f64::total_cmp);
    let fewest = executed.map_or(FEWEST_CONFLICTS, |executed| {
        CONFLICTS_THAT_MATTER * executed
    });
    let grew = more > 0.0 && step.is >= 2.0 * step.was && more >= fewest;
    grew.then(|| {
        format!(
            "shared-memory bank conflicts{} ({})",
            step.times(),
            step.values("")
        )
    })
}

pub(super) fn uncoalesced(moved: &Moved<'_>) -> Option<String> {
    let sectors = moved.get(Role::GlobalLoadSectors)?;
    if let Some(requests) = moved.get(Role::GlobalLoadRequests)
        && requests.was > 0.0
        && requests.is > 0.0
    {
        let each = Step {
            was: sectors.was / requests.was,
            is: sectors.is / requests.is,
            exact: false,
        };
        // Wider loads also take more sectors a request, and no more of them for the same work.
        let work = moved
            .tensor_flop()
            .filter(|step| step.was > 0.0 && step.is > 0.0)
            .map_or(1.0, |step| step.is / step.was);
        if each.grew(1.2) && sectors.is > sectors.was * work * 1.05 {
            return Some(format!(
                "uncoalesced global loads: {:.2} → {:.2} sectors a request (sectors {})",
                each.was,
                each.is,
                sectors.values("")
            ));
        }
    }
    sectors.grew(1.2).then(|| {
        format!(
            "global loads touch more sectors:{} ({})",
            sectors.times(),
            sectors.values("")
        )
    })
}
