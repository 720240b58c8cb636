//! The effects as measured, from all rounds of a start, each used once.

use sparsek_gate::config::Variant;
use sparsek_gate::profile::Profile;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::data::{A_ROUND, Pair, Start};

/// How much longer the current side took, in percent.
pub struct Effect {
    /// The mean over the rounds.
    pub mean: f64,
    /// Half the width of its 95 % interval (Student's t over the rounds); absent with one round.
    pub half_width: Option<f64>,
}

/// The value of a metric of the only kernel, in its unit.
pub fn value(profile: &Profile, metric: &str) -> Option<f64> {
    let kernel = profile.kernels.first()?;
    Some(profile.samples(kernel, metric)?.value())
}

/// How the metric of a variant differs between base and current side, as logarithm of the ratio.
pub fn effect(start: &Start, variant: &Variant, metric: &str) -> Option<Effect> {
    let pair = start.pairs.get(&variant.id)?;
    let (base, head) = (
        logarithms(&pair.base, metric)?,
        logarithms(&pair.head, metric)?,
    );
    let rounds: Vec<f64> = (0..pair.rounds())
        .map(|round| {
            let at = A_ROUND * round..A_ROUND * (round + 1);
            let sum = |values: &[f64]| values[at.clone()].iter().sum::<f64>();
            (sum(&head) - sum(&base)) / A_ROUND as f64
        })
        .collect();
    let count = rounds.len() as f64;
    let mean = rounds.iter().sum::<f64>() / count;
    let squares: f64 = rounds.iter().map(|round| (round - mean).powi(2)).sum();
    let quantile = StudentsT::new(0.0, 1.0, count - 1.0)
        .ok()
        .map(|student| student.inverse_cdf(0.975));
    Some(Effect {
        mean: 100.0 * mean,
        half_width: quantile
            .map(|quantile| 100.0 * quantile * (squares / (count - 1.0) / count).sqrt()),
    })
}

/// Standard deviation of a process value within its side, in percent.
pub fn between(pair: &Pair, metric: &str) -> Option<f64> {
    let (mut squares, mut freedom) = (0.0, 0);
    for side in [&pair.base, &pair.head] {
        let values = logarithms(side, metric)?;
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        squares += values
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>();
        freedom += values.len() - 1;
    }
    (freedom > 0).then(|| 100.0 * (squares / freedom as f64).sqrt())
}

/// Logarithms of the process values.
fn logarithms(profile: &Profile, metric: &str) -> Option<Vec<f64>> {
    let samples = profile.samples(profile.kernels.first()?, metric)?;
    Some(
        samples
            .process_values()
            .iter()
            .flatten()
            .map(|value| value.ln())
            .collect(),
    )
}
