//! `sparsek-gate check --gpus`: an archive, its slices on the GPUs of this host, and their merge.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::host::Host;
use super::judging::Judging;
use super::place::Place;
use super::queues::{named, refuse_unfit};
use super::{answer, archive, merge};
use crate::cli::{ArchiveArgs, CheckArgs, Format, MergeArgs, TrustArgs};
use crate::config::Config;
use crate::device::GpusAsked;
use crate::finding::{Error, ExitCode};
use crate::judge::{Origin, Outcome};
use crate::measure::{RunFile, Watch as _};
use crate::process;
use crate::report::{self, Progress};

/// The folder of the runs in the work folder.
pub(super) const ON_GPUS: &str = "gpus";

pub(super) fn run(path: &Path, arguments: &CheckArgs) -> Result<ExitCode, Error> {
    let started = Instant::now();
    let targets = report::targets(&arguments.report)?;
    let error = match measured(path, arguments) {
        Ok(mut slices) => {
            let to_merge = merge_arguments(arguments, &slices);
            slices.measured.started = Some(started);
            let code = merge::of_run(path, &to_merge, &slices.measured)?;
            slices.run_file.end();
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

/// Slices that were measured.
struct Slices {
    place: Place,
    folders: Vec<PathBuf>,
    /// sha256 of the archive.
    sha256: String,
    measured: merge::Measured,
    /// By which the next run finds what this one leaves running if it is killed.
    run_file: RunFile,
}

/// Packs an archive and lets its slices be measured.
fn measured(path: &Path, arguments: &CheckArgs) -> Result<Slices, Error> {
    let current = Config::load(path)?;
    // What this machine lacks is reported before anything is built.
    let gpus = named(arguments.gpus.as_ref().unwrap_or(&GpusAsked::All))?;
    let against = arguments.against.as_deref();
    let judging = Judging::in_checkout(current, &arguments.trusted, against, &arguments.selection)?;
    refuse_unfit(&judging.plan, &gpus)?;
    let config = &judging.plan.config;
    let place = Place::new(config, ON_GPUS)?;
    place.sweep();
    let run_file = RunFile::of(&place.folder, &config.work, false);
    run_file.begin(&Progress::with(arguments.verbosity.detail()))?;
    drop(judging);

    let packed = archive::done(path, &archive_arguments(arguments, &place.archive()))?;
    if process::interrupted() {
        return Err(Error::Interrupted);
    }
    let progress = Progress::with(arguments.verbosity.detail());
    let note = &mut |text: &str| progress.notes(text);
    let sha256 = packed.content.sha256;
    let host = Host { gpus };
    let known = host.measure(&place, &sha256, packed.measured.variants.len(), note)?;
    let folders = known.iter().map(|(folder, _)| folder.clone()).collect();
    let measured = merge::Measured {
        spent: packed.spent,
        known: known.into_iter().collect(),
        started: None,
        findings: Vec::new(),
    };
    note(&format!("logs and captures: {}", place.folder.display()));
    Ok(Slices {
        place,
        folders,
        sha256,
        measured,
        run_file,
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
