//! Captures to samples. The same code serves `profile` and the re-derivation of locked numbers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use thiserror::Error;

use super::{KernelProfile, MetricIdentity, Series};
use crate::binary::whole;
use crate::config::Metric;
use crate::metric::Role;
use crate::terms::Phase;
use ncu_report::{Launch, Recording, Value};

/// One capture, as both readers saw it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The report (or the CSV, where only that exists).
    pub report: &'a Recording,
    /// The CSV of the same launches: it has units that a report lacks.
    pub csv: Option<&'a Recording>,
    /// Which metrics it measured; `None` where it is not known, and all are looked for.
    pub phase: Option<Phase>,
    /// UUID of the GPU, where it is known.
    pub gpu_uuid: Option<&'a str>,
}

impl Source<'_> {
    fn measured(&self, phase: Phase) -> bool {
        self.phase.is_none_or(|own| own == phase)
    }
}

/// What captures show of a variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Derived {
    /// Name of the GPU model.
    pub gpu: String,
    /// `major.minor`.
    pub compute_capability: String,
    /// What each alias stands for.
    pub metrics: BTreeMap<String, MetricIdentity>,
    /// The kernels, in the order of their first launch.
    pub kernels: Vec<KernelProfile>,
}

/// Why captures do not make a profile.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DeriveError {
    /// There is no launch in them.
    #[error("the capture contains no launch")]
    Empty,
    /// A launch does not name the GPU that it ran on.
    #[error(
        "the capture does not name the GPU that it was taken on, as the report and its raw page do, and \
         a details page does not: import the report, or the whole raw page \
         (ncu --import REPORT --csv --page raw)"
    )]
    NoGpu,
    /// Launches ran on several GPU models.
    #[error("the captures were taken on different GPU models: {0} and {1}")]
    SeveralGpus(String, String),
    /// Captures were taken under different conditions.
    #[error(
        "the captures were taken with different options of ncu (clock control, cache control, replay mode, graphs); of a CSV these are stated by arguments"
    )]
    SeveralConditions,
    /// What is stated is not what a capture contains.
    #[error(
        "the file has the options that ncu ran with, and they are others than the stated ones: leave the \
         arguments for clock control, cache control, replay mode and graphs away"
    )]
    OtherConditions,
}

impl Derived {
    /// Without those of these metrics that no launch has a value of.
    pub fn without_unmeasured(mut self, metrics: &[Metric]) -> Derived {
        for name in metrics.iter().map(|metric| &metric.alias) {
            let mut series = self.kernels.iter().filter_map(|it| it.metrics.get(name));
            if series.all(|series| series.value.is_none()) {
                self.metrics.remove(name);
                let kernels = self.kernels.iter_mut();
                kernels.for_each(|kernel| drop(kernel.metrics.remove(name)));
            }
        }
        self
    }
}

/// Groups launches by kernel, grid and block, and takes the counters' values as samples.
///
/// # Errors
/// [`DeriveError`]. A missing value is no error: it is a sample without a value.
pub fn derive(
    counters: &BTreeMap<String, (String, Phase)>,
    sources: &[Source<'_>],
) -> Result<Derived, DeriveError> {
    let mut gpu: Option<(String, String)> = None;
    let mut units: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut places: HashMap<Key<'_>, usize> = HashMap::new();
    for (process, source) in sources.iter().enumerate() {
        for (index, launch) in source.report.launches.iter().enumerate() {
            let found = gpu_of(launch).ok_or(DeriveError::NoGpu)?;
            match &gpu {
                None => gpu = Some(found),
                Some(first) if *first != found => {
                    return Err(DeriveError::SeveralGpus(first.0.clone(), found.0));
                }
                Some(_) => {}
            }
            for (alias, (counter, phase)) in counters {
                if !source.measured(*phase) {
                    continue;
                }
                let page = source.csv.and_then(|csv| csv.launches.get(index));
                let read = [Some(launch), page].into_iter().flatten();
                let mut read = read
                    .filter(|one| one.metrics.get(counter).is_some())
                    .peekable();
                // A launch that lacks the counter says nothing of its unit.
                if read.peek().is_some() {
                    let unit = read.find_map(|one| unit_of(one, counter));
                    // Of launches with different units it is not known.
                    let known = units.entry(alias).or_insert(unit);
                    *known = known.filter(|known| Some(*known) == unit);
                }
            }
            let at = *places.entry(key(launch)).or_insert_with(|| {
                groups.push(Group {
                    first: launch,
                    launches: vec![Vec::new(); sources.len()],
                });
                groups.len() - 1
            });
            groups[at].launches[process].push(launch);
        }
    }
    let (gpu, compute_capability) = gpu.ok_or(DeriveError::Empty)?;
    let metrics = counters
        .iter()
        .map(|(alias, (counter, phase))| {
            let unit = units.get(alias.as_str()).copied().flatten();
            (
                alias.clone(),
                MetricIdentity {
                    counter: counter.clone(),
                    unit: unit.map(str::to_owned),
                    phase: *phase,
                },
            )
        })
        .collect();
    let kernels = groups
        .iter()
        .map(|group| group.profile(counters, sources))
        .collect();
    Ok(Derived {
        gpu,
        compute_capability,
        metrics,
        kernels,
    })
}

/// What launches of the same kernel with the same grid and block share: the best name that a capture
/// has, grid and block. Records of launches lack the signature.
type Key<'a> = (&'a str, [u64; 3], [u64; 3]);

fn key(launch: &Launch) -> Key<'_> {
    let kernel = &launch.kernel;
    let names = [kernel.mangled.as_deref(), kernel.demangled.as_deref()];
    let name = names.into_iter().flatten().next();
    (name.unwrap_or(&kernel.function), launch.grid, launch.block)
}

struct Group<'a> {
    first: &'a Launch,
    launches: Vec<Vec<&'a Launch>>,
}

impl Group<'_> {
    /// Each size that a launch had, in bytes; none if some launch does not show it.
    fn dynamic_shared_bytes(&self) -> Vec<u32> {
        let sizes: Option<BTreeSet<u32>> = self
            .launches
            .iter()
            .flatten()
            .map(
                |launch| match Role::DynamicSharedBytes.measured(launch)?.value {
                    Value::Integer(bytes) => u32::try_from(bytes).ok(),
                    Value::Float(bytes) => whole(bytes),
                    _ => None,
                },
            )
            .collect();
        sizes.into_iter().flatten().collect()
    }

    fn profile(
        &self,
        counters: &BTreeMap<String, (String, Phase)>,
        sources: &[Source<'_>],
    ) -> KernelProfile {
        let series = |counter: &String, phase: Phase| {
            let (machines, samples): (Vec<Option<&str>>, Vec<_>) = self
                .launches
                .iter()
                .zip(sources)
                .filter(|(_, source)| source.measured(phase))
                .map(|(launches, source)| {
                    let values = launches
                        .iter()
                        .map(|launch| launch.metrics.get(counter.as_str())?.value.number())
                        .collect();
                    (source.gpu_uuid, values)
                })
                .unzip();
            Series::new(samples, &machines)
        };
        // Records of launches have another signature than reports, or none.
        let all = self.launches.iter().flatten();
        let mut demangled = all.filter_map(|launch| launch.kernel.demangled.clone());
        KernelProfile {
            name: self.first.kernel.function.clone(),
            mangled: self.first.kernel.mangled.clone(),
            demangled: demangled.next(),
            grid: self.first.grid,
            block: self.first.block,
            dynamic_shared_bytes: self.dynamic_shared_bytes(),
            code: None,
            metrics: counters
                .iter()
                .map(|(alias, (counter, phase))| (alias.clone(), series(counter, *phase)))
                .collect(),
        }
    }
}

fn unit_of<'a>(launch: &'a Launch, counter: &str) -> Option<&'a str> {
    launch.metrics.get(counter)?.unit.symbol()
}

/// Model name and compute capability.
fn gpu_of(launch: &Launch) -> Option<(String, String)> {
    let name = Role::DeviceName.text(launch)?;
    let major = Role::ComputeCapabilityMajor.number(launch)?;
    let minor = Role::ComputeCapabilityMinor.number(launch)?;
    Some((name.to_owned(), format!("{major}.{minor}")))
}
