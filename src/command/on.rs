//! `sparsek-gate check --on slurm` and `check --gpus`: an archive, its slices on other machines or on
//! the GPUs of this one, and their merge.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::judging::Judging;
use super::plan::Sliced;
use super::{answer, archive, merge};
use crate::cli::{ArchiveArgs, CheckArgs, Format, KeepJobArgs, MergeArgs, TrustArgs};
use crate::config::{Config, Selected};
use crate::device::{Gpu, GpusAsked, short_names};
use crate::engine::{Task, host, slurm};
use crate::files::create_work_folder;
use crate::finding::{Error, ExitCode};
use crate::judge::{Origin, Outcome};
use crate::measure::{Batch, Bench, Watch as _};
use crate::plan::SlicePlace;
use crate::process;
use crate::report::{self, Progress};

/// The folders of the runs in the work folder: of those on Slurm, and of those on GPUs of this host.
const ON_SLURM: &str = "slurm";
const ON_GPUS: &str = "gpus";
/// How the names of jobs and of their folders begin.
const NAME: &str = "sparsek-gate-";

/// Submits a job, and cancels it once the check ends that is for.
pub(super) fn keep(arguments: &KeepJobArgs) -> Result<ExitCode, Error> {
    slurm::keep(Path::new("."), &arguments.name, &arguments.sbatch)
}

pub(super) fn run(path: &Path, arguments: &CheckArgs) -> Result<ExitCode, Error> {
    let started = Instant::now();
    let targets = report::targets(&arguments.report)?;
    let error = match measured(path, arguments) {
        Ok(slices) => {
            let arguments = merge_arguments(arguments, &slices);
            let measured = merge::Measured {
                started: Some(started),
                ..slices.measured
            };
            return merge::of_run(path, &arguments, &measured);
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

/// What measures the slices.
enum Machines {
    Slurm,
    /// The GPUs of this host that are asked for, with a short name of each.
    Gpus(Vec<(Gpu, String)>),
}

impl Machines {
    /// Those that are asked for. What this machine lacks is reported before anything is built.
    fn of(arguments: &CheckArgs, current: &Config) -> Result<Machines, Error> {
        match &arguments.gpus {
            Some(asked) => Ok(Machines::Gpus(gpus(asked)?)),
            None => slurm::refuse_without(&current.root).map(|()| Machines::Slurm),
        }
    }

    /// The folder of their runs in the work folder.
    fn folder(&self) -> &'static str {
        match self {
            Machines::Slurm => ON_SLURM,
            Machines::Gpus(_) => ON_GPUS,
        }
    }
}

/// The GPUs of this host that are asked for, with a short name of each.
pub(super) fn gpus(asked: &GpusAsked) -> Result<Vec<(Gpu, String)>, Error> {
    let all = Gpu::all()?;
    let names: BTreeMap<String, String> = all
        .iter()
        .map(|gpu| gpu.uuid.clone())
        .zip(short_names(&all))
        .collect();
    let asked = asked.of(&all)?.into_iter();
    Ok(asked
        .map(|gpu| {
            let short = names.get(&gpu.uuid).cloned().unwrap_or_default();
            (gpu, short)
        })
        .collect())
}

/// Refuses GPUs on which the variants could not be measured: tools, pins and counters.
pub(super) fn refuse_unfit(plan: &Selected, gpus: &[(Gpu, String)]) -> Result<(), Error> {
    for (gpu, _) in gpus {
        let config = Config {
            device: gpu.ordinal,
            ..plan.config.clone()
        };
        let batch = Batch {
            config: &config,
            variants: &plan.variants(),
            watch: &Progress::new(),
        };
        Bench::new(batch, &[], None)?;
    }
    Ok(())
}

/// Slices that were measured.
struct Slices {
    place: Place,
    folders: Vec<PathBuf>,
    /// sha256 of the archive.
    sha256: String,
    measured: merge::Measured,
}

/// Packs an archive and lets its slices be measured.
fn measured(path: &Path, arguments: &CheckArgs) -> Result<Slices, Error> {
    let current = Config::load(path)?;
    let machines = Machines::of(arguments, &current)?;
    // Partition, prolog and time limit are the base's too.
    let against = arguments.against.as_deref();
    let judging = Judging::in_checkout(current, &arguments.trusted, against, &arguments.selection)?;
    if let Machines::Gpus(gpus) = &machines {
        refuse_unfit(&judging.plan, gpus)?;
    }
    let place = Place::new(&judging.plan.config, machines.folder())?;
    let settings = judging.plan.config.launch.clone();
    drop(judging);

    let packed = archive::done(path, &archive_arguments(arguments, &place.archive()))?;
    if process::interrupted() {
        return Err(Error::Interrupted);
    }
    let progress = Progress::with(arguments.verbosity.detail());
    let note = &mut |text: &str| progress.notes(text);
    let slices = match machines {
        Machines::Slurm => {
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
            let order = slurm::Order {
                task: &task,
                folder: &place.folder,
                name: &place.name,
                keeper: vec![place.put_program()?, "keep-job".to_owned()],
            };
            slurm::run(&order, note)?;
            Slices {
                folders: (1..=sliced.slices).map(|at| place.slice(at)).collect(),
                sha256: packed.content.sha256,
                measured: merge::Measured::default(),
                place,
            }
        }
        Machines::Gpus(gpus) => {
            let variants = packed.measured.variants.len();
            let queues = queues(&place, &packed.content.sha256, gpus, variants, note)?;
            host::run(&queues, note)?;
            let folders: Vec<PathBuf> = (1..).zip(&queues).map(|(at, _)| place.slice(at)).collect();
            let known = folders.iter().cloned();
            let known = known
                .zip(&queues)
                .map(|(folder, queue)| (folder, queue.words()));
            Slices {
                measured: merge::Measured {
                    spent: packed.spent,
                    known: known.collect(),
                    on_one_host: true,
                    started: None,
                },
                folders,
                sha256: packed.content.sha256,
                place,
            }
        }
    };
    note(&format!(
        "logs and captures: {}",
        slices.place.folder.display()
    ));
    Ok(slices)
}

/// A queue for each GPU that has any variant to measure.
fn queues(
    place: &Place,
    sha256: &str,
    mut gpus: Vec<(Gpu, String)>,
    variants: usize,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<host::Queue>, Error> {
    let count = gpus.len().min(variants.max(1));
    let measured = match variants {
        1 => "1 variant is".to_owned(),
        count => format!("{count} variants are"),
    };
    for (_, short) in gpus.drain(count..) {
        note(&format!("{short} has no part: {measured} to be measured"));
    }
    let (program, logs) = (place.put_program()?, place.folder.join("logs"));
    fs::create_dir_all(&logs).map_err(Error::io("create", &logs))?;
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let queues = (1..).zip(gpus).map(|(index, (gpu, short))| {
        let slice = SlicePlace { index, count };
        let argv = [
            program.as_str(),
            "check",
            "--archive",
            &text(&place.archive())?,
            "--archive-sha256",
            sha256,
            "--slice",
            &slice.to_string(),
            "--slice-output",
            &text(&place.slice(index))?,
            "--gpu",
            &gpu.uuid,
            "--until-input-ends",
        ];
        Ok(host::Queue {
            argv: argv.map(str::to_owned).to_vec(),
            what: format!("slice {slice}"),
            dir: place.folder.clone(),
            out: logs.join(format!("slice-{index}.out")),
            log: logs.join(format!("slice-{index}.log")),
            gpu,
            short,
        })
    });
    queues.collect()
}

/// By the rules in the archive, which are those of now.
fn merge_arguments(arguments: &CheckArgs, slices: &Slices) -> MergeArgs {
    MergeArgs {
        slices: slices.folders.clone(),
        select: Vec::new(),
        experimental: false,
        archive: Some(slices.place.archive()),
        archive_sha256: Some(slices.sha256.clone()),
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

/// The folder of one run; on a cluster all nodes must see it under the same path.
struct Place {
    folder: PathBuf,
    /// That of the folder and of the job; no other has it.
    name: String,
}

impl Place {
    fn new(config: &Config, machines: &str) -> Result<Place, Error> {
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

    fn archive(&self) -> PathBuf {
        self.folder.join("gate.tar.zst")
    }

    fn program(&self) -> PathBuf {
        self.folder.join("sparsek-gate")
    }

    /// The folder of a slice, which are counted from 1.
    fn slice(&self, index: u32) -> PathBuf {
        self.folder.join("slices").join(index.to_string())
    }

    /// Puts this program into the folder: the nodes have no other, and an update does not exchange
    /// it.
    fn put_program(&self) -> Result<String, Error> {
        let here = std::env::current_exe().map_err(Error::io("find", "this program"))?;
        let there = self.program();
        if fs::hard_link(&here, &there).is_err() {
            fs::copy(&here, &there).map_err(Error::io("copy", &here))?;
        }
        text(&there)
    }
}

/// A path that stands on a command line.
fn text(path: &Path) -> Result<String, Error> {
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
