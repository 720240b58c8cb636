//! Whether a kernel does the same work, which comes before its speed: a kernel that computes less
//! is not faster.

use super::metric::Comparison;
use super::mode::Mode;
use super::precision::precision_findings;
use crate::config::{Counts, Metric, Variant};
use crate::evidence::why_not_measured;
use crate::finding::{Code, Finding};
use crate::judge::explain::cause::counted;
use crate::metric::{Role, source_type};
use crate::profile::{KernelProfile, Profile};
use crate::terms::Tier;
use crate::verdict::Verdict;

/// A double represents every whole number below this, and their sums, exactly.
const EXACT_BELOW: f64 = 9_007_199_254_740_992.0;

/// The units of declared operations and of declared bytes.
const FLOP: &str = "FLOP";
const BYTES: &str = "B";

/// Whether a kernel touches more sectors with global stores than the reference. A sector counts each
/// time that a warp writes to it, so this is less coalesced stores, or more bytes.
fn stores_more(comparison: &Comparison) -> bool {
    let more = comparison.change.is_some_and(|change| change.value() > 0.0);
    more && comparison.role() == Some(Role::GlobalStoreSectors)
}

/// The finding that stores take more sectors, where the suite declares the bytes that it writes: the
/// work is the same, and costs more.
fn uncoalesced(variant: &Variant, what: &str, mode: Mode) -> Finding {
    Finding::deny(
        Code::Regressed,
        &variant.id,
        format!(
            "{what}: more sectors for the bytes that the suite declares: its stores are less coalesced, or bytes are written twice"
        ),
        mode.fix_or_accept(variant, Tier::Counters),
    )
}

/// What the exact counters say of the work of each kernel. Where it changed, no other comparison
/// of that kernel reads as an improvement any more.
pub(crate) fn work_findings(
    variant: &Variant,
    comparisons: &mut [Comparison],
    mode: Mode,
) -> Vec<Finding> {
    let reference = mode.reference();
    let (mut findings, mut changed) = precision_findings(
        variant,
        comparisons,
        mode,
        &instead_of_other_work(variant, mode),
    );
    let other_types = changed.clone();
    let is_said = |comparison: &Comparison| {
        source_type(&comparison.counter).is_some() && other_types.contains(&comparison.launched())
    };
    let exact = comparisons.iter().filter(|comparison| comparison.exact);
    for comparison in exact.filter(|comparison| !is_said(comparison)) {
        let name = format!("`{}` of {}", comparison.metric, comparison.kernel);
        let finding = if let Some((was, is)) = other_work(comparison) {
            let change = comparison
                .change
                .map(|change| format!(", {}", change.display(comparison.unit.as_deref())))
                // One count of billions rounds to nothing.
                .filter(|change| change != ", +0.00 %")
                .unwrap_or_default();
            let what = format!("{name}: {was} → {is}{change}");
            if stores_more(comparison) && variant.work.bytes_written.is_some() {
                findings.push(comparison.finding(uncoalesced(variant, &what, mode)));
                continue;
            }
            changed.insert(comparison.launched());
            let stores = match stores_more(comparison) {
                true => "its stores are less coalesced, or it writes more bytes; ",
                false => "",
            };
            let message = format!(
                "{what}: {stores}it does other work than the {reference}, so its speed does not compare"
            );
            let next = instead_of_other_work(variant, mode);
            Finding::deny(Code::WorkChanged, &variant.id, message, next)
        } else if comparison.verdict == Some(Verdict::Inconclusive) {
            Finding::deny(
                Code::Inconclusive,
                &variant.id,
                format!(
                    "{name}: {}, so it is unknown whether it does the work of the {reference}",
                    comparison.why
                ),
                "let every launch do the same work, or remove `exact` from the metric; where programs are compared, state what checks the numbers: --verify CMD",
            )
        } else {
            continue;
        };
        findings.push(comparison.finding(finding));
    }
    let of_changed = comparisons
        .iter_mut()
        .filter(|comparison| !comparison.exact && changed.contains(&comparison.launched()));
    of_changed.for_each(not_faster);
    findings
}

/// What a kernel that does other work takes part in is not faster.
pub(crate) fn not_faster(comparison: &mut Comparison) {
    if comparison.verdict != Some(Verdict::Improved) {
        return;
    }
    comparison.verdict = Some(Verdict::Inconclusive);
    // More samples would not change that.
    comparison.open = false;
    comparison.why = "the work changed: a kernel that does other work is not faster".to_owned();
}

/// The next step where a kernel does other work.
fn instead_of_other_work(variant: &Variant, mode: Mode) -> String {
    match mode {
        Mode::Stored | Mode::Against | Mode::New => mode.fix_or_accept(variant, Tier::Counters),
        Mode::Programs => "do the same work; if another way to do it is meant, state what checks the numbers: --verify CMD".to_owned(),
    }
}

/// The values of an exact counter that is worse because it reads otherwise than the reference, and
/// not because it is outside its limit.
fn other_work(comparison: &Comparison) -> Option<(f64, f64)> {
    let (was, is) = (comparison.reference?.value, comparison.current?.value);
    (comparison.verdict == Some(Verdict::Regressed) && was != is).then_some((was, is))
}

/// The work that the suite declares against what the hardware counted, in one launch of each
/// kernel of the profile. What was not measured is reported by [`crate::evidence::incomplete`].
pub(crate) fn declared_findings(variant: &Variant, profile: &Profile) -> Vec<Finding> {
    let work = variant.work;
    let declared = [(work.flop, FLOP), (work.bytes_written, BYTES)].into_iter();
    declared
        .filter_map(|(declared, unit)| declared_finding(variant, profile, declared?, unit))
        .collect()
}

fn declared_finding(
    variant: &Variant,
    profile: &Profile,
    declared: u64,
    unit: &str,
) -> Option<Finding> {
    let (least, most) = work_counted(variant, profile, unit)?;
    // From 2^53 on equal doubles do not show equal counts.
    let same = least == most && most < EXACT_BELOW && most == declared as f64;
    if same {
        return None;
    }
    // A sector counts each time that it is written, so more of them for the declared bytes are stores
    // that are not coalesced. More FLOP, or counts that vary, are other work.
    let excess = least == most && most > declared as f64 && unit == BYTES;
    let display = |value: f64| counted(value, unit);
    let wanted = display(declared as f64);
    let message = if least != most {
        format!(
            "the hardware counted {} in one launch of its kernels and {} in another, its `work` declares {wanted}",
            display(least),
            display(most),
        )
    } else if display(most) == wanted {
        format!(
            "the hardware counted {most} {unit} in one launch of its kernels, its `work` declares {declared} {unit}"
        )
    } else {
        let share = if declared == 0 {
            String::new()
        } else {
            format!(" ({:.1} %)", 100.0 * most / declared as f64)
        };
        format!(
            "the hardware counted {} in one launch of its kernels, its `work` declares {wanted}{share}",
            display(most)
        )
    };
    let (code, message) = match excess {
        true => (
            Code::Regressed,
            format!("{message}: its stores are not coalesced, or bytes are written twice"),
        ),
        false => (Code::WorkChanged, message),
    };
    let next =
        "fix the kernel, or its `work`, of the variant or its suite, where the problem changed";
    Some(Finding::deny(code, &variant.id, message, next))
}

/// The least and the most work of one launch of each kernel, in the terms of the declaration: the
/// same where every launch counts the same. `None` where anything that counts was not measured.
fn work_counted(variant: &Variant, profile: &Profile, unit: &str) -> Option<(f64, f64)> {
    let metrics = variant.metrics.iter();
    let counting = metrics.filter_map(|metric| match (metric.counts?, unit) {
        (Counts::Flop(factor), FLOP) | (Counts::BytesWritten(factor), BYTES) => {
            Some((metric, factor))
        }
        _ => None,
    });
    let counting: Vec<(&Metric, f64)> = counting.collect();
    if counting.is_empty() || profile.kernels.is_empty() {
        return None;
    }
    let mut sum = (0.0, 0.0);
    for kernel in &profile.kernels {
        for (metric, factor) in &counting {
            let (least, most) = launches_range(metric, profile, kernel)?;
            sum.0 += least * factor;
            sum.1 += most * factor;
        }
    }
    Some(sum)
}

/// The smallest and the largest value of any launch.
fn launches_range(
    metric: &Metric,
    profile: &Profile,
    kernel: &KernelProfile,
) -> Option<(f64, f64)> {
    if why_not_measured(metric, profile, kernel).is_some() {
        return None;
    }
    let samples = &kernel.metrics.get(&metric.alias)?.samples;
    let launches = samples.iter().flatten().flatten().copied();
    let least = launches.clone().min_by(f64::total_cmp)?;
    Some((least, launches.max_by(f64::total_cmp)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Work, tests as config};
    use crate::finding::Severity;
    use crate::judge::explain::cause::tests::comparison;
    use crate::metric::Level;
    use crate::profile::{MetricIdentity, Series, tests::recorded};

    fn exact(alias: &str, was: f64, is: f64, verdict: Verdict) -> Comparison {
        Comparison {
            metric: alias.to_owned(),
            level: Level::Deny,
            exact: true,
            verdict: Some(verdict),
            why: "it differs from launch to launch".to_owned(),
            ..comparison("sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32.sum", was, is)
        }
    }

    fn duration(verdict: Verdict) -> Comparison {
        Comparison {
            metric: "duration".to_owned(),
            level: Level::Deny,
            verdict: Some(verdict),
            open: true,
            why: "as it was".to_owned(),
            ..comparison("gpu__time_duration.sum", 2e6, 1e6)
        }
    }

    /// Of a suite that declares 100 FLOP and 64 bytes, counted by four metrics.
    fn variant() -> Variant {
        config::variant(
            "[metric.wmma]\ncounter = \"sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32.sum\"\n\
             exact = true\ncounts = { flop = 1 }\n\
             [metric.fma]\ncounter = \"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum\"\n\
             exact = true\ncounts = { flop = 2 }\n\
             [metric.stored]\ncounter = \"l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum\"\n\
             exact = true\ncounts = { bytes_written = 32 }\n\
             [metric.instructions]\ncounter = \"smsp__inst_executed.sum\"\nexact = true\n\
             [suite.s]\nwork = { flop = 100, bytes_written = 64 }\n\
             [suite.s.variant.v]\nrun = [\"x\"]\n",
        )
    }

    /// Of kernels, each a list of an alias and what its launches counted.
    fn profile(variant: &Variant, kernels: &[&[(&str, &[f64])]]) -> Profile {
        let mut profile = recorded();
        profile.provenance.captures.clear();
        let identity = |metric: &crate::config::Metric| MetricIdentity {
            counter: metric.counter.clone(),
            unit: Some(String::new()),
            phase: metric.phase,
        };
        let metrics = variant.metrics.iter();
        let metrics = metrics.map(|metric| (metric.alias.clone(), identity(metric)));
        profile.identity.metrics = metrics.collect();
        let measured = profile.kernels.remove(0);
        for (at, metrics) in kernels.iter().enumerate() {
            let series = |(alias, launches): &(&str, &[f64])| {
                let process = launches.iter().copied().map(Some).collect();
                ((*alias).to_owned(), Series::new(vec![process], &[]))
            };
            profile.kernels.push(KernelProfile {
                name: format!("k{at}"),
                mangled: Some(format!("k{at}")),
                metrics: metrics.iter().map(series).collect(),
                ..measured.clone()
            });
        }
        profile
    }

    fn declared(kernels: &[&[(&str, &[f64])]]) -> Vec<String> {
        let variant = variant();
        let findings = declared_findings(&variant, &profile(&variant, kernels));
        for finding in &findings {
            let code = match finding.message.contains("not coalesced") {
                true => Code::Regressed,
                false => Code::WorkChanged,
            };
            assert_eq!(finding.code, code);
            assert_eq!(finding.severity, Severity::Deny);
        }
        let messages = findings.into_iter().map(|finding| finding.message);
        messages.collect()
    }

    #[test]
    fn other_work_denies_and_shows_both_counts() {
        let variant = variant();
        let (was, is) = (68_719_476_736.0, 51_539_607_552.0);
        let less = || [exact("flop_wmma", was, is, Verdict::Regressed)];
        let [finding] = &work_findings(&variant, &mut less(), Mode::Stored)[..] else {
            panic!("not one finding")
        };
        assert_eq!(finding.code, Code::WorkChanged);
        assert_eq!(finding.severity, Severity::Deny);
        assert_eq!(finding.metric.as_deref(), Some("flop_wmma"));
        assert_eq!(finding.kernel.as_deref(), Some("bsr_gemm_x"));
        assert_eq!(
            finding.message,
            "`flop_wmma` of bsr_gemm_x: 68719476736 → 51539607552, -25.00 %: it does other work than the baseline, so its speed does not compare"
        );
        assert!(finding.next.contains("--lock --reason"), "{}", finding.next);
        // One of billions is a number that is seen.
        let mut one = [exact("flop", was, was - 1.0, Verdict::Regressed)];
        let message = &work_findings(&variant, &mut one, Mode::Stored)[0].message;
        assert!(message.contains("68719476736 → 68719476735: it does"));
        let against = work_findings(&variant, &mut less(), Mode::Against);
        assert!(against[0].message.contains("than the base, "));
        assert!(against[0].next.contains("waiver"), "{}", against[0].next);
    }

    #[test]
    fn a_counter_that_varies_does_not_tell_and_one_that_only_warns_warns() {
        let mut comparisons = [
            exact("varies", 8.0, 8.0, Verdict::Inconclusive),
            Comparison {
                level: Level::Warn,
                ..exact("soft", 8.0, 9.0, Verdict::Regressed)
            },
        ];
        let findings = work_findings(&variant(), &mut comparisons, Mode::Stored);
        let found: Vec<_> = findings.iter().map(|it| (it.code, it.severity)).collect();
        let varies = (Code::Inconclusive, Severity::Deny);
        assert_eq!(found, [varies, (Code::WorkChanged, Severity::Warn)]);
        assert!(findings[0].message.contains("from launch to launch"));
    }

    #[test]
    fn the_same_work_and_a_broken_limit_and_what_is_recorded_say_nothing() {
        let mut comparisons = [
            exact("same", 8.0, 8.0, Verdict::Pass),
            exact("limit", 8.0, 8.0, Verdict::Regressed),
            Comparison {
                reference: None,
                ..exact("limit_without_reference", 8.0, 8.0, Verdict::Regressed)
            },
            Comparison {
                verdict: None,
                level: Level::Record,
                ..exact("recorded", 8.0, 9.0, Verdict::Regressed)
            },
            duration(Verdict::Improved),
        ];
        assert!(work_findings(&variant(), &mut comparisons, Mode::Stored).is_empty());
        assert_eq!(comparisons[4], duration(Verdict::Improved));
    }

    #[test]
    fn a_kernel_that_does_other_work_is_not_faster_and_others_may_be() {
        let mut others = [(); 2].map(|()| duration(Verdict::Improved));
        others[0].grid = [1, 1, 1];
        others[1].kernel = "other".to_owned();
        let others = [&[duration(Verdict::Regressed)][..], &others].concat();
        let [faster, work] = [
            duration(Verdict::Improved),
            exact("flop", 8.0, 6.0, Verdict::Regressed),
        ];
        let mut comparisons = [&[faster, work], &others[..]].concat();
        let findings = work_findings(&variant(), &mut comparisons, Mode::Stored);
        assert_eq!(findings.len(), 1);
        let expected = Comparison {
            open: false,
            why: "the work changed: a kernel that does other work is not faster".to_owned(),
            ..duration(Verdict::Inconclusive)
        };
        assert_eq!(comparisons[0], expected);
        assert_eq!(comparisons[2..], others);
    }

    #[test]
    fn the_declared_work_is_the_sum_over_kernels_and_counters() {
        let stored: (&str, &[f64]) = ("stored", &[1.0, 1.0]);
        let none: (&str, &[f64]) = ("wmma", &[0.0, 0.0]);
        let first: &[(&str, &[f64])] = &[("wmma", &[60.0, 60.0]), ("fma", &[5.0, 5.0]), stored];
        let second: &[(&str, &[f64])] = &[none, ("fma", &[15.0, 15.0]), stored];
        let less: &[(&str, &[f64])] = &[none, ("fma", &[2.0, 2.0]), ("stored", &[2.0, 2.0])];
        let varying: &[(&str, &[f64])] = &[
            ("wmma", &[100.0, 90.0]),
            ("fma", &[0.0, 0.0]),
            ("stored", &[2.0, 2.0]),
        ];
        let said = [
            "74 FLOP in one launch of its kernels, its `work` declares 100 FLOP (74.0 %)",
            "96 B in one launch of its kernels, its `work` declares 64 B (150.0 %): its stores are not coalesced, or bytes are written twice",
            "90 FLOP in one launch of its kernels and 100 FLOP in another, its `work` declares 100 FLOP",
        ].map(|words| format!("the hardware counted {words}"));
        assert_eq!(declared(&[first, second]), [""; 0]);
        assert_eq!(declared(&[first, less]), said[..2]);
        assert_eq!(declared(&[varying]), said[2..]);
    }

    #[test]
    fn a_missing_measurement_is_not_reported_as_other_work() {
        let stored: (&str, &[f64]) = ("stored", &[2.0]);
        assert!(declared(&[&[("wmma", &[7.0]), stored]]).is_empty());
        assert!(declared(&[&[("wmma", &[7.0]), ("fma", &[f64::NAN]), stored]]).is_empty());
        assert!(declared(&[]).is_empty());
        let undeclared = Variant {
            work: Work::default(),
            ..variant()
        };
        let counted: &[(&str, &[f64])] = &[("wmma", &[7.0]), ("fma", &[0.0]), ("stored", &[7.0])];
        let profile = profile(&undeclared, &[counted]);
        assert!(declared_findings(&undeclared, &profile).is_empty());
    }

    #[test]
    fn large_work_is_compared_to_the_last_count() {
        let mut variant = variant();
        variant.work = Work {
            flop: Some(68_719_476_736),
            bytes_written: None,
        };
        let message = |variant: &Variant, counted: f64| {
            let profile = profile(variant, &[&[("wmma", &[counted]), ("fma", &[0.0])]]);
            let mut findings = declared_findings(variant, &profile);
            findings.pop().map(|finding| finding.message)
        };
        assert_eq!(message(&variant, 68_719_476_736.0), None);
        assert_eq!(
            message(&variant, 51_539_607_552.0).unwrap(),
            "the hardware counted 51.54 GFLOP in one launch of its kernels, its `work` declares 68.72 GFLOP (75.0 %)"
        );
        assert_eq!(
            message(&variant, 68_719_476_735.0).unwrap(),
            "the hardware counted 68719476735 FLOP in one launch of its kernels, its `work` declares 68719476736 FLOP"
        );
        // As a double, this declaration is equal to what is counted.
        variant.work.flop = Some((1 << 53) + 1);
        assert!(message(&variant, EXACT_BELOW).is_some());
    }
}
