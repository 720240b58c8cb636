//! Kernels whose launches or processes became slower in part: how many checks side by side fail.

use std::path::Path;

use sparsek_gate::baseline::{Store, verify_stored};
use sparsek_gate::config::{Config, Variant};
use sparsek_gate::finding::Error;
use sparsek_gate::profile::{Profile, Series};
use sparsek_gate::statistics::location;
use sparsek_gate::terms::{Phase, Tier};
use sparsek_gate::verdict::Verdict;

use super::check::{Answer, against};
use super::data::{Pair, each_below};
use super::random::Random;

const DURATION: &str = "duration";

/// What became slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The slowest tenth of the launches of each process takes twice as long.
    TenthDoubled,
    /// Each launch is three times as far from the middle of its process.
    SpreadTimesThree,
    /// The first three launches of each process take twice as long.
    FirstThreeDoubled,
    /// One process in two, drawn, takes 20 % longer.
    HalfOfProcesses,
}

impl Shape {
    /// All, in the order in which they are shown.
    pub const ALL: [Shape; 4] = [
        Shape::TenthDoubled,
        Shape::SpreadTimesThree,
        Shape::FirstThreeDoubled,
        Shape::HalfOfProcesses,
    ];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Shape::TenthDoubled => "slowest tenth doubled",
            Shape::SpreadTimesThree => "spread times three",
            Shape::FirstThreeDoubled => "first three doubled",
            Shape::HalfOfProcesses => "half of processes +20 %",
        }
    }

    fn plant(self, launches: &mut [f64], random: &mut Random) {
        match self {
            Shape::TenthDoubled => {
                let mut order: Vec<usize> = (0..launches.len()).collect();
                order.sort_by(|one, other| launches[*other].total_cmp(&launches[*one]));
                for at in &order[..launches.len().div_ceil(10)] {
                    launches[*at] *= 2.0;
                }
            }
            Shape::SpreadTimesThree => {
                let middle = location(launches).unwrap_or(f64::NAN);
                for launch in launches {
                    *launch = middle + 3.0 * (*launch - middle);
                }
            }
            Shape::FirstThreeDoubled => launches.iter_mut().take(3).for_each(|it| *it *= 2.0),
            Shape::HalfOfProcesses => {
                let factor = if random.coin() { 1.2 } else { 1.0 };
                launches.iter_mut().for_each(|it| *it *= factor);
            }
        }
    }
}

/// A variant that was recorded unchanged, side by side, on one or more GPUs.
pub struct Unchanged {
    pub variant: Variant,
    pairs: Vec<Pair>,
    locked: Option<Profile>,
}

/// All locked variants that were recorded unchanged, below a folder of recordings.
///
/// # Errors
/// [`Error::Io`], or [`Error::Input`] of a file that is no profile.
pub fn read(recordings: &Path, config: &Config) -> Result<Vec<Unchanged>, Error> {
    let mut folders = each_below(&recordings.join("rounds"), "aa")?;
    folders.extend(each_below(&recordings.join("unchanged"), "aa")?);
    let store = Store::open(&config.baselines)?;
    let mut all = Vec::new();
    for variant in config.variants().filter(|variant| !variant.experimental) {
        let mut pairs = Vec::new();
        for folder in &folders {
            pairs.extend(Pair::read(folder, &variant.id)?);
        }
        let locked = store.all_of(&variant.id)?.into_iter().find_map(|stored| {
            let (trusted, _) = verify_stored(config, variant, &stored);
            let profile = trusted.map(|trusted| trusted.profile);
            profile.filter(|profile| profile.identity.tier == Tier::Counters)
        });
        if !pairs.is_empty() {
            all.push(Unchanged {
                variant: variant.clone(),
                pairs,
                locked,
            });
        }
    }
    Ok(all)
}

impl Unchanged {
    fn check(
        &self,
        pair: &Pair,
        head: &Profile,
        comparisons: usize,
        random: &mut Random,
    ) -> Answer {
        let most = self.variant.profile.max_rounds as usize;
        let rounds = random.with_replacement(most, pair.rounds());
        let learned = self.locked.as_ref();
        against(
            &self.variant,
            (&pair.base, head),
            &rounds,
            learned,
            comparisons,
        )
    }

    /// How many of so many checks, drawn from the recorded rounds, do not pass; of an unchanged kernel
    /// without a shape.
    pub fn not_passed(
        &self,
        shape: Option<Shape>,
        comparisons: usize,
        checks: usize,
        seed: u64,
    ) -> usize {
        let name = shape.map_or("unchanged", Shape::words);
        let purpose = format!("{} {name}", self.variant.id);
        let fails = |number: &usize| {
            let mut random = Random::new(seed, &purpose, *number);
            let pair = &self.pairs[number % self.pairs.len()];
            let head = match shape {
                Some(shape) => planted(&pair.head, shape, &mut random),
                None => pair.head.clone(),
            };
            !passes(&self.check(pair, &head, comparisons, &mut random))
        };
        (0..checks).filter(fails).count()
    }
}

fn passes(answer: &Answer) -> bool {
    let judged = answer.said.iter().filter(|said| !said.exact);
    answer.odd.is_empty()
        && judged.into_iter().all(|said| {
            matches!(said.verdict, Verdict::Pass | Verdict::Improved)
                || said.verdict == Verdict::Inconclusive && said.not_worse
        })
}

/// The profile with a shape in the durations of every process.
fn planted(profile: &Profile, shape: Shape, random: &mut Random) -> Profile {
    let mut planted = profile.clone();
    let machines: Vec<Option<String>> = planted
        .machines(Phase::Timing)
        .into_iter()
        .map(|machine| machine.map(str::to_owned))
        .collect();
    let machines: Vec<Option<&str>> = machines.iter().map(Option::as_deref).collect();
    for kernel in &mut planted.kernels {
        let Some(series) = kernel.metrics.get_mut(DURATION) else {
            continue;
        };
        let mut samples = series.samples.clone();
        for process in &mut samples {
            let mut launches: Vec<f64> = process.iter().flatten().copied().collect();
            shape.plant(&mut launches, random);
            *process = launches.into_iter().map(Some).collect();
        }
        *series = Series::new(samples, &machines);
    }
    planted
}
