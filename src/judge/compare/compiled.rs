//! Compiled against compiled: the gate of the static tier. A compiler gives the same answer every
//! time, so there is no noise and no band: every difference is real.

use super::comparison_finding::limit_finding;
use super::metric::{Case, Comparison, Pair, Summary};
use super::mode::Mode;
use crate::binary::{Residency, StaticRule, loses_its_stores, other_source_types, static_rank};
use crate::comparable::compiled;
use crate::config::{Metric, Variant};
use crate::evidence::{incomplete_compiled, static_value};
use crate::finding::{Code, Finding, Note, WarnReason};
use crate::judge::explain::cause::Cause;
use crate::judge::explain::code::code_difference;
use crate::judge::explain::origin::state_origin;
use crate::judge::outcome::variant_report::{KernelCauses, VariantReport};
use crate::judge::pair::kernels::pair_kernels;
use crate::metric::{Direction, Level, Tolerance};
use crate::profile::{KernelProfile, Profile, Taken};
use crate::terms::Tier;
use crate::verdict::{Change, Verdict};

/// Why code that got worse only warns: for the row, and for the finding.
type Excuse = (&'static str, Note, WarnReason);

/// Of a metric with `unless_as_fast`.
const AS_FAST: Excuse = (
    "worse by more than the tolerance, and excused by `unless_as_fast`: side by side the duration is not worse",
    Note::AsFast,
    WarnReason::UnlessAsFast,
);

/// Of more registers.
const SAME_OCCUPANCY: Excuse = (
    "worse by more than the tolerance, and the occupancy does not fall",
    Note::SameOccupancy,
    WarnReason::ThroughOccupancy,
);

/// The metric that says how full a multiprocessor gets.
const OCCUPANCY: &str = "occupancy";

/// Compares what the compiler made of a variant with a reference of the static tier. Where the same
/// check shows that the kernels are as fast as the reference's (`as_fast`), metrics with
/// `unless_as_fast` only warn.
pub fn compare_compiled(case: &Case<'_>, as_fast: bool) -> (VariantReport, Vec<Finding>) {
    let (variant, mode) = (case.variant, case.mode);
    // What only one side knows of its launch counts for both.
    let taken = |side: &Profile, of: &Profile| side.with_launches_of(of, Taken::Unknown).0;
    let current = &taken(case.current, case.reference);
    let reference = &taken(case.reference, case.current);
    let case = &Case::new(variant, mode, reference, current);
    let mut report = VariantReport::new(variant, mode, reference, current);
    report.tier = Tier::Static;
    let mut findings = incomplete_compiled(variant, current);
    if current.kernels.is_empty() && mode != Mode::Programs {
        // It is a finding already, and nothing of it is to be locked.
        return (report, findings);
    }
    // Another compiler may be what is compared.
    let differences = match mode {
        Mode::Programs => Vec::new(),
        _ => compiled(reference, current),
    };
    if !differences.is_empty() {
        let (reference, how) = (mode.reference(), differences.join("; "));
        let message = format!("{reference} and current code were compiled differently: {how}");
        let finding = Finding::of(Code::NotComparable, &variant.id, message);
        let alone = "check without `--against`, against a lock of the new compiler; to see what it does: `compare --nvcc OLD --nvcc NEW`";
        let beside = (mode == Mode::Against).then(|| alone.to_owned());
        findings.push(finding.or_next(beside));
        return (report, findings);
    }
    // Kernels of other names are other kernels, where nobody says that one takes the place of another.
    let pairing = match mode {
        Mode::Programs => pair_kernels(reference, current, Mode::Against, true),
        _ => pair_kernels(reference, current, mode, false),
    };
    if mode == Mode::Programs {
        let gone = pairing
            .gone
            .iter()
            .map(|kernel| (*kernel, reference, false));
        let new = pairing.new.iter().map(|kernel| (*kernel, current, true));
        for (kernel, profile, is_new) in gone.chain(new) {
            report
                .comparisons
                .extend(alone(variant, profile, kernel, is_new));
        }
        if pairing.pairs().next().is_none() {
            let message = "no kernel is on both sides: kernels are compared by their names";
            let next = "compare code that has a kernel of the same name, with the same types of its parameters";
            findings.push(Finding::deny(Code::NotMeasured, &variant.id, message, next));
        }
    } else {
        findings.extend(pairing.findings(variant, mode, |_| true));
    }
    findings.extend(performance_losses(variant, current));
    for pair in pairing.pairs() {
        findings.extend(other_precision(case, pair));
        let residency = Residencies::of(&current.identity.gpu, pair);
        let mut worse = Vec::new();
        let code = [pair.reference, pair.current].map(|one| one.code.as_ref()?.opcodes.as_ref());
        if let [Some(was), Some(is)] = code
            && loses_its_stores(was, is)
        {
            let message = format!("{} stores nothing any more", current.label(pair.current));
            let next = "fix the kernel: what it computes is lost";
            let finding = Finding::deny(Code::WorkChanged, &variant.id, message, next);
            findings.push(finding.kernel(&pair.current.name));
        }
        for metric in &variant.static_metrics {
            let Some(mut comparison) = judge(case, metric, pair) else {
                continue;
            };
            let excuse = match metric.rule {
                StaticRule::ThroughOccupancy if residency.is_kept() => Some(SAME_OCCUPANCY),
                _ => (as_fast && metric.unless_as_fast).then_some(AS_FAST),
            };
            let finding = comparison_finding(case, metric, &mut comparison, excuse);
            worse.extend(finding.map(|finding| residency.explained(metric, finding)));
            worse.extend(limit_finding(variant, metric, &mut comparison));
            report.comparisons.push(comparison);
        }
        worse.extend(residency.open(variant, mode, current.label(pair.current)));
        worse.sort_by_key(|one| {
            let metric = one.metric.as_deref().unwrap_or_default();
            (!one.denies(), static_rank(metric))
        });
        // Beside itself it is the same.
        let first = worse.first_mut().filter(|_| mode != Mode::New);
        let code = first.and_then(|first| {
            let code = code_difference(pair)?;
            // It is what was compared, and so no cause.
            first.message.push_str(&format!("; {code}"));
            first.values.also_changed = vec![code.clone()];
            Some(code)
        });
        findings.extend(worse);
        report.causes.extend(code.map(|text| KernelCauses {
            kernel: current.label(pair.current).to_owned(),
            duration: None,
            percentages: Vec::new(),
            causes: vec![Cause::of_code(text)],
        }));
    }
    state_origin(&mut findings, reference, current);
    (report, findings)
}

/// The values of a kernel that only one side has.
fn alone(
    variant: &Variant,
    profile: &Profile,
    kernel: &KernelProfile,
    is_new: bool,
) -> Vec<Comparison> {
    let itself = Pair {
        reference: kernel,
        current: kernel,
    };
    let metrics = variant.static_metrics.iter();
    let values = metrics.filter_map(|metric| {
        let value = Some(Summary::of_one(static_value(kernel, &metric.alias)?));
        let (was, is) = if is_new { (None, value) } else { (value, None) };
        Some(Comparison {
            level: Level::Record,
            why: if is_new { "new" } else { "gone" }.to_owned(),
            ..Comparison::new(metric, profile.label(kernel), itself, was, is)
        })
    });
    values.collect()
}

/// How full the chip gets with a kernel before and after.
struct Residencies {
    was: Residency,
    is: Residency,
}

impl Residencies {
    fn of(arch: &str, pair: Pair<'_>) -> Residencies {
        let of = |kernel| Residency::of(arch, |name| static_value(kernel, name));
        Residencies {
            was: of(pair.reference),
            is: of(pair.current),
        }
    }

    /// Whether no launch has a lower occupancy.
    fn is_kept(&self) -> bool {
        self.is.is_at_least(&self.was)
    }

    /// A finding about occupancy with what limits it.
    fn explained(&self, metric: &Metric, mut finding: Finding) -> Finding {
        if metric.alias == OCCUPANCY
            && let (Some(by), Some((threads, _))) = (self.is.limiter(), self.is.at_block())
        {
            let limited = format!(", limited by {by} at {threads} threads a block");
            finding.message.push_str(&limited);
        }
        finding
    }

    /// That the occupancy falls for some launches, where the launch is not known.
    fn open(&self, variant: &Variant, mode: Mode, kernel: &str) -> Option<Finding> {
        let (was, is) = (self.was.percent()?, self.is.percent()?);
        if self.is.is_known || self.is_kept() {
            return None;
        }
        let (unknown, line) = match self.is.at_block() {
            None if self.is.is_open && !self.was.is_open => (
                "the block size and the dynamic shared memory are not known",
                "state `threads_per_block` and `dynamic_shared_bytes` of the variant",
            ),
            None => (
                "the block size is not known",
                "state `threads_per_block` of the variant, or `__launch_bounds__` of the kernel",
            ),
            Some(_) => (
                "the dynamic shared memory is not known",
                "state `dynamic_shared_bytes` of the variant",
            ),
        };
        let message = format!("`{OCCUPANCY}` of {kernel} may fall: {was} → {is}; {unknown}");
        let next = match mode {
            Mode::Programs => {
                "the launch decides: measure both, or gate the kernel with its launch stated"
            }
            _ => line,
        };
        let finding = Finding::deny(Code::NotMeasured, &variant.id, message, next);
        let finding = finding.kernel(kernel).metric(OCCUPANCY);
        Some(finding.warn_for(WarnReason::ThroughOccupancy))
    }
}

/// The compiler's own warnings about performance: reported each time, gated by their count.
fn performance_losses(variant: &Variant, current: &Profile) -> Vec<Finding> {
    let named = |function: &str| {
        let mut kernels = current.kernels.iter();
        kernels.find(|kernel| kernel.mangled.as_deref() == Some(function))
    };
    let mut findings = Vec::new();
    for warning in &current.provenance.warnings {
        let kernel = warning.function.as_deref().and_then(named);
        // Kernels that are not measured are not gated.
        if warning.function.is_some() && kernel.is_none() {
            continue;
        }
        let message = format!("the compiler says ({}): {}", warning.code, warning.message);
        let finding = Finding::of(Code::PerformanceLoss, &variant.id, message);
        findings.push(match kernel {
            Some(kernel) => finding.kernel(current.label(kernel)),
            None => finding,
        });
    }
    findings
}

/// Tensor cores that multiply values of another type do other work, however many instructions there
/// are. That none is left is a loss of `tensor_instructions`.
fn other_precision(case: &Case<'_>, pair: Pair<'_>) -> Option<Finding> {
    const METRIC: &str = "tensor_instructions";
    let (variant, mode) = (case.variant, case.mode);
    let mut metrics = variant.static_metrics.iter();
    let metric = metrics.find(|it| it.alias == METRIC && it.level != Level::Record)?;
    let opcodes = |kernel: &KernelProfile| kernel.code.as_ref()?.opcodes.clone();
    let [was, is] = other_source_types(&opcodes(pair.reference)?, &opcodes(pair.current)?)?;
    let kernel = case.current.label(pair.current);
    let finding = Finding::deny(
        Code::WorkChanged,
        &variant.id,
        format!(
            "the source type of tensor-core instructions of {kernel}: {was} → {is}; it does other work than the {}",
            mode.reference()
        ),
        mode.fix_or_accept(variant, Tier::Static),
    );
    let finding = finding.kernel(kernel).metric(METRIC);
    Some(finding.warn_for(metric.level.warn_reason()))
}

/// A metric of two kernels; `None` where neither side has it and it is not gated.
fn judge(case: &Case<'_>, metric: &Metric, pair: Pair<'_>) -> Option<Comparison> {
    let (was, is) = (
        static_value(pair.reference, &metric.alias),
        static_value(pair.current, &metric.alias),
    );
    let known = was.is_some() && is.is_some();
    let where_known = metric.rule == StaticRule::WhereKnown;
    let gated = metric.level != Level::Record && (known || !where_known);
    if was.is_none() && is.is_none() && !gated {
        return None;
    }
    let (before, now) = (was.map(Summary::of_one), is.map(Summary::of_one));
    let kernel = case.current.label(pair.current);
    let mut comparison = Comparison {
        unit: [case.current, case.reference]
            .iter()
            .find_map(|profile| profile.identity.metrics.get(&metric.alias)?.unit.clone()),
        exact: false,
        never_zero: metric.rule == StaticRule::NeverZero,
        ..Comparison::new(metric, kernel, pair, before, now)
    };
    let (Some(was), Some(is)) = (was, is) else {
        let side = match is.is_none() {
            true => "current code",
            false => "reference",
        };
        comparison.verdict = gated.then_some(Verdict::NotMeasured);
        comparison.why = format!("the {side} has no value");
        return Some(comparison);
    };
    let (change, by, limit) = step(metric, was, is);
    comparison.change = Some(change);
    comparison.band = Some(0.0);
    if !gated {
        comparison.why = "recorded, not judged".to_owned();
        return Some(comparison);
    }
    let (verdict, why) = if metric.rule == StaticRule::NeverZero {
        if was > 0.0 && is == 0.0 {
            (Verdict::Regressed, "there is none left")
        } else {
            (Verdict::Pass, "not lost: only none at all is a regression")
        }
    } else {
        comparison.threshold = Some(match metric.direction {
            Direction::Higher => -limit,
            Direction::Lower | Direction::Equal => limit,
        });
        verdict_of(metric.direction, by, limit)
    };
    comparison.verdict = Some(verdict);
    comparison.why = why.to_owned();
    Some(comparison)
}

/// A static metric has one tolerance, whatever it is compared with.
fn tolerance_of(metric: &Metric) -> Tolerance {
    metric.tolerance.stored.unwrap_or(Tolerance::Absolute(0.0))
}

/// The change, its size, and how large it may be.
fn step(metric: &Metric, was: f64, is: f64) -> (Change, f64, f64) {
    match tolerance_of(metric) {
        Tolerance::RelativePercent(limit) if was > 0.0 => {
            let percent = 100.0 * (is / was - 1.0);
            (Change::RelativePercent(percent), percent, limit)
        }
        // From zero every step is too large for any percentage.
        Tolerance::RelativePercent(_) => (Change::Absolute(is - was), is - was, 0.0),
        Tolerance::Absolute(limit) => (Change::Absolute(is - was), is - was, limit),
    }
}

fn verdict_of(direction: Direction, by: f64, limit: f64) -> (Verdict, &'static str) {
    let worse = match direction {
        Direction::Lower => by,
        Direction::Higher => -by,
        Direction::Equal => by.abs(),
    };
    if !(worse <= limit) {
        (Verdict::Regressed, "worse by more than the tolerance")
    } else if -worse > limit {
        (Verdict::Improved, "better by more than the tolerance")
    } else if by == 0.0 {
        (Verdict::Pass, "the same")
    } else {
        (Verdict::Pass, "within the tolerance")
    }
}

fn comparison_finding(
    case: &Case<'_>,
    metric: &Metric,
    comparison: &mut Comparison,
    excuse: Option<Excuse>,
) -> Option<Finding> {
    let (variant, mode) = (case.variant, case.mode);
    let unit = comparison.unit.as_deref();
    let [was, is] = comparison.shown().map(Option::unwrap_or_default);
    let finding = match comparison.verdict? {
        Verdict::Regressed => {
            let tolerance = if metric.rule == StaticRule::NeverZero {
                "never to none".to_owned()
            } else {
                format!("tolerance {}", tolerance_of(metric).display(unit))
            };
            let next = mode.fix_or_accept(variant, Tier::Static);
            let message = format!(
                "`{}` of {}: {was} → {is} ({tolerance})",
                metric.alias, comparison.kernel
            );
            let finding = Finding::deny(Code::Regressed, &variant.id, message, next);
            match excuse {
                None => finding,
                Some((why, note, reason)) => {
                    comparison.why = why.to_owned();
                    finding.with(note).warn_for(reason)
                }
            }
        }
        // That the current code lacks it is reported by itself.
        Verdict::NotMeasured if comparison.current.is_some() => Finding::deny(
            Code::NotMeasured,
            &variant.id,
            format!(
                "the {} does not contain `{}` of {}",
                mode.reference(),
                metric.alias,
                comparison.kernel
            ),
            format!("lock it: {}", Tier::Static.lock_command(&variant.id)),
        ),
        _ => return None,
    };
    Some(comparison.finding(finding))
}
