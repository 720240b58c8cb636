//! How many launches a process makes side by side: of the numbers with which an unchanged metric
//! almost never stays open, the one that is expected to decide it in the least time, by the noise of
//! its locked baseline. A guess about cost. The verdict follows from what is then measured, whatever
//! was expected.

use serde::{Deserialize, Serialize};

use super::Scale;
use super::band::MISS;
use super::quantile::upper_quantile;
use crate::statistics::Samples;

/// In 90 % of unchanged checks a metric is to be decided by the expected round: the one-sided
/// quantile of the normal distribution.
const USUALLY: f64 = 1.282;
/// The same by the last round: 99.9 %. What is open then stays open.
const ALMOST_ALWAYS: f64 = 3.090;
/// Processes of a round, of both sides.
const A_ROUND: u32 = 4;

/// The locked noise of one metric of one kernel, and what it is compared with.
#[derive(Clone, Debug)]
pub struct KnownNoise<'a> {
    /// The locked samples.
    pub samples: &'a Samples,
    /// In which terms the tolerance is.
    pub scale: Scale,
    /// How much worse is still no regression: percent, or the metric's unit.
    pub tolerance: f64,
}

/// What a profiled process costs, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessCost {
    /// Without any launch.
    pub start_s: f64,
    /// For each launch.
    pub launch_s: f64,
}

impl Default for ProcessCost {
    /// What is assumed where no earlier run says it: a process of 20 launches under ncu 2025.3.1 on an
    /// H200 took 2.0 s, one of 80 took 3.58 s (2026-11-23).
    fn default() -> ProcessCost {
        ProcessCost {
            start_s: 1.5,
            launch_s: 0.026,
        }
    }
}

impl ProcessCost {
    fn of_round(&self, launches: u32) -> f64 {
        f64::from(A_ROUND) * (self.start_s + f64::from(launches) * self.launch_s)
    }
}

/// What is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The fewest launches of a process.
    pub least: u32,
    /// The most of them.
    pub most: u32,
    /// After which rounds a verdict is looked at, ascending.
    pub looks: Vec<u32>,
}

/// Launches of a process, and what they are expected to need.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Launches of each process.
    pub launches: u32,
    /// The round by which nine of ten unchanged checks are decided; `None` where no round is
    /// expected to do that.
    pub round: Option<u32>,
    /// Time of the processes until then, in seconds; of all rounds where no round is expected to
    /// decide.
    pub seconds: f64,
}

impl KnownNoise<'_> {
    /// The round by which it is decided in so many unchanged checks, as a quantile of the normal
    /// distribution.
    fn decided(&self, launches: u32, looks: &[u32], quantile: f64) -> Option<u32> {
        let noise = self.samples.noise();
        let ratio = self.samples.variance_ratio(launches as usize);
        let unit = match self.scale {
            Scale::Relative => self.samples.value().abs() / 100.0,
            Scale::Absolute => 1.0,
        };
        let sigma = noise.between? * ratio.sqrt() / unit;
        let machines = self.samples.process_values().iter();
        let learned: usize = machines.map(|values| values.len().saturating_sub(1)).sum();
        let chance = MISS / looks.len() as f64;
        looks.iter().copied().find(|round| {
            let processes = 2 * *round as usize;
            let trend = usize::from(*round > 1);
            let dof = learned + 2 * (processes - 1) - trend;
            let error = sigma * (1.0 / f64::from(*round)).sqrt();
            error * (upper_quantile(dof, chance) + quantile) <= self.tolerance
        })
    }
}

/// The launches within these bounds with which all metrics are expected to be decided soonest, of
/// those with which almost none stays open to the end. Nothing known of a metric asks for nothing:
/// without any, the fewest.
pub fn cheapest(known: &[KnownNoise<'_>], bounds: &Bounds, cost: ProcessCost) -> Schedule {
    let rounds = bounds.looks.last().copied().unwrap_or(1);
    let by = |launches: u32, quantile: f64| {
        let first = bounds.looks.first().copied().unwrap_or(1);
        let mut of_each = known
            .iter()
            .map(|one| one.decided(launches, &bounds.looks, quantile));
        of_each.try_fold(first, |latest, round| Some(latest.max(round?)))
    };
    let with = |launches: u32| {
        let round = by(launches, USUALLY);
        Schedule {
            launches,
            round,
            seconds: f64::from(round.unwrap_or(rounds)) * cost.of_round(launches),
        }
    };
    let more = bounds.most.saturating_sub(bounds.least);
    let candidates = (0..4).map(|step| bounds.least + more * step / 3);
    let decide = candidates.filter(|launches| by(*launches, ALMOST_ALWAYS).is_some());
    let soonest = decide
        .map(with)
        .min_by(|one, other| one.seconds.total_cmp(&other.seconds));
    // Where some stay open whatever is chosen, as much evidence as is allowed.
    soonest.unwrap_or_else(|| with(bounds.most))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: ProcessCost = ProcessCost {
        start_s: 2.1,
        launch_s: 0.03,
    };

    fn bounds() -> Bounds {
        Bounds {
            least: 20,
            most: 80,
            looks: vec![1, 2, 3, 4, 5],
        }
    }

    /// Two machines of four processes, whose values differ by so many percent; launches explain all.
    fn noisy(percent: f64) -> Samples {
        let within = percent * 20.0_f64.sqrt();
        let process = |shift: f64| -> Vec<f64> {
            let launch = |at: i32| 100.0 + shift + within * f64::from(at - 10) / 5.0;
            (0..=20).map(launch).collect()
        };
        let shifts = [-1.0, 1.0, -1.0, 1.0].map(|sign| sign * percent);
        let machine: Vec<Vec<f64>> = shifts.iter().map(|shift| process(*shift)).collect();
        Samples::new(vec![machine.clone(), machine]).unwrap()
    }

    const DEAR: ProcessCost = ProcessCost {
        start_s: 0.1,
        launch_s: 1.0,
    };

    fn known(samples: &Samples) -> KnownNoise<'_> {
        KnownNoise {
            samples,
            scale: Scale::Relative,
            tolerance: 0.25,
        }
    }

    fn chosen(percent: f64) -> Schedule {
        cheapest(&[known(&noisy(percent))], &bounds(), COST)
    }

    #[test]
    fn a_quiet_metric_needs_few_launches_and_a_noisy_one_more() {
        let quiet = chosen(0.01);
        assert_eq!((quiet.launches, quiet.round), (20, Some(1)));
        assert!((quiet.seconds - 4.0 * 2.7).abs() < 1e-9);
        let noisy = chosen(0.08);
        assert_eq!((noisy.launches, noisy.round), (80, Some(1)));
    }

    #[test]
    fn what_no_round_decides_gets_as_much_as_is_allowed() {
        let hopeless = chosen(2.0);
        assert_eq!((hopeless.launches, hopeless.round), (80, None));
        assert!((hopeless.seconds - 5.0 * 4.0 * 4.5).abs() < 1e-9);
    }

    #[test]
    fn launches_that_leave_some_checks_open_to_the_end_are_too_few() {
        let samples = noisy(0.1);
        let known = known(&samples);
        let looks = bounds().looks;
        // The fewest would take less time, and decide nine of ten by the last round.
        assert_eq!(known.decided(20, &looks, USUALLY), Some(5));
        assert_eq!(known.decided(20, &looks, ALMOST_ALWAYS), None);
        let chosen = cheapest(&[known], &bounds(), DEAR);
        assert!(chosen.launches > 20, "{chosen:?}");
    }

    #[test]
    fn the_noisiest_metric_decides_and_nothing_known_asks_for_nothing() {
        let (quiet, loud) = (noisy(0.01), noisy(0.08));
        let both = [known(&quiet), known(&loud)];
        assert_eq!(cheapest(&both, &bounds(), COST).launches, 80);
        assert_eq!(cheapest(&[], &bounds(), COST).launches, 20);
        let fixed = Bounds {
            most: 20,
            ..bounds()
        };
        assert_eq!(cheapest(&both, &fixed, COST).launches, 20);
    }

    #[test]
    fn more_processes_are_cheaper_where_a_launch_is_dear() {
        let samples = noisy(0.06);
        let known = [known(&samples)];
        let (few, many) = (
            cheapest(&known, &bounds(), DEAR),
            cheapest(&known, &bounds(), COST),
        );
        assert!(few.launches < many.launches, "{few:?}, {many:?}");
        assert!(few.round > many.round);
    }
}
