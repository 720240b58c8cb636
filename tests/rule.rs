//! `compare` over whatever samples there may be: which of them are judged, and under what.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use serde_json::json;
use sparsek_gate::config::{Config, Variant};
use sparsek_gate::finding::{Code, Finding, Severity};
use sparsek_gate::judge::{Case, Comparison, Mode, Reference, compare};
use sparsek_gate::metric::{Direction, Tolerance};
use sparsek_gate::profile::{KernelProfile, MetricIdentity, Profile, Series};
use sparsek_gate::terms::Phase;
use sparsek_gate::verdict::{Change, Verdict};

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
    settings.max_processes = 2 * settings.processes;
    settings.rounds = 1;
    let metric = &mut variant.metrics[0];
    metric.direction = direction;
    (metric.tolerance, metric.against) = (tolerance, tolerance);
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
        hotspots: None,
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
    let reference = match mode {
        Mode::Stored => Reference::stored(reference, None),
        Mode::Against => Reference::base(reference, None),
        Mode::Programs => Reference::program(reference),
    };
    let (report, findings) = compare(&Case::new(variant, reference, current, 1));
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

/// Processes of launches that lie near each other, as those of one kernel do.
fn processes() -> impl Strategy<Value = Processes> {
    (1.0..1e9_f64, 2..6_usize, 1..8_usize).prop_flat_map(|(center, processes, launches)| {
        let launch = (0.995..1.005_f64).prop_map(move |factor| Some(center * factor));
        prop::collection::vec(prop::collection::vec(launch, launches), processes)
    })
}

/// The same with a little less noise. Of a run as noisy as its reference, rounding would decide
/// whether it counts with its own freedom alone.
fn quieter(samples: &Processes) -> Processes {
    let all: Vec<f64> = samples.iter().flatten().copied().flatten().collect();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let launches = |process: &Vec<Option<f64>>| -> Vec<Option<f64>> {
        process
            .iter()
            .map(|launch| launch.map(|value| mean + 0.9 * (value - mean)))
            .collect()
    };
    samples.iter().map(launches).collect()
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
        (0.0..20.0_f64).prop_map(Tolerance::RelativePercent),
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
                prop_assert!(comparison.change.is_none() && !comparison.not_worse);
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
        if fewer_launches {
            variant.profile.launches += 1;
        } else {
            // Side by side it is two processes a round.
            variant.profile.processes += 1;
            variant.profile.rounds = count(samples.len() + 1);
            variant.profile.max_rounds = variant.profile.rounds;
        }
        let (before, now) = (profile(&samples), profile(&samples));
        for mode in MODES {
            let (_, findings) = judged(mode, &variant, &before, &now);
            let finding = findings.iter().find(|finding| finding.code == Code::NotMeasured);
            prop_assert_eq!(finding.map(|finding| finding.severity), Some(Severity::Deny));
        }
    }

    #[test]
    fn the_order_of_the_launches_of_a_process_does_not_matter(
        reference in processes(),
        ratio in 0.9..1.1_f64,
        turn in any::<prop::sample::Index>(),
        direction in direction(),
        tolerance in tolerance(),
    ) {
        let current = scaled(&reference, ratio);
        let mut turned = current.clone();
        for process in &mut turned {
            let by = turn.index(process.len());
            process.rotate_left(by);
        }
        let variant = variant(direction, tolerance, &reference);
        for mode in MODES {
            let of = |current: &Processes| {
                let mut comparison =
                    judged(mode, &variant, &profile(&reference), &profile(current)).0;
                // Shown in their order.
                comparison.samples = None;
                comparison
            };
            prop_assert_eq!(of(&current), of(&turned));
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
        let current = scaled(&quieter(&reference), ratio);
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
                    let current = profile(&scaled(&quieter(&reference), *ratio));
                    let (comparison, _) = judged(mode, &variant, &profile(&reference), &current);
                    badness(comparison.verdict.unwrap())
                })
                .collect();
            prop_assert!(verdicts.is_sorted(), "{:?} at {:?}", verdicts, ratios);
        }
    }

    #[test]
    fn any_finite_samples_get_a_verdict_and_what_passes_is_within_the_tolerance(
        reference in prop::collection::vec(1e-300..1e300_f64, 2..6),
        current in prop::collection::vec(1e-300..1e300_f64, 2..6),
        direction in direction(),
        tolerance in tolerance(),
    ) {
        let one_launch = |values: &[f64]| -> Processes {
            values.iter().map(|value| vec![Some(*value)]).collect()
        };
        let both = reference.len().min(current.len());
        for mode in MODES {
            // Side by side both have as many.
            let (reference, current) = match mode {
                Mode::Stored => (one_launch(&reference), one_launch(&current)),
                Mode::Against | Mode::Programs => (one_launch(&reference[..both]), one_launch(&current[..both])),
            };
            let variant = variant(direction, tolerance, &current);
            let (comparison, findings) =
                judged(mode, &variant, &profile(&reference), &profile(&current));
            prop_assert!(comparison.verdict.is_some());
            if comparison.verdict != Some(Verdict::Pass) {
                continue;
            }
            prop_assert!(!denies(&findings));
            let within = match (comparison.change.unwrap(), tolerance) {
                (Change::RelativePercent(change), Tolerance::RelativePercent(allowed)) => {
                    (change / 100.0).ln_1p().abs() <= -(-allowed / 100.0).ln_1p() + 1e-12
                }
                (Change::Absolute(change), Tolerance::Absolute(allowed)) => {
                    change.abs() <= allowed * (1.0 + 1e-9) + 1e-12
                }
                (change, _) => panic!("{change:?} in other terms than {tolerance:?}"),
            };
            prop_assert!(within, "{:?}", comparison);
        }
    }
}

fn steady(value: f64, processes: usize) -> Processes {
    vec![vec![Some(value); 3]; processes]
}

#[test]
fn each_mode_has_its_own_tolerance_and_its_own_looks() {
    let samples = steady(100.0, 4);
    let mut variant = variant(Direction::Lower, Tolerance::RelativePercent(3.0), &samples);
    variant.metrics[0].against = Tolerance::Absolute(0.5);
    let (reference, current) = (profile(&samples), profile(&steady(101.0, 4)));
    let (stored, _) = judged(Mode::Stored, &variant, &reference, &current);
    assert_eq!(stored.verdict, Some(Verdict::Pass));
    assert_eq!(stored.tolerance, Tolerance::RelativePercent(3.0));
    let (against, findings) = judged(Mode::Against, &variant, &reference, &current);
    assert_eq!(against.verdict, Some(Verdict::Regressed));
    assert_eq!(against.tolerance, Tolerance::Absolute(0.5));
    assert_eq!(against.change, Some(Change::Absolute(1.0)));
    assert!(denies(&findings));

    // The band is shared over the looks that are planned, of rounds or of processes.
    let mut noisy = steady(100.0, 4);
    noisy[1] = vec![Some(100.2); 3];
    let (before, now) = (profile(&noisy), profile(&noisy));
    let band = |mode, variant: &Variant| judged(mode, variant, &before, &now).0.band.unwrap();
    let mut more_rounds = variant.clone();
    more_rounds.profile.max_rounds += 5;
    assert!(band(Mode::Against, &more_rounds) > band(Mode::Against, &variant));
    assert_eq!(
        band(Mode::Stored, &more_rounds),
        band(Mode::Stored, &variant)
    );
    let mut more_processes = variant.clone();
    more_processes.profile.max_processes += 6;
    assert!(band(Mode::Stored, &more_processes) > band(Mode::Stored, &variant));
    assert_eq!(
        band(Mode::Against, &more_processes),
        band(Mode::Against, &variant)
    );
}

#[test]
fn processes_of_a_reference_are_grouped_by_the_gpu_that_they_ran_on() {
    // Alternating 100 and 102: noise of one GPU, or two GPUs that are two apart.
    let samples: Processes = (0..6)
        .map(|at| vec![Some(100.0 + f64::from(at % 2) * 2.0); 3])
        .collect();
    let variant = variant(
        Direction::Lower,
        Tolerance::Absolute(0.5),
        &steady(101.0, 6),
    );
    let current = profile(&steady(101.0, 6));
    let (one, _) = judged(Mode::Stored, &variant, &profile(&samples), &current);
    assert_eq!(one.allowance, None);
    assert!(one.reference.unwrap().between.unwrap() > 1.0);
    let two = profile_on(&samples, &["GPU-1", "GPU-2"]);
    let (two, _) = judged(Mode::Stored, &variant, &two, &current);
    assert_eq!(two.allowance, Some(1.0));
    let reference = two.reference.unwrap();
    assert_eq!((reference.machines, reference.between), (2, Some(0.0)));
    assert_eq!(two.change, Some(Change::Absolute(0.0)));
    // Within what the machines differ by, which more samples would not resolve.
    assert_eq!(two.verdict, Some(Verdict::Inconclusive));
    assert!(!two.open);
}
