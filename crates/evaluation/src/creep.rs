//! Changes that add up: how soon their recorded effects show a creep.
//!
//! The effect of a change is drawn from recorded rounds of an unchanged kernel, with sides exchanged at
//! random, so that a bias of the few recorded rounds does not add up.

use sparsek_gate::profile::Profile;
use sparsek_gate::verdict::{Step, creep};

use super::data::{A_ROUND, Pair};
use super::random::Random;
use super::shapes::Unchanged;

const DURATION: &str = "duration";

/// What one round of a recorded pair says.
struct Round {
    /// Mean of the current side less that of the base, as logarithms.
    effect: f64,
    /// Variance of a process, from the two pairs of one side.
    variance: f64,
}

/// The recorded rounds of an unchanged variant, and how many of them a check takes.
pub struct Histories {
    rounds: Vec<Round>,
    in_a_check: Vec<usize>,
    name: String,
}

impl Histories {
    /// Of a variant whose rounds in a check are known.
    pub fn of(one: &Unchanged, in_a_check: Vec<usize>) -> Histories {
        Histories {
            rounds: one.pairs().iter().flat_map(rounds).collect(),
            in_a_check,
            name: one.variant.id.to_string(),
        }
    }

    /// How many rounds were recorded.
    pub fn recorded(&self) -> usize {
        self.rounds.len()
    }

    /// The mean number of rounds in a check.
    pub fn rounds_in_a_check(&self) -> f64 {
        self.in_a_check.iter().sum::<usize>() as f64 / self.in_a_check.len() as f64
    }

    /// Standard deviation of a process, in percent.
    pub fn sigma(&self) -> f64 {
        let sum: f64 = self.rounds.iter().map(|round| round.variance).sum();
        100.0 * (sum / self.rounds.len() as f64).sqrt()
    }

    /// How many of so many histories show a creep at any of so many changes, each slower by so many
    /// percent.
    pub fn shown(&self, percent: f64, changes: usize, histories: usize, seed: u64) -> usize {
        let worse = (percent / 100.0).ln_1p();
        let shows = |number: &usize| {
            let purpose = format!("{} creep {percent}", self.name);
            let mut random = Random::new(seed, &purpose, *number);
            let mut steps = Vec::new();
            (0..changes).any(|_| {
                steps.push(self.step(worse, &mut random));
                creep(&steps, 1).is_some()
            })
        };
        (0..histories).filter(shows).count()
    }

    fn step(&self, worse: f64, random: &mut Random) -> Step {
        let count = self.in_a_check[random.below(self.in_a_check.len())];
        let (mut effect, mut variance) = (0.0, 0.0);
        for at in random.with_replacement(count, self.rounds.len()) {
            let round = &self.rounds[at];
            let sign = if random.coin() { 1.0 } else { -1.0 };
            effect += sign * round.effect / count as f64;
            variance += round.variance / count as f64;
        }
        Step {
            worse: worse + effect,
            rounds: count,
            variance,
        }
    }
}

fn rounds(pair: &Pair) -> Vec<Round> {
    let (Some(base), Some(head)) = (logarithms(&pair.base), logarithms(&pair.head)) else {
        return Vec::new();
    };
    let sides = base.chunks_exact(A_ROUND).zip(head.chunks_exact(A_ROUND));
    sides
        .map(|(base, head)| Round {
            effect: (head[0] + head[1] - base[0] - base[1]) / 2.0,
            variance: ((head[0] - head[1]).powi(2) + (base[0] - base[1]).powi(2)) / 4.0,
        })
        .collect()
}

fn logarithms(profile: &Profile) -> Option<Vec<f64>> {
    let samples = profile.samples(profile.kernels.first()?, DURATION)?;
    let values = samples.process_values();
    Some(values.iter().flatten().map(|value| value.ln()).collect())
}
