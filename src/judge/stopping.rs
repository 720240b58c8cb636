//! When a variant is measured enough, by the verdict on it so far; and how many launches a process makes
//! side by side, by the noise of the locked baseline.

use super::variants::Judge;
use crate::config::Variant;
use crate::device::Gpu;
use crate::evidence::why_not_measured;
use crate::metric::{Level, Tolerance};
use crate::profile::Profile;
use crate::statistics::Samples;
use crate::terms::Phase;
use crate::verdict::{Bounds, KnownNoise, ProcessCost, Scale, Schedule, Stopping, cheapest};

impl Stopping for Judge<'_> {
    /// Whether the verdict is not clear yet.
    fn is_open(
        &self,
        variant: &Variant,
        current: &Profile,
        base: Option<&Profile>,
        before: &[Profile],
    ) -> bool {
        let waived = |metric: &str| self.waived(variant, metric);
        let Some(base) = base else {
            let control = self.control(variant, |id| {
                before.iter().find(|other| other.variant == *id)
            });
            return self
                .stored(variant, current, control.as_ref())
                .is_some_and(|(report, _)| report.open(waived));
        };
        let (report, _) = self.against(variant, base, current);
        match current.provenance.processes < 2 * variant.profile.max_rounds {
            true => report.open(waived),
            false => report.replaces_rounds(waived),
        }
    }

    /// As many launches as the locked noise asks for; `None` where the configuration leaves no
    /// choice, or nothing is locked for this GPU model.
    fn launches(&self, variant: &Variant, gpu: &Gpu, cost: ProcessCost) -> Option<Schedule> {
        let settings = &variant.profile;
        if settings.max_launches <= settings.launches {
            return None;
        }
        let counters = |locked: &&Profile| {
            locked.identity.tier == variant.tier() && locked.identity.gpu == gpu.name
        };
        let locked = self.locks_of(&variant.id).find(counters)?;
        let samples = noises(variant, locked);
        let known: Vec<KnownNoise<'_>> = samples
            .iter()
            .map(|(samples, tolerance)| {
                let (scale, tolerance) = Scale::of(*tolerance);
                KnownNoise {
                    samples,
                    scale,
                    tolerance,
                }
            })
            .collect();
        let bounds = Bounds {
            least: settings.launches,
            most: settings.max_launches,
            looks: settings.round_looks(),
        };
        Some(cheapest(&known, &bounds, cost))
    }
}

/// The locked samples of all metrics that are judged by their size, with their tolerances.
fn noises(variant: &Variant, locked: &Profile) -> Vec<(Samples, Tolerance)> {
    let mut noises = Vec::new();
    for metric in &variant.metrics {
        if metric.level == Level::Record || metric.exact || metric.phase != Phase::Timing {
            continue;
        }
        for kernel in &locked.kernels {
            if why_not_measured(metric, locked, kernel).is_none() {
                let samples = locked.samples(kernel, &metric.alias);
                noises.extend(samples.map(|samples| (samples, metric.against)));
            }
        }
    }
    noises
}
