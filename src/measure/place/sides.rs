//! Both sides of a variant, built.

use super::base::BaseVariant;
use crate::build::{Artifact, Witness};
use crate::config::Variant;
use crate::device::Gpu;
use crate::finding::Finding;
use crate::measure::cost::Costs;
use crate::plan::VariantPlan;
use crate::verdict::{Schedule, Stopping};

/// A variant, and its version at the base where there is one.
pub(in crate::measure) struct Sides<'a> {
    pub variant: &'a Variant,
    /// `None` where it could not be built.
    pub current: Option<(Artifact, Witness)>,
    pub base: Option<Result<BaseVariant<'a>, Finding>>,
}

impl Sides<'_> {
    /// The variant with as many launches as are chosen where it is measured side by side; the base's
    /// gets as many.
    pub fn choose(
        &mut self,
        gpu: &Gpu,
        costs: &Costs,
        stop: &dyn Stopping,
    ) -> Option<(Variant, Schedule)> {
        let Some(Ok(_)) = &self.base else {
            return None;
        };
        let schedule = stop.launches(self.variant, gpu, costs.process(&self.variant.id))?;
        Some((self.with(schedule), schedule))
    }

    /// The variant with so many launches; the base's gets as many.
    fn with(&mut self, schedule: Schedule) -> Variant {
        if let Some(Ok(base)) = &mut self.base {
            base.variant.profile.launches = schedule.launches;
        }
        let mut chosen = self.variant.clone();
        chosen.profile.launches = schedule.launches;
        chosen
    }

    /// The jobs that measure it.
    pub fn plan(&self) -> VariantPlan {
        match self.base {
            Some(Ok(_)) => VariantPlan::side_by_side(self.variant),
            _ => VariantPlan::alone(self.variant),
        }
    }
}
