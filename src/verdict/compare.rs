//! Baseline against current, kernel by kernel and metric by metric.
//!
//! The rule: let `d` be how much worse the current median is, in the metric's direction, and `u`
//! its uncertainty, three standard errors of the difference of two medians. The metric regressed
//! if `d - u` exceeds the tolerance, passes if `d + u` does not, and is inconclusive otherwise;
//! it improved if `-d - u` exceeds the tolerance. The spread comes from the samples of both sides.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::finding::{Code, Finding};
use super::statistics::Summary;
use crate::config::{DURATION_COUNTER, Direction, Level, Metric, Tolerance, Variant, VariantId};
use crate::process::shell_line;
use crate::profile::{Identity, KernelProfile, MetricIdentity, Profile, ProfileOrigin, Provenance};

/// Standard errors that make a difference certain enough to be named.
const CERTAINTY: f64 = 3.0;

/// What is said of one metric of one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Not worse by more than the tolerance.
    Pass,
    /// Better by more than the tolerance.
    Improved,
    /// Worse by more than the tolerance.
    Regressed,
    /// The samples do not tell.
    Inconclusive,
    /// There is no value to judge.
    NotMeasured,
}

/// A signed difference, current minus baseline. Relative and absolute never mix.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Percent of the baseline's median.
    RelativePercent(f64),
    /// In the counter's unit; percentage points for a counter in `%`.
    Absolute(f64),
}

/// One metric of one kernel, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The kernel's function name.
    pub kernel: String,
    /// Blocks in x, y, z.
    pub grid: [u64; 3],
    /// Threads a block in x, y, z.
    pub block: [u64; 3],
    /// The metric's alias.
    pub metric: String,
    /// The counter behind it.
    pub counter: String,
    /// Its unit.
    pub unit: Option<String>,
    /// Which way it gets better.
    pub direction: Direction,
    /// Whether a regression fails the gate.
    pub level: Level,
    /// How much worse is still no regression.
    pub tolerance: Tolerance,
    /// The locked samples.
    pub baseline: Option<Summary>,
    /// The current samples.
    pub current: Option<Summary>,
    /// Current against baseline.
    pub change: Option<Change>,
    /// Half-width of the band around the change, in the terms of the change.
    pub uncertainty: Option<f64>,
    /// The judgement; a metric that is only recorded has none.
    pub verdict: Option<Verdict>,
    /// Why.
    pub why: String,
}

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
    let (pairs, kernel_findings) = match_kernels(variant, baseline, current);
    findings.extend(kernel_findings);
    for (locked, now) in pairs {
        let speed = speed_change(variant, locked, now);
        for metric in &variant.metrics {
            let definitions = (
                baseline.identity.metrics.get(&metric.alias),
                current.identity.metrics.get(&metric.alias),
            );
            let (mut comparison, gap) = judge(metric, definitions, locked, now);
            let finding = finding_of(variant, metric, gap, &mut comparison, speed.as_ref());
            findings.extend(finding);
            // A limit needs no baseline, and a value of this counter in the unit that is known.
            if gap.is_none_or(|gap| gap == Gap::Baseline) {
                findings.extend(limit_finding(variant, metric, &mut comparison));
            }
            report.comparisons.push(comparison);
        }
    }
    (report, findings)
}

/// What keeps a profile from being a whole measurement: launches, kernels or values that are not
/// there. A baseline is locked from, and a gate passes on, whole measurements only.
pub fn incomplete(variant: &Variant, profile: &Profile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let asked = match profile.provenance.origin {
        ProfileOrigin::Measured => {
            variant.profile.launches as usize * variant.profile.processes as usize
        }
        ProfileOrigin::Imported => {
            profile.provenance.launches as usize * profile.provenance.processes as usize
        }
    };
    let found = profile.launch_count();
    if found < asked {
        findings.push(Finding::deny(
            Code::NotMeasured,
            &variant.id,
            format!("{found} launches were measured where {asked} were asked for"),
            "let the program launch more often, or lower `profile.launches`".to_owned(),
        ));
    }
    for expected in &variant.expect {
        if !profile
            .kernels
            .iter()
            .any(|kernel| kernel.name == *expected)
        {
            let seen: Vec<&str> = profile
                .kernels
                .iter()
                .map(|kernel| kernel.name.as_str())
                .collect();
            findings.push(
                Finding::deny(
                    Code::KernelMissing,
                    &variant.id,
                    format!(
                        "the expected kernel `{expected}` was not measured; there were {}",
                        seen.join(", ")
                    ),
                    "mend `expect`, `kernels` or the program".to_owned(),
                )
                .kernel(expected),
            );
        }
    }
    for kernel in &profile.kernels {
        for metric in variant
            .metrics
            .iter()
            .filter(|metric| metric.level != Level::Record)
        {
            if let Some(why) =
                why_not_measured(metric, profile.identity.metrics.get(&metric.alias), kernel)
            {
                let finding = Finding::deny(
                    Code::NotMeasured,
                    &variant.id,
                    format!("`{}` of {} has no value: {why}", metric.alias, kernel.name),
                    "what was not measured does not pass; profile again, or take the metric out of the gate".to_owned(),
                );
                let finding = finding.kernel(&kernel.name).metric(&metric.alias);
                findings.push(if metric.level == Level::Warn {
                    finding.warn()
                } else {
                    finding
                });
            }
        }
    }
    findings
}

/// Why a metric of a profile has no value to judge; `None` where it has one.
fn why_not_measured(
    metric: &Metric,
    definition: Option<&MetricIdentity>,
    kernel: &KernelProfile,
) -> Option<String> {
    let Some(definition) = definition else {
        return Some("the profile does not hold this metric".to_owned());
    };
    if definition.counter != metric.counter {
        return Some(format!(
            "the profile measured `{}` under this name, not `{}`",
            definition.counter, metric.counter
        ));
    }
    let Some(series) = kernel.metrics.get(&metric.alias) else {
        return Some("the kernel does not hold this metric".to_owned());
    };
    let launches = series.launch_count();
    let present = series
        .samples
        .iter()
        .flatten()
        .flatten()
        .filter(|sample| sample.is_finite())
        .count();
    if present < launches || launches == 0 {
        return Some(format!(
            "`{}` was there for {present} of {launches} launches",
            metric.counter
        ));
    }
    if launches < kernel.launch_count() {
        return Some(format!(
            "it holds {launches} launches where other metrics hold {}",
            kernel.launch_count()
        ));
    }
    if definition.unit.is_none() {
        return Some(format!(
            "nothing says which unit `{}` is in",
            metric.counter
        ));
    }
    None
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
    let conditions = [
        (
            "clock control",
            baseline.clock_control.map(|c| c.as_str()),
            current.clock_control.map(|c| c.as_str()),
        ),
        (
            "cache control",
            baseline.cache_control.map(|c| c.as_str()),
            current.cache_control.map(|c| c.as_str()),
        ),
        (
            "replay mode",
            baseline.replay_mode.map(|c| c.as_str()),
            current.replay_mode.map(|c| c.as_str()),
        ),
        (
            "graph profiling",
            baseline.graph_profiling.map(|c| c.as_str()),
            current.graph_profiling.map(|c| c.as_str()),
        ),
    ];
    for (what, was, is) in conditions {
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

type Pairs<'a> = Vec<(&'a KernelProfile, &'a KernelProfile)>;

/// Pairs kernels by code, grid and block; what is left is told apart and named.
fn match_kernels<'a>(
    variant: &Variant,
    baseline: &'a Profile,
    current: &'a Profile,
) -> (Pairs<'a>, Vec<Finding>) {
    let mut pairs = Vec::new();
    let mut gone = Vec::new();
    let mut left: Vec<&KernelProfile> = current.kernels.iter().collect();
    let shape = |kernel: &KernelProfile| (kernel.grid, kernel.block);
    let mut take = |wanted: &dyn Fn(&KernelProfile) -> bool| {
        let at = left.iter().position(|kernel| wanted(kernel))?;
        Some(left.remove(at))
    };
    for locked in &baseline.kernels {
        match take(&|now| now.identity() == locked.identity() && shape(now) == shape(locked)) {
            Some(now) => pairs.push((locked, now)),
            None => gone.push(locked),
        }
    }
    let relock = format!(
        "if that is meant, lock it: sparsek-gate baseline --lock --reason '...' {}",
        variant.id
    );
    let mut findings = Vec::new();
    let mut say = |code, kernel: &KernelProfile, message: String| {
        findings
            .push(Finding::deny(code, &variant.id, message, relock.clone()).kernel(&kernel.name));
    };
    let mut missing = Vec::new();
    for locked in gone {
        if let Some(now) = take(&|now| now.identity() == locked.identity()) {
            say(
                Code::LaunchChanged,
                now,
                format!(
                    "`{}` is launched with grid {} and block {}, the baseline with grid {} and block {}",
                    now.name,
                    dimensions(now.grid),
                    dimensions(now.block),
                    dimensions(locked.grid),
                    dimensions(locked.block)
                ),
            );
        } else if let Some(now) = take(&|now| {
            shape(now) == shape(locked)
                && !baseline
                    .kernels
                    .iter()
                    .any(|other| other.identity() == now.identity())
        }) {
            say(
                Code::KernelRenamed,
                now,
                format!(
                    "`{}` of the baseline is gone, and `{}` is launched with the same grid and block",
                    locked.name, now.name
                ),
            );
        } else {
            missing.push(locked);
        }
    }
    for locked in missing {
        say(
            Code::KernelGone,
            locked,
            format!("`{}` of the baseline was not measured", locked.name),
        );
    }
    let remaining: Vec<&KernelProfile> = left;
    for now in remaining {
        say(
            Code::KernelNew,
            now,
            format!("`{}` is not in the baseline", now.name),
        );
    }
    (pairs, findings)
}

fn dimensions([x, y, z]: [u64; 3]) -> String {
    format!("({x}, {y}, {z})")
}

/// Which profile lacks a value that could be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    Baseline,
    Current,
    /// Each has one, in a unit of its own.
    Unit,
}

fn judge(
    metric: &Metric,
    (locked_definition, definition): (Option<&MetricIdentity>, Option<&MetricIdentity>),
    locked: &KernelProfile,
    now: &KernelProfile,
) -> (Comparison, Option<Gap>) {
    let summary = |kernel: &KernelProfile| {
        kernel
            .metrics
            .get(&metric.alias)
            .and_then(crate::profile::Series::summary)
    };
    let mut comparison = Comparison {
        kernel: now.name.clone(),
        grid: now.grid,
        block: now.block,
        metric: metric.alias.clone(),
        counter: metric.counter.clone(),
        unit: definition.and_then(|definition| definition.unit.clone()),
        direction: metric.direction,
        level: metric.level,
        tolerance: metric.tolerance,
        baseline: summary(locked),
        current: summary(now),
        change: None,
        uncertainty: None,
        verdict: None,
        why: String::new(),
    };
    let gap = match (
        why_not_measured(metric, definition, now),
        why_not_measured(metric, locked_definition, locked),
    ) {
        (Some(why), _) => Some((Gap::Current, why)),
        (None, Some(why)) => Some((Gap::Baseline, format!("in the baseline: {why}"))),
        (None, None) => {
            let unit = |definition: Option<&MetricIdentity>| {
                definition.and_then(|d| d.unit.clone()).unwrap_or_default()
            };
            let (was, is) = (unit(locked_definition), unit(definition));
            (was != is).then(|| (Gap::Unit, format!("the unit was `{was}`, is `{is}`")))
        }
    };
    let (baseline, current) = match (gap, comparison.baseline, comparison.current) {
        (None, Some(baseline), Some(current)) => (baseline, current),
        (gap, _, _) => {
            let (side, why) = gap.unwrap_or((Gap::Current, "there is no sample".to_owned()));
            comparison.verdict = (metric.level != Level::Record).then_some(Verdict::NotMeasured);
            comparison.why = why;
            return (comparison, Some(side));
        }
    };
    let per_unit = match metric.tolerance {
        Tolerance::RelativePercent(_) if baseline.median != 0.0 => {
            Some(100.0 / baseline.median.abs())
        }
        _ => None,
    };
    let difference = current.median - baseline.median;
    comparison.change = Some(match per_unit {
        Some(factor) => Change::RelativePercent(difference * factor),
        None => Change::Absolute(difference),
    });
    let uncertainty = uncertainty(&baseline, &current);
    comparison.uncertainty = uncertainty.map(|value| value * per_unit.unwrap_or(1.0));
    if metric.level == Level::Record {
        comparison.why = "recorded, not judged".to_owned();
        return (comparison, None);
    }
    let allowed = match (metric.tolerance, per_unit) {
        (Tolerance::RelativePercent(percent), Some(factor)) => percent / factor,
        // A share of nothing is nothing.
        (Tolerance::RelativePercent(_), None) => 0.0,
        (Tolerance::Absolute(value), _) => value,
    };
    let worse = match metric.direction {
        Direction::Higher => -difference,
        Direction::Lower => difference,
        Direction::Equal => difference.abs(),
    };
    let (verdict, why) = decide(worse, allowed, uncertainty, metric.direction);
    comparison.verdict = Some(verdict);
    comparison.why = why;
    (comparison, None)
}

fn decide(
    worse: f64,
    allowed: f64,
    uncertainty: Option<f64>,
    direction: Direction,
) -> (Verdict, String) {
    let Some(uncertainty) = uncertainty else {
        let why = "fewer than three launches on both sides: nothing tells how much the values vary";
        return (Verdict::Inconclusive, why.to_owned());
    };
    if worse - uncertainty > allowed {
        return (
            Verdict::Regressed,
            "worse by more than the tolerance and the noise".to_owned(),
        );
    }
    if direction != Direction::Equal && -worse - uncertainty > allowed {
        return (
            Verdict::Improved,
            "better by more than the tolerance and the noise".to_owned(),
        );
    }
    // Written so that a comparison with NaN never passes.
    if worse + uncertainty <= allowed {
        return (Verdict::Pass, "within the tolerance".to_owned());
    }
    (
        Verdict::Inconclusive,
        "the noise reaches across the tolerance: measure more launches".to_owned(),
    )
}

/// Half-width of the band around the difference of two medians, in the samples' unit. A side with
/// too few samples to show a spread borrows the other's; `None` where neither shows one.
fn uncertainty(baseline: &Summary, current: &Summary) -> Option<f64> {
    let baseline_sigma = baseline.sigma.or(current.sigma)?;
    let current_sigma = current.sigma.or(baseline.sigma)?;
    let errors = (
        baseline.median_error(baseline_sigma),
        current.median_error(current_sigma),
    );
    Some(CERTAINTY * errors.0.hypot(errors.1))
}

/// How the duration changed, where that is known and certain.
struct Speed {
    relative_percent: f64,
}

fn speed_change(variant: &Variant, locked: &KernelProfile, now: &KernelProfile) -> Option<Speed> {
    let metric = variant
        .metrics
        .iter()
        .find(|metric| metric.counter == DURATION_COUNTER)?;
    let baseline = locked.metrics.get(&metric.alias)?.summary()?;
    let current = now.metrics.get(&metric.alias)?.summary()?;
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

impl Verdict {
    /// As the reports spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Improved => "improved",
            Verdict::Regressed => "regressed",
            Verdict::Inconclusive => "inconclusive",
            Verdict::NotMeasured => "not measured",
        }
    }
}

impl Change {
    /// `-3.10 %` is relative, `-1.20 pt` is absolute.
    pub fn display(self, unit: Option<&str>) -> String {
        let magnitude = self.magnitude(unit);
        // What rounds to nothing has no direction.
        let sign = match self.value() {
            value if value < 0.0 && magnitude.contains(|c: char| ('1'..='9').contains(&c)) => '-',
            _ => '+',
        };
        format!("{sign}{magnitude}")
    }

    /// The size of the change, without its sign.
    pub fn magnitude(self, unit: Option<&str>) -> String {
        match self {
            Change::RelativePercent(percent) => format!("{:.2} %", percent.abs()),
            Change::Absolute(value) if unit == Some("%") => format!("{:.2} pt", value.abs()),
            Change::Absolute(value) => display_value(value.abs(), unit),
        }
    }

    /// The same kind of change, of another size.
    pub fn with(self, value: f64) -> Change {
        match self {
            Change::RelativePercent(_) => Change::RelativePercent(value),
            Change::Absolute(_) => Change::Absolute(value),
        }
    }

    fn value(self) -> f64 {
        match self {
            Change::RelativePercent(value) | Change::Absolute(value) => value,
        }
    }
}

impl Tolerance {
    /// In the terms of the change that it bounds.
    pub fn display(self, unit: Option<&str>) -> String {
        match self {
            Tolerance::RelativePercent(percent) => format!("{percent} %"),
            Tolerance::Absolute(value) if unit == Some("%") => format!("{value} pt"),
            Tolerance::Absolute(value) => display_value(value, unit),
        }
    }
}

/// A value with its unit, scaled for people: times to us and ms, bytes to MB.
pub fn display_value(value: f64, unit: Option<&str>) -> String {
    let steps: &[(f64, &str)] = match unit {
        Some("ns") => &[(1e9, "s"), (1e6, "ms"), (1e3, "us")],
        Some("byte") => &[(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")],
        Some("byte/s") => &[(1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s")],
        Some("hz") => &[(1e9, "GHz"), (1e6, "MHz")],
        _ => &[],
    };
    let scaled = steps.iter().find(|(factor, _)| value.abs() >= *factor);
    let (value, unit) = match scaled {
        Some((factor, symbol)) => (value / factor, *symbol),
        None => (value, unit.unwrap_or("")),
    };
    let whole = value.fract() == 0.0 || value.abs() >= 1e4;
    let number = if scaled.is_none() && whole && unit != "%" {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    };
    format!("{number} {unit}").trim_end().to_owned()
}

/// The counters that a configuration's metrics stand for, by alias.
pub fn counters(metrics: &[Metric]) -> BTreeMap<String, String> {
    metrics
        .iter()
        .map(|metric| (metric.alias.clone(), metric.counter.clone()))
        .collect()
}
