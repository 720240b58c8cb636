//! What share of unchanged checks is expected to stay open at a tolerance, by the recorded noise.
//!
//! Checks of an unchanged kernel are simulated and judged by the rule itself. A true standard
//! deviation is not known: it was estimated with some degrees of freedom, and is drawn from what
//! they leave possible (a chi-squared variable). So little evidence asks for a wide tolerance.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use statrs::distribution::{ChiSquared, ContinuousCDF};

use super::band::{Question, Scale, Timed, against_stored, side_by_side};
use super::outlying::ROUNDS_IN_ALL;
use crate::metric::Direction;
use crate::statistics::Samples;
use crate::terms::RoundOrder;

/// Which part of the possible deviations a draw takes: steps through all parts, one for each quantity.
/// Primes, so that two quantities of one draw are not extreme together.
const STEPS: [usize; 4] = [1, 7_919, 104_729, 15_485_863];

/// A standard deviation that was estimated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deviation {
    /// The estimate.
    pub sigma: f64,
    /// Its degrees of freedom.
    pub dof: usize,
}

/// How the values of a metric vary: of processes on one machine, and of machines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Population {
    /// Of the values of processes on one machine.
    pub processes: Deviation,
    /// Of the values of machines, each the mean of some processes.
    pub machines: Deviation,
    /// How many processes such a mean has: the harmonic mean over the machines.
    pub of_a_machine: f64,
}

/// How a metric is checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Design {
    /// The looks: rounds side by side, or processes against a stored baseline. At least one.
    pub looks: Vec<usize>,
    /// The processes of each locked machine. At least one machine, each with a process.
    pub locked: Vec<usize>,
    /// Any change is worse.
    pub equal: bool,
}

/// The tolerances that simulated unchanged checks need, to pass or to be shown not worse.
#[derive(Clone, Debug)]
pub struct Needed {
    /// Ascending.
    all: Rc<[f64]>,
    /// Where they are multiples of a standard deviation: its estimate.
    in_units_of: Option<Deviation>,
}

impl Needed {
    /// The share of unchanged checks, 0 to 1, that stay open or fail at a tolerance, which is in the
    /// terms of the deviations.
    pub fn open_share(&self, tolerance: f64) -> f64 {
        let count = self.all.len() as f64;
        let Some(unit) = self.in_units_of else {
            let needed = self.all.partition_point(|needed| *needed <= tolerance);
            return (self.all.len() - needed) as f64 / count;
        };
        let Ok(chi) = ChiSquared::new(unit.dof as f64) else {
            return 1.0;
        };
        // The true deviation is the estimate times the root of dof / chi squared.
        let open = |needed: &f64| {
            let ratio = unit.sigma * needed / tolerance;
            match () {
                () if *needed <= 0.0 || unit.sigma <= 0.0 => 0.0,
                () if !ratio.is_finite() => 1.0,
                () => chi.cdf(unit.dof as f64 * ratio * ratio),
            }
        };
        self.all.iter().map(open).sum::<f64>() / count
    }

    /// The smallest tolerance of two significant digits, in percent or in the unit, at which at most
    /// this share of unchanged checks stays open. `None` where there is none up to a million times the
    /// smallest that is tried, or none below 100 percent.
    pub fn smallest(&self, scale: Scale, direction: Direction, share: f64) -> Option<f64> {
        // Ninety numbers of two digits in each decade.
        const A_DECADE: i32 = 90;
        let start = self.start()?;
        let number = |at: i32| {
            let exponent = start - 1 + at / A_DECADE;
            // One rounding, so that it is the number that is written with two digits.
            format!("{}e{exponent}", 10 + at % A_DECADE)
                .parse()
                .unwrap_or(f64::NAN)
        };
        let enough = |at: i32| {
            let tolerance = scale.in_terms(number(at), direction);
            self.open_share(tolerance) <= share
        };
        let (mut least, mut most) = (0, 6 * A_DECADE);
        if !enough(most) {
            return None;
        }
        while least < most {
            let middle = (least + most) / 2;
            match enough(middle) {
                true => most = middle,
                false => least = middle + 1,
            }
        }
        let found = number(least);
        (scale == Scale::Absolute || found < 100.0).then_some(found)
    }

    /// The power of ten below which no tolerance is tried.
    fn start(&self) -> Option<i32> {
        let middle = self.all[self.all.len() / 2].abs();
        let size = middle * self.in_units_of.map_or(1.0, |unit| unit.sigma);
        let power = (size.log10() - 1.0).floor();
        (-300.0..300.0).contains(&power).then_some(power as i32)
    }
}

/// Simulated checks. What several metrics have in common is simulated once.
pub struct Expected {
    draws: usize,
    factors: RefCell<HashMap<usize, Rc<[f64]>>>,
    rounds: RefCell<HashMap<Design, Rc<[f64]>>>,
}

impl Expected {
    /// With so many simulated checks for each question; at least one.
    pub fn new(draws: usize) -> Expected {
        Expected {
            draws: draws.max(1),
            factors: RefCell::default(),
            rounds: RefCell::default(),
        }
    }

    /// Of checks side by side. The tolerances are in the terms of the deviation.
    pub fn side_by_side(&self, design: &Design, processes: Deviation) -> Needed {
        let known = self.rounds.borrow().get(design).cloned();
        let all = known.unwrap_or_else(|| {
            // What is outlying depends on the tolerance: first about the one that most checks need.
            let first = self.rounds_needed(design, 4.0);
            let usual = first[first.len() * 99 / 100];
            let all = match usual.is_finite() {
                true => self.rounds_needed(design, usual),
                false => first,
            };
            self.rounds.borrow_mut().insert(design.clone(), all.clone());
            all
        });
        Needed {
            all,
            in_units_of: Some(processes),
        }
    }

    /// Of checks of so many processes against a stored baseline that was locked on machines of the same
    /// population; with a control, another kernel of which the same is known.
    pub fn stored(
        &self,
        design: &Design,
        processes: usize,
        own: Population,
        control: Option<Population>,
    ) -> Needed {
        let mut random = Random(0x5eed);
        let question = asked(design, 0.0);
        let of_own = self.deviations(own, [STEPS[1], STEPS[0]]);
        let of_control = control.map(|it| self.deviations(it, [STEPS[3], STEPS[2]]));
        let one = |at: usize| {
            let (within, machines) = of_own(at);
            let mut machine = |count: usize| -> Vec<f64> {
                let level = machines * random.normal();
                let process = |_| level + within * random.normal();
                (0..count).map(process).collect()
            };
            let locked = design.locked.iter().map(|count| machine(*count));
            let locked = locked.map(|values| values.into_iter().map(|value| vec![value]).collect());
            let Some(locked) = Samples::new(locked.collect()) else {
                return f64::INFINITY;
            };
            let now = machine(processes);
            let displaced = of_control.as_ref().map(|deviations| {
                let (within, machines) = deviations(at);
                let error = |count: &usize| machines.powi(2) + within.powi(2) / *count as f64;
                let locked: f64 = design.locked.iter().map(error).sum();
                let variance = error(&processes) + locked / (design.locked.len() as f64).powi(2);
                variance.sqrt() * random.normal()
            });
            let decision = against_stored(&locked, &now, displaced, &question);
            decision.needed.unwrap_or(f64::INFINITY)
        };
        Needed {
            all: sorted((0..self.draws).map(one).collect()),
            in_units_of: None,
        }
    }

    /// The deviations of processes and of machines in a draw, by its number.
    fn deviations(
        &self,
        population: Population,
        steps: [usize; 2],
    ) -> impl Fn(usize) -> (f64, f64) + use<> {
        let draws = self.draws;
        let of = |deviation: Deviation| (deviation.sigma, self.factors(deviation.dof));
        let (sigma, factors) = of(population.processes);
        let (between, between_factors) = of(population.machines);
        let share = 1.0 / population.of_a_machine;
        move |at| {
            let processes = sigma * factors[at * steps[0] % draws];
            let means = between * between_factors[at * steps[1] % draws];
            // The means of machines also vary because their processes do.
            let machines = (means.powi(2) - processes.powi(2) * share).max(0.0).sqrt();
            (processes, machines)
        }
    }

    /// By what an estimated deviation may be multiplied to be the true one; the largest first, in as
    /// many parts of equal chance as there are draws.
    fn factors(&self, dof: usize) -> Rc<[f64]> {
        let known = self.factors.borrow().get(&dof).cloned();
        known.unwrap_or_else(|| {
            let dof_f = dof as f64;
            let chi = ChiSquared::new(dof_f);
            let of_part = |part: usize| match &chi {
                Ok(chi) => {
                    let chance = (part as f64 + 0.5) / self.draws as f64;
                    (dof_f / chi.inverse_cdf(chance)).sqrt()
                }
                Err(_) => f64::INFINITY,
            };
            let factors: Rc<[f64]> = (0..self.draws).map(of_part).collect();
            self.factors.borrow_mut().insert(dof, factors.clone());
            factors
        })
    }

    /// The multiples of the standard deviation of a process that checks side by side need.
    fn rounds_needed(&self, design: &Design, tolerance: f64) -> Rc<[f64]> {
        let mut random = Random(0x5eed);
        let question = asked(design, tolerance);
        let planned = design.looks.iter().copied().max().unwrap_or(1);
        let places = RoundOrder::Alternating.places(ROUNDS_IN_ALL * planned);
        let one = |_| {
            let locked = design.locked.iter();
            let locked = locked.map(|count| (0..*count).map(|_| vec![random.normal()]).collect());
            let learned = Samples::new(locked.collect());
            let mut sides = [Vec::new(), Vec::new()];
            for rounds in planned..=ROUNDS_IN_ALL * planned {
                for side in &mut sides {
                    side.resize_with(2 * rounds, || random.normal());
                }
                let side = |at: usize| Timed {
                    values: &sides[at],
                    places: &places[at][..2 * rounds],
                };
                let decision = side_by_side(side(0), side(1), learned.as_ref(), &question);
                let needed = decision.needed.unwrap_or(f64::INFINITY);
                let more = decision.outlying.is_some_and(|outlying| outlying.more);
                if needed <= tolerance || !more || rounds == ROUNDS_IN_ALL * planned {
                    return needed;
                }
            }
            f64::INFINITY
        };
        sorted((0..self.draws).map(one).collect())
    }
}

/// The question of a simulated check, in the terms of its values.
fn asked(design: &Design, tolerance: f64) -> Question {
    Question {
        scale: Scale::Absolute,
        direction: match design.equal {
            true => Direction::Equal,
            // Which way is worse makes no difference: the noise has no direction.
            false => Direction::Lower,
        },
        tolerance,
        // It decides about alarms alone.
        comparisons: 1,
        looks: design.looks.clone(),
    }
}

fn sorted(mut values: Vec<f64>) -> Rc<[f64]> {
    values.sort_by(f64::total_cmp);
    values.into()
}

/// Random numbers that are the same on every machine: SplitMix64 (Steele, Lea, Flood, 2014).
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((mixed >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Normal, with mean 0 and variance 1 (Box and Muller, 1958).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Verdict;

    fn design(looks: &[usize]) -> Design {
        Design {
            looks: looks.to_vec(),
            locked: vec![4, 4],
            equal: false,
        }
    }

    const SURE: usize = 100_000;

    /// Checks round by round, as they are measured; the share of them that stays open or fails.
    fn open_of(checks: usize, tolerance: f64, sigma: f64) -> f64 {
        let mut random = Random(77);
        let question = asked(&design(&[1, 2, 3]), tolerance);
        let places = RoundOrder::Alternating.places(12);
        let fails = |_: &usize| {
            let mut values =
                |count| -> Vec<f64> { (0..count).map(|_| sigma * random.normal()).collect() };
            let learned =
                [values(4), values(4)].map(|one| one.iter().map(|it| vec![*it]).collect());
            let learned = Samples::new(learned.to_vec());
            let sides = [values(24), values(24)];
            for rounds in 1..=12 {
                let side = |at: usize| Timed {
                    values: &sides[at][..2 * rounds],
                    places: &places[at][..2 * rounds],
                };
                let found = side_by_side(side(0), side(1), learned.as_ref(), &question);
                let open = found.verdict == Verdict::Inconclusive && !found.not_worse;
                let more = found.outlying.as_ref().is_some_and(|one| one.more);
                if !open || (rounds >= 3 && !more) {
                    return open || found.verdict == Verdict::Regressed;
                }
            }
            true
        };
        (0..checks).filter(fails).count() as f64 / checks as f64
    }

    #[test]
    fn as_many_checks_stay_open_as_are_expected_when_they_are_measured_round_by_round() {
        let expected = Expected::new(2000);
        let known = Deviation {
            sigma: 0.1,
            dof: SURE,
        };
        let needed = expected.side_by_side(&design(&[1, 2, 3]), known);
        for tolerance in [0.22, 0.3] {
            let (found, share) = (open_of(2000, tolerance, 0.1), needed.open_share(tolerance));
            let error = 3.0 * (2.0 * share * (1.0 - share) / 2000.0).sqrt();
            assert!(
                (found - share).abs() < error + 0.002,
                "{tolerance}: {found}, {share}"
            );
        }
    }

    #[test]
    fn the_smallest_tolerance_has_two_digits_and_follows_noise_and_evidence() {
        let expected = Expected::new(1000);
        let smallest = |sigma, dof| {
            let needed = expected.side_by_side(&design(&[1, 2, 3]), Deviation { sigma, dof });
            let found = needed.smallest(Scale::Absolute, Direction::Lower, 0.01);
            let found = found.unwrap();
            assert!(needed.open_share(found) <= 0.01);
            // The next smaller number of two digits is at most a tenth smaller.
            assert!(needed.open_share(found * 0.9) > 0.01, "{found}");
            found
        };
        let sure = smallest(0.1, SURE);
        assert!((0.3..0.6).contains(&sure), "{sure}");
        assert_eq!(format!("{sure:.2}").parse(), Ok(sure));
        let thrice = smallest(0.3, SURE) / sure;
        assert!((2.7..3.3).contains(&thrice), "{thrice}");
        assert!(smallest(0.1, 6) > 1.3 * sure);
    }

    #[test]
    fn machines_that_differ_need_a_tolerance_and_few_of_them_a_wide_one() {
        let expected = Expected::new(1000);
        let smallest = |machines: f64, dof| {
            let own = Population {
                processes: Deviation {
                    sigma: 0.1,
                    dof: SURE,
                },
                machines: Deviation {
                    sigma: machines,
                    dof,
                },
                of_a_machine: 4.0,
            };
            let needed = expected.stored(&design(&[4, 6, 8]), 8, own, Some(own));
            needed
                .smallest(Scale::Absolute, Direction::Higher, 0.01)
                .unwrap()
        };
        let (none, some) = (smallest(0.05, SURE), smallest(1.0, SURE));
        assert!(some > 5.0 * none, "{none}, {some}");
        assert!(smallest(1.0, 3) > 1.5 * some);
    }

    #[test]
    fn a_check_that_ends_at_its_first_look_needs_a_wider_tolerance() {
        let expected = Expected::new(1000);
        let of = |sigma| Deviation { sigma, dof: SURE };
        let own = Population {
            processes: of(0.1),
            machines: of(0.05),
            of_a_machine: 4.0,
        };
        let smallest = |processes| {
            let needed = expected.stored(&design(&[4, 6, 8]), processes, own, None);
            needed.smallest(Scale::Absolute, Direction::Lower, 0.01)
        };
        let (first, last) = (smallest(4).unwrap(), smallest(8).unwrap());
        assert!(first > 1.3 * last, "{first}, {last}");
    }

    #[test]
    fn a_percentage_is_below_100_and_a_loss_counts_as_one() {
        let expected = Expected::new(500);
        let needed = |sigma| {
            let known = Deviation { sigma, dof: SURE };
            expected.side_by_side(&design(&[1]), known)
        };
        let smallest = |sigma, direction| needed(sigma).smallest(Scale::Relative, direction, 0.01);
        let (rise, fall) = (
            smallest(0.02, Direction::Lower).unwrap(),
            smallest(0.02, Direction::Higher).unwrap(),
        );
        // The same logarithm: a rise by 50 % is undone by a fall of 33 %.
        assert!(rise > fall, "{rise}, {fall}");
        assert_eq!(smallest(10.0, Direction::Lower), None);
    }
}
