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
        VariantPlan::of(self.variant, self.built_base().is_some())
    }

    /// Its version at the base, where that was built.
    pub fn built_base(&self) -> Option<&BaseVariant<'a>> {
        self.base.as_ref()?.as_ref().ok()
    }
}
