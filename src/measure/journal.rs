//! What a run has measured so far, so that another one can go on with it where it is interrupted.
//!
//! `journal.json` in the folder of the profiles says which run measures there; it is removed once
//! that run has ended. A file of the same name beside the captures of a variant says what is measured
//! of it in whole rounds, and what makes it the same measurement. It counts only as a whole.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capture::read_bytes;
use crate::config::Variant;
use crate::files::{
    JOURNAL_FILE, base_folder, bounded_json, create_work_folder, most, open_to_lock,
    read_regular_up_to, variant_folder, write_atomically, write_locked,
};
use crate::finding::{Code, Error, Finding};
use crate::hash::sha256_hex;
use crate::parallel;
use crate::plan::Side;
use crate::process;
use crate::profile::{CaptureRecord, FileHash, LaunchList, now};
use crate::profiler::{Capture, Launched, Page};
use crate::terms::{Seed, Tier, VariantId};
use crate::verdict::Schedule;

/// What is to be done where an interrupted run is of no use.
pub(super) const MEASURED: &str = "nothing: what is reported was measured in this run";
/// How long the process of an interrupted run may take to end.
const SOON: Duration = Duration::from_secs(5);
/// Version of the format.
const SCHEMA: u32 = 1;

/// What was taken over of an interrupted run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resumed {
    /// The variant.
    pub variant: VariantId,
    /// Its rounds that were not measured again: one process each, or two of each side.
    pub rounds: u32,
    /// Processes of these rounds and before them, of both sides.
    pub processes: u32,
    /// When the interrupted run began, RFC 3339, UTC.
    pub began: String,
}

/// The journal of a run. It is written from the moment on when something is built to be measured.
#[derive(Debug)]
pub struct Journal {
    /// The folder of the profiles.
    folder: PathBuf,
    /// The work folder of the project.
    work: PathBuf,
    resume: bool,
    /// What makes two runs in a folder of their own the same, where that is the run's.
    plan: Option<String>,
    /// The folders of the profiles of its other parts, which other GPUs measure.
    beside: Vec<PathBuf>,
    is_part: bool,
    begun: OnceCell<Begun>,
    /// The journals of variants that were written.
    written: RefCell<BTreeSet<PathBuf>>,
}

/// What the run before left that this one does not go on with.
#[derive(Debug, Default)]
pub struct Before {
    /// Why nobody can go on with it.
    pub unusable: Option<Finding>,
    /// When it began, where `resume` would have gone on with it.
    pub dropped: Option<String>,
}

/// A run that measures.
#[derive(Debug)]
struct Begun {
    run: RunEntry,
    /// Whether it goes on with an interrupted one.
    goes_on: bool,
    /// The file, locked for as long as this process lives; `None` on a file system without locks.
    _lock: Option<File>,
}

/// What is known of a run whose journal is there.
#[derive(Debug)]
enum Earlier {
    Over,
    GoesOn,
    /// Why nobody knows whether it is over.
    Unknown(String),
}

/// What the file of a run says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunEntry {
    schema: u32,
    /// That of no other run.
    id: String,
    /// When it began, RFC 3339, UTC.
    began: String,
    /// What the marks of its programs begin with.
    mark: String,
    /// What other processes measure for it, as sha256.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    plan: Option<String>,
}

/// A file of a journal: its content, and the sha256 of that in JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed<T> {
    content: T,
    sha256: String,
}

/// What is measured of a variant in whole rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VariantEntry {
    pub schema: u32,
    /// The run.
    pub run: String,
    /// The variant.
    pub variant: VariantId,
    /// What makes it the same measurement, by its name for people, each as sha256.
    pub key: BTreeMap<String, String>,
    /// The tier that it is measured on.
    pub tier: Tier,
    /// The launches that were chosen, where they were.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub schedule: Option<Schedule>,
    /// The warnings about repetitions, one for each.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub retries: Vec<Finding>,
    /// What was found where it failed; then nothing else of it counts.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub failed: Vec<Finding>,
    /// Whole rounds.
    pub rounds: u32,
    /// The code that is judged.
    pub current: SideEntry,
    /// The base, where it is measured beside it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub base: Option<SideEntry>,
}

/// One side of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SideEntry {
    /// In their order.
    pub captures: Vec<CaptureEntry>,
    /// What its command line launches, once that was looked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub listed: Option<ListedEntry>,
}

/// What a command line launches, as far as that was found out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ListedEntry {
    Known(Launched),
    Unknown,
}

/// A capture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaptureEntry {
    /// As a profile has it.
    pub record: CaptureRecord,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub launch_list: Option<LaunchList>,
    /// sha256 of every file that its process left, by name.
    pub files: BTreeMap<String, String>,
}

impl CaptureEntry {
    /// How the names of its files begin.
    pub fn stem(&self) -> &str {
        stem_of(&self.record.report.file)
    }
}

/// The part of a file's name before its endings.
pub(super) fn stem_of(name: &str) -> &str {
    name.split('.').next().unwrap_or_default()
}

impl Journal {
    /// Of a run that will measure into a folder. With `resume` it goes on with the run that was
    /// interrupted there, if there is one.
    pub fn of(folder: &Path, work: &Path, resume: bool) -> Journal {
        Journal {
            folder: folder.to_path_buf(),
            work: work.to_path_buf(),
            resume,
            plan: None,
            beside: Vec::new(),
            is_part: false,
            begun: OnceCell::new(),
            written: RefCell::default(),
        }
    }

    /// Of a run of this plan in a folder of its own, which lets other processes measure.
    pub fn of_plan(self, plan: String) -> Journal {
        Journal {
            plan: Some(plan),
            ..self
        }
    }

    /// Of a part of a run, of which other GPUs measure the others into these folders. A variant may have
    /// been in one of them before.
    pub fn beside(self, beside: Vec<PathBuf>) -> Journal {
        Journal {
            beside,
            is_part: true,
            ..self
        }
    }

    /// Whether other machines measure the rest of the run: which one this is then says nothing of it.
    pub fn is_part(&self) -> bool {
        self.is_part
    }

    /// The folders of those runs of a plan among these that were interrupted, the newest last.
    pub fn interrupted_among(folders: impl Iterator<Item = PathBuf>, plan: &str) -> Vec<PathBuf> {
        let runs = folders.filter_map(|folder| {
            let path = folder.join(JOURNAL_FILE);
            let run = read::<RunEntry>(&path).ok().flatten()?;
            let is_same = run.plan.as_deref() == Some(plan) && is_over(&path);
            let written = path.metadata().and_then(|meta| meta.modified()).ok();
            is_same.then_some((run.began, written, folder))
        });
        let mut runs: Vec<_> = runs.collect();
        runs.sort();
        runs.into_iter().map(|(.., folder)| folder).collect()
    }

    /// Kills what a run that was killed itself left running, which measured into a folder.
    pub fn end_left_in(folder: &Path) {
        let path = folder.join(JOURNAL_FILE);
        if let (Ok(Some(run)), true) = (read::<RunEntry>(&path), is_over(&path)) {
            process::end_marked(&run.mark);
        }
    }

    /// Whether a run still measures into this folder.
    pub fn is_running_in(folder: &Path) -> bool {
        !is_over(&folder.join(JOURNAL_FILE))
    }

    /// Ends the run whose processes measured into a folder, and which has said everything.
    pub fn end_in(folder: &Path) {
        let path = folder.join(JOURNAL_FILE);
        if !is_over(&path) {
            return;
        }
        let _ = fs::remove_file(path);
        let suites = fs::read_dir(folder).into_iter().flatten().flatten();
        let variants = suites.flat_map(|suite| fs::read_dir(suite.path()).into_iter().flatten());
        for variant in variants.flatten() {
            let _ = fs::remove_file(variant.path().join(JOURNAL_FILE));
        }
    }

    /// Begins the run, or goes on with an interrupted one, of which all processes are ended first. A
    /// second call does nothing.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Environment`] where that run is not interrupted, but goes on.
    pub fn begin(&self) -> Result<Before, Error> {
        if self.begun.get().is_some() {
            return Ok(Before::default());
        }
        create_work_folder(&self.work)?;
        fs::create_dir_all(&self.folder).map_err(Error::io("create", &self.folder))?;
        let path = self.path();
        let mut found = read::<RunEntry>(&path);
        // Kept until the new file is there, which is locked: otherwise two runs could go on with the
        // same one.
        let (earlier, _lock) = match (&found, self.resume) {
            (Ok(Some(_)), true) => {
                let locked = locked_soon(&path)?;
                // Another run may have been there before this one had the lock.
                found = read(&path);
                locked
            }
            _ if is_over(&path) => (Earlier::Over, None),
            _ => (Earlier::GoesOn, None),
        };
        if let (Ok(Some(run)), Earlier::Over) = (&found, &earlier) {
            // What it started may still be on the GPU, and write where this run does.
            process::end_marked(&run.mark);
        }
        let (interrupted, before) = self.to_go_on_with(found, &earlier)?;
        let mut run = RunEntry {
            schema: SCHEMA,
            id: fresh_id()?,
            began: now(),
            mark: process::mark_of_run(),
            plan: self.plan.clone(),
        };
        let goes_on = interrupted.is_some();
        if let Some(interrupted) = interrupted {
            (run.id, run.began) = (interrupted.id, interrupted.began);
        }
        let lock = write_locked(&path, sealed(&run).as_bytes());
        let begun = Begun {
            run,
            goes_on,
            // Without a lock this run goes on, too: every other one takes it for one that still
            // measures, because nobody can lock the file.
            _lock: lock.map_err(Error::io("write", &path))?,
        };
        let _ = self.begun.set(begun);
        Ok(before)
    }

    /// The run of those that are found that this one goes on with, and what is to be said of it
    /// otherwise.
    fn to_go_on_with(
        &self,
        found: Result<Option<RunEntry>, String>,
        earlier: &Earlier,
    ) -> Result<(Option<RunEntry>, Before), Error> {
        let mut before = Before::default();
        let why = match (found, self.resume, earlier) {
            (Ok(Some(run)), true, Earlier::Over) => return Ok((Some(run), before)),
            (Ok(Some(run)), true, Earlier::GoesOn) => return Err(self.goes_on_elsewhere(&run)),
            // To refuse would be to refuse every later run, too: nobody will ever know.
            (Ok(Some(_)), true, Earlier::Unknown(why)) => why.clone(),
            (Err(why), true, _) => why,
            (Ok(Some(run)), false, Earlier::Over) => {
                before.dropped = Some(run.began);
                return Ok((None, before));
            }
            (Ok(_), ..) | (Err(_), false, _) => return Ok((None, before)),
        };
        let message = format!("everything is measured: {why} ({})", self.path().display());
        let unusable = Finding::of_project(Code::NotResumed, message, MEASURED);
        before.unusable = Some(unusable);
        Ok((None, before))
    }

    fn goes_on_elsewhere(&self, run: &RunEntry) -> Error {
        Error::Environment {
            what: format!(
                "the run that began at {} was not interrupted: it still measures into {}",
                run.began,
                self.folder.display()
            ),
            next: format!(
                "wait for its end, or find its process: fuser -v {}",
                self.path().display()
            ),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(JOURNAL_FILE)
    }

    /// When the interrupted run began that this one goes on with; `None` where there is none.
    pub(super) fn interrupted(&self) -> Option<&str> {
        let begun = self.begun.get().filter(|begun| begun.goes_on)?;
        Some(&begun.run.began)
    }

    /// An entry of this run about a variant of which nothing is measured yet.
    pub(super) fn entry(
        &self,
        variant: &Variant,
        key: BTreeMap<String, String>,
        schedule: Option<Schedule>,
    ) -> VariantEntry {
        VariantEntry {
            schema: SCHEMA,
            run: self.run().to_owned(),
            variant: variant.id.clone(),
            key,
            tier: variant.tier(),
            schedule,
            retries: Vec::new(),
            failed: Vec::new(),
            rounds: 0,
            current: SideEntry::default(),
            base: None,
        }
    }

    fn run(&self) -> &str {
        self.begun.get().map_or("", |begun| &begun.run.id)
    }

    /// What the interrupted run measured of a variant in whole rounds, where it measured anything.
    ///
    /// # Errors
    /// In words, why it does not count.
    pub(super) fn earlier(&self, variant: &VariantId) -> Result<Option<VariantEntry>, String> {
        if !self.resume {
            return Ok(None);
        }
        if self.interrupted().is_none() {
            return Ok(self.earlier_elsewhere(variant));
        }
        let path = variant_folder(&self.folder, variant).join(JOURNAL_FILE);
        let Some(entry) = read::<VariantEntry>(&path)? else {
            return Ok(self.earlier_elsewhere(variant));
        };
        if entry.schema != SCHEMA || entry.run != self.run() || entry.variant != *variant {
            return Err("its journal is that of another run".to_owned());
        }
        self.written.borrow_mut().insert(path);
        Ok(Some(entry))
    }

    /// What the interrupted run measured of a variant on another GPU. That is not used, but how it failed
    /// there must be said.
    fn earlier_elsewhere(&self, variant: &VariantId) -> Option<VariantEntry> {
        let mut beside = self.beside.iter();
        beside.find_map(|folder| {
            let run = read::<RunEntry>(&folder.join(JOURNAL_FILE)).ok()??;
            let path = variant_folder(folder, variant).join(JOURNAL_FILE);
            let entry = read::<VariantEntry>(&path).ok()??;
            (entry.run == run.id && entry.variant == *variant).then_some(entry)
        })
    }

    /// Writes what is measured of a variant. Nothing depends on the file, so a failed write is
    /// ignored: the one before it is still there.
    pub(super) fn note(&self, entry: &VariantEntry) {
        let _ = self.write(entry);
    }

    /// Writes that a variant failed, in the place of what was measured of it. A run that goes on must
    /// not forget it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn note_failed(&self, entry: &VariantEntry) -> Result<(), Error> {
        // A program may have removed it, which is one way to fail.
        let folder = variant_folder(&self.folder, &entry.variant);
        fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        self.write(entry)
    }

    fn write(&self, entry: &VariantEntry) -> Result<(), Error> {
        let path = variant_folder(&self.folder, &entry.variant).join(JOURNAL_FILE);
        let written = write_atomically(&path, sealed(entry).as_bytes());
        written.map_err(Error::io("write", &path))?;
        self.written.borrow_mut().insert(path);
        Ok(())
    }

    /// Removes what is noted of a variant: it is measured anew.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn forget(&self, variant: &VariantId) -> Result<(), Error> {
        let path = variant_folder(&self.folder, variant).join(JOURNAL_FILE);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("clear", &path)(error))
            }
            _ => Ok(()),
        }
    }

    /// The run has ended, and has said everything: nobody goes on with it.
    pub fn end(self) {
        let Some(begun) = self.begun.get() else {
            return;
        };
        let path = self.path();
        // Another run may have begun in the same folder meanwhile.
        let own = read::<RunEntry>(&path).ok().flatten();
        if own.is_some_and(|own| own.id == begun.run.id) {
            let _ = fs::remove_file(&path);
        }
        for path in self.written.into_inner() {
            let _ = fs::remove_file(path);
        }
    }
}

/// Whether no process has the lock of the file. Where nobody knows that it counts as locked: nothing of
/// that run is killed, removed or gone on with then.
fn is_over(path: &Path) -> bool {
    !process::is_locked(path)
}

/// Whether the run of a journal is over, or is after a moment: a process that lost the one that started
/// it is about to end. If it is over, with the lock of its file, where that is still there.
fn locked_soon(path: &Path) -> Result<(Earlier, Option<File>), Error> {
    let unknown = |why: String| {
        let text = format!("nobody knows whether the run before is over: {why}");
        Ok((Earlier::Unknown(text), None))
    };
    loop {
        let file = match open_to_lock(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok((Earlier::Over, None));
            }
            Err(error) => return unknown(error.to_string()),
        };
        match process::wait_for_lock(&file, path, SOON, || {}) {
            Ok(true) => {}
            Ok(false) => return Ok((Earlier::GoesOn, None)),
            Err(Error::Io { source, .. }) => return unknown(source.to_string()),
            Err(error) => return Err(error),
        }
        // Another run may have put its own file there meanwhile.
        let place = |meta: Metadata| (meta.dev(), meta.ino());
        let (own, there) = (file.metadata().map(place), path.metadata().map(place));
        if own.is_ok_and(|own| there.is_ok_and(|there| own == there)) {
            return Ok((Earlier::Over, Some(file)));
        }
    }
}

/// A number that no other run has.
fn fresh_id() -> Result<String, Error> {
    let part = || Seed::fresh().map_err(Error::io("read", "the random numbers of the system"));
    Ok(format!("{:08x}{:08x}", part()?.0, part()?.0))
}

fn sealed<T: Serialize>(content: &T) -> String {
    let sha256 = sha256_of(content);
    let sealed = Sealed { content, sha256 };
    serde_json::to_string(&sealed).unwrap_or_default()
}

fn sha256_of<T: Serialize>(content: &T) -> String {
    let text = serde_json::to_string(content).unwrap_or_default();
    sha256_hex(text.as_bytes())
}

/// The content of a file of a journal, where there is one.
///
/// # Errors
/// In words, what is wrong with it.
fn read<T: Serialize + for<'de> Deserialize<'de>>(path: &Path) -> Result<Option<T>, String> {
    match read_regular_up_to(path, most::TEXT) {
        Ok(bytes) => parse(&bytes).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("its journal cannot be read: {error}")),
    }
}

fn parse<T: Serialize + for<'de> Deserialize<'de>>(bytes: &[u8]) -> Result<T, String> {
    bounded_json(bytes).map_err(|why| format!("its journal is refused: {why}"))?;
    let sealed: Sealed<T> =
        serde_json::from_slice(bytes).map_err(|why| format!("its journal is damaged: {why}"))?;
    // The same text too: a field of another name would be ignored, and an optional one absent.
    let is_same = serde_json::to_vec(&sealed).is_ok_and(|again| again == bytes.trim_ascii());
    match is_same && sha256_of(&sealed.content) == sealed.sha256 {
        true => Ok(sealed.content),
        false => Err("its journal is damaged: its content has another sha256".to_owned()),
    }
}

/// Reads the journal of a variant from its JSON form, and answers with its rounds.
///
/// # Errors
/// In words, what is wrong with it.
pub fn journal_rounds(bytes: &[u8]) -> Result<u32, String> {
    Ok(parse::<VariantEntry>(bytes)?.rounds)
}

/// A capture of an interrupted run, read again.
#[derive(Debug)]
pub(super) struct TakenCapture {
    pub capture: Capture,
    /// sha256 of every file that its process left, by path.
    pub files: BTreeMap<PathBuf, String>,
}

/// Reads the captures of a variant again, by the readers that a recording is read by.
///
/// # Errors
/// In words, which of them is not what was written.
pub(super) fn read_captures(
    output: &Path,
    entry: &VariantEntry,
    gpu_uuid: &str,
) -> Result<BTreeMap<(Side, String), TakenCapture>, String> {
    let variant = &entry.variant;
    let current = (Side::Current, variant_folder(output, variant));
    let base = (Side::Base, base_folder(output, variant));
    let sides = [(current, Some(&entry.current)), (base, entry.base.as_ref())];
    let captures: Vec<(Side, &Path, &CaptureEntry)> = sides
        .iter()
        .flat_map(|((side, folder), entry)| {
            let captures = entry.iter().flat_map(|entry| &entry.captures);
            captures.map(|capture| (*side, folder.as_path(), capture))
        })
        .collect();
    let read = parallel::map(&captures, |(_, folder, capture)| {
        read_capture(folder, capture, entry.tier, gpu_uuid)
    });
    let mut taken = BTreeMap::new();
    for ((side, _, capture), read) in captures.iter().zip(read) {
        let key = (*side, capture.stem().to_owned());
        if taken.insert(key, read?).is_some() {
            return Err("its journal names a capture twice".to_owned());
        }
    }
    Ok(taken)
}

fn read_capture(
    folder: &Path,
    entry: &CaptureEntry,
    tier: Tier,
    gpu_uuid: &str,
) -> Result<TakenCapture, String> {
    let record = &entry.record;
    let stem = entry.stem();
    let unlike = |name: &str| format!("`{name}` is not what the interrupted run wrote");
    let place = |name: &str| {
        // A name that leads elsewhere is no file of this capture.
        let is_own = stem_of(name) == stem && !name.contains('/');
        is_own
            .then(|| folder.join(name))
            .ok_or_else(|| unlike(name))
    };
    let bytes = |file: &FileHash| {
        let path = place(&file.file)?;
        let bytes = read_regular_up_to(&path, most::BINARY).map_err(|_| unlike(&file.file))?;
        match sha256_hex(&bytes) == file.sha256 {
            true => Ok((path, bytes)),
            false => Err(unlike(&file.file)),
        }
    };
    let mut files = BTreeMap::new();
    for (name, sha256) in &entry.files {
        let path = place(name)?;
        match crate::hash::sha256_file(&path) {
            Ok(now) if now == *sha256 => files.insert(path, now),
            _ => return Err(unlike(name)),
        };
    }
    let (report_path, report) = bytes(&record.report)?;
    let (format, report) = read_bytes(&report_path, &report).map_err(|why| why.to_string())?;
    let page = record.csv.as_ref().map(|csv| {
        let (path, text) = bytes(csv)?;
        let recording = ncu_report::csv::read(&text).map_err(|why| why.to_string())?;
        let sha256 = csv.sha256.clone();
        Ok::<Page, String>(Page {
            path,
            sha256,
            recording,
        })
    });
    let page = page.transpose()?;
    let (Some(phase), true) = (record.phase, format.tier() == tier) else {
        return Err(unlike(&record.report.file));
    };
    if record.gpu_uuid.as_deref() != Some(gpu_uuid) || page.is_some() != (tier == Tier::Counters) {
        return Err(unlike(&record.report.file));
    }
    let capture = Capture {
        report_path,
        report_sha256: record.report.sha256.clone(),
        page,
        phase,
        device: record.device.clone(),
        argv: record.argv.clone(),
        report,
        seed: record.seed,
        checked: record.checked,
        tuned: record.tuned.clone(),
        launch_list: entry.launch_list.clone(),
    };
    Ok(TakenCapture { capture, files })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn nobody_goes_on_with_a_damaged_journal_of_a_run_and_that_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("work");
        let begin = |resume| {
            let journal = Journal::of(folder.path(), &work, resume);
            let before = journal.begin().unwrap();
            (journal, before)
        };
        let run = |journal: &Journal| journal.run().to_owned();
        let (first, before) = begin(false);
        assert!(before.unusable.is_none() && before.dropped.is_none());
        let own = run(&first);
        // Killed: the file stays, and its lock is free.
        drop(first);
        let (second, before) = begin(true);
        assert!(before.unusable.is_none());
        assert_eq!(run(&second), own);
        assert!(second.interrupted().is_some());
        drop(second);
        let path = folder.path().join(JOURNAL_FILE);
        let whole = fs::read_to_string(&path).unwrap();
        for text in [
            "{}",
            &whole[..whole.len() / 2],
            &whole.replace("\"began\":\"2", "\"began\":\"3"),
        ] {
            fs::write(&path, text).unwrap();
            let (third, before) = begin(true);
            let said = before.unusable.unwrap().message;
            assert!(
                said.starts_with("everything is measured: its journal is damaged: "),
                "{said}"
            );
            assert!(third.interrupted().is_none() && run(&third) != own);
        }
    }

    #[test]
    fn a_run_goes_on_only_with_one_that_is_over_for_certain() {
        let folder = tempfile::tempdir().unwrap();
        let begin = || {
            let journal = Journal::of(folder.path(), folder.path(), true);
            journal.begin().map(|before| (journal, before))
        };
        let (first, _) = begin().unwrap();
        let found = || read::<RunEntry>(&first.path());
        let unknown = Earlier::Unknown("no locks available".to_owned());
        let (run, before) = first.to_go_on_with(found(), &unknown).unwrap();
        let said = before.unusable.unwrap().message;
        assert!(run.is_none() && said.contains("everything is measured: no locks available"));
        let (run, before) = first.to_go_on_with(found(), &Earlier::Over).unwrap();
        assert!(run.is_some() && before.unusable.is_none());
        let goes_on = first.to_go_on_with(found(), &Earlier::GoesOn);
        assert!(matches!(goes_on, Err(Error::Environment { .. })));
        // Its file is gone, so it is over and has said everything.
        fs::remove_file(first.path()).unwrap();
        assert!(matches!(
            locked_soon(&first.path()),
            Ok((Earlier::Over, None))
        ));
        assert!(begin().unwrap().0.interrupted().is_none());
    }

    #[test]
    fn what_another_run_noted_of_a_variant_or_of_another_one_does_not_count() {
        const CONFIG: &str = "[metric.duration]\ncounter = \"gpu__time_duration.sum\"\n\
            direction = \"lower\"\ntolerance = { relative_percent = 1.0 }\n\
            [suite.s.variant.a]\nrun = [\"a\"]\n[suite.s.variant.b]\nrun = [\"b\"]\n";
        let config = Config::parse(Path::new("/p/config.toml"), CONFIG).unwrap();
        let variants: Vec<&Variant> = config.variants().collect();
        let folder = tempfile::tempdir().unwrap();
        let begin = |resume| {
            let journal = Journal::of(folder.path(), folder.path(), resume);
            journal.begin().unwrap();
            journal
        };
        let place = |at: usize| variant_folder(folder.path(), &variants[at].id);
        for at in 0..2 {
            fs::create_dir_all(place(at)).unwrap();
        }
        let note = |journal: &Journal| {
            journal.note(&journal.entry(variants[0], BTreeMap::new(), None));
            fs::read(place(0).join(JOURNAL_FILE)).unwrap()
        };
        let earlier = |journal: &Journal, at: usize| journal.earlier(&variants[at].id);
        let old = note(&begin(false));
        let new = note(&begin(false));
        let journal = begin(true);
        assert!(earlier(&journal, 0).unwrap().is_some());
        assert!(earlier(&journal, 1).unwrap().is_none());
        let other = "its journal is that of another run";
        fs::write(place(0).join(JOURNAL_FILE), old).unwrap();
        assert_eq!(earlier(&journal, 0).unwrap_err(), other);
        fs::write(place(1).join(JOURNAL_FILE), &new).unwrap();
        assert_eq!(earlier(&journal, 1).unwrap_err(), other);
        // One that another GPU measured before.
        let elsewhere = tempfile::tempdir().unwrap();
        let beside = |resume| {
            let journal = Journal::of(elsewhere.path(), folder.path(), resume);
            let journal = journal.beside(vec![folder.path().to_path_buf()]);
            journal.begin().unwrap();
            journal
        };
        fs::write(place(0).join(JOURNAL_FILE), &new).unwrap();
        assert!(earlier(&beside(true), 0).unwrap().is_some());
        assert!(earlier(&beside(true), 1).unwrap().is_none());
        assert!(earlier(&beside(false), 0).unwrap().is_none());
        // A failure that cannot be noted ends the run.
        fs::remove_dir_all(place(0)).unwrap();
        let entry = journal.entry(variants[0], BTreeMap::new(), None);
        assert!(journal.note_failed(&entry).is_ok());
        fs::remove_dir_all(place(0)).unwrap();
        fs::write(place(0), "").unwrap();
        assert!(journal.note_failed(&entry).is_err());
    }

    #[test]
    fn a_run_without_resume_says_what_it_drops_and_has_another_number() {
        let folder = tempfile::tempdir().unwrap();
        let begin = |resume| {
            let journal = Journal::of(folder.path(), folder.path(), resume);
            let before = journal.begin().unwrap();
            (journal.run().to_owned(), journal, before)
        };
        let (first, journal, _) = begin(false);
        // It still measures.
        assert!(Journal::is_running_in(folder.path()));
        drop(journal);
        assert!(!Journal::is_running_in(folder.path()));
        let (second, journal, before) = begin(false);
        assert!(before.dropped.is_some() && first != second);
        journal.end();
        assert!(!folder.path().join(JOURNAL_FILE).exists());
        assert!(begin(true).1.interrupted().is_none());
    }
}
