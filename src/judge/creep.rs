//! The findings on recorded changes that add up to a loss.

use super::variant_report::VariantReport;
use crate::baseline::{Anchor, EffectEntry};
use crate::config::Variant;
use crate::finding::{Code, Finding};
use crate::history::recorded_creeps;

/// The creeps that the recorded effects show. The change under review did not cause them, so they warn.
pub(super) fn creep_findings(
    variant: &Variant,
    anchor: Option<&Anchor>,
    effects: &[EffectEntry],
    report: &VariantReport,
) -> Vec<Finding> {
    let creeps = recorded_creeps(variant, anchor, effects).into_iter();
    let findings = creeps.map(|one| {
        let mut comparisons = report.comparisons.iter();
        let comparison = comparisons.find(|comparison| comparison.metric == one.metric);
        let unit = comparison.and_then(|comparison| comparison.unit.as_deref());
        let budget = one
            .budget
            .map(|budget| format!(" (budget {})", budget.display(unit)));
        let finding = Finding::deny(
            Code::Creep,
            &variant.id,
            format!(
                "`{}` of {}: the last {} recorded changes add up to {} ±{}, since {}{}",
                one.metric,
                one.kernel,
                one.changes,
                one.total.display(unit),
                one.total.with(one.band).magnitude(unit),
                one.since,
                budget.unwrap_or_default()
            ),
            format!(
                "find the change that cost most: sparsek-gate history {0}; if all of it is accepted: sparsek-gate baseline --lock --anchor --reason '...' {0}",
                variant.id
            ),
        );
        finding.kernel(&one.kernel).metric(&one.metric)
    });
    findings.collect()
}
