//! Reference against current, kernel by kernel and metric by metric.

use crate::evidence::{
    Measurand, below_counters, disturbances, disturbed, implausible, incomplete, incomplete_side,
    too_good, unwatched,
};
use crate::metric::{Level, Role, bounds, display_value, display_values, measures};
use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cause::{Cause, causes, slower};
use super::control::Control;
use super::hotspot::{KernelHotspots, Sampled, moved};
use super::kernels::match_kernels;
use super::metric::{Comparison, Gap, Pair, Reference, Summary, judge};
use super::work::{declared_findings, work_findings};
use crate::config::{Metric, Variant, Work};
use crate::finding::{Code, Finding, WarnReason};
use crate::process::shell_line;
use crate::profile::{Identity, Profile, ProfileOrigin, Provenance};
use crate::terms::{Phase, Tier, VariantId};
use crate::verdict::{Change, Verdict};

/// A duration that falls by more than this is believed only after a look.
const DEFAULT_LARGEST_GAIN_PERCENT: f64 = 50.0;

/// What a variant was compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Its locked baseline.
    Stored,
    /// The base revision, measured side by side.
    Against,
}

/// Everything about one judged variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantReport {
    /// Which one.
    pub variant: VariantId,
    /// Model of the GPU; the compiler's target on the static tier.
    pub gpu: String,
    /// How the current profile was measured.
    #[serde(alias = "rung")]
    pub tier: Tier,
    /// What it was compared with.
    pub mode: Mode,
    /// What its kernels have to do, as declared.
    pub work: Work,
    /// Where the reference came from.
    pub reference: Provenance,
    /// Where the current profile came from.
    pub current: Provenance,
    /// The control that bounded the machine's difference.
    pub control: Option<Control>,
    /// Judged metrics.
    pub comparisons: Vec<Comparison>,
    /// What moved together with what got worse, of each kernel.
    pub causes: Vec<KernelCauses>,
    /// Where the time of kernels that got worse moved, where both sides were sampled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hotspots: Vec<KernelHotspots>,
    /// Base now against the locked baseline, where base and head were measured side by side: how
    /// far machine and toolchain have drifted. It fails no gate.
    pub drift: Vec<Comparison>,
}

impl VariantReport {
    /// Whether more samples may tell what these could not. A variant that fails already does so
    /// whatever the rest of it says, and is measured on only to tell its time.
    /// What is waived decides nothing.
    pub fn open(&self, waived: impl Fn(&str) -> bool) -> bool {
        let fails = self.comparisons.iter().any(|comparison| {
            comparison.verdict == Some(Verdict::Regressed)
                && comparison.level == Level::Deny
                && !waived(&comparison.metric)
        });
        let matters = |comparison: &Comparison| !fails || comparison.role() == Some(Role::Duration);
        let unsure = |comparison: &Comparison| comparison.open && !comparison.not_worse;
        self.comparisons
            .iter()
            .any(|comparison| matters(comparison) && unsure(comparison))
    }
}

/// What moved together in one kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelCauses {
    /// The kernel's function name.
    pub kernel: String,
    /// The change of its duration, where that is a regression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// The metrics in percent that moved with it, most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub percentages: Vec<String>,
    /// The most telling first.
    pub causes: Vec<Cause>,
}

impl KernelCauses {
    /// All of it in one sentence, the most telling first.
    pub fn sentence(&self) -> String {
        let causes = self.causes.iter().map(|cause| cause.text.clone());
        let percentages = self.percentages.join(", ");
        let parts: Vec<String> = causes
            .chain((!percentages.is_empty()).then_some(percentages))
            .collect();
        match &self.duration {
            Some(duration) => format!("{duration}: {}", parts.join("; ")),
            None => parts.join("; "),
        }
    }
}

/// How many comparisons a check of these variants judges on a tier, for the chance of a false alarm: known
/// before anything is measured, and the same when the recording is judged again.
pub fn comparison_count<'a>(
    tier: Tier,
    variants: impl Iterator<Item = (&'a Variant, Option<&'a Profile>)>,
) -> usize {
    variants
        .map(|(variant, locked)| {
            let judged = variant
                .metrics
                .iter()
                .filter(|metric| metric.level != Level::Record && !metric.exact)
                .filter(|metric| measures(tier, &metric.counter, metric.phase))
                .count();
            judged * locked.map_or(1, |locked| locked.kernels.len().max(1))
        })
        .sum()
}

/// Compares a current profile with a reference under the configured metrics of the variant, as
/// part of a check of so many `comparisons`.
pub fn compare(
    variant: &Variant,
    reference: &Reference<'_>,
    current: &Profile,
    comparisons: usize,
) -> (VariantReport, Vec<Finding>) {
    let before = reference.profile();
    let (mode, control) = match reference {
        Reference::Stored { control, .. } => (Mode::Stored, control.cloned()),
        Reference::Base { .. } => (Mode::Against, None),
    };
    let mut report = VariantReport {
        variant: variant.id.clone(),
        gpu: current.identity.gpu.clone(),
        tier: current.identity.tier,
        mode,
        work: variant.work,
        reference: before.provenance.clone(),
        current: current.provenance.clone(),
        control,
        comparisons: Vec::new(),
        causes: Vec::new(),
        hotspots: Vec::new(),
        drift: Vec::new(),
    };
    let mut findings = match reference {
        Reference::Stored { .. } => incomplete(variant, current),
        Reference::Base { .. } => incomplete_side(variant, current),
    };
    let mut differences = identity_differences(&before.identity, &current.identity);
    if let Reference::Base { base, .. } = reference {
        differences.extend(not_side_by_side(base, current));
        findings.extend(incomplete_base(variant, base));
    }
    if !differences.is_empty() {
        findings.push(Finding::deny(
            Code::NotComparable,
            &variant.id,
            format!("{} and current profile were not taken under the same conditions: {}", mode.reference(), differences.join("; ")),
            format!("measure under the baseline's conditions, or lock a new one: sparsek-gate baseline --lock --reason '...' {}", variant.id),
        ));
        return (report, findings);
    }
    let locked = match reference {
        Reference::Stored { locked, .. } => Some(*locked),
        Reference::Base { learned, .. } => *learned,
    };
    findings.extend(locked.map_or_else(Vec::new, |locked| metrics_gone(variant, locked)));
    let (pairs, kernel_findings) = match_kernels(variant, before, current, mode);
    findings.extend(kernel_findings);
    findings.extend(declared_findings(variant, current));
    // A baseline was measured at another time, and what was wrong then was judged then.
    findings.extend(match reference {
        Reference::Stored { .. } => disturbed(variant, current),
        Reference::Base { base, .. } => {
            let mut findings = disturbances(&variant.id, &[("base", base), ("current", current)]);
            findings.extend(unwatched(&variant.id, current));
            findings.extend(below_counters(variant, current));
            findings
        }
    });
    for pair in pairs {
        let mut comparisons_of_pair = Vec::new();
        let mut told = Vec::new();
        let speed = speed_change(variant, reference, current, pair, comparisons);
        for metric in &variant.metrics {
            let (mut comparison, gap) =
                judge(variant, metric, reference, current, pair, comparisons);
            told.extend(finding_of(
                variant,
                metric,
                mode,
                gap,
                &mut comparison,
                speed.as_ref(),
            ));
            // Beside a baseline that lacks the metric, a limit can still be held to.
            if gap.is_none_or(|gap| gap == Gap::Reference) {
                told.extend(limit_finding(variant, metric, &mut comparison));
            }
            told.extend(doubt(
                variant,
                metric,
                &comparison,
                reference,
                current,
                pair,
            ));
            comparisons_of_pair.push(comparison);
        }
        told.extend(work_findings(variant, &mut comparisons_of_pair, mode));
        explain(
            &comparisons_of_pair,
            before,
            current,
            pair,
            &mut told,
            &mut report,
        );
        findings.extend(told);
        report.comparisons.extend(comparisons_of_pair);
    }
    (report, findings)
}

/// A value that cannot be believed.
fn doubt(
    variant: &Variant,
    metric: &Metric,
    comparison: &Comparison,
    reference: &Reference<'_>,
    current: &Profile,
    pair: Pair<'_>,
) -> Option<Finding> {
    // That a value is not there is told by itself.
    if matches!(comparison.verdict, None | Some(Verdict::NotMeasured)) {
        return None;
    }
    let of = Measurand {
        variant: &variant.id,
        kernel: &comparison.kernel,
        alias: &metric.alias,
        counter: &metric.counter,
        unit: comparison.unit.as_deref(),
    };
    let samples = current.samples(pair.current, &metric.alias)?;
    let known = bounds(&metric.counter).unwrap_or((0.0, f64::MAX));
    let believed = (
        metric.plausible.min.unwrap_or(known.0),
        metric.plausible.max.unwrap_or(known.1),
    );
    let values = samples.machines().concat().concat();
    let odd = implausible(&of, &values, Some(believed)).or_else(|| {
        // What was locked was believed then; a base was measured now.
        let Reference::Base { base, .. } = reference else {
            return None;
        };
        let of_base = base.samples(pair.reference, &metric.alias)?;
        let finding = implausible(&of, &of_base.machines().concat().concat(), Some(believed))?;
        Some(Finding {
            message: format!("in the base: {}", finding.message),
            ..finding
        })
    });
    let gain = || {
        let limit = metric.plausible.gain_percent.or_else(|| {
            (metric.role() == Some(Role::Duration)).then_some(DEFAULT_LARGEST_GAIN_PERCENT)
        })?;
        let (before, now) = (comparison.reference?.value, comparison.current?.value);
        (!metric.exact)
            .then(|| too_good(&of, metric.direction, before, now, limit))
            .flatten()
    };
    let finding = odd.or_else(gain)?;
    Some(finding.warn_for(metric.level.warn_reason()))
}

/// Whether a finding says that a kernel got worse.
pub(crate) fn says_worse(finding: &Finding) -> bool {
    matches!(
        finding.code,
        Code::Regressed | Code::LimitExceeded | Code::WorkChanged
    )
}

/// Adds what moved together, and where the time moved, to the first finding of a kernel that got
/// worse.
fn explain(
    comparisons: &[Comparison],
    reference: &Profile,
    current: &Profile,
    pair: Pair<'_>,
    findings: &mut [Finding],
    report: &mut VariantReport,
) {
    // What people ask first is the time: its finding comes first, and tells why.
    let of_time = |finding: &Finding| {
        comparisons.iter().any(|comparison| {
            comparison.role() == Some(Role::Duration)
                && finding.metric.as_ref() == Some(&comparison.metric)
        })
    };
    findings.sort_by_key(|finding| !(says_worse(finding) && of_time(finding)));
    let Some(finding) = findings.iter_mut().find(|finding| says_worse(finding)) else {
        return;
    };
    let kernel = comparisons
        .first()
        .map(|comparison| comparison.kernel.clone())
        .unwrap_or_default();
    let causes = causes(comparisons);
    let (duration, percentages) = slower(comparisons).unzip();
    for cause in &causes {
        with_it(finding, &cause.text);
    }
    let percentages = percentages.unwrap_or_default();
    if !causes.is_empty() || !percentages.is_empty() {
        report.causes.push(KernelCauses {
            kernel: kernel.clone(),
            duration,
            percentages,
            causes,
        });
    }
    let duration_ns = |side: fn(&Comparison) -> Option<Summary>| {
        let mut durations = comparisons.iter();
        let duration = durations.find(|comparison| comparison.role() == Some(Role::Duration))?;
        side(duration).map(|summary| summary.value)
    };
    if let (Some(was), Some(is)) = (&pair.reference.hotspots, &pair.current.hotspots) {
        let reference = Sampled {
            hotspots: was,
            duration_ns: duration_ns(|comparison| comparison.reference),
            sources: &reference.provenance.sources,
        };
        let current = Sampled {
            hotspots: is,
            duration_ns: duration_ns(|comparison| comparison.current),
            sources: &current.provenance.sources,
        };
        let moved = moved(&kernel, &reference, &current);
        if let Some(short) = moved.short() {
            with_it(finding, &short);
        }
        report.hotspots.push(moved);
    }
}

/// Adds to the message of a finding what moved with it.
pub(crate) fn with_it(finding: &mut Finding, text: &str) {
    let joint = if finding.message.contains("; with it: ") {
        "; "
    } else {
        "; with it: "
    };
    finding.message.push_str(joint);
    finding.message.push_str(text);
}

impl Mode {
    /// What the reference is called.
    pub fn reference(self) -> &'static str {
        match self {
            Mode::Stored => "baseline",
            Mode::Against => "base",
        }
    }
}

/// Why two profiles cannot have been measured side by side.
fn not_side_by_side(base: &Profile, head: &Profile) -> Vec<String> {
    let mut differences = Vec::new();
    let (was, is) = (base.gpu_uuids(), head.gpu_uuids());
    if was != is || was.len() != 1 {
        let named = |uuids: &[&str]| match uuids {
            [] => "an unnamed GPU".to_owned(),
            uuids => uuids.join(" and "),
        };
        differences.push(format!(
            "the base was measured on {}, the head on {}",
            named(&was),
            named(&is)
        ));
    }
    let processes = |profile: &Profile| profile.machines(Phase::Timing).len();
    if processes(base) != processes(head) {
        differences.push(format!(
            "the base was measured in {} processes, the head in {}",
            processes(base),
            processes(head)
        ));
    }
    let hashes = |profile: &Profile| -> BTreeSet<String> {
        let captures = profile.provenance.captures.iter();
        captures
            .map(|capture| capture.report.sha256.clone())
            .collect()
    };
    if !hashes(base).is_disjoint(&hashes(head)) {
        differences.push("base and head name the same captures".to_owned());
    }
    if base.provenance.origin != ProfileOrigin::Measured {
        differences.push("the base was imported".to_owned());
    }
    if !base.provenance.overrides.is_empty() {
        differences.push(format!(
            "the base was measured with --define {}",
            base.provenance.overrides.join(" ")
        ));
    }
    differences
}

/// Launches and processes that the base lacks. What it lacks of a metric is told where that is
/// compared, and that it has other kernels by their match.
fn incomplete_base(variant: &Variant, base: &Profile) -> Vec<Finding> {
    incomplete_side(variant, base)
        .into_iter()
        .filter(|finding| finding.code == Code::NotMeasured && finding.metric.is_none())
        .map(|finding| Finding {
            message: format!("in the base: {}", finding.message),
            ..finding
        })
        .collect()
}

fn metrics_gone(variant: &Variant, locked: &Profile) -> Vec<Finding> {
    let gone = locked
        .identity
        .metrics
        .iter()
        .filter(|(alias, _)| !variant.metrics.iter().any(|other| other.alias == **alias));
    gone.map(|(alias, metric)| {
        Finding::deny(
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
        )
        .metric(alias)
    })
    .collect()
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
        "the tier of measurement",
        baseline.tier.to_string(),
        current.tier.to_string(),
    );
    // The conditions are ncu's, and say nothing where it did not measure.
    if baseline.tier != Tier::Counters || current.tier != Tier::Counters {
        return differences;
    }
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
    reference: &Reference<'_>,
    current: &Profile,
    pair: Pair<'_>,
    comparisons: usize,
) -> Option<Speed> {
    let metric = variant
        .metrics
        .iter()
        .find(|metric| metric.role() == Some(Role::Duration) && metric.phase == Phase::Timing)?;
    // A kernel that does other work is not faster.
    let other_work = variant.metrics.iter().any(|metric| {
        metric.exact && metric.level != Level::Record && {
            let (work, _) = judge(variant, metric, reference, current, pair, comparisons);
            work.verdict != Some(Verdict::Pass)
        }
    });
    if other_work {
        return None;
    }
    let (comparison, gap) = judge(variant, metric, reference, current, pair, comparisons);
    let (None, Some(before), Some(now)) = (gap, comparison.reference, comparison.current) else {
        return None;
    };
    let (Some(Change::RelativePercent(change) | Change::Absolute(change)), Some(band)) =
        (comparison.change, comparison.band)
    else {
        return None;
    };
    (change.abs() > band && before.value > 0.0).then(|| Speed {
        relative_percent: 100.0 * (now.value / before.value - 1.0),
    })
}

fn finding_of(
    variant: &Variant,
    metric: &Metric,
    mode: Mode,
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
        // What counts work is told by `work`.
        Verdict::Regressed | Verdict::Inconclusive if metric.exact => return None,
        Verdict::Regressed => {
            let faster = speed
                .filter(|speed| speed.relative_percent < 0.0 && metric.role() != Some(Role::Duration));
            let unit = comparison.unit.as_deref();
            let tolerance = comparison.tolerance.display(unit);
            let (was, is) = match (comparison.reference, comparison.current) {
                (Some(was), Some(is)) => display_values(was.value, is.value, unit),
                _ => Default::default(),
            };
            let band = match (comparison.change, comparison.band) {
                (Some(change), Some(band)) => format!(" ±{}", change.with(band).magnitude(unit)),
                _ => String::new(),
            };
            let mut message =
                format!("{name}: {was} → {is}, {change}{band} (tolerance {tolerance})");
            let mut next = match mode {
                Mode::Stored => format!(
                    "mend the kernel, or accept it: sparsek-gate baseline --lock --reason '...' {}",
                    variant.id
                ),
                Mode::Against => "mend the kernel, or let it pass for a time with a `[[waiver]]`".to_owned(),
            };
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
            finding.warn_for(excused.then_some(WarnReason::UnlessFaster))
        }
        // It may have become better; that it is not worse is certain.
        Verdict::Inconclusive if comparison.not_worse => return None,
        Verdict::Inconclusive => Finding::deny(
            Code::Inconclusive,
            &variant.id,
            format!("{name}: change {change}; {}", comparison.why),
            match mode {
                Mode::Stored => "measure side by side: sparsek-gate check --against REVISION; or raise `profile.max_processes`".to_owned(),
                Mode::Against => "raise `profile.max_rounds`, or measure on a quieter machine".to_owned(),
            },
        ),
        // The current profile's own gaps are told by `incomplete`.
        Verdict::NotMeasured if gap == Some(Gap::Current) => return None,
        Verdict::NotMeasured if gap.is_none() => Finding::deny(
            Code::NotMeasured,
            &variant.id,
            format!("{name} cannot be judged: {}", comparison.why),
            "measure again, with a control that can be believed".to_owned(),
        ),
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
    Some(finding.warn_for(metric.level.warn_reason()))
}

pub(crate) fn limit_finding(
    variant: &Variant,
    metric: &Metric,
    comparison: &mut Comparison,
) -> Option<Finding> {
    let value = comparison.current?.value;
    comparison.verdict?;
    let unit = comparison.unit.as_deref();
    let broken = match (metric.min, metric.max) {
        (Some(min), _) if !(value >= min) => {
            format!("below its limit of {}", display_value(min, unit))
        }
        (_, Some(max)) if !(value <= max) => {
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
            display_value(value, unit)
        ),
        "mend the kernel, or change the limit in the configuration".to_owned(),
    );
    let finding = finding.kernel(&comparison.kernel).metric(&metric.alias);
    Some(finding.warn_for(metric.level.warn_reason()))
}
