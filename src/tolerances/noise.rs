//! How the values of one metric of one kernel vary, over all profiles that were recorded of it.

use std::collections::{BTreeMap, BTreeSet};

use super::judged::Judged;
use crate::config::{Metric, Variant};
use crate::evidence::why_not_measured;
use crate::profile::{KernelProfile, Profile};
use crate::statistics::{Samples, Scatter, fewest_launches, mean};
use crate::verdict::{Deviation, Population, Scale};

/// The profiles of one variant on one GPU model.
#[derive(Clone, Debug)]
pub struct Recorded<'a> {
    /// The variant, with its tolerances.
    pub variant: &'a Variant,
    /// The folder of its baseline: GPU model and tier.
    pub gpu: &'a str,
    /// What is locked.
    pub locked: &'a Profile,
    /// Further profiles, measured under the same conditions and from captures of their own.
    pub others: Vec<&'a Profile>,
}

/// How a metric of a kernel varies, in the terms of a tolerance: logarithms, or the metric's unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Varies {
    /// The values of processes on one GPU; `None` where no GPU has two processes.
    pub processes: Option<Deviation>,
    /// The values of GPUs that measured the same sources; `None` where no two did.
    pub machines: Option<Deviation>,
    /// How many processes the value of such a GPU has: the harmonic mean.
    pub of_a_machine: f64,
    /// GPUs that were compared; one where no two can be.
    pub gpus: usize,
}

impl Varies {
    /// Both at once, where both are known.
    pub fn population(&self) -> Option<Population> {
        Some(Population {
            processes: self.processes?,
            machines: self.machines?,
            of_a_machine: self.of_a_machine,
        })
    }
}

/// What a profile was made of: sources and build command. One that lists no source is only the same as
/// itself, by its place.
type Code<'p> = (&'p BTreeMap<String, String>, &'p [String], Option<usize>);

/// Process values of one GPU, in the terms.
struct OfGpu<'p> {
    gpu: Option<&'p str>,
    code: Code<'p>,
    values: Vec<f64>,
}

impl<'a> Recorded<'a> {
    /// The locked samples that are judged; `None` where they were not measured.
    pub(super) fn samples(&self, kernel: &KernelProfile, judged: Judged<'_>) -> Option<Samples> {
        let metric = judged.metric;
        if why_not_measured(metric, self.locked, kernel).is_some() {
            return None;
        }
        let samples = self.locked.samples(kernel, &metric.alias)?;
        let launches = fewest_launches([&samples, &samples]);
        judged.part.of(samples, launches)
    }

    /// How a metric of a locked kernel varies if each process makes so many launches; `None` where it was
    /// not measured, or has no logarithm that was asked for.
    pub(super) fn varies(
        &self,
        kernel: &KernelProfile,
        judged: Judged<'_>,
        scale: Scale,
        launches: u32,
    ) -> Option<Varies> {
        let metric = judged.metric;
        let mut all = Vec::new();
        for (at, profile) in std::iter::once(&self.locked)
            .chain(&self.others)
            .enumerate()
        {
            let same = profile.kernels.iter().find(|other| {
                let shape = |one: &KernelProfile| (one.grid, one.block);
                other.identity() == kernel.identity() && shape(other) == shape(kernel)
            });
            let Some(same) = same else {
                continue;
            };
            if why_not_measured(metric, profile, same).is_some() {
                continue;
            }
            let samples = profile.samples(same, &metric.alias);
            let Some(samples) = samples.and_then(|it| judged.part.noise(&it, launches as usize))
            else {
                continue;
            };
            let gpus = gpus_of(profile, same, metric);
            for (values, gpu) in samples.process_values().iter().zip(gpus) {
                all.push(OfGpu {
                    gpu,
                    code: code_of(profile, at),
                    values: in_terms(values, scale)?,
                });
            }
        }
        (!all.is_empty()).then(|| varies(&all))
    }
}

fn code_of(profile: &Profile, at: usize) -> Code<'_> {
    let made_of = &profile.provenance;
    let alone = made_of.sources.is_empty().then_some(at);
    (&made_of.sources, &made_of.build_argv, alone)
}

/// The GPUs of the samples, in their order.
fn gpus_of<'p>(
    profile: &'p Profile,
    kernel: &KernelProfile,
    metric: &Metric,
) -> Vec<Option<&'p str>> {
    let mut seen = BTreeSet::new();
    let machines = profile.machines(metric.phase).into_iter().map(Some);
    let series = kernel.metrics.get(&metric.alias);
    let samples = series.into_iter().flat_map(|series| &series.samples);
    let of_samples = samples.zip(machines.chain(std::iter::repeat(None)));
    of_samples
        .filter(|(process, _)| !process.is_empty())
        .map(|(_, gpu)| gpu.flatten())
        .filter(|gpu| seen.insert(*gpu))
        .collect()
}

fn in_terms(values: &[f64], scale: Scale) -> Option<Vec<f64>> {
    let converted = values.iter().map(|value| match scale {
        Scale::Relative => (*value > 0.0).then(|| value.ln()),
        Scale::Absolute => Some(*value),
    });
    converted.collect()
}

fn varies(all: &[OfGpu<'_>]) -> Varies {
    let deviation = |scatter: Scatter| {
        let sigma = scatter.sigma()?;
        let dof = scatter.dof;
        Some(Deviation { sigma, dof })
    };
    let processes = all.iter().map(|one| Scatter::of(&one.values));
    // Other sources may be another kernel: its distance is no difference between GPUs.
    let mut groups: BTreeMap<_, BTreeMap<&str, Vec<f64>>> = BTreeMap::new();
    for one in all {
        if let Some(gpu) = one.gpu {
            let group = groups.entry(one.code).or_default();
            group.entry(gpu).or_default().extend(&one.values);
        }
    }
    groups.retain(|_, gpus| gpus.len() > 1);
    let means = groups.values().map(|gpus| {
        let means: Vec<f64> = gpus.values().map(|values| mean(values)).collect();
        Scatter::of(&means)
    });
    let compared: Vec<&Vec<f64>> = groups.values().flat_map(BTreeMap::values).collect();
    let shares: f64 = compared.iter().map(|one| 1.0 / one.len() as f64).sum();
    let gpus: BTreeSet<&str> = groups
        .values()
        .flat_map(|gpus| gpus.keys().copied())
        .collect();
    Varies {
        processes: deviation(processes.fold(Scatter::default(), Scatter::and)),
        machines: deviation(means.fold(Scatter::default(), Scatter::and)),
        of_a_machine: compared.len() as f64 / shares,
        gpus: gpus.len().max(1),
    }
}
