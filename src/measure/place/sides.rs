//! Both sides of a variant, built.

use super::base::BaseVariant;
use crate::build::{Artifact, Witness};
use crate::config::Variant;
use crate::finding::Finding;
use crate::plan::VariantPlan;

/// A variant, and its version at the base where there is one.
pub(in crate::measure) struct Sides<'a> {
    pub variant: &'a Variant,
    /// `None` where it could not be built.
    pub current: Option<(Artifact, Witness)>,
    pub base: Option<Result<BaseVariant<'a>, Finding>>,
}

impl Sides<'_> {
    /// The jobs that measure it.
    pub fn plan(&self) -> VariantPlan {
        match self.base {
            Some(Ok(_)) => VariantPlan::side_by_side(self.variant),
            _ => VariantPlan::alone(self.variant),
        }
    }
}
