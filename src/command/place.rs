//! The folder of a run whose variants other processes measure.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::config::Config;
use crate::files::create_work_folder;
use crate::finding::Error;
use crate::measure::Journal;
use crate::process;
use crate::slice::profiles_in;

/// How the names of jobs and of their folders begin.
const NAME: &str = "sparsek-gate-";
/// The file in the folder of a run that is locked while the run goes on.
const IN_USE: &str = "in-use";
/// The folder of the slices in it.
const SLICES: &str = "slices";
/// How many runs are kept, with the one that begins.
const KEPT: usize = 5;

/// The folder of one run; on a cluster all nodes must see it under the same path.
pub(super) struct Place {
    pub folder: PathBuf,
    /// That of the folder and of the job; no other has it.
    pub name: String,
    /// Locked for as long as this process lives.
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
        Ok(Place::at(folder))
    }

    fn at(folder: PathBuf) -> Place {
        let in_use = File::create(folder.join(IN_USE)).ok();
        let name = folder.file_name().unwrap_or_default();
        Place {
            name: name.to_string_lossy().into_owned(),
            _in_use: in_use.filter(|file| file.try_lock().is_ok()),
            folder,
        }
    }

    /// That of the newest run of a plan there that was interrupted, if there is one and this run goes on
    /// with it. From then on nobody goes on with the others.
    pub fn of_plan(
        config: &Config,
        machines: &str,
        plan: &str,
        resume: bool,
    ) -> Result<Place, Error> {
        let folders = runs(&config.work.join(machines));
        // Before what says which these are is removed.
        folders.iter().for_each(|folder| end_left(folder));
        let mut interrupted = Journal::interrupted_among(folders.into_iter(), plan);
        let newest = interrupted.pop_if(|_| resume);
        for folder in interrupted {
            Journal::end_in(&folder);
        }
        newest.map_or_else(|| Place::new(config, machines), |it| Ok(Place::at(it)))
    }

    /// Removes the folders of earlier runs beside it whose processes are all of this host, and ends
    /// what these left running. The newest stay, and those that are in use. What cannot be removed
    /// stays, too.
    pub fn sweep(&self) {
        let all = runs(self.folder.parent().unwrap_or(Path::new("")));
        let written = |folder: &PathBuf| {
            let written = folder.metadata().and_then(|meta| meta.modified());
            written.unwrap_or(SystemTime::UNIX_EPOCH)
        };
        let others = all.into_iter().filter(|folder| *folder != self.folder);
        let mut others: Vec<(SystemTime, PathBuf)> =
            others.map(|folder| (written(&folder), folder)).collect();
        others.sort();
        others.iter().for_each(|(_, folder)| end_left(folder));
        for (_, folder) in others.iter().rev().skip(KEPT - 1) {
            if !is_in_use(folder) {
                let _ = fs::remove_dir_all(folder);
            }
        }
    }

    pub fn archive(&self) -> PathBuf {
        self.folder.join("gate.tar.zst")
    }

    fn program(&self) -> PathBuf {
        self.folder.join("sparsek-gate")
    }

    /// The folder of a slice, which are counted from 1.
    pub fn slice(&self, index: u32) -> PathBuf {
        self.folder.join(SLICES).join(index.to_string())
    }

    /// The folder of a slice that is measured once more.
    pub fn repeat(&self, index: u32) -> PathBuf {
        self.folder.join("slices").join(format!("{index}-repeat"))
    }

    /// Puts this program into the folder: the nodes have no other, and an update does not exchange
    /// it.
    pub fn put_program(&self) -> Result<String, Error> {
        let here = std::env::current_exe().map_err(Error::io("find", "this program"))?;
        let there = self.program();
        // That of an interrupted run. A copy over it would be one over this program.
        let _ = fs::remove_file(&there);
        if fs::hard_link(&here, &there).is_err() {
            fs::copy(&here, &there).map_err(Error::io("copy", &here))?;
        }
        text(&there)
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

/// Whether any process of a run still works there.
fn is_in_use(run: &Path) -> bool {
    process::is_locked(&run.join(IN_USE))
        || Journal::is_running_in(run)
        || slices(run).any(|slice| Journal::is_running_in(&slice))
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
    /// Logs and slices stay. The others are large, and nobody needs them again.
    fn drop(&mut self) {
        for file in [self.archive(), self.program()] {
            let _ = fs::remove_file(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const CONFIG: &str = "[metric.duration]\ncounter = \"gpu__time_duration.sum\"\n\
        direction = \"lower\"\ntolerance = { relative_percent = 1.0 }\n\
        [suite.s.variant.a]\nrun = [\"a\"]\n";

    #[test]
    fn the_newest_runs_are_kept_and_those_that_are_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.toml");
        let config = Config::parse(&config, CONFIG).unwrap();
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
            journal.begin().unwrap();
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
        new.sweep();
        assert_eq!((0..3).filter(|at| is_kept(*at)).count(), 0);
    }
}
