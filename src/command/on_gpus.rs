//! `sparsek-gate check --gpus`: an archive, its slices on the GPUs of this host, and their verdict.

use std::path::{Path, PathBuf};

use super::archive::{self, Opened};
use super::judging::Judging;
use super::place::{Place, text};
use super::queues::{Named, QueueOrder, named, refuse_unfit};
use super::slice::manifest_of;
use super::slices::{self, Measured};
use crate::cli::{ArchiveArgs, CheckArgs, Format};
use crate::config::Config;
use crate::device::GpusAsked;
use crate::engine::host::{self, Queue};
use crate::finding::Error;
use crate::judge::Outcome;
use crate::measure::{RunFile, Watch as _};
use crate::plan::SlicePlace;
use crate::process;
use crate::report::Progress;
use crate::slice::Known;

/// The folder of the runs in the work folder.
pub(super) const ON_GPUS: &str = "gpus";

/// Slices that were measured.
pub(super) struct OnGpus {
    place: Place,
    folders: Vec<PathBuf>,
    /// sha256 of the archive.
    sha256: String,
    measured: Measured,
    /// By which the next run finds what this one leaves running if it is killed.
    run_file: RunFile,
}

impl OnGpus {
    /// Opens the archive of which they are slices.
    pub fn archive(&self) -> Result<Opened, Error> {
        archive::open(&self.place.archive(), Some(&self.sha256))
    }

    /// Judges them.
    pub fn judged(&self, opened: &Opened) -> Result<Outcome, Error> {
        slices::by_archive(opened, &self.folders, &self.measured)
    }

    /// The run has said everything.
    pub fn end(self) {
        self.run_file.end();
    }
}

/// Packs an archive and lets its slices be measured.
pub(super) fn measured(
    path: &Path,
    current: Config,
    arguments: &CheckArgs,
) -> Result<OnGpus, Error> {
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
    let gpus = with_part(gpus, packed.measured.variants.len(), note);
    let queues = queues(&place, &sha256, &gpus)?;
    let ended = host::run(&queues, note)?;
    let folders: Vec<PathBuf> = (1..)
        .zip(&gpus)
        .map(|(index, _)| place.slice(index))
        .collect();
    let known = queues.iter().zip(&ended).map(|(queue, ended)| Known {
        words: queue.words(),
        manifest: manifest_of(&ended.printed),
    });
    let known = folders.iter().cloned().zip(known).collect();
    let measured = Measured {
        spent: packed.spent,
        known,
    };
    note(&format!("logs and captures: {}", place.folder.display()));
    Ok(OnGpus {
        place,
        folders,
        sha256,
        measured,
        run_file,
    })
}

/// The GPUs that have any variant to measure.
fn with_part(mut gpus: Vec<Named>, variants: usize, note: &mut dyn FnMut(&str)) -> Vec<Named> {
    let measured = match variants {
        1 => "1 variant is".to_owned(),
        count => format!("{count} variants are"),
    };
    let count = gpus.len().min(variants.max(1));
    for Named { short, .. } in gpus.drain(count..) {
        note(&format!("{short} has no part: {measured} to be measured"));
    }
    gpus
}

/// The queues that measure a slice of an archive with this sha256 on each GPU.
fn queues(place: &Place, archive: &str, gpus: &[Named]) -> Result<Vec<Queue>, Error> {
    let order = QueueOrder::new(place, "check", archive)?;
    let count = u32::try_from(gpus.len()).unwrap_or(u32::MAX);
    let queue = |(index, gpu): (u32, &Named)| {
        let slice = SlicePlace { index, count }.to_string();
        let output = text(&place.slice(index))?;
        let own = ["--slice", &slice, "--slice-output", &output];
        let what = format!("slice {slice}");
        order.queue(gpu.clone(), &what, &own, &format!("slice-{index}"))
    };
    (1..).zip(gpus).map(queue).collect()
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
