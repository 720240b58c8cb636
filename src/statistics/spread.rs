//! Statistics of samples.

use serde::{Deserialize, Serialize};

/// Scales the median absolute deviation to the standard deviation of a normal distribution.
const MAD_TO_SIGMA: f64 = 1.482_602_218_505_602;
/// Fewest samples from which a spread is computed.
pub(crate) const FEWEST_FOR_SPREAD: usize = 3;

/// Median and spread of samples, in the samples' unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Number of samples.
    pub count: usize,
    /// The median.
    pub median: f64,
    /// Robust standard deviation: the larger of 1.4826 × median absolute deviation and the
    /// interquartile range / 1.349. Absent with fewer than three samples.
    pub sigma: Option<f64>,
}

impl Spread {
    /// Of finite samples; `None` where there are none, or one is not finite.
    pub fn of(samples: &[f64]) -> Option<Spread> {
        if samples.is_empty() || samples.iter().any(|sample| !sample.is_finite()) {
            return None;
        }
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let median = quantile(&sorted, 0.5);
        let sigma = (sorted.len() >= FEWEST_FOR_SPREAD).then(|| {
            let mut deviations: Vec<f64> = sorted
                .iter()
                .map(|sample| (sample - median).abs())
                .collect();
            deviations.sort_by(f64::total_cmp);
            let by_mad = MAD_TO_SIGMA * quantile(&deviations, 0.5);
            let by_iqr = (quantile(&sorted, 0.75) - quantile(&sorted, 0.25)) / 1.349;
            by_mad.max(by_iqr)
        });
        Some(Spread {
            count: sorted.len(),
            median,
            sigma,
        })
    }
}

/// The median of finite samples; `None` where there are none.
pub fn median(samples: &[f64]) -> Option<f64> {
    Spread::of(samples).map(|spread| spread.median)
}

/// Linear interpolation between order statistics (type 7 of Hyndman and Fan, 1996).
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let position = p * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = position.ceil() as usize;
    sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_and_spread_of_known_samples_and_none_of_two_or_of_what_is_not_finite() {
        let summary = Spread::of(&[3.0, 1.0, 2.0, 5.0, 4.0]).unwrap();
        assert_eq!(summary.median, 3.0);
        assert_eq!(summary.sigma, Some(MAD_TO_SIGMA));
        let two = Spread::of(&[1.0, 2.0]).unwrap();
        assert_eq!((two.median, two.sigma), (1.5, None));
        assert_eq!(Spread::of(&[1.0, f64::NAN, 2.0]), None);
        assert_eq!(Spread::of(&[]), None);
    }
}
