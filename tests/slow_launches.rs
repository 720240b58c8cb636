//! Slow launches and slow processes: what is planted in the recorded durations is caught, and what is
//! unchanged passes.

use std::path::Path;

use crate::common;
use sparsek_gate::config::{Config, Variant};
use sparsek_gate::finding::{Code, Finding};
use sparsek_gate::judge::{Case, Comparison, Mode, VariantReport, compare};
use sparsek_gate::profile::Profile;
use sparsek_gate::verdict::Verdict;

const DURATION: &str = "duration";

/// What is planted in the launches of a process, by its number.
type Shape = fn(usize, &mut [f64]);

/// Base and current of an unchanged variant, recorded side by side, and what is locked of it.
struct Recorded {
    variant: Variant,
    base: Profile,
    current: Profile,
    locked: Profile,
}

impl Recorded {
    fn of(recorded: &str, id: &str) -> Recorded {
        let root = common::repository();
        let config = Config::load(&root.join("config.toml")).unwrap();
        let variant = config
            .variants()
            .find(|variant| variant.id.to_string() == id);
        // ncu timed both.
        let locked = common::recordings().join("machines/2acac915");
        let read = |path: &Path| Profile::read(path).unwrap();
        let folder = common::recordings().join(recorded).join("aa").join(id);
        Recorded {
            variant: variant.unwrap().clone(),
            base: read(&folder.join("base/profile.json")),
            current: read(&folder.join("profile.json")),
            locked: read(&locked.join(id).join("profile.json")),
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
        self.judge(Mode::Against, &self.base)
    }

    fn stored(&self) -> (VariantReport, Vec<Finding>) {
        self.judge(Mode::Stored, &self.locked)
    }

    fn judge(&self, mode: Mode, reference: &Profile) -> (VariantReport, Vec<Finding>) {
        compare(&Case::new(&self.variant, mode, reference, &self.current))
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

/// One launch in ten takes twice as long, at other places in each process. The first does not count.
fn tenth_doubled(process: usize, launches: &mut [f64]) {
    let places = [process * 7 + 3, process * 7 + 12];
    for at in places.map(|at| 1 + at % 19) {
        launches[at] *= 2.0;
    }
}

fn first_three_doubled(_: usize, launches: &mut [f64]) {
    launches[..3].iter_mut().for_each(|launch| *launch *= 2.0);
}

fn every_other_process_slower(process: usize, launches: &mut [f64]) {
    if process % 2 == 1 {
        launches.iter_mut().for_each(|launch| *launch *= 1.2);
    }
}

#[test]
fn launches_that_are_doubled_regress_the_duration() {
    for recorded in Recorded::both() {
        for shape in [tenth_doubled as Shape, first_three_doubled] {
            let planted = recorded.with(shape);
            for (report, findings) in [planted.side_by_side(), planted.stored()] {
                let (id, mode) = (&report.variant, report.mode);
                let verdict = comparison(&report, DURATION).verdict;
                assert_eq!(verdict, Some(Verdict::Regressed), "{id} {mode:?}");
                assert_eq!(failed(&findings), [(Code::Regressed, DURATION)]);
            }
        }
    }
}

#[test]
fn a_kernel_that_is_slower_by_a_fifth_in_half_of_its_processes_does_not_pass() {
    for recorded in Recorded::both() {
        let planted = recorded.with(every_other_process_slower);
        for (report, findings) in [planted.side_by_side(), planted.stored()] {
            let (id, mode) = (&report.variant, report.mode);
            let failed = failed(&findings);
            let fails = failed.iter().any(|(_, metric)| *metric == DURATION);
            assert!(fails, "{id} {mode:?}: {failed:?}");
        }
    }
}

#[test]
fn unchanged_kernels_do_not_fail_by_their_durations() {
    let mut passed = 0;
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
        for (report, _) in [recorded.side_by_side(), recorded.stored()] {
            let duration = comparison(&report, DURATION);
            let (id, mode) = (&report.variant, report.mode);
            match duration.verdict {
                Some(Verdict::Pass) => passed += 1,
                // One of three rounds, of noisy launches: a check measures three more.
                Some(Verdict::Inconclusive) if duration.open => {}
                _ => panic!("{id} {mode:?}: {duration:?}"),
            }
        }
    }
    assert_eq!(passed, 35);
}
