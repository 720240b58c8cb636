//! The file of a run that measures into a folder. It is locked while the run goes on, removed when the
//! run has ended, and stays where the run is killed: another run finds by it what was left running, and
//! resumes it.

use std::cell::OnceCell;
use std::fs::{self, File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::resume::{Kept, MEASURED, Record};
use super::watch::Watch;
use crate::evidence::SickGpu;
use crate::files::{
    RESUME_FILE, SICK_FILE, bounded_json, create_work_folder, most, open_to_lock,
    read_regular_up_to, variant_folder, write_atomically, write_locked,
};
use crate::finding::{Code, Error, Finding};
use crate::hash::sha256_hex;
use crate::process;
use crate::profile::now;
use crate::terms::{Seed, VariantId};

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
    begun: OnceCell<Begun>,
}

/// A run that measures.
#[derive(Debug)]
struct Begun {
    run: Entry,
    /// Whether it resumes an interrupted one.
    resumes: bool,
    /// The GPU that the interrupted run saw to be sick.
    sick: Option<SickGpu>,
    /// The file, locked for as long as this process lives; `None` on a file system without locks.
    _lock: Option<File>,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// That of no other run.
    id: String,
    /// When it began, RFC 3339, UTC.
    began: String,
    /// What the marks of its programs begin with.
    mark: String,
}

impl RunFile {
    /// Of a run that will measure into a folder. With `resume` it resumes the run that was
    /// interrupted there, if there is one.
    pub fn of(folder: &Path, work: &Path, resume: bool) -> RunFile {
        RunFile {
            folder: folder.to_path_buf(),
            work: work.to_path_buf(),
            resume,
            begun: OnceCell::new(),
        }
    }

    /// Kills what a run that was killed itself left running, which measured into a folder.
    pub fn end_left_in(folder: &Path) {
        let path = folder.join(RESUME_FILE);
        if let (Ok(Some(run)), true) = (read::<Entry>(&path), is_over(&path)) {
            process::end_marked(&run.mark);
        }
    }

    /// Whether a run still measures into this folder.
    pub fn is_running_in(folder: &Path) -> bool {
        !is_over(&folder.join(RESUME_FILE))
    }

    /// Lets nobody resume the run whose process measured into a folder, and has ended.
    pub fn end_in(folder: &Path) {
        if !RunFile::is_running_in(folder) {
            clear(folder);
        }
    }

    /// Begins the run, or resumes an interrupted one, of which all processes are ended first: what is to
    /// be said of an interrupted one that cannot be resumed. A second call does nothing.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Environment`] where the run to resume was not interrupted.
    pub fn begin(&self, watch: &dyn Watch) -> Result<Option<Finding>, Error> {
        if self.begun.get().is_some() {
            return Ok(None);
        }
        create_work_folder(&self.work)?;
        fs::create_dir_all(&self.folder).map_err(Error::io("create", &self.folder))?;
        let path = self.folder.join(RESUME_FILE);
        let mut found = read::<Entry>(&path);
        // Kept until the new file is there, which is locked: otherwise two runs could resume the same one.
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
        let mut sick = match read(&self.sick_file()) {
            Ok(sick) => sick,
            Err(why) => {
                found = Err(why);
                None
            }
        };
        let (interrupted, unusable) = self.to_resume(found, &earlier, watch)?;
        let resumes = interrupted.is_some();
        if !resumes {
            let _ = fs::remove_file(self.sick_file());
            sick = None;
        }
        let mark = process::mark_of_run();
        let run = match interrupted {
            Some(run) => Entry { mark, ..run },
            None => Entry {
                id: fresh_id()?,
                began: now(),
                mark,
            },
        };
        let lock = write_locked(&path, sealed(&run).as_bytes());
        let begun = Begun {
            run,
            resumes,
            sick,
            // Without a lock this run goes on, too: every other one takes it for one that still
            // measures, because nobody can lock the file.
            _lock: lock.map_err(Error::io("write", &path))?,
        };
        let _ = self.begun.set(begun);
        Ok(unusable)
    }

    /// The run that this one resumes, and what is to be said of it otherwise.
    fn to_resume(
        &self,
        found: Result<Option<Entry>, String>,
        earlier: &Earlier,
        watch: &dyn Watch,
    ) -> Result<(Option<Entry>, Option<Finding>), Error> {
        let path = self.folder.join(RESUME_FILE);
        let why = match (found, self.resume, earlier) {
            (Ok(Some(run)), true, Earlier::Over) => return Ok((Some(run), None)),
            (Ok(Some(run)), true, Earlier::GoesOn) => {
                return Err(Error::Environment {
                    what: format!(
                        "the run that began at {} was not interrupted: it still measures into {}",
                        run.began,
                        self.folder.display()
                    ),
                    next: format!(
                        "wait for its end, or find its process: fuser -v {}",
                        path.display()
                    ),
                });
            }
            // To refuse would be to refuse every later run, too: nobody will ever know.
            (Ok(Some(_)), true, Earlier::Unknown(why)) => why.clone(),
            (Err(why), true, _) => why,
            (Ok(Some(run)), false, Earlier::Over) => {
                watch.notes(&format!(
                    "the run that began at {} was interrupted; with --resume this one would take over its complete variants",
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
    pub(super) fn interrupted(&self) -> Option<&str> {
        let begun = self.begun.get().filter(|begun| begun.resumes)?;
        Some(&begun.run.began)
    }

    /// The GPU that the interrupted run saw to be sick, which counts as if this run had seen it.
    pub(super) fn sick(&self) -> Option<&SickGpu> {
        self.begun.get()?.sick.as_ref()
    }

    /// Where it is kept that a GPU is sick.
    pub(super) fn sick_file(&self) -> PathBuf {
        self.folder.join(SICK_FILE)
    }

    /// A record of a variant of this run.
    pub(super) fn record(&self, variant: &VariantId) -> Record {
        Record {
            run: self
                .begun
                .get()
                .map_or_else(String::new, |begun| begun.run.id.clone()),
            variant: variant.clone(),
            key: None,
            retries: Vec::new(),
            complete: None,
        }
    }

    /// What the interrupted run kept of a variant, where it kept anything.
    ///
    /// # Errors
    /// In words, why it does not count.
    pub(super) fn kept(&self, variant: &VariantId) -> Result<Option<Kept>, String> {
        if self.interrupted().is_none() {
            return Ok(None);
        }
        let folder = variant_folder(&self.folder, variant);
        let Some(record) = read::<Record>(&folder.join(RESUME_FILE))? else {
            return Ok(None);
        };
        let own = self.record(variant);
        if (&record.run, &record.variant) != (&own.run, &own.variant) {
            return Err(format!("its {RESUME_FILE} is that of another run"));
        }
        Ok(Some(Kept::of(record, &folder)))
    }

    /// Writes a record beside the captures of its variant: its path.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn keep(&self, record: &Record) -> Result<PathBuf, Error> {
        let folder = variant_folder(&self.folder, &record.variant);
        // A program may have removed it, which is one way to fail.
        fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        let path = folder.join(RESUME_FILE);
        let written = write_atomically(&path, sealed(record).as_bytes());
        written.map_err(Error::io("write", &path))?;
        Ok(path)
    }

    /// The run has ended, and has said everything: nobody resumes it.
    pub fn end(self) {
        let path = self.folder.join(RESUME_FILE);
        // Another run may have begun in the same folder meanwhile.
        let there = read::<Entry>(&path).ok().flatten();
        if let (Some(begun), Some(there)) = (self.begun.get(), there)
            && there.id == begun.run.id
        {
            clear(&self.folder);
        }
    }
}

/// Removes what says that a run can be resumed: its own file first, without which no other counts. That
/// a GPU is sick stays until the next run begins: nothing of this one may be locked.
fn clear(folder: &Path) {
    let _ = fs::remove_file(folder.join(RESUME_FILE));
    let suites = fs::read_dir(folder).into_iter().flatten().flatten();
    let variants = suites.flat_map(|suite| fs::read_dir(suite.path()).into_iter().flatten());
    for variant in variants.flatten() {
        let _ = fs::remove_file(variant.path().join(RESUME_FILE));
    }
}

/// Whether no process has the lock of the file. Where nobody knows that it counts as locked: nothing of
/// that run is killed, removed or resumed then.
fn is_over(path: &Path) -> bool {
    !process::is_locked(path)
}

/// Whether the run of a file is over, or is after a moment: a process that lost the one that started
/// it is about to end. If it is over, with the lock of the file, where that is still there.
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

/// What becomes the record of a variant while it is measured; `None` where nobody can resume the run.
pub(super) type Recording<'a> = Option<(&'a RunFile, Record)>;

/// Keeps in the folder of a run that a GPU is sick. Nothing depends on the file in this run, so a failed
/// write is ignored.
pub(super) fn keep_sick(path: &Path, sick: &SickGpu) {
    let _ = write_atomically(path, sealed(sick).as_bytes());
}

/// A content of a file that says its own hash: JSON, after a line with the sha256 of that.
fn sealed(content: &impl Serialize) -> String {
    let text = serde_json::to_string(content).unwrap_or_default();
    format!("{}\n{text}", sha256_hex(text.as_bytes()))
}

/// The content of a sealed file, where there is one.
///
/// # Errors
/// In words, what is wrong with it.
fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Option<T>, String> {
    match read_regular_up_to(path, most::OUTCOME) {
        Ok(bytes) => parse(&bytes).map(Some).map_err(|why| {
            let name = path.file_name().unwrap_or_default();
            format!("its {} {why}", name.display())
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
    }
}

fn parse<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Result<T, String> {
    let lines = bytes.split_at_checked(65);
    let (sha256, text) = lines.unwrap_or_default();
    if sha256 != format!("{}\n", sha256_hex(text)).as_bytes() {
        return Err("is damaged".to_owned());
    }
    bounded_json(text).map_err(|why| format!("is refused: {why}"))?;
    serde_json::from_slice(text).map_err(|why| format!("is damaged: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::watch::Silent;

    fn begin(folder: &Path, resume: bool) -> (RunFile, Option<Finding>) {
        let run = RunFile::of(folder, folder, resume);
        let said = run.begin(&Silent).unwrap();
        (run, said)
    }

    fn id(run: &RunFile) -> String {
        run.begun.get().unwrap().run.id.clone()
    }

    #[test]
    fn a_run_file_of_which_any_byte_changed_is_not_resumed_and_that_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let (first, said) = begin(folder.path(), false);
        assert!(said.is_none());
        let own = id(&first);
        // Killed: the file stays, and its lock is free.
        drop(first);
        let (second, said) = begin(folder.path(), true);
        assert!(said.is_none() && second.interrupted().is_some());
        assert_eq!(id(&second), own);
        drop(second);
        let path = folder.path().join(RESUME_FILE);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] = if other[at] == b'1' { b'2' } else { b'1' };
            assert!(parse::<Entry>(&other).is_err(), "byte {at}");
            assert!(parse::<Entry>(&whole[..at]).is_err(), "{at} bytes");
        }
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        let (third, said) = begin(folder.path(), true);
        let said = said.unwrap().message;
        let expected = "everything is measured: its resume.state is damaged";
        assert!(said.starts_with(expected), "{said}");
        assert!(third.interrupted().is_none() && id(&third) != own);
    }

    #[test]
    fn a_run_resumes_only_one_that_is_over_for_certain() {
        let folder = tempfile::tempdir().unwrap();
        let (first, _) = begin(folder.path(), true);
        let path = folder.path().join(RESUME_FILE);
        let found = || read::<Entry>(&path);
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
        for (id, text) in [(&a, old), (&b, new)] {
            fs::write(place(id).join(RESUME_FILE), text).unwrap();
            let why = run.kept(id).err().unwrap();
            assert_eq!(why, "its resume.state is that of another run");
        }
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
        keep_sick(&first.sick_file(), &sick);
        drop(first);
        assert!(!RunFile::is_running_in(folder.path()));
        for _ in 0..2 {
            assert_eq!(begin(folder.path(), true).0.sick(), Some(&sick));
        }
        // A damaged one is no reason to believe what the same run measured.
        fs::write(folder.path().join(SICK_FILE), "{}").unwrap();
        let (second, said) = begin(folder.path(), true);
        assert!(said.is_some() && second.sick().is_none());
        keep_sick(&second.sick_file(), &sick);
        drop(second);
        let (third, _) = begin(folder.path(), false);
        assert!(third.sick().is_none() && !third.sick_file().exists());
        keep_sick(&third.sick_file(), &sick);
        let sick_file = third.sick_file();
        third.end();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(sick_file.exists(), "nothing of that run may be locked");
        assert!(begin(folder.path(), true).0.interrupted().is_none());
    }
}
