//! What a run keeps of each variant for a run that resumes it.
//!
//! Of a variant whose measurement is complete a record is written last, beside its captures: what was
//! found, the hashes of its files, the profiles among them, and the key that says what it was. `--resume`
//! takes the variant over as a whole where the key is the same, and measures it otherwise.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::files::{
    PROFILE_FILE, STATIC_PROFILE_FILE, VARIANT_FILE, read_regular, recorded_folder, variant_folder,
};
use crate::finding::{Code, Finding, Note};
use crate::hash::{sha256_file, sha256_hex};
use crate::measure::captures::{Captures, Resumed};
use crate::profile::Profile;
use crate::terms::{VariantId, first};

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
    pub(in crate::measure) run: String,
    /// The variant.
    pub(in crate::measure) variant: VariantId,
    /// `None` where it is not known what the measurement depends on.
    pub(in crate::measure) key: Option<Key>,
    /// The warnings about repetitions, one for each.
    pub(in crate::measure) retries: Vec<Finding>,
    /// `None` while it is measured.
    pub(in crate::measure) done: Option<Done>,
    /// Whether its run measures a part of a check, which nobody judges without the record of the run.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub(in crate::measure) part: bool,
    /// Where it was measured on several GPUs: their folders in that of the run.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(in crate::measure) on: Vec<String>,
}

impl VariantRecord {
    /// Of a variant of which nothing is kept yet.
    pub(super) fn new(run: String, variant: &VariantId) -> VariantRecord {
        VariantRecord {
            run,
            variant: variant.clone(),
            key: None,
            retries: Vec::new(),
            done: None,
            part: false,
            on: Vec::new(),
        }
    }

    /// The sha256 of each of its files, by the path from its folder.
    pub(super) fn into_files(self) -> BTreeMap<String, String> {
        let mut done = self.done.unwrap_or_default();
        done.files.extend(done.profiles);
        done.files
    }
}

/// What was measured and found of a variant.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Done {
    captures: Captures,
    /// sha256 of each profile that was measured, and of what the measured programs ran, by the path from
    /// the folder of the variant.
    pub(in crate::measure) profiles: BTreeMap<String, String>,
    /// The same of every other file. Static profiles among them are of the build.
    files: BTreeMap<String, String>,
}

/// A place of profiles in what was measured.
type Place = fn(&mut Captures) -> &mut Vec<Profile>;

/// The files of profiles, and what they are.
const PROFILES: [(&str, Place); 4] = [
    (PROFILE_FILE, |measured| &mut measured.profiles),
    ("base/profile.json", |measured| &mut measured.bases),
    (STATIC_PROFILE_FILE, |measured| &mut measured.compiled),
    ("base/static.json", |measured| &mut measured.compiled_bases),
];

/// Whether a file is a static profile.
fn is_static(name: &str) -> bool {
    Path::new(name).ends_with(STATIC_PROFILE_FILE)
}

impl Done {
    /// All of a variant that has these files.
    pub fn of(measured: &mut Captures, mut files: BTreeMap<String, String>) -> Done {
        let mut profiles = BTreeMap::new();
        for (name, place) in PROFILES {
            // As it was written, whatever is there now.
            if let Some(profile) = place(measured).first() {
                files.remove(name);
                let sha256 = sha256_hex(profile.to_json().as_bytes());
                profiles.insert(name.to_owned(), sha256);
            }
        }
        files.remove(VARIANT_FILE);
        Done {
            captures: Captures {
                resumed: Vec::new(),
                ..measured.clone()
            },
            profiles,
            files,
        }
    }

    /// How the variant failed, if it did.
    pub fn failure(&self, variant: &VariantId) -> Option<&Finding> {
        let has_profile = self.profiles.contains_key(PROFILE_FILE);
        // What its captures show is found in them again.
        self.captures.findings.iter().find(|one| {
            one.concerns(variant)
                && one.denies()
                && (!has_profile || one.code == Code::AlteredDuringRun)
        })
    }
}

/// All that was measured and found of a variant.
#[derive(Debug)]
pub struct Complete {
    pub measured: Captures,
    /// How it failed, if it did. Then its files may be any.
    pub failure: Option<Finding>,
    /// sha256 of each of its files, by the path from its folder.
    pub files: BTreeMap<String, String>,
    /// The first of them that is not what was kept, in words.
    unlike: Option<String>,
}

/// What an interrupted run kept of a variant, as it was before a program of this run could write to it.
pub struct Kept {
    record: VariantRecord,
    complete: Option<Complete>,
}

/// What is used of what an interrupted run kept of a variant.
#[derive(Default)]
pub struct Resumption {
    /// All of it.
    pub complete: Option<Complete>,
    /// What it was.
    pub key: Option<Key>,
    /// The repetitions that it had already.
    pub retries: Vec<Finding>,
    /// Why it is measured anew, where that must be said.
    pub why_not: Option<String>,
}

impl Kept {
    /// What a record says, with the files that it names below a folder of profiles.
    pub fn of(mut record: VariantRecord, output: &Path) -> Kept {
        let done = record.done.take();
        let complete = done.map(|done| Complete::read(done, &record.variant, output));
        Kept { record, complete }
    }

    /// What is used of it by a run that would measure what `now` is the key of.
    pub fn resumption(self, now: &Result<Key, String>) -> Resumption {
        let Kept { record, complete } = self;
        let retries = record.retries;
        let failure = complete.as_ref().and_then(|one| one.failure.as_ref());
        let then = record.key.as_ref();
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
            (Ok(_), Ok(_)) => complete.as_ref().and_then(|one| one.unlike.clone()),
        };
        Resumption {
            complete: complete.filter(|_| why_not.is_none()),
            key: record.key,
            retries,
            why_not,
        }
    }
}

impl Complete {
    /// What was measured and found of a variant, with the profiles in its folder below another.
    fn read(done: Done, variant: &VariantId, output: &Path) -> Complete {
        let folder = variant_folder(output, variant);
        let failure = done.failure(variant).cloned();
        let mut measured = done.captures;
        let mut files = done.files;
        // A run that resumes this one writes these again, before it takes the variant over.
        files.retain(|name, _| !is_static(name));
        let is_other = |(name, sha256): &(&String, &String)| {
            sha256_file(&folder.join(name)).ok().as_ref() != Some(*sha256)
        };
        let mut unlike = files.iter().find(is_other).map(|(name, _)| name.as_str());
        for (name, place) in PROFILES {
            let Some(sha256) = done.profiles.get(name) else {
                continue;
            };
            let path = match is_static(name) {
                // A killed run that resumed this one may have written others beside what was there.
                true => recorded_folder(output, variant).join(name),
                false => folder.join(name),
            };
            let bytes = read_regular(&path).ok();
            let bytes = bytes.filter(|bytes| sha256_hex(bytes) == *sha256);
            match bytes.and_then(|bytes| Profile::parse(&bytes).ok()) {
                Some(profile) => place(&mut measured).push(profile),
                None => unlike = unlike.or(Some(name)),
            }
        }
        let unlike = unlike.map(|name| format!("`{name}` is not what the interrupted run wrote"));
        files.extend(done.profiles);
        Complete {
            measured,
            failure,
            files,
            unlike,
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
    let began = &all.first()?.began;
    let names = first(all.iter().map(|one| one.variant.to_string()), MOST);
    let message = format!(
        "the run that began at {began} was interrupted, and what it measured of these variants is used: {names}"
    );
    let next = "nothing, if nobody could write to its files meanwhile; otherwise measure anew, without --resume";
    Some(Finding::of_project(Code::Resumed, message, next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::folder::{sealed, unsealed};
    use std::fs;

    #[test]
    fn a_variant_is_taken_over_as_a_whole_or_not_at_all() {
        let variant: VariantId = "s/v".to_owned().try_into().unwrap();
        let key = |value: &str| Key::from([("its program".to_owned(), value.to_owned())]);
        let finding = |code| Finding::deny(code, &variant, "why", "next");
        let output = tempfile::tempdir().unwrap();
        let folder = variant_folder(output.path(), &variant);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("capture-1.csv"), "1").unwrap();
        let used = |then: Option<Key>, now: Result<Key, String>, failed: bool, written: &str| {
            let failure = failed.then(|| finding(Code::WrongNumbers));
            let sha256 = sha256_hex(written.as_bytes());
            let done = Done {
                captures: Captures {
                    findings: failure.into_iter().collect(),
                    ..Captures::default()
                },
                files: BTreeMap::from([("capture-1.csv".to_owned(), sha256)]),
                ..Done::default()
            };
            let record = VariantRecord {
                run: String::new(),
                variant: variant.clone(),
                key: then,
                retries: vec![finding(Code::Retried)],
                done: Some(done),
                part: false,
                on: Vec::new(),
            };
            let used = Kept::of(record, output.path()).resumption(&now);
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

    /// A variant of which all profiles were measured, in its folder: what was measured, and its record.
    fn measured(output: &Path) -> (Captures, VariantRecord) {
        let profile = |path: &str| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("baselines")
                .join(path);
            Profile::read(&path).unwrap()
        };
        let current = profile("nvidia-h200/bsr_gemm/cp_async.profile.json");
        let compiled = profile("sm-90a+static/bsr_gemm/cp_async.profile.json");
        let variant = current.variant.clone();
        let of_base = |profile: &Profile| {
            let mut base = profile.clone();
            base.provenance.git = Some("the base".to_owned());
            base
        };
        let finding = |code| Finding::deny(code, &variant, "why", "next").detail("detail");
        let mut measured = Captures {
            bases: vec![of_base(&current)],
            compiled_bases: vec![of_base(&compiled)],
            profiles: vec![current],
            compiled: vec![compiled],
            findings: vec![finding(Code::Retried), finding(Code::NotMeasured)],
            gaps: vec![finding(Code::ClockChanged)],
            ..Captures::default()
        };
        let folder = variant_folder(output, &variant);
        fs::create_dir_all(folder.join("base")).unwrap();
        for (name, place) in PROFILES {
            place(&mut measured)[0].write(&folder.join(name)).unwrap();
        }
        let done = Some(Done::of(&mut measured, BTreeMap::new()));
        let record = VariantRecord {
            key: Some(Key::default()),
            done,
            ..VariantRecord::new("1".to_owned(), &variant)
        };
        (
            measured,
            unsealed::<VariantRecord>(&sealed(&record)).unwrap(),
        )
    }

    #[test]
    fn what_is_read_of_a_variant_is_what_was_measured() {
        let output = tempfile::tempdir().unwrap();
        let (measured, record) = measured(output.path());
        let (variant, text) = (record.variant.clone(), sealed(&record));
        let text_of = |measured: &Captures| {
            let profiles = [&measured.profiles, &measured.bases];
            let compiled = [&measured.compiled, &measured.compiled_bases];
            let findings = [&measured.findings, &measured.gaps];
            serde_json::to_string(&(profiles, compiled, findings, &measured.reused)).unwrap()
        };
        let read = || {
            let kept = Kept::of(unsealed::<VariantRecord>(&text).unwrap(), output.path());
            let used = kept.resumption(&Ok(Key::default()));
            match used.complete {
                Some(complete) => Ok(text_of(&complete.measured)),
                None => Err(used.why_not.unwrap()),
            }
        };
        assert_eq!(read(), Ok(text_of(&measured)));
        // A run that resumed it was killed after it had built the variant.
        crate::files::keep_earlier(output.path(), &variant).unwrap();
        let folder = variant_folder(output.path(), &variant);
        for (name, _) in PROFILES.into_iter().filter(|(name, _)| is_static(name)) {
            crate::files::write_atomically(&folder.join(name), b"{}").unwrap();
        }
        assert_eq!(read(), Ok(text_of(&measured)));
        // A finding of a variant with a profile is found again, and is no failure of it.
        for (name, _) in PROFILES.into_iter().filter(|(name, _)| !is_static(name)) {
            let path = folder.join(name);
            let whole = fs::read(&path).unwrap();
            crate::files::write_atomically(&path, b"{}").unwrap();
            let why = format!("`{name}` is not what the interrupted run wrote");
            assert_eq!(read(), Err(why));
            fs::write(&path, whole).unwrap();
        }
        assert_eq!(read(), Ok(text_of(&measured)));
    }
}
