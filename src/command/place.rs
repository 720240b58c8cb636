//! The folder of a run whose variants other processes measure.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::config::Config;
use crate::files::create_work_folder;
use crate::finding::Error;
use crate::measure::Journal;
use crate::process;
use crate::slice::profiles_in;

/// How the names of the folders begin.
const NAME: &str = "sparsek-gate-";
/// The file in the folder of a run that is locked while the run goes on.
const IN_USE: &str = "in-use";
/// The folder of the slices in it.
const SLICES: &str = "slices";
/// How many runs are kept, with the one that begins.
const KEPT: usize = 5;

/// How long to wait for a lock that another process may have for a moment, to see whether a run goes on.
const SOON: Duration = Duration::from_secs(1);

/// The folder of one run, which no other run uses.
pub(super) struct Place {
    pub folder: PathBuf,
    /// Locked for as long as this process lives. `None` only of a new folder on a file system without
    /// locks: there every run takes the folders of all others for used ones.
    _in_use: Option<File>,
}

impl Place {
    /// A new one in a folder of the work folder.
    pub fn new(config: &Config, machines: &str) -> Result<Place, Error> {
        create_work_folder(&config.work)?;
        let all = config.work.join(machines);
        fs::create_dir_all(&all).map_err(Error::io("create", &all))?;
        let folder = tempfile::Builder::new()
            .prefix(NAME)
            .rand_bytes(12)
            .tempdir_in(&all)
            .map_err(Error::io("create", &all))?
            .keep();
        let in_use = lock_if_possible(&folder)?;
        Ok(Place::at(folder, in_use))
    }

    /// That of an interrupted run of a plan, if no other run goes on with it.
    fn taken_over(folder: PathBuf, plan: &str) -> Result<Option<Place>, Error> {
        let in_use = lock_if_possible(&folder)?;
        // Another one may have gone on with it, and ended, before this one had the lock.
        let is_left = || {
            let folder = std::iter::once(folder.clone());
            !Journal::interrupted_among(folder, plan).is_empty()
        };
        let in_use = in_use.filter(|_| is_left());
        Ok(in_use.map(|in_use| Place::at(folder, Some(in_use))))
    }

    fn at(folder: PathBuf, in_use: Option<File>) -> Place {
        Place {
            _in_use: in_use,
            folder,
        }
    }

    /// Kills what runs left running that were killed, and whose processes are all of this host. Must come
    /// before [`Place::of_plan`], which may remove what says which these are.
    pub fn end_left(config: &Config, machines: &str) {
        let folders = runs(&config.work.join(machines));
        folders.iter().for_each(|folder| end_left(folder));
    }

    /// With `resume`, the folder of the newest interrupted run of this plan; else a new one. Older
    /// interrupted runs of the plan cannot be resumed afterwards.
    pub fn of_plan(
        config: &Config,
        machines: &str,
        plan: &str,
        resume: bool,
    ) -> Result<Place, Error> {
        let folders = runs(&config.work.join(machines));
        let mut interrupted = Journal::interrupted_among(folders.into_iter(), plan);
        let newest = interrupted.pop_if(|_| resume);
        for folder in interrupted {
            // A run that goes on with it has the lock, and begins its own journal only later.
            if let Ok(Some(_in_use)) = lock(&folder, Duration::ZERO) {
                Journal::end_in(&folder);
            }
        }
        let newest = newest.map(|folder| Place::taken_over(folder, plan));
        match newest.transpose()?.flatten() {
            Some(place) => Ok(place),
            None => Place::new(config, machines),
        }
    }

    /// Ends what earlier runs beside it left running, whose processes are all of this host, and removes
    /// the folders of those that have none: see [`Place::remove_old`].
    pub fn sweep(&self) {
        self.others().iter().for_each(|folder| end_left(folder));
        self.remove_old(|folder| !has_processes(folder));
    }

    /// Removes the folders of earlier runs beside it that are over. The newest stay, and those that are
    /// in use. What cannot be removed stays, too.
    pub fn remove_old(&self, is_over: impl Fn(&Path) -> bool) {
        for folder in self.others().iter().rev().skip(KEPT - 1) {
            // Locked while it is removed, so that nobody goes on with it meanwhile.
            if let Ok(Some(_in_use)) = lock(folder, Duration::ZERO)
                && is_over(folder)
            {
                let _ = fs::remove_dir_all(folder);
            }
        }
    }

    /// The folders of the runs beside it, the oldest first.
    fn others(&self) -> Vec<PathBuf> {
        let all = runs(self.folder.parent().unwrap_or(Path::new("")));
        let written = |folder: &PathBuf| {
            let written = folder.metadata().and_then(|meta| meta.modified());
            written.unwrap_or(SystemTime::UNIX_EPOCH)
        };
        let others = all.into_iter().filter(|folder| *folder != self.folder);
        let mut others: Vec<(SystemTime, PathBuf)> =
            others.map(|folder| (written(&folder), folder)).collect();
        others.sort();
        others.into_iter().map(|(_, folder)| folder).collect()
    }

    pub fn archive(&self) -> PathBuf {
        self.folder.join("gate.tar.zst")
    }

    /// The folder of a slice, which are counted from 1.
    pub fn slice(&self, index: u32) -> PathBuf {
        self.folder.join(SLICES).join(index.to_string())
    }
}

/// The folders of the runs in a folder; what is only a link to one is none.
fn runs(all: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(all).into_iter().flatten().flatten();
    let own = all.filter(|entry| {
        let is_run = entry.file_name().to_string_lossy().starts_with(NAME);
        is_run && entry.file_type().is_ok_and(|kind| kind.is_dir())
    });
    own.map(|entry| entry.path()).collect()
}

/// The folders of profiles of the slices of a run.
fn slices(run: &Path) -> impl Iterator<Item = PathBuf> {
    let slices = fs::read_dir(run.join(SLICES)).into_iter().flatten();
    slices.flatten().map(|entry| profiles_in(&entry.path()))
}

/// The lock of the folder of a run, if it is free before this time is over.
fn lock(run: &Path, longest: Duration) -> Result<Option<File>, Error> {
    let path = run.join(IN_USE);
    let mut options = File::options();
    let file = options.create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(Error::io("open", &path))?;
    let is_locked = process::wait_for_lock(&file, &path, longest, || {})?;
    Ok(is_locked.then_some(file))
}

/// The same after a moment; also `None` on a file system without locks.
fn lock_if_possible(run: &Path) -> Result<Option<File>, Error> {
    match lock(run, SOON) {
        Err(Error::Io { .. }) => Ok(None),
        locked => locked,
    }
}

/// Whether a process still measures for a run.
fn has_processes(run: &Path) -> bool {
    Journal::is_running_in(run) || slices(run).any(|slice| Journal::is_running_in(&slice))
}

/// Kills what a run left running that was killed, with its processes.
fn end_left(run: &Path) {
    Journal::end_left_in(run);
    slices(run).for_each(|slice| Journal::end_left_in(&slice));
}

/// A path that stands on a command line.
pub(super) fn text(path: &Path) -> Result<String, Error> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Error::Usage(format!("{} is not UTF-8", path.display())))
}

impl Drop for Place {
    /// Logs and slices stay. The archive is large, and nobody needs it again.
    fn drop(&mut self) {
        let _ = fs::remove_file(self.archive());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Progress;

    const CONFIG: &str = "[metric.duration]\ncounter = \"gpu__time_duration.sum\"\n\
        direction = \"lower\"\ntolerance = { relative_percent = 1.0 }\n\
        [suite.s.variant.a]\nrun = [\"a\"]\n";

    /// A configuration in a folder.
    fn config(folder: &Path) -> Config {
        Config::parse(&folder.join("config.toml"), CONFIG).unwrap()
    }

    #[test]
    fn only_one_run_goes_on_with_an_interrupted_one() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        let of_plan = |resume| Place::of_plan(&config, "gpus", "plan", resume).unwrap();
        let interrupted = of_plan(false);
        let path = interrupted.folder.clone();
        let journal = Journal::of(&path, &config.work, false).of_plan("plan".to_owned());
        journal.begin(&Progress::new()).unwrap();
        // It still goes on.
        assert_ne!(of_plan(true).folder, path);
        drop((journal, interrupted));
        // Its journal is that of the interrupted run until it begins its own.
        let first = of_plan(true);
        assert_eq!(first.folder, path);
        fs::write(first.archive(), "").unwrap();
        for resume in [true, false] {
            let second = of_plan(resume);
            assert_ne!(second.folder, path);
            second.sweep();
        }
        // One that chose it before the first had it.
        let other = Place::taken_over(path.clone(), "plan").unwrap();
        assert!(other.is_none());
        drop(other);
        assert!(first.archive().exists());
        let left = Journal::interrupted_among(std::iter::once(path.clone()), "plan");
        assert_eq!(left, std::slice::from_ref(&path));
        // It goes on with it, and ends.
        let journal = Journal::of(&path, &config.work, true).of_plan("plan".to_owned());
        journal.begin(&Progress::new()).unwrap();
        journal.end();
        drop(first);
        assert!(Place::taken_over(path, "plan").unwrap().is_none());
    }

    #[test]
    fn the_newest_runs_are_kept_and_those_that_are_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        let all = config.work.join("gpus");
        let place = || Place::new(&config, "gpus").unwrap();
        // The oldest first.
        let old: Vec<Place> = (0..KEPT + 5).map(|_| place()).collect();
        let now = SystemTime::now();
        let paths: Vec<PathBuf> = old.iter().map(|place| place.folder.clone()).collect();
        let mut old: Vec<Option<Place>> = old.into_iter().map(Some).collect();
        // The first is in use, of the second a slice, and of the third the journal of the run.
        let journal = |folder: PathBuf| {
            let journal = Journal::of(&folder, &config.work, false);
            journal.begin(&Progress::new()).unwrap();
            journal
        };
        let of_slice = journal(profiles_in(&old[1].as_ref().unwrap().slice(1)));
        let of_run = journal(paths[2].clone());
        for place in &mut old[1..] {
            *place = None;
        }
        std::os::unix::fs::symlink("/", all.join("sparsek-gate-link")).unwrap();
        fs::create_dir(all.join("notes")).unwrap();
        for (age, path) in (1..).zip(paths.iter().rev()) {
            let at = now - Duration::from_secs(60 * age);
            File::open(path).unwrap().set_modified(at).unwrap();
        }
        let new = place();
        new.sweep();
        let is_kept = |at: usize| paths[at].exists();
        let kept: Vec<usize> = (0..paths.len()).filter(|at| is_kept(*at)).collect();
        let newest = paths.len() - (KEPT - 1)..paths.len();
        let expected: Vec<usize> = [0, 1, 2].into_iter().chain(newest).collect();
        assert_eq!(kept, expected);
        assert!(new.folder.exists());
        assert!(all.join("sparsek-gate-link").is_symlink() && all.join("notes").exists());
        // They are over, and go.
        drop((of_slice, of_run, old));
        new.remove_old(|folder| *folder != paths[0]);
        assert_eq!((0..3).find(|at| is_kept(*at)), Some(0));
        new.sweep();
        assert_eq!((0..3).filter(|at| is_kept(*at)).count(), 0);
    }
}
