//! Means and ends: compiled code that got worse only warns where the same check shows, side by side,
//! that the kernels do not take longer. A stored baseline never shows that: it was measured at another
//! time, and maybe on another machine.

use super::metric::Comparison;
use super::mode::Mode;
use crate::finding::{Code, Finding};
use crate::judge::outcome::variant_report::VariantReport;
use crate::metric::Level;
use crate::terms::VariantId;
use crate::verdict::Verdict;

/// Whether reports of a variant show that no kernel takes longer by more than the tolerance of its
/// duration, doing the same work. `findings` are those about the variant so far.
pub(in crate::judge) fn shown_as_fast(
    variant: &VariantId,
    measured: &[VariantReport],
    findings: &[Finding],
) -> bool {
    let mut found = findings.iter();
    let exact = |finding: &Finding| {
        let mut compared = measured.iter().flat_map(|report| &report.comparisons);
        let metric = finding.metric.as_deref();
        compared.any(|one| one.exact && Some(&*one.metric) == metric)
    };
    // More stored sectors are other work too, and `regressed`.
    let is_other_work = |finding: &Finding| {
        finding.code == Code::WorkChanged || finding.code == Code::Regressed && exact(finding)
    };
    let other_work = found.any(|finding| finding.concerns(variant) && is_other_work(finding));
    let beside = measured
        .iter()
        .filter(|report| report.variant == *variant && report.mode == Mode::Against);
    let mut durations = beside
        .flat_map(|report| &report.comparisons)
        .filter(|comparison| comparison.is_duration() && comparison.level != Level::Record)
        .peekable();
    let is_fast = |comparison: &Comparison| {
        matches!(comparison.verdict, Some(Verdict::Pass | Verdict::Improved))
    };
    !other_work && durations.peek().is_some() && durations.all(is_fast)
}
