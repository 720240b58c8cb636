//! The findings of one comparison: it got worse, it is open, it has no value, or its value is
//! outside of a limit or implausible.

use super::metric::{Comparison, Gap, LIMITS, Quantity};
use super::mode::Mode;
use crate::config::{Metric, Variant};
use crate::evidence::{Measurand, implausible, too_good};
use crate::finding::{Code, Finding, Note, WarnReason};
use crate::metric::display_value;
use crate::verdict::Verdict;

/// The finding of a verdict, where there is one.
pub(crate) fn comparison_finding(
    quantity: &Quantity<'_>,
    gap: Option<Gap>,
    comparison: &mut Comparison,
    speed: Option<f64>,
) -> Option<Finding> {
    let finding = match comparison.verdict? {
        Verdict::Pass | Verdict::Improved => return None,
        // Counters of work have findings of their own.
        Verdict::Regressed | Verdict::Inconclusive if comparison.exact => return None,
        Verdict::Regressed => regressed(quantity, comparison, speed),
        Verdict::Inconclusive => inconclusive(quantity, comparison, speed),
        Verdict::NotMeasured => not_measured(quantity, gap, comparison)?,
    };
    Some(comparison.finding(finding))
}

fn name(comparison: &Comparison) -> String {
    format!("`{}` of {}", comparison.metric, comparison.kernel)
}

fn regressed(quantity: &Quantity<'_>, comparison: &mut Comparison, speed: Option<f64>) -> Finding {
    let variant = quantity.case.variant;
    let unit = comparison.unit.as_deref();
    let [was, is] = comparison.shown().map(Option::unwrap_or_default);
    let message = format!(
        "{}: {was} → {is}, {} (tolerance {})",
        name(comparison),
        comparison.interval().unwrap_or_default(),
        comparison.tolerance.display(unit)
    );
    let (mode, tier) = (quantity.case.mode, quantity.case.current.identity.tier);
    let next = mode.fix_or_accept(variant, tier);
    let finding = Finding::deny(Code::Regressed, &variant.id, message, next);
    let Some(faster) = faster(comparison, speed) else {
        return finding;
    };
    let finding = finding.with(Note::Faster(faster));
    if quantity.metric.unless_faster {
        comparison.why =
            "worse by more than the tolerance, and excused by `unless_faster`".to_owned();
        return finding.warn_for(WarnReason::UnlessFaster);
    }
    let why = &mut comparison.why;
    why.push_str(&format!(", though the kernel became {faster:.1} % faster"));
    let next = format!(
        "a faster kernel may use a unit less: if so, lock it, or set `unless_faster` on `{}`",
        comparison.metric
    );
    finding.or_next(Some(next))
}

/// By how many percent the kernel became faster, beside a metric that is not its duration.
fn faster(comparison: &Comparison, speed: Option<f64>) -> Option<f64> {
    let percent = -speed?;
    (percent > 0.0 && !comparison.is_duration()).then_some(percent)
}

fn inconclusive(
    quantity: &Quantity<'_>,
    comparison: &mut Comparison,
    speed: Option<f64>,
) -> Finding {
    let change = comparison.interval().unwrap_or_default();
    let message = format!("{}: change {change}; {}", name(comparison), comparison.why);
    let finding = Finding::of(Code::Inconclusive, &quantity.case.variant.id, message);
    let Some(faster) = faster(comparison, speed).filter(|_| quantity.metric.unless_faster) else {
        return finding;
    };
    // More samples would not change that it only warns.
    comparison.open = false;
    comparison.why = format!("{}, and excused by `unless_faster`", comparison.why);
    finding
        .with(Note::Faster(faster))
        .warn_for(WarnReason::UnlessFaster)
}

/// `None` of what the current profile lacks: that it is incomplete is reported by itself.
fn not_measured(
    quantity: &Quantity<'_>,
    gap: Option<Gap>,
    comparison: &Comparison,
) -> Option<Finding> {
    let (code, cannot) = match gap {
        Some(Gap::Current) => return None,
        None => (Code::NotMeasured, "judged"),
        Some(Gap::Reference | Gap::Unit) => (Code::NotComparable, "compared"),
    };
    let (name, why) = (name(comparison), &comparison.why);
    let message = format!("{name} cannot be {cannot}: {why}");
    let again = gap.is_none().then(|| "measure again".to_owned());
    Some(Finding::of(code, &quantity.case.variant.id, message).or_next(again))
}

/// A value outside of its hard limit: the comparison is then a regression.
pub(crate) fn limit_finding(
    variant: &Variant,
    metric: &Metric,
    comparison: &mut Comparison,
) -> Option<Finding> {
    let value = comparison.current?.value;
    let unit = comparison.unit.as_deref();
    let (side, limit) = match (metric.min, metric.max) {
        (Some(min), _) if !(value >= min) => (LIMITS[0], min),
        (_, Some(max)) if !(value <= max) => (LIMITS[1], max),
        _ => return None,
    };
    let [value, limit] = [value, limit].map(|value| display_value(value, unit));
    comparison.verdict = Some(Verdict::Regressed);
    comparison.why = format!("{side}{limit}");
    let message = format!("{} is {value}, {}", name(comparison), comparison.why);
    let mut finding = Finding::of(Code::LimitExceeded, &variant.id, message);
    finding.values.limit = Some(limit);
    Some(comparison.finding(finding))
}

/// An implausible value. That there is no value is reported by itself.
pub(crate) fn doubt(quantity: &Quantity<'_>, comparison: &Comparison) -> Option<Finding> {
    if matches!(comparison.verdict, None | Some(Verdict::NotMeasured)) {
        return None;
    }
    let Quantity {
        case, pair, metric, ..
    } = quantity;
    let of = Measurand {
        variant: &case.variant.id,
        kernel: &comparison.kernel,
        alias: &metric.alias,
        counter: &metric.counter,
        unit: comparison.unit.as_deref(),
    };
    let odd = |values: &[f64]| implausible(&of, values);
    let samples = case.current.samples(pair.current, &metric.alias)?;
    let finding = odd(&samples.machines().concat().concat())
        .or_else(|| {
            // A baseline was examined when it was locked; a base was measured now.
            let beside = case.mode != Mode::Stored;
            let of_base = beside.then(|| quantity.before()).flatten()?;
            Some(odd(&of_base.machines().concat().concat())?.in_base())
        })
        .or_else(|| {
            // Two programs may differ by any factor.
            let is_program = case.mode == Mode::Programs;
            let (before, now) = (comparison.reference?.value, comparison.current?.value);
            let is_judged = comparison.is_duration() && !is_program;
            is_judged.then(|| too_good(&of, before, now)).flatten()
        })?;
    Some(comparison.finding(finding))
}
