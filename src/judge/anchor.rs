//! How far the current values are from the anchor of their baseline, and whether that is more than a
//! budget.

use super::anchored::Anchored;
use super::metric::Comparison;
use super::mode::Mode;
use super::next::WAIVE;
use super::variant_report::VariantReport;
use crate::baseline::{Anchor, Spent};
use crate::config::Variant;
use crate::finding::{Code, Finding, WarnReason};
use crate::metric::display_values;
use crate::profile::Profile;
use crate::verdict::{Change, Distance};

/// Adds to each comparison with a budget how far it is from the anchor, and reports what is beyond
/// its budget. A baseline of an older version has no anchor: then no budget is judged.
pub(super) fn judge_budgets(
    variant: &Variant,
    anchor: Option<&Anchor>,
    current: &Profile,
    report: &mut VariantReport,
) -> Vec<Finding> {
    let budgets = || variant.metrics.iter().filter(|one| one.budget.is_some());
    let judged = |one: &Comparison| budgets().any(|metric| metric.alias == one.metric);
    if !report.comparisons.iter().any(judged) {
        return Vec::new();
    }
    let Some(anchor) = anchor.filter(|anchor| anchor.is_comparable(current)) else {
        let names: Vec<String> = budgets().map(|one| format!("`{}`", one.alias)).collect();
        return vec![missing(variant, anchor, &names.join(", "))];
    };
    let mut findings = Vec::new();
    for spent in anchor.spent(variant, current) {
        let Some(distance) = &spent.distance else {
            continue;
        };
        let mut kernels = current.kernels.iter();
        let Some(kernel) = kernels.find(|one| current.label(one) == spent.kernel) else {
            continue;
        };
        let alias = &spent.metric.alias;
        let same = |one: &&mut Comparison| {
            let shape = (&one.kernel, one.grid, one.block);
            shape == (&kernel.name, kernel.grid, kernel.block) && one.metric == *alias
        };
        let Some(comparison) = report.comparisons.iter_mut().find(same) else {
            continue;
        };
        comparison.anchored = Some(Anchored {
            since: anchor.time.clone(),
            value: spent.anchor,
            change: distance.change,
            budget: spent.budget,
        });
        let unit = comparison.unit.as_deref();
        let far = format!(
            "{} from the anchor of {}, budget {}",
            distance.change.display(unit),
            anchor.time,
            spent.budget.display(unit)
        );
        comparison.why = match comparison.why.is_empty() {
            true => far,
            false => format!("{}; {far}", comparison.why),
        };
        if distance.is_beyond() {
            findings.push(beyond(
                variant,
                anchor,
                &spent,
                distance,
                comparison,
                report.mode,
            ));
        }
    }
    let unjudged =
        |one: &&Comparison| judged(one) && one.current.is_some() && one.anchored.is_none();
    let unjudged = report.comparisons.iter().filter(unjudged);
    findings.extend(unjudged.map(|one| {
        let budget = format!("`{}` of {}", one.metric, one.kernel);
        unknown(variant, anchor, &budget, "no comparable value of it")
    }));
    findings
}

fn unknown(variant: &Variant, anchor: &Anchor, budgets: &str, lacks: &str) -> Finding {
    Finding::deny(
        Code::AnchorMissing,
        &variant.id,
        format!(
            "the budget of {budgets} is not judged: the anchor of {} has {lacks}; the values are recorded only",
            anchor.time
        ),
        format!(
            "move the anchor: sparsek-gate baseline --lock --anchor --reason '...' {}",
            variant.id
        ),
    )
}

fn missing(variant: &Variant, anchor: Option<&Anchor>, budgets: &str) -> Finding {
    if let Some(anchor) = anchor {
        return unknown(variant, anchor, budgets, "other conditions");
    }
    Finding::deny(
        Code::AnchorMissing,
        &variant.id,
        format!(
            "the budget of {budgets} is not judged: its lock has no anchor; the values are recorded only"
        ),
        format!(
            "lock it again, and its present values become the anchor: sparsek-gate baseline --lock --reason '...' {}",
            variant.id
        ),
    )
}

/// Half the width of the band of a comparison, in the terms of its distance from the anchor; `None`
/// where no noise is known. The band is around the reference's value, in the terms of the tolerance.
fn band(comparison: &Comparison, distance: &Distance, anchor: f64) -> Option<f64> {
    let (band, reference) = (comparison.band?, comparison.reference?.value);
    let in_units = match comparison.change? {
        Change::RelativePercent(_) => band / 100.0 * reference,
        Change::Absolute(_) => band,
    };
    Some(match distance.change {
        Change::RelativePercent(_) => in_units / anchor * 100.0,
        Change::Absolute(_) => in_units,
    })
}

/// Against a baseline it fails if the value is beyond the budget by more than the noise. Side by side it
/// warns, because earlier changes are part of the distance.
fn beyond(
    variant: &Variant,
    anchor: &Anchor,
    spent: &Spent<'_>,
    distance: &Distance,
    comparison: &Comparison,
    mode: Mode,
) -> Finding {
    let unit = comparison.unit.as_deref();
    let value = comparison.current.map_or(f64::NAN, |current| current.value);
    let (was, is) = display_values(spent.anchor, value, unit);
    let band = band(comparison, distance, spent.anchor);
    let reason = match mode {
        Mode::Stored if distance.is_shown_beyond(band) => None,
        Mode::Stored => Some(WarnReason::WithinNoise),
        Mode::Against | Mode::Programs => Some(WarnReason::SideBySide),
    };
    let but = match reason {
        Some(WarnReason::WithinNoise) if band.is_none() => "; its noise is not known",
        Some(WarnReason::WithinNoise) => "; by less than the noise",
        Some(_) => "; part of it may be a difference between GPUs",
        None => "",
    };
    let finding = Finding::deny(
        Code::OverBudget,
        &variant.id,
        format!(
            "`{}` of {}: {was} → {is}, {} from the anchor of {} (budget {}){but}",
            comparison.metric,
            comparison.kernel,
            distance.change.display(unit),
            anchor.time,
            spent.budget.display(unit)
        ),
        format!(
            "fix the kernel, or accept what all changes together cost: sparsek-gate baseline --lock --anchor --reason '...' {}; or {WAIVE}",
            variant.id
        ),
    );
    comparison.finding(finding.warn_for(reason))
}
