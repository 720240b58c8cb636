//! What is reported of processes that are far from their siblings.

use super::variant_report::VariantReport;
use crate::config::Variant;
use crate::finding::{Code, Finding};
use crate::verdict::Outlying;

/// The warning that rounds of a variant were set aside, or that too many processes are outlying; by the
/// metric that shows the most.
pub(super) fn outlying_finding(variant: &Variant, report: &VariantReport) -> Option<Finding> {
    let of_each = report.comparisons.iter().filter_map(|comparison| {
        let outlying = comparison.outlying.as_ref()?;
        Some((comparison, outlying))
    });
    // Of equals the last one found is the largest, so in reverse the first.
    let found: Vec<_> = of_each.collect();
    let most = |(_, outlying): &&(_, &Outlying)| outlying.base + outlying.current;
    let (shown, outlying) = found.iter().rev().max_by_key(most)?;
    let mut others: Vec<&str> = found
        .iter()
        .map(|(other, _)| other.metric.as_str())
        .collect();
    others.retain(|other| *other != shown.metric);
    others.dedup();
    let others = match others.is_empty() {
        true => String::new(),
        false => format!(" (also by {})", others.join(", ")),
    };
    let message = format!(
        "`{}` of {}: outlying processes are {outlying}{others}; {}",
        shown.metric,
        shown.kernel,
        set_aside(outlying)
    );
    Some(shown.finding(Finding::of(Code::OutlyingProcesses, &variant.id, message)))
}

/// What follows for the verdict.
fn set_aside(outlying: &Outlying) -> String {
    let rounds: Vec<String> = outlying.set_aside.iter().map(usize::to_string).collect();
    match rounds.as_slice() {
        [] => "these are too many to set aside, so this metric cannot pass".to_owned(),
        [round] => format!("round {round} is not judged"),
        rounds => format!("rounds {} are not judged", rounds.join(", ")),
    }
}
