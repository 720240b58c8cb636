//! Findings for services that show them at source lines: the weightiest first, each with a line and a
//! fingerprint that a moved line does not change.

use std::collections::{BTreeMap, HashMap};

use super::weight::by_weight;
use crate::config::FILE_NAME;
use crate::files::is_below;
use crate::finding::Finding;
use crate::hash::sha256_hex;
use crate::judge::Outcome;
use crate::terms::VariantId;

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

/// All findings, the weightiest first, see [`by_weight`].
pub(super) fn worst_first(outcome: &Outcome) -> Vec<Concern<'_>> {
    let places = Places::of(outcome);
    let prints = fingerprints(&outcome.findings);
    by_weight(&outcome.findings, &outcome.variants)
        .into_iter()
        .map(|finding| {
            // A finding about the project is shown at the configuration.
            let (file, line) = places.of_finding(finding).unwrap_or((FILE_NAME, None));
            Concern {
                finding,
                file,
                line,
                fingerprint: prints
                    .get(&std::ptr::from_ref(finding))
                    .cloned()
                    .unwrap_or_default(),
            }
        })
        .collect()
}

/// The fingerprint of each finding, by its place in memory: equal ones are numbered in the order in
/// which they were found.
fn fingerprints(findings: &[Finding]) -> HashMap<*const Finding, String> {
    let mut seen: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    let mut prints = HashMap::new();
    for finding in findings {
        let key = identity(finding);
        let times = seen.entry(key.clone()).or_default();
        let print = sha256_hex(&[key.as_slice(), b"\0", times.to_string().as_bytes()].concat());
        *times += 1;
        prints.insert(std::ptr::from_ref(finding), print);
    }
    prints
}

/// A file below the folder of the configuration, and a line from 1, where it is known.
type FileAndLine<'a> = (&'a str, Option<u32>);

/// Where variants and kernels are in the sources, each with its file and line.
pub(super) struct Places<'a>(BTreeMap<(&'a VariantId, Option<&'a str>), FileAndLine<'a>>);

impl<'a> Places<'a> {
    /// Those of an outcome that lie below the folder of the configuration.
    pub(super) fn of(outcome: &'a Outcome) -> Places<'a> {
        let mut places = BTreeMap::new();
        for place in outcome.places.iter().filter(|place| is_below(&place.file)) {
            let key = (&place.variant, place.kernel.as_deref());
            places
                .entry(key)
                .or_insert((place.file.as_str(), place.line.filter(|line| *line > 0)));
        }
        Places(places)
    }

    /// That of the kernel which a finding concerns, or of its variant.
    pub(super) fn of_finding(&self, finding: &'a Finding) -> Option<FileAndLine<'a>> {
        let variant = finding.variant.as_ref()?;
        let of = |kernel| self.0.get(&(variant, kernel)).copied();
        of(finding.kernel.as_deref()).or_else(|| of(None))
    }
}

/// The parts of a finding that do not change with numbers and lines.
fn identity(finding: &Finding) -> Vec<u8> {
    let mut parts = vec![
        Some(finding.code.as_str().to_owned()),
        finding.variant.as_ref().map(ToString::to_string),
        finding.kernel.clone(),
        finding.metric.clone(),
    ];
    parts.extend(finding.compiled.then(|| Some("compiled".to_owned())));
    parts.extend(finding.one_of_several().map(|launch| Some(launch.words())));
    serde_json::to_vec(&parts).unwrap_or_default()
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
