//! Compiled against compiled: the gate of the static tier. A compiler gives the same answer every
//! time, so there is no noise and no band, and a difference is one.

use std::collections::BTreeMap;

use super::cause::{Cause, CauseKind, slower};
use super::compare::{KernelCauses, Mode, VariantReport, limit_finding, says_worse, with_it};
use super::kernels::match_kernels;
use super::metric::{Comparison, Pair, Summary};
use crate::config::{Metric, Variant};
use crate::evidence::{incomplete_compiled, static_value};
use crate::finding::{Code, Finding};
use crate::metric::{Direction, Level, Tolerance, display_value};
use crate::profile::{KernelProfile, Profile};
use crate::terms::Tier;
use crate::verdict::{Change, Verdict};

/// Most opcodes that a difference of machine code names.
const NAMED_OPCODES: usize = 6;

/// Opcodes of tensor cores, memory and barriers: what the others are for.
const TELLING: [&str; 26] = [
    "HMMA", "IMMA", "BMMA", "DMMA", "QMMA", "OMMA", "HGMMA", "IGMMA", "BGMMA", "QGMMA", "LDG",
    "STG", "LDGSTS", "LDS", "LDSM", "STS", "STSM", "LDL", "STL", "UTMALDG", "UTMASTG", "UBLKCP",
    "BAR", "MEMBAR", "WARPSYNC", "CALL",
];

/// What the hardware has a limited number of, in words.
const RESOURCES: [(&str, &str); 4] = [
    ("registers", "registers"),
    ("spill_bytes", "spilled bytes"),
    ("stack_bytes", "stack bytes"),
    ("static_shared_bytes", "static shared bytes"),
];

/// Compares what the compiler made of a variant with a reference of the static tier.
pub fn compare_compiled(
    variant: &Variant,
    reference: &Profile,
    mode: Mode,
    current: &Profile,
) -> (VariantReport, Vec<Finding>) {
    let mut report = VariantReport {
        variant: variant.id.clone(),
        gpu: current.identity.gpu.clone(),
        tier: Tier::Static,
        mode,
        work: variant.work,
        reference: reference.provenance.clone(),
        current: current.provenance.clone(),
        control: None,
        comparisons: Vec::new(),
        causes: Vec::new(),
        hotspots: Vec::new(),
        drift: Vec::new(),
    };
    let mut findings = incomplete_compiled(variant, current);
    let differences = differences(reference, current);
    if !differences.is_empty() {
        findings.push(Finding::deny(
            Code::NotComparable,
            &variant.id,
            format!(
                "{} and current code were not compiled alike: {}",
                mode.reference(),
                differences.join("; ")
            ),
            format!(
                "compile with the compiler that is locked, or lock what this one makes: sparsek-gate baseline --lock --static --reason '...' {}",
                variant.id
            ),
        ));
        return (report, findings);
    }
    let (pairs, kernel_findings) = match_kernels(variant, reference, current, mode);
    findings.extend(kernel_findings);
    findings.extend(performance_losses(variant, current));
    for pair in pairs {
        let mut worse = Vec::new();
        for metric in &variant.static_metrics {
            let Some(mut comparison) = judge(metric, reference, current, pair) else {
                continue;
            };
            worse.extend(finding_of(variant, metric, mode, &comparison));
            worse.extend(limit_finding(variant, metric, &mut comparison));
            report.comparisons.push(comparison);
        }
        if let (Some(finding), Some(text)) = (worse.first_mut(), code_difference(pair)) {
            finding.message.push_str("; with it: ");
            finding.message.push_str(&text);
            report.causes.push(KernelCauses {
                kernel: current.label(pair.current).to_owned(),
                duration: None,
                percentages: Vec::new(),
                causes: vec![Cause {
                    kind: CauseKind::OtherCode,
                    text,
                }],
            });
        }
        findings.extend(worse);
    }
    (report, findings)
}

/// Tells of each kernel that got worse when it ran what the compiler made of it otherwise:
/// registers, spills, instructions. `findings` are those of the run.
pub fn explain_by_code(
    variant: &Variant,
    reference: &Profile,
    current: &Profile,
    report: &mut VariantReport,
    findings: &mut [Finding],
) {
    // Another compiler's code differs everywhere.
    if !differences(reference, current).is_empty() {
        return;
    }
    let (pairs, _) = match_kernels(variant, reference, current, report.mode);
    for pair in pairs {
        let kernel = &pair.current.name;
        // Of kernels that share a name the run does not tell which is which.
        if current.label(pair.current) != kernel {
            continue;
        }
        let finding = findings
            .iter_mut()
            .find(|finding| says_worse(finding) && finding.kernel.as_ref() == Some(kernel));
        let (Some(finding), Some(text)) = (finding, resources_and_code(pair)) else {
            continue;
        };
        with_it(finding, &text);
        let cause = Cause {
            kind: CauseKind::OtherCode,
            text,
        };
        match report.causes.iter_mut().find(|own| own.kernel == *kernel) {
            Some(own) => own.causes.push(cause),
            None => {
                let own: Vec<Comparison> = report
                    .comparisons
                    .iter()
                    .filter(|comparison| comparison.kernel == *kernel)
                    .cloned()
                    .collect();
                let (duration, percentages) = slower(&own).unzip();
                report.causes.push(KernelCauses {
                    kernel: kernel.clone(),
                    duration,
                    percentages: percentages.unwrap_or_default(),
                    causes: vec![cause],
                });
            }
        }
    }
}

/// What a thread or block takes otherwise, and how the machine code differs; `None` where nothing
/// does.
fn resources_and_code(pair: Pair<'_>) -> Option<String> {
    let same = |code: &crate::profile::Code| code.text_sha256.clone();
    if pair.reference.code.as_ref().map(same) == pair.current.code.as_ref().map(same) {
        return None;
    }
    let steps: Vec<String> = RESOURCES
        .iter()
        .filter_map(|(name, words)| {
            let (was, is) = (
                static_value(pair.reference, name)?,
                static_value(pair.current, name)?,
            );
            (was != is).then(|| format!("{words} {was} → {is}"))
        })
        .collect();
    let parts: Vec<String> = steps.into_iter().chain(telling_opcodes(pair)).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The instructions that tell of speed and that there are more or fewer of: `SASS: 12 HMMA fewer,
/// 40 LDL more`.
fn telling_opcodes(pair: Pair<'_>) -> Option<String> {
    let counts = |kernel: &KernelProfile| -> Option<BTreeMap<String, u32>> {
        let mut counts = BTreeMap::new();
        for (opcode, count) in kernel.code.as_ref()?.opcodes.as_ref()? {
            let base = opcode.split('.').next().unwrap_or(opcode);
            if TELLING.contains(&base) {
                let sum: &mut u32 = counts.entry(base.to_owned()).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
        Some(counts)
    };
    let (was, is) = (counts(pair.reference)?, counts(pair.current)?);
    let mut steps: Vec<(i64, &String)> = was
        .keys()
        .chain(is.keys().filter(|opcode| !was.contains_key(*opcode)))
        .map(|opcode| {
            let of = |counts: &BTreeMap<String, u32>| {
                i64::from(counts.get(opcode).copied().unwrap_or(0))
            };
            (of(&is) - of(&was), opcode)
        })
        .filter(|(step, _)| *step != 0)
        .collect();
    steps.sort_by_key(|(step, opcode)| (std::cmp::Reverse(step.abs()), opcode.as_str()));
    let named: Vec<String> = steps
        .iter()
        .take(NAMED_OPCODES)
        .map(|(step, opcode)| {
            let way = if *step > 0 { "more" } else { "fewer" };
            format!("{} {opcode} {way}", step.abs())
        })
        .collect();
    (!named.is_empty()).then(|| format!("SASS: {}", named.join(", ")))
}

/// What the compiler says that costs performance: told each time, gated by its count.
fn performance_losses(variant: &Variant, current: &Profile) -> Vec<Finding> {
    let named = |function: &str| {
        let mut kernels = current.kernels.iter();
        kernels.find(|kernel| kernel.mangled.as_deref() == Some(function))
    };
    let mut findings = Vec::new();
    for warning in &current.provenance.warnings {
        let kernel = warning.function.as_deref().and_then(named);
        // One about a kernel that is not measured concerns nobody here.
        if warning.function.is_some() && kernel.is_none() {
            continue;
        }
        let finding = Finding::deny(
            Code::PerformanceLoss,
            &variant.id,
            format!("the compiler says ({}): {}", warning.code, warning.message),
            "change the kernel so that the compiler need not; the count is gated as `performance_warnings`"
                .to_owned(),
        );
        findings.push(match kernel {
            Some(kernel) => finding.kernel(current.label(kernel)),
            None => finding,
        });
    }
    findings
}

fn differences(reference: &Profile, current: &Profile) -> Vec<String> {
    let unknown = || "unknown".to_owned();
    let sides = |profile: &Profile| {
        [
            ("the target", profile.identity.gpu.clone()),
            (
                "the compiler",
                profile.identity.compiler.clone().unwrap_or_else(unknown),
            ),
            ("the tier of measurement", profile.identity.tier.to_string()),
        ]
    };
    sides(reference)
        .into_iter()
        .zip(sides(current))
        .filter(|((_, was), (_, is))| was != is)
        .map(|((what, was), (_, is))| format!("{what} was {was}, is {is}"))
        .collect()
}

/// A metric of two kernels; `None` where neither side knows it and nothing is asked of it.
fn judge(
    metric: &Metric,
    reference: &Profile,
    current: &Profile,
    pair: Pair<'_>,
) -> Option<Comparison> {
    let (was, is) = (
        static_value(pair.reference, &metric.alias),
        static_value(pair.current, &metric.alias),
    );
    let gated = metric.level != Level::Record;
    if was.is_none() && is.is_none() && !gated {
        return None;
    }
    let unit = [current, reference]
        .iter()
        .find_map(|profile| profile.identity.metrics.get(&metric.alias)?.unit.clone());
    let mut comparison = Comparison {
        kernel: current.label(pair.current).to_owned(),
        grid: pair.current.grid,
        block: pair.current.block,
        metric: metric.alias.clone(),
        counter: metric.counter.clone(),
        unit,
        direction: metric.direction,
        level: metric.level,
        exact: false,
        never_zero: metric.never_zero,
        tolerance: metric.tolerance,
        reference: was.map(Summary::of_one),
        current: is.map(Summary::of_one),
        samples: None,
        change: None,
        band: None,
        allowance: None,
        threshold: None,
        verdict: None,
        open: false,
        not_worse: false,
        why: String::new(),
    };
    let (Some(was), Some(is)) = (was, is) else {
        let side = if is.is_none() {
            "current code"
        } else {
            "reference"
        };
        comparison.verdict = gated.then_some(Verdict::NotMeasured);
        comparison.why = format!("not known of the {side}");
        return Some(comparison);
    };
    let (change, by, limit) = match metric.tolerance {
        Tolerance::RelativePercent(limit) if was > 0.0 => {
            let percent = 100.0 * (is / was - 1.0);
            (Change::RelativePercent(percent), percent, limit)
        }
        // From nothing every step is too large for any percentage.
        Tolerance::RelativePercent(_) => (Change::Absolute(is - was), is - was, 0.0),
        Tolerance::Absolute(limit) => (Change::Absolute(is - was), is - was, limit),
    };
    comparison.change = Some(change);
    comparison.band = Some(0.0);
    if !gated {
        comparison.why = "recorded, not judged".to_owned();
        return Some(comparison);
    }
    let (verdict, why) = if metric.never_zero {
        if was > 0.0 && is == 0.0 {
            (Verdict::Regressed, "there is none left")
        } else {
            (Verdict::Pass, "not lost: only none at all is a regression")
        }
    } else {
        let worse = match metric.direction {
            Direction::Lower => by,
            Direction::Higher => -by,
            Direction::Equal => by.abs(),
        };
        comparison.threshold = Some(match metric.direction {
            Direction::Higher => -limit,
            Direction::Lower | Direction::Equal => limit,
        });
        if !(worse <= limit) {
            (Verdict::Regressed, "worse by more than the tolerance")
        } else if -worse > limit {
            (Verdict::Improved, "better by more than the tolerance")
        } else if by == 0.0 {
            (Verdict::Pass, "the same")
        } else {
            (Verdict::Pass, "within the tolerance")
        }
    };
    comparison.verdict = Some(verdict);
    comparison.not_worse = matches!(verdict, Verdict::Pass | Verdict::Improved);
    comparison.why = why.to_owned();
    Some(comparison)
}

fn finding_of(
    variant: &Variant,
    metric: &Metric,
    mode: Mode,
    comparison: &Comparison,
) -> Option<Finding> {
    let unit = comparison.unit.as_deref();
    let value = |side: Option<Summary>| {
        side.map_or_else(
            || "unknown".to_owned(),
            |side| display_value(side.value, unit),
        )
    };
    let (was, is) = (value(comparison.reference), value(comparison.current));
    let finding = match comparison.verdict? {
        Verdict::Regressed => {
            let tolerance = if metric.never_zero {
                "never to none".to_owned()
            } else {
                format!("tolerance {}", metric.tolerance.display(unit))
            };
            let next = match mode {
                Mode::Stored => format!(
                    "mend the kernel, or accept it: sparsek-gate baseline --lock --static --reason '...' {}",
                    variant.id
                ),
                Mode::Against => {
                    "mend the kernel, or let it pass for a time with a `[[waiver]]`".to_owned()
                }
            };
            Finding::deny(
                Code::Regressed,
                &variant.id,
                format!(
                    "`{}` of {}: {was} → {is} ({tolerance})",
                    metric.alias, comparison.kernel
                ),
                next,
            )
        }
        // What the current code lacks is told by itself.
        Verdict::NotMeasured if comparison.current.is_some() => Finding::deny(
            Code::NotMeasured,
            &variant.id,
            format!(
                "the {} does not hold `{}` of {}",
                mode.reference(),
                metric.alias,
                comparison.kernel
            ),
            format!(
                "lock it: sparsek-gate baseline --lock --static --reason '...' {}",
                variant.id
            ),
        ),
        _ => return None,
    };
    let finding = finding.kernel(&comparison.kernel).metric(&metric.alias);
    Some(finding.warn_for(metric.level.warn_reason()))
}

/// How the machine code of two kernels differs, in a few opcodes; those that changed most first.
fn code_difference(pair: Pair<'_>) -> Option<String> {
    let (was, is) = (pair.reference.code.as_ref()?, pair.current.code.as_ref()?);
    if was.text_sha256 == is.text_sha256 {
        return Some("the machine code is the same".to_owned());
    }
    let (was, is) = (was.opcodes.as_ref()?, is.opcodes.as_ref()?);
    let mut steps: Vec<(&str, u32, u32)> = was
        .keys()
        .chain(is.keys())
        .map(|opcode| {
            let count = |side: &BTreeMap<String, u32>| {
                side.get(opcode).copied().unwrap_or(0)
            };
            (opcode.as_str(), count(was), count(is))
        })
        // Padding follows from the rest.
        .filter(|(opcode, was, is)| was != is && *opcode != "NOP")
        .collect();
    steps.sort();
    steps.dedup();
    // What came from nothing, or went to it, tells most.
    steps.sort_by_key(|(_, was, is)| {
        (
            std::cmp::Reverse(*was == 0 || *is == 0),
            std::cmp::Reverse(was.abs_diff(*is)),
        )
    });
    let named: Vec<String> = steps
        .iter()
        .take(NAMED_OPCODES)
        .map(|(opcode, was, is)| format!("{opcode} {was} → {is}"))
        .collect();
    if named.is_empty() {
        return Some("the same instructions in another order".to_owned());
    }
    let more = steps.len().saturating_sub(NAMED_OPCODES);
    let more = if more > 0 {
        format!(" and {more} more opcodes")
    } else {
        String::new()
    };
    Some(format!("machine code: {}{more}", named.join(", ")))
}
