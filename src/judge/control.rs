//! The control: an unchanged kernel, measured again, shows how much this machine differs from
//! those that a baseline was locked on. That difference is not one factor for all kernels, so it
//! only widens a band.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tail::Part;
use crate::config::{Metric, Variant};
use crate::evidence::why_not_measured;
use crate::metric::Tolerance;
use crate::profile::Profile;
use crate::statistics::fewest_launches;
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
        let mut displacements = BTreeMap::new();
        for metric in variant.metrics.iter().filter(|metric| !metric.exact) {
            let mut metrics = judged.metrics.iter();
            let Some(terms) = metrics.find(|other| other.alias == metric.alias) else {
                continue;
            };
            let of_part = |part, terms| largest(metric, part, terms, [locked, now]);
            let every = of_part(Part::Every, terms.tolerance);
            displacements.extend(every.map(|change| (metric.alias.clone(), change)));
            let tail = terms.tail;
            let tail = tail.and_then(|tail| of_part(Part::Slowest, tail.tolerance));
            displacements.extend(tail.map(|change| (metric.tail_name(), change)));
        }
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

/// How far the kernels of a profile are from their locked values, in these terms: the largest change.
fn largest(
    metric: &Metric,
    part: Part,
    terms: Tolerance,
    [locked, now]: [&Profile; 2],
) -> Option<Change> {
    let changes = now.kernels.iter().filter_map(|kernel| {
        let mut kernels = locked.kernels.iter();
        let before = kernels.find(|other| other.identity() == kernel.identity())?;
        let measured = why_not_measured(metric, locked, before).is_none()
            && why_not_measured(metric, now, kernel).is_none();
        let was = locked.samples(before, &metric.alias)?;
        let is = now.samples(kernel, &metric.alias)?;
        let launches = fewest_launches([&was, &is]);
        let was = part.of(was, launches)?.value();
        let is = part.of(is, launches)?.value();
        measured.then_some(match terms {
            Tolerance::RelativePercent(_) if was > 0.0 && is > 0.0 => {
                Change::RelativePercent((is / was - 1.0) * 100.0)
            }
            Tolerance::RelativePercent(_) => return None,
            Tolerance::Absolute(_) => Change::Absolute(is - was),
        })
    });
    changes.max_by(|a, b| a.size().total_cmp(&b.size()))
}
