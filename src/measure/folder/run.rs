//! The record of the run that measured into a folder last. It is locked while the run goes on, and says
//! how far that came: another run finds by it what a killed one left running, and resumes it.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::file::{read, seal_of, sealed};
use super::record::{Kept, MEASURED, VariantRecord};
use super::slice::{Found, SliceOf};
use crate::disk;
use crate::evidence::SickGpu;
use crate::files::{
    RUN_FILE, SICK_FILE, VARIANT_FILE, create_work_folder, if_there, open_to_lock, variant_folder,
    write_atomically, write_locked,
};
use crate::finding::{Code, Error, Finding};
use crate::measure::captures::Captures;
use crate::measure::cost::Times;
use crate::measure::job::seeds::fresh_seed;
use crate::measure::watch::Watch;
use crate::plan::SlicePlace;
use crate::process::{self, Access};
use crate::profile::now;
use crate::terms::VariantId;

/// How long the process of an interrupted run may take to end.
const SOON: Duration = Duration::from_secs(5);

/// The file of a run. It is written from the moment on when something is built to be measured.
#[derive(Debug)]
pub struct RunFile {
    /// The folder of the profiles.
    folder: PathBuf,
    /// The work folder of the project.
    work: PathBuf,
    resume: bool,
    /// The slice of a check that it measures, where that is judged elsewhere.
    slice: Option<SliceOf>,
    begun: OnceCell<Begun>,
}

/// A run that measures.
#[derive(Debug)]
struct Begun {
    run: RefCell<RunRecord>,
    /// Whether it resumes an interrupted one.
    resumes: bool,
    /// The GPU that the interrupted run saw to be sick.
    sick: Option<SickGpu>,
    /// The sha256 of the record, as it was written last.
    sha256: RefCell<String>,
    /// sha256 of the record of each variant that is complete.
    complete: RefCell<BTreeMap<VariantId, String>>,
    /// The file, locked for as long as this process lives; `None` on a file system without locks.
    lock: RefCell<Option<File>>,
    /// The same of the folder.
    _folder: Option<File>,
}

/// What is known of a run whose file is there.
#[derive(Debug)]
enum Earlier {
    Over,
    GoesOn,
    /// Why nobody knows whether it is over.
    Unknown(String),
}

/// What the file says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// That of no other run.
    id: String,
    /// When it began, RFC 3339, UTC.
    began: String,
    state: State,
    /// The slice of a check that it measures; `None` where nobody but itself judges it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    slice: Option<SliceOf>,
    /// What it measured and found of its slice, once that is whole.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    found: Option<Found>,
}

/// How far a run came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// It measures, or was interrupted.
    Measuring,
    /// All variants are measured, or failed, and it has looked for what changed meanwhile.
    Whole,
    /// It has reported that: nobody resumes it.
    Said,
}

impl RunRecord {
    /// The run of a file, unless it has said everything.
    ///
    /// # Errors
    /// In words, what is wrong with the file.
    fn unsaid(path: &Path) -> Result<Option<RunRecord>, String> {
        let run = read::<RunRecord>(path)?.map(|(run, _)| run);
        Ok(run.filter(|run| run.state != State::Said))
    }

    /// Whether its run is over the measurement.
    fn is_whole(&self) -> bool {
        self.state != State::Measuring
    }

    /// Writes it: the file with its lock, and the sha256 of its content.
    fn write(&self, path: &Path) -> std::io::Result<(Option<File>, String)> {
        let text = sealed(self);
        Ok((write_locked(path, &text)?, seal_of(&text)))
    }
}

impl SliceOf {
    /// Whether the folder has a run that measures a slice. One whose record is damaged, or was lost, counts
    /// as one: nobody knows what it found.
    pub fn is_in(folder: &Path) -> bool {
        match read::<RunRecord>(&folder.join(RUN_FILE)) {
            Ok(Some((run, _))) => run.slice.is_some(),
            Ok(None) => has_parts(folder),
            Err(_) => disk::is_dir(folder),
        }
    }

    /// Reads the slice in a folder, whose record must have this sha256 where one is known.
    ///
    /// # Errors
    /// In words, what is wrong with it.
    pub fn read(folder: &Path, sha256: Option<&str>) -> Result<(SliceOf, Found), String> {
        if !disk::is_there(folder) {
            return Err("there is no such folder".to_owned());
        }
        let run = read::<RunRecord>(&folder.join(RUN_FILE))?;
        let (run, own) = run.ok_or_else(|| format!("it has no {RUN_FILE}"))?;
        if sha256.is_some_and(|sha256| sha256 != own) {
            return Err(format!("its {RUN_FILE} is not what was written"));
        }
        let is_whole = run.is_whole();
        let slice = run.slice.ok_or("what its run measured is no slice")?;
        let found = run.found.filter(|_| is_whole);
        let found = found.ok_or("it was cut off: its run did not end")?;
        let SlicePlace { index, count } = slice.place;
        SlicePlace::new(index, count).map_err(|why| format!("its {RUN_FILE} says: {why}"))?;
        if slice.slices.len() != count as usize {
            let listed = slice.slices.len();
            return Err(format!("its {RUN_FILE} lists {listed} slices of {count}"));
        }
        Ok((slice, found))
    }
}

impl RunFile {
    /// Of a run that will measure into a folder. With `resume` it resumes the run that was
    /// interrupted there, if there is one.
    pub fn of(folder: &Path, work: &Path, resume: bool) -> RunFile {
        RunFile {
            folder: folder.to_path_buf(),
            work: work.to_path_buf(),
            resume,
            slice: None,
            begun: OnceCell::new(),
        }
    }

    /// The same of a run that measures a slice.
    pub fn of_slice(self, slice: SliceOf) -> RunFile {
        RunFile {
            slice: Some(slice),
            ..self
        }
    }

    /// Whether a run still measures into this folder.
    pub fn is_running_in(folder: &Path) -> bool {
        let path = folder.join(RUN_FILE);
        process::is_locked(&path) && !matches!(RunRecord::unsaid(&path), Ok(None))
    }

    /// Begins the run, or resumes an interrupted one: what is to be said of one that cannot be resumed. A
    /// second call only says that more is measured.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Environment`] where the run to resume was not interrupted.
    pub fn begin(&self, watch: &dyn Watch) -> Result<Option<Finding>, Error> {
        let path = self.path();
        if self.begun.get().is_some() {
            self.enter(State::Measuring)
                .map_err(Error::io("write", &path))?;
            return Ok(None);
        }
        create_work_folder(&self.work)?;
        disk::create_dir_all(&self.folder).map_err(Error::io("create", &self.folder))?;
        let alone =
            || process::lock_folder(&self.folder, Access::Writes, |other| watch.waits(other));
        // One that is to be resumed is not waited for.
        let first = (!self.resume).then(alone).transpose()?;
        let mut found = RunRecord::unsaid(&path);
        // Kept until the new file is there, which is locked: otherwise two runs could resume the same one.
        let (earlier, _lock) = match (&found, self.resume) {
            (Ok(Some(_)), true) => {
                let locked = locked_soon(&path)?;
                // Another run may have been there before this one had the lock.
                found = RunRecord::unsaid(&path);
                locked
            }
            _ if process::is_locked(&path) => (Earlier::GoesOn, None),
            _ => (Earlier::Over, None),
        };
        let sick_file = self.folder.join(SICK_FILE);
        let sick = read::<SickRecord>(&sick_file).unwrap_or_else(|why| {
            found = Err(why);
            None
        });
        let (interrupted, unusable) = self.to_resume(found, &earlier, watch)?;
        let _folder = first.map_or_else(alone, Ok)?;
        let resumes = interrupted.is_some();
        let state = State::Measuring;
        let (id, began) = match interrupted {
            Some(run) => (run.id, run.began),
            None => {
                let [one, other] = [fresh_seed()?.0, fresh_seed()?.0];
                (format!("{one:08x}{other:08x}"), now())
            }
        };
        let run = RunRecord {
            id,
            began,
            state,
            slice: self.slice.clone(),
            found: None,
        };
        // Without a lock this run goes on, too: every other one takes it for one that still measures,
        // because nobody can lock the file.
        let (lock, sha256) = run.write(&path).map_err(Error::io("write", &path))?;
        // Only now: the run before must not be resumed without what it saw.
        let sick = sick.filter(|(sick, _)| resumes && sick.run == run.id);
        let sick = sick.map(|(sick, _)| sick.gpu);
        if sick.is_none() {
            let _ = disk::remove_file(&sick_file);
        }
        let _ = self.begun.set(Begun {
            run: RefCell::new(run),
            resumes,
            sick,
            sha256: RefCell::new(sha256),
            complete: RefCell::default(),
            lock: RefCell::new(lock),
            _folder,
        });
        Ok(unusable)
    }

    fn path(&self) -> PathBuf {
        self.folder.join(RUN_FILE)
    }

    /// Notes how far the run came: the sha256 of the record. `None` where another one began in the same
    /// folder meanwhile, or the record of a slice is not what was written.
    fn enter(&self, state: State) -> std::io::Result<Option<String>> {
        let path = self.path();
        let there = read::<RunRecord>(&path).ok().flatten();
        let Some((begun, (there, sha256))) = self.begun.get().zip(there) else {
            return Ok(None);
        };
        // That a program wrote to the record of a slice is for who judges it.
        let is_other = self.slice.is_some() && sha256 != *begun.sha256.borrow();
        if is_other || there.id != begun.run.borrow().id {
            return Ok(None);
        }
        begun.run.borrow_mut().state = state;
        let (lock, sha256) = begun.run.borrow().write(&path)?;
        begun.sha256.replace(sha256.clone());
        // The lock of the file before goes only then.
        begun.lock.replace(lock);
        Ok(Some(sha256))
    }

    /// The run that this one resumes, and what is to be said of it otherwise.
    fn to_resume(
        &self,
        found: Result<Option<RunRecord>, String>,
        earlier: &Earlier,
        watch: &dyn Watch,
    ) -> Result<(Option<RunRecord>, Option<Finding>), Error> {
        let path = self.path();
        let why = match (found, self.resume, earlier) {
            (Ok(Some(run)), true, Earlier::Over) => return Ok((Some(run), None)),
            (Ok(Some(run)), true, Earlier::GoesOn) => {
                return Err(Error::environment(
                    format!(
                        "the run that began at {} was not interrupted: it still measures into {}",
                        run.began,
                        self.folder.display()
                    ),
                    format!(
                        "wait for its end, or find its process: fuser -v {}",
                        path.display()
                    ),
                ));
            }
            // To refuse would be to refuse every later run, too: nobody will ever know.
            (Ok(Some(_)), true, Earlier::Unknown(why)) => why.clone(),
            (Err(why), true, _) => why,
            (Ok(Some(run)), false, Earlier::Over) => {
                watch.notes(&format!(
                    "the run that began at {} ended early; with --resume this one would take over its complete variants",
                    run.began
                ));
                return Ok((None, None));
            }
            (Ok(_), ..) | (Err(_), false, _) => return Ok((None, None)),
        };
        let message = format!("everything is measured: {why} ({})", path.display());
        let unusable = Finding::of_project(Code::Resumed, message, MEASURED);
        Ok((None, Some(unusable)))
    }

    /// When the interrupted run began that this one resumes; `None` where there is none.
    pub fn interrupted(&self) -> Option<String> {
        let begun = self.begun.get().filter(|begun| begun.resumes)?;
        Some(begun.run.borrow().began.clone())
    }

    /// The GPU that the interrupted run saw to be sick, which counts as if this run had seen it.
    pub fn sick(&self) -> Option<&SickGpu> {
        self.begun.get()?.sick.as_ref()
    }

    /// Where it is kept that a GPU is sick.
    pub fn sick_file(&self) -> SickFile {
        SickFile {
            path: self.folder.join(SICK_FILE),
            run: self.id(),
        }
    }

    fn id(&self) -> String {
        let begun = self.begun.get();
        begun.map_or_else(String::new, |begun| begun.run.borrow().id.clone())
    }

    /// A record of a variant of this run.
    pub fn record(&self, variant: &VariantId) -> VariantRecord {
        VariantRecord {
            part: self.slice.is_some(),
            ..VariantRecord::new(self.id(), variant)
        }
    }

    /// What the interrupted run kept of a variant, where it kept anything.
    ///
    /// # Errors
    /// In words, why it does not count.
    pub fn kept(&self, variant: &VariantId) -> Result<Option<Kept>, String> {
        if self.interrupted().is_none() {
            return Ok(None);
        }
        let folder = variant_folder(&self.folder, variant);
        let Some((record, _)) = read::<VariantRecord>(&folder.join(VARIANT_FILE))? else {
            return Ok(None);
        };
        if record.run != self.id() {
            return Ok(None);
        }
        if record.variant != *variant {
            return Err(format!("its {VARIANT_FILE} is that of another variant"));
        }
        Ok(Some(Kept::of(record, &self.folder)))
    }

    /// Writes a record beside the captures of its variant: its path.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn keep(&self, record: &VariantRecord) -> Result<PathBuf, Error> {
        let folder = variant_folder(&self.folder, &record.variant);
        // A program may have removed it, which is one way to fail.
        disk::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        let path = folder.join(VARIANT_FILE);
        let text = sealed(record);
        write_atomically(&path, &text).map_err(Error::io("write", &path))?;
        if let Some(begun) = self.begun.get() {
            let mut complete = begun.complete.borrow_mut();
            match record.done {
                Some(_) => complete.insert(record.variant.clone(), seal_of(&text)),
                None => complete.remove(&record.variant),
            };
        }
        Ok(path)
    }

    /// All variants are measured, or failed, and the run has looked for what changed. Without this it
    /// could be resumed as well.
    pub fn whole(&self) {
        let _ = self.enter(State::Whole);
    }

    /// The same of a slice, with all that was measured and found of it.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Input`] where another run began in the folder meanwhile.
    pub fn whole_slice(&self, captures: Captures, times: Times) -> Result<(), Error> {
        let path = self.path();
        if let Some(begun) = self.begun.get() {
            let variants = match captures.sick.is_empty() {
                true => begun.complete.take(),
                // What a sick GPU measured is removed.
                false => BTreeMap::new(),
            };
            begun.run.borrow_mut().found = Some(Found {
                captures,
                times,
                variants,
            });
        }
        let written = self.enter(State::Whole);
        let written = written.map_err(Error::io("write", &path))?;
        written.map(drop).ok_or_else(|| {
            Error::input(
                path,
                "it is not what this run wrote, or another one began in its folder",
            )
        })
    }

    /// The run has ended, and has said everything: nobody resumes it. The sha256 of its record, where that
    /// could be written.
    pub fn end(self) -> Option<String> {
        let ended = self.enter(State::Said);
        // A slice is whole without it.
        if ended.is_err() && self.slice.is_none() {
            let _ = disk::remove_file(self.path());
        }
        ended.ok().flatten()
    }
}

/// Whether the record of a variant in a folder is of a run that measures a slice.
fn has_parts(folder: &Path) -> bool {
    let folders = |folder: &Path| disk::read_dir(folder).into_iter().flatten();
    let mut variants = folders(folder).flat_map(|suite| folders(&suite.path));
    variants.any(|variant| {
        let record = read::<VariantRecord>(&variant.path.join(VARIANT_FILE));
        matches!(record, Ok(Some((record, _))) if record.part)
    })
}

/// Whether the run of a file is over, or is after a moment: a process that lost the one that started
/// it is about to end. If it is over, with the lock of the file, where that is still there.
fn locked_soon(path: &Path) -> Result<(Earlier, Option<File>), Error> {
    let unknown = |why: String| {
        let text = format!("nobody knows whether the run before is over: {why}");
        Ok((Earlier::Unknown(text), None))
    };
    loop {
        let file = match if_there(open_to_lock(path)) {
            Ok(Some(file)) => file,
            Ok(None) => return Ok((Earlier::Over, None)),
            Err(error) => return unknown(error.to_string()),
        };
        match process::wait_for_lock(|| file.try_lock(), path, SOON, || {}) {
            Ok(true) => {}
            Ok(false) => return Ok((Earlier::GoesOn, None)),
            Err(Error::Io { source, .. }) => return unknown(source.to_string()),
            Err(error) => return Err(error),
        }
        // Another run may have put its own file there meanwhile.
        let place = |meta: Metadata| (meta.dev(), meta.ino());
        let (own, there) = (file.metadata().map(place), disk::metadata(path).map(place));
        if own.is_ok_and(|own| there.is_ok_and(|there| own == there)) {
            return Ok((Earlier::Over, Some(file)));
        }
    }
}

/// What becomes the record of a variant while it is measured; `None` where nobody can resume the run.
pub type Recording<'a> = Option<(&'a RunFile, VariantRecord)>;

/// What says that a GPU is sick.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SickRecord {
    /// The run that saw it.
    run: String,
    gpu: SickGpu,
}

/// Where a run keeps that its GPU is sick.
#[derive(Clone, Debug)]
pub struct SickFile {
    path: PathBuf,
    run: String,
}

impl SickFile {
    /// Keeps it. Nothing depends on the file in this run, so a failed write is ignored.
    pub fn keep(&self, gpu: &SickGpu) {
        let record = SickRecord {
            run: self.run.clone(),
            gpu: gpu.clone(),
        };
        let _ = write_atomically(&self.path, &sealed(&record));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::read_regular;
    use crate::measure::folder::unsealed;
    use crate::measure::watch::Silent;
    use std::fs;

    fn begin(folder: &Path, resume: bool) -> (RunFile, Option<Finding>) {
        let run = RunFile::of(folder, folder, resume);
        let said = run.begin(&Silent).unwrap();
        (run, said)
    }

    fn id(run: &RunFile) -> String {
        run.id()
    }

    #[test]
    fn a_run_file_of_which_any_byte_changed_is_not_resumed_and_that_is_said() {
        let folder = tempfile::tempdir().unwrap();
        drop(begin(folder.path(), false));
        let path = folder.path().join(RUN_FILE);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] = if other[at] == b'1' { b'2' } else { b'1' };
            assert!(unsealed::<RunRecord>(&other).is_err(), "byte {at}");
            assert!(unsealed::<RunRecord>(&whole[..at]).is_err(), "{at} bytes");
        }
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        let said = begin(folder.path(), true).1.unwrap().message;
        let expected = "everything is measured: its run.json is damaged";
        assert!(said.starts_with(expected), "{said}");
    }

    #[test]
    fn a_run_resumes_only_one_that_is_over_for_certain() {
        let folder = tempfile::tempdir().unwrap();
        let (first, _) = begin(folder.path(), true);
        let path = folder.path().join(RUN_FILE);
        let found = || RunRecord::unsaid(&path);
        let unknown = Earlier::Unknown("no locks available".to_owned());
        let to_resume = |earlier| first.to_resume(found(), earlier, &Silent);
        let (run, said) = to_resume(&unknown).unwrap();
        let said = said.unwrap().message;
        assert!(run.is_none() && said.contains("everything is measured: no locks available"));
        let (run, said) = to_resume(&Earlier::Over).unwrap();
        assert!(run.is_some() && said.is_none());
        let goes_on = to_resume(&Earlier::GoesOn);
        assert!(matches!(goes_on, Err(Error::Environment { .. })));
        // Its file is gone, so it is over and has said everything.
        fs::remove_file(&path).unwrap();
        assert!(matches!(locked_soon(&path), Ok((Earlier::Over, None))));
        drop(first);
        assert!(begin(folder.path(), true).0.interrupted().is_none());
    }

    #[test]
    fn what_another_run_kept_of_a_variant_or_of_another_one_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let variant = |name: &str| VariantId::try_from(format!("s/{name}")).unwrap();
        let (a, b) = (variant("a"), variant("b"));
        let keep = |run: &RunFile| fs::read(run.keep(&run.record(&a)).unwrap()).unwrap();
        let old = keep(&begin(folder.path(), false).0);
        let new = keep(&begin(folder.path(), false).0);
        let (run, _) = begin(folder.path(), true);
        assert!(run.kept(&a).unwrap().is_some() && run.kept(&b).unwrap().is_none());
        let place = |id| variant_folder(folder.path(), id);
        fs::create_dir_all(place(&b)).unwrap();
        let write = |id, text: &[u8]| fs::write(place(id).join(VARIANT_FILE), text).unwrap();
        write(&a, &old);
        assert!(run.kept(&a).unwrap().is_none());
        write(&b, &new);
        let why = run.kept(&b).err().unwrap();
        assert_eq!(why, "its variant.json is that of another variant");
        write(&a, &new[..new.len() / 2]);
        assert_eq!(run.kept(&a).err().unwrap(), "its variant.json is damaged");
        // What cannot be kept ends the run.
        fs::remove_dir_all(place(&a)).unwrap();
        assert!(run.keep(&run.record(&a)).is_ok());
        fs::remove_dir_all(place(&a)).unwrap();
        fs::write(place(&a), "").unwrap();
        assert!(run.keep(&run.record(&a)).is_err());
    }

    #[test]
    fn a_run_that_resumes_another_one_knows_its_sick_gpu_and_one_that_does_not_forgets_it() {
        let folder = tempfile::tempdir().unwrap();
        let sick = SickGpu {
            uuid: "GPU-1".to_owned(),
            name: "a model".to_owned(),
            symptoms: Vec::new(),
        };
        let (first, _) = begin(folder.path(), false);
        assert!(RunFile::is_running_in(folder.path()), "it still measures");
        first.sick_file().keep(&sick);
        drop(first);
        assert!(!RunFile::is_running_in(folder.path()));
        for _ in 0..2 {
            assert_eq!(begin(folder.path(), true).0.sick(), Some(&sick));
        }
        // A damaged one is no reason to believe what the same run measured.
        fs::write(folder.path().join(SICK_FILE), "{}").unwrap();
        let (second, said) = begin(folder.path(), true);
        assert!(said.is_some() && second.sick().is_none());
        second.sick_file().keep(&sick);
        drop(second);
        let (third, _) = begin(folder.path(), false);
        let sick_file = third.sick_file();
        assert!(third.sick().is_none() && !sick_file.path.exists());
        sick_file.keep(&sick);
        third.end();
        assert!(sick_file.path.exists(), "nothing of that run may be locked");
        let (fourth, _) = begin(folder.path(), true);
        assert!(fourth.interrupted().is_none() && fourth.sick().is_none());
        assert!(!sick_file.path.exists());
    }

    #[test]
    fn a_run_is_resumed_by_its_state_its_lock_and_its_hash() {
        let cases = [State::Measuring, State::Whole, State::Said]
            .into_iter()
            .flat_map(|state| {
                (0..8).map(move |bits| (state, [1, 2, 4].map(|bit| bits & bit != 0)))
            });
        // What cannot be resumed anyway is waited for.
        let cases = cases
            .filter(|(state, [locked, damaged, _])| !locked || (!damaged && *state != State::Said));
        // One waits a while for a lock.
        std::thread::scope(|scope| {
            for (state, [locked, damaged, other]) in cases {
                scope.spawn(move || is_resumed(state, locked, damaged, other));
            }
        });
    }

    /// A run comes to a state, and goes on or is killed; a byte of its file changes; and the variant is one
    /// that another run measured.
    fn is_resumed(state: State, locked: bool, damaged: bool, other: bool) {
        let case = format!("{state:?}, locked: {locked}, damaged: {damaged}, other: {other}");
        let folder = tempfile::tempdir().unwrap();
        let id = VariantId::try_from("s/v".to_owned()).unwrap();
        let keep = |run: &RunFile| drop(run.keep(&run.record(&id)).unwrap());
        let (before, _) = begin(folder.path(), false);
        keep(&before);
        before.end();
        let (run, _) = begin(folder.path(), false);
        if !other {
            keep(&run);
        }
        let own = self::id(&run);
        run.enter(state).unwrap();
        let _run = locked.then_some(run);
        let path = folder.path().join(RUN_FILE);
        if damaged {
            let text = String::from_utf8(read_regular(&path).unwrap()).unwrap();
            let state = serde_json::to_string(&state).unwrap();
            fs::write(&path, text.replace(&state, "\"Said\"")).unwrap();
        }
        let next = RunFile::of(folder.path(), folder.path(), true);
        let begun = next.begin(&Silent);
        if locked {
            assert!(matches!(begun, Err(Error::Environment { .. })), "{case}");
            return;
        }
        let resumes = state != State::Said && !damaged;
        assert_eq!(next.interrupted().is_some(), resumes, "{case}");
        assert_eq!(self::id(&next) == own, resumes, "{case}");
        assert_eq!(begun.unwrap().is_some(), damaged, "{case}");
        assert_eq!(
            next.kept(&id).unwrap().is_some(),
            resumes && !other,
            "{case}"
        );
        assert_eq!(
            RunRecord::unsaid(&path).unwrap().unwrap().id,
            self::id(&next)
        );
    }

    #[test]
    fn the_file_stays_locked_in_every_state_and_says_in_the_end_that_all_is_said() {
        let (folder, moved) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = folder.path().join(RUN_FILE);
        let state = || {
            unsealed::<RunRecord>(&read_regular(&path).unwrap())
                .unwrap()
                .state
        };
        let (run, _) = begin(folder.path(), false);
        for _ in 0..2 {
            run.whole();
            assert!(state() == State::Whole && RunFile::is_running_in(folder.path()));
            // A run may measure again.
            run.begin(&Silent).unwrap();
            assert!(state() == State::Measuring && RunFile::is_running_in(folder.path()));
        }
        run.end();
        assert!(state() == State::Said && !RunFile::is_running_in(folder.path()));
        // A run that another one follows leaves the file of that.
        let (one, _) = begin(folder.path(), false);
        fs::rename(folder.path(), moved.path().join("before")).unwrap();
        let (two, _) = begin(folder.path(), false);
        one.whole();
        one.end();
        assert!(state() == State::Measuring && RunFile::is_running_in(folder.path()));
        two.end();
        assert_eq!(state(), State::Said);
    }
}
