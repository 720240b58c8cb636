//! Every variant against a baseline that other GPUs locked, from the values that GPUs were recorded
//! with.
//!
//! The processes of a GPU are judged as they were recorded. Each recorded GPU is the one that is
//! checked, and others lock the baseline. A change is put into the recorded values by a factor.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sparsek_gate::config::{Config, Variant};
use sparsek_gate::files::{PROFILE_FILE, base_folder};
use sparsek_gate::finding::Error;
use sparsek_gate::metric::{Direction, Level};
use sparsek_gate::profile::Profile;
use sparsek_gate::statistics::Samples;
use sparsek_gate::terms::{Phase, VariantId};
use sparsek_gate::verdict::{Change, Decision, Question, Scale, Verdict, against_stored};

use super::data::each_below;
use super::random::Random;

/// The changes that are tried, in percent; the smallest first.
const CHANGES: [f64; 14] = [
    1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 15.0,
];

/// Recordings of an earlier form of a kernel: the folder, suite and variant.
const EARLIER: [[&str; 3]; 1] = [["rounds", "bsr_gemm", "cp_async"]];

/// One metric of a kernel, by GPU.
#[derive(Clone)]
pub struct OfGpus {
    pub variant: VariantId,
    pub metric: String,
    question: Question,
    /// The values of the processes of each GPU; its UUID.
    processes: BTreeMap<String, Vec<f64>>,
}

/// What became of the checks of one metric of a kernel, or of several.
#[derive(Clone, Copy, Default)]
pub struct Counted {
    /// Pairs of a checked GPU and a baseline.
    pub checks: usize,
    /// Whose displacement is within the allowance.
    pub within: usize,
    /// That neither pass nor improve, nor are shown not to be worse.
    pub not_passed: usize,
    /// That regressed, with no change.
    pub alarms: usize,
    /// That regressed, with the change that was asked for.
    pub caught: usize,
}

impl Counted {
    /// Both together.
    pub fn and(self, other: Counted) -> Counted {
        Counted {
            checks: self.checks + other.checks,
            within: self.within + other.within,
            not_passed: self.not_passed + other.not_passed,
            alarms: self.alarms + other.alarms,
            caught: self.caught + other.caught,
        }
    }
}

/// The judged metrics of all locked variants, of the profiles below a folder of recordings. Without
/// `faults` and `h200-worse`, which are slower on purpose.
///
/// # Errors
/// [`Error::Io`], or [`Error::Input`] of a file that is no profile.
pub fn read(recordings: &Path, config: &Config) -> Result<Vec<OfGpus>, Error> {
    let mut folders = vec![recordings.join("h200")];
    for (name, below) in [
        ("h200-locked", ""),
        ("machines", ""),
        ("rounds", "aa"),
        ("unchanged", "aa"),
    ] {
        folders.extend(each_below(&recordings.join(name), below)?);
    }
    let mut all: Vec<OfGpus> = Vec::new();
    for variant in config.variants().filter(|variant| !variant.experimental) {
        let mut of_variant: BTreeMap<(String, String), OfGpus> = BTreeMap::new();
        let earlier = |folder: &PathBuf| {
            let mut all = EARLIER.iter();
            all.any(|[name, suite, of]| {
                folder.starts_with(recordings.join(name))
                    && variant.id.suite == *suite
                    && variant.id.variant == *of
            })
        };
        for folder in folders.iter().filter(|folder| !earlier(folder)) {
            let base = base_folder(folder, &variant.id).join(PROFILE_FILE);
            let both = [Profile::recorded(folder, &variant.id)?, Profile::at(&base)?];
            for profile in both.iter().flatten() {
                collect(&mut of_variant, variant, profile);
            }
        }
        all.extend(of_variant.into_values());
    }
    let comparisons = all.len();
    for one in &mut all {
        one.question.comparisons = comparisons;
    }
    Ok(all)
}

fn collect(found: &mut BTreeMap<(String, String), OfGpus>, variant: &Variant, profile: &Profile) {
    let Some(gpu) = profile.gpu_uuids().into_iter().next() else {
        return;
    };
    let judged = variant.metrics.iter().filter(|metric| {
        metric.level == Level::Deny && !metric.exact && metric.phase == Phase::Timing
    });
    for metric in judged {
        for kernel in &profile.kernels {
            let Some(samples) = profile.samples(kernel, &metric.alias) else {
                continue;
            };
            let (scale, tolerance) = Scale::of(metric.tolerance);
            let looks = variant.profile.process_looks();
            let one = found
                .entry((kernel.name.clone(), metric.alias.clone()))
                .or_insert_with(|| OfGpus {
                    variant: variant.id.clone(),
                    metric: metric.alias.clone(),
                    question: Question {
                        scale,
                        direction: metric.direction,
                        tolerance,
                        comparisons: 1,
                        looks: looks.iter().map(|look| *look as usize).collect(),
                    },
                    processes: BTreeMap::new(),
                });
            let processes = samples.process_values().iter().flatten();
            let of_gpu = one.processes.entry(gpu.to_owned()).or_default();
            of_gpu.extend(processes);
        }
    }
}

impl OfGpus {
    /// How many GPUs recorded it.
    pub fn gpus(&self) -> usize {
        self.processes.len()
    }

    /// Standard deviation of the values of GPUs: in percent where the tolerance is, otherwise in the
    /// unit of the metric.
    pub fn deviation(&self) -> f64 {
        let relative = self.question.scale == Scale::Relative;
        let values: Vec<f64> = self
            .processes
            .values()
            .map(|processes| {
                let sum: f64 = match relative {
                    true => processes.iter().map(|value| 100.0 * value.ln()).sum(),
                    false => processes.iter().sum(),
                };
                sum / processes.len() as f64
            })
            .collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (squares / (values.len() as f64 - 1.0)).sqrt()
    }

    /// The same with another tolerance.
    pub fn with(&self, tolerance: f64) -> OfGpus {
        let mut other = self.clone();
        other.question.tolerance = tolerance;
        other
    }

    /// The tolerance against a baseline, in the terms of the deviation.
    pub fn tolerance(&self) -> f64 {
        self.question.tolerance
    }

    /// Checks each GPU against a baseline of all others.
    pub fn leaving_one_out(&self, percent: f64) -> Counted {
        let all: Vec<usize> = (0..self.gpus()).collect();
        all.iter()
            .map(|checked| {
                let others: Vec<usize> = all.iter().copied().filter(|at| at != checked).collect();
                self.one_check(*checked, &others, percent)
            })
            .fold(Counted::default(), Counted::and)
    }

    /// So many checks, each of a GPU that recorded enough processes, against a baseline of so many
    /// others.
    pub fn drawn(&self, locked_on: usize, percent: f64, checks: usize, seed: u64) -> Counted {
        let one = |number: usize| {
            let (checked, others) = self.draw(locked_on, number, seed);
            self.one_check(checked, &others, percent)
        };
        (0..checks).map(one).fold(Counted::default(), Counted::and)
    }

    /// The smallest of a list of changes that is caught in 99 of 100 checks; `None` if not the largest.
    pub fn caught_in_99_of_100(&self, locked_on: usize, checks: usize, seed: u64) -> Option<f64> {
        CHANGES.into_iter().find(|percent| {
            let counted = self.drawn(locked_on, *percent, checks, seed);
            counted.caught as f64 >= 0.99 * counted.checks as f64
        })
    }

    /// The GPUs that recorded as many processes as a check begins with; if none did, all.
    fn checkable(&self) -> Vec<usize> {
        let asked = self.question.looks.first().copied().unwrap_or(1);
        let recorded = self.processes.values().map(Vec::len).enumerate();
        let enough: Vec<usize> = recorded
            .filter_map(|(at, processes)| (processes >= asked).then_some(at))
            .collect();
        match enough.is_empty() {
            true => (0..self.gpus()).collect(),
            false => enough,
        }
    }

    fn draw(&self, locked_on: usize, number: usize, seed: u64) -> (usize, Vec<usize>) {
        let mut random = Random::new(seed, &format!("{} {}", self.variant, self.metric), number);
        let checkable = self.checkable();
        let checked = checkable[number % checkable.len()];
        let others = (0..self.gpus()).filter(|other| *other != checked).collect();
        (checked, random.distinct(locked_on, others))
    }

    fn one_check(&self, checked: usize, others: &[usize], percent: f64) -> Counted {
        let of = |at: usize| self.processes.values().nth(at).cloned().unwrap_or_default();
        let machine = |at: &usize| of(*at).into_iter().map(|value| vec![value]).collect();
        let Some(locked) = Samples::new(others.iter().map(machine).collect()) else {
            return Counted::default();
        };
        let now = of(checked);
        let factor = match self.question.direction {
            Direction::Higher => 1.0 - percent / 100.0,
            Direction::Lower | Direction::Equal => 1.0 + percent / 100.0,
        };
        let changed: Vec<f64> = now.iter().map(|value| value * factor).collect();
        let unchanged = against_stored(&locked, &now, None, &self.question);
        let changed = against_stored(&locked, &changed, None, &self.question);
        let passed = matches!(unchanged.verdict, Verdict::Pass | Verdict::Improved)
            || unchanged.verdict == Verdict::Inconclusive && unchanged.not_worse;
        Counted {
            checks: 1,
            within: usize::from(is_within(&unchanged)),
            not_passed: usize::from(!passed),
            alarms: usize::from(unchanged.verdict == Verdict::Regressed),
            caught: usize::from(changed.verdict == Verdict::Regressed),
        }
    }
}

/// Whether the displacement of an unchanged kernel is within the allowance.
fn is_within(decision: &Decision) -> bool {
    let (displaced, allowed) = match (&decision.effect, decision.allowance) {
        (Some(Change::RelativePercent(effect)), Some(allowance)) => {
            ((effect / 100.0).ln_1p(), (allowance / 100.0).ln_1p())
        }
        (Some(Change::Absolute(effect)), Some(allowance)) => (*effect, allowance),
        _ => return false,
    };
    // The values of a counter that never varies differ by their rounding.
    displaced.abs() <= allowed * (1.0 + 1e-9)
}
