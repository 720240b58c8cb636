//! `sparsek-gate check --on slurm`: an archive, an array of slices, and their merge.

use std::fs;
use std::path::{Path, PathBuf};

use super::judging::Judging;
use super::plan::Sliced;
use super::{answer, archive, merge};
use crate::cli::{ArchiveArgs, CheckArgs, Format, KeepJobArgs, MergeArgs, TrustArgs};
use crate::config::Config;
use crate::engine::Task;
use crate::engine::slurm::{self, Order};
use crate::files::create_work_folder;
use crate::finding::{Error, ExitCode};
use crate::judge::{Origin, Outcome};
use crate::measure::Watch as _;
use crate::process;
use crate::report::{self, Progress};

/// The folder of the jobs in the work folder.
const FOLDER: &str = "slurm";
/// How the names of jobs and of their folders begin.
const NAME: &str = "sparsek-gate-";

/// Submits a job, and cancels it once the check ends that is for.
pub(super) fn keep(arguments: &KeepJobArgs) -> Result<ExitCode, Error> {
    slurm::keep(Path::new("."), &arguments.name, &arguments.sbatch)
}

pub(super) fn run(path: &Path, arguments: &CheckArgs) -> Result<ExitCode, Error> {
    let targets = report::targets(&arguments.report)?;
    let error = match measured(path, arguments) {
        Ok((place, slices, sha256)) => {
            return merge::run(path, &merge_arguments(arguments, &place, slices, sha256));
        }
        Err(refused @ Error::Usage(_)) => return Err(refused),
        Err(error) => error,
    };
    // The report must say why there is no verdict.
    let mut outcome = Outcome::new(Origin::Measured);
    outcome.ended = Some(answer::ended(&error));
    let detail = arguments.verbosity.detail();
    answer::report(&outcome, Some(error), arguments.format, detail, &targets)
}

/// Packs an archive and lets Slurm measure it: the folder with the slices, how many there are, and
/// the archive's hash.
fn measured(path: &Path, arguments: &CheckArgs) -> Result<(Place, u32, String), Error> {
    let current = Config::load(path)?;
    slurm::refuse_without(&current.root)?;
    // Partition, prolog and time limit are the base's too.
    let against = arguments.against.as_deref();
    let judging = Judging::in_checkout(current, &arguments.trusted, against, &arguments.selection)?;
    let place = Place::new(&judging.plan.config)?;
    let settings = judging.plan.config.launch.clone();
    drop(judging);

    let packed = archive::done(path, &archive_arguments(arguments, &place.archive()))?;
    if process::interrupted() {
        return Err(Error::Interrupted);
    }
    let sliced = Sliced::new(&packed.measured, arguments.slices, against.is_some());
    let task = Task {
        settings: &settings,
        slices: sliced.slices,
        limit: sliced.limit(),
        config: None,
        names: &arguments.selection.names,
        experimental: arguments.selection.experimental,
        against,
    };
    let progress = Progress::with(arguments.verbosity.detail());
    let order = Order {
        task: &task,
        folder: &place.folder,
        name: &place.name,
        keeper: vec![place.put_program()?, "keep-job".to_owned()],
    };
    slurm::run(&order, &mut |text| progress.notes(text))?;
    progress.notes(&format!("logs and captures: {}", place.folder.display()));
    Ok((place, sliced.slices, packed.content.sha256))
}

/// By the rules in the archive, which are those of now.
fn merge_arguments(arguments: &CheckArgs, place: &Place, slices: u32, sha256: String) -> MergeArgs {
    let folder = |slice: u32| place.folder.join("slices").join(slice.to_string());
    MergeArgs {
        slices: (1..=slices).map(folder).collect(),
        select: Vec::new(),
        experimental: false,
        archive: Some(place.archive()),
        archive_sha256: Some(sha256),
        trusted: TrustArgs {
            baseline_ref: None,
            accept: Vec::new(),
            pull_request: None,
        },
        report: arguments.report.clone(),
        verbosity: arguments.verbosity,
        format: arguments.format,
    }
}

fn archive_arguments(arguments: &CheckArgs, output: &Path) -> ArchiveArgs {
    ArchiveArgs {
        selection: arguments.selection.clone(),
        output: output.to_owned(),
        against: arguments.against.clone(),
        measure_all: arguments.measure_all,
        trusted: arguments.trusted.clone(),
        format: Format::Text,
    }
}

/// The folder of one job, which all nodes must see under the same path.
struct Place {
    folder: PathBuf,
    /// That of the folder and of the job; no other has it.
    name: String,
}

impl Place {
    fn new(config: &Config) -> Result<Place, Error> {
        create_work_folder(&config.work)?;
        let all = config.work.join(FOLDER);
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

    fn archive(&self) -> PathBuf {
        self.folder.join("gate.tar.zst")
    }

    fn program(&self) -> PathBuf {
        self.folder.join("sparsek-gate")
    }

    /// Puts this program into the folder: the nodes have no other, and an update does not exchange
    /// it.
    fn put_program(&self) -> Result<String, Error> {
        let here = std::env::current_exe().map_err(Error::io("find", "this program"))?;
        let there = self.program();
        if fs::hard_link(&here, &there).is_err() {
            fs::copy(&here, &there).map_err(Error::io("copy", &here))?;
        }
        let path = there
            .to_str()
            .ok_or_else(|| Error::Usage(format!("{} is not UTF-8", self.folder.display())))?;
        Ok(path.to_owned())
    }
}

impl Drop for Place {
    /// Logs and slices stay. The others are large, and nobody needs them again.
    fn drop(&mut self) {
        for file in [self.archive(), self.program()] {
            let _ = fs::remove_file(file);
        }
    }
}
