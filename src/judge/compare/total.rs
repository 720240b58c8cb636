//! The time of all measured kernels of a step together, judged as a kernel's is.

use super::comparison_finding::{comparison_finding, doubt};
use super::metric::{Case, Gap, Pair, Range};
use super::mode::Mode;
use crate::finding::{Code, Finding};
use crate::judge::outcome::variant_report::VariantReport;
use crate::metric::Role;
use crate::profile::{KernelLaunches, KernelProfile, LaunchList, Profile};
use crate::verdict::Verdict;

const NEXT: &str = "let every process of a side launch the same kernels in the same number of steps (`{launches}`), select all of them (`kernels`), and measure both again, or lock a new baseline, where CUPTI is available (`toolchain.cupti`)";

/// Judges the total of programs as they run, which goes to the report; with whether a verdict on
/// it stands for kernels that are gone.
pub(in crate::judge) fn judge_total(
    case: &Case<'_>,
    report: &mut VariantReport,
) -> (Vec<Finding>, bool) {
    let sides = [case.reference, case.current];
    let as_they_run = sides.iter().all(|side| side.provenance.as_it_runs);
    // Of one kernel the time of a launch says all but how often it is launched.
    let has_several = sides.iter().any(|side| side.kernels.len() > 1);
    let is_program = case.mode == Mode::Programs;
    if !as_they_run || !has_several && !is_program {
        return (Vec::new(), false);
    }
    // What is locked must be measured.
    let stands_for_kernels = case.mode != Mode::Stored;
    match known(case, report) {
        Ok((findings, judged)) => (findings, judged && stands_for_kernels),
        Err(unknown) if is_program => (vec![unknown], false),
        Err(_) => (Vec::new(), false),
    }
}

/// The findings on the total, and whether a verdict on it stands for kernels that are gone. `Err` where
/// the total is not known on both sides.
fn known(case: &Case<'_>, report: &mut VariantReport) -> Result<(Vec<Finding>, bool), Finding> {
    let (variant, base) = (case.variant, case.reference);
    let not_measured = |why: String| {
        let message = format!("the total of its kernels is not known: {why}");
        Finding::deny(Code::NotMeasured, &variant.id, message, NEXT)
    };
    let usual = |kernel: &KernelProfile| usual_launches(base, case.current, kernel);
    let current_total = case.current.of_total(usual).map_err(not_measured)?;
    let of_reference = |why| not_measured(format!("in the reference: {why}"));
    let base_total = base.of_total(usual).map_err(of_reference)?;
    // Of two programs the user states what is compared: all that they launch, or some kernels.
    let is_program = case.mode == Mode::Programs;
    if let Some(beyond) = unmeasured_beyond(base, case.current).filter(|_| !is_program) {
        let why = format!("launches that the reference does not have are not measured: {beyond}");
        return Err(not_measured(why));
    }
    if let Some(why) = other_steps(base, case.current, is_program) {
        return Err(not_measured(why));
    }
    let total = Case {
        reference: &base_total,
        current: &current_total,
        ..*case
    };
    let ([before], [now]) = (&base_total.kernels[..], &current_total.kernels[..]) else {
        return Ok((Vec::new(), false));
    };
    let pair = Pair {
        reference: before,
        current: now,
    };
    let (mut findings, mut judged) = (Vec::new(), false);
    let durations = variant.metrics.iter();
    for metric in durations.filter(|metric| metric.role() == Some(Role::Duration)) {
        let quantity = total.quantity(pair, metric);
        let (mut comparison, gap) = quantity.judge();
        // That a whole profile is incomplete is reported by itself, but not of what is made from it.
        if (gap, comparison.verdict) == (Some(Gap::Current), Some(Verdict::NotMeasured)) {
            findings.push(not_measured(comparison.why.clone()));
        }
        findings.extend(comparison_finding(&quantity, gap, &mut comparison, None));
        findings.extend(doubt(&quantity, &comparison));
        judged |= comparison
            .verdict
            .is_some_and(|verdict| verdict != Verdict::NotMeasured);
        report.comparisons.push(comparison);
    }
    Ok((findings, judged))
}

/// How often a kernel counts in a process where that differs in the reference itself: a program that chooses
/// the number, such as one that tunes or repeats until a time is over, is not slower because it chose a
/// larger one. `None` where the number is fixed, and where
/// the mean of a side is outside of the other's numbers.
fn usual_launches(base: &Profile, current: &Profile, kernel: &KernelProfile) -> Option<f64> {
    let of = |profile: &Profile| {
        let mut kernels = profile.kernels.iter();
        let same = |one: &&KernelProfile| {
            one.identity() == kernel.identity()
                && (one.grid, one.block) == (kernel.grid, kernel.block)
        };
        let launches = profile.launches_by_process(kernels.find(same)?);
        let launches = launches.into_iter().map(|count| count as f64);
        Some(Range::of(&launches.collect::<Vec<f64>>()))
    };
    let (was, is) = (of(base)?, of(current)?);
    let around = |counts: Range, mean: f64| counts.least <= mean && mean <= counts.most;
    let varies = was.width() > 0.0 && was.least > 0.0 && is.least > 0.0;
    // What is one number now is no matter of chance.
    let is_usual = varies && around(was, is.mean) && around(is, was.mean);
    is_usual.then_some(was.mean)
}

/// The launches that the reference does not have and that are not measured: the work of a measured
/// kernel may have moved there.
fn unmeasured_beyond(reference: &Profile, current: &Profile) -> Option<String> {
    let list = current.provenance.launch_list.as_ref()?;
    let beyond = list.beyond(reference.provenance.launch_list.as_ref());
    (!beyond.others.is_empty()).then(|| beyond.words())
}

/// Why the times of two processes are not those of the same number of steps. A program that is told
/// how many to make launches each kernel as often as was asked for, or is incomplete. Of any other, a
/// kernel that both launch must be launched as often; where there is none, the one with the fewest
/// launches.
fn other_steps(reference: &Profile, current: &Profile, is_program: bool) -> Option<String> {
    let was = reference.provenance.launch_list.as_ref()?;
    let is = current.provenance.launch_list.as_ref()?;
    match (was.steps, is.steps) {
        (Some(_), Some(_)) => return None,
        (None, None) if is_program => return None,
        (None, None) => {}
        _ => return Some("`{launches}` states the number of steps on one side only".to_owned()),
    }
    let both = is.kernels.iter().filter_map(|now| {
        let mut kernels = was.kernels.iter();
        let same = |other: &&KernelLaunches| {
            (&other.mangled, other.grid, other.block) == (&now.mangled, now.grid, now.block)
        };
        Some((now, kernels.find(same)?.launches))
    });
    let both: Vec<(&KernelLaunches, u32)> = both.collect();
    if let Some((now, before)) = both.iter().find(|(now, before)| now.launches != *before) {
        return Some(format!(
            "{} is launched {} times in a process, in the reference {before} times: there may be fewer steps",
            ncu_report::base_name(&now.mangled),
            now.launches
        ));
    }
    let fewest = |list: &LaunchList| list.kernels.iter().map(|one| one.launches).min();
    (both.is_empty() && fewest(was) != fewest(is)).then(|| {
        "no kernel is launched by both, and whether both make as many steps is not known".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::variant;
    use crate::judge::compare;
    use crate::profile::tests::{listed, recorded};

    /// Of the kernels of a step, each by its name and its time as a multiple of one that was measured
    /// on an H200, all with the same grid and block.
    fn step(kernels: &[(&str, f64)]) -> Profile {
        let mut profile = recorded();
        profile.provenance.as_it_runs = true;
        let measured = profile.kernels[0].clone();
        let kernel = |&(name, factor): &(&str, f64)| {
            let mut kernel = measured.clone();
            kernel.name = name.to_owned();
            kernel.mangled = Some(name.to_owned());
            let duration = kernel.metrics.get_mut("duration").unwrap();
            for sample in duration.samples.iter_mut().flatten() {
                *sample = sample.map(|value| factor * value);
            }
            kernel
        };
        profile.kernels = kernels.iter().map(kernel).collect();
        listed(&mut profile, &vec![20; kernels.len()], None);
        profile
    }

    /// Launches of kernels that are not measured.
    fn launched(others: &[&str]) -> LaunchList {
        let launches = others.iter().map(|name| ((*name).to_owned(), false));
        LaunchList::of(&launches.collect::<Vec<_>>())
    }

    fn on_one_gpu(mut profile: Profile, captures: &str) -> Profile {
        for capture in &mut profile.provenance.captures {
            capture.gpu_uuid = Some("GPU-0".to_owned());
            capture.report.sha256.push_str(captures);
        }
        profile
    }

    fn judged(reference: &Profile, current: &Profile) -> (VariantReport, Vec<Finding>) {
        let [reference, current] = [(reference, "0"), (current, "1")]
            .map(|(profile, captures)| on_one_gpu(profile.clone(), captures));
        judged_by(Mode::Against, &reference, &current)
    }

    fn judged_by(
        mode: Mode,
        reference: &Profile,
        current: &Profile,
    ) -> (VariantReport, Vec<Finding>) {
        let variant = variant("[suite.bsr_gemm.variant.cp_async]\nrun = [\"x\"]\n");
        compare(&Case::new(&variant, mode, reference, current))
    }

    fn denied(findings: &[Finding]) -> Vec<Code> {
        let about_kernels = [
            Code::KernelsChanged,
            Code::LaunchChanged,
            Code::Regressed,
            Code::NotMeasured,
        ];
        let denying = findings.iter().filter(|finding| finding.denies());
        let codes = denying.map(|finding| finding.code);
        codes.filter(|code| about_kernels.contains(code)).collect()
    }

    #[test]
    fn a_kernel_that_does_the_work_of_two_is_compared_by_the_total() {
        let two = step(&[("first", 1.0), ("second", 1.0), ("last", 0.5)]);
        let faster = step(&[("fused", 1.6), ("last", 0.5)]);
        let (report, findings) = judged(&two, &faster);
        assert_eq!(denied(&findings), []);
        let of = |code, findings: &[Finding]| -> Vec<String> {
            let found = findings.iter().filter(|one| one.code == code);
            found.map(|one| one.message.clone()).collect()
        };
        assert_eq!(of(Code::KernelsChanged, &findings).len(), 3);
        let verdict_of_total = |report: &VariantReport| {
            let mut comparisons = report.comparisons.iter();
            let total = comparisons.find(|one| one.kernel == "(total)");
            total.unwrap().verdict
        };
        assert_eq!(verdict_of_total(&report), Some(Verdict::Improved));
        assert_eq!(
            crate::judge::share_words(&report.shares).unwrap(),
            "(total): fused 76.2 % (new), last 23.8 % (was 20.0 %), first gone (was 40.0 %), second gone (was 40.0 %)"
        );

        let slower = step(&[("fused", 2.2), ("last", 0.5)]);
        let (_, findings) = judged(&two, &slower);
        assert_eq!(denied(&findings), [Code::Regressed]);
        let message = &of(Code::Regressed, &findings)[0];
        assert!(message.starts_with("`duration` of (total): "), "{message}");
        let (_, findings) = judged(&two, &two);
        assert_eq!(denied(&findings), []);
        // What is locked must be measured, whatever the total is.
        let (_, findings) = judged_by(Mode::Stored, &two, &faster);
        assert!(denied(&findings).contains(&Code::KernelsChanged));
        let (two, slower) = (on_one_gpu(two, "0"), on_one_gpu(slower, "1"));
        for mode in [Mode::Against, Mode::Programs] {
            let (report, findings) = judged_by(mode, &two, &slower);
            assert_eq!(denied(&findings), [Code::Regressed]);
            assert_eq!(verdict_of_total(&report), Some(Verdict::Regressed));
        }
    }

    #[test]
    fn a_launch_that_was_not_measured_makes_no_total_smaller() {
        let two = step(&[("first", 1.0), ("second", 1.0)]);
        // The work of the second moved to what is not measured.
        let mut moved = step(&[("first", 1.0)]);
        let list = moved.provenance.launch_list.as_mut().unwrap();
        list.others = launched(&["elsewhere"; 20]).others;
        let (report, findings) = judged(&two, &moved);
        assert_eq!(denied(&findings), [Code::KernelsChanged]);
        assert!(report.comparisons.iter().all(|one| one.kernel != "(total)"));
        // What both launch beside is no change.
        let list = launched(&["fill"; 3]).others;
        let (mut before, mut now) = (two.clone(), two);
        for profile in [&mut before, &mut now] {
            profile.provenance.launch_list.as_mut().unwrap().others = list.clone();
        }
        assert_eq!(denied(&judged(&before, &now).1), []);
    }

    #[test]
    fn a_program_that_makes_fewer_steps_has_no_smaller_total() {
        let often = |kernels: &[(&str, f64)], launches: u32, steps: Option<u32>| {
            let mut profile = step(kernels);
            let list = profile.provenance.launch_list.as_mut().unwrap();
            list.steps = steps;
            let kernels = list.kernels.iter_mut();
            kernels.for_each(|one| one.launches = launches);
            profile
        };
        let two = [("first", 1.0), ("second", 1.0)];
        let one = [("fused", 2.0)];
        let codes = |before: &Profile, now: &Profile| {
            let mut codes = denied(&judged(before, now).1);
            codes.dedup();
            codes
        };
        let has_total = |before: &Profile, now: &Profile| {
            let (report, _) = judged(before, now);
            report.comparisons.iter().any(|one| one.kernel == "(total)")
        };
        let before = often(&two, 40, None);
        assert!(!has_total(&before, &often(&two, 20, None)));
        // Without a total the kernels are compared as always.
        assert!(!has_total(&before, &often(&one, 20, None)));
        assert!(codes(&before, &often(&one, 20, None)).contains(&Code::KernelsChanged));
        assert_eq!(codes(&before, &often(&one, 40, None)), []);
        // Where `{launches}` states the steps, they are known.
        let stated = often(&two, 40, Some(40));
        assert!(has_total(&stated, &often(&two, 20, Some(20))));
        assert!(!has_total(&stated, &often(&two, 20, None)));
    }
}
