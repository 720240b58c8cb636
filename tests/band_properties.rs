//! The rule of the bands: properties for any samples, and how often it errs on simulated ones.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use proptest::prelude::*;
use sparsek_gate::metric::Direction;
use sparsek_gate::statistics::Samples;
use sparsek_gate::terms::RoundOrder;
use sparsek_gate::verdict::{
    Change, Decision, Question, Scale, Timed, Verdict, against_stored, side_by_side,
};

/// Values of both sides in rounds of alternating order; `swapped` exchanges the turns of the sides.
fn taken_in_turn(
    base: &[f64],
    current: &[f64],
    swapped: bool,
    learned: Option<&Samples>,
    question: &Question,
) -> Decision {
    let rounds = base.len().max(current.len()).div_ceil(2);
    let mut places = RoundOrder::Alternating.places(rounds);
    if swapped {
        places.reverse();
    }
    let side = |values, at: usize| Timed {
        values,
        places: &places[at],
    };
    side_by_side(side(base, 0), side(current, 1), learned, question)
}

fn in_turn(
    base: &[f64],
    current: &[f64],
    learned: Option<&Samples>,
    question: &Question,
) -> Decision {
    taken_in_turn(base, current, false, learned, question)
}

const DIRECTIONS: [Direction; 3] = [Direction::Lower, Direction::Higher, Direction::Equal];

fn scale() -> impl Strategy<Value = Scale> {
    prop_oneof![Just(Scale::Relative), Just(Scale::Absolute)]
}

fn one_sided() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Lower), Just(Direction::Higher)]
}

fn direction() -> impl Strategy<Value = Direction> {
    prop::sample::select(DIRECTIONS.to_vec())
}

/// Any number of looks, planned anyhow.
fn looks() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..9_usize, 0..5)
}

/// Tolerances that occur, none among them.
fn tolerance() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..3.0_f64, 0.0..120.0_f64]
}

/// Values that a counter may have, also nothing, and the same again and again.
fn wild() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 99.0..101.0_f64,
        2 => prop::sample::select(vec![0.0, 100.0, 101.0, 130.0]),
        1 => -1e3..1e3_f64,
        1 => 1e-3..1e9_f64,
    ]
}

/// Quiet values around a level, so that clear verdicts are frequent; sometimes without noise.
fn quiet(count: usize) -> impl Strategy<Value = Vec<f64>> {
    (
        prop::sample::select(vec![98.0, 99.5, 100.0, 100.5, 103.0]),
        prop::sample::select(vec![0.0, 0.01, 0.3]),
        prop::collection::vec(-1.0..1.0_f64, count),
    )
        .prop_map(|(level, noise, steps)| {
            steps.into_iter().map(|step| level + noise * step).collect()
        })
}

fn values(count: usize) -> BoxedStrategy<Vec<f64>> {
    prop_oneof![3 => quiet(count).boxed(), 1 => prop::collection::vec(wild(), count).boxed()]
        .boxed()
}

/// A quiet first part and then anything: what could turn a verdict.
fn turning(count: usize) -> BoxedStrategy<Vec<f64>> {
    prop_oneof![Just(count.min(2)), 0..=count]
        .prop_flat_map(move |turn| (values(turn), values(count - turn)))
        .prop_map(|(mut first, second)| {
            first.extend(second);
            first
        })
        .boxed()
}

fn stored(machines: Vec<Vec<f64>>) -> Samples {
    let machine = |processes: Vec<f64>| processes.into_iter().map(|value| vec![value]).collect();
    Samples::new(machines.into_iter().map(machine).collect()).unwrap()
}

fn locked() -> impl Strategy<Value = Samples> {
    prop::collection::vec((1..6_usize).prop_flat_map(values), 1..4).prop_map(stored)
}

prop_compose! {
    fn question(directions: impl Strategy<Value = Direction> + 'static)(
        scale in scale(),
        direction in directions,
        tolerance in tolerance(),
        comparisons in 0..40_usize,
        looks in looks(),
    ) -> Question {
        Question { scale, direction, tolerance, comparisons, looks }
    }
}

fn mirrored(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Regressed => Verdict::Improved,
        Verdict::Improved => Verdict::Regressed,
        same => same,
    }
}

fn clear(verdict: Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Pass | Verdict::Improved | Verdict::Regressed
    )
}

/// The change in the terms it was judged in.
fn change(decision: &Decision) -> f64 {
    match decision.effect.unwrap() {
        Change::RelativePercent(percent) => (percent / 100.0).ln_1p(),
        Change::Absolute(difference) => difference,
    }
}

fn close(left: Option<f64>, right: Option<f64>, within: f64) -> bool {
    match (left, right) {
        (Some(left), Some(right)) => (left - right).abs() <= within * left.abs().max(1.0),
        (left, right) => left == right,
    }
}

/// No limit is so near the change that rounding might decide.
fn off_the_edge(decision: &Decision, question: &Question, digits: f64) -> bool {
    let relative = matches!(decision.effect, Some(Change::RelativePercent(_)));
    let tolerance = if !relative && question.scale == Scale::Relative {
        0.0
    } else if !relative {
        question.tolerance
    } else if question.direction == Direction::Higher {
        -(-question.tolerance / 100.0).ln_1p()
    } else {
        (question.tolerance / 100.0).ln_1p()
    };
    let inner = |width: f64| {
        if relative {
            (width / 100.0).ln_1p()
        } else {
            width
        }
    };
    let size = change(decision).abs();
    let far = |limit: f64| (size - limit).abs() > digits;
    let (Some(alarm), Some(pass)) = (decision.alarm, decision.pass) else {
        return true;
    };
    far(tolerance + inner(alarm)) && far(tolerance - inner(pass)) && far(inner(pass) - tolerance)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 500,
        ..ProptestConfig::default()
    })]

    #[test]
    fn exchanging_the_sides_mirrors_the_verdict(
        (base, current) in (1..17_usize).prop_flat_map(|count| (turning(count), turning(count))),
        learned in prop::option::of(locked()),
        question in question(one_sided()),
    ) {
        let there = in_turn(&base, &current, learned.as_ref(), &question);
        let back = taken_in_turn(&current, &base, true, learned.as_ref(), &question);
        prop_assert_eq!(back.verdict, mirrored(there.verdict));
        prop_assert_eq!(back.open, there.open);
        prop_assert_eq!((back.alarm, back.pass), (there.alarm, there.pass));
        prop_assert!((change(&there) + change(&back)).abs() <= 1e-9 * change(&there).abs().max(1.0));
    }

    #[test]
    fn a_factor_on_both_sides_changes_no_relative_verdict(
        (base, current) in (1..17_usize).prop_flat_map(|count| (quiet(count), quiet(count))),
        direction in direction(),
        tolerance in tolerance(),
        factor in 1e-6..1e6_f64,
    ) {
        let looks = Vec::new();
        let question = Question { scale: Scale::Relative, direction, tolerance, comparisons: 3, looks };
        let times = |values: &[f64]| values.iter().map(|value| value * factor).collect::<Vec<f64>>();
        let before = in_turn(&base, &current, None, &question);
        let after = in_turn(&times(&base), &times(&current), None, &question);
        prop_assert!((change(&before) - change(&after)).abs() < 1e-12);
        prop_assert!(close(before.sigma, after.sigma, 1e-9));
        if off_the_edge(&before, &question, 1e-9) {
            prop_assert_eq!(before.verdict, after.verdict);
            prop_assert_eq!(before.not_worse, after.not_worse);
        }
    }

    #[test]
    fn a_term_on_both_sides_changes_no_absolute_verdict(
        (base, current) in (1..17_usize).prop_flat_map(|count| (quiet(count), quiet(count))),
        direction in direction(),
        tolerance in tolerance(),
        term in -1e4..1e4_f64,
    ) {
        let looks = Vec::new();
        let question = Question { scale: Scale::Absolute, direction, tolerance, comparisons: 3, looks };
        let plus = |values: &[f64]| values.iter().map(|value| value + term).collect::<Vec<f64>>();
        let before = in_turn(&base, &current, None, &question);
        let after = in_turn(&plus(&base), &plus(&current), None, &question);
        prop_assert!((change(&before) - change(&after)).abs() < 1e-10);
        prop_assert!(close(before.sigma, after.sigma, 1e-9));
        if off_the_edge(&before, &question, 1e-7) {
            prop_assert_eq!(before.verdict, after.verdict);
            prop_assert_eq!(before.not_worse, after.not_worse);
        }
    }

    #[test]
    fn more_rounds_never_turn_a_clear_verdict_into_another(
        base in prop_oneof![quiet(16).boxed(), turning(16)],
        current in turning(16),
        mut question in question(direction()),
        first in 1..3_usize,
        last in 5..9_usize,
    ) {
        // One more early and one late look: far enough apart for the samples to turn.
        question.looks.extend([first, last]);
        let mut said = None;
        for processes in 2 * first..=base.len() {
            let (base, current) = (&base[..processes], &current[..processes]);
            let verdict = in_turn(base, current, None, &question).verdict;
            if clear(verdict) {
                prop_assert_eq!(*said.get_or_insert(verdict), verdict);
            }
        }
    }

    #[test]
    fn more_processes_never_turn_a_clear_verdict_into_another(
        locked in locked(),
        now in turning(16),
        control in prop::option::of(-0.1..0.1_f64),
        mut question in question(direction()),
        last in 10..17_usize,
    ) {
        question.looks.extend([1, 2, last]);
        let mut said = None;
        for processes in 1..=now.len() {
            let verdict = against_stored(&locked, &now[..processes], control, &question).verdict;
            if clear(verdict) {
                prop_assert_eq!(*said.get_or_insert(verdict), verdict);
            }
        }
    }

    #[test]
    fn what_is_no_number_never_passes(
        (base, current) in (1..12_usize).prop_flat_map(|count| (turning(count), turning(count))),
        locked in locked(),
        at in any::<prop::sample::Index>(),
        bad in prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]),
        question in question(direction()),
    ) {
        let mut holed = current.clone();
        holed[at.index(current.len())] = bad;
        let no_tolerance = Question { tolerance: bad, ..question.clone() };
        for decision in [
            in_turn(&base, &holed, None, &question),
            in_turn(&holed, &current, Some(&locked), &question),
            in_turn(&base, &[], Some(&locked), &question),
            in_turn(&[], &current, None, &question),
            against_stored(&locked, &holed, None, &question),
            against_stored(&locked, &[], None, &question),
            against_stored(&locked, &current, Some(bad), &question),
            in_turn(&base, &current, Some(&locked), &no_tolerance),
            against_stored(&locked, &current, None, &no_tolerance),
        ] {
            prop_assert!(!decision.not_worse && !decision.open);
            let expected = [Verdict::NotMeasured, Verdict::Inconclusive];
            prop_assert!(expected.contains(&decision.verdict), "{:?}", decision);
        }
    }

    #[test]
    fn a_machine_allowance_only_widens(
        locked in locked(),
        now in turning(8),
        less in 0.0..0.05_f64,
        more in 0.0..0.05_f64,
        question in question(direction()),
    ) {
        let narrow = against_stored(&locked, &now, Some(less), &question);
        let wide = against_stored(&locked, &now, Some(-less - more), &question);
        prop_assert_eq!(narrow.effect, wide.effect);
        prop_assert!(wide.alarm >= narrow.alarm && wide.pass >= narrow.pass);
        prop_assert!(wide.allowance >= narrow.allowance);
        // Where looks contradict each other, the wider band may leave one of the claims.
        if !narrow.why.contains("contradict") {
            let expected = [narrow.verdict, Verdict::Inconclusive];
            prop_assert!(expected.contains(&wide.verdict), "{:?} {:?}", narrow, wide);
            prop_assert!(narrow.not_worse || !wide.not_worse || narrow.looks > 1);
        }
    }

    #[test]
    fn clear_verdicts_are_about_the_change_they_name(
        (base, current) in (1..17_usize).prop_flat_map(|count| (quiet(count), quiet(count))),
        direction in one_sided(),
        tolerance in tolerance(),
    ) {
        let looks = Vec::new();
        let question = Question { scale: Scale::Absolute, direction, tolerance, comparisons: 1, looks };
        let decision = in_turn(&base, &current, None, &question);
        let worse = if direction == Direction::Lower { change(&decision) } else { -change(&decision) };
        match decision.verdict {
            Verdict::Regressed => prop_assert!(worse > tolerance && !decision.not_worse),
            Verdict::Improved => prop_assert!(-worse > tolerance && decision.not_worse),
            Verdict::Pass => prop_assert!(worse.abs() <= tolerance + 1e-9 && decision.not_worse),
            Verdict::Inconclusive => {}
            Verdict::NotMeasured => prop_assert!(false, "{:?}", decision),
        }
    }
}

/// Normal numbers that are the same in every run: SplitMix64 (Steele et al., 2014) and the
/// transform of Box and Muller (1958).
struct Normal(u64);

impl Normal {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn next(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// How often each verdict came of simulated runs that stop where the answer is no longer open.
#[derive(Debug, Default)]
struct Rates {
    pass: f64,
    improved: f64,
    regressed: f64,
    inconclusive: f64,
    not_worse: f64,
    rounds: f64,
}

const RUNS: usize = 4000;
const ROUNDS: [usize; 4] = [2, 3, 4, 5];

/// Runs of two sides whose process values are normal with `sigma` percent about 1000 and about
/// 1000 less or more `change` percent, judged as duration with a tolerance of `tolerance` percent
/// among `comparisons`.
fn simulate(seed: u64, sigma: f64, change: f64, tolerance: f64, comparisons: usize) -> Rates {
    let mut normal = Normal(seed);
    let question = Question {
        scale: Scale::Relative,
        direction: Direction::Lower,
        tolerance,
        comparisons,
        looks: ROUNDS.to_vec(),
    };
    let mut rates = Rates::default();
    for _ in 0..RUNS {
        let mut side = |level: f64| -> Vec<f64> {
            (0..10)
                .map(|_| level * (sigma / 100.0 * normal.next()).exp())
                .collect()
        };
        let (base, current) = (side(1000.0), side(1000.0 * (1.0 + change / 100.0)));
        for rounds in ROUNDS {
            let decision = in_turn(&base[..2 * rounds], &current[..2 * rounds], None, &question);
            if decision.open && rounds < 5 {
                continue;
            }
            let share = 1.0 / RUNS as f64;
            match decision.verdict {
                Verdict::Pass => rates.pass += share,
                Verdict::Improved => rates.improved += share,
                Verdict::Regressed => rates.regressed += share,
                _ => rates.inconclusive += share,
            }
            rates.not_worse += if decision.not_worse { share } else { 0.0 };
            rates.rounds += share * rounds as f64;
            break;
        }
    }
    rates
}

#[test]
fn a_change_of_the_tolerance_seldom_alarms_and_seldom_passes() {
    for (seed, sigma) in [(1, 0.02), (2, 0.08), (3, 0.5)] {
        let rates = simulate(seed, sigma, 0.2, 0.2, 1);
        // Both chances are 1 %; 4000 runs are off by less than half of that (three errors).
        assert!(rates.regressed <= 0.015, "{sigma}: {rates:?}");
        assert!(rates.not_worse <= 0.015, "{sigma}: {rates:?}");
        assert!(rates.pass <= 0.015, "{sigma}: {rates:?}");
    }
}

#[test]
fn the_chance_of_an_alarm_is_used_and_not_only_kept() {
    // One comparison and one look: the bound is exact.
    let mut normal = Normal(4);
    let question = Question {
        scale: Scale::Absolute,
        direction: Direction::Lower,
        tolerance: 1.0,
        comparisons: 1,
        looks: vec![2],
    };
    let runs = 20_000;
    let (mut alarms, mut misses) = (0, 0);
    for _ in 0..runs {
        let base: Vec<f64> = (0..4).map(|_| 100.0 + 0.1 * normal.next()).collect();
        let current: Vec<f64> = (0..4).map(|_| 101.0 + 0.1 * normal.next()).collect();
        let decision = in_turn(&base, &current, None, &question);
        alarms += usize::from(decision.verdict == Verdict::Regressed);
        misses += usize::from(decision.not_worse);
    }
    for count in [alarms, misses] {
        let rate = count as f64 / f64::from(runs);
        assert!((0.008..0.012).contains(&rate), "{rate}");
    }
}

#[test]
fn a_clear_change_is_found_and_no_change_passes() {
    let found = simulate(5, 0.08, 0.5, 0.2, 12);
    assert!(found.regressed >= 0.90, "{found:?}");
    let unchanged = simulate(6, 0.08, 0.0, 0.2, 12);
    assert!(unchanged.pass >= 0.95, "{unchanged:?}");
    assert!(unchanged.regressed == 0.0, "{unchanged:?}");
}

#[test]
fn a_run_noisier_than_the_learned_spread_keeps_the_chances() {
    let mut normal = Normal(8);
    let question = Question {
        scale: Scale::Absolute,
        direction: Direction::Lower,
        tolerance: 1.0,
        comparisons: 1,
        looks: ROUNDS.to_vec(),
    };
    let runs = 10_000;
    let (mut alarms, mut misses) = (0, 0);
    for _ in 0..runs {
        let mut side = |level: f64, noise: f64, count: usize| -> Vec<f64> {
            (0..count).map(|_| level + noise * normal.next()).collect()
        };
        let learned = stored(vec![side(100.0, 0.2, 10), side(100.0, 0.2, 10)]);
        let (base, current) = (side(100.0, 0.4, 10), side(101.0, 0.4, 10));
        let decision = in_turn(&base, &current, Some(&learned), &question);
        alarms += usize::from(decision.verdict == Verdict::Regressed);
        misses += usize::from(decision.not_worse);
    }
    for count in [alarms, misses] {
        let rate = count as f64 / f64::from(runs);
        assert!(rate <= 0.012, "{rate}");
    }
}
