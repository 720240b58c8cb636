//! The report for scripts, and the one from which the other forms can be rendered again.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};

use super::print::ForTerminals;
use crate::disk;
use crate::files::{ListsInLines, json, most, pretty_json, read_regular_up_to};
use crate::finding::{Error, Reported, Severity};
use crate::judge::Outcome;
use crate::terms::VariantId;
use crate::verdict::Verdict;
use ncu_report::csv;

/// What `sparsek-gate check --format json` prints: the outcome of one run.
// With its exit code, so that a script need not know the rules.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "outcome of sparsek-gate check")]
struct Report<'a> {
    #[serde(flatten)]
    outcome: &'a Outcome,
    /// What the process exited with: 0 passed, 1 regressed, 2 usage, 3 environment, 4 baseline,
    /// 5 failed, 6 inconclusive, 70 internal, 130 interrupted.
    exit_code: u8,
    /// The exit code in a few words.
    meaning: &'static str,
}

pub(super) fn write(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    let code = outcome.exit_code();
    let report = Report {
        outcome,
        exit_code: code as u8,
        meaning: code.meaning(),
    };
    let plain = ForTerminals(ListsInLines::new(&mut *out));
    serde_json::to_writer_pretty(plain, &report)?;
    out.write_all(b"\n")
}

/// Reads an outcome from the JSON form of a report.
///
/// # Errors
/// [`Error::Io`], or [`Error::Input`] where the file is not an outcome that this version reads, or
/// contradicts itself.
pub fn read(path: &Path) -> Result<Outcome, Error> {
    if !disk::is_there(path) {
        let (path, next) = (path.display(), "`check --report outcome.json` writes one");
        return Err(Error::Usage(format!(
            "there is no file {path}\n  next: {next}"
        )));
    }
    let text = read_regular_up_to(path, most::OUTCOME).map_err(Error::named(path))?;
    parse(path, &text)
}

/// Reads an outcome from the text of a report; `path` is named in errors.
///
/// # Errors
/// [`Error::Input`], as [`read`].
pub fn parse(path: &Path, text: &[u8]) -> Result<Outcome, Error> {
    #[derive(Deserialize)]
    #[serde(expecting = "an outcome")]
    struct Head {
        schema: u32,
        exit_code: u8,
        meaning: String,
    }
    let refused = |cause: String| Error::input(path.to_path_buf(), cause);
    let no_outcome = |cause: String| {
        Error::Usage(format!(
            "{}: it is not the outcome of a check: {cause}\n  next: `check --report outcome.json` writes one",
            path.display()
        ))
    };
    // PowerShell writes what it redirects with a mark, or as UTF-16.
    let text = &*csv::utf8(text);
    let head: Head = json(text).map_err(no_outcome)?;
    if head.schema != Outcome::SCHEMA {
        return Err(refused(format!(
            "its schema is {}, but this version reads schema {}: render it with the sparsek-gate that wrote it, or run the check again",
            head.schema,
            Outcome::SCHEMA
        )));
    }
    let outcome: Outcome = json(text)
        .map_err(|error| refused(format!("it is not a complete outcome, but edited: {error}")))?;
    if let Some(cause) = contradiction(&outcome, (head.exit_code, &head.meaning)) {
        return Err(refused(format!(
            "it contradicts itself: {cause}: the file was edited or cut; copy that of the check again"
        )));
    }
    Ok(outcome)
}

/// What is wrong, if a finding has a severity that its code never has, if a comparison is worse and no
/// finding says so, or if the exit code, here with its meaning, is another one.
fn contradiction(outcome: &Outcome, stated: (u8, &str)) -> Option<String> {
    let wrong = outcome.findings.iter().find(|finding| {
        matches!(
            (finding.code.reported(), finding.severity),
            (Reported::Fails, Severity::Warn) | (Reported::Warns, Severity::Deny)
        )
    });
    if let Some(wrong) = wrong {
        let never = match wrong.denies() {
            true => "fails",
            false => "only warns",
        };
        return Some(format!("`{}` never {never}", wrong.code.as_str()));
    }
    let worse = outcome.findings.iter().filter(|one| one.says_worse());
    let said = worse.filter_map(|one| Some((one.variant.as_ref()?, one.metric.as_deref()?)));
    let said: BTreeSet<(&VariantId, &str)> = said.collect();
    let silent = outcome.variants.iter().find_map(|report| {
        let says = |metric: &str| said.contains(&(&report.variant, metric));
        let mut worse = report
            .comparisons
            .iter()
            .filter(|comparison| comparison.verdict == Some(Verdict::Regressed));
        let silent = worse.find(|comparison| !says(&comparison.metric))?;
        Some(format!(
            "`{}` of {} regressed, and no finding says so",
            silent.metric, report.variant
        ))
    });
    let code = outcome.exit_code();
    let ended = outcome.ended.as_ref();
    let is_other = stated != (code as u8, code.meaning())
        || ended.is_some_and(|ended| ended.exit_code != code as u8);
    silent.or_else(|| {
        let (code, meaning) = stated;
        is_other.then(|| format!("it states exit code {code} ({meaning}), which is not what its findings and its end give"))
    })
}

/// The JSON Schema of the JSON form, draft 2020-12.
pub fn outcome_schema() -> String {
    let schema = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Report<'_>>();
    pretty_json(&schema)
}
