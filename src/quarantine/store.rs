//! Where the quarantine is kept.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::entry::{Entry, Lifting};
use crate::device::{Gpu, SHORTEST_UUID};
use crate::files::{create_work_folder, read_regular_up_to, read_text_up_to, write_atomically};
use crate::finding::Error;
use crate::git::tracked;
use crate::profile::now;

/// Folder of the quarantine in the state folder, and in the work folder.
const FOLDER: &str = "quarantine";
/// Folder of this tool in the state folder.
const TOOL: &str = "sparsek-gate";
/// Lines about quarantines that were lifted.
const HISTORY: &str = "lifted.jsonl";
/// Ending of the file of a GPU.
const ENDING: &str = "json";
/// Most bytes of such a file.
const MOST_BYTES: u64 = 64 << 10;
/// Most bytes of the history.
const MOST_HISTORY: u64 = 16 << 20;
/// Most files that are read of a folder.
const MOST_FILES: usize = 4096;
/// Longest UUID.
const LONGEST_UUID: usize = 80;

/// The GPUs in quarantine, as this user's runs on this machine see them.
#[derive(Clone, Debug)]
pub struct Quarantine {
    /// `sparsek-gate/quarantine` in the user's state folder; `None` where the user has none.
    state: Option<PathBuf>,
    /// The folder of the project's work, and the one in it for where the state folder cannot be written.
    work: Option<PathBuf>,
}

/// A GPU in quarantine.
#[derive(Clone, Debug, PartialEq)]
pub struct Quarantined {
    /// UUID of the GPU.
    pub uuid: String,
    /// Its file.
    pub path: PathBuf,
    /// What the file says; what is wrong with it, where it cannot be read. A GPU with a damaged file is
    /// in quarantine, too.
    pub entry: Result<Entry, String>,
}

/// Where an entry was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The file; `None` where it could be written nowhere.
    pub path: Option<PathBuf>,
    /// What is to be said: that it lies in the work folder, or nowhere.
    pub warning: Option<String>,
}

impl Quarantined {
    /// Whether git has its file: then no run of this tool wrote it here, and a change may have brought it.
    pub fn is_committed(&self) -> bool {
        let (folder, name) = (self.path.parent(), self.path.file_name());
        let place = folder.zip(name.and_then(|name| name.to_str()));
        let tracked = place.map(|(folder, name)| tracked(folder, name));
        tracked.is_some_and(|files| files.is_ok_and(|files| !files.is_empty()))
    }

    /// Since when and why, in words.
    pub fn words(&self) -> String {
        match &self.entry {
            Ok(entry) => format!("since {}: {}", entry.since, entry.text),
            Err(why) => format!(
                "its file {} cannot be read ({why}), and counts",
                self.path.display()
            ),
        }
    }
}

impl Quarantine {
    /// That of this user, and of a work folder where there is one.
    pub fn of(work: Option<&Path>) -> Quarantine {
        let absolute = |name: &str| {
            let path = PathBuf::from(std::env::var_os(name)?);
            path.is_absolute().then_some(path)
        };
        let home = || Some(absolute("HOME")?.join(".local/state"));
        let state = absolute("XDG_STATE_HOME").or_else(home);
        Quarantine::within(state.as_deref(), work)
    }

    /// In these folders.
    pub fn within(state: Option<&Path>, work: Option<&Path>) -> Quarantine {
        Quarantine {
            state: state.map(|state| state.join(TOOL).join(FOLDER)),
            work: work.map(Path::to_path_buf),
        }
    }

    fn folders(&self) -> impl Iterator<Item = PathBuf> {
        let work = self.work.as_ref().map(|work| work.join(FOLDER));
        self.state.clone().into_iter().chain(work)
    }

    /// All GPUs in quarantine, by UUID. A folder that cannot be read has none.
    pub fn all(&self) -> Vec<Quarantined> {
        let mut found = BTreeMap::new();
        for folder in self.folders() {
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            for entry in entries.take(MOST_FILES) {
                let path = entry.path();
                let is_entry = path.extension().is_some_and(|ending| ending == ENDING);
                let uuid = path.file_stem().and_then(|stem| stem.to_str());
                let Some(uuid) = uuid.filter(|uuid| is_entry && is_uuid(uuid)) else {
                    continue;
                };
                let uuid = uuid.to_owned();
                found
                    .entry(uuid.clone())
                    .or_insert_with(|| Quarantined::read(uuid, path));
            }
        }
        found.into_values().collect()
    }

    /// What is stored of a GPU.
    pub fn of_gpu(&self, uuid: &str) -> Option<Quarantined> {
        let mut folders = self.folders().filter(|_| is_uuid(uuid));
        let path = folders.find_map(|folder| {
            let path = file(&folder, uuid);
            path.symlink_metadata().is_ok().then_some(path)
        })?;
        Some(Quarantined::read(uuid.to_owned(), path))
    }

    /// Refuses a GPU in quarantine.
    ///
    /// # Errors
    /// [`Error::Environment`], with the cause and how to lift it.
    pub fn refuse(&self, gpu: &Gpu) -> Result<(), Error> {
        let Some(stored) = self.of_gpu(&gpu.uuid) else {
            return Ok(());
        };
        Err(Error::Environment {
            what: format!(
                "the GPU {} ({}) is in quarantine {}",
                gpu.uuid,
                gpu.name,
                stored.words()
            ),
            next: match stored.is_committed() {
                true => format!("git has its file: git rm {}", stored.path.display()),
                false => format!(
                    "use another GPU; if this one was repaired: sparsek-gate quarantine --lift {} --reason '...'",
                    gpu.uuid
                ),
            },
        })
    }

    /// The lines about liftings of a GPU, as they are stored.
    ///
    /// # Errors
    /// In words, where the history cannot be read: what it says is not known then.
    pub fn history(&self, uuid: &str) -> Result<Vec<String>, String> {
        let mut lines = Vec::new();
        for folder in self.folders() {
            let path = folder.join(HISTORY);
            let text = match read_text_up_to(&path, MOST_HISTORY) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                text => text.map_err(|error| format!("{}: {error}", path.display()))?,
            };
            let own = text.lines().filter(|line| line.contains(uuid));
            lines.extend(own.map(str::to_owned));
        }
        Ok(lines)
    }

    /// The lifting of a quarantine that covers a measurement on a GPU at this time, RFC 3339, UTC.
    ///
    /// # Errors
    /// As [`Quarantine::history`].
    pub fn covering(&self, uuid: &str, time: &str) -> Result<Option<Lifting>, String> {
        let lines = self.history(uuid)?;
        // A line that was cut off is followed by a whole one: the lifting was not done before.
        let liftings = lines
            .iter()
            .filter_map(|line| serde_json::from_str(line).ok());
        let mut liftings = liftings.filter(|one: &Lifting| one.uuid == uuid);
        Ok(liftings.find(|one| one.covers(time)))
    }

    /// Puts a GPU into quarantine: in the state folder, else in the work folder. Never fails: what could
    /// not be done is said.
    pub fn put(&self, entry: &Entry) -> Written {
        let uuid = &entry.gpu.uuid;
        let nowhere = |why: String| Written {
            path: None,
            warning: Some(format!(
                "the quarantine of {uuid} could not be stored, and later runs will use the GPU: {why}"
            )),
        };
        if !is_uuid(uuid) {
            return nowhere("the driver gives it a UUID that cannot name a file".to_owned());
        }
        let mut text = serde_json::to_vec_pretty(entry).unwrap_or_default();
        text.push(b'\n');
        let write = |folder: &Path| -> std::io::Result<PathBuf> {
            fs::create_dir_all(folder)?;
            let path = file(folder, uuid);
            write_atomically(&path, &text)?;
            Ok(path)
        };
        let why = match self.state.as_deref().map(write) {
            Some(Ok(path)) => {
                return Written {
                    path: Some(path),
                    warning: None,
                };
            }
            Some(Err(error)) => error.to_string(),
            None => "neither HOME nor XDG_STATE_HOME names a folder".to_owned(),
        };
        let Some(work) = &self.work else {
            return nowhere(why);
        };
        let _ = create_work_folder(work);
        match write(&work.join(FOLDER)) {
            Ok(path) => Written {
                warning: Some(format!(
                    "the quarantine of {uuid} is in {}, where only runs of this project find it: the state folder of the user cannot be written ({why})",
                    path.display()
                )),
                path: Some(path),
            },
            Err(_) => nowhere(why),
        }
    }

    /// The one GPU in quarantine that has this UUID, or whose UUID begins with it.
    ///
    /// # Errors
    /// [`Error::Usage`] where there is none, or there are several.
    fn named(&self, begin: &str) -> Result<Quarantined, Error> {
        let small = begin.to_ascii_lowercase();
        let (mut named, others): (Vec<Quarantined>, Vec<Quarantined>) = self
            .all()
            .into_iter()
            .partition(|stored| stored.uuid.to_ascii_lowercase().starts_with(&small));
        let is_whole = named.iter().any(|stored| stored.uuid == begin);
        if begin.len() < SHORTEST_UUID && !named.is_empty() && !is_whole {
            return Err(Error::Usage(format!(
                "`{begin}` is too short to name a GPU\n  next: write GPU- and at least eight digits, as in {}",
                named[0].uuid
            )));
        }
        let list = |all: &[Quarantined]| {
            let uuids: Vec<&str> = all.iter().map(|one| one.uuid.as_str()).collect();
            uuids.join(", ")
        };
        match (named.pop(), named.is_empty()) {
            (Some(one), true) => Ok(one),
            (Some(one), false) => {
                named.push(one);
                Err(Error::Usage(format!(
                    "several GPUs in quarantine have a UUID that begins with `{begin}`: {}\n  next: write more of the UUID",
                    list(&named)
                )))
            }
            (None, _) => Err(Error::Usage(format!(
                "the GPU `{begin}` is not in quarantine; {}\n  next: sparsek-gate quarantine",
                match others.is_empty() {
                    true => "no GPU is".to_owned(),
                    false => format!("these are: {}", list(&others)),
                }
            ))),
        }
    }

    /// Ends the quarantine of a GPU, and keeps a line about it.
    ///
    /// # Errors
    /// [`Error::Usage`] where no GPU, or several, are in quarantine whose UUID begins so; [`Error::Io`].
    pub fn lift(&self, begin: &str, reason: &str, who: &str) -> Result<Lifting, Error> {
        let stored = self.named(begin)?;
        let uuid = &stored.uuid;
        let lifting = Lifting {
            uuid: uuid.clone(),
            entry: stored.entry.clone().ok(),
            lifted: now(),
            who: who.to_owned(),
            reason: reason.to_owned(),
        };
        // The line first: a quarantine that ended for no known reason is worse than one line too many.
        for folder in self.folders().filter(|folder| folder.is_dir()) {
            let path = file(&folder, uuid);
            if path.symlink_metadata().is_err() {
                continue;
            }
            note(&folder, &lifting)?;
            fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
        Ok(lifting)
    }
}

impl Quarantined {
    fn read(uuid: String, path: PathBuf) -> Quarantined {
        let bytes = read_regular_up_to(&path, MOST_BYTES).map_err(|error| error.to_string());
        let entry = bytes.and_then(|bytes| Entry::parse(&bytes));
        let entry = entry.and_then(|entry| match entry.gpu.uuid == uuid {
            true => Ok(entry),
            false => Err(format!("it is about {}", entry.gpu.uuid)),
        });
        Quarantined { uuid, path, entry }
    }
}

fn file(folder: &Path, uuid: &str) -> PathBuf {
    folder.join(format!("{uuid}.{ENDING}"))
}

/// Whether a text is a UUID of a GPU as far as the name of a file needs it.
fn is_uuid(text: &str) -> bool {
    let known = text.starts_with("GPU-") || text.starts_with("MIG-");
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    known && text.len() <= LONGEST_UUID && text.chars().all(plain)
}

fn note(folder: &Path, lifting: &Lifting) -> Result<(), Error> {
    let path = folder.join(HISTORY);
    append(&path, lifting).map_err(Error::io("write", &path))
}

/// Appends a line. The file is not followed where it is a link, and a pipe is not waited for.
fn append(path: &Path, lifting: &Lifting) -> std::io::Result<()> {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
    let mut file = fs::OpenOptions::new()
        .create(true)
        .read(true)
        .append(true)
        .custom_flags(i32::try_from(flags.bits()).unwrap_or_default())
        .open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        let why = "not a regular file";
        return Err(std::io::Error::new(ErrorKind::InvalidInput, why));
    }
    let mut line = Vec::new();
    // A line that was cut off must not swallow this one.
    let mut last = [b'\n'];
    if let Some(at) = meta.len().checked_sub(1) {
        file.read_exact_at(&mut last, at)?;
    }
    if last != [b'\n'] {
        line.push(b'\n');
    }
    line.extend(serde_json::to_vec(lifting).unwrap_or_default());
    line.push(b'\n');
    file.write_all(&line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Slowdown;
    use crate::evidence::{SickGpu, Symptom};
    use crate::terms::VariantId;
    use crate::verdict::Change;

    const UUID: &str = "GPU-00112233-4455-6677-8899-aabbccddeeff";

    fn sick() -> SickGpu {
        SickGpu {
            uuid: UUID.to_owned(),
            name: "NVIDIA H200".to_owned(),
            symptoms: vec![Symptom::Xid { xid: 48 }],
        }
    }

    fn gpu() -> Gpu {
        Gpu {
            uuid: UUID.to_owned(),
            name: "NVIDIA H200".to_owned(),
            ..Gpu::default()
        }
    }

    #[test]
    fn a_gpu_in_quarantine_is_refused_until_it_is_lifted_and_a_line_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let quarantine = Quarantine::within(Some(folder.path()), None);
        quarantine.refuse(&gpu()).unwrap();
        let written = quarantine.put(&Entry::new(&sick(), Path::new("here")));
        assert_eq!(written.warning, None);
        let why = quarantine.refuse(&gpu()).unwrap_err();
        assert_eq!(why.exit_code() as u8, 3);
        let why = why.to_string();
        assert!(why.contains("Xid 48 (a memory error"), "{why}");
        assert!(why.contains(&format!("quarantine --lift {UUID} --reason")));
        assert_eq!(quarantine.all().len(), 1);
        let lifted = quarantine.lift(UUID, "new memory", "me").unwrap();
        assert_eq!(lifted.entry.unwrap().gpu, sick());
        quarantine.refuse(&gpu()).unwrap();
        assert_eq!(quarantine.all(), []);
        let history = folder.path().join(TOOL).join(FOLDER).join(HISTORY);
        let history = fs::read_to_string(history).unwrap();
        let line: Lifting = serde_json::from_str(&history).unwrap();
        assert_eq!(
            (line.reason.as_str(), line.who.as_str()),
            ("new memory", "me")
        );
        let why = quarantine.lift(UUID, "again", "me").unwrap_err();
        assert_eq!(why.exit_code() as u8, 2);
    }

    #[test]
    fn what_is_stored_of_many_or_long_symptoms_can_be_read_and_says_how_many_more_there_are() {
        let folder = tempfile::tempdir().unwrap();
        let quarantine = Quarantine::within(Some(folder.path()), None);
        let variant = |number: usize| VariantId {
            suite: "s".repeat(64),
            variant: format!("{number}{}", "v".repeat(60)),
        };
        let hot = |number: usize| Symptom::Throttling {
            variant: variant(number),
            reasons: [Slowdown::HwThermal, Slowdown::PowerBrake].into(),
        };
        let slow = |number: usize| Symptom::Control {
            variant: variant(number),
            // Written as six characters.
            kernel: "\u{1}".repeat(1000),
            change: Change::RelativePercent(3.0),
        };
        let make: [(&dyn Fn(usize) -> Symptom, usize); 2] = [(&hot, 50), (&slow, 2)];
        for (make, fewest) in make {
            let mut gpu = sick();
            gpu.symptoms = (0..300).map(make).chain(gpu.symptoms).collect();
            assert_eq!(
                quarantine.put(&Entry::new(&gpu, Path::new("here"))).warning,
                None
            );
            let entry = quarantine.of_gpu(UUID).unwrap().entry.unwrap();
            let kept = entry.gpu.symptoms.len();
            assert!((fewest..=50).contains(&kept), "{kept}");
            assert_eq!(entry.gpu.symptoms[0], Symptom::Xid { xid: 48 });
            assert_eq!(entry.gpu.symptoms[1], make(0));
            let more = format!("; and {} more", 301 - kept);
            assert!(entry.text.ends_with(&more), "{}", entry.text);
            assert!(entry.is_of(&gpu));
            assert!(!entry.is_of(&sick()));
        }
        let short = |number: usize| Symptom::Xid { xid: number as u32 };
        let mut gpu = sick();
        gpu.symptoms = (0..50).map(short).collect();
        let entry = Entry::new(&gpu, Path::new("here"));
        assert_eq!((&entry.gpu, entry.text), (&gpu, gpu.words()));
        gpu.symptoms.push(short(50));
        let entry = Entry::new(&gpu, Path::new("here"));
        assert_eq!(entry.gpu.symptoms.len(), 50);
        assert!(entry.text.ends_with("; and 1 more"), "{}", entry.text);
    }

    #[test]
    fn a_damaged_file_counts_and_can_be_lifted() {
        let folder = tempfile::tempdir().unwrap();
        let quarantine = Quarantine::within(Some(folder.path()), None);
        let written = quarantine.put(&Entry::new(&sick(), Path::new("here")));
        let path = written.path.unwrap();
        let whole = fs::read_to_string(&path).unwrap();
        let other = whole.replace("aabbccddeeff", "aabbccddee00");
        let large = format!("{whole}{}", " ".repeat(70_000));
        for damaged in ["", "{", "{}", &whole[..40], other.as_str(), large.as_str()] {
            fs::write(&path, damaged).unwrap();
            let why = quarantine.refuse(&gpu()).unwrap_err().to_string();
            assert!(why.contains("cannot be read"), "{why}");
        }
        quarantine.lift(UUID, "damaged", "me").unwrap();
        quarantine.refuse(&gpu()).unwrap();
    }

    #[test]
    fn whatever_stands_in_the_place_of_a_file_counts_and_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let quarantine = Quarantine::within(Some(folder.path()), None);
        let written = quarantine.put(&Entry::new(&sick(), Path::new("here")));
        let path = written.path.unwrap();
        let other = folder.path().join("other");
        fs::write(&other, fs::read(&path).unwrap()).unwrap();
        let pipe = |path: &Path| {
            let made = std::process::Command::new("mkfifo").arg(path).status();
            assert!(made.unwrap().success());
        };
        let link = |to: &Path, path: &Path| std::os::unix::fs::symlink(to, path).unwrap();
        let places: [(&str, &dyn Fn()); 3] = [
            ("a link to nothing", &|| link(Path::new("none"), &path)),
            ("a link", &|| link(&other, &path)),
            ("a pipe", &|| pipe(&path)),
        ];
        for (what, place) in places {
            fs::remove_file(&path).unwrap();
            place();
            quarantine.refuse(&gpu()).expect_err(what);
            assert_eq!(quarantine.all().len(), 1, "{what}");
            // A run that finds it sick again replaces it.
            let again = quarantine.put(&Entry::new(&sick(), Path::new("here")));
            assert_eq!(again.warning, None, "{what}");
            assert!(path.symlink_metadata().unwrap().is_file(), "{what}");
        }
        assert!(other.exists());
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        quarantine.refuse(&gpu()).unwrap_err();
        let why = quarantine.lift(UUID, "x", "me").unwrap_err().to_string();
        assert!(why.contains(&path.display().to_string()), "{why}");
        fs::remove_dir(&path).unwrap();

        quarantine.put(&Entry::new(&sick(), Path::new("here")));
        let history = path.with_file_name(HISTORY);
        fs::remove_file(&history).unwrap();
        for make in [pipe as fn(&Path), |path| {
            std::os::unix::fs::symlink("elsewhere", path).unwrap();
        }] {
            make(&history);
            quarantine.lift(UUID, "x", "me").unwrap_err();
            quarantine.refuse(&gpu()).unwrap_err();
            fs::remove_file(&history).unwrap();
        }
        assert!(!path.with_file_name("elsewhere").exists());
        quarantine.lift(UUID, "x", "me").unwrap();
    }

    #[test]
    fn a_lifting_covers_what_was_measured_since_the_run_began() {
        let folder = tempfile::tempdir().unwrap();
        let quarantine = Quarantine::within(Some(folder.path()), None);
        let mut entry = Entry::new(&sick(), Path::new("here"));
        entry.began = "2026-11-25T10:00:00Z".to_owned();
        let path = quarantine.put(&entry).path.unwrap();
        let history = path.with_file_name(HISTORY);
        // The line of another one was cut off.
        fs::write(&history, "{\"uuid\":\"GPU-0011").unwrap();
        let lifting = quarantine.lift(UUID, "x", "me").unwrap();
        let covers = |time: &str| quarantine.covering(UUID, time).unwrap().is_some();
        assert!(!covers("2026-11-25T09:59:59Z"));
        assert!(covers("2026-11-25T10:00:00Z"));
        assert!(covers(&lifting.lifted));
        assert!(!covers("9999-01-01T00:00:00Z"));
        assert_eq!(quarantine.history(UUID).unwrap().len(), 1);
        assert_eq!(quarantine.history("GPU-1").unwrap(), [""; 0]);
        // Nobody knows when the run began of which the file was damaged.
        fs::write(&path, "{").unwrap();
        quarantine.lift(UUID, "x", "me").unwrap();
        assert!(covers("2026-11-25T09:59:59Z"));
        fs::write(&history, b"\xff").unwrap();
        quarantine.history(UUID).unwrap_err();
    }

    #[test]
    fn two_runs_that_write_at_once_leave_one_whole_file() {
        let folder = tempfile::tempdir().unwrap();
        let quarantine = Quarantine::within(Some(folder.path()), None);
        std::thread::scope(|scope| {
            for run in ["one", "another"] {
                let quarantine = &quarantine;
                scope.spawn(move || {
                    for _ in 0..20 {
                        let written = quarantine.put(&Entry::new(&sick(), Path::new(run)));
                        assert_eq!(written.warning, None);
                        quarantine.of_gpu(UUID).unwrap().entry.unwrap();
                    }
                });
            }
        });
        let all = quarantine.all();
        assert_eq!(all.len(), 1);
        let folder = all[0].path.parent().unwrap();
        assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
    }

    #[test]
    fn where_the_state_folder_cannot_be_written_the_work_folder_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("a file");
        fs::write(&home, "").unwrap();
        let work = folder.path().join("work");
        for state in [Some(home.as_path()), None] {
            let quarantine = Quarantine::within(state, Some(&work));
            let written = quarantine.put(&Entry::new(&sick(), Path::new("here")));
            assert!(written.path.unwrap().starts_with(&work));
            assert!(
                written
                    .warning
                    .unwrap()
                    .contains("only runs of this project")
            );
            quarantine.refuse(&gpu()).unwrap_err();
            quarantine.lift(UUID, "tried", "me").unwrap();
        }
        let nowhere = Quarantine::within(Some(&home), Some(&home));
        let written = nowhere.put(&Entry::new(&sick(), Path::new("here")));
        assert_eq!(written.path, None);
        assert!(written.warning.unwrap().contains("could not be stored"));
        assert_eq!(nowhere.all(), []);
    }

    #[test]
    fn what_is_no_uuid_names_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let quarantine = Quarantine::within(Some(folder.path()), None);
        let long = format!("GPU-{}", "a".repeat(100));
        for uuid in ["", "GPU-../../x", "GPU-a/b", "a", "GPU-a.b", long.as_str()] {
            let mut gpu = sick();
            gpu.uuid = uuid.to_owned();
            assert_eq!(
                quarantine.put(&Entry::new(&gpu, Path::new("here"))).path,
                None,
                "{uuid}"
            );
            assert_eq!(quarantine.of_gpu(uuid), None);
        }
        assert!(is_uuid(UUID));
    }
}
