//! The rule and `compare` over whatever samples there may be: which of them are judged, and under what.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use serde_json::json;
use sparsek_gate::config::{Config, Variant};
use sparsek_gate::finding::{Code, Finding, Severity};
use sparsek_gate::judge::{Case, Comparison, Mode, compare};
use sparsek_gate::metric::{Direction, Tolerance, Tolerances};
use sparsek_gate::profile::{KernelProfile, MetricIdentity, Profile, Series};
use sparsek_gate::statistics::Samples;
use sparsek_gate::terms::Phase;
use sparsek_gate::verdict::{Change, Decision, Question, Verdict, against_stored, in_turn};

const COUNTER: &str = "gpu__time_duration.sum";

/// Samples as a profile has them: processes of launches.
type Processes = Vec<Vec<Option<f64>>>;

fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap()
}

/// A variant whose only metric is a duration, measured as these samples were.
fn variant(direction: Direction, tolerance: Tolerance, samples: &Processes) -> Variant {
    static CONFIGURED: LazyLock<Variant> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let config = "[metric.m]\ncounter = \"gpu__time_duration.sum\"\ndirection = \"lower\"\n\
            tolerance = '1'\n[suite.s.variant.v]\nrun = [\"x\"]\n";
        std::fs::write(&path, config).unwrap();
        let config = Config::load(&path).unwrap();
        config.variants().next().unwrap().clone()
    });
    let mut variant = CONFIGURED.clone();
    let settings = &mut variant.profile;
    settings.launches = count(samples.first().map_or(1, Vec::len));
    settings.processes = count(samples.len());
    let metric = &mut variant.metrics[0];
    metric.direction = direction;
    metric.tolerance = Tolerances::both(tolerance);
    variant
}

/// Of processes on these machines, in turn.
fn profile_on(samples: &Processes, machines: &[&str]) -> Profile {
    let uuids: Vec<&str> = machines
        .iter()
        .copied()
        .cycle()
        .take(samples.len())
        .collect();
    // No two profiles name the same capture.
    static CAPTURES: AtomicUsize = AtomicUsize::new(0);
    let captures: Vec<_> = uuids
        .iter()
        .enumerate()
        .map(|(at, uuid)| {
            let hash = CAPTURES.fetch_add(1, Ordering::Relaxed).to_string();
            json!({
                "phase": "timing", "gpu_uuid": uuid, "csv": null, "argv": [],
                "report": { "file": format!("capture-{at}"), "sha256": hash },
            })
        })
        .collect();
    let mut profile: Profile = serde_json::from_value(json!({
        "schema": Profile::SCHEMA,
        "variant": "s/v",
        "identity": {
            "workload": [], "gpu": "NVIDIA H200", "compute_capability": "9.0",
            "clock_control": "none", "cache_control": "all", "replay_mode": "kernel",
            "graph_profiling": "node", "tier": "counters", "metrics": {},
        },
        "kernels": [],
        "provenance": {
            "origin": "measured", "tool": "0", "created": "2026-01-01T00:00:00Z",
            "launches": samples.first().map_or(0, Vec::len), "processes": samples.len(),
            "profiler": null, "compiler": null, "driver": null, "gpu_uuid": null, "git": null,
            "artifact_sha256": null, "build_argv": [], "sources": {}, "overrides": [],
            "captures": captures,
        },
    }))
    .unwrap();
    let identity = MetricIdentity {
        counter: COUNTER.to_owned(),
        unit: Some("ns".to_owned()),
        phase: Phase::Timing,
    };
    profile.identity.metrics.insert("m".to_owned(), identity);
    let machines: Vec<Option<&str>> = uuids.into_iter().map(Some).collect();
    let series = Series::new(samples.clone(), &machines);
    profile.kernels.push(KernelProfile {
        name: "k".to_owned(),
        mangled: Some("k".to_owned()),
        demangled: None,
        grid: [1; 3],
        block: [1; 3],
        dynamic_shared_bytes: Vec::new(),
        code: None,
        metrics: BTreeMap::from([("m".to_owned(), series)]),
    });
    profile
}

fn profile(samples: &Processes) -> Profile {
    profile_on(samples, &["GPU-1"])
}

const MODES: [Mode; 2] = [Mode::Stored, Mode::Against];

fn judged(
    mode: Mode,
    variant: &Variant,
    reference: &Profile,
    current: &Profile,
) -> (Comparison, Vec<Finding>) {
    let (report, findings) = compare(&Case::new(variant, mode, reference, current));
    assert_eq!((report.mode, report.comparisons.len()), (mode, 1));
    (report.comparisons[0].clone(), findings)
}

/// Whether anything fails, besides an improvement that is too large.
fn denies(findings: &[Finding]) -> bool {
    let mut findings = findings.iter();
    findings.any(|one| one.severity == Severity::Deny && one.code != Code::Implausible)
}

/// From good to bad, in the order in which one set of samples getting worse goes through them.
fn badness(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Improved => 0,
        // Noise may reach across either end of the tolerance, which badness cannot show.
        Verdict::Pass | Verdict::Inconclusive => 1,
        Verdict::Regressed => 2,
        Verdict::NotMeasured => 3,
    }
}

/// Processes of launches that lie near each other, as those of one kernel do: enough of them for three
/// rounds, and for ten.
fn processes() -> impl Strategy<Value = Processes> {
    let counts = prop::sample::select(vec![6_usize, 7, 12, 20]);
    (1.0..1e9_f64, counts, 1..8_usize).prop_flat_map(|(center, processes, launches)| {
        let launch = (0.995..1.005_f64).prop_map(move |factor| Some(center * factor));
        prop::collection::vec(prop::collection::vec(launch, launches), processes)
    })
}

fn scaled(samples: &Processes, factor: f64) -> Processes {
    let launches = |process: &Vec<Option<f64>>| -> Vec<Option<f64>> {
        process
            .iter()
            .map(|launch| launch.map(|value| value * factor))
            .collect()
    };
    samples.iter().map(launches).collect()
}

fn direction() -> impl Strategy<Value = Direction> {
    prop::sample::select(vec![Direction::Higher, Direction::Lower, Direction::Equal])
}

fn tolerance() -> impl Strategy<Value = Tolerance> {
    prop_oneof![
        (0.0..2.0_f64).prop_map(Tolerance::RelativePercent),
        (0.0..20.0_f64).prop_map(Tolerance::RelativePercent),
        (0.0..2.0_f64).prop_map(Tolerance::Absolute),
        (0.0..1e6_f64).prop_map(Tolerance::Absolute)
    ]
}

/// What is no value. A kernel took some time, and nothing counts below zero.
fn absent() -> impl Strategy<Value = Option<f64>> {
    prop::sample::select(vec![
        None,
        Some(f64::NAN),
        Some(f64::INFINITY),
        Some(f64::NEG_INFINITY),
        Some(-1.0),
        Some(0.0),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_missing_value_or_one_that_is_none_never_passes_on_either_side(
        whole in processes(),
        process in any::<prop::sample::Index>(),
        launch in any::<prop::sample::Index>(),
        gap in absent(),
        direction in direction(),
        tolerance in tolerance(),
    ) {
        let mut holed = whole.clone();
        let process = &mut holed[process.index(whole.len())];
        let at = launch.index(process.len());
        process[at] = gap;
        let variant = variant(direction, tolerance, &whole);
        let (whole, holed) = (profile(&whole), profile(&holed));
        for mode in MODES {
            for (reference, current) in [(&whole, &holed), (&holed, &whole)] {
                let (comparison, findings) = judged(mode, &variant, reference, current);
                prop_assert_eq!(comparison.verdict, Some(Verdict::NotMeasured));
                prop_assert!(comparison.change.is_none());
                prop_assert!(denies(&findings));
            }
        }
    }

    #[test]
    fn fewer_launches_or_processes_than_asked_for_never_pass(
        samples in processes(),
        direction in direction(),
        tolerance in tolerance(),
        fewer_launches in any::<bool>(),
    ) {
        let mut variant = variant(direction, tolerance, &samples);
        let measured = match fewer_launches {
            true => samples,
            false => samples[..5].to_vec(),
        };
        variant.profile.launches += u32::from(fewer_launches);
        let (before, now) = (profile(&measured), profile(&measured));
        for mode in MODES {
            let (_, findings) = judged(mode, &variant, &before, &now);
            let finding = findings.iter().find(|finding| finding.code == Code::NotMeasured);
            prop_assert_eq!(finding.map(|finding| finding.severity), Some(Severity::Deny));
        }
    }

    #[test]
    fn the_order_of_the_launches_after_the_first_does_not_matter(
        reference in processes(),
        ratio in 0.9..1.1_f64,
        turn in any::<prop::sample::Index>(),
        direction in direction(),
        tolerance in tolerance(),
    ) {
        let current = scaled(&reference, ratio);
        let mut turned = current.clone();
        for process in turned.iter_mut().filter(|process| process.len() > 1) {
            let by = turn.index(process.len() - 1);
            process[1..].rotate_left(by);
        }
        let variant = variant(direction, tolerance, &reference);
        for mode in MODES {
            let of = |current: &Processes| judged(mode, &variant, &profile(&reference), &profile(current)).0;
            let (one, other) = (of(&current), of(&turned));
            prop_assert_eq!(one.verdict, other.verdict);
            // The sum of the same numbers in another order is rounded in another way.
            let of = |it: &Comparison| it.change.unwrap().value();
            prop_assert!((of(&one) - of(&other)).abs() <= 1e-9 * of(&one).abs().max(1.0));
        }
    }

    #[test]
    fn a_relative_verdict_does_not_depend_on_the_unit(
        reference in processes(),
        ratio in 0.8..1.25_f64,
        direction in direction(),
        percent in 0.0..20.0_f64,
        // A power of two scales without rounding.
        exponent in -20..20_i32,
    ) {
        let current = scaled(&reference, ratio);
        let tolerance = Tolerance::RelativePercent(percent);
        let variant = variant(direction, tolerance, &reference);
        let unit = 2.0_f64.powi(exponent);
        for mode in MODES {
            let of = |unit: f64| {
                let (reference, current) = (scaled(&reference, unit), scaled(&current, unit));
                judged(mode, &variant, &profile(&reference), &profile(&current)).0.verdict
            };
            prop_assert_eq!(of(1.0), of(unit));
        }
    }

    #[test]
    fn a_kernel_that_gets_slower_never_gets_a_better_verdict(
        reference in processes(),
        percent in 0.0..20.0_f64,
        mut ratios in prop::collection::vec(0.7..1.4_f64, 2..8),
    ) {
        ratios.sort_by(f64::total_cmp);
        let tolerance = Tolerance::RelativePercent(percent);
        let variant = variant(Direction::Lower, tolerance, &reference);
        for mode in MODES {
            let verdicts: Vec<u8> = ratios
                .iter()
                .map(|ratio| {
                    let current = profile(&scaled(&reference, *ratio));
                    let (comparison, _) = judged(mode, &variant, &profile(&reference), &current);
                    badness(comparison.verdict.unwrap())
                })
                .collect();
            prop_assert!(verdicts.is_sorted(), "{:?} at {:?}", verdicts, ratios);
        }
    }

    #[test]
    fn any_finite_samples_get_a_verdict_and_what_passes_is_within_tolerance_or_noise(
        (reference, current) in prop::sample::select(vec![6_usize, 12, 20])
            .prop_flat_map(|count| (values(count, any_size()), values(count, any_size()))),
        direction in direction(),
        tolerance in tolerance(),
    ) {
        let one_launch = |values: &[f64]| -> Processes {
            values.iter().map(|value| vec![Some(*value)]).collect()
        };
        let (reference, current) = (one_launch(&reference), one_launch(&current));
        let variant = variant(direction, tolerance, &current);
        for mode in MODES {
            let (comparison, findings) =
                judged(mode, &variant, &profile(&reference), &profile(&current));
            prop_assert!(comparison.verdict.is_some());
            if comparison.verdict != Some(Verdict::Pass) {
                continue;
            }
            prop_assert!(!denies(&findings));
            let (change, allowed, width) = match (comparison.change.unwrap(), tolerance) {
                (Change::RelativePercent(change), Tolerance::RelativePercent(allowed)) => {
                    let allowed = [allowed, -allowed][usize::from(direction == Direction::Higher)];
                    let terms = |percent: f64| (percent / 100.0).ln_1p();
                    (terms(change), terms(allowed).abs(), 2.0 * terms(comparison.band.unwrap()))
                }
                (Change::Absolute(change), Tolerance::Absolute(allowed)) => {
                    (change, allowed, 2.0 * comparison.band.unwrap())
                }
                (change, _) => panic!("{change:?} in other terms than {tolerance:?}"),
            };
            let worse = match direction {
                Direction::Lower => change,
                Direction::Higher => -change,
                Direction::Equal => change.abs(),
            };
            // Side by side the interval may reach zero, where the noise is larger than the tolerance.
            let noise = if mode == Mode::Stored { 0.0 } else { width };
            prop_assert!(worse <= allowed.max(noise) * (1.0 + 1e-9) + 1e-12, "{comparison:?}");
        }
    }
}

fn steady(value: f64, processes: usize) -> Processes {
    vec![vec![Some(value); 3]; processes]
}

#[test]
fn each_mode_has_its_own_tolerance_and_its_own_looks() {
    let samples = steady(100.25, 6);
    let mut variant = variant(Direction::Lower, Tolerance::RelativePercent(3.0), &samples);
    variant.metrics[0].tolerance.against = Some(Tolerance::Absolute(0.5));
    let (reference, current) = (profile(&samples), profile(&steady(101.25, 6)));
    let (stored, _) = judged(Mode::Stored, &variant, &reference, &current);
    assert_eq!(stored.verdict, Some(Verdict::Pass));
    assert_eq!(stored.tolerance, Tolerance::RelativePercent(3.0));
    let (against, findings) = judged(Mode::Against, &variant, &reference, &current);
    assert_eq!(against.verdict, Some(Verdict::Regressed));
    assert_eq!(against.tolerance, Tolerance::Absolute(0.5));
    assert_eq!(against.change, Some(Change::Absolute(1.0)));
    assert!(denies(&findings));
    // Without a tolerance it is recorded in that mode. A variant of which nothing is judged does not pass.
    variant.metrics[0].tolerance.against = None;
    let (recorded, findings) = judged(Mode::Against, &variant, &reference, &current);
    assert_eq!((recorded.verdict, denies(&findings)), (None, true));

    // Stored it is open up to twice the processes, side by side up to ten rounds.
    variant.metrics[0].tolerance = Tolerances::both(Tolerance::RelativePercent(0.5));
    for (processes, open) in [(6, [true, true]), (12, [false, true]), (20, [false, false])] {
        let noisy: Processes = (0..processes)
            .map(|at| vec![Some(100.25 + f64::from(at % 2) * 10.0); 3])
            .collect();
        let (before, now) = (profile(&noisy), profile(&noisy));
        let found = MODES.map(|mode| {
            let one = judged(mode, &variant, &before, &now).0;
            assert_eq!(
                one.verdict,
                Some(Verdict::Inconclusive),
                "{mode:?} {processes}"
            );
            one.open
        });
        assert_eq!(found, open, "{processes}");
    }
}

#[test]
fn processes_of_a_reference_are_grouped_by_the_gpu_that_they_ran_on() {
    let samples: Processes = [100.25, 100.25, 103.25, 100.25, 100.25, 103.25]
        .map(|value| vec![Some(value); 3])
        .into();
    let current = steady(102.0, 6);
    let tolerance = Tolerance::Absolute(0.5);
    let variant = variant(Direction::Lower, tolerance, &current);
    let of = |machines: &[&str]| {
        let reference = profile_on(&samples, machines);
        judged(Mode::Stored, &variant, &reference, &profile(&current)).0
    };
    let one = of(&["GPU-1"]);
    assert_eq!(
        (one.reference.unwrap().machines, one.change),
        (1, Some(Change::Absolute(0.75)))
    );
    assert_eq!(one.verdict, Some(Verdict::Regressed));
    // Each GPU weighs the same, and what they differ by is no noise.
    let two = of(&["GPU-1", "GPU-1", "GPU-2"]);
    let reference = two.reference.unwrap();
    assert_eq!((reference.machines, reference.between), (2, Some(0.0)));
    assert_eq!(
        (two.change, two.verdict),
        (Some(Change::Absolute(0.25)), Some(Verdict::Pass))
    );
}

// The rule itself, over process values.

const BOTH_SCALES: [fn(f64) -> Tolerance; 2] = [Tolerance::RelativePercent, Tolerance::Absolute];

/// Values near 100, without noise or with some, and now and then anything.
fn values(count: usize, any: BoxedStrategy<f64>) -> BoxedStrategy<Vec<f64>> {
    prop_oneof![3 => quiet(count).boxed(), 1 => prop::collection::vec(any, count).boxed()].boxed()
}

fn quiet(count: usize) -> impl Strategy<Value = Vec<f64>> {
    let noise = prop::sample::select(vec![1e-4, 0.01, 0.3]);
    let steps = prop::collection::vec(-1.0..1.0_f64, count);
    (98.0..103.0_f64, noise, steps).prop_map(|(level, noise, steps)| {
        steps.into_iter().map(|step| level + noise * step).collect()
    })
}

fn positive() -> BoxedStrategy<f64> {
    prop_oneof![99.0..101.0_f64, Just(100.0), 1.0..1e4_f64].boxed()
}

fn any_size() -> BoxedStrategy<f64> {
    prop_oneof![positive(), 1e-300..1e300_f64].boxed()
}

fn wild() -> BoxedStrategy<f64> {
    prop_oneof![positive(), Just(0.0), -1e3..1e3_f64].boxed()
}

/// Both sides in three to ten rounds.
fn sides() -> impl Strategy<Value = [Vec<f64>; 2]> {
    let counts = prop::sample::select(vec![6_usize, 9, 12, 20, 22]);
    counts.prop_flat_map(|count| [values(count, wild()), values(count, wild())])
}

fn quiet_sides() -> impl Strategy<Value = [Vec<f64>; 2]> {
    let counts = prop::sample::select(vec![6_usize, 12, 20]);
    counts.prop_flat_map(|count| [quiet(count).boxed(), quiet(count).boxed()])
}

fn question() -> impl Strategy<Value = Question> {
    let scale = prop::sample::select(BOTH_SCALES.to_vec());
    let tolerance = prop_oneof![Just(0.0), 0.0..3.0_f64, 0.0..99.0_f64];
    (scale, direction(), tolerance).prop_map(|(scale, direction, tolerance)| Question {
        tolerance: scale(tolerance),
        direction,
        is_time: false,
        part: 1.0,
        strict: false,
    })
}

/// Each value is one launch of a process.
fn one_launch(values: &[f64]) -> Vec<Vec<f64>> {
    values.iter().map(|value| vec![*value]).collect()
}

fn locked(machines: &[Vec<f64>]) -> Samples {
    Samples::new(machines.iter().map(|it| one_launch(it)).collect()).unwrap()
}

fn beside(base: &[f64], current: &[f64], question: &Question) -> Decision {
    in_turn(&one_launch(base), &one_launch(current), question)
}

fn stored(machines: &[Vec<f64>], current: &[f64], question: &Question) -> Decision {
    against_stored(&locked(machines), &one_launch(current), question, true)
}

fn value(decision: &Decision) -> f64 {
    decision.change.unwrap().value()
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-6 * one.abs().max(1.0)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn exchanging_the_sides_mirrors_what_is_clear([base, current] in sides(), question in question()) {
        let there = beside(&base, &current, &question);
        let back = beside(&current, &base, &question);
        prop_assert_eq!(there.band, back.band);
        let (one, other) = match there.change.unwrap() {
            Change::RelativePercent(one) => ((one / 100.0).ln_1p(), (value(&back) / 100.0).ln_1p()),
            Change::Absolute(one) => (one, value(&back)),
        };
        prop_assert!((one + other).abs() <= 1e-9 * one.abs().max(1.0), "{there:?} {back:?}");
        if question.direction == Direction::Equal {
            prop_assert_eq!(there.verdict, back.verdict);
        } else {
            prop_assert_eq!(there.verdict == Verdict::Regressed, back.verdict == Verdict::Improved);
        }
    }

    #[test]
    fn a_factor_on_both_sides_changes_no_relative_verdict_and_a_term_no_absolute_one(
        [base, current] in quiet_sides(),
        direction in direction(),
        tolerance in 0.0..3.0_f64,
        (factor, term) in (1e-3..1e3_f64, -50.0..1e3_f64),
    ) {
        for scale in BOTH_SCALES {
            let question = Question { tolerance: scale(tolerance), direction, is_time: false, part: 1.0, strict: false };
            let moved = |values: &[f64]| -> Vec<f64> {
                let one = |value: &f64| match question.tolerance {
                    Tolerance::RelativePercent(_) => value * factor,
                    Tolerance::Absolute(_) => value + term,
                };
                values.iter().map(one).collect()
            };
            let same = |one: Decision, other: Decision| {
                one.verdict == other.verdict && close(value(&one), value(&other))
            };
            let (was, is) = (moved(&base), moved(&current));
            prop_assert!(same(beside(&base, &current, &question), beside(&was, &is, &question)));
            let before = stored(std::slice::from_ref(&base), &current, &question);
            prop_assert!(same(before, stored(&[was], &is, &question)));
        }
    }

    #[test]
    fn the_order_of_whole_rounds_does_not_matter([base, current] in sides(), question in question(), by in 0..3_usize) {
        let turned = |values: &[f64]| {
            let mut values = values[..6].to_vec();
            values.rotate_left(2 * by);
            values
        };
        let first = beside(&base[..6], &current[..6], &question);
        prop_assert_eq!(first, beside(&turned(&base), &turned(&current), &question));
    }

    #[test]
    fn worse_samples_never_turn_what_regressed_into_a_pass(
        [base, mut current] in sides(),
        machines in prop::collection::vec(quiet(4), 1..4),
        mut question in question(),
        lower in any::<bool>(),
        steps in prop::collection::vec(0.0..5.0_f64, 22),
    ) {
        question.direction = if lower { Direction::Lower } else { Direction::Higher };
        let both = |current: &[f64]| {
            [beside(&base, current, &question), stored(&machines, current, &question)].map(|it| it.verdict)
        };
        let before = both(&current);
        for (value, step) in current.iter_mut().zip(steps) {
            *value += if lower { step } else { -step };
        }
        for (before, after) in before.into_iter().zip(both(&current)) {
            let may_be = [Verdict::Regressed, Verdict::Inconclusive];
            prop_assert!(before != Verdict::Regressed || may_be.contains(&after), "{after:?}");
        }
    }

    #[test]
    fn what_is_no_number_is_not_measured(
        [base, current] in sides(),
        machines in prop::collection::vec(quiet(4), 1..4),
        at in any::<prop::sample::Index>(),
        bad in prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]),
        question in question(),
        scale in prop::sample::select(BOTH_SCALES.to_vec()),
    ) {
        let mut holed = current.clone();
        // What is beyond the rounds of a look does not count.
        holed[at.index(6)] = bad;
        let no_tolerance = Question { tolerance: scale(bad), ..question };
        for decision in [
            beside(&base, &holed, &question),
            beside(&holed, &current, &question),
            beside(&base, &[], &question),
            beside(&[], &current, &question),
            stored(&machines, &holed, &question),
            stored(&machines, &[], &question),
            beside(&base, &current, &no_tolerance),
            stored(&machines, &current, &no_tolerance),
        ] {
            prop_assert_eq!((decision.verdict, decision.open), (Verdict::NotMeasured, false));
        }
    }

    #[test]
    fn any_difference_from_zero_counts(
        zeros in prop::sample::select(vec![6_usize, 12, 20]),
        value in prop_oneof![1e-3..1.0_f64, 1.0..1e6_f64, Just(512.0)],
        tolerance in 0.0..99.0_f64,
    ) {
        let (zero, other) = (vec![0.0; zeros], vec![value; zeros]);
        for (direction, worse) in [(Direction::Lower, true), (Direction::Higher, false), (Direction::Equal, true)] {
            let question = Question { tolerance: Tolerance::RelativePercent(tolerance), direction, is_time: false, part: 1.0, strict: false };
            let verdict = if worse { Verdict::Regressed } else { Verdict::Improved };
            for (now, expected) in [(&zero, Verdict::Pass), (&other, verdict)] {
                prop_assert_eq!(beside(&zero, now, &question).verdict, expected);
                prop_assert_eq!(stored(std::slice::from_ref(&zero), now, &question).verdict, expected);
            }
        }
    }

    #[test]
    fn locked_gpus_weigh_the_same_and_how_far_they_are_apart_does_not_matter(
        machines in prop::collection::vec(quiet(3), 1..4),
        current in quiet(4),
        question in question(),
        again in any::<prop::sample::Index>(),
        apart in 0.0..20.0_f64,
    ) {
        let before = stored(&machines, &current, &question);
        let mut more = machines.clone();
        let processes = &mut more[again.index(machines.len())];
        processes.extend(processes.clone());
        let mut wider = machines.clone();
        wider.extend(machines.iter().cloned());
        for (at, machine) in wider.iter_mut().enumerate() {
            let by = if at < machines.len() { apart } else { -apart };
            machine.iter_mut().for_each(|value| *value += by);
        }
        for after in [more, wider].map(|it| stored(&it, &current, &question)) {
            prop_assert!(close(value(&before), value(&after)), "{before:?} {after:?}");
            prop_assert_eq!(before.verdict, after.verdict);
        }
    }

    #[test]
    fn the_stored_tolerance_is_flat_and_processes_that_are_further_apart_are_open(
        level in 50.0..150.0_f64,
        (apart, tolerance) in (0.0..6.0_f64, 0.01..5.0_f64),
        lower in any::<bool>(),
    ) {
        let question = Question {
            tolerance: Tolerance::Absolute(tolerance),
            direction: if lower { Direction::Lower } else { Direction::Higher },
            is_time: false,
            part: 1.0,
            strict: false,
        };
        let current = [-0.5, 0.0, 0.5].map(|part| level + part * apart);
        let decision = stored(&[vec![100.0]], &current, &question);
        let worse = if lower { level - 100.0 } else { 100.0 - level };
        let expected = match worse {
            _ if worse - apart / 2.0 > tolerance => Verdict::Regressed,
            _ if worse + apart / 2.0 < -tolerance => Verdict::Improved,
            _ if apart > tolerance => Verdict::Inconclusive,
            _ if worse > tolerance => Verdict::Regressed,
            _ if worse < -tolerance => Verdict::Improved,
            _ => Verdict::Pass,
        };
        prop_assert_eq!(decision.verdict, expected);
        prop_assert_eq!(decision.open, expected == Verdict::Inconclusive);
        let signed = if lower { tolerance } else { -tolerance };
        prop_assert!(close(decision.threshold.unwrap(), signed));
    }
}
