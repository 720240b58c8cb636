//! Profiles of one variant from several machines to one.

use super::{Profile, Series};
use crate::terms::Phase;

impl Profile {
    /// One profile of the same variant and code, measured on several machines or in several runs:
    /// it then knows how far the machines are apart.
    ///
    /// # Errors
    /// Says what differs that must not.
    pub fn merge(profiles: Vec<Profile>) -> Result<Profile, String> {
        let mut profiles = profiles.into_iter();
        let mut merged = profiles
            .next()
            .ok_or_else(|| "there is no profile to merge".to_owned())?;
        for profile in profiles {
            merged.absorb(profile)?;
        }
        Ok(merged)
    }

    fn absorb(&mut self, other: Profile) -> Result<(), String> {
        let (was, is) = (&self.provenance, &other.provenance);
        let differing = [
            ("the variant", self.variant != other.variant),
            ("the conditions", self.identity != other.identity),
            ("the sources", was.sources != is.sources),
            ("the flags", was.build_argv != is.build_argv),
            ("the constants of the trial", was.overrides != is.overrides),
            ("the launches a process", was.launches != is.launches),
            ("who measured", was.origin != is.origin),
        ];
        if let Some((what, _)) = differing.iter().find(|(_, differs)| *differs) {
            return Err(format!(
                "{what} differ between the profiles of {}",
                self.variant
            ));
        }
        if self.kernels.len() != other.kernels.len() {
            return Err(format!(
                "the profiles of {} hold {} and {} kernels",
                self.variant,
                self.kernels.len(),
                other.kernels.len()
            ));
        }
        let shared = |own: Option<String>, others: Option<String>| match (own, others) {
            (Some(own), Some(others)) if own.split(", ").any(|part| part == others) => Some(own),
            (Some(own), Some(others)) => Some(format!("{own}, {others}")),
            _ => None,
        };
        let provenance = other.provenance;
        let own = &mut self.provenance;
        own.created = own.created.clone().max(provenance.created);
        own.processes = own
            .processes
            .checked_add(provenance.processes)
            .ok_or_else(|| "no profile has so many processes".to_owned())?;
        own.captures.extend(provenance.captures);
        own.profiler = shared(own.profiler.take(), provenance.profiler);
        own.compiler = shared(own.compiler.take(), provenance.compiler);
        own.driver = shared(own.driver.take(), provenance.driver);
        own.gpu_uuid = shared(own.gpu_uuid.take(), provenance.gpu_uuid);
        for pin in provenance.pins {
            if !own.pins.contains(&pin) {
                own.pins.push(pin);
            }
        }
        own.git = shared(own.git.take(), provenance.git);
        own.artifact_sha256 = shared(own.artifact_sha256.take(), provenance.artifact_sha256);

        let machines = |phase| -> Vec<Option<String>> {
            self.machines(phase)
                .into_iter()
                .map(|uuid| uuid.map(str::to_owned))
                .collect()
        };
        let (timing, counting) = (machines(Phase::Timing), machines(Phase::Counting));
        for mut kernel in other.kernels {
            let own = self
                .kernels
                .iter_mut()
                .find(|own| {
                    own.identity() == kernel.identity()
                        && own.grid == kernel.grid
                        && own.block == kernel.block
                })
                .ok_or_else(|| {
                    format!(
                        "only one of the profiles of {} holds `{}`",
                        self.variant, kernel.name
                    )
                })?;
            for (alias, series) in &mut own.metrics {
                let further = kernel
                    .metrics
                    .remove(alias)
                    .ok_or_else(|| format!("only one of the profiles holds `{alias}`"))?;
                let phase = self.identity.metrics.get(alias).map(|metric| metric.phase);
                let machines: Vec<Option<&str>> = match phase {
                    Some(Phase::Counting) => &counting,
                    _ => &timing,
                }
                .iter()
                .map(Option::as_deref)
                .collect();
                let mut samples = std::mem::take(&mut series.samples);
                samples.extend(further.samples);
                *series = Series::new(samples, &machines);
            }
        }
        Ok(())
    }
}
