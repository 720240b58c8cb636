//! The slices of `check --gpus`: each GPU of this host that is asked for measures one.

use std::path::{Path, PathBuf};

use super::place::{Place, text};
use super::queues::{Named, QueueOrder};
use super::repeat::words_of;
use super::resume;
use super::slice::manifest_of;
use crate::engine::host::{self, Ended, Queue};
use crate::finding::Error;
use crate::judge::Measurement;
use crate::plan::SlicePlace;
use crate::slice::{Known, KnownManifest, SlicePart};

/// A check whose slices GPUs of this host measure.
pub(super) struct Host {
    /// The GPUs, of which each measures one slice, and may measure that of a sick one once more.
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
        let most = queues.len().max(1);
        run(queues, most, note)
    }

    /// Measures the slices of sick GPUs once more, each on one that is not sick: the folders of the
    /// repeats, with what is known of them.
    ///
    /// # Errors
    /// As [`host::run`].
    pub fn once_more(
        &self,
        place: &Place,
        archive: &str,
        measured: &[(SlicePart, Measurement)],
        note: &mut dyn FnMut(&str),
    ) -> Result<Vec<(PathBuf, Known)>, Error> {
        let is_sick = |named: &&Named| {
            let mut sick = measured.iter().flat_map(|(_, one)| &one.sick);
            sick.any(|one| one.uuid == named.gpu.uuid)
        };
        let healthy: Vec<&Named> = self.gpus.iter().filter(|named| !is_sick(named)).collect();
        if healthy.is_empty() {
            note("no other GPU is there to measure the slice of a sick GPU once more");
        }
        let order = QueueOrder::new(place, "check", archive)?;
        let mut queues = Vec::new();
        let to_repeat = measured.iter().filter(|(_, one)| !one.sick.is_empty());
        for ((part, one), gpu) in to_repeat.zip(healthy.iter().cycle()) {
            let slice = part.place;
            note(&format!(
                "slice {slice} is measured once more, on {}: its GPU is sick ({})",
                gpu.short,
                words_of(&one.sick)
            ));
            let folder = place.repeat(slice.index);
            let names = (
                format!("the repeat of slice {slice}"),
                format!("slice-{}-repeat", slice.index),
            );
            let queue = self.queue(&order, gpu, slice, &folder, names)?;
            queues.push((folder, queue));
        }
        // Where there are fewer GPUs than slices, one measures several of them, one after the other.
        run(queues, healthy.len().max(1), note)
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

/// Runs queues, at most so many at the same time: their folders, with what is known of them.
fn run(
    queues: Vec<(PathBuf, Queue)>,
    most: usize,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<(PathBuf, Known)>, Error> {
    let (folders, queues): (Vec<PathBuf>, Vec<Queue>) = queues.into_iter().unzip();
    let mut known = Vec::new();
    for at_once in queues.chunks(most) {
        let ended = host::run(at_once, note)?;
        let of_these = at_once.iter().zip(&ended);
        known.extend(of_these.map(|(queue, ended)| known_of(queue, ended)));
    }
    Ok(folders.into_iter().zip(known).collect())
}

/// What is known of the slice of a queue that has ended.
fn known_of(queue: &Queue, ended: &Ended) -> Known {
    Known {
        words: queue.words(),
        manifest: KnownManifest::Said(manifest_of(&ended.printed)),
    }
}
