//! What a suite takes from the whole configuration, and a variant from its suite.

use crate::config::model::{Metric, Work};
use crate::config::raw::{RawProfile, RawSuite, RawVerify};

/// What the whole configuration gives every suite.
pub(super) struct Common<'a> {
    pub profile: &'a RawProfile,
    pub verify: &'a RawVerify,
    pub metrics: &'a [Metric],
    pub static_metrics: &'a [Metric],
    /// Those of variants whose machine code is read without the text of a compiler.
    pub code_metrics: &'a [Metric],
}

/// What a suite gives its variants.
pub(super) struct Inherited<'a> {
    pub suite: &'a RawSuite,
    pub common: &'a Common<'a>,
    pub metrics: &'a [Metric],
    pub work: Work,
}
