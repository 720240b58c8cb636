//! When a variant is measured enough: the rule by which a run stops, given to it as a value.

use crate::config::Variant;
use crate::profile::Profile;

/// Decides whether more processes of a variant are measured, within the configured bound.
pub trait Stopping {
    /// Whether more processes may still decide a variant. `base` is measured beside it, where there is
    /// one; `before` was measured before it in this run.
    fn is_open(
        &self,
        variant: &Variant,
        current: &Profile,
        base: Option<&Profile>,
        before: &[Profile],
    ) -> bool;

    /// Whether counters are read of a variant whose times were measured as it runs.
    fn counts(&self, variant: &Variant, current: &Profile, base: Option<&Profile>) -> bool;
}

/// Measures as many processes as are configured at least.
#[derive(Clone, Copy, Debug)]
pub struct Fewest;

impl Stopping for Fewest {
    fn is_open(&self, _: &Variant, _: &Profile, _: Option<&Profile>, _: &[Profile]) -> bool {
        false
    }

    fn counts(&self, _: &Variant, _: &Profile, _: Option<&Profile>) -> bool {
        true
    }
}
