//! The recorded rounds, by machine start, and profiles of chosen rounds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sparsek_gate::config::{Config, Variant};
use sparsek_gate::files::{PROFILE_FILE, base_folder};
use sparsek_gate::finding::Error;
use sparsek_gate::profile::{Profile, Series};
use sparsek_gate::terms::{Phase, VariantId};

/// Processes that one round adds to each side.
pub const A_ROUND: usize = 2;

/// A variant and its base, measured side by side. Round `r` is the processes `2r` and `2r + 1` of
/// each side.
pub struct Pair {
    pub base: Profile,
    pub head: Profile,
}

/// The recordings between one start of a machine and its end.
pub struct Start {
    /// Name of its folder.
    pub name: String,
    /// UUID of its GPU.
    pub gpu: String,
    /// Both sides are the same code, or the current side is slower by a known amount.
    pub pairs: BTreeMap<VariantId, Pair>,
}

/// All starts, and the variants that every start has.
pub struct Data {
    pub starts: Vec<Start>,
    /// The starts of each GPU, by index.
    pub machines: Vec<Vec<usize>>,
    /// Base and current side are the same code.
    pub unchanged: Vec<Variant>,
    /// The current side is slower on purpose.
    pub planted: Vec<Variant>,
}

impl Data {
    /// Reads `<folder>/<start>/{aa,planted}/<suite>/<variant>/{profile.json,base/profile.json}`.
    pub fn read(folder: &Path, config: &Config) -> Result<Data, Error> {
        let wrong = |path: &Path, cause: String| Error::Input {
            path: path.to_path_buf(),
            cause,
        };
        let folders = each_below(folder, "")?;
        let mut data = Data {
            starts: Vec::new(),
            machines: Vec::new(),
            unchanged: Vec::new(),
            planted: Vec::new(),
        };
        for path in folders {
            let mut pairs = BTreeMap::new();
            let mut found = |kind: &str| -> Result<Vec<Variant>, Error> {
                let mut variants = Vec::new();
                for variant in config.variants() {
                    if let Some(pair) = Pair::read(&path.join(kind), &variant.id)? {
                        pairs.insert(variant.id.clone(), pair);
                        variants.push(variant.clone());
                    }
                }
                Ok(variants)
            };
            let (unchanged, planted) = (found("aa")?, found("planted")?);
            if data.starts.is_empty() {
                (data.unchanged, data.planted) = (unchanged, planted);
            } else if ids(&data.unchanged) != ids(&unchanged) || ids(&data.planted) != ids(&planted)
            {
                return Err(wrong(
                    &path,
                    "it has other variants than the first start".to_owned(),
                ));
            }
            let gpu = gpu_of(&pairs).map_err(|cause| wrong(&path, cause))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            data.starts.push(Start {
                name: name.into_owned(),
                gpu,
                pairs,
            });
        }
        if data.unchanged.is_empty() || data.planted.is_empty() {
            return Err(wrong(
                folder,
                "no start here has both aa/ and planted/".to_owned(),
            ));
        }
        for (index, start) in data.starts.iter().enumerate() {
            let same = |machine: &&mut Vec<usize>| data.starts[machine[0]].gpu == start.gpu;
            match data.machines.iter_mut().find(same) {
                Some(machine) => machine.push(index),
                None => data.machines.push(vec![index]),
            }
        }
        Ok(data)
    }

    /// Timed launches of all starts and both sides.
    pub fn launches(&self) -> usize {
        let pairs = self.starts.iter().flat_map(|start| start.pairs.values());
        pairs.map(Pair::launches).sum()
    }
}

fn ids(variants: &[Variant]) -> Vec<&VariantId> {
    variants.iter().map(|variant| &variant.id).collect()
}

/// The folders in a folder, each with that path below it; sorted.
///
/// # Errors
/// [`Error::Io`].
pub fn each_below(folder: &Path, below: &str) -> Result<Vec<PathBuf>, Error> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let path = entry.map_err(Error::io("read", folder))?.path();
        if path.is_dir() {
            folders.push(path.join(below));
        }
    }
    folders.sort();
    Ok(folders)
}

/// The one GPU that all processes of a start ran on.
fn gpu_of(pairs: &BTreeMap<VariantId, Pair>) -> Result<String, String> {
    let mut gpus: Vec<&str> = pairs
        .values()
        .flat_map(|pair| [&pair.base, &pair.head])
        .flat_map(Profile::gpu_uuids)
        .collect();
    gpus.sort_unstable();
    gpus.dedup();
    match gpus[..] {
        [gpu] => Ok(gpu.to_owned()),
        _ => Err(format!(
            "it was measured on {} GPUs instead of one",
            gpus.len()
        )),
    }
}

impl Pair {
    /// Reads a variant and its base below a folder; `None` where it is not there.
    pub fn read(folder: &Path, variant: &VariantId) -> Result<Option<Pair>, Error> {
        let Some(head) = Profile::recorded(folder, variant)? else {
            return Ok(None);
        };
        let path = base_folder(folder, variant).join(PROFILE_FILE);
        let base = Profile::read(&path)?;
        let pair = Pair { base, head };
        if pair.base.variant != *variant || pair.head.variant != *variant || pair.rounds() == 0 {
            return Err(Error::Input {
                path,
                cause: format!("it and the profile beside it have no complete round of {variant}"),
            });
        }
        Ok(Some(pair))
    }

    /// Complete rounds that both sides have.
    pub fn rounds(&self) -> usize {
        let processes = |side: &Profile| side.machines(Phase::Timing).len();
        processes(&self.base).min(processes(&self.head)) / A_ROUND
    }

    /// Timed launches of both sides.
    fn launches(&self) -> usize {
        self.base.launch_count(Phase::Timing) + self.head.launch_count(Phase::Timing)
    }
}

/// The profile as if these rounds had been measured, in this order. The counting phase, which runs
/// once before the first round, stays.
pub fn of_rounds(profile: &Profile, rounds: &[usize]) -> Profile {
    let processes: Vec<usize> = rounds
        .iter()
        .flat_map(|round| (A_ROUND * round)..(A_ROUND * (round + 1)))
        .collect();
    let mut chosen = profile.clone();
    let (timing, other): (Vec<_>, Vec<_>) = std::mem::take(&mut chosen.provenance.captures)
        .into_iter()
        .partition(|capture| capture.phase == Some(Phase::Timing));
    chosen.provenance.processes = processes.len() as u32;
    chosen.provenance.captures = other;
    let timed = processes.iter().map(|process| timing[*process].clone());
    chosen.provenance.captures.extend(timed);
    let machines: Vec<Option<&str>> = processes
        .iter()
        .map(|process| timing[*process].gpu_uuid.as_deref())
        .collect();
    for kernel in &mut chosen.kernels {
        for (alias, series) in &mut kernel.metrics {
            let pass = chosen
                .identity
                .metrics
                .get(alias)
                .map(|metric| metric.phase);
            if pass == Some(Phase::Timing) {
                let samples = processes
                    .iter()
                    .map(|process| series.samples[*process].clone())
                    .collect();
                *series = Series::new(samples, &machines);
            }
        }
    }
    chosen
}

/// The profile as if each process of the timing phase had stopped after so many launches.
pub fn of_launches(profile: &Profile, launches: usize) -> Profile {
    let mut fewer = profile.clone();
    let machines: Vec<Option<String>> = fewer
        .machines(Phase::Timing)
        .into_iter()
        .map(|machine| machine.map(str::to_owned))
        .collect();
    let machines: Vec<Option<&str>> = machines.iter().map(Option::as_deref).collect();
    for kernel in &mut fewer.kernels {
        for (alias, series) in &mut kernel.metrics {
            let metric = fewer.identity.metrics.get(alias);
            if metric.is_some_and(|metric| metric.phase == Phase::Timing) {
                let first = series.samples.iter();
                let first = first.map(|process| process[..process.len().min(launches)].to_vec());
                *series = Series::new(first.collect(), &machines);
            }
        }
    }
    fewer
}
