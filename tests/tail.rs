//! The slowest tenth of the launches: what is planted in recorded samples is caught, and what is
//! unchanged passes.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::path::Path;

use crate::common;
use sparsek_gate::config::{Config, Variant};
use sparsek_gate::finding::{Code, Finding};
use sparsek_gate::judge::{Case, Comparison, Reference, VariantReport, compare, comparison_count};
use sparsek_gate::profile::Profile;
use sparsek_gate::statistics::location;
use sparsek_gate::terms::Tier;
use sparsek_gate::verdict::Verdict;

const TAIL: &str = "duration.tail";

/// What is planted in the launches of a process, by its number.
type Shape = fn(usize, &mut [f64]);

/// Base and current of an unchanged variant, recorded side by side, and what is locked of it.
struct Recorded {
    variant: Variant,
    base: Profile,
    current: Profile,
    locked: Profile,
    comparisons: usize,
}

impl Recorded {
    fn of(recorded: &str, id: &str) -> Recorded {
        let root = common::repository();
        let config = Config::load(&root.join("config.toml")).unwrap();
        let variant = config
            .variants()
            .find(|variant| variant.id.to_string() == id);
        let shipped = config.variants().filter(|variant| !variant.experimental);
        let comparisons = comparison_count(Tier::Counters, shipped.map(|variant| (variant, None)));
        let read = |path: &Path| Profile::read(path).unwrap();
        let folder = common::recordings().join(recorded).join("aa").join(id);
        Recorded {
            variant: variant.unwrap().clone(),
            base: read(&folder.join("base/profile.json")),
            current: read(&folder.join("profile.json")),
            locked: read(&root.join(format!("baselines/nvidia-h200/{id}.profile.json"))),
            comparisons,
        }
    }

    /// One of the tight kernels, and one whose launches take 6.4 us.
    fn both() -> [Recorded; 2] {
        [
            Recorded::of("rounds/5cadd533", "bsr_gemm/baseline"),
            Recorded::of("unchanged/c1819a56", "attention/wgmma"),
        ]
    }

    fn side_by_side(&self) -> (VariantReport, Vec<Finding>) {
        self.judge(Reference::base(&self.base, Some(&self.locked)))
    }

    fn stored(&self) -> (VariantReport, Vec<Finding>) {
        self.judge(Reference::stored(&self.locked, None))
    }

    fn judge(&self, reference: Reference<'_>) -> (VariantReport, Vec<Finding>) {
        compare(&Case::new(
            &self.variant,
            reference,
            &self.current,
            self.comparisons,
        ))
    }

    /// The same with the durations of each current process changed, by its number.
    fn with(&self, change: Shape) -> Recorded {
        let mut current = self.current.clone();
        edit(&mut current, change);
        Recorded {
            variant: self.variant.clone(),
            base: self.base.clone(),
            current,
            locked: self.locked.clone(),
            comparisons: self.comparisons,
        }
    }
}

fn edit(profile: &mut Profile, change: impl Fn(usize, &mut [f64])) {
    let series = profile.kernels[0].metrics.get_mut("duration").unwrap();
    for (at, process) in series.samples.iter_mut().enumerate() {
        let mut launches: Vec<f64> = process.iter().copied().map(Option::unwrap).collect();
        change(at, &mut launches);
        *process = launches.into_iter().map(Some).collect();
    }
}

fn comparison<'r>(report: &'r VariantReport, metric: &str) -> &'r Comparison {
    let mut comparisons = report.comparisons.iter();
    comparisons.find(|one| one.metric == metric).unwrap()
}

/// The metrics of the findings that fail the verdict.
fn failed(findings: &[Finding]) -> Vec<(Code, &str)> {
    let of_verdict = |one: &&Finding| matches!(one.code, Code::Regressed | Code::Inconclusive);
    let denied = findings
        .iter()
        .filter(|one| one.denies())
        .filter(of_verdict);
    denied
        .map(|one| (one.code, one.metric.as_deref().unwrap_or_default()))
        .collect()
}

/// One launch in ten takes twice as long, at other places in each process.
fn tenth_doubled(process: usize, launches: &mut [f64]) {
    let places = [process * 7 + 3, process * 7 + 12];
    for at in places.map(|at| at % 20) {
        launches[at] *= 2.0;
    }
}

fn first_three_doubled(_: usize, launches: &mut [f64]) {
    launches[..3].iter_mut().for_each(|launch| *launch *= 2.0);
}

fn three_times_the_spread(_: usize, launches: &mut [f64]) {
    let center = location(launches).unwrap();
    for launch in launches {
        *launch = center + 3.0 * (*launch - center);
    }
}

fn every_other_process_slower(process: usize, launches: &mut [f64]) {
    if process % 2 == 1 {
        launches.iter_mut().for_each(|launch| *launch *= 1.2);
    }
}

#[test]
fn launches_that_are_doubled_regress_the_tail_and_the_finding_says_where_they_are() {
    for recorded in Recorded::both() {
        let shapes: [(Shape, &str); 2] = [
            (
                tenth_doubled,
                "the slow ones are at other places in each process",
            ),
            (
                first_three_doubled,
                "launches 1 to 3 are slow in most processes",
            ),
        ];
        for (shape, place) in shapes {
            let planted = recorded.with(shape);
            for (report, findings) in [planted.side_by_side(), planted.stored()] {
                let (id, mode) = (&report.variant, report.mode);
                let verdict = comparison(&report, TAIL).verdict;
                assert_eq!(verdict, Some(Verdict::Regressed), "{id} {mode:?}");
                assert!(failed(&findings).contains(&(Code::Regressed, TAIL)));
                let said = findings
                    .iter()
                    .find(|one| one.metric.as_deref() == Some(TAIL));
                let message = &said.unwrap().message;
                assert!(
                    message.contains("mean of the slowest 2 of 20 launches; ")
                        && message.ends_with(place),
                    "{message}"
                );
            }
        }
        // The location of all launches hides a tenth of them.
        let (report, _) = recorded.with(tenth_doubled).side_by_side();
        assert_ne!(
            comparison(&report, "duration").verdict,
            Some(Verdict::Regressed)
        );
    }
}

#[test]
fn three_times_the_spread_does_not_pass_side_by_side() {
    for recorded in Recorded::both() {
        let (report, findings) = recorded.with(three_times_the_spread).side_by_side();
        let tail = comparison(&report, TAIL);
        assert!(
            failed(&findings).iter().any(|(_, metric)| *metric == TAIL),
            "{}: {tail:?}",
            report.variant
        );
    }
}

#[test]
fn a_kernel_that_is_slower_by_a_fifth_in_half_of_its_processes_does_not_pass() {
    for recorded in Recorded::both() {
        let planted = recorded.with(every_other_process_slower);
        for (report, findings) in [planted.side_by_side(), planted.stored()] {
            let (id, mode) = (&report.variant, report.mode);
            let failed = failed(&findings);
            for metric in ["duration", TAIL] {
                let fails = failed.iter().any(|(_, failed)| *failed == metric);
                assert!(fails, "{id} {mode:?}: {metric} is not in {failed:?}");
            }
        }
    }
}

#[test]
fn unchanged_kernels_do_not_fail_by_their_tails() {
    let mut judged = 0;
    let rounds = [
        "5cadd533", "61d576b4", "9b79270f", "a74b8eae", "af10d30f", "cd851036", "cdbc441e",
        "d3bd1a44",
    ];
    // cp_async is recorded there in an earlier form, which no lock is of.
    let kernels = ["baseline", "occupancy"];
    let mut all = Vec::from(Recorded::both());
    for gpu in rounds {
        for kernel in kernels {
            all.push(Recorded::of(
                &format!("rounds/{gpu}"),
                &format!("bsr_gemm/{kernel}"),
            ));
        }
    }
    for recorded in all {
        for (report, findings) in [recorded.side_by_side(), recorded.stored()] {
            let failed = failed(&findings);
            assert!(
                failed.iter().all(|(_, metric)| *metric != TAIL),
                "{} {:?}: {:?}",
                report.variant,
                report.mode,
                comparison(&report, TAIL)
            );
            judged += usize::from(comparison(&report, TAIL).not_worse);
        }
    }
    assert_eq!(judged, 36);
}

#[test]
fn a_kernel_that_is_slower_in_every_launch_has_one_finding() {
    for recorded in Recorded::both() {
        let planted = recorded.with(|_, launches| {
            launches.iter_mut().for_each(|launch| *launch *= 1.25);
        });
        for (report, findings) in [planted.side_by_side(), planted.stored()] {
            assert_eq!(failed(&findings), [(Code::Regressed, "duration")]);
            let tail = comparison(&report, TAIL);
            assert_eq!(tail.verdict, None);
            assert_eq!(tail.why, "recorded: it follows `duration`, which regressed");
        }
        // What the slowest launches lose beyond that is a finding of its own.
        let worse = recorded.with(|process, launches| {
            launches.iter_mut().for_each(|launch| *launch *= 1.25);
            tenth_doubled(process, launches);
        });
        let (_, findings) = worse.side_by_side();
        assert!(failed(&findings).contains(&(Code::Regressed, TAIL)));
    }
}

#[test]
fn a_tail_is_one_comparison_more_and_shares_the_chance_of_a_false_alarm() {
    let [with, _] = Recorded::both();
    let mut without = with.variant.clone();
    let metrics = without.metrics.iter_mut();
    metrics.for_each(|metric| metric.tail = None);
    let count = |variant: &Variant| comparison_count(Tier::Counters, [(variant, None)].into_iter());
    assert_eq!(count(&with.variant), count(&without) + 1);
    let base = Reference::base(&with.base, Some(&with.locked));
    let (report, _) = compare(&Case::new(&without, base, &with.current, 1));
    assert!(report.comparisons.iter().all(|one| one.metric != TAIL));
}

#[test]
fn the_tails_of_a_lock_of_other_launches_are_compared_over_as_many_first_launches() {
    let [mut recorded, _] = Recorded::both();
    let first = |profile: &mut Profile, count: usize| {
        let series = profile.kernels[0].metrics.values_mut();
        for process in series.flat_map(|series| &mut series.samples) {
            process.truncate(count);
        }
    };
    first(&mut recorded.locked, 10);
    let (report, findings) = recorded.stored();
    let tail = comparison(&report, TAIL);
    assert_eq!(
        tail.tail.as_ref().map(|one| (one.slowest, one.launches)),
        Some((1, 10))
    );
    assert_eq!(tail.verdict, Some(Verdict::Pass), "{tail:?}");
    assert!(failed(&findings).is_empty());
    // One launch in a process has no slower ones beside it.
    first(&mut recorded.locked, 1);
    let (report, findings) = recorded.stored();
    let tail = comparison(&report, TAIL);
    assert_eq!(tail.verdict, None);
    assert!(tail.why.starts_with("recorded, not judged"), "{}", tail.why);
    assert!(!failed(&findings).iter().any(|(_, metric)| *metric == TAIL));
}
