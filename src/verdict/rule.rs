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
//!
//! What is no duration may be counted in one process of a side. Its launches then stand for processes.

use super::{Change, Decision, Question, Verdict};
use crate::metric::{Direction, Tolerance};
use crate::statistics::{Samples, mean, of_process};

/// After how many rounds the ratios are looked at, and how many at each end are left out of the interval.
/// If nothing changed, all of an interval lies above the truth in 0.46, 0.07 and 0.03 % of cases.
pub const LOOKS: [(usize, usize); 3] = [(3, 0), (6, 2), (10, 6)];
/// What a pass must exclude where the noise reaches across the tolerance.
const LIMIT: Tolerance = Tolerance::RelativePercent(4.0);
/// The same after the first rounds, in tolerances: what is slower by so much is found by more rounds.
const FIRST_LIMIT_IN_TOLERANCES: f64 = 2.0;
/// The same in tolerances, where these are in the metric's unit.
const LIMIT_IN_TOLERANCES: f64 = 8.0;
/// Of so many processes that are compared with stored ones, or pairs of launches, one is left out at each end
/// of the interval.
const LEFT_OUT_OF: usize = 8;
/// Fewer launches of a process do not stand for processes.
const FEWEST_LAUNCHES: usize = 3;
/// What a pass may leave open of the part of a total, in tolerances of the total: it is judged, too.
const OF_TOTAL_IN_TOLERANCES: f64 = 0.5;
/// Why `--strict` lets nothing pass that would pass otherwise.
const NOT_STRICTLY: &str =
    "the interval reaches across the tolerance, which is no pass with --strict";
/// More than a difference of logarithms is off by.
const ROUNDING: f64 = 1e-12;
/// How much longer the part of an interval below the change may be than the part above, in noise.
const UNEVEN: f64 = 4.0;
/// The ticks of clocks in nanoseconds. That of an H100 is 32 ns.
const TICKS: [u64; 4] = [1024, 1000, 32, 1];

/// Judges the launches of the processes of both sides, in the order of time.
pub fn in_turn(base: &[Vec<f64>], current: &[Vec<f64>], question: &Question) -> Decision {
    let rounds = (base.len() / 2).min(current.len() / 2);
    let planned = LOOKS.iter().rev().find(|(look, _)| *look <= rounds);
    let sides = [base, current].map(|side| match planned {
        Some((rounds, _)) => &side[..2 * rounds],
        None => side,
    });
    let Some(terms) = Terms::of(sides, question) else {
        return no_value();
    };
    let counted_once = sides
        .iter()
        .all(|side| question.launches_of(side).is_some());
    if planned.is_none() && !counted_once {
        let why = format!(
            "{rounds} rounds were measured, and {} are the fewest",
            LOOKS[0].0
        );
        let [was, is] = sides.map(|side| terms.of_value(mean(&values(side))));
        return Decision {
            change: Some(terms.change(is - was)),
            ..Decision::nothing(Verdict::Inconclusive, true, why)
        };
    }
    let [base, current] = sides.map(|side| terms.values(side, question));
    let tick = match question.is_time {
        true => tick(sides, terms.log),
        false => 0.0,
    };
    let interval = match planned {
        Some(&(_, left_out)) => Interval::of_rounds(&base, &current, 2, left_out).wider(tick),
        // Launches of one process a side.
        None => {
            let left_out = base.len() * current.len() / LEFT_OUT_OF;
            Interval::of_rounds(&base, &current, usize::MAX, left_out)
        }
    };
    let tolerance = terms.tolerance;
    let is_first = planned == LOOKS.first();
    let limit = match is_first {
        true => FIRST_LIMIT_IN_TOLERANCES * tolerance,
        false if terms.log => tolerance.max(question.in_terms(LIMIT)),
        false => LIMIT_IN_TOLERANCES * tolerance,
    };
    let limit = limit.max(OF_TOTAL_IN_TOLERANCES * tolerance / question.part);
    let is_last = planned.is_none() || planned == LOOKS.last();
    let worse = terms.worse(interval);
    let better = worse.mirrored();
    let reaches_zero =
        |side: Interval| side.low <= 0.0 && side.high < limit && side.is_noise(tolerance);
    let is_same = |strict: bool| {
        let is_same = |side: Interval| side.high <= tolerance || !strict && reaches_zero(side);
        is_same(worse) && (question.direction != Direction::Equal || is_same(better))
    };
    let verdict = if worse.exceeds(tolerance, is_first) {
        Verdict::Regressed
    } else if better.exceeds(tolerance, is_first) {
        question.better()
    } else if is_same(question.strict) {
        Verdict::Pass
    } else {
        Verdict::Inconclusive
    };
    let why = match verdict {
        Verdict::Regressed => "the whole interval is worse by more than the tolerance",
        Verdict::Improved => "the whole interval is better by more than the tolerance",
        Verdict::Pass => "not worse by more than the tolerance",
        _ if is_same(false) => NOT_STRICTLY,
        _ => "the noise reaches across the tolerance",
    };
    let threshold = tolerance + (interval.high - interval.low);
    let open = verdict == Verdict::Inconclusive && !is_last;
    terms.answer(verdict, interval, threshold, open, why)
}

/// Judges the processes of one machine by what is locked of others. `open` says whether more of them may
/// decide what is inconclusive.
pub fn against_stored(
    locked: &Samples,
    current: &[Vec<f64>],
    question: &Question,
    open: bool,
) -> Decision {
    let reference = locked.value();
    let terms = Terms::of([&locked.machines().concat(), current], question);
    let Some(terms) = terms.filter(|_| reference.is_finite()) else {
        return no_value();
    };
    let reference = terms.of_value(reference);
    let values = terms.values(current, question);
    let left_out = values.len() / LEFT_OUT_OF;
    let changes = values.iter().map(|it| it - reference).collect();
    let interval = Interval::of(changes, left_out);
    let tolerance = terms.tolerance;
    let (worse, better) = (terms.worse(interval), terms.worse(interval).mirrored());
    if values.len() < 2 {
        let why = "it has one value: how far its values are apart is not known";
        return Decision {
            change: Some(terms.change(interval.change)),
            ..Decision::nothing(Verdict::Inconclusive, open, why.to_owned())
        };
    }
    let width = interval.high - interval.low;
    let is_wide = width > tolerance;
    // The tolerance is for processes. Launches of one are further apart, and more processes are not counted.
    let counted_once = question.launches_of(current).is_some();
    let both = question.direction == Direction::Equal;
    let reaches = |tolerance| worse.high > tolerance || both && better.high > tolerance;
    let verdict = if worse.low > tolerance || !is_wide && worse.change > tolerance {
        Verdict::Regressed
    } else if better.low > tolerance || !is_wide && better.change > tolerance {
        question.better()
    } else if is_wide && !counted_once || question.strict && reaches(tolerance) {
        Verdict::Inconclusive
    } else {
        Verdict::Pass
    };
    let why = match verdict {
        Verdict::Regressed => "worse by more than the tolerance",
        Verdict::Improved => "better by more than the tolerance",
        Verdict::Pass => "not worse by more than the tolerance",
        _ if is_wide && !counted_once => "its processes are further apart than the tolerance",
        _ => NOT_STRICTLY,
    };
    let open = open && verdict == Verdict::Inconclusive;
    let threshold = match is_wide && counted_once {
        true => tolerance + width,
        false => tolerance,
    };
    terms.answer(verdict, interval, threshold, open, why)
}

fn no_value() -> Decision {
    let why = "a launch or the tolerance has no value".to_owned();
    Decision::nothing(Verdict::NotMeasured, false, why)
}

/// The values of processes.
fn values(side: &[Vec<f64>]) -> Vec<f64> {
    side.iter().map(|launches| of_process(launches)).collect()
}

impl Question {
    /// The launches that stand for processes: those of one process that counted, where they show how far they
    /// are apart. The first is left out as in the value of a process.
    fn launches_of(self, side: &[Vec<f64>]) -> Option<&[f64]> {
        let [launches] = side else {
            return None;
        };
        let (_, others) = launches.split_first()?;
        let counts_first = of_process(launches) != mean(others);
        let counted = if counts_first { launches } else { others };
        (!self.is_time && others.len() >= FEWEST_LAUNCHES).then_some(counted)
    }

    /// A tolerance as it is compared with a change: a logarithm, or the difference itself. NaN of what is
    /// no tolerance.
    fn in_terms(self, tolerance: Tolerance) -> f64 {
        let (Tolerance::RelativePercent(size) | Tolerance::Absolute(size)) = tolerance;
        match (tolerance, self.direction) {
            _ if !(size >= 0.0 && size.is_finite()) => f64::NAN,
            (Tolerance::Absolute(_), _) => size,
            (_, Direction::Lower | Direction::Equal) => (size / 100.0).ln_1p(),
            (_, Direction::Higher) if size >= 100.0 => f64::INFINITY,
            (_, Direction::Higher) => -(-size / 100.0).ln_1p(),
        }
    }

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
    /// `None` where a side has no process, a launch or the value of a process is not finite, or the
    /// tolerance is none. A ratio of what is not positive is none: any difference counts then.
    fn of(sides: [&[Vec<f64>]; 2], question: &Question) -> Option<Terms> {
        let launches = || sides.into_iter().flatten().flatten();
        let values = sides.map(values);
        let known = !values.iter().any(Vec::is_empty)
            && launches()
                .chain(values.iter().flatten())
                .all(|it| it.is_finite());
        let is_relative = matches!(question.tolerance, Tolerance::RelativePercent(_));
        let log = is_relative && launches().all(|it| *it > 0.0);
        let tolerance = question.in_terms(question.tolerance);
        (known && !tolerance.is_nan()).then_some(Terms {
            log,
            direction: question.direction,
            tolerance: if is_relative && !log { 0.0 } else { tolerance },
        })
    }

    fn of_value(self, value: f64) -> f64 {
        if self.log { value.ln() } else { value }
    }

    /// The values of processes; of one process that counted, those of its launches without the first.
    fn values(self, side: &[Vec<f64>], question: &Question) -> Vec<f64> {
        let values = match question.launches_of(side) {
            Some(launches) => launches.to_vec(),
            None => values(side),
        };
        values.into_iter().map(|it| self.of_value(it)).collect()
    }

    /// With a sign that is positive where it is worse.
    fn worse(self, interval: Interval) -> Interval {
        match self.direction {
            // Of equal, any change is worse.
            Direction::Lower | Direction::Equal => interval,
            Direction::Higher => interval.mirrored(),
        }
    }

    fn shown(self, difference: f64) -> f64 {
        match self.log {
            true => difference.exp_m1() * 100.0,
            false => difference,
        }
    }

    fn change(self, difference: f64) -> Change {
        match self.log {
            true => Change::RelativePercent(self.shown(difference)),
            false => Change::Absolute(difference),
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
        Decision {
            verdict,
            change: Some(self.change(interval.change)),
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

/// What a change may be off by because a clock ticks, in the terms of the question: the longest of [`TICKS`]
/// that all values are multiples of. Where the launches of a process differ, their mean is known better.
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
    let smallest = values.iter().min().copied().unwrap_or(0);
    if smallest == 0 || values.iter().all(|value| *value == values[0]) {
        return 0.0;
    }
    let divides = |tick: &&u64| values.iter().all(|value| value % **tick == 0);
    let tick = TICKS.iter().find(divides).copied().unwrap_or(1) as f64;
    // A little more, so that rounding does not decide.
    match log {
        true => (tick / smallest as f64).ln_1p() + ROUNDING,
        false => tick * (1.0 + ROUNDING),
    }
}

impl Interval {
    /// Each of a round is compared with each of the other side, without some at each end.
    fn of_rounds(base: &[f64], current: &[f64], in_round: usize, left_out: usize) -> Interval {
        let rounds = base.chunks(in_round).zip(current.chunks(in_round));
        let changes = rounds.flat_map(|(base, current)| {
            let against = move |now: &f64| base.iter().map(|was| now - was).collect::<Vec<f64>>();
            current.iter().flat_map(against)
        });
        Interval::of(changes.collect(), left_out)
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

    /// Whether noise is what reaches beyond the tolerance. A change that most processes have lies at the end
    /// of its interval: few others are why it reaches zero.
    fn is_noise(self, tolerance: f64) -> bool {
        let (above, below) = (self.high - self.change, self.change - self.low);
        self.change <= tolerance || above * UNEVEN >= below
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
            tolerance: Tolerance::RelativePercent(tolerance),
            direction: Direction::Lower,
            is_time: true,
            part: 1.0,
            strict: false,
        }
    }

    /// The decision of a whole run: at the first look that is clear, or at the last.
    fn decided(base: &[Vec<f64>], current: &[Vec<f64>], asked: &Question) -> Decision {
        let looks = LOOKS.iter().map(|(rounds, _)| (2 * rounds).min(base.len()));
        let mut decisions = looks.map(|it| in_turn(&base[..it], &current[..it], asked));
        let found = decisions.find(|decision| !decision.open);
        found.unwrap_or_else(|| in_turn(base, current, asked))
    }

    fn answer(base: &[Vec<f64>], current: &[Vec<f64>], tolerance: f64) -> Verdict {
        decided(base, current, &question(tolerance)).verdict
    }

    /// How many of a thousand runs end so, where values vary by this much and the current ones are longer.
    fn share(verdict: Verdict, sigmas: [f64; 2], longer: f64) -> usize {
        let mut noise = Noise(7);
        let runs = (0..1000).filter(|_| {
            let [base, current] = [(sigmas[0], 0.0), (sigmas[1], longer)].map(|(sigma, longer)| {
                let value = |_| vec![100.0 * (1.0 + longer) * (sigma * noise.normal()).exp(); 1];
                (0..20).map(value).collect::<Vec<_>>()
            });
            answer(&base, &current, 0.5) == verdict
        });
        runs.count()
    }

    #[test]
    fn unchanged_programs_pass_and_one_percent_is_found_where_processes_are_quiet() {
        for sigma in [0.05, 0.1, 0.2, 0.3, 0.5, 1.0].map(|it| it * PERCENT) {
            assert!(share(Verdict::Pass, [sigma; 2], 0.0) >= 998, "{sigma}");
            let found = share(Verdict::Regressed, [sigma; 2], PERCENT);
            assert!(sigma > 0.25 * PERCENT || found >= 985, "{sigma}: {found}");
        }
        // A change that is exactly the tolerance.
        for verdict in [Verdict::Regressed, Verdict::Pass] {
            assert!(share(verdict, [0.1 * PERCENT; 2], 0.5 * PERCENT) <= 15);
        }
    }

    #[test]
    fn three_rounds_pass_only_what_rules_out_twice_the_tolerance() {
        // Base values that vary by some tenths of a percent, and the same in another order, longer.
        let base = [100.0, 100.3, 100.2, 99.9, 100.1, 100.0].map(|it| vec![it]);
        let verdict = |percent: f64| {
            let longer = |it: &Vec<f64>| vec![it[0] * (1.0 + percent / 100.0)];
            let current: Vec<Vec<f64>> = base.iter().rev().map(longer).collect();
            in_turn(&base, &current, &question(0.5)).verdict
        };
        let verdicts = [0.0, 0.25, 0.7, 2.0].map(verdict);
        // At 0.7 % the interval reaches beyond 1 %.
        let open = Verdict::Inconclusive;
        let expected = [Verdict::Pass, Verdict::Pass, open, Verdict::Regressed];
        assert_eq!(verdicts, expected);
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
                let first = decided(&side(0.0), &side(0.0), &question(0.5));
                let would = first.threshold.unwrap();
                answer(&side(0.0), &side(would * PERCENT), 0.5) == Verdict::Regressed
            });
            let caught = caught.count();
            assert!(caught >= 490, "{sigma}: {caught} of 500");
        }
    }

    #[test]
    fn one_tick_of_the_clock_is_no_change() {
        let side = |value: f64| vec![vec![value]; 20];
        let after = |was: f64, now: f64| answer(&side(was), &side(now), 0.5);
        assert_eq!(after(4960.0, 4960.0), Verdict::Pass);
        // The ticks of other clocks, and numbers whose difference is no tick.
        let constant = |was: f64, is: f64| answer(&side(was), &side(is), 0.25);
        for base in [2016.0, 2048.0, 2080.0, 3200.0, 6400.0, 9984.0] {
            let found = constant(base, base + 32.0);
            assert_ne!(found, Verdict::Regressed, "{base}");
            assert_eq!(found, constant(base + 32.0, base + 64.0));
        }
        assert_eq!(constant(64_000.0, 64_640.0), Verdict::Regressed);
        assert_ne!(constant(63_000.0, 64_000.0), Verdict::Regressed);
        // One tick of 32 ns is 0.65 %.
        assert_ne!(after(4960.0, 4992.0), Verdict::Regressed);
        let mut more = side(4992.0);
        more[3] = vec![4960.0];
        assert_ne!(answer(&side(4960.0), &more, 0.5), Verdict::Regressed);
        // Nor where each process has a first launch that takes longer.
        let warm = |value: f64| vec![vec![5408.0, value, value]; 20];
        let of_many = answer(&warm(4960.0), &warm(4992.0), 0.5);
        assert_ne!(of_many, Verdict::Regressed);
        assert_eq!(after(4960.0, 7200.0), Verdict::Regressed);
        // Where launches differ, their mean is known better.
        let launches = |by: f64| vec![vec![9000.0, 4960.0 + by, 4992.0 + by, 4960.0 + by]; 20];
        let found = answer(&launches(0.0), &launches(64.0), 0.5);
        assert_eq!(found, Verdict::Regressed);
    }

    #[test]
    fn slow_launches_count_and_the_first_one_does_not() {
        // In ticks of 32 ns, as an H100 has them.
        let side = |first: f64, slow: f64| {
            let process = [vec![first], vec![9984.0; 18], vec![9984.0 * slow; 2]];
            vec![process.concat(); 20]
        };
        let base = side(50_144.0, 1.0);
        let after = |first, slow| answer(&base, &side(first, slow), 0.5);
        assert_eq!(after(50_144.0, 1.0), Verdict::Pass);
        assert_eq!(after(50_144.0, 2.0), Verdict::Regressed);
        assert_eq!(after(90_016.0, 1.0), Verdict::Pass);
    }

    #[test]
    fn few_fast_processes_do_not_make_a_slower_program_pass() {
        // Of twelve processes two take the fast path, and the other way round.
        let base = [100.0, 100.1, 99.9, 100.0].repeat(5).into_iter();
        let base: Vec<Vec<f64>> = base.map(|value| vec![value]).collect();
        let with = |others: &[Vec<f64>], few: f64| {
            let mut current = others.to_vec();
            for at in [1, 6, 13, 18] {
                current[at] = vec![few];
            }
            answer(&base, &current, 0.25)
        };
        let slower = vec![vec![103.7]; 20];
        assert_eq!(with(&slower, 99.6), Verdict::Inconclusive);
        assert_eq!(with(&base, 103.7), Verdict::Pass);
    }

    #[test]
    fn what_is_no_time_has_no_ticks() {
        let answer = |was: f64, is: f64, scale: fn(f64) -> Tolerance| {
            let asked = Question {
                tolerance: scale(0.5),
                is_time: false,
                ..question(0.5)
            };
            decided(&vec![vec![was]; 20], &vec![vec![is]; 20], &asked).verdict
        };
        let (relative, absolute) = (Tolerance::RelativePercent, Tolerance::Absolute);
        // Registers, percent, and bytes that were none.
        assert_eq!(answer(40.0, 41.0, relative), Verdict::Regressed);
        assert_eq!(answer(50.0, 100.0, relative), Verdict::Regressed);
        assert_eq!(answer(99.0, 100.0, absolute), Verdict::Regressed);
        assert_eq!(answer(0.0, 512.0, relative), Verdict::Regressed);
        assert_eq!(answer(0.0, 0.0, relative), Verdict::Pass);
    }

    #[test]
    fn noise_reaches_no_further_than_its_limit_in_a_pass() {
        let plain = question(0.5);
        let with = |strict, tolerance| Question {
            strict,
            tolerance,
            ..plain
        };
        let strict = with(true, plain.tolerance);
        let absolute = with(false, Tolerance::Absolute(0.5));
        let (pass, open) = (Verdict::Pass, Verdict::Inconclusive);
        // Of six rounds, base and current in two states each.
        for (noise, asked, expected) in [
            ([100.0, 103.8], &plain, pass),
            ([100.0, 104.2], &plain, open),
            ([100.0, 103.8], &strict, open),
            ([100.0, 100.4], &strict, pass),
            // Where there is no ratio, any difference counts.
            ([0.0, 0.02], &plain, open),
            ([100.0, 103.8], &absolute, pass),
            ([100.0, 104.2], &absolute, open),
        ] {
            let side = noise.repeat(6).into_iter();
            let side: Vec<Vec<f64>> = side.map(|it| vec![it]).collect();
            let decision = in_turn(&side, &side, asked);
            assert_eq!(decision.verdict, expected, "{noise:?}");
            let names_option = decision.why.contains("--strict");
            assert_eq!(names_option, asked.strict && expected == open);
        }
    }

    /// The verdict on processes of one launch each.
    fn stored(machines: &[&[f64]], current: &[f64], asked: &Question) -> Decision {
        let processes = |values: &[f64]| values.iter().map(|it| vec![*it]).collect();
        let locked = Samples::new(machines.iter().map(|it| processes(it)).collect());
        against_stored(&locked.unwrap(), &processes(current), asked, true)
    }

    #[test]
    fn a_stored_value_is_compared_with_the_median_process() {
        // Each GPU weighs the same: 100.
        let locked: [&[f64]; 2] = [&[98.0, 98.0, 98.0], &[102.0]];
        let verdict = |current: &[f64]| stored(&locked, current, &question(4.0)).verdict;
        let strict = Question {
            strict: true,
            ..question(4.0)
        };
        let strictly = |current: &[f64]| stored(&locked, current, &strict).verdict;
        let (pass, open) = (Verdict::Pass, Verdict::Inconclusive);
        let (worse, better) = (Verdict::Regressed, Verdict::Improved);
        for (current, expected) in [
            (&[103.0, 103.9, 103.9, 104.0][..], pass),
            (&[97.0, 98.0, 97.5, 97.0], pass),
            (&[103.0, 104.1, 104.2, 105.0], worse),
            (&[95.0, 96.0, 95.5, 95.0], better),
            (&[104.1; 2], worse),
            (&[102.0, 103.0, 103.9, 104.6], pass),
            // One process shows no spread.
            (&[100.0], open),
            // Further apart than the tolerance, and all of it beyond.
            (&[99.0, 100.0, 101.0, 104.0], open),
            (&[99.0, 106.0, 106.0, 106.0], open),
            (&[105.0, 120.0, 130.0, 150.0], worse),
            (&[70.0, 80.0, 90.0, 95.0], better),
            (&[100.0, 100.0, 100.0, 200.0], open),
        ] {
            assert_eq!(verdict(current), expected, "{current:?}");
        }
        // Of eight processes one is left out at each end, but no second one.
        let eight = |others: [f64; 2]| verdict(&[[100.0; 6].as_slice(), &others].concat());
        assert_eq!(eight([50.0, 200.0]), pass);
        assert_eq!(eight([200.0, 200.0]), open);
        assert_eq!(strictly(&[103.0, 103.9, 103.9, 104.0]), pass);
        assert_eq!(strictly(&[102.0, 103.0, 103.9, 104.6]), open);
    }

    #[test]
    fn a_stored_question_has_a_direction_and_a_scale() {
        let asked = |tolerance, direction| Question {
            tolerance,
            direction,
            ..question(4.0)
        };
        let (relative, absolute) = (Tolerance::RelativePercent(4.0), Tolerance::Absolute(4.0));
        let (pass, worse, better) = (Verdict::Pass, Verdict::Regressed, Verdict::Improved);
        for (direction, less, more, threshold) in [
            (Direction::Lower, better, worse, 4.0),
            (Direction::Higher, worse, better, -4.0),
            (Direction::Equal, worse, worse, 4.0),
        ] {
            for (scale, factor) in [(relative, 2.0), (absolute, 1.0)] {
                let asked = asked(scale, direction);
                let of = |by: f64| stored(&[&[200.0]], &[200.0 + factor * by; 2], &asked);
                let found = [-4.5, -3.5, 3.5, 4.5].map(|by| of(by).verdict);
                assert_eq!(found, [less, pass, pass, more], "{direction:?} {scale:?}");
                assert!((of(3.5).change.unwrap().value() - 3.5).abs() < 1e-9);
                assert!((of(3.5).threshold.unwrap() - threshold).abs() < 1e-9);
            }
            // A ratio with zero is none.
            let of = |now: f64| stored(&[&[0.0]], &[now; 2], &asked(relative, direction));
            assert_eq!([0.0, 0.01].map(|now| of(now).verdict), [pass, more]);
            assert_eq!(of(0.01).change, Some(Change::Absolute(0.01)));
        }
    }

    #[test]
    fn a_stored_question_is_open_until_the_last_look() {
        let locked = Samples::new(vec![vec![vec![100.0]]]).unwrap();
        let apart = [vec![95.0], vec![105.0]];
        let of = |open| against_stored(&locked, &apart, &question(4.0), open);
        assert_eq!([of(true), of(false)].map(|it| it.open), [true, false]);
        assert_eq!(of(false).verdict, Verdict::Inconclusive);
        assert!(!stored(&[&[100.0]], &[100.0; 2], &question(4.0)).open);
        // `band` is half of what the processes are apart: 105 is 5.1 % above their middle.
        let band = of(true).band.unwrap();
        assert!((band - 5.13).abs() < 0.01, "{band}");
    }

    #[test]
    fn what_is_not_known_or_overflows_is_not_measured() {
        let one = vec![vec![1.0]; 6];
        let large = vec![vec![1.0, 1.0, f64::MAX, f64::MAX]; 6];
        let machines = |of: [f64; 4]| Samples::new(of.map(|it| vec![vec![it]]).into()).unwrap();
        let overflowing = machines([1.0, f64::MAX, f64::MAX, f64::MAX]);
        let known = machines([1.0; 4]);
        let hole = vec![vec![1.0], vec![]];
        let of = |locked: &Samples, current: &[Vec<f64>], tolerance: f64| {
            against_stored(locked, current, &question(tolerance), true)
        };
        for decision in [
            of(&overflowing, &one, 4.0),
            of(&known, &hole, 4.0),
            of(&known, &one, -1.0),
            in_turn(&one, &large, &question(0.5)),
            in_turn(&large, &one, &question(0.5)),
        ] {
            let found = (decision.verdict, decision.open);
            assert_eq!(found, (Verdict::NotMeasured, false));
        }
        assert_eq!(of(&known, &one, 4.0).verdict, Verdict::Pass);
    }

    #[test]
    fn drift_between_rounds_cancels() {
        let drifting = |factor: f64| {
            let value = |process: usize| vec![factor * (100.5 + 10.0 * (process / 2) as f64)];
            (0..20).map(value).collect::<Vec<_>>()
        };
        let (one, other) = (drifting(1.0), drifting(1.02));
        let found = [(&one, &other), (&other, &one), (&one, &one)];
        let found = found.map(|(was, is)| answer(was, is, 0.5));
        let expected = [Verdict::Regressed, Verdict::Improved, Verdict::Pass];
        assert_eq!(found, expected);
        let few = decided(&one[..4], &one[..4], &question(0.5));
        assert_eq!((few.verdict, few.open), (Verdict::Inconclusive, true));
    }

    #[test]
    fn of_one_process_that_counted_launches_stand_for_processes() {
        let counted = Question {
            is_time: false,
            ..question(1.0)
        };
        let (pass, open) = (Verdict::Pass, Verdict::Inconclusive);
        let locked = |side: Vec<Vec<f64>>| Samples::new(vec![side]).unwrap();
        // The first launch does not count.
        let side = |level: f64| -> Vec<Vec<f64>> {
            let others = (0..8).map(|at| level + f64::from(at % 2) / 10.0);
            vec![std::iter::once(9.0 * level).chain(others).collect()]
        };
        let was = side(100.0);
        for (now, verdict) in [
            (100.0, pass),
            (103.0, Verdict::Regressed),
            (97.0, Verdict::Improved),
        ] {
            let is = side(now);
            assert_eq!(in_turn(&was, &is, &counted).verdict, verdict, "{now}");
            let stored = against_stored(&locked(was.clone()), &is, &counted, false);
            assert_eq!(stored.verdict, verdict, "{now}");
            // A time of one process says nothing of the next one.
            let timed = in_turn(&was, &is, &question(1.0));
            assert_eq!(timed.verdict, open, "{now}");
        }
        // Two launches that count do not show a spread.
        let few = |level: f64| vec![vec![level; 3]];
        let decision = in_turn(&few(100.0), &few(101.0), &counted);
        assert_eq!(decision.verdict, open);
        // A first launch that did other work counts.
        let mut other = side(100.0);
        other[0][0] = 2000.0;
        assert_eq!(counted.launches_of(&other).map(<[f64]>::len), Some(9));
        let decision = in_turn(&was, &other, &counted);
        assert_ne!(decision.verdict, Verdict::NotMeasured);
        // Against stored values, launches that are further apart than the tolerance must all be worse.
        let apart = |level: f64| -> Vec<Vec<f64>> {
            let launches = (0..9).map(|at| level + f64::from(at % 3 - 1) * 4.0);
            vec![launches.collect()]
        };
        let of_apart = locked(apart(100.0));
        for (now, verdict) in [(100.0, pass), (102.0, pass), (106.0, Verdict::Regressed)] {
            let stored = against_stored(&of_apart, &apart(now), &counted, false);
            assert_eq!(stored.verdict, verdict, "{now}");
            assert!(stored.threshold.is_some_and(|caught| caught > 8.0));
            let timed: Vec<Vec<f64>> = apart(now)[0].iter().map(|it| vec![*it]).collect();
            let stored = against_stored(&of_apart, &timed, &question(1.0), false);
            assert_eq!(stored.verdict == open, now < 106.0, "{now}");
        }
        let one = vec![vec![100.0]];
        let stored = against_stored(&locked(was), &one, &counted, false);
        assert_eq!(stored.verdict, open);
    }

    #[test]
    fn a_small_part_of_a_total_may_vary_by_what_the_total_hardly_shows() {
        let wide = |by: f64| [0.0, by, -by, 0.0, by, -by].map(|it| vec![100.0 + it; 3]);
        let of_part = |part: f64| {
            let asked = Question {
                part,
                is_time: false,
                ..question(0.5)
            };
            in_turn(&wide(1.0), &wide(-1.0), &asked).verdict
        };
        let open = Verdict::Inconclusive;
        assert_eq!([1.0, 0.5, 0.05].map(of_part), [open, open, Verdict::Pass]);
    }
}
