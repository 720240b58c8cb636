//! The folder of a run whose variants several GPUs measure.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::config::Config;
use crate::files::create_work_folder;
use crate::finding::Error;
use crate::measure::{RunFile, Watch};
use crate::process;
use crate::slice::profiles_in;

/// The folder of the runs in the work folder.
const RUNS: &str = "gpus";
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
    /// By which the next run finds what this one leaves running if it is killed.
    run_file: Option<RunFile>,
}

impl Place {
    /// A new one in the work folder. What earlier runs left is ended and removed.
    pub fn begin(config: &Config, watch: &dyn Watch) -> Result<Place, Error> {
        let mut place = Place::new(config)?;
        place.sweep();
        let run_file = RunFile::of(&place.folder, &config.work, false);
        run_file.begin(watch)?;
        place.run_file = Some(run_file);
        Ok(place)
    }

    /// The run has said everything.
    pub fn end(mut self) {
        self.run_file.take().into_iter().for_each(RunFile::end);
    }

    fn new(config: &Config) -> Result<Place, Error> {
        create_work_folder(&config.work)?;
        let all = config.work.join(RUNS);
        fs::create_dir_all(&all).map_err(Error::io("create", &all))?;
        let folder = tempfile::Builder::new()
            .prefix(NAME)
            .rand_bytes(12)
            .tempdir_in(&all)
            .map_err(Error::io("create", &all))?
            .keep();
        // After a moment: another process may look whether it is in use.
        let _in_use = match lock(&folder, SOON) {
            Err(Error::Io { .. }) => None,
            locked => locked?,
        };
        Ok(Place {
            folder,
            _in_use,
            run_file: None,
        })
    }

    /// Ends what earlier runs beside it left running, whose processes are all of this host, and removes
    /// the folders of those that are over. The newest stay, and those that are in use. What cannot be
    /// removed stays, too.
    fn sweep(&self) {
        let others = self.others();
        others.iter().for_each(|folder| end_left(folder));
        for folder in others.iter().rev().skip(KEPT - 1) {
            let is_free = matches!(lock(folder, Duration::ZERO), Ok(Some(_)));
            if is_free && !has_processes(folder) {
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

/// The folder of a slice in that of its run. Slices are counted from 1.
pub(super) fn slice_in(run: &Path, index: u32) -> PathBuf {
    run.join(SLICES).join(index.to_string())
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

/// Whether a process still measures for a run.
fn has_processes(run: &Path) -> bool {
    RunFile::is_running_in(run) || slices(run).any(|slice| RunFile::is_running_in(&slice))
}

/// Kills what a run left running that was killed, with its processes.
fn end_left(run: &Path) {
    RunFile::end_left_in(run);
    slices(run).for_each(|slice| RunFile::end_left_in(&slice));
}

impl Drop for Place {
    /// Slices stay. The archive is large, and nobody needs it again.
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
    fn the_newest_runs_are_kept_and_those_that_are_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        let all = config.work.join("gpus");
        let place = || Place::new(&config).unwrap();
        // The oldest first.
        let old: Vec<Place> = (0..KEPT + 5).map(|_| place()).collect();
        let now = SystemTime::now();
        let paths: Vec<PathBuf> = old.iter().map(|place| place.folder.clone()).collect();
        let mut old: Vec<Option<Place>> = old.into_iter().map(Some).collect();
        // The first is in use, of the second a slice, and of the third the run.
        let begun = |folder: PathBuf| {
            let run_file = RunFile::of(&folder, &config.work, false);
            run_file.begin(&Progress::new()).unwrap();
            run_file
        };
        let of_slice = begun(profiles_in(&slice_in(&paths[1], 1)));
        let of_run = begun(paths[2].clone());
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
