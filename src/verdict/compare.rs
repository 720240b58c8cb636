//! Baseline against current, kernel by kernel and metric by metric.

use serde::{Deserialize, Serialize};

use super::display::display_value;
use super::finding::{Code, Finding};
use super::kernels::match_kernels;
use super::measured::incomplete;
use super::rule::{Comparison, Gap, Verdict, judge, uncertainty};
use super::statistics::Summary;
use crate::config::{DURATION_COUNTER, Level, Metric, Variant, VariantId};
use crate::process::shell_line;
use crate::profile::{Identity, KernelProfile, Profile, Provenance};

/// Everything about one judged variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantReport {
    /// Which one.
    pub variant: VariantId,
    /// Model of the GPU.
    pub gpu: String,
    /// Where the baseline came from.
    pub baseline: Provenance,
    /// Where the current profile came from.
    pub current: Provenance,
    /// Judged metrics.
    pub comparisons: Vec<Comparison>,
}

/// Compares a current profile with a baseline under the configured metrics of the variant.
pub fn compare(
    variant: &Variant,
    baseline: &Profile,
    current: &Profile,
) -> (VariantReport, Vec<Finding>) {
    let mut report = VariantReport {
        variant: variant.id.clone(),
        gpu: current.identity.gpu.clone(),
        baseline: baseline.provenance.clone(),
        current: current.provenance.clone(),
        comparisons: Vec::new(),
    };
    let mut findings = incomplete(variant, current);
    let differences = identity_differences(&baseline.identity, &current.identity);
    if !differences.is_empty() {
        findings.push(Finding::deny(
            Code::NotComparable,
            &variant.id,
            format!("baseline and current profile were not taken under the same conditions: {}", differences.join("; ")),
            format!("measure under the baseline's conditions, or lock a new one: sparsek-gate baseline --lock --reason '...' {}", variant.id),
        ));
        return (report, findings);
    }
    for (alias, metric) in &baseline.identity.metrics {
        if !variant.metrics.iter().any(|other| other.alias == *alias) {
            let finding = Finding::deny(
                Code::MetricGone,
                &variant.id,
                format!(
                    "`{alias}` ({}) is locked, and the configuration no longer names it",
                    metric.counter
                ),
                format!(
                    "put it back, or lock a baseline without it: sparsek-gate baseline --lock --reason '...' {}",
                    variant.id
                ),
            );
            findings.push(finding.metric(alias));
        }
    }
    let (pairs, kernel_findings) = match_kernels(variant, baseline, current);
    findings.extend(kernel_findings);
    for (locked, now) in pairs {
        let speed = speed_change(
            variant,
            (&baseline.identity, locked),
            (&current.identity, now),
        );
        for metric in &variant.metrics {
            let definitions = (
                baseline.identity.metrics.get(&metric.alias),
                current.identity.metrics.get(&metric.alias),
            );
            let (mut comparison, gap) = judge(metric, definitions, locked, now);
            let finding = finding_of(variant, metric, gap, &mut comparison, speed.as_ref());
            findings.extend(finding);
            // Beside a baseline that lacks the metric, a limit can still be held to.
            if gap.is_none_or(|gap| gap == Gap::Baseline) {
                findings.extend(limit_finding(variant, metric, &mut comparison));
            }
            report.comparisons.push(comparison);
        }
    }
    (report, findings)
}

/// In words, every condition in which two profiles differ. Metric definitions are compared metric
/// by metric.
fn identity_differences(baseline: &Identity, current: &Identity) -> Vec<String> {
    let mut differences = Vec::new();
    let mut differ = |what: &str, was: String, is: String| {
        if was != is {
            differences.push(format!("{what} was {was}, is {is}"));
        }
    };
    differ("the GPU", baseline.gpu.clone(), current.gpu.clone());
    differ(
        "the compute capability",
        baseline.compute_capability.clone(),
        current.compute_capability.clone(),
    );
    differ(
        "the workload",
        shell_line(&baseline.workload),
        shell_line(&current.workload),
    );
    differ(
        "the rung of measurement",
        format!("{:?}", baseline.rung),
        format!("{:?}", current.rung),
    );
    let conditions = baseline.conditions.named();
    for ((what, was), (_, is)) in conditions.into_iter().zip(current.conditions.named()) {
        // Two unknown conditions are not known to be the same.
        if was.is_none() || was != is {
            differences.push(format!(
                "{what} was {}, is {}",
                was.unwrap_or("unknown"),
                is.unwrap_or("unknown")
            ));
        }
    }
    differences
}

/// How the duration changed, where that is known and certain.
struct Speed {
    relative_percent: f64,
}

/// Only a duration that could itself be judged tells what is faster.
fn speed_change(
    variant: &Variant,
    (baseline, locked): (&Identity, &KernelProfile),
    (current, now): (&Identity, &KernelProfile),
) -> Option<Speed> {
    let metric = variant
        .metrics
        .iter()
        .find(|metric| metric.counter == DURATION_COUNTER)?;
    let definitions = (
        baseline.metrics.get(&metric.alias),
        current.metrics.get(&metric.alias),
    );
    let (comparison, gap) = judge(metric, definitions, locked, now);
    let (None, Some(baseline), Some(current)) = (gap, comparison.baseline, comparison.current)
    else {
        return None;
    };
    let difference = current.median - baseline.median;
    let certain = difference.abs() > uncertainty(&baseline, &current)?;
    (certain && baseline.median > 0.0).then(|| Speed {
        relative_percent: 100.0 * difference / baseline.median,
    })
}

fn finding_of(
    variant: &Variant,
    metric: &Metric,
    gap: Option<Gap>,
    comparison: &mut Comparison,
    speed: Option<&Speed>,
) -> Option<Finding> {
    let change = comparison
        .change
        .map(|change| change.display(comparison.unit.as_deref()))
        .unwrap_or_default();
    let name = format!("`{}` of {}", metric.alias, comparison.kernel);
    let finding = match comparison.verdict? {
        Verdict::Pass | Verdict::Improved => return None,
        Verdict::Regressed => {
            let faster = speed
                .filter(|speed| speed.relative_percent < 0.0 && metric.counter != DURATION_COUNTER);
            let tolerance = metric.tolerance.display(comparison.unit.as_deref());
            let value = |summary: Option<Summary>| {
                let unit = comparison.unit.as_deref();
                summary.map_or_else(String::new, |summary| display_value(summary.median, unit))
            };
            let (was, is) = (value(comparison.baseline), value(comparison.current));
            let mut message = format!("{name}: {was} → {is}, {change} (tolerance {tolerance})");
            let mut next = format!(
                "mend the kernel, or accept it: sparsek-gate baseline --lock --reason '...' {}",
                variant.id
            );
            let mut excused = false;
            if let Some(speed) = faster {
                message.push_str(&format!(
                    ", while the kernel became {:.1} % faster",
                    -speed.relative_percent
                ));
                excused = metric.unless_faster;
                comparison.why = if excused {
                    "worse by more than the tolerance, and excused by `unless_faster`".to_owned()
                } else {
                    next = format!(
                        "a faster kernel may use a unit less: lock it if that is so, or set `unless_faster` on `{}`",
                        metric.alias
                    );
                    format!(
                        "{}, though the kernel became {:.1} % faster",
                        comparison.why, -speed.relative_percent
                    )
                };
            }
            let finding = Finding::deny(Code::Regressed, &variant.id, message, next);
            if excused { finding.warn() } else { finding }
        }
        Verdict::Inconclusive => Finding::deny(
            Code::Inconclusive,
            &variant.id,
            format!("{name}: change {change}; {}", comparison.why),
            "raise `profile.launches`, or measure on a quieter machine".to_owned(),
        ),
        // The current profile's own gaps are told by `incomplete`.
        Verdict::NotMeasured if gap.is_none_or(|gap| gap == Gap::Current) => return None,
        Verdict::NotMeasured => Finding::deny(
            Code::NotComparable,
            &variant.id,
            format!("{name} cannot be compared: {}", comparison.why),
            format!(
                "lock a baseline that holds it: sparsek-gate baseline --lock --reason '...' {}",
                variant.id
            ),
        ),
    };
    let finding = finding.kernel(&comparison.kernel).metric(&metric.alias);
    Some(if metric.level == Level::Warn {
        finding.warn()
    } else {
        finding
    })
}

fn limit_finding(
    variant: &Variant,
    metric: &Metric,
    comparison: &mut Comparison,
) -> Option<Finding> {
    let median = comparison.current?.median;
    comparison.verdict?;
    let unit = comparison.unit.as_deref();
    let broken = match (metric.min, metric.max) {
        (Some(min), _) if !(median >= min) => {
            format!("below its limit of {}", display_value(min, unit))
        }
        (_, Some(max)) if !(median <= max) => {
            format!("above its limit of {}", display_value(max, unit))
        }
        _ => return None,
    };
    comparison.verdict = Some(Verdict::Regressed);
    comparison.why = broken.clone();
    let finding = Finding::deny(
        Code::LimitExceeded,
        &variant.id,
        format!(
            "`{}` of {} is {}, {broken}",
            metric.alias,
            comparison.kernel,
            display_value(median, unit)
        ),
        "mend the kernel, or change the limit in the configuration".to_owned(),
    );
    let finding = finding.kernel(&comparison.kernel).metric(&metric.alias);
    Some(if metric.level == Level::Warn {
        finding.warn()
    } else {
        finding
    })
}
