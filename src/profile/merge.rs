//! Profiles of one variant from several machines to one.

use super::{Profile, Provenance, Series};
use crate::terms::Phase;

impl Profile {
    /// One profile of the same variant and code, measured on several machines or in several runs:
    /// it then shows how far the machines are apart.
    ///
    /// # Errors
    /// Names what differs and must not.
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
        self.check_alike(&other)?;
        self.provenance.absorb(other.provenance)?;
        // Of the captures of both.
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
                        "only one of the profiles of {} has the kernel `{}`",
                        self.variant, kernel.name
                    )
                })?;
            for (alias, series) in &mut own.metrics {
                let further = kernel
                    .metrics
                    .remove(alias)
                    .ok_or_else(|| format!("only one of the profiles has the metric `{alias}`"))?;
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

    /// Names what differs from another profile and must not.
    fn check_alike(&self, other: &Profile) -> Result<(), String> {
        let (own, others) = (&self.provenance, &other.provenance);
        let differing = [
            ("the variant", self.variant != other.variant),
            ("the conditions", self.identity != other.identity),
            ("the sources", own.sources != others.sources),
            ("the flags", own.build_argv != others.build_argv),
            (
                "the constants of the trial",
                own.overrides != others.overrides,
            ),
            ("the launches a process", own.launches != others.launches),
            ("who measured", own.origin != others.origin),
        ];
        if let Some((what, _)) = differing.iter().find(|(_, differs)| *differs) {
            return Err(format!(
                "{what} differ between the profiles of {}",
                self.variant
            ));
        }
        if self.kernels.len() != other.kernels.len() {
            return Err(format!(
                "the profiles of {} have {} and {} kernels",
                self.variant,
                self.kernels.len(),
                other.kernels.len()
            ));
        }
        Ok(())
    }
}

impl Provenance {
    /// That of both. A version that one of them does not state is not known.
    fn absorb(&mut self, other: Provenance) -> Result<(), String> {
        self.created = self.created.clone().max(other.created);
        self.processes = self
            .processes
            .checked_add(other.processes)
            .ok_or_else(|| "the profiles have too many processes".to_owned())?;
        self.captures.extend(other.captures);
        for (own, others) in [
            (&mut self.profiler, other.profiler),
            (&mut self.compiler, other.compiler),
            (&mut self.driver, other.driver),
            (&mut self.gpu_uuid, other.gpu_uuid),
            (&mut self.git, other.git),
            (&mut self.artifact_sha256, other.artifact_sha256),
        ] {
            *own = match (own.take(), others) {
                (Some(own), Some(others)) if own.split(", ").any(|part| part == others) => {
                    Some(own)
                }
                (Some(own), Some(others)) => Some(format!("{own}, {others}")),
                _ => None,
            };
        }
        for pin in other.pins {
            if !self.pins.contains(&pin) {
                self.pins.push(pin);
            }
        }
        Ok(())
    }
}
