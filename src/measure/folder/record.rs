//! What a run keeps of each variant for a run that resumes it.
//!
//! Of a variant whose measurement is complete a record is written last, beside its captures: what was
//! measured and found, the hashes of its files, and the key that says what it was. `--resume` takes the
//! variant over as a whole where the key is the same, and measures it otherwise.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::file::{parse, sealed};
use crate::finding::{Code, Finding, Note};
use crate::hash::sha256_file;
use crate::measure::measured::{Measured, Resumed};
use crate::terms::VariantId;

/// What makes two measurements of a variant the same one, by its name for people, each as sha256 of its
/// serialized value.
pub type Key = BTreeMap<String, String>;

/// The part of a key with the files that a program could read.
pub const FILES: &str = "a file that it could read";

/// The part of a key with the other side.
pub const BASE: &str = "its base";

/// What to do where an interrupted run is of no use.
pub const MEASURED: &str = "nothing: what is reported was measured in this run";

/// What is kept of a variant.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VariantRecord {
    /// The run.
    pub run: String,
    /// The variant.
    pub variant: VariantId,
    /// `None` where it is not known what the measurement depends on.
    pub key: Option<Key>,
    /// The warnings about repetitions, one for each.
    pub retries: Vec<Finding>,
    /// `None` while it is measured.
    pub complete: Option<Complete>,
}

/// All that was measured and found of a variant.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Complete {
    pub measured: Measured,
    /// sha256 of each of its files, by the path from its folder.
    pub files: BTreeMap<PathBuf, String>,
}

impl VariantRecord {
    /// Reads the file's content.
    ///
    /// # Errors
    /// In words, what is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<VariantRecord, String> {
        parse(bytes)
    }

    /// The file's content.
    pub fn text(&self) -> Vec<u8> {
        sealed(self)
    }
}

impl Complete {
    /// How the variant failed, if it did.
    pub fn failure(&self, variant: &VariantId) -> Option<&Finding> {
        let mut profiles = self.measured.profiles.iter();
        let has_profile = profiles.any(|profile| profile.variant == *variant);
        // What its captures show is found in them again.
        self.measured.findings.iter().find(|one| {
            one.concerns(variant)
                && one.denies()
                && (!has_profile || one.code == Code::AlteredDuringRun)
        })
    }
}

/// What an interrupted run kept of a variant, as it was before a program of this run could write to it.
pub struct Kept {
    record: VariantRecord,
    /// The file that is not what was kept, in words.
    unlike: Option<String>,
}

/// What is used of what an interrupted run kept of a variant.
#[derive(Default)]
pub struct Resumption {
    /// All of it.
    pub complete: Option<Complete>,
    /// The repetitions that it had already.
    pub retries: Vec<Finding>,
    /// Why it is measured anew, where that must be said.
    pub why_not: Option<String>,
}

impl Kept {
    /// What a record says of the files in the folder of its variant.
    pub fn of(record: VariantRecord, folder: &Path) -> Kept {
        let mut files = record.complete.iter().flat_map(|complete| &complete.files);
        let unlike = files.find(|(name, sha256)| {
            let now = sha256_file(&folder.join(name)).ok();
            now.as_ref() != Some(*sha256)
        });
        let unlike = unlike
            .map(|(name, _)| format!("`{}` is not what the interrupted run wrote", name.display()));
        Kept { record, unlike }
    }

    /// What is used of it by a run that would measure what `now` is the key of.
    pub fn resumption(self, now: &Result<Key, String>) -> Resumption {
        let VariantRecord {
            variant,
            key: then,
            retries,
            complete,
            ..
        } = self.record;
        let failure = complete.as_ref().and_then(|one| one.failure(&variant));
        let then = then.ok_or("what it measured is not known");
        if let (Ok(then), Ok(now)) = (&then, now)
            && let Some(why) = difference(then, now)
        {
            let why = match failure {
                Some(failed) => format!(
                    "{why}; in the interrupted run it failed: {}",
                    failed.message
                ),
                None => why,
            };
            return Resumption {
                why_not: Some(why),
                ..Resumption::default()
            };
        }
        let why_not = match (&then, now) {
            // Also where nobody can know whether it is the same: it must not pass because it is
            // measured again.
            _ if failure.is_some() => None,
            (_, Err(why)) => Some(why.clone()),
            (Err(why), _) => Some((*why).to_owned()),
            (Ok(_), Ok(_)) => self.unlike,
        };
        Resumption {
            complete: complete.filter(|_| why_not.is_none()),
            retries,
            why_not,
        }
    }
}

/// What differs between two keys, for people; `None` where they are the same.
pub fn difference(then: &Key, now: &Key) -> Option<String> {
    let others = now
        .iter()
        .filter(|(name, value)| then.get(*name) != Some(value));
    // What is changed is mostly a file of the checkout, too, and a part of the base.
    let other = others.min_by_key(|(name, _)| (*name == BASE, *name == FILES));
    other.map(|(name, _)| format!("{name} is another one now"))
}

/// A finding of an interrupted run on a variant that stays failed.
pub fn failed_before(finding: Finding) -> Finding {
    match finding.denies() && !finding.notes.contains(&Note::Earlier) {
        true => finding.with(Note::Earlier),
        false => finding,
    }
}

/// That a variant is not taken over from an interrupted run.
pub fn not_resumed(variant: &VariantId, why: &str) -> Finding {
    let message = format!("all of it is measured in this run: {why}");
    Finding::deny(Code::Resumed, variant, message, MEASURED)
}

/// Which variants are taken over from an interrupted run.
pub fn resumed(all: &[Resumed]) -> Option<Finding> {
    const MOST: usize = 5;
    let first = all.first()?;
    let names = all.iter().take(MOST).map(|one| one.variant.to_string());
    let mut names: Vec<String> = names.collect();
    if let Some(more @ 1..) = all.len().checked_sub(MOST) {
        names.push(format!("and {more} more"));
    }
    let message = format!(
        "the run that began at {} was interrupted, and what it measured of these variants is used: {}",
        first.began,
        names.join(", ")
    );
    let next = "nothing, if nobody could write to its files meanwhile; otherwise measure anew, without --resume";
    Some(Finding::of_project(Code::Resumed, message, next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::sha256_hex;

    #[test]
    fn a_variant_is_taken_over_as_a_whole_or_not_at_all() {
        let variant: VariantId = "s/v".to_owned().try_into().unwrap();
        let key = |value: &str| Key::from([("its program".to_owned(), value.to_owned())]);
        let finding = |code| Finding::deny(code, &variant, "why", "next");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("capture-1.csv"), "1").unwrap();
        let used = |then: Option<Key>, now: Result<Key, String>, failed: bool, written: &str| {
            let measured = Measured {
                findings: failed
                    .then(|| finding(Code::WrongNumbers))
                    .into_iter()
                    .collect(),
                ..Measured::default()
            };
            let files = BTreeMap::from([("capture-1.csv".into(), sha256_hex(written.as_bytes()))]);
            let record = VariantRecord {
                run: String::new(),
                variant: variant.clone(),
                key: then,
                retries: vec![finding(Code::Retried)],
                complete: Some(Complete { measured, files }),
            };
            let used = Kept::of(record, folder.path()).resumption(&now);
            let retries = used.retries.len();
            (
                used.complete.is_some(),
                retries,
                used.why_not.unwrap_or_default(),
            )
        };
        let (a, b) = (|| Some(key("a")), || Ok(key("b")));
        let unknown = || Err("no git".to_owned());
        let other = "its program is another one now";
        let is = |complete, retries, why: &str| (complete, retries, why.to_owned());
        assert_eq!(used(a(), Ok(key("a")), false, "1"), is(true, 1, ""));
        assert_eq!(used(a(), b(), false, "1"), is(false, 0, other));
        let unlike = "`capture-1.csv` is not what the interrupted run wrote";
        assert_eq!(used(a(), Ok(key("a")), false, "2"), is(false, 1, unlike));
        assert_eq!(used(a(), unknown(), false, "1"), is(false, 1, "no git"));
        let lacking = "what it measured is not known";
        assert_eq!(used(None, b(), false, "1"), is(false, 1, lacking));
        // A variant that failed stays failed, unless it is known to be another one now.
        for now in [Ok(key("a")), unknown()] {
            assert_eq!(used(a(), now, true, "2"), is(true, 1, ""));
        }
        assert_eq!(used(None, b(), true, "2"), is(true, 1, ""));
        let failed = format!("{other}; in the interrupted run it failed: why");
        assert_eq!(used(a(), b(), true, "1"), is(false, 0, &failed));
    }
}
