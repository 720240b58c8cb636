//! The slices of `check --gpus`: each GPU of this host that is asked for measures one.

use std::path::PathBuf;

use super::place::{Place, text};
use super::queues::{Named, QueueOrder};
use super::slice::manifest_of;
use crate::engine::host::{self, Queue};
use crate::finding::Error;
use crate::plan::SlicePlace;
use crate::slice::Known;

/// A check whose slices GPUs of this host measure.
pub(super) struct Host {
    /// The GPUs, of which each measures one slice.
    pub gpus: Vec<Named>,
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
            let (slice, output) = (slice.to_string(), text(&folder)?);
            let own = ["--slice", &slice, "--slice-output", &output];
            let (what, log) = (format!("slice {slice}"), format!("slice-{index}"));
            Ok((folder, order.queue(gpu.clone(), &what, &own, &log)?))
        });
        let queues: Vec<(PathBuf, Queue)> = queues.collect::<Result<_, Error>>()?;
        let (folders, queues): (Vec<PathBuf>, Vec<Queue>) = queues.into_iter().unzip();
        let ended = host::run(&queues, note)?;
        let known = queues.iter().zip(&ended).map(|(queue, ended)| Known {
            words: queue.words(),
            manifest: manifest_of(&ended.printed),
        });
        Ok(folders.into_iter().zip(known).collect())
    }
}
