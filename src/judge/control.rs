//! The control: an unchanged kernel, measured again, shows how much this machine differs from
//! those that a baseline was locked on. That difference is not one factor for all kernels, so it
//! only widens a band.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Variant;
use crate::evidence::why_not_measured;
use crate::metric::Tolerance;
use crate::profile::Profile;
use crate::terms::VariantId;
use crate::verdict::Change;

/// How far an unchanged variant reads from its own locked profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Control {
    /// The variant.
    pub variant: VariantId,
    /// By metric; of several kernels the largest.
    pub displacements: BTreeMap<String, Change>,
}

impl Control {
    /// Of an unchanged variant: what was locked, and what it reads now, in the terms that `judged`
    /// is judged in.
    pub fn new(variant: &Variant, judged: &Variant, locked: &Profile, now: &Profile) -> Control {
        let displacements = variant
            .metrics
            .iter()
            .filter(|metric| !metric.exact)
            .filter_map(|metric| {
                let mut metrics = judged.metrics.iter();
                let terms = metrics.find(|other| other.alias == metric.alias)?.tolerance;
                let changes = now.kernels.iter().filter_map(|kernel| {
                    let before = locked
                        .kernels
                        .iter()
                        .find(|other| other.identity() == kernel.identity())?;
                    let measured = why_not_measured(metric, locked, before).is_none()
                        && why_not_measured(metric, now, kernel).is_none();
                    let was = locked.samples(before, &metric.alias)?.value();
                    let is = now.samples(kernel, &metric.alias)?.value();
                    measured.then_some(match terms {
                        Tolerance::RelativePercent(_) if was > 0.0 && is > 0.0 => {
                            Change::RelativePercent((is / was - 1.0) * 100.0)
                        }
                        Tolerance::RelativePercent(_) => return None,
                        Tolerance::Absolute(_) => Change::Absolute(is - was),
                    })
                });
                let largest = changes.max_by(|a, b| a.size().total_cmp(&b.size()))?;
                Some((metric.alias.clone(), largest))
            })
            .collect();
        Control {
            variant: variant.id.clone(),
            displacements,
        }
    }

    /// The displacement of a metric in the terms of [`crate::verdict::against_stored`].
    pub(crate) fn of(&self, alias: &str) -> Option<f64> {
        self.displacements.get(alias).map(|change| match change {
            Change::RelativePercent(percent) => (percent / 100.0).ln_1p(),
            Change::Absolute(value) => *value,
        })
    }
}
