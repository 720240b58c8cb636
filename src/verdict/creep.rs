//! Whether the recorded effects of successive changes add up to a loss, although each of them passed.
//!
//! The method is the cumulative sum: E. S. Page, "Continuous Inspection Schemes", Biometrika 41 (1954),
//! 100–115. The sum of the latest effects is compared with its noise, over windows of several lengths,
//! because neither the size of the loss nor the change that it began with is known: D. Siegmund and
//! E. S. Venkatraman, "Using the Generalized Likelihood Ratio Statistic for Sequential Detection of a
//! Change-Point", The Annals of Statistics 23 (1995), 255–271. The noise is learned from the pairs of
//! processes of the recorded rounds, so the quantile is that of Student's t. Where the effects vary by
//! more than these say, it is learned from the differences of successive effects, to which a steady creep
//! adds nothing: J. von Neumann and others, "The Mean Square Successive Difference", The Annals of
//! Mathematical Statistics 12 (1941), 153–162.

use statrs::distribution::{ContinuousCDF, FisherSnedecor};

use super::quantile::upper_quantile;

/// Chance that a history of [`CHANGES`] changes without an effect ever shows a creep.
const FALSE_ALARMS: f64 = 0.001;
/// The changes of such a history.
const CHANGES: f64 = 100.0;
/// How many of the latest changes are added up. One change is judged by its check.
const WINDOWS: [usize; 12] = [2, 3, 4, 6, 8, 10, 12, 16, 24, 32, 48, 64];
/// Below the quantile of every window: that of the normal distribution for one window is 4.26.
const LEAST_QUANTILE: f64 = 4.2;
/// Chance that the effects seem to vary by more than their processes, although they do not.
const MORE_NOISE: f64 = 0.01;
/// The noise is learned from so many of the latest changes.
const MOST_CHANGES: usize = 100;

/// What one change did, in the terms of its metric: the logarithm of a ratio, or a difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// How much worse it made the value; negative where it became better.
    pub worse: f64,
    /// Rounds of two processes a side that it was measured in.
    pub rounds: usize,
    /// Variance of a process, with twice as many degrees of freedom as rounds.
    pub variance: f64,
}

/// Changes that together made a value worse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Creep {
    /// How many of the latest changes.
    pub changes: usize,
    /// What they add up to, in the terms of the steps.
    pub total: f64,
    /// Half-width of the band around it that is above zero.
    pub band: f64,
}

/// The creep that the last step completes, the clearest of all windows; `None` where there is none.
/// `series` is how many series are looked at: they share the chance of a false alarm.
pub fn creep(steps: &[Step], series: usize) -> Option<Creep> {
    let learned = &steps[steps.len().saturating_sub(MOST_CHANGES)..];
    let usable = |step: &Step| step.rounds > 0 && step.worse.is_finite() && step.variance >= 0.0;
    if !learned.iter().all(usable) {
        return None;
    }
    let freedom: usize = learned.iter().map(|step| 2 * step.rounds).sum();
    let squares = learned
        .iter()
        .map(|step| (2 * step.rounds) as f64 * step.variance);
    let variance = squares.sum::<f64>() / freedom as f64;
    let windows: Vec<usize> = WINDOWS
        .into_iter()
        .filter(|length| *length <= steps.len())
        .collect();
    let errors = windows.into_iter().map(|changes| {
        let window = &steps[steps.len() - changes..];
        let total: f64 = window.iter().map(|step| step.worse).sum();
        let rounds = window.iter().map(|step| 1.0 / step.rounds as f64);
        (changes, total, (variance * rounds.sum::<f64>()).sqrt())
    });
    let errors: Vec<(usize, f64, f64)> = errors.collect();
    // Computing a quantile is slow, and hardly any history needs one.
    if errors
        .iter()
        .all(|(_, total, error)| !(*total > LEAST_QUANTILE * error))
    {
        return None;
    }
    let (scale, freedom) = more_noise(learned, variance, freedom);
    let errors = errors
        .into_iter()
        .map(|(changes, total, error)| (changes, total, error * scale));
    let shared = CHANGES * (errors.len() * series.max(1)) as f64;
    let quantile = upper_quantile(freedom, FALSE_ALARMS / shared);
    let found = errors.filter_map(|(changes, total, error)| {
        let band = quantile * error;
        (total > band).then_some(Creep {
            changes,
            total,
            band,
        })
    });
    found.max_by(|one, other| (one.total / one.band).total_cmp(&(other.total / other.band)))
}

/// By what the standard deviation of a process must be multiplied to be that which the effects show,
/// and its degrees of freedom; 1 and those of the processes where the effects do not show more.
fn more_noise(steps: &[Step], variance: f64, freedom: usize) -> (f64, usize) {
    let differences = steps.windows(2).map(|pair| {
        let rounds = |step: &Step| 1.0 / step.rounds as f64;
        (pair[1].worse - pair[0].worse).powi(2) / (rounds(&pair[0]) + rounds(&pair[1]))
    });
    let count = differences.len() as f64;
    let ratio = differences.sum::<f64>() / count / variance;
    // Two successive differences share an effect: together they have two thirds of the freedom.
    let own = (count * 2.0 / 3.0).max(1.0);
    // Values that never vary say nothing of their noise.
    if !(ratio > 1.0 && ratio.is_finite()) {
        return (1.0, freedom);
    }
    match FisherSnedecor::new(own, freedom as f64).map(|known| known.sf(ratio)) {
        Ok(chance) if chance < MORE_NOISE => (ratio.sqrt(), own as usize),
        _ => (1.0, freedom),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator whose numbers are the same in every run (splitmix64).
    struct Random(u64);

    impl Random {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        }

        /// By Box and Muller (1958).
        fn normal(&mut self) -> f64 {
            let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
            radius * (std::f64::consts::TAU * self.uniform()).cos()
        }

        /// A check of so many rounds: four processes each, of which the current two are slower.
        fn step(&mut self, worse: f64, sigma: f64, rounds: usize) -> Step {
            let (mut effect, mut scatter) = (0.0, 0.0);
            for _ in 0..rounds {
                let [b, c, d, e] = [0; 4].map(|_| sigma * self.normal());
                effect += worse + (d + e) / 2.0 - (b + c) / 2.0;
                scatter += (b - c).powi(2) / 2.0 + (d - e).powi(2) / 2.0;
            }
            Step {
                worse: effect / rounds as f64,
                rounds,
                variance: scatter / (2 * rounds) as f64,
            }
        }
    }

    /// The change at which a history first shows a creep, from 1.
    fn first(
        random: &mut Random,
        changes: usize,
        worse: f64,
        sigma: f64,
        rounds: usize,
    ) -> Option<usize> {
        let mut steps = Vec::new();
        (1..=changes).find(|_| {
            steps.push(random.step(worse, sigma, rounds));
            creep(&steps, 1).is_some()
        })
    }

    #[test]
    fn of_a_thousand_histories_of_a_hundred_changes_without_an_effect_at_most_one_shows_a_creep() {
        let mut random = Random(20);
        let alarms = (0..1000)
            .filter(|at| first(&mut random, 100, 0.0, 0.001, 1 + at % 3).is_some())
            .count();
        assert!(alarms <= 1, "{alarms}");
    }

    #[test]
    fn effects_that_vary_by_more_than_their_processes_show_no_creep() {
        let mut random = Random(11);
        // Whole checks differ by three times what the processes of one check do.
        let mut alarms = 0;
        for _ in 0..200 {
            let mut steps = Vec::new();
            alarms += usize::from((0..100).any(|_| {
                let of_check = 0.003 * random.normal();
                steps.push(random.step(of_check, 0.001, 1));
                creep(&steps, 1).is_some()
            }));
        }
        assert!(alarms <= 2, "{alarms}");
    }

    #[test]
    fn two_tenths_of_a_percent_a_change_are_caught_by_the_tenth_where_the_noise_is_tight() {
        // The noise of a process, and the rounds that its tolerance side by side takes: as locked on
        // 2026-11-23, dense/baseline, scalar, bsr_gemm/baseline, resample/baseline, cp_async, occupancy.
        const TIGHT: [(f64, usize); 6] = [
            (0.000_134, 1),
            (0.000_271, 1),
            (0.000_404, 1),
            (0.000_568, 1),
            (0.000_838, 3),
            (0.000_996, 3),
        ];
        const HISTORIES: usize = 500;
        for (sigma, rounds) in TIGHT {
            let mut random = Random(7);
            let caught = (0..HISTORIES)
                .filter(|_| first(&mut random, 10, 0.002, sigma, rounds).is_some())
                .count();
            assert!(caught >= HISTORIES * 99 / 100, "{sigma} {rounds}: {caught}");
        }
    }

    #[test]
    fn an_improvement_ends_a_creep_and_one_step_or_broken_numbers_are_none() {
        let step = |worse| Step {
            worse,
            rounds: 1,
            variance: 1e-8,
        };
        let creeping = vec![step(0.002); 12];
        let found = creep(&creeping, 1).unwrap();
        assert!(found.changes == 12 && (found.total - 0.024).abs() < 1e-12);
        let repaired = [creeping.clone(), vec![step(-0.03)]].concat();
        assert_eq!(creep(&repaired, 1), None);
        assert_eq!(creep(&creeping[..1], 1), None);
        assert_eq!(creep(&[], 1), None);
        let broken = [creeping, vec![step(f64::NAN)]].concat();
        assert_eq!(creep(&broken, 1), None);
    }
}
