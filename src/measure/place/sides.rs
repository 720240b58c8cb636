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

impl<'a> Sides<'a> {
    /// The jobs that measure it.
    pub fn plan(&self) -> VariantPlan {
        match self.built_base() {
            Some(_) => VariantPlan::side_by_side(self.variant),
            None => VariantPlan::alone(self.variant),
        }
    }

    /// Its version at the base, where that was built.
    pub fn built_base(&self) -> Option<&BaseVariant<'a>> {
        self.base.as_ref()?.as_ref().ok()
    }
}
