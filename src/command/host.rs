//! The slices of `check --gpus`: each GPU of this host that is asked for measures one.

use std::path::{Path, PathBuf};

use super::place::{Place, text};
use super::queues::{Named, QueueOrder};
use super::resume;
use super::slice::manifest_of;
use crate::engine::host::{self, Ended, Queue};
use crate::finding::Error;
use crate::plan::SlicePlace;
use crate::slice::Known;

/// A check whose slices GPUs of this host measure.
pub(super) struct Host {
    /// The GPUs, of which each measures one slice.
    pub gpus: Vec<Named>,
    /// Whether it goes on with an interrupted run.
    pub resume: bool,
}

impl Host {
    /// Measures the slices of the archive with this sha256, of so many variants: one for each GPU that
    /// has any variant to measure. Returns their folders, with what is known of them.
    ///
    /// # Errors
    /// As [`host::run`].
    pub fn measure(
        &self,
        place: &Place,
        archive: &str,
        variants: usize,
        note: &mut dyn FnMut(&str),
    ) -> Result<Vec<(PathBuf, Known)>, Error> {
        let count = self.gpus.len().min(variants.max(1));
        let measured = match variants {
            1 => "1 variant is".to_owned(),
            count => format!("{count} variants are"),
        };
        let (gpus, without) = self.gpus.split_at(count);
        for Named { short, .. } in without {
            note(&format!("{short} has no part: {measured} to be measured"));
        }
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let order = QueueOrder::new(place, "check", archive)?;
        let queues = (1..).zip(gpus).map(|(index, gpu)| {
            let slice = SlicePlace { index, count };
            let folder = place.slice(index);
            let names = (format!("slice {slice}"), format!("slice-{index}"));
            let queue = self.queue(&order, gpu, slice, &folder, names)?;
            Ok((folder, queue))
        });
        let queues: Vec<(PathBuf, Queue)> = queues.collect::<Result<_, Error>>()?;
        run(queues, note)
    }

    /// The queue that measures a slice into a folder: in words, and in the name of its log.
    fn queue(
        &self,
        order: &QueueOrder<'_>,
        gpu: &Named,
        slice: SlicePlace,
        folder: &Path,
        (what, log): (String, String),
    ) -> Result<Queue, Error> {
        let (slice, output) = (slice.to_string(), text(folder)?);
        let own = ["--slice", &slice, "--slice-output", &output];
        let own: Vec<&str> = own.into_iter().chain(resume::again(self.resume)).collect();
        order.queue(gpu.clone(), &what, &own, &log)
    }
}

/// Runs queues at the same time: their folders, with what is known of them.
fn run(
    queues: Vec<(PathBuf, Queue)>,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<(PathBuf, Known)>, Error> {
    let (folders, queues): (Vec<PathBuf>, Vec<Queue>) = queues.into_iter().unzip();
    let ended = host::run(&queues, note)?;
    let known = queues.iter().zip(&ended);
    let known = known.map(|(queue, ended)| known_of(queue, ended));
    Ok(folders.into_iter().zip(known).collect())
}

/// What is known of the slice of a queue that has ended.
fn known_of(queue: &Queue, ended: &Ended) -> Known {
    Known {
        words: queue.words(),
        manifest: manifest_of(&ended.printed),
    }
}
