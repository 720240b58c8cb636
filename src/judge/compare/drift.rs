//! Whether the base itself reads as it was locked.

use crate::config::Variant;
use crate::finding::{Code, Finding};
use crate::judge::outcome::variant_report::VariantReport;
use crate::profile::Profile;
use crate::verdict::Verdict;

/// No baseline confirms the numbers of a base that came with the recording.
pub(crate) fn unvouched(variant: &Variant, base: &Profile) -> Finding {
    let message = format!(
        "it is compared with the base in the recording, and no baseline on {} confirms the numbers of that base",
        base.identity.gpu
    );
    let next = "lock a baseline on that GPU, or measure side by side where the change cannot write";
    Finding::deny(Code::Drift, &variant.id, message, next)
}

/// Metrics in which the base differs from its locked baseline.
pub(crate) fn drifted(variant: &Variant, drift: &VariantReport, same_code: bool) -> Vec<Finding> {
    let why = match same_code {
        true => "machine, driver or toolchain changed",
        false => "its code differs from the locked code",
    };
    let moved = drift.comparisons.iter().filter(|comparison| {
        matches!(
            comparison.verdict,
            Some(Verdict::Regressed | Verdict::Improved)
        )
    });
    moved
        .map(|comparison| {
            let unit = comparison.unit.as_deref();
            let change = comparison
                .change
                .map(|change| change.display(unit))
                .unwrap_or_default();
            let message = format!(
                "the base reads {change} in `{}` of {} against its locked baseline: {why}, not this change",
                comparison.metric, comparison.kernel
            );
            comparison.finding(Finding::of(Code::Drift, &variant.id, message))
        })
        .collect()
}
