//! The queues of a command that measures on several GPUs of this host.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::place::{Place, text};
use crate::config::{Config, Selected};
use crate::device::{Gpu, GpuAsked, GpusAsked, short_names};
use crate::engine::host;
use crate::finding::Error;
use crate::measure::{Batch, Bench};
use crate::report::Progress;

/// A GPU, with a short name that no other of this host has.
#[derive(Clone)]
pub(super) struct Named {
    pub gpu: Gpu,
    pub short: String,
}

/// The GPUs of this host that are asked for.
pub(super) fn named(asked: &GpusAsked) -> Result<Vec<Named>, Error> {
    let all = Gpu::all()?;
    let uuids = all.iter().map(|gpu| gpu.uuid.clone());
    let names: BTreeMap<String, String> = uuids.zip(short_names(&all)).collect();
    let asked = asked.of(&all)?.into_iter();
    let named = asked.map(|gpu| Named {
        short: names.get(&gpu.uuid).cloned().unwrap_or_default(),
        gpu,
    });
    Ok(named.collect())
}

/// The ordinal of the one GPU that is asked for.
pub(super) fn ordinal(asked: &GpuAsked) -> Result<u32, Error> {
    let all = Gpu::all()?;
    asked.of(&all).map(|gpu| gpu.ordinal)
}

/// Refuses GPUs on which the variants could not be measured: tools, pins and counters.
pub(super) fn refuse_unfit(plan: &Selected, gpus: &[Named]) -> Result<(), Error> {
    for Named { gpu, .. } in gpus {
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

/// What the queues of a run have in common.
pub(super) struct QueueOrder<'a> {
    place: &'a Place,
    logs: PathBuf,
    /// The arguments, up to those that differ.
    arguments: Vec<String>,
}

impl<'a> QueueOrder<'a> {
    /// Of a command that measures the archive of a run.
    pub fn new(place: &'a Place, command: &str, sha256: &str) -> Result<QueueOrder<'a>, Error> {
        let logs = place.folder.join("logs");
        fs::create_dir_all(&logs).map_err(Error::io("create", &logs))?;
        let archive = text(&place.archive())?;
        let arguments = [command, "--archive", &archive, "--archive-sha256", sha256];
        let arguments = arguments.into_iter().chain(["--until-input-ends"]);
        Ok(QueueOrder {
            place,
            logs,
            arguments: arguments.map(str::to_owned).collect(),
        })
    }

    /// The queue of a GPU: what it measures, in words; its own arguments; the name of its log.
    pub fn queue(
        &self,
        Named { gpu, short }: Named,
        what: &str,
        own: &[&str],
        log: &str,
    ) -> Result<host::Queue, Error> {
        let own = own.iter().copied().chain(["--gpu", &gpu.uuid]);
        let own = own.map(str::to_owned);
        Ok(host::Queue {
            arguments: self.arguments.iter().cloned().chain(own).collect(),
            what: what.to_owned(),
            dir: self.place.folder.clone(),
            log: self.logs.join(format!("{log}.log")),
            gpu,
            short,
        })
    }
}
