//! Processes that are far from their siblings, and the rounds that are measured in their place.
//!
//! A process is compared with the processes of its own side alone, and both sides are treated alike.
//! So the choice does not depend on how the sides differ, which is what the verdict is about. A whole
//! round is set aside, with as many processes of the one side as of the other, so that what a machine
//! drifts still cancels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantile::upper_quantile;
use crate::statistics::{Scatter, median};

/// Chance that a normal process with the locked noise is called outlying.
const FAR: f64 = 0.005;
/// Least distance of an outlying process, in tolerances. Without it, a run that is noisier than its lock
/// would lose its largest deviations from the noise.
const NEAR: f64 = 1.5;
/// A side needs so many processes for each that is outlying, and as many again. A smaller number would
/// let a kernel pass that is slow in every third process. A larger one would leave unchanged kernels open
/// where one process in twenty is disturbed.
const PROCESSES_FOR_EACH: usize = 5;
/// By how many the sides may differ in their outlying processes. A disturbed machine disturbs both.
const MOST_APART: usize = 5;
/// With more processes of a side than this, none is looked for: every two of a side are compared, and a
/// recording can have any number.
pub(super) const MOST_PROCESSES: usize = 1000;
/// With those in place of others, at most so many times the planned rounds are measured.
pub const ROUNDS_IN_ALL: usize = 4;

/// Processes that are far from their siblings, where some are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outlying {
    /// How many of the base.
    pub base: usize,
    /// How many of the current side.
    pub current: usize,
    /// Processes that each side has.
    pub processes: usize,
    /// The rounds that are not judged because of them, from 1. Empty while a side has too many
    /// outlying processes: then every round is judged, and the metric cannot pass.
    pub set_aside: Vec<usize>,
    /// Whether another round may settle it.
    pub more: bool,
}

/// The process values of a side, in the terms of the tolerance, and their places in the run.
pub(super) type Side<'a> = (&'a [f64], &'a [f64]);

impl Outlying {
    /// Of two sides with two processes in each round. `limit` is the distance beyond which a process
    /// is outlying, `planned` the most rounds that are measured where none is. `None` where none is.
    pub(super) fn find(sides: [Side<'_>; 2], limit: f64, planned: usize) -> Option<Outlying> {
        let slope = common_slope(sides);
        let far = sides.map(|side| far(side, slope, limit));
        let [base, current] = [0, 1].map(|at: usize| far[at].iter().filter(|far| **far).count());
        if base + current == 0 {
            return None;
        }
        let processes = far[0].len();
        let rounds = processes / 2;
        let is_set_aside = |round: &usize| {
            let both = far.iter().flat_map(|far| far.chunks(2).nth(round - 1));
            both.flatten().any(|far| *far)
        };
        let set_aside: Vec<usize> = (1..=rounds).filter(is_set_aside).collect();
        let few = |processes: usize| {
            let mut sides = [base, current].into_iter();
            sides.all(|outlying| processes >= needed(outlying))
        };
        let enough = few(processes) && base.abs_diff(current) <= MOST_APART;
        let most = ROUNDS_IN_ALL.saturating_mul(planned);
        let judged = rounds - set_aside.len();
        let settled = enough && judged >= planned;
        Some(Outlying {
            base,
            current,
            processes,
            more: !settled && rounds < most && few(2 * most),
            set_aside: match enough {
                true => set_aside,
                false => Vec::new(),
            },
        })
    }

    /// Whether a side has too many of them to set any aside.
    pub fn too_many(&self) -> bool {
        self.set_aside.is_empty()
    }

    /// Why nothing passes where there are too many.
    pub(super) fn why(&self) -> String {
        let next = match self.more {
            true => "measure more rounds",
            false => "the kernel or the machine is not stable",
        };
        format!("too many processes are outlying, {self}: {next}")
    }
}

/// `1 of 12 in the base and 0 of 12 in current`.
impl std::fmt::Display for Outlying {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Outlying {
            base,
            current,
            processes,
            ..
        } = self;
        write!(
            f,
            "{base} of {processes} in the base and {current} of {processes} in current"
        )
    }
}

/// The processes that a side must have so that its outlying ones are set aside.
fn needed(outlying: usize) -> usize {
    match outlying {
        0 => 0,
        _ => PROCESSES_FOR_EACH * (outlying + 1),
    }
}

/// The distance beyond which a process is outlying: the larger of one and a half tolerances and what the
/// locked noise rarely exceeds. `None` where the noise is not known, or nothing is tolerated.
pub(super) fn limit(tolerance: f64, learned: Scatter) -> Option<f64> {
    let rare = upper_quantile(learned.dof, FAR / 2.0) * learned.sigma()?;
    let limit = (NEAR * tolerance).max(rare);
    (tolerance > 0.0 && limit.is_finite()).then_some(limit)
}

/// Which processes are farther than the limit from the median of their side, after the trend.
fn far((values, places): Side<'_>, slope: f64, limit: f64) -> Vec<bool> {
    let level = |(at, value): (usize, &f64)| match places.get(at) {
        Some(place) => value - slope * place,
        None => *value,
    };
    let levels: Vec<f64> = values.iter().enumerate().map(level).collect();
    let center = median(&levels).unwrap_or(f64::NAN);
    levels
        .iter()
        .map(|level| (level - center).abs() > limit)
        .collect()
}

/// The slope of one trend over the run: the median of the slopes between every two processes of a side
/// (Theil, 1950; Sen, 1968), which outlying processes hardly move. Zero in a single round.
fn common_slope(sides: [Side<'_>; 2]) -> f64 {
    let placed = |(values, places): &Side<'_>| values.len() > 2 && values.len() == places.len();
    if !sides.iter().all(placed) {
        return 0.0;
    }
    let mut slopes = Vec::new();
    for (values, places) in sides {
        for later in 1..values.len() {
            for earlier in 0..later {
                let distance = places[later] - places[earlier];
                if distance != 0.0 {
                    slopes.push((values[later] - values[earlier]) / distance);
                }
            }
        }
    }
    median(&slopes).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terms::RoundOrder;

    fn found(base: &[f64], current: &[f64]) -> Option<Outlying> {
        let [base_places, places] = RoundOrder::Alternating.places(base.len() / 2);
        Outlying::find([(base, &base_places), (current, &places)], 1.0, 5)
    }

    fn quiet(processes: usize) -> Vec<f64> {
        let value = |at: usize| 100.0 + [0.1, -0.1, 0.0][at % 3];
        (0..processes).map(value).collect()
    }

    #[test]
    fn the_round_of_a_process_far_from_its_siblings_is_set_aside_after_enough_others() {
        assert_eq!(found(&quiet(12), &quiet(12)), None);
        let mut current = quiet(12);
        current[3] = 110.0;
        let outlying = found(&quiet(12), &current).unwrap();
        assert_eq!((outlying.base, outlying.current), (0, 1));
        assert_eq!(outlying.set_aside, [2]);
        assert!(!outlying.more && !outlying.too_many());
        // The same of the other side.
        let other = found(&current, &quiet(12)).unwrap();
        assert_eq!((other.base, other.current), (1, 0));
        assert_eq!(other.set_aside, outlying.set_aside);
        // With fewer processes one in so many is too much.
        let early = found(&quiet(8), &current[..8]).unwrap();
        assert!(early.too_many() && early.more, "{early:?}");
        assert_eq!(
            early.why(),
            "too many processes are outlying, 0 of 8 in the base and 1 of 8 in current: measure more rounds"
        );
    }

    #[test]
    fn a_side_that_is_slow_in_half_of_its_processes_is_never_cleaned() {
        for rounds in 1..=20 {
            let half = [100.0, 120.0].repeat(rounds);
            let outlying = found(&quiet(2 * rounds), &half).unwrap();
            assert!(outlying.too_many(), "{outlying:?}");
        }
        let half = [100.0, 120.0].repeat(20);
        assert!(!found(&quiet(40), &half).unwrap().more);
    }

    #[test]
    fn a_side_with_six_more_outlying_processes_than_the_other_is_not_cleaned() {
        let with = |outlying: usize| {
            let mut values = quiet(40);
            let far = values.iter_mut().step_by(6).take(outlying);
            far.for_each(|value| *value += 10.0);
            values
        };
        let found = |base, current| found(&with(base), &with(current)).unwrap();
        assert!(!found(0, 5).too_many() && !found(2, 6).too_many());
        for (base, current) in [(0, 6), (6, 0)] {
            let outlying = found(base, current);
            assert!(outlying.too_many(), "{outlying:?}");
        }
    }

    #[test]
    fn siblings_are_those_of_the_own_side_so_a_slower_kernel_is_not_outlying() {
        let slower: Vec<f64> = quiet(8).iter().map(|value| 1.2 * value).collect();
        assert_eq!(found(&quiet(8), &slower), None);
    }

    #[test]
    fn a_machine_that_drifts_has_no_outlying_processes() {
        let [base_places, places] = RoundOrder::Alternating.places(5);
        let drifting =
            |places: &[f64]| -> Vec<f64> { places.iter().map(|place| 100.0 + place).collect() };
        assert_eq!(found(&drifting(&base_places), &drifting(&places)), None);
        let mut current = drifting(&places);
        current[4] += 5.0;
        assert_eq!(found(&drifting(&base_places), &current).unwrap().current, 1);
    }

    #[test]
    fn without_a_known_noise_or_a_tolerance_nothing_is_outlying() {
        let known = Scatter::of(&[1.0, 2.0, 3.0]);
        assert_eq!(limit(1.0, Scatter::default()), None);
        assert_eq!(limit(0.0, known), None);
        assert_eq!(limit(f64::NAN, known), None);
        assert_eq!(limit(f64::INFINITY, known), None);
        assert_eq!(limit(100.0, known), Some(150.0));
        assert!(limit(0.1, known).unwrap() > 10.0);
    }
}
