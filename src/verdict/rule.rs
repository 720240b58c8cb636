//! The rule of the verdict.
//!
//! **Side by side.** A round is two processes of each side. Every current value of a round is divided by every
//! base value of it: four ratios. The change is the median of all ratios, and its interval leaves out some of
//! the smallest and of the largest. Nothing is assumed about the noise: if nothing changed, every order of
//! the four processes of a round is equally likely. What drifts between rounds cancels, and a disturbed
//! process spoils two ratios of its round.
//!
//! **Against stored values.** GPUs of one model differ, so the tolerance is flat: the median process is
//! compared with the mean of the locked GPUs, and the interval says how far the processes are apart.

use super::{Change, Decision, Question, Scale, Verdict};
use crate::metric::Direction;
use crate::statistics::{Samples, mean, of_process};

/// After how many rounds the ratios are looked at, and how many at each end are left out of the interval.
/// If nothing changed, all of an interval lies above the truth in 0.46, 0.07 and 0.03 % of cases.
pub const LOOKS: [(usize, usize); 3] = [(3, 0), (6, 2), (10, 6)];
/// What a pass must exclude where the noise reaches across the tolerance, in percent.
const LIMIT: f64 = 4.0;
/// The same after the first rounds, in tolerances: what is slower by so much is found by more rounds.
const FIRST_LIMIT_IN_TOLERANCES: f64 = 2.0;
/// The same in tolerances, where these are in the metric's unit.
const LIMIT_IN_TOLERANCES: f64 = 8.0;
/// Of so many stored processes, one is left out at each end of the interval.
const STORED_LEFT_OUT_OF: usize = 8;
/// The longest tick of a clock of durations, in their unit: 1 us. That of an H100 is 32 ns.
const LONGEST_TICK: u64 = 1000;

/// Judges the launches of the processes of both sides, in the order of time.
pub fn in_turn(base: &[Vec<f64>], current: &[Vec<f64>], question: &Question) -> Decision {
    let rounds = (base.len() / 2).min(current.len() / 2);
    let planned = LOOKS.iter().rev().find(|(look, _)| *look <= rounds);
    let Some(&(rounds, left_out)) = planned else {
        let why = format!(
            "{rounds} rounds were measured, and {} are the fewest",
            LOOKS[0].0
        );
        return Decision {
            change: difference(base, current, question.scale),
            ..Decision::nothing(Verdict::Inconclusive, true, why)
        };
    };
    let sides = [base, current].map(|side| &side[..2 * rounds]);
    let Some(terms) = Terms::of(sides.iter().copied().flatten(), question) else {
        return no_value();
    };
    let [base, current] = sides.map(|side| terms.processes(side));
    let interval = Interval::of_rounds(&base, &current, left_out).wider(tick(sides, terms.log));
    let tolerance = terms.tolerance;
    let is_first = rounds == LOOKS[0].0;
    let limit = match question.scale {
        _ if is_first => FIRST_LIMIT_IN_TOLERANCES * tolerance,
        Scale::Relative => LIMIT.max(question.tolerance) / 100.0,
        Scale::Absolute => LIMIT_IN_TOLERANCES * tolerance,
    };
    let is_last = rounds == LOOKS[LOOKS.len() - 1].0;
    let worse = terms.worse(interval);
    let better = worse.mirrored();
    let is_same = |side: Interval| side.high <= tolerance || side.low <= 0.0 && side.high < limit;
    let verdict = if worse.exceeds(tolerance, is_first) {
        Verdict::Regressed
    } else if better.exceeds(tolerance, is_first) {
        question.better()
    } else if is_same(worse) && (question.direction != Direction::Equal || is_same(better)) {
        Verdict::Pass
    } else {
        Verdict::Inconclusive
    };
    let why = match verdict {
        Verdict::Regressed => "the whole interval is worse by more than the tolerance",
        Verdict::Improved => "the whole interval is better by more than the tolerance",
        Verdict::Pass => "not worse by more than the tolerance",
        _ => "the noise reaches across the tolerance",
    };
    let threshold = tolerance + (interval.high - interval.low);
    let open = verdict == Verdict::Inconclusive && !is_last;
    terms.answer(verdict, interval, threshold, open, why)
}

/// Judges the processes of one machine by what is locked of others. At the first of `looks` what is
/// inconclusive is open: more processes may decide.
pub fn against_stored(
    locked: &Samples,
    current: &[Vec<f64>],
    question: &Question,
    open: bool,
) -> Decision {
    let stored = || locked.machines().iter().flatten();
    let Some(terms) = Terms::of(stored().chain(current), question).filter(|_| !current.is_empty())
    else {
        return no_value();
    };
    let machines = locked.machines().iter();
    let machines: Vec<f64> = machines
        .map(|it| mean(&it.iter().map(|it| of_process(it)).collect::<Vec<_>>()))
        .collect();
    let reference = terms.of_value(mean(&machines));
    let processes = terms.processes(current);
    let left_out = processes.len() / STORED_LEFT_OUT_OF;
    let interval = Interval::of(
        processes.iter().map(|it| it - reference).collect(),
        left_out,
    );
    let tolerance = terms.tolerance;
    let (worse, better) = (terms.worse(interval), terms.worse(interval).mirrored());
    if processes.len() < 2 {
        let why = "it was measured in one process: the spread between processes is not known";
        return Decision {
            change: terms
                .answer(Verdict::Inconclusive, interval, tolerance, open, why)
                .change,
            ..Decision::nothing(Verdict::Inconclusive, open, why.to_owned())
        };
    }
    let is_wide = interval.high - interval.low > tolerance;
    let verdict = if worse.low > tolerance || !is_wide && worse.change > tolerance {
        Verdict::Regressed
    } else if better.low > tolerance || !is_wide && better.change > tolerance {
        question.better()
    } else if is_wide {
        Verdict::Inconclusive
    } else {
        Verdict::Pass
    };
    let why = match verdict {
        Verdict::Regressed => "worse by more than the tolerance",
        Verdict::Improved => "better by more than the tolerance",
        Verdict::Pass => "not worse by more than the tolerance",
        _ => "its processes are further apart than the tolerance",
    };
    let open = open && verdict == Verdict::Inconclusive;
    terms.answer(verdict, interval, tolerance, open, why)
}

fn no_value() -> Decision {
    let why = "a launch has no value".to_owned();
    Decision::nothing(Verdict::NotMeasured, false, why)
}

impl Question {
    /// The verdict on what is better by more than the tolerance.
    fn better(self) -> Verdict {
        match self.direction {
            Direction::Equal => Verdict::Regressed,
            Direction::Lower | Direction::Higher => Verdict::Improved,
        }
    }
}

/// In which numbers a question is answered: logarithms where it is about a ratio.
#[derive(Clone, Copy)]
struct Terms {
    log: bool,
    direction: Direction,
    tolerance: f64,
}

impl Terms {
    /// `None` where a process has no launch, or one is not finite. A ratio of what is not positive is
    /// none: any difference counts then.
    fn of<'v>(processes: impl Iterator<Item = &'v Vec<f64>>, question: &Question) -> Option<Terms> {
        let (mut known, mut positive) = (true, true);
        for launches in processes {
            known &= !launches.is_empty() && launches.iter().all(|value| value.is_finite());
            positive &= launches.iter().all(|value| *value > 0.0);
        }
        let log = question.scale == Scale::Relative && positive;
        let tolerance = match question.scale {
            Scale::Relative if !log => 0.0,
            scale => scale.in_terms(question.tolerance, question.direction),
        };
        known.then_some(Terms {
            log,
            direction: question.direction,
            tolerance,
        })
    }

    fn of_value(self, value: f64) -> f64 {
        if self.log { value.ln() } else { value }
    }

    fn processes(self, side: &[Vec<f64>]) -> Vec<f64> {
        let values = side.iter();
        values
            .map(|launches| self.of_value(of_process(launches)))
            .collect()
    }

    /// With a sign that is positive where it is worse.
    fn worse(self, interval: Interval) -> Interval {
        match self.direction {
            Direction::Lower => interval,
            Direction::Higher => interval.mirrored(),
            // Any change is worse.
            Direction::Equal => interval,
        }
    }

    fn shown(self, difference: f64) -> f64 {
        match self.log {
            true => difference.exp_m1() * 100.0,
            false => difference,
        }
    }

    fn answer(
        self,
        verdict: Verdict,
        interval: Interval,
        threshold: f64,
        open: bool,
        why: &str,
    ) -> Decision {
        let sign = match self.direction {
            Direction::Higher => -1.0,
            Direction::Lower | Direction::Equal => 1.0,
        };
        let change = self.shown(interval.change);
        Decision {
            verdict,
            change: Some(match self.log {
                true => Change::RelativePercent(change),
                false => Change::Absolute(change),
            }),
            band: Some(self.shown((interval.high - interval.low) / 2.0)),
            threshold: Some(self.shown(sign * threshold)),
            open,
            why: why.to_owned(),
        }
    }
}

/// The interval of the change, in the terms of the question.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Interval {
    change: f64,
    low: f64,
    high: f64,
}

/// By how much the means of the processes differ; `None` where a side has none.
fn difference(base: &[Vec<f64>], current: &[Vec<f64>], scale: Scale) -> Option<Change> {
    let of_side = |side: &[Vec<f64>]| {
        let values: Vec<f64> = side.iter().map(|launches| of_process(launches)).collect();
        (!values.is_empty()).then(|| mean(&values))
    };
    let (was, is) = (of_side(base)?, of_side(current)?);
    Some(match scale {
        Scale::Relative if was != 0.0 => Change::RelativePercent((is / was - 1.0) * 100.0),
        _ => Change::Absolute(is - was),
    })
}

/// What a change may be off by because a clock ticks, in the terms of the question: the largest number that
/// all values are multiples of, up to [`LONGEST_TICK`]. Where the launches of a process differ, their
/// mean is known better.
fn tick(sides: [&[Vec<f64>]; 2], log: bool) -> f64 {
    let processes = || sides.iter().copied().flatten();
    // The first launch does not count where there are others.
    let counted = |launches: &Vec<f64>| launches[launches.len().min(2) - 1];
    let one_value = |launches: &Vec<f64>| {
        let mut others = launches.iter().skip(1);
        others.all(|value| *value == counted(launches))
    };
    let whole = |value: f64| (value.fract() == 0.0 && value.abs() < 1e15).then_some(value as u64);
    if !processes().all(one_value) {
        return 0.0;
    }
    let values = processes().flatten().map(|value| whole(value.abs()));
    let Some(values) = values.collect::<Option<Vec<u64>>>() else {
        return 0.0;
    };
    let divisor = values
        .iter()
        .fold(0, |divisor, value| common_divisor(divisor, *value));
    let tick = divisor.min(LONGEST_TICK) as f64;
    let smallest = values.iter().min().copied().unwrap_or(0) as f64;
    if values.iter().all(|value| *value == values[0]) {
        return 0.0;
    }
    match log {
        true => (tick / smallest).ln_1p(),
        false => tick,
    }
}

/// Euclid's.
fn common_divisor(one: u64, other: u64) -> u64 {
    match other {
        0 => one,
        _ => common_divisor(other, one % other),
    }
}

impl Interval {
    /// Of process values, two a side and round, without some at each end.
    fn of_rounds(base: &[f64], current: &[f64], left_out: usize) -> Interval {
        let rounds = base.chunks(2).zip(current.chunks(2));
        let ratios = rounds
            .flat_map(|(base, current)| {
                let of = |now: &f64| base.iter().map(|was| now - was).collect::<Vec<f64>>();
                current.iter().flat_map(of).collect::<Vec<f64>>()
            })
            .collect();
        Interval::of(ratios, left_out)
    }

    /// Of at least one change, without some at each end.
    fn of(mut changes: Vec<f64>, left_out: usize) -> Interval {
        changes.sort_by(f64::total_cmp);
        let (middle, last) = (changes.len() / 2, changes.len() - 1);
        Interval {
            change: changes[(last / 2).min(middle)].midpoint(changes[middle]),
            low: changes[left_out],
            high: changes[last - left_out],
        }
    }

    fn wider(self, by: f64) -> Interval {
        Interval {
            low: self.low - by,
            high: self.high + by,
            ..self
        }
    }

    fn mirrored(self) -> Interval {
        Interval {
            change: -self.change,
            low: -self.high,
            high: -self.low,
        }
    }

    /// Whether all of it is above the tolerance. Few rounds must show it by more than their own width.
    fn exceeds(self, tolerance: f64, is_first: bool) -> bool {
        self.low > tolerance && (!is_first || self.low > self.high - self.low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERCENT: f64 = 0.01;

    /// A stream of numbers that are spread normally, always the same.
    struct Noise(u64);

    impl Noise {
        fn uniform(&mut self) -> f64 {
            // Knuth's generator for 64 bits; the upper ones are the better ones.
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        }

        fn normal(&mut self) -> f64 {
            let (one, other) = (self.uniform(), self.uniform());
            (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
        }
    }

    fn question(tolerance: f64) -> Question {
        Question {
            scale: Scale::Relative,
            direction: Direction::Lower,
            tolerance,
        }
    }

    /// The decision of a whole run: at the first look that is clear, or at the last.
    fn decided(base: &[Vec<f64>], current: &[Vec<f64>], asked: &Question) -> Decision {
        let looks = LOOKS.iter().map(|(rounds, _)| (2 * rounds).min(base.len()));
        let mut decisions = looks.map(|it| in_turn(&base[..it], &current[..it], asked));
        let found = decisions.find(|decision| !decision.open);
        found.unwrap_or_else(|| in_turn(base, current, asked))
    }

    /// How many of a thousand runs end so, where values vary by this much and the current ones are longer.
    fn share(verdict: Verdict, sigmas: [f64; 2], longer: f64) -> usize {
        let mut noise = Noise(7);
        let runs = (0..1000).filter(|_| {
            let [base, current] = [(sigmas[0], 0.0), (sigmas[1], longer)].map(|(sigma, longer)| {
                let value = |_| vec![100.0 * (1.0 + longer) * (sigma * noise.normal()).exp(); 1];
                (0..20).map(value).collect::<Vec<_>>()
            });
            decided(&base, &current, &question(0.5)).verdict == verdict
        });
        runs.count()
    }

    #[test]
    fn unchanged_programs_pass_and_one_percent_is_found_where_processes_are_quiet() {
        for sigma in [0.05, 0.1, 0.2, 0.3, 0.5, 1.0].map(|it| it * PERCENT) {
            assert!(share(Verdict::Pass, [sigma; 2], 0.0) >= 998, "{sigma}");
        }
        for sigma in [0.05, 0.1, 0.2].map(|it| it * PERCENT) {
            assert!(
                share(Verdict::Regressed, [sigma; 2], PERCENT) >= 985,
                "{sigma}"
            );
        }
    }

    #[test]
    fn a_change_that_is_exactly_the_tolerance_seldom_fails_and_seldom_passes_a_quiet_program() {
        let sigma = 0.1 * PERCENT;
        assert!(share(Verdict::Regressed, [sigma; 2], 0.5 * PERCENT) <= 15);
        assert!(share(Verdict::Pass, [sigma; 2], 0.5 * PERCENT) <= 15);
    }

    #[test]
    fn three_rounds_pass_only_what_rules_out_twice_the_tolerance() {
        // Base values that vary by some tenths of a percent, and the same in another order, longer.
        let base: Vec<Vec<f64>> = [100.0, 100.3, 100.2, 99.9, 100.1, 100.0]
            .map(|it| vec![it])
            .into();
        let current = |percent: f64| -> Vec<Vec<f64>> {
            let longer = |it: &Vec<f64>| vec![it[0] * (1.0 + percent / 100.0)];
            base.iter().rev().map(longer).collect()
        };
        let verdict = |percent| in_turn(&base, &current(percent), &question(0.5)).verdict;
        assert_eq!(verdict(0.0), Verdict::Pass);
        assert_eq!(verdict(0.25), Verdict::Pass);
        // Now the interval reaches beyond 1 %.
        assert_eq!(verdict(0.7), Verdict::Inconclusive);
        assert_eq!(verdict(2.0), Verdict::Regressed);
    }

    #[test]
    fn a_change_in_three_times_the_noise_does_not_pass() {
        for sigma in [0.2, 0.5, 1.0, 2.0].map(|it| it * PERCENT) {
            let passed = share(Verdict::Pass, [sigma, 3.0 * sigma], 3.0 * PERCENT);
            assert!(passed <= 50, "{sigma}: {passed}");
        }
    }

    #[test]
    fn what_it_says_that_it_would_have_caught_is_caught() {
        let mut noise = Noise(11);
        for sigma in [0.05, 0.2, 0.5].map(|it| it * PERCENT) {
            let mut side = |longer: f64| {
                let value = |_| vec![100.0 * (1.0 + longer) * (sigma * noise.normal()).exp(); 1];
                (0..20).map(value).collect::<Vec<_>>()
            };
            let caught = (0..500).filter(|_| {
                let would = decided(&side(0.0), &side(0.0), &question(0.5))
                    .threshold
                    .unwrap();
                let again = decided(&side(0.0), &side(would * PERCENT), &question(0.5));
                again.verdict == Verdict::Regressed
            });
            let caught = caught.count();
            assert!(caught >= 490, "{sigma}: {caught} of 500");
        }
    }

    #[test]
    fn one_tick_of_the_clock_is_no_change() {
        let side = |value: f64| vec![vec![value]; 20];
        let answer = |now: f64| decided(&side(4960.0), &side(now), &question(0.5)).verdict;
        assert_eq!(answer(4960.0), Verdict::Pass);
        // One tick of 32 ns is 0.65 %.
        assert_ne!(answer(4992.0), Verdict::Regressed);
        let mut more = side(4992.0);
        more[3] = vec![4960.0];
        assert_ne!(
            decided(&side(4960.0), &more, &question(0.5)).verdict,
            Verdict::Regressed
        );
        // Nor where each process has a first launch that takes longer.
        let warm = |value: f64| vec![vec![5408.0, value, value]; 20];
        let answer_of_many = decided(&warm(4960.0), &warm(4992.0), &question(0.5)).verdict;
        assert_ne!(answer_of_many, Verdict::Regressed);
        assert_eq!(answer(7200.0), Verdict::Regressed);
        // Where launches differ, their mean is known better.
        let launches = |by: f64| vec![vec![9000.0, 4960.0 + by, 4992.0 + by, 4960.0 + by]; 20];
        let found = decided(&launches(0.0), &launches(64.0), &question(0.5));
        assert_eq!(found.verdict, Verdict::Regressed);
    }

    #[test]
    fn slow_launches_count_and_the_first_one_does_not() {
        // In ticks of 32 ns, as an H100 has them.
        let process =
            |slow: f64| [vec![50_144.0], vec![9984.0; 18], vec![9984.0 * slow; 2]].concat();
        let sides = |slow: f64| {
            decided(
                &vec![process(1.0); 20],
                &vec![process(slow); 20],
                &question(0.5),
            )
        };
        assert_eq!(sides(1.0).verdict, Verdict::Pass);
        assert_eq!(sides(2.0).verdict, Verdict::Regressed);
        let mut first = process(1.0);
        first[0] = 90_016.0;
        assert_eq!(
            decided(&vec![process(1.0); 20], &vec![first; 20], &question(0.5)).verdict,
            Verdict::Pass
        );
    }

    #[test]
    fn exchanging_the_sides_mirrors_the_verdict_and_drift_between_rounds_cancels() {
        let drifting = |factor: f64| {
            let value = |process: usize| vec![factor * (100.5 + 10.0 * (process / 2) as f64)];
            (0..20).map(value).collect::<Vec<_>>()
        };
        let (one, other) = (drifting(1.0), drifting(1.02));
        assert_eq!(
            decided(&one, &other, &question(0.5)).verdict,
            Verdict::Regressed
        );
        assert_eq!(
            decided(&other, &one, &question(0.5)).verdict,
            Verdict::Improved
        );
        assert_eq!(decided(&one, &one, &question(0.5)).verdict, Verdict::Pass);
        let few = decided(&one[..4], &one[..4], &question(0.5));
        assert_eq!((few.verdict, few.open), (Verdict::Inconclusive, true));
    }
}
