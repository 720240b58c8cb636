//! Findings for services that show them at source lines: the worst first, each with a line and a
//! fingerprint that a moved line does not change.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use crate::config::FILE_NAME;
use crate::finding::{ExitCode, Finding, Severity};
use crate::hash::sha256_hex;
use crate::judge::{Comparison, Outcome};

/// A finding with its place in the sources.
pub(super) struct Concern<'a> {
    pub finding: &'a Finding,
    /// Path below the folder of the configuration, with `/`.
    pub file: &'a str,
    /// From 1, where it is known.
    pub line: Option<u32>,
    /// 64 hex digits: the same in the next run, and of no other finding of this one.
    pub fingerprint: String,
}

/// All findings, those that deny first, and of these the worst.
pub(super) fn worst_first(outcome: &Outcome) -> Vec<Concern<'_>> {
    let comparisons = comparisons(outcome);
    let mut places = BTreeMap::new();
    for place in outcome.places.iter().filter(|place| below(&place.file)) {
        let key = (&place.variant, place.kernel.as_deref());
        places
            .entry(key)
            .or_insert((place.file.as_str(), place.line.filter(|line| *line > 0)));
    }
    let mut seen: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    let mut all: Vec<(f64, Concern<'_>)> = Vec::new();
    for finding in &outcome.findings {
        let (file, line) = finding
            .variant
            .as_ref()
            .and_then(|variant| {
                let of = |kernel| places.get(&(variant, kernel)).copied();
                of(finding.kernel.as_deref()).or_else(|| of(None))
            })
            // A finding about the project is shown at the configuration.
            .unwrap_or((FILE_NAME, None));
        let key = identity(finding);
        let times = seen.entry(key.clone()).or_default();
        let fingerprint =
            sha256_hex(&[key.as_slice(), b"\0", times.to_string().as_bytes()].concat());
        *times += 1;
        let concern = Concern {
            finding,
            file,
            line,
            fingerprint,
        };
        all.push((excess(finding, &comparisons), concern));
    }
    all.sort_by(|(size, one), (other_size, other)| {
        let rank = |concern: &Concern<'_>| {
            let code = concern.finding.code.exit_code();
            (concern.finding.severity == Severity::Warn, rank(code))
        };
        rank(one).cmp(&rank(other)).then(other_size.total_cmp(size))
    });
    all.into_iter().map(|(_, concern)| concern).collect()
}

/// Whether a relative path stays below its folder.
fn below(file: &str) -> bool {
    let mut parts = Path::new(file).components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// The parts of a finding that do not change with numbers and lines.
fn identity(finding: &Finding) -> Vec<u8> {
    let parts = [
        Some(finding.code.as_str().to_owned()),
        finding.variant.as_ref().map(ToString::to_string),
        finding.kernel.clone(),
        finding.metric.clone(),
    ];
    serde_json::to_vec(&parts).unwrap_or_default()
}

type Key<'a> = (String, &'a str, &'a str);

/// Comparisons by variant, kernel and metric.
fn comparisons(outcome: &Outcome) -> BTreeMap<Key<'_>, Vec<&Comparison>> {
    let mut by_key: BTreeMap<Key<'_>, Vec<&Comparison>> = BTreeMap::new();
    for report in &outcome.variants {
        let variant = report.variant.to_string();
        for comparison in &report.comparisons {
            let key = (
                variant.clone(),
                comparison.kernel.as_str(),
                comparison.metric.as_str(),
            );
            by_key.entry(key).or_default().push(comparison);
        }
    }
    by_key
}

/// The change of a finding, as a multiple of the change beyond which it fails; infinite for a finding
/// without a metric, which comes first.
fn excess(finding: &Finding, comparisons: &BTreeMap<Key<'_>, Vec<&Comparison>>) -> f64 {
    let (Some(variant), Some(kernel), Some(metric)) =
        (&finding.variant, &finding.kernel, &finding.metric)
    else {
        return f64::INFINITY;
    };
    let key = (variant.to_string(), kernel.as_str(), metric.as_str());
    let of = |comparison: &&Comparison| badness(comparison);
    let sizes = comparisons.get(&key).into_iter().flatten().map(of);
    sizes.max_by(f64::total_cmp).unwrap_or(0.0)
}

/// A change as a multiple of the change beyond which it fails; infinite where any change fails.
pub(super) fn badness(comparison: &Comparison) -> f64 {
    let Some(change) = comparison.change.map(|change| change.value().abs()) else {
        return 0.0;
    };
    match comparison.threshold.map(f64::abs) {
        Some(threshold) if threshold > 0.0 => change / threshold,
        _ if change > 0.0 => f64::INFINITY,
        _ => 0.0,
    }
}

/// The number of codes that outrank this one: 0 for the worst.
pub(super) fn rank(code: ExitCode) -> usize {
    let outranks = |other: &&ExitCode| **other != code && other.worse(code) == **other;
    ExitCode::ALL.iter().filter(outranks).count()
}

/// At most so many characters, and the number of those that are left out.
pub(super) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => format!(
            "{}… ({} more characters)",
            &text[..at],
            text[at..].chars().count()
        ),
    }
}
