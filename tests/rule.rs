//! The rule of the verdicts, over whatever samples there may be.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper that fails fails its test"
)]

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use serde_json::json;
use sparsek_gate::config::{Config, Direction, Level, Metric, Tolerance, Variant};
use sparsek_gate::profile::{KernelProfile, MetricIdentity, Profile, Series};
use sparsek_gate::verdict::{Comparison, Finding, Severity, Summary, Verdict, compare};

const COUNTER: &str = "gpu__time_duration.sum";

fn variant(direction: Direction, tolerance: Tolerance, launches: usize) -> Variant {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    std::fs::write(
        &path,
        "[metric.m]\ncounter = \"gpu__time_duration.sum\"\ndirection = \"lower\"\n\
         tolerance = { absolute = 1 }\n[suite.s.variant.v]\nrun = [\"x\"]\n",
    )
    .unwrap();
    let config = Config::load(Path::new(&path)).unwrap();
    let mut variant = config.variants().next().unwrap().clone();
    variant.profile.launches = u32::try_from(launches).unwrap();
    variant.metrics = vec![Metric {
        alias: "m".to_owned(),
        counter: COUNTER.to_owned(),
        direction,
        tolerance,
        min: None,
        max: None,
        level: Level::Deny,
        unless_faster: false,
    }];
    variant
}

fn profile(samples: &[Option<f64>]) -> Profile {
    let mut profile: Profile = serde_json::from_value(json!({
        "schema": 1,
        "variant": "s/v",
        "identity": {
            "workload": [], "gpu": "NVIDIA H200", "compute_capability": "9.0",
            "clock_control": "none", "cache_control": "all", "replay_mode": "kernel",
            "graph_profiling": "node", "rung": "counters", "metrics": {},
        },
        "kernels": [],
        "provenance": {
            "origin": "measured", "tool": "0", "created": "2026-01-01T00:00:00Z",
            "launches": samples.len(), "processes": 1, "profiler": null, "compiler": null,
            "driver": null, "gpu_uuid": null, "git": null, "artifact_sha256": null,
            "build_argv": [], "sources": {}, "overrides": [], "captures": [],
        },
    }))
    .unwrap();
    profile.identity.metrics.insert(
        "m".to_owned(),
        MetricIdentity {
            counter: COUNTER.to_owned(),
            unit: Some("ns".to_owned()),
        },
    );
    profile.kernels.push(KernelProfile {
        name: "k".to_owned(),
        mangled: Some("k".to_owned()),
        demangled: None,
        grid: [1; 3],
        block: [1; 3],
        metrics: BTreeMap::from([("m".to_owned(), Series::new(vec![samples.to_vec()]))]),
    });
    profile
}

fn judged(
    variant: &Variant,
    baseline: &[Option<f64>],
    current: &[Option<f64>],
) -> (Comparison, Vec<Finding>) {
    let (report, findings) = compare(variant, &profile(baseline), &profile(current));
    let [comparison] = report.comparisons.as_slice() else {
        panic!("{:?}", report.comparisons)
    };
    (comparison.clone(), findings)
}

fn verdict(
    direction: Direction,
    tolerance: Tolerance,
    baseline: &[f64],
    current: &[f64],
) -> Verdict {
    let some = |samples: &[f64]| samples.iter().copied().map(Some).collect::<Vec<_>>();
    let variant = variant(direction, tolerance, current.len().min(baseline.len()));
    judged(&variant, &some(baseline), &some(current))
        .0
        .verdict
        .unwrap()
}

fn denies(findings: &[Finding]) -> bool {
    findings
        .iter()
        .any(|finding| finding.severity == Severity::Deny)
}

/// From good to bad, in the order in which one sample set getting worse goes through them.
fn badness(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Improved => 0,
        // Between `improved` and `pass` there is noise that reaches across neither.
        Verdict::Pass => 1,
        Verdict::Inconclusive => 2,
        Verdict::Regressed => 3,
        Verdict::NotMeasured => 4,
    }
}

fn sample() -> impl Strategy<Value = f64> {
    // What counters read: from a few to billions.
    1.0..1e9_f64
}

fn samples() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(sample(), 3..24)
}

/// Samples that lie near each other, as those of one kernel do.
fn steady() -> impl Strategy<Value = Vec<f64>> {
    (sample(), prop::collection::vec(0.995..1.005_f64, 3..24))
        .prop_map(|(center, noise)| noise.into_iter().map(|factor| center * factor).collect())
}

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![
        Just(Direction::Higher),
        Just(Direction::Lower),
        Just(Direction::Equal)
    ]
}

fn tolerance() -> impl Strategy<Value = Tolerance> {
    prop_oneof![
        (0.0..20.0_f64).prop_map(Tolerance::RelativePercent),
        (0.0..1e6_f64).prop_map(Tolerance::Absolute)
    ]
}

/// What is no value.
fn absent() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![
        Just(None),
        Just(Some(f64::NAN)),
        Just(Some(f64::INFINITY)),
        Just(Some(f64::NEG_INFINITY))
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_missing_value_or_one_that_is_no_number_never_passes(
        samples in samples(),
        at in any::<prop::sample::Index>(),
        gap in absent(),
        direction in direction(),
        tolerance in tolerance(),
        in_baseline in any::<bool>(),
    ) {
        let whole: Vec<Option<f64>> = samples.iter().copied().map(Some).collect();
        let mut holed = whole.clone();
        holed[at.index(samples.len())] = gap;
        let variant = variant(direction, tolerance, samples.len());
        let (baseline, current) = if in_baseline { (&holed, &whole) } else { (&whole, &holed) };
        let (comparison, findings) = judged(&variant, baseline, current);
        prop_assert_eq!(comparison.verdict, Some(Verdict::NotMeasured));
        prop_assert!(comparison.change.is_none());
        prop_assert!(denies(&findings));
    }

    #[test]
    fn fewer_launches_than_asked_for_never_pass(
        samples in samples(),
        direction in direction(),
        tolerance in tolerance(),
    ) {
        let all: Vec<Option<f64>> = samples.iter().copied().map(Some).collect();
        let variant = variant(direction, tolerance, samples.len() + 1);
        prop_assert!(denies(&judged(&variant, &all, &all).1));
    }

    #[test]
    fn equal_samples_never_regress_and_pass_where_their_noise_is_within_the_tolerance(
        samples in steady(),
        direction in direction(),
        percent in 0.0..20.0_f64,
    ) {
        let tolerance = Tolerance::RelativePercent(percent);
        let found = verdict(direction, tolerance, &samples, &samples);
        let summary = Summary::of(&samples).unwrap();
        // Three standard errors of the difference of two such medians.
        let noise = 3.0 * 2.0_f64.sqrt() * 1.253_314_137_315_5 * summary.sigma.unwrap()
            / (samples.len() as f64).sqrt();
        let allowed = percent / 100.0 * summary.median;
        if (noise - allowed).abs() > 1e-9 * summary.median {
            let expected = if noise < allowed { Verdict::Pass } else { Verdict::Inconclusive };
            prop_assert_eq!(found, expected);
        } else {
            prop_assert!(matches!(found, Verdict::Pass | Verdict::Inconclusive));
        }
    }

    #[test]
    fn samples_without_noise_pass_under_any_tolerance(
        value in sample(),
        count in 3..24_usize,
        direction in direction(),
        tolerance in tolerance(),
    ) {
        let samples = vec![value; count];
        prop_assert_eq!(verdict(direction, tolerance, &samples, &samples), Verdict::Pass);
    }

    #[test]
    fn a_relative_verdict_does_not_depend_on_the_unit(
        baseline in steady(),
        ratio in 0.8..1.25_f64,
        direction in direction(),
        percent in 0.0..20.0_f64,
        // A power of two scales without rounding.
        exponent in -20..20_i32,
    ) {
        let current: Vec<f64> = baseline.iter().rev().map(|sample| sample * ratio).collect();
        let tolerance = Tolerance::RelativePercent(percent);
        let scaled = |samples: &[f64]| -> Vec<f64> {
            samples.iter().map(|sample| sample * 2.0_f64.powi(exponent)).collect()
        };
        prop_assert_eq!(
            verdict(direction, tolerance, &baseline, &current),
            verdict(direction, tolerance, &scaled(&baseline), &scaled(&current))
        );
    }

    #[test]
    fn the_order_of_the_launches_does_not_matter(
        baseline in samples(),
        mut current in samples(),
        direction in direction(),
        tolerance in tolerance(),
    ) {
        let before = verdict(direction, tolerance, &baseline, &current);
        current.sort_by(f64::total_cmp);
        prop_assert_eq!(verdict(direction, tolerance, &baseline, &current), before);
    }

    #[test]
    fn a_kernel_that_gets_slower_never_gets_a_better_verdict(
        baseline in steady(),
        current in steady(),
        tolerance in tolerance(),
        shifts in prop::collection::vec(0.0..0.5_f64, 2..8),
    ) {
        let base = Summary::of(&baseline).unwrap().median;
        // The same spread all the while: only the place moves.
        let spread: Vec<f64> = current
            .iter()
            .map(|sample| sample / Summary::of(&current).unwrap().median * base - base)
            .collect();
        let mut shifts = shifts;
        shifts.sort_by(f64::total_cmp);
        let verdicts: Vec<u8> = shifts
            .iter()
            .map(|shift| {
                let now: Vec<f64> = spread.iter().map(|s| base * (0.75 + shift) + s).collect();
                badness(verdict(Direction::Lower, tolerance, &baseline, &now))
            })
            .collect();
        prop_assert!(verdicts.is_sorted(), "{:?} at {:?}", verdicts, shifts);
    }

    #[test]
    fn higher_and_lower_are_mirror_images(
        baseline in samples(),
        current in samples(),
        tolerance in tolerance(),
    ) {
        // Mirrored within the range of all samples: no counter reads below zero.
        let all = || baseline.iter().chain(&current).copied();
        let ends = all().fold(f64::MIN, f64::max) + all().fold(f64::MAX, f64::min);
        let mirrored = |samples: &[f64]| samples.iter().map(|s| ends - s).collect::<Vec<_>>();
        let tolerance = match tolerance {
            Tolerance::RelativePercent(value) | Tolerance::Absolute(value) => Tolerance::Absolute(value),
        };
        prop_assert_eq!(
            verdict(Direction::Lower, tolerance, &baseline, &current),
            verdict(Direction::Higher, tolerance, &mirrored(&baseline), &mirrored(&current))
        );
    }

    #[test]
    fn direction_equal_passes_only_what_both_other_directions_do_not_refuse(
        baseline in steady(),
        current in steady(),
        tolerance in tolerance(),
    ) {
        let equal = verdict(Direction::Equal, tolerance, &baseline, &current);
        let lower = verdict(Direction::Lower, tolerance, &baseline, &current);
        let higher = verdict(Direction::Higher, tolerance, &baseline, &current);
        prop_assert_ne!(equal, Verdict::Improved);
        if equal == Verdict::Pass {
            prop_assert_eq!((lower, higher), (Verdict::Pass, Verdict::Pass));
        }
        if lower == Verdict::Regressed || higher == Verdict::Regressed {
            prop_assert_eq!(equal, Verdict::Regressed);
        }
    }

    #[test]
    fn a_larger_tolerance_never_makes_a_regression_of_a_pass(
        baseline in steady(),
        current in steady(),
        small in 0.0..20.0_f64,
        more in 0.0..20.0_f64,
    ) {
        let under = |percent| {
            verdict(Direction::Lower, Tolerance::RelativePercent(percent), &baseline, &current)
        };
        if under(small) == Verdict::Pass {
            prop_assert_eq!(under(small + more), Verdict::Pass);
        }
        if under(small + more) == Verdict::Regressed {
            prop_assert_eq!(under(small), Verdict::Regressed);
        }
    }

    #[test]
    fn any_finite_samples_get_a_verdict_and_nothing_extreme_passes_unseen(
        baseline in prop::collection::vec(prop::num::f64::NORMAL | prop::num::f64::ZERO, 1..8),
        current in prop::collection::vec(prop::num::f64::NORMAL | prop::num::f64::ZERO, 1..8),
        direction in direction(),
        tolerance in tolerance(),
    ) {
        let found = verdict(direction, tolerance, &baseline, &current);
        if found == Verdict::Pass {
            let of = |samples: &[f64]| Summary::of(samples).unwrap().median;
            let (was, is) = (of(&baseline), of(&current));
            let allowed = match tolerance {
                Tolerance::RelativePercent(percent) => percent / 100.0 * was.abs(),
                Tolerance::Absolute(value) => value,
            };
            let worse = match direction {
                Direction::Lower => is - was,
                Direction::Higher => was - is,
                Direction::Equal => (is - was).abs(),
            };
            prop_assert!(worse <= allowed * (1.0 + 1e-12), "{} > {}", worse, allowed);
        }
    }
}

#[test]
fn one_or_two_launches_on_both_sides_are_inconclusive_however_equal() {
    let tolerance = Tolerance::RelativePercent(5.0);
    for count in [1, 2] {
        let samples = vec![100.0; count];
        assert_eq!(
            verdict(Direction::Lower, tolerance, &samples, &samples),
            Verdict::Inconclusive
        );
    }
}

#[test]
fn the_rule_at_its_edges() {
    let of = |percent: f64, now: f64| {
        verdict(
            Direction::Lower,
            Tolerance::RelativePercent(percent),
            &[100.0; 5],
            &[now; 5],
        )
    };
    // Without noise the tolerance itself still passes, either way.
    assert_eq!(of(5.0, 105.0), Verdict::Pass);
    assert_eq!(of(5.0, 105.001), Verdict::Regressed);
    assert_eq!(of(5.0, 95.0), Verdict::Pass);
    assert_eq!(of(5.0, 94.999), Verdict::Improved);
    assert_eq!(of(0.0, 100.0), Verdict::Pass);
    assert_eq!(of(0.0, 100.001), Verdict::Regressed);
}
