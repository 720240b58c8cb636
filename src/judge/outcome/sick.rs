//! Which GPUs show in what they measured that they are sick.

use super::variants::{Judge, of};
use crate::config::Variant;
use crate::evidence::{SickGpu, Symptom, symptoms_in};
use crate::measure::Captures;
use crate::profile::{KernelProfile, Profile};
use crate::verdict::Verdict;

impl Judge<'_> {
    /// The GPUs whose profiles show symptoms: faults that the driver reported, a clock that was lowered
    /// throughout, an immutable variant that deviates. No verdict on code that a change can alter is a symptom.
    pub fn sick_gpus(&self, profiles: &Captures) -> Vec<SickGpu> {
        let mut found: Vec<SickGpu> = Vec::new();
        for current in &profiles.profiles {
            let Some(variant) = self.config().variant(&current.variant) else {
                continue;
            };
            let mut bases = profiles.bases.iter();
            let base = bases.find(|base| base.variant == current.variant);
            let sides: Vec<&Profile> = base.into_iter().chain([current]).collect();
            let mut symptoms = symptoms_in(variant, &sides);
            // A profile of several GPUs says of none that it deviates.
            if let [uuid] = current.gpu_uuids()[..]
                && let Some(deviates) = self.deviating(variant, current, profiles)
            {
                let of_gpu = symptoms.entry(uuid.to_owned()).or_default();
                of_gpu.push(deviates);
            }
            for (uuid, symptoms) in symptoms {
                let gpu = SickGpu {
                    uuid,
                    name: current.identity.gpu.clone(),
                    symptoms,
                };
                gpu.add_to(&mut found);
            }
        }
        found
    }

    /// That an immutable variant does not read as it was locked, by its own verdict against its lock. A variant
    /// whose program may be another one than the locked shows nothing, and neither does an incomplete or
    /// disturbed measurement.
    fn deviating(
        &self,
        variant: &Variant,
        current: &Profile,
        profiles: &Captures,
    ) -> Option<Symptom> {
        if !variant.immutable || self.changed.contains(&variant.id) {
            return None;
        }
        let locked = self.locked(current)?;
        let compiled = of(&variant.id, &profiles.compiled);
        let code = compiled.and_then(|now| Some((now, self.locked(now)?)));
        let same = is_locked_program(locked, current, code);
        if !same || !self.is_sound(variant, current) {
            return None;
        }
        let (report, _) = self.stored(variant, current)?;
        let deviates = report.comparisons.iter().find(|comparison| {
            let verdict = comparison.verdict;
            let deviates = matches!(verdict, Some(Verdict::Regressed | Verdict::Improved));
            // A waiver says why it does.
            let is_known = self.waived(variant, &comparison.metric);
            comparison.is_duration() && deviates && !is_known
        })?;
        Some(Symptom::Control {
            variant: variant.id.clone(),
            kernel: deviates.kernel.clone(),
            change: deviates.change?,
        })
    }
}

/// Whether a profile is of the program that was locked. Where machine code of both is known, it decides:
/// the same sources may be built with other flags. Else it is the program's hash; and of what no compiler
/// made here, its files.
fn is_locked_program(
    locked: &Profile,
    current: &Profile,
    compiled: Option<(&Profile, &Profile)>,
) -> bool {
    let (was, is) = (&locked.provenance, &current.provenance);
    if let (Some(was), Some(is)) = (&was.artifact_sha256, &is.artifact_sha256)
        && was == is
    {
        return true;
    }
    if let Some((now, then)) = compiled {
        return !now.kernels.is_empty() && same_machine_code(now, then);
    }
    let none = was.artifact_sha256.is_none() && is.artifact_sha256.is_none();
    none && !was.sources.is_empty() && was.sources == is.sources
}

fn same_machine_code(now: &Profile, then: &Profile) -> bool {
    now.kernels.iter().all(|kernel| {
        let mut others = then.kernels.iter();
        let other = others.find(|other| other.identity() == kernel.identity());
        let other = other.and_then(KernelProfile::text_sha256);
        other.is_some() && other == kernel.text_sha256()
    })
}
