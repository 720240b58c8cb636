//! Confidence intervals of rates: exact ones for independent trials, and a bootstrap over machines.

use statrs::distribution::{Beta, ContinuousCDF};

use super::random::Random;

/// Number of resamples of the machines.
const RESAMPLES: usize = 10_000;

/// An interval of a share, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

/// The one-sided upper bound of a share at `confidence`, after `hits` of `trials` independent
/// trials (Clopper and Pearson, 1934).
pub fn upper_bound(hits: usize, trials: usize, confidence: f64) -> f64 {
    if hits >= trials {
        return 1.0;
    }
    Beta::new((hits + 1) as f64, (trials - hits) as f64)
        .map_or(1.0, |beta| beta.inverse_cdf(confidence))
}

/// The exact 95 % interval of a share, for independent trials (Clopper and Pearson, 1934).
pub fn exact(hits: usize, trials: usize) -> Interval {
    Interval {
        low: 1.0 - upper_bound(trials - hits, trials, 0.975),
        high: upper_bound(hits, trials, 0.975),
    }
}

/// The 95 % interval of the mean of the machines' shares, with whole machines resampled
/// (percentiles). If all shares are equal it is a point, and says nothing about other machines.
pub fn over_machines(shares: &[f64], seed: u64) -> Option<Interval> {
    let mut random = Random::new(seed, "machines", shares.len());
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let drawn = random.with_replacement(shares.len(), shares.len().max(1));
            drawn.iter().map(|at| shares[*at]).sum::<f64>() / shares.len() as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means[(share * (RESAMPLES - 1) as f64).round() as usize];
    (!shares.is_empty()).then(|| Interval {
        low: at(0.025),
        high: at(0.975),
    })
}
