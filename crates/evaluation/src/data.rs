//! The recordings that checks are drawn from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::programs::ProgramPair;
use sparsek_gate::config::{Config, Metric, Variant};
use sparsek_gate::files::{PROFILE_FILE, base_folder};
use sparsek_gate::finding::Error;
use sparsek_gate::metric::{Level, Role, Tolerance};
use sparsek_gate::profile::{KernelProfile, Profile};
use sparsek_gate::statistics::of_process;
use sparsek_gate::terms::Phase;
use sparsek_gate::verdict::Question;

/// Processes that one round adds to each side.
pub const A_ROUND: usize = 2;
/// The metric that is judged side by side.
pub const DURATION: &str = "duration";

/// The launches of processes, in the order of time.
pub type Processes = Vec<Vec<f64>>;

/// The durations of a kernel, measured side by side on one GPU. Round `r` is the processes `2r` and
/// `2r + 1` of each side.
pub struct Pair {
    /// The name of its variant.
    pub variant: String,
    /// The first digits of the UUID of its GPU.
    pub gpu: String,
    pub question: Question,
    pub base: Processes,
    pub current: Processes,
}

/// One metric of a kernel, measured on several GPUs.
pub struct OfGpus {
    pub variant: String,
    /// The alias of the metric.
    pub metric: String,
    pub question: Question,
    /// How many processes a check measures at first.
    pub processes: usize,
    /// The value of each process of each GPU, as its only launch; by UUID.
    pub gpus: BTreeMap<String, Processes>,
}

/// All recordings.
pub struct Recordings {
    /// Both sides are the same code.
    pub unchanged: Vec<Pair>,
    /// The current side is slower on purpose.
    pub planted: Vec<Pair>,
    /// What is judged against a stored baseline, by variant and metric.
    pub stored: Vec<OfGpus>,
    /// Whole programs, compared with themselves.
    pub programs: Vec<ProgramPair>,
}

impl Recordings {
    /// Reads `rounds/<gpu>/{aa,planted}`, `unchanged/<gpu>/aa` and the profiles of `machines/<gpu>`, which were
    /// timed by ncu, and `programs/<gpu>/aa`, which were timed as they run.
    ///
    /// # Errors
    /// [`Error::Io`], or [`Error::Input`] of a file that is no profile, or a folder without any.
    pub fn read(folder: &Path, config: &Config) -> Result<Recordings, Error> {
        let below = |name: &str, below: &str| each_below(&folder.join(name), below);
        let unchanged = [below("rounds", "aa")?, below("unchanged", "aa")?].concat();
        let recordings = Recordings {
            unchanged: pairs(&unchanged, config)?,
            planted: pairs(&below("rounds", "planted")?, config)?,
            stored: stored(&below("machines", "")?, config)?,
            programs: ProgramPair::read(&folder.join("programs"))?,
        };
        let is_empty = [
            recordings.unchanged.is_empty(),
            recordings.planted.is_empty(),
            recordings.stored.is_empty(),
            recordings.programs.is_empty(),
        ];
        match is_empty.contains(&true) {
            true => Err(wrong(folder, "recordings of a question are missing")),
            false => Ok(recordings),
        }
    }
}

/// The folders in a folder, each with that path below it; sorted.
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

/// What is judged side by side, of every variant that was recorded so below one of these folders.
fn pairs(folders: &[PathBuf], config: &Config) -> Result<Vec<Pair>, Error> {
    let mut pairs = Vec::new();
    for folder in folders {
        for variant in config.variants() {
            let path = base_folder(folder, &variant.id).join(PROFILE_FILE);
            let (Some(base), Some(current)) =
                (Profile::at(&path)?, Profile::recorded(folder, &variant.id)?)
            else {
                continue;
            };
            let judged = judged(variant, |metric| metric.tolerance.against);
            for (metric, question) in judged.filter(|(metric, _)| metric.alias == DURATION) {
                for kernel in &current.kernels {
                    let was = base.kernels.iter().find(|was| was.name == kernel.name);
                    let sides = was.map(|was| {
                        let sides = [(&base, was), (&current, kernel)];
                        sides.map(|(side, kernel)| on_one_gpu(side, kernel, &metric.alias))
                    });
                    let Some([Some((gpu, base)), Some((same_gpu, current))]) = sides else {
                        return Err(wrong(&path, "a kernel is not on both sides, on one GPU"));
                    };
                    let pair = Pair {
                        variant: variant.id.to_string(),
                        gpu: short(&gpu),
                        question,
                        base,
                        current,
                    };
                    let processes = pair.base.len().min(pair.current.len());
                    if gpu != same_gpu || processes < A_ROUND {
                        return Err(wrong(&path, "it has no complete round on one GPU"));
                    }
                    pairs.push(pair);
                }
            }
        }
    }
    Ok(pairs)
}

/// What is judged against a baseline, of every GPU that was recorded in one of these folders.
fn stored(folders: &[PathBuf], config: &Config) -> Result<Vec<OfGpus>, Error> {
    let mut all = Vec::new();
    for variant in config.variants().filter(|variant| !variant.experimental) {
        let mut of_variant: BTreeMap<(String, String), OfGpus> = BTreeMap::new();
        for folder in folders {
            let Some(profile) = Profile::recorded(folder, &variant.id)? else {
                continue;
            };
            for (metric, question) in judged(variant, |metric| metric.tolerance.stored) {
                for kernel in &profile.kernels {
                    let Some((gpu, processes)) = on_one_gpu(&profile, kernel, &metric.alias) else {
                        return Err(wrong(folder, "a metric has no value, or not on one GPU"));
                    };
                    let key = (kernel.name.clone(), metric.alias.clone());
                    let known = of_variant.entry(key).or_insert_with(|| OfGpus {
                        variant: variant.id.to_string(),
                        metric: metric.alias.clone(),
                        question,
                        processes: variant.profile.processes as usize,
                        gpus: BTreeMap::new(),
                    });
                    let values = processes.iter().map(|launches| vec![of_process(launches)]);
                    known.gpus.entry(gpu).or_default().extend(values);
                }
            }
        }
        all.extend(of_variant.into_values());
    }
    Ok(all)
}

/// The metrics that fail a check by their size, and what is asked of each.
fn judged(
    variant: &Variant,
    tolerance: impl Fn(&Metric) -> Option<Tolerance>,
) -> impl Iterator<Item = (&Metric, Question)> {
    variant.metrics.iter().filter_map(move |metric| {
        let fails = metric.level == Level::Deny && !metric.exact && metric.phase == Phase::Timing;
        let question = Question {
            tolerance: tolerance(metric).filter(|_| fails)?,
            direction: metric.direction,
            is_time: metric.role() == Some(Role::Duration),
            part: 1.0,
            strict: false,
        };
        Some((metric, question))
    })
}

/// The GPU that a kernel was measured on, and its processes. `None` if there are several, or a launch has no
/// value.
fn on_one_gpu(
    profile: &Profile,
    kernel: &KernelProfile,
    metric: &str,
) -> Option<(String, Processes)> {
    let samples = profile.samples(kernel, metric)?;
    match (&profile.gpu_uuids()[..], samples.machines()) {
        ([gpu], [processes]) => Some(((*gpu).to_owned(), processes.clone())),
        _ => None,
    }
}

/// The first digits of the UUID of a GPU, as folders are named.
pub fn short(uuid: &str) -> String {
    let digits = uuid.trim_start_matches("GPU-").chars();
    digits.take(8).collect()
}

pub fn wrong(path: &Path, cause: &str) -> Error {
    Error::Input {
        path: path.to_path_buf(),
        cause: cause.to_owned(),
    }
}
