//! `sparsek-gate check --on slurm` and `check --gpus`: an archive, its slices on other machines or on
//! the GPUs of this one, and their merge.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::cluster::Cluster;
use super::judging::Judging;
use super::place::{Place, text};
use super::plan::Sliced;
use super::queues::{Named, QueueOrder, leave_out, named, refuse_unfit};
use super::repeat::{Again, words_of};
use super::slice::manifest_of;
use super::{answer, archive, merge, resume};
use crate::cli::{ArchiveArgs, CheckArgs, Format, KeepJobArgs, MergeArgs, TrustArgs};
use crate::config::{Config, Selected};
use crate::engine::{host, slurm};
use crate::finding::{Error, ExitCode};
use crate::hash::sha256_hex;
use crate::judge::{Measurement, Origin, Outcome};
use crate::measure::{Journal, Watch as _, tool};
use crate::plan::SlicePlace;
use crate::process;
use crate::report::{self, Progress};
use crate::slice::{Known, SlicePart, plan_sha256, profiles_in};

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
            let mut again = |measured: &[(SlicePart, Measurement)]| {
                let progress = Progress::with(arguments.verbosity.detail());
                let note = &mut |text: &str| progress.notes(text);
                once_more(&slices, arguments.resume, measured, note)
            };
            let again: Option<&mut Again<'_>> = Some(&mut again);
            let (code, is_whole) = merge::of_run(path, &to_merge, &slices.measured, again)?;
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
            Machines::Slurm => vec![format!("{slices:?}"), tool().unwrap_or_default().to_owned()],
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
    /// What may measure a slice once more.
    on: On,
    /// sha256 of the archive.
    sha256: String,
    measured: merge::Measured,
    /// Where it is noted that the run is not over.
    journal: Journal,
}

/// What measured the slices.
enum On {
    Slurm(Box<Cluster>),
    /// GPUs of this host.
    Gpus(Vec<Named>),
}

impl Slices {
    /// The run has said everything.
    fn end(self) {
        let repeats = (1..).map(|index| self.place.repeat(index));
        for (folder, repeat) in self.folders.iter().zip(repeats) {
            Journal::end_in(&profiles_in(folder));
            Journal::end_in(&profiles_in(&repeat));
        }
        self.journal.end();
    }
}

/// Packs an archive and lets its slices be measured.
fn measured(path: &Path, arguments: &CheckArgs) -> Result<Slices, Error> {
    let current = Config::load(path)?;
    let mut machines = Machines::of(arguments, &current)?;
    // Partition, prolog and time limit are the base's too.
    let against = arguments.against.as_deref();
    let judging = Judging::in_checkout(current, &arguments.trusted, against, &arguments.selection)?;
    let mut findings = Vec::new();
    if let (Machines::Gpus(gpus), Some(asked)) = (&mut machines, &arguments.gpus) {
        findings = leave_out(&judging.plan.config, asked, gpus)?;
        refuse_unfit(&judging.plan, gpus)?;
    }
    resume::refuse(arguments.resume, &judging, arguments.trusted.pull_request)?;
    let config = &judging.plan.config;
    let asked = arguments.slices;
    let plan = machines.plan(&judging.plan, judging.against.as_deref(), asked);
    let place = Place::of_plan(config, machines.folder(), &plan, arguments.resume)?;
    match machines {
        Machines::Gpus(_) => place.sweep(),
        Machines::Slurm => slurm::end_earlier(&place.folder, &place.name)?,
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
    let slices = match machines {
        Machines::Slurm => {
            let sliced = Sliced::new(&packed.measured, arguments.slices, against.is_some());
            let mut cluster = Cluster {
                settings,
                slices: sliced.slices,
                limit: sliced.limit(),
                keeper: vec![place.put_program()?, "keep-job".to_owned()],
                resume: arguments.resume,
                ended: slurm::ended_before(&place.folder),
            };
            cluster.measure(&place, &packed.content.sha256, note)?;
            Slices {
                folders: (1..=sliced.slices).map(|at| place.slice(at)).collect(),
                on: On::Slurm(Box::new(cluster)),
                sha256: packed.content.sha256,
                measured: merge::Measured::default(),
                place,
                journal,
            }
        }
        Machines::Gpus(gpus) => {
            let variants = packed.measured.variants.len();
            let resume = arguments.resume;
            let sha256 = &packed.content.sha256;
            let queues = queues(&place, sha256, gpus.clone(), variants, resume, note)?;
            let ended = host::run(&queues, note)?;
            let folders: Vec<PathBuf> = (1..).zip(&queues).map(|(at, _)| place.slice(at)).collect();
            let known = queues.iter().zip(&ended);
            let known = known.map(|(queue, ended)| known_of(queue, ended));
            let known = folders.iter().cloned().zip(known);
            Slices {
                measured: merge::Measured {
                    spent: packed.spent,
                    known: known.collect(),
                    on_one_host: true,
                    started: None,
                    findings,
                },
                folders,
                on: On::Gpus(gpus),
                sha256: packed.content.sha256,
                place,
                journal,
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
    mut gpus: Vec<Named>,
    variants: usize,
    resume: bool,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<host::Queue>, Error> {
    let count = gpus.len().min(variants.max(1));
    let measured = match variants {
        1 => "1 variant is".to_owned(),
        count => format!("{count} variants are"),
    };
    for Named { short, .. } in gpus.drain(count..) {
        note(&format!("{short} has no part: {measured} to be measured"));
    }
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let order = QueueOrder::new(place, "check", sha256)?;
    let queues = (1..).zip(gpus).map(|(index, gpu)| {
        let slice = SlicePlace { index, count };
        let output = text(&place.slice(index))?;
        let own = ["--slice", &slice.to_string(), "--slice-output", &output];
        let own: Vec<&str> = own.into_iter().chain(resume::again(resume)).collect();
        order.queue(
            gpu,
            &format!("slice {slice}"),
            &own,
            &format!("slice-{index}"),
        )
    });
    queues.collect()
}

/// What is known of the slice of a queue that has ended.
fn known_of(queue: &host::Queue, ended: &host::Ended) -> Known {
    Known {
        words: queue.words(),
        manifest: manifest_of(&ended.printed),
    }
}

/// Measures the slices of sick GPUs once more: the folders of the repeats, and what is known of them.
fn once_more(
    slices: &Slices,
    resume: bool,
    measured: &[(SlicePart, Measurement)],
    note: &mut dyn FnMut(&str),
) -> Result<Vec<(PathBuf, Option<Known>)>, Error> {
    match &slices.on {
        On::Slurm(cluster) => {
            let repeats = cluster.once_more(&slices.place, &slices.sha256, measured, note)?;
            Ok(repeats.into_iter().map(|folder| (folder, None)).collect())
        }
        On::Gpus(gpus) => {
            let repeats = once_more_here(slices, gpus, resume, measured, note)?;
            let known = repeats.into_iter();
            Ok(known.map(|(folder, known)| (folder, Some(known))).collect())
        }
    }
}

/// The same on GPUs of this host, each on one that is not sick.
fn once_more_here(
    slices: &Slices,
    gpus: &[Named],
    resume: bool,
    measured: &[(SlicePart, Measurement)],
    note: &mut dyn FnMut(&str),
) -> Result<Vec<(PathBuf, Known)>, Error> {
    let is_sick = |named: &&Named| {
        let mut sick = measured.iter().flat_map(|(_, one)| &one.sick);
        sick.any(|one| one.uuid == named.gpu.uuid)
    };
    let healthy: Vec<&Named> = gpus.iter().filter(|named| !is_sick(named)).collect();
    if healthy.is_empty() {
        note("no other GPU is there to measure the slice of a sick GPU once more");
    }
    let order = QueueOrder::new(&slices.place, "check", &slices.sha256)?;
    let mut queues = Vec::new();
    let mut folders = Vec::new();
    let to_repeat = measured.iter().filter(|(_, one)| !one.sick.is_empty());
    for ((part, one), on) in to_repeat.zip(healthy.iter().cycle()) {
        let (slice, index) = (part.place, part.place.index);
        note(&format!(
            "slice {slice} is measured once more, on {}: its GPU is sick ({})",
            on.short,
            words_of(&one.sick)
        ));
        let folder = slices.place.repeat(index);
        let output = text(&folder)?;
        let own = ["--slice", &slice.to_string(), "--slice-output", &output];
        let own: Vec<&str> = own.into_iter().chain(resume::again(resume)).collect();
        let what = format!("the repeat of slice {slice}");
        let log = format!("slice-{index}-repeat");
        queues.push(order.queue((*on).clone(), &what, &own, &log)?);
        folders.push(folder);
    }
    // Where there are fewer GPUs than slices, one measures several of them, one after the other.
    let mut known = Vec::new();
    for at_once in queues.chunks(healthy.len().max(1)) {
        let ended = host::run(at_once, note)?;
        let of_these = at_once.iter().zip(&ended);
        known.extend(of_these.map(|(queue, ended)| known_of(queue, ended)));
    }
    Ok(folders.into_iter().zip(known).collect())
}

/// By the rules in the archive, which are those of now.
fn merge_arguments(arguments: &CheckArgs, slices: &Slices) -> MergeArgs {
    MergeArgs {
        slices: slices.folders.clone(),
        repeat: Vec::new(),
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
