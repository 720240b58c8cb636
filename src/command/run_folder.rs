//! The folder of a run whose variants several GPUs measure.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::config::Config;
use crate::disk;
use crate::files::create_work_folder;
use crate::finding::Error;
use crate::measure::{RunFile, Watch};

/// The folder of the runs in the work folder.
const RUNS: &str = "gpus";
/// How the names of the folders begin.
const NAME: &str = "sparsek-gate-";
/// How many runs are kept, with the one that begins.
const KEPT: usize = 5;

/// The folder of one run, which no other run uses.
pub(super) struct RunFolder {
    pub folder: PathBuf,
    /// By which others see that it goes on, and what it leaves running if it is killed.
    run_file: Option<RunFile>,
}

impl RunFolder {
    /// A new one in the work folder. What earlier runs left is ended and removed.
    #[expect(clippy::disallowed_methods, reason = "it stays")]
    pub fn begin(config: &Config, watch: &dyn Watch) -> Result<RunFolder, Error> {
        create_work_folder(&config.work)?;
        let all = config.work.join(RUNS);
        disk::create_dir_all(&all).map_err(Error::io("create", &all))?;
        let folder = tempfile::Builder::new()
            .prefix(NAME)
            .rand_bytes(12)
            .tempdir_in(&all)
            .map_err(Error::io("create", &all))?
            .keep();
        let run_file = RunFile::of(&folder, &config.work, false);
        run_file.begin(watch)?;
        let run = RunFolder {
            folder,
            run_file: Some(run_file),
        };
        run.sweep();
        Ok(run)
    }

    /// The run has said everything.
    pub fn end(mut self) {
        self.run_file.take().map(RunFile::end);
    }

    /// Removes the folders of earlier runs beside it that are over. The newest stay, and those that are in
    /// use. What cannot be removed stays, too; what is only a link to a folder is none.
    fn sweep(&self) {
        let all = self.folder.parent().unwrap_or(Path::new(""));
        let others = disk::read_dir(all).into_iter().flatten().filter(|entry| {
            entry.is_dir() && entry.text().starts_with(NAME) && entry.path != self.folder
        });
        let written = |folder: &PathBuf| disk::metadata(folder)?.modified();
        let others = others.map(|entry| (written(&entry.path).ok(), entry.path));
        let mut others: Vec<(Option<SystemTime>, PathBuf)> = others.collect();
        others.sort();
        for (_, folder) in others.iter().rev().skip(KEPT - 1) {
            if !RunFile::is_running_in(folder) {
                let _ = disk::remove_dir_all(folder);
            }
        }
    }

    pub fn archive(&self) -> PathBuf {
        self.folder.join("gate.tar.zst")
    }
}

impl Drop for RunFolder {
    /// Slices stay. The archive is large, and nobody needs it again.
    fn drop(&mut self) {
        let _ = disk::remove_file(self.archive());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Progress;
    use std::fs;

    const CONFIG: &str = "[metric.duration]\ncounter = \"gpu__time_duration.sum\"\n\
        direction = \"lower\"\ntolerance = '1 %'\n\
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
        let run = || RunFolder::begin(&config, &Progress::default()).unwrap();
        // The oldest first.
        let old: Vec<RunFolder> = (0..KEPT + 5).map(|_| run()).collect();
        let now = SystemTime::now();
        let paths: Vec<PathBuf> = old.iter().map(|run| run.folder.clone()).collect();
        let mut old: Vec<Option<RunFolder>> = old.into_iter().map(Some).collect();
        // The first goes on.
        for run in &mut old[1..] {
            *run = None;
        }
        std::os::unix::fs::symlink("/", all.join("sparsek-gate-link")).unwrap();
        fs::create_dir(all.join("notes")).unwrap();
        for (age, path) in (1..).zip(paths.iter().rev()) {
            let at = now - std::time::Duration::from_secs(60 * age);
            fs::File::open(path).unwrap().set_modified(at).unwrap();
        }
        let new = run();
        let is_kept = |at: usize| paths[at].exists();
        let kept: Vec<usize> = (0..paths.len()).filter(|at| is_kept(*at)).collect();
        let newest = paths.len() - (KEPT - 1)..paths.len();
        let expected: Vec<usize> = [0].into_iter().chain(newest).collect();
        assert_eq!(kept, expected);
        assert!(new.folder.exists());
        assert!(all.join("sparsek-gate-link").is_symlink() && all.join("notes").exists());
        // It is over, and goes.
        drop(old);
        new.sweep();
        assert!(!is_kept(0));
    }
}
