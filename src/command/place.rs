//! The folder of a run whose variants other processes measure.

use std::fs;
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::files::create_work_folder;
use crate::finding::Error;
use crate::measure::Journal;

/// How the names of jobs and of their folders begin.
const NAME: &str = "sparsek-gate-";

/// The folder of one run; on a cluster all nodes must see it under the same path.
pub(super) struct Place {
    pub folder: PathBuf,
    /// That of the folder and of the job; no other has it.
    pub name: String,
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
        let name = folder.file_name().unwrap_or_default();
        Ok(Place {
            name: name.to_string_lossy().into_owned(),
            folder,
        })
    }

    /// That of the newest run of a plan there that was interrupted, if there is one and this run goes on
    /// with it. From then on nobody goes on with the others.
    pub fn of_plan(
        config: &Config,
        machines: &str,
        plan: &str,
        resume: bool,
    ) -> Result<Place, Error> {
        let all = fs::read_dir(config.work.join(machines))
            .into_iter()
            .flatten();
        let folders = all.flatten().map(|entry| entry.path());
        let mut interrupted = Journal::interrupted_among(folders, plan);
        let newest = interrupted.pop_if(|_| resume);
        for folder in interrupted {
            Journal::end_in(&folder);
        }
        let Some(folder) = newest else {
            return Place::new(config, machines);
        };
        let name = folder.file_name().unwrap_or_default();
        Ok(Place {
            name: name.to_string_lossy().into_owned(),
            folder,
        })
    }

    pub fn archive(&self) -> PathBuf {
        self.folder.join("gate.tar.zst")
    }

    fn program(&self) -> PathBuf {
        self.folder.join("sparsek-gate")
    }

    /// The folder of a slice, which are counted from 1.
    pub fn slice(&self, index: u32) -> PathBuf {
        self.folder.join("slices").join(index.to_string())
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
        if fs::hard_link(&here, &there).is_err() {
            fs::copy(&here, &there).map_err(Error::io("copy", &here))?;
        }
        text(&there)
    }
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
