//! `sparsek-gate check --on slurm` and `check --gpus`: an archive, its slices on other machines or on
//! the GPUs of this one, and their merge.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::cluster::Cluster;
use super::host::Host;
use super::judging::Judging;
use super::place::Place;
use super::plan::Sliced;
use super::queues::{Named, named, refuse_unfit};
use super::{answer, archive, merge, resume};
use crate::cli::{ArchiveArgs, CheckArgs, Format, KeepJobArgs, MergeArgs, TrustArgs};
use crate::config::{Config, Selected};
use crate::engine::slurm;
use crate::finding::{Error, ExitCode};
use crate::hash::sha256_hex;
use crate::judge::{Origin, Outcome};
use crate::measure::{Journal, Watch as _, tool};
use crate::process;
use crate::report::{self, Progress};
use crate::slice::{plan_sha256, profiles_in};

/// The folders of the runs in the work folder: of those on Slurm, and of those on GPUs of this host.
const ON_SLURM: &str = "slurm";
pub(super) const ON_GPUS: &str = "gpus";

/// Submits a job, and cancels it when the check that it is for ends.
pub(super) fn keep(arguments: &KeepJobArgs) -> Result<ExitCode, Error> {
    slurm::keep(Path::new("."), &arguments.name, &arguments.sbatch)
}

pub(super) fn run(path: &Path, arguments: &CheckArgs) -> Result<ExitCode, Error> {
    let started = Instant::now();
    let targets = report::targets(&arguments.report)?;
    let error = match measured(path, arguments) {
        Ok(mut slices) => {
            let to_merge = merge_arguments(arguments, &slices);
            slices.measured.started = Some(started);
            let (code, is_whole) = merge::of_run(path, &to_merge, &slices.measured)?;
            // Otherwise another run could still have to go on with it.
            if is_whole {
                slices.end();
            }
            return Ok(code);
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
    /// The GPUs of this host that are asked for.
    Gpus(Vec<Named>),
}

impl Machines {
    /// Those that are asked for. What this machine lacks is reported before anything is built.
    fn of(arguments: &CheckArgs, current: &Config) -> Result<Machines, Error> {
        match &arguments.gpus {
            Some(asked) => Ok(Machines::Gpus(named(asked)?)),
            None => slurm::refuse_without(&current.root).map(|()| Machines::Slurm),
        }
    }

    /// What makes two runs the same, as sha256: the plan, the base, and the GPUs in their order, or how
    /// many slices there are and the build of this program.
    fn plan(&self, plan: &Selected, against: Option<&str>, slices: Option<u32>) -> String {
        let on = match self {
            // Of a copy of the folder the jobs are another run's.
            Machines::Slurm => vec![
                plan.config.work.display().to_string(),
                format!("{slices:?}"),
                tool().unwrap_or_default().to_owned(),
            ],
            Machines::Gpus(gpus) => gpus.iter().map(|one| one.gpu.uuid.clone()).collect(),
        };
        sha256_hex(format!("{} {against:?} {on:?}", plan_sha256(plan)).as_bytes())
    }

    /// The folder of their runs in the work folder.
    fn folder(&self) -> &'static str {
        match self {
            Machines::Slurm => ON_SLURM,
            Machines::Gpus(_) => ON_GPUS,
        }
    }
}

/// Slices that were measured.
struct Slices {
    place: Place,
    folders: Vec<PathBuf>,
    /// sha256 of the archive.
    sha256: String,
    measured: merge::Measured,
    /// Where it is noted that the run is not over.
    journal: Journal,
}

impl Slices {
    /// The run has said everything.
    fn end(self) {
        for folder in &self.folders {
            Journal::end_in(&profiles_in(folder));
        }
        self.journal.end();
    }
}

/// Packs an archive and lets its slices be measured.
fn measured(path: &Path, arguments: &CheckArgs) -> Result<Slices, Error> {
    let current = Config::load(path)?;
    let machines = Machines::of(arguments, &current)?;
    // Partition, prolog and time limit are the base's too.
    let against = arguments.against.as_deref();
    let judging = Judging::in_checkout(current, &arguments.trusted, against, &arguments.selection)?;
    let mut findings = Vec::new();
    if let Machines::Gpus(gpus) = &machines {
        refuse_unfit(&judging.plan, gpus)?;
    }
    resume::refuse(arguments.resume, &judging, arguments.trusted.pull_request)?;
    let config = &judging.plan.config;
    let asked = arguments.slices;
    let plan = machines.plan(&judging.plan, judging.against.as_deref(), asked);
    match machines {
        Machines::Gpus(_) => Place::end_left(config, machines.folder()),
        // What a killed run left there is the process that cancels its jobs, unless that was killed, too.
        Machines::Slurm => {
            let progress = Progress::with(arguments.verbosity.detail());
            for (folder, name) in Place::unused(config, machines.folder()) {
                if let Err(error) = slurm::end_earlier(&folder, &name) {
                    progress.notes(&error.to_string());
                }
            }
        }
    }
    let place = Place::of_plan(config, machines.folder(), &plan, arguments.resume)?;
    match machines {
        Machines::Gpus(_) => place.sweep(),
        Machines::Slurm => {
            slurm::end_earlier(&place.folder, &place.name)?;
            place.remove_old(slurm::are_over);
        }
    }
    let journal = Journal::of(&place.folder, &config.work, arguments.resume).of_plan(plan);
    journal.begin()?;
    let settings = judging.plan.config.launch.clone();
    drop(judging);

    let packed = archive::done(path, &archive_arguments(arguments, &place.archive()))?;
    if process::interrupted() {
        return Err(Error::Interrupted);
    }
    let progress = Progress::with(arguments.verbosity.detail());
    let note = &mut |text: &str| progress.notes(text);
    let sha256 = packed.content.sha256;
    let on_one_host = matches!(machines, Machines::Gpus(_));
    let known = match machines {
        Machines::Slurm => {
            let sliced = Sliced::new(&packed.measured, arguments.slices, against.is_some());
            let mut cluster = Cluster {
                settings,
                slices: sliced.slices,
                limit: sliced.limit(),
                keeper: vec![place.put_program()?, "keep-job".to_owned()],
                resume: arguments.resume,
                ended: slurm::ended_before(&place.folder),
                without: BTreeSet::new(),
                kept: BTreeSet::new(),
            };
            let known = cluster.measure(&place, &sha256, note)?;
            findings.extend(cluster.kept_finding());
            known
        }
        Machines::Gpus(gpus) => {
            let host = Host {
                gpus,
                resume: arguments.resume,
            };
            host.measure(&place, &sha256, packed.measured.variants.len(), note)?
        }
    };
    let folders = known.iter().map(|(folder, _)| folder.clone()).collect();
    let measured = merge::Measured {
        spent: packed.spent,
        on_one_host,
        known: known.into_iter().collect(),
        started: None,
        findings,
    };
    note(&format!("logs and captures: {}", place.folder.display()));
    Ok(Slices {
        place,
        folders,
        sha256,
        measured,
        journal,
    })
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
