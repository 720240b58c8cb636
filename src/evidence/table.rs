//! The checks of a profile that compare no values, in the order in which their findings are reported.

use super::complete::incomplete;
use super::disturbed::below_counters;
use super::launched::{beyond_bounds, launched_otherwise};
use super::other_launches::{interleaved_launches, other_launches};
use super::pins::unpinned;
use super::proven::numbers_unchecked;
use super::tuning::{tuning_measured, tuning_varies};
use crate::config::Variant;
use crate::finding::Finding;
use crate::profile::{CaptureRecord, Profile};

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
    /// Its code is judged.
    CodeJudged,
}

impl Examined<'_> {
    /// Adds what is found at such a time to the findings.
    pub fn findings(&self, when: When, found: &mut Vec<Finding>) {
        let (variant, current, references) = (self.variant, self.current, &self.references);
        let provenance = &current.provenance;
        if when == When::Measured {
            found.extend(unpinned(&variant.id, "measured", &provenance.pins));
            found.extend(interleaved_launches(variant, current));
        }
        if when == When::Alone {
            found.extend(incomplete(variant, current));
            found.extend(below_counters(variant, current));
        }
        if when == When::CodeJudged {
            found.extend(beyond_bounds(variant, current));
        }
        if matches!(when, When::Judged | When::CodeJudged) {
            found.extend(numbers_unchecked(variant, references, current));
            found.extend(other_launches(variant, references, current));
        }
        if matches!(when, When::Measured | When::Judged) {
            found.extend(tuning_varies(variant, current));
            found.extend(launched_otherwise(variant, current));
        }
        if when == When::Judged {
            let tuned = |one: &CaptureRecord| tuning_measured(variant, &one.tuned);
            found.extend(provenance.captures.iter().find_map(tuned));
        }
    }
}
