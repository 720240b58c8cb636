//! Reference against current, kernel by kernel and metric by metric.

use super::comparison_finding::{comparison_finding, doubt, limit_finding};
use super::launch::shared_memory;
use super::metric::{Case, Comparison, Gap, Pair, Quantity};
use super::mode::Mode;
use super::speed::speed_change;
use super::total::judge_total;
use super::waits::waits;
use super::work::{declared_findings, not_faster, work_findings};
use crate::comparable::{measured, side_by_side};
use crate::config::Variant;
use crate::evidence::{
    Purpose, SameClock, below_counters, disturbances, disturbed, import_again, incomplete,
    incomplete_side, missing_launches_side, unwatched,
};
use crate::finding::{Code, Finding, WarnReason};
use crate::judge::explain::explanation::{CodeChanges, Explanation};
use crate::judge::explain::origin::state_origin;
use crate::judge::outcome::variant_report::VariantReport;
use crate::judge::pair::kernels::pair_kernels;
use crate::judge::pair::share::{KernelShare, shares};
use crate::metric::{Level, Role};
use crate::profile::{KernelProfile, Profile, TOTAL};
use crate::terms::Phase;
use crate::verdict::Verdict;

/// A kernel that takes less of the time than this, in percent, is judged through the sum of all alone.
const SMALL_PERCENT: f64 = 2.0;

/// Compares a current profile with a reference under the configured metrics of the variant.
pub fn compare(case: &Case<'_>) -> (VariantReport, Vec<Finding>) {
    compare_with_code(case, CodeChanges::new())
}

/// The same where it is known how the compiler's code differs: that explains what got worse.
pub(crate) fn compare_with_code(
    case: &Case<'_>,
    mut code: CodeChanges,
) -> (VariantReport, Vec<Finding>) {
    let (variant, before, current) = (case.variant, case.reference, case.current);
    let mode = case.mode;
    let mut report = VariantReport::new(variant, mode, before, current);
    let (mut findings, differences) = match mode {
        Mode::New => (Vec::new(), Vec::new()),
        _ => (incomplete_sides(case), differences(case)),
    };
    if !differences.is_empty() {
        let message = format!(
            "{} and current profile were measured under different conditions: {}",
            mode.reference(),
            differences.join("; ")
        );
        let finding = Finding::of(Code::NotComparable, &variant.id, message);
        findings.push(finding.or_next(import_again(current)));
        return (report, findings);
    }
    let (found, in_total) = judge_total(case, &mut report);
    findings.extend(found);
    if mode != Mode::Stored {
        report.waits = waits(case, report.sum());
    }
    let pairing = pair_kernels(before, current, mode, in_total);
    if let Some(total) = report.comparisons.first() {
        report.shares = shares(&pairing, &total.metric);
    }
    findings.extend(pairing.findings(variant, mode, |pair| same_work(case, pair)));
    findings.extend(declared_findings(variant, current));
    let mut of_pairs = Vec::new();
    for pair in pairing.pairs() {
        of_pairs.extend(judge_pair(case, pair, &mut code, &mut report));
    }
    if of_pairs.iter().any(|one| one.code == Code::WorkChanged) {
        let totals = report.comparisons.iter_mut();
        totals
            .filter(|one| one.kernel == TOTAL)
            .for_each(not_faster);
    }
    findings.extend(disturbances_of(case));
    let is_slower = |one: &Comparison| one.is_duration() && one.verdict == Some(Verdict::Regressed);
    if mode == Mode::Programs && report.comparisons.iter().any(is_slower) {
        // It explains why the program is slower.
        let warned = |one: Finding| match one.code {
            Code::WorkChanged => one.warn_for(Some(WarnReason::Slower)),
            _ => one,
        };
        of_pairs = of_pairs.into_iter().map(warned).collect();
    }
    state_origin(&mut of_pairs, before, current);
    findings.extend(of_pairs);
    findings.extend(nothing_judged(case, &report));
    (report, findings)
}

/// Whether a kernel that is launched otherwise is shown to do the same work: by counts of it that are equal, or
/// by processes that checked their own numbers. What the user put side by side is compared as it is.
fn same_work<'a>(case: &Case<'a>, pair: Pair<'a>) -> bool {
    let captures = &case.current.provenance.captures;
    if case.mode == Mode::Programs || captures.iter().all(|capture| capture.checked) {
        return true;
    }
    let metrics = case.variant.metrics.iter();
    let counts = metrics.filter(|metric| metric.exact && metric.level == Level::Deny);
    let verdicts = counts.map(|metric| case.quantity(pair, metric).judge().0.verdict);
    let verdicts: Vec<Option<Verdict>> = verdicts.collect();
    !verdicts.is_empty()
        && verdicts
            .iter()
            .all(|verdict| *verdict == Some(Verdict::Pass))
}

/// That no metric has a tolerance for this comparison: equal work alone is no reason to pass.
fn nothing_judged(case: &Case<'_>, report: &VariantReport) -> Option<Finding> {
    let key = match case.mode {
        Mode::Programs | Mode::New => return None,
        Mode::Stored => "stored",
        Mode::Against => "against",
    };
    let mut gated = case
        .variant
        .metrics
        .iter()
        .filter(|one| one.level != Level::Record && !one.exact);
    let mut comparisons = report.comparisons.iter();
    let judged = comparisons.any(|one| !one.exact && one.verdict.is_some());
    (!judged && gated.next().is_some() && !report.comparisons.is_empty()).then(|| {
        let message = format!(
            "no metric of it is judged against the {}",
            case.mode.reference()
        );
        let next = format!(
            "give a metric a tolerance for this comparison: `tolerance = {{ {key} = \"4 %\" }}`"
        );
        Finding::deny(Code::NotMeasured, &case.variant.id, message, next)
    })
}

/// Every condition in which the sides differ, and that keeps them from being compared.
fn differences(case: &Case<'_>) -> Vec<String> {
    let mut differences = measured(case.reference, case.current);
    if case.mode != Mode::Stored {
        differences.extend(side_by_side(case.reference, case.current));
    }
    differences
}

/// What each side lacks. That the base lacks a metric, or a kernel, is reported where these are
/// compared; a baseline was complete when it was locked.
fn incomplete_sides(case: &Case<'_>) -> Vec<Finding> {
    if case.mode == Mode::Stored {
        return incomplete(case.variant, case.current);
    }
    let mut findings = incomplete_side(case.variant, case.current);
    let of_base = missing_launches_side(case.variant, case.reference);
    findings.extend(of_base.into_iter().map(Finding::in_base));
    findings
}

/// What disturbed the measurement. A baseline was measured at another time, and judged then.
fn disturbances_of(case: &Case<'_>) -> Vec<Finding> {
    let (variant, base, current) = (case.variant, case.reference, case.current);
    let clock = SameClock::of(variant, base, current, |metric| case.tolerance(metric));
    let purpose = Purpose::Verdict(clock);
    if case.mode == Mode::Stored {
        return disturbed(variant, current, purpose);
    }
    let sides = [("base", base), ("current", current)];
    let mut findings = disturbances(&variant.id, &sides, purpose);
    findings.extend(unwatched(&variant.id, current));
    findings.extend(below_counters(variant, current));
    findings
}

/// Metrics that are locked, and that the configuration no longer names.
pub(in crate::judge) fn metrics_gone(variant: &Variant, locked: &Profile) -> Vec<Finding> {
    let explaining = variant.explaining();
    let configured = |alias: &str| {
        let mut all = variant.metrics.iter().chain(&explaining);
        all.any(|other| other.alias == alias)
    };
    let metrics = locked.identity.metrics.iter();
    metrics
        .filter(|(alias, _)| !configured(alias))
        .map(|(alias, metric)| {
            let message = format!(
                "`{alias}` ({}) is locked, and the configuration no longer names it",
                metric.counter
            );
            Finding::of(Code::VariantGone, &variant.id, message).metric(alias)
        })
        .collect()
}

/// Judges every metric of a pair of kernels: what is compared goes to the report.
fn judge_pair<'a>(
    case: &Case<'a>,
    pair: Pair<'a>,
    code: &mut CodeChanges,
    report: &mut VariantReport,
) -> Vec<Finding> {
    let mode = case.mode;
    let speed = speed_change(case, pair);
    let sides = [
        (case.reference, pair.reference),
        (case.current, pair.current),
    ];
    let as_they_run = sides.iter().all(|(side, _)| side.provenance.as_it_runs);
    let varies = as_they_run && sides.iter().any(|(side, kernel)| side.varies(kernel));
    let judges_small = mode != Mode::Programs || case.variant.kernels.is_some();
    let name = case.current.label(pair.current);
    let is_it = |one: &&KernelShare| {
        (one.kernel.as_str(), one.grid, one.block) == (name, pair.current.grid, pair.current.block)
    };
    // A kernel that the user named is judged like a whole program.
    let percent = report.shares.iter().find(is_it).map(KernelShare::largest);
    let percent = percent.filter(|_| !judges_small);
    let is_small = percent.is_some_and(|percent| percent < SMALL_PERCENT);
    let uncounted = as_they_run && mode == Mode::Programs && {
        let mut counted = sides.iter();
        counted.any(|(side, kernel)| side.launches_of(kernel, Phase::Counting) == 0)
    };
    let mut comparisons = Vec::new();
    let mut findings = Vec::new();
    for metric in &case.variant.metrics {
        let quantity = Quantity {
            part: percent
                .filter(|_| metric.role() == Some(Role::Duration))
                .map_or(1.0, |percent| percent / 100.0),
            ..case.quantity(pair, metric)
        };
        let (mut comparison, gap) = quantity.judge();
        let unknown = gap.is_some() || comparison.verdict == Some(Verdict::Inconclusive);
        if is_small && (comparison.is_duration() || unknown) {
            let why = format!("below {SMALL_PERCENT} % of the time: judged through the sum");
            not_judged(&mut comparison, why);
        } else if varies && gap.is_some() {
            let why = "launched in only some of the processes: judged through the sum";
            not_judged(&mut comparison, why.to_owned());
        } else if uncounted && gap.is_some() && !comparison.is_duration() {
            let why = "ncu measured no launch of it: judged by its time".to_owned();
            not_judged(&mut comparison, why);
        }
        findings.extend(comparison_finding(&quantity, gap, &mut comparison, speed));
        // A limit applies also where the reference lacks the metric.
        if gap.is_none_or(|gap| gap == Gap::Reference) {
            findings.extend(limit_finding(case.variant, metric, &mut comparison));
        }
        findings.extend(doubt(&quantity, &comparison));
        comparisons.push(comparison);
    }
    findings.extend(work_findings(case.variant, &mut comparisons, mode));
    comparisons.extend(shared_memory(case, pair));
    let only = !at_several_shapes(case.current, pair.current);
    for launch in findings.iter_mut().filter_map(|one| one.launch.as_mut()) {
        launch.only = only;
    }
    time_first(&mut findings, &comparisons);
    if let Some(worse) = findings.iter_mut().find(|one| one.says_worse()) {
        let code = code.remove(&pair.current.name);
        let explaining = case.variant.explaining();
        let explaining = explaining
            .iter()
            .map(|one| case.quantity(pair, one).judge().0);
        let all: Vec<Comparison> = comparisons.iter().cloned().chain(explaining).collect();
        let explanation = Explanation::new(&pair.current.name, &all, code);
        worse.explain(&explanation.named, &explanation.also);
        report.causes.extend(explanation.causes);
    }
    report.comparisons.extend(comparisons);
    findings
}

/// Leaves a metric to what else is judged.
fn not_judged(comparison: &mut Comparison, why: String) {
    comparison.level = Level::Record;
    comparison.verdict = None;
    comparison.threshold = None;
    comparison.open = false;
    comparison.why = why;
}

/// Whether the profile has this kernel at other grids or blocks too: its name alone does not say which
/// is meant.
fn at_several_shapes(profile: &Profile, kernel: &KernelProfile) -> bool {
    let shape = |one: &KernelProfile| (one.grid, one.block);
    let mut kernels = profile.kernels.iter();
    kernels.any(|other| other.name == kernel.name && shape(other) != shape(kernel))
}

/// Puts that a kernel takes longer first: people look for that first, and it carries the causes.
fn time_first(findings: &mut [Finding], comparisons: &[Comparison]) {
    let durations = comparisons.iter().filter(|one| one.is_duration());
    let durations: Vec<&str> = durations.map(|one| one.metric.as_str()).collect();
    findings.sort_by_key(|finding| {
        let of_time = finding.metric.as_deref();
        let of_time = of_time.is_some_and(|alias| durations.contains(&alias));
        !(finding.says_worse() && of_time)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::variant;
    use crate::profile::tests::recorded;

    #[test]
    fn another_shape_only_warns_where_something_shows_that_the_work_is_the_same() {
        let counts = "[metric.flop_fma]\ncounter = \"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum\"\ndirection = \"equal\"\nexact = true\n";
        let program = "[suite.bsr_gemm.variant.cp_async]\nrun = [\"x\"]\n";
        for (counted, checked, mode, denies) in [
            (false, false, Mode::Against, true),
            (true, false, Mode::Against, false),
            (false, true, Mode::Against, false),
            (true, true, Mode::Stored, true),
            (false, false, Mode::Programs, false),
        ] {
            let variant = variant(&format!("{}{program}", if counted { counts } else { "" }));
            let mut base = recorded();
            for capture in &mut base.provenance.captures {
                capture.checked = checked;
            }
            let mut current = base.clone();
            current.kernels[0].block = [256, 1, 1];
            for capture in &mut current.provenance.captures {
                capture.report.sha256.push('1');
            }
            let (_, findings) = compare(&Case::new(&variant, mode, &base, &current));
            let mut found = findings.iter();
            let found = found
                .find(|one| one.code == Code::LaunchChanged)
                .unwrap_or_else(|| panic!("{findings:?}"));
            assert_eq!(found.denies(), denies, "{counted} {checked} {mode:?}");
        }
    }
}
