//! The order in which every form shows findings: the weightiest first.
//!
//! What fails comes before what warns, then the order of the exit codes decides; of warnings those
//! come first that say that something got worse. Among findings of one exit code a kernel that became
//! slower comes first, by how far beyond its limit it is. The findings on one kernel stay together:
//! first the one that has the causes, then the others in the order in which they were found.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::{Code, Compared, ExitCode, Finding, Severity};
use crate::judge::{Comparison, VariantReport};
use crate::terms::{VariantId, counted, joined};

/// The findings, in which those that kernels got worse by one change are one with a list.
pub(super) fn by_origin(findings: &[Finding]) -> Vec<Finding> {
    let mut origins: BTreeMap<Origin<'_>, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        origins.entry(origin(finding)).or_default().push(finding);
    }
    origins.retain(|(origin, ..), findings| {
        let kernels: BTreeSet<_> = findings
            .iter()
            .map(|one| (&one.variant, &one.kernel))
            .collect();
        origin.is_some() && kernels.len() > 1
    });
    let mut merged = Vec::new();
    for finding in findings {
        match origins.get(&origin(finding)).map(Vec::as_slice) {
            None => merged.push(finding.clone()),
            Some(list) if std::ptr::eq(list[0], finding) => merged.push(one_of(list)),
            Some(_) => {}
        }
    }
    merged
}

/// What findings of one origin have in common.
type Origin<'a> = (Option<&'a str>, Severity, Code);

fn origin(finding: &Finding) -> Origin<'_> {
    (
        finding.values.origin.as_deref(),
        finding.severity,
        finding.code,
    )
}

/// One finding for several of one origin.
fn one_of(findings: &[&Finding]) -> Finding {
    let first = findings[0];
    let variants: BTreeSet<_> = findings.iter().map(|one| &one.variant).collect();
    let line = |one: &&Finding| {
        let of = |text: &Option<String>| text.clone().unwrap_or_default();
        let (kernel, metric, values) = (of(&one.kernel), of(&one.metric), &one.values);
        let (from, to) = (of(&values.from), of(&values.to));
        format!("{} {kernel} {metric} {from} → {to}", one.subject())
    };
    let message = format!(
        "{} of {} got worse by one change: {}",
        counted(findings.len(), "metric", "metrics"),
        counted(variants.len(), "variant", "variants"),
        first.values.origin.as_deref().unwrap_or_default(),
    );
    let names = variants.into_iter().flatten().map(VariantId::to_string);
    let own = first
        .variant
        .as_ref()
        .map_or_else(String::new, VariantId::to_string);
    // The command of one of them is that of all.
    let next = match first.next.strip_suffix(&own) {
        Some(command) if !own.is_empty() => format!("{command}{}", joined(names, " ")),
        _ => first.next.clone(),
    };
    Finding {
        severity: first.severity,
        ..Finding::of_project(first.code, message, next)
            .detail(joined(findings.iter().map(line), "\n"))
    }
}

/// The findings, those first that a reader should see first. `variants` are the reports that say by
/// how much a metric changed; without them the exit codes and the order found decide.
pub(super) fn by_weight<'a>(
    findings: &'a [Finding],
    variants: &[VariantReport],
) -> Vec<&'a Finding> {
    groups(findings, variants).into_iter().flatten().collect()
}

/// Whether a finding shows its next step. Those in a row that ask for the same one share it: the last of
/// them shows it.
pub(super) fn shows_next(in_a_row: &[&Finding], at: usize) -> bool {
    let following = in_a_row.get(at + 1);
    following.is_none_or(|following| following.next != in_a_row[at].next)
}

/// The same, the findings on one kernel together: none of the groups is empty.
pub(super) fn groups<'a>(
    findings: &'a [Finding],
    variants: &[VariantReport],
) -> Vec<Vec<&'a Finding>> {
    let sizes = sizes(variants);
    let mut found: BTreeMap<Key<'a>, Group<'a>> = BTreeMap::new();
    for (at, finding) in findings.iter().enumerate() {
        // What concerns no kernel has no size, and comes first among its code.
        let size = match finding.compared() {
            Some(key) => sizes.get(&key).copied().unwrap_or_default(),
            None => [f64::INFINITY; 2],
        };
        let group = found.entry(key(finding)).or_insert_with(|| Group {
            size,
            first: at,
            findings: Vec::new(),
        });
        group.size = [0, 1].map(|of| group.size[of].max(size[of]));
        group.findings.push(finding);
    }
    let mut groups: Vec<(Key<'a>, Group<'a>)> = found.into_iter().collect();
    groups.sort_by(|(one_key, one), (other_key, other)| {
        let class = |key: &Key<'a>| (key.warns, key.is_aside, key.rank);
        class(one_key)
            .cmp(&class(other_key))
            .then(other.size[0].total_cmp(&one.size[0]))
            .then(other.size[1].total_cmp(&one.size[1]))
            .then(one.first.cmp(&other.first))
    });
    let found = groups.into_iter().map(|(_, mut group)| {
        group
            .findings
            .sort_by_key(|one| one.compiled || !one.values.is_explained());
        group.findings
    });
    found.collect()
}

/// What the findings of a group have in common.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    warns: bool,
    /// A warning about something else than that a kernel got worse.
    is_aside: bool,
    rank: Option<usize>,
    variant: Option<&'a VariantId>,
    kernel: Option<&'a str>,
    launch: Option<([u64; 3], [u64; 3])>,
}

struct Group<'a> {
    size: Size,
    /// The place of its first finding.
    first: usize,
    findings: Vec<&'a Finding>,
}

/// Changes as multiples of the change beyond which they fail: of the time of a launch, and of any metric.
type Size = [f64; 2];

fn key(finding: &Finding) -> Key<'_> {
    let warns = finding.severity == Severity::Warn;
    Key {
        warns,
        is_aside: warns && !finding.says_worse(),
        rank: rank(finding.code.exit_code()),
        variant: finding.variant.as_ref(),
        kernel: finding.kernel.as_deref(),
        launch: finding
            .one_of_several()
            .map(|launch| (launch.grid, launch.block)),
    }
}

/// The size of each comparison.
fn sizes(variants: &[VariantReport]) -> BTreeMap<Compared<'_>, Size> {
    let sizes = variants.iter().flat_map(|report| {
        report.comparisons.iter().map(|comparison| {
            let of_any = badness(comparison);
            let of_time = match comparison.is_duration() {
                true => of_any,
                false => 0.0,
            };
            (report.compared(comparison), [of_time, of_any])
        })
    });
    sizes.collect()
}

/// A change as a multiple of the change beyond which it fails; infinite where any change fails.
pub(super) fn badness(comparison: &Comparison) -> f64 {
    let Some(change) = comparison.change.map(|change| change.size()) else {
        return 0.0;
    };
    match comparison.threshold.map(f64::abs) {
        Some(threshold) if threshold > 0.0 => change / threshold,
        _ if change > 0.0 => f64::INFINITY,
        _ => 0.0,
    }
}

/// The place of a code among all: 0 for the worst.
pub(super) fn rank(code: ExitCode) -> Option<usize> {
    ExitCode::ALL.iter().position(|one| *one == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(code: Code, variant: &str, kernel: Option<&str>) -> Finding {
        let id = VariantId {
            suite: "s".to_owned(),
            variant: variant.to_owned(),
        };
        let finding = Finding::deny(code, &id, code.as_str(), "next");
        match kernel {
            Some(kernel) => finding.kernel(kernel).metric("duration"),
            None => finding,
        }
    }

    #[test]
    fn what_failed_comes_before_what_is_open_and_that_before_what_warns() {
        let findings = [
            finding(Code::ProfileMissing, "c", None),
            finding(Code::Retried, "a", None),
            finding(Code::Regressed, "a", Some("k")),
            finding(Code::Inconclusive, "a", Some("k")),
            finding(Code::Tampered, "b", None),
            finding(Code::BuildFailed, "d", None),
        ];
        let ordered = by_weight(&findings, &[]).into_iter();
        let codes: Vec<&str> = ordered.map(|finding| finding.code.as_str()).collect();
        let expected = "build-failed tampered regressed profile-missing inconclusive retried";
        assert_eq!(codes.join(" "), expected);
    }

    #[test]
    fn the_findings_on_one_kernel_stay_together() {
        let findings = [
            finding(Code::Regressed, "a", Some("k")),
            finding(Code::Regressed, "b", Some("k")),
            finding(Code::LimitExceeded, "a", Some("k")),
        ];
        let groups = groups(&findings, &[]);
        let variants: Vec<Vec<String>> = groups
            .iter()
            .map(|group| group.iter().map(|finding| finding.subject()).collect())
            .collect();
        assert_eq!(variants, [vec!["s/a", "s/a"], vec!["s/b"]]);
    }
}
