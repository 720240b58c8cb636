//! Samples of one counter of one kernel: launches within processes within machines.
//!
//! A launch is one profiled launch, a process one run of the profiler, a machine one GPU. The
//! levels are kept apart because they vary by different amounts, and because launches of one
//! process say little about the next process.

use super::spread::{FEWEST_FOR_SPREAD, Spread};

/// The samples of one side. Never empty, at no level; every launch is finite.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    machines: Vec<Vec<Vec<f64>>>,
    values: Vec<Vec<f64>>,
}

/// How much samples vary at each level, in the metric's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Standard deviation of a launch within its process: the robust deviations of the processes
    /// of three launches or more (the larger of 1.4826 × median absolute deviation and
    /// interquartile range / 1.349), pooled. Absent where there is none.
    pub within: Option<f64>,
    /// Standard deviation of a process value within its machine, pooled over the machines by
    /// degrees of freedom. Absent where no machine has two processes.
    pub between: Option<f64>,
    /// Largest distance of a machine's value from the side's. Absent with one machine.
    pub machines: Option<f64>,
}

impl Samples {
    /// The launches of the processes of the machines. `None` where there is no machine, a machine
    /// without a process, a process without a launch, or a launch that is not finite.
    pub fn new(machines: Vec<Vec<Vec<f64>>>) -> Option<Samples> {
        let values = machines
            .iter()
            .map(|processes| {
                processes
                    .iter()
                    .map(|launches| is_whole(launches).then(|| of_process(launches)))
                    .collect()
            })
            .collect::<Option<Vec<Vec<f64>>>>()?;
        let whole = !values.is_empty() && values.iter().all(|processes| !processes.is_empty());
        whole.then_some(Samples { machines, values })
    }

    /// The launches of the processes of the machines.
    pub fn machines(&self) -> &[Vec<Vec<f64>>] {
        &self.machines
    }

    /// The value of each process of each machine, see [`of_process`].
    pub fn process_values(&self) -> &[Vec<f64>] {
        &self.values
    }

    /// The mean of the process values of each machine.
    pub fn machine_values(&self) -> Vec<f64> {
        self.values.iter().map(|values| mean(values)).collect()
    }

    /// The mean of the machines' values: each machine weighs the same.
    pub fn value(&self) -> f64 {
        mean(&self.machine_values())
    }

    /// How much the samples vary.
    pub fn noise(&self) -> Noise {
        let within = self
            .machines
            .iter()
            .flatten()
            .filter_map(|launches| Spread::of(launches))
            .filter(|spread| spread.count >= FEWEST_FOR_SPREAD)
            .filter_map(|spread| {
                let dof = spread.count - 1;
                let squares = spread.sigma?.powi(2) * dof as f64;
                Some(Scatter { squares, dof })
            })
            .sum::<Scatter>();
        let between = self
            .values
            .iter()
            .map(|values| Scatter::of(values))
            .sum::<Scatter>();
        Noise {
            within: within.sigma(),
            between: between.sigma(),
            machines: farthest(&self.machine_values()),
        }
    }
}

/// Whether there is a launch, and each has a value.
fn is_whole(launches: &[f64]) -> bool {
    !launches.is_empty() && launches.iter().all(|launch| launch.is_finite())
}

/// The value of a process: the mean of its launches, so slow launches count. The first does not, if there
/// are others: it loads code, and fills caches and tables. One that takes ten times as long does.
pub fn of_process(launches: &[f64]) -> f64 {
    match launches {
        [first, others @ ..] if !others.is_empty() && *first <= OTHER_WORK * mean(others) => {
            mean(others)
        }
        all => mean(all),
    }
}

/// From so many times the mean of the others on, the first launch of a kernel is no warm-up.
const OTHER_WORK: f64 = 10.0;

/// Squared deviations from the means of groups, and their degrees of freedom.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Scatter {
    squares: f64,
    pub(crate) dof: usize,
}

impl Scatter {
    /// Of one group.
    pub(crate) fn of(values: &[f64]) -> Scatter {
        let center = mean(values);
        Scatter {
            squares: values.iter().map(|value| (value - center).powi(2)).sum(),
            dof: values.len().saturating_sub(1),
        }
    }

    /// Both, pooled.
    pub(crate) fn and(self, other: Scatter) -> Scatter {
        Scatter {
            squares: self.squares + other.squares,
            dof: self.dof + other.dof,
        }
    }

    /// The standard deviation; `None` where nothing varies freely.
    pub(crate) fn sigma(self) -> Option<f64> {
        (self.dof > 0).then(|| (self.squares / self.dof as f64).sqrt())
    }
}

/// All of them, pooled.
impl std::iter::Sum for Scatter {
    fn sum<I: Iterator<Item = Scatter>>(all: I) -> Scatter {
        all.fold(Scatter::default(), Scatter::and)
    }
}

/// The mean; NaN of nothing. Equal values give exactly that value, whatever their number, so that
/// a counter that never varies has no noise from rounding.
pub(crate) fn mean(values: &[f64]) -> f64 {
    let Some(first) = values.first() else {
        return f64::NAN;
    };
    let sum: f64 = values.iter().map(|value| value - first).sum();
    first + sum / values.len() as f64
}

/// Largest distance from the mean; `None` of fewer than two values.
pub(crate) fn farthest(values: &[f64]) -> Option<f64> {
    let center = mean(values);
    let distances = values.iter().map(|value| (value - center).abs());
    distances
        .max_by(f64::total_cmp)
        .filter(|_| values.len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
    }

    #[test]
    fn the_first_launch_of_a_process_counts_only_if_it_is_no_warm_up() {
        assert_eq!(of_process(&[7.0]), 7.0);
        assert_eq!(of_process(&[9.0, 1.0, 1.0]), 1.0);
        assert_eq!(of_process(&[10_000.0, 100.0]), 5050.0);
    }

    #[test]
    fn each_machine_weighs_the_same_and_what_is_not_there_is_no_spread_of_zero() {
        let of = |machines| Samples::new(machines).unwrap();
        let samples = of(vec![
            vec![vec![1.0], vec![3.0], vec![5.0]],
            vec![vec![10.0]],
        ]);
        assert_eq!(samples.machine_values(), [3.0, 10.0]);
        assert_eq!(samples.value(), 6.5);
        let noise = |samples: &Samples| {
            let noise = samples.noise();
            [noise.within, noise.between, noise.machines]
        };
        assert_eq!(noise(&samples), [None, Some(2.0), Some(3.5)]);
        assert_eq!(noise(&of(vec![vec![vec![1.0, 2.0]]])), [None; 3]);
    }

    #[test]
    fn spreads_are_pooled_by_degrees_of_freedom() {
        let samples = Samples::new(vec![
            vec![vec![1.0, 2.0, 3.0, 4.0, 5.0], vec![6.0, 6.0, 6.0]],
            vec![vec![7.0], vec![8.0], vec![9.0]],
        ]);
        let noise = samples.unwrap().noise();
        // 1.4826 with four degrees of freedom, zero with two.
        let within = 1.482_602_218_505_602 * (4.0_f64 / 6.0).sqrt();
        close(noise.within.unwrap(), within);
        // 3.5 and 6: squares 3.125 with one, 2 with two.
        close(noise.between.unwrap(), (5.125_f64 / 3.0).sqrt());
        // 4.75 and 8 about 6.375.
        assert_eq!(noise.machines, Some(1.625));
    }

    #[test]
    fn samples_with_a_hole_are_no_samples() {
        for holed in [
            vec![],
            vec![vec![vec![1.0]], vec![]],
            vec![vec![vec![1.0], vec![]]],
            vec![vec![vec![1.0, f64::NAN]]],
        ] {
            assert_eq!(Samples::new(holed), None);
        }
    }

    #[test]
    fn equal_values_have_exactly_their_mean() {
        for count in 1..50 {
            assert_eq!(mean(&vec![0.1; count]), 0.1);
        }
    }
}
