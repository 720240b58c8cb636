//! When a variant is measured enough: the rule by which a run stops, given to it as a value.

use crate::config::Variant;
use crate::profile::Profile;

/// What was seen at a look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Whether more processes may still decide.
    pub open: bool,
    /// Whether all is decided, and more of them would still be worth some seconds.
    pub coarse: bool,
    /// What is known so far, for the progress: `+0.05 % ±0.40 %`.
    pub so_far: Option<String>,
}

/// Decides whether more processes of a variant are measured, within the configured bound.
pub trait Stopping {
    /// What the processes measured so far say of a variant. `base` is measured beside it, where there is
    /// one.
    fn look(&self, variant: &Variant, current: &Profile, base: Option<&Profile>) -> Look;

    /// Whether counters are read of a variant whose times were measured as it runs.
    fn counts(&self, variant: &Variant, current: &Profile, base: Option<&Profile>) -> bool;

    /// Whether it asks for them whatever the times are.
    fn counts_always(&self) -> bool;
}

/// Measures as many processes as are configured at least.
#[derive(Clone, Copy, Debug)]
pub struct Fewest;

impl Stopping for Fewest {
    fn look(&self, _: &Variant, _: &Profile, _: Option<&Profile>) -> Look {
        Look::default()
    }

    fn counts(&self, _: &Variant, _: &Profile, _: Option<&Profile>) -> bool {
        true
    }

    fn counts_always(&self) -> bool {
        true
    }
}
