//! Samples of one counter of one kernel: launches within processes within machines.
//!
//! A launch is one profiled launch, a process one run of the profiler, a machine one GPU. The
//! levels are kept apart because they vary by different amounts, and because launches of one
//! process say little about the next process.

use super::spread::{FEWEST_FOR_SPREAD, Spread};

/// Launches whose pairs are all averaged; of more, as many evenly spaced order statistics are.
/// The pairs grow with the square: these are 80,200.
const MOST_PAIRED: usize = 400;

/// Variance of the location of normal launches over that of their mean: one over its efficiency of
/// 95.5 %.
const OVER_THE_MEAN: f64 = 1.0 / 0.955;

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

/// The location of the launches of one process: the median of the averages of all pairs, each
/// launch also paired with itself (Hodges and Lehmann, 1963). Against the mean it is 95.5 %
/// efficient where launches are normal, and up to 29 % of them may be anything.
///
/// Of more than 400 launches the pairs are those of 400 evenly spaced order statistics. `None`
/// where there is no launch, or one is not finite.
pub fn location(launches: &[f64]) -> Option<f64> {
    if launches.is_empty() || launches.iter().any(|launch| !launch.is_finite()) {
        return None;
    }
    let mut sorted = launches.to_vec();
    sorted.sort_by(f64::total_cmp);
    if sorted.len() > MOST_PAIRED {
        // The middles of equal parts: by order, not by time, so that the order of the launches
        // does not matter here either.
        sorted = (0..MOST_PAIRED)
            .map(|part| sorted[(2 * part + 1) * sorted.len() / (2 * MOST_PAIRED)])
            .collect();
    }
    let mut averages = Vec::with_capacity(sorted.len() * (sorted.len() + 1) / 2);
    for (at, low) in sorted.iter().enumerate() {
        averages.extend(sorted[at..].iter().map(|high| low.midpoint(*high)));
    }
    let middle = averages.len() / 2;
    let even = averages.len().is_multiple_of(2);
    let (below, upper, _) = averages.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    let lower = below.iter().copied().max_by(f64::total_cmp);
    Some(match lower {
        Some(lower) if even => lower.midpoint(upper),
        _ => upper,
    })
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
                    .map(|launches| location(launches))
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

    /// The [`location`] of each process of each machine.
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

    /// By how much the variance of a process value changes where a process has so many launches
    /// instead of those that are here. The launches explain a part of it, which is inversely
    /// proportional to their number; the rest stays. 1 where nothing says how large that part is.
    fn variance_ratio(&self, launches: usize) -> f64 {
        let processes = self.machines.iter().flatten();
        let count = processes.clone().count() as f64;
        let here = processes.map(Vec::len).sum::<usize>() as f64 / count;
        let noise = self.noise();
        let (Some(within), Some(between)) = (noise.within, noise.between) else {
            return 1.0;
        };
        let explained = within.powi(2) / here * OVER_THE_MEAN / between.powi(2);
        // Without any variance between processes nothing is to be divided.
        if launches == 0 || launches as f64 == here || !explained.is_finite() {
            return 1.0;
        }
        let explained = explained.min(1.0);
        1.0 - explained + explained * here / launches as f64
    }

    /// These samples with the spread of their process values that so many launches in each process
    /// would have. The launches themselves stay.
    pub fn with_launches(&self, launches: usize) -> Samples {
        let ratio = self.variance_ratio(launches).sqrt();
        if ratio == 1.0 {
            return self.clone();
        }
        let scaled = |values: &Vec<f64>| {
            let center = mean(values);
            let moved = values.iter().map(|value| center + (value - center) * ratio);
            moved.collect()
        };
        Samples {
            machines: self.machines.clone(),
            values: self.values.iter().map(scaled).collect(),
        }
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

    /// Of groups whose values follow one linear trend in their places: around the mean of each group
    /// and the trend that all have in common, which costs one degree of freedom. Without two places
    /// in a group there is no trend to be seen.
    pub(crate) fn without_trend<const GROUPS: usize>(
        groups: [(&[f64], &[f64]); GROUPS],
    ) -> Scatter {
        let mut all = Scatter::default();
        let (mut together, mut places_alone) = (0.0, 0.0);
        for (values, places) in groups {
            all = all.and(Scatter::of(values));
            let (center, middle) = (mean(values), mean(places));
            let timed = values.iter().zip(places);
            // One sum a group: the order of the groups then does not matter for two.
            together += timed
                .map(|(value, place)| (value - center) * (place - middle))
                .sum::<f64>();
            places_alone += Scatter::of(places).squares;
        }
        if !(places_alone > 0.0) || all.dof == 0 {
            return all;
        }
        Scatter {
            squares: (all.squares - together * (together / places_alone)).max(0.0),
            dof: all.dof - 1,
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
    fn the_location_of_known_launches() {
        assert_eq!(location(&[7.0]), Some(7.0));
        // Averages 1, 2, 3.
        assert_eq!(location(&[3.0, 1.0]), Some(2.0));
        // Averages 1, 1.5, 2, 50.5, 51, 100: the middle of 2 and 50.5.
        assert_eq!(location(&[100.0, 1.0, 2.0]), Some(26.25));
        // Of 15 averages 1, 1.5, 2, 2, 2.5, 2.5, 3 are below the eighth, which is 3; the others
        // are 3.5, 4 and six with the outlier.
        assert_eq!(location(&[1.0, 2.0, 3.0, 4.0, 1000.0]), Some(3.0));
    }

    #[test]
    fn launches_that_are_missing_or_no_number_have_no_location() {
        for launches in [&[][..], &[1.0, f64::NAN], &[1.0, f64::INFINITY]] {
            assert_eq!(location(launches), None);
        }
    }

    #[test]
    fn many_launches_are_thinned_evenly_and_in_any_order() {
        let mut launches: Vec<f64> = (0..10_001_u32).map(f64::from).collect();
        let found = location(&launches).unwrap();
        assert!((found - 5000.0).abs() <= 1.0, "{found}");
        launches.rotate_left(1234);
        assert_eq!(location(&launches), Some(found));
    }

    #[test]
    fn a_quarter_of_outliers_moves_the_location_by_less_than_the_spread() {
        let mut launches: Vec<f64> = (0..75_u32).map(|at| 100.0 + f64::from(at) / 75.0).collect();
        launches.extend([1e6; 25]);
        let found = location(&launches).unwrap();
        assert!((100.0..101.0).contains(&found), "{found}");
    }

    #[test]
    fn each_machine_weighs_the_same() {
        let samples = Samples::new(vec![
            vec![vec![1.0], vec![3.0], vec![5.0]],
            vec![vec![10.0]],
        ])
        .unwrap();
        assert_eq!(samples.machine_values(), [3.0, 10.0]);
        assert_eq!(samples.value(), 6.5);
        let noise = samples.noise();
        assert_eq!(noise.within, None);
        assert_eq!(noise.between, Some(2.0));
        assert_eq!(noise.machines, Some(3.5));
    }

    #[test]
    fn spreads_are_pooled_by_degrees_of_freedom() {
        let samples = Samples::new(vec![
            vec![vec![1.0, 2.0, 3.0, 4.0, 5.0], vec![6.0, 6.0, 6.0]],
            vec![vec![7.0], vec![8.0], vec![9.0]],
        ])
        .unwrap();
        let noise = samples.noise();
        // 1.4826 with four degrees of freedom, zero with two.
        close(
            noise.within.unwrap(),
            1.482_602_218_505_602 * (4.0_f64 / 6.0).sqrt(),
        );
        // Squares 4.5 with one, 2 with two.
        close(noise.between.unwrap(), (6.5_f64 / 3.0).sqrt());
        // 4.5 and 8 about 6.25.
        assert_eq!(noise.machines, Some(1.75));
    }

    /// Two machines of so many processes, each of so many launches.
    fn drawn(processes: usize, launches: usize, between: f64, seed: u64) -> Samples {
        let mut state = seed;
        // Sums of twelve are nearly normal, with a variance of one.
        let mut normal = || {
            let mut uniform = || {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 11) as f64 / (1_u64 << 53) as f64
            };
            (0..12).map(|_| uniform()).sum::<f64>() - 6.0
        };
        let mut process = || {
            let center = 100.0 + between * normal();
            (0..launches).map(|_| center + normal()).collect()
        };
        let mut machine = || (0..processes).map(|_| process()).collect();
        Samples::new(vec![machine(), machine()]).unwrap()
    }

    #[test]
    fn what_launches_explain_shrinks_with_their_number_and_the_rest_stays() {
        let spread = |samples: &Samples| samples.noise().between.unwrap();
        let alike = |found: &Samples, drawn: &Samples| {
            let (found, drawn) = (spread(found), spread(drawn));
            assert!((found / drawn - 1.0).abs() < 0.1, "{found}, not {drawn}");
        };
        // Only launches vary: a quarter of the variance with four times as many.
        let few = drawn(400, 20, 0.0, 1);
        let ratio = few.variance_ratio(80);
        assert!((ratio - 0.25).abs() < 0.05, "{ratio}");
        alike(&few.with_launches(80), &drawn(400, 80, 0.0, 2));
        // 1 of 1.05 is between the processes.
        let few = drawn(400, 20, 1.0, 3);
        assert!(few.variance_ratio(80) > 0.9, "{}", few.variance_ratio(80));
        alike(&few.with_launches(80), &drawn(400, 80, 1.0, 4));
        // And back.
        let fewer = drawn(400, 80, 0.0, 5).with_launches(20);
        alike(&fewer, &drawn(400, 20, 0.0, 6));
    }

    #[test]
    fn the_spread_of_as_many_launches_is_the_spread_that_is_here() {
        let samples = drawn(4, 20, 0.5, 7);
        assert_eq!(samples.with_launches(20), samples);
        // Nothing says what launches explain.
        let single = Samples::new(vec![vec![vec![1.0], vec![2.0]]]).unwrap();
        assert_eq!(single.with_launches(80), single);
        let equal = Samples::new(vec![vec![vec![5.0; 20]; 4]]).unwrap();
        assert_eq!(equal.with_launches(80), equal);
        assert_eq!(samples.variance_ratio(0), 1.0);
    }

    #[test]
    fn what_is_not_there_is_no_spread_of_zero() {
        let noise = Samples::new(vec![vec![vec![1.0, 2.0]]]).unwrap().noise();
        assert_eq!(noise.within, None);
        assert_eq!(noise.between, None);
        assert_eq!(noise.machines, None);
    }

    #[test]
    fn samples_with_a_hole_are_no_samples() {
        assert_eq!(Samples::new(vec![]), None);
        assert_eq!(Samples::new(vec![vec![vec![1.0]], vec![]]), None);
        assert_eq!(Samples::new(vec![vec![vec![1.0], vec![]]]), None);
        assert_eq!(Samples::new(vec![vec![vec![1.0, f64::NAN]]]), None);
    }

    #[test]
    fn equal_values_have_exactly_their_mean() {
        for count in 1..50 {
            assert_eq!(mean(&vec![0.1; count]), 0.1);
        }
    }
}
