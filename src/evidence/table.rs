//! The checks of a profile that compare no values, in the order in which their findings are reported.

use super::complete::{incomplete, incomplete_compiled};
use super::disturbed::below_counters;
use super::launched::launched_otherwise;
use super::other_launches::{interleaved_launches, other_launches};
use super::pins::unpinned;
use super::proven::numbers_unchecked;
use super::tuning::{tuning_measured, tuning_varies};
use crate::config::Variant;
use crate::finding::Finding;
use crate::profile::Profile;

/// A profile that is examined.
pub struct Examined<'a> {
    /// Its variant.
    pub variant: &'a Variant,
    /// The profile.
    pub current: &'a Profile,
    /// What it is compared with: the base, then the lock.
    pub references: Vec<&'a Profile>,
}

/// When a profile is examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// It was measured just now.
    Measured,
    /// Its measured numbers have nothing to be compared with.
    Alone,
    /// Its measured numbers are judged.
    Judged,
    /// Its code has nothing to be compared with.
    CodeAlone,
    /// Its code is judged.
    CodeJudged,
}

/// Adds what it finds to the findings of a run.
type Check = fn(&Examined<'_>, &mut Vec<Finding>);

const CHECKS: &[(&[When], Check)] = {
    use When::{Alone, CodeAlone, CodeJudged, Judged, Measured};
    &[
        (&[Measured], |it, found| found.extend(own_pins(it))),
        (&[Measured], |it, found| {
            found.extend(interleaved_launches(it.variant, it.current))
        }),
        (&[Alone], |it, found| {
            found.extend(incomplete(it.variant, it.current))
        }),
        (&[Alone], |it, found| {
            found.extend(below_counters(it.variant, it.current))
        }),
        (&[CodeAlone], |it, found| {
            found.extend(incomplete_compiled(it.variant, it.current))
        }),
        (&[Judged, CodeJudged], |it, found| {
            found.extend(numbers_unchecked(it.variant, &it.references, it.current));
            found.extend(other_launches(it.variant, &it.references, it.current));
        }),
        (&[Measured, Judged], |it, found| {
            found.extend(tuning_varies(it.variant, it.current))
        }),
        (&[Measured, Judged], |it, found| {
            found.extend(launched_otherwise(it.variant, it.current))
        }),
        (&[Judged], |it, found| found.extend(own_tuning(it))),
    ]
};

impl Examined<'_> {
    /// Adds what is found at such a time to the findings.
    pub fn findings(&self, when: When, findings: &mut Vec<Finding>) {
        let checks = CHECKS.iter().filter(|(times, _)| times.contains(&when));
        checks.for_each(|(_, check)| check(self, findings));
    }
}

fn own_pins(of: &Examined<'_>) -> Option<Finding> {
    unpinned(&of.variant.id, "measured", &of.current.provenance.pins)
}

fn own_tuning(of: &Examined<'_>) -> Option<Finding> {
    let mut captures = of.current.provenance.captures.iter();
    captures.find_map(|one| tuning_measured(of.variant, &one.tuned))
}
