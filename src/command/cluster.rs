//! The slices of `check --on slurm`: which of them jobs measure, on which nodes, and how often.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::place::Place;
use super::repeat::words_of;
use crate::config::Launch;
use crate::engine::{Task, slurm};
use crate::finding::{Error, ExitCode};
use crate::judge::Measurement;
use crate::plan::SlicePlace;
use crate::slice::{SlicePart, has_captures, has_manifest, is_whole};

/// How often slices are submitted again that a node could not measure.
const MOST_AGAIN: u32 = 3;

/// A check whose slices jobs of Slurm measure.
pub(super) struct Cluster {
    /// `[launch]` of the configuration.
    pub settings: Launch,
    /// How many slices there are.
    pub slices: u32,
    /// The most that one of them may take.
    pub limit: Duration,
    /// The argv of what submits and cancels the jobs.
    pub keeper: Vec<String>,
    /// Whether it goes on with an interrupted run.
    pub resume: bool,
    /// How the slices ended last.
    pub ended: BTreeMap<u32, slurm::Ended>,
}

impl Cluster {
    /// Measures the slices of the archive with this sha256, without those that an interrupted run
    /// completed. A slice that a node could not measure at all is submitted again, without that node.
    /// Returns the folders of all slices.
    ///
    /// # Errors
    /// As [`slurm::run`].
    pub fn measure(
        &mut self,
        place: &Place,
        archive: &str,
        note: &mut dyn FnMut(&str),
    ) -> Result<Vec<PathBuf>, Error> {
        let folders = (1..=self.slices).map(|index| place.slice(index)).collect();
        let is_left = |index: &u32| !self.is_kept(&place.slice(*index), *index, archive);
        let left: BTreeSet<u32> = (1..=self.slices).filter(is_left).collect();
        if self.resume {
            let kept = self.slices as usize - left.len();
            let are = if kept == 1 { "is" } else { "are" };
            note(&format!(
                "{kept} of {} slices {are} complete of an interrupted run",
                self.slices
            ));
        }
        if left.is_empty() {
            return Ok(folders);
        }
        let mut without = BTreeSet::new();
        let mut ended = self.submit(place, &left, false, &without, note)?;
        for _ in 0..MOST_AGAIN {
            self.ended.extend(ended.clone());
            let refused = |(slice, ended): (&u32, &slurm::Ended)| {
                let node = ended.node.clone()?;
                self.is_refused(place, *slice, ended)
                    .then_some((*slice, node))
            };
            let (refused, nodes): (BTreeSet<u32>, BTreeSet<String>) =
                ended.iter().filter_map(refused).unzip();
            if refused.is_empty() {
                return Ok(folders);
            }
            without.extend(nodes);
            note(&format!(
                "{} submitted again, not to {}: nothing was measured there",
                counted(refused.len()),
                joined(&without)
            ));
            ended = match self.submit(place, &refused, false, &without, note) {
                Err(error) => unavailable(error, note)?,
                Ok(ended) => ended,
            };
        }
        self.ended.extend(ended);
        Ok(folders)
    }

    /// Measures the slices of sick GPUs once more, on other nodes: the folders of the repeats.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; [`Error::Io`].
    pub fn once_more(
        &self,
        place: &Place,
        archive: &str,
        measured: &[(SlicePart, Measurement)],
        note: &mut dyn FnMut(&str),
    ) -> Result<Vec<PathBuf>, Error> {
        let mut left = BTreeSet::new();
        let mut folders = Vec::new();
        let mut without = BTreeSet::new();
        for (part, one) in measured.iter().filter(|(_, one)| !one.sick.is_empty()) {
            let index = part.place.index;
            let ended = self.ended.get(&index);
            let Some(node) = ended.and_then(|ended| ended.node.clone()) else {
                note(&format!(
                    "slice {} is not measured once more: its node is not known",
                    part.place
                ));
                continue;
            };
            note(&format!(
                "slice {} is measured once more, not on {node}: its GPU is sick ({})",
                part.place,
                words_of(&one.sick)
            ));
            without.insert(node);
            let folder = place.repeat(index);
            if !self.is_kept(&folder, index, archive) {
                left.insert(index);
            }
            folders.push(folder);
        }
        if !left.is_empty()
            && let Err(error) = self.submit(place, &left, true, &without, note)
        {
            unavailable(error, note)?;
            return Ok(Vec::new());
        }
        Ok(folders)
    }

    fn submit(
        &self,
        place: &Place,
        slices: &BTreeSet<u32>,
        is_repeat: bool,
        without: &BTreeSet<String>,
        note: &mut dyn FnMut(&str),
    ) -> Result<BTreeMap<u32, slurm::Ended>, Error> {
        let task = Task {
            settings: &self.settings,
            slices: self.slices,
            limit: self.limit,
            config: None,
            names: &[],
            experimental: false,
            against: None,
        };
        let order = slurm::Order {
            task: &task,
            folder: &place.folder,
            name: &place.name,
            keeper: self.keeper.clone(),
        };
        let array = slurm::Array {
            slices,
            is_repeat,
            without,
            resume: self.resume,
        };
        slurm::run(&order, &array, note)
    }

    /// Whether a folder has the slice as an interrupted run completed it.
    fn is_kept(&self, folder: &Path, index: u32, archive: &str) -> bool {
        let place = SlicePlace {
            index,
            count: self.slices,
        };
        self.resume && is_whole(folder, place, archive)
    }

    /// Whether its node could not measure a slice. What was measured before gets no second try, unless
    /// the slice goes on with it.
    fn is_refused(&self, place: &Place, slice: u32, ended: &slurm::Ended) -> bool {
        let folder = place.slice(slice);
        let goes_on = self.resume && !has_manifest(&folder);
        ended.code == ExitCode::Environment as i32 && (goes_on || !has_captures(&folder))
    }
}

/// Goes on without the slices that no other node can measure.
fn unavailable(
    error: Error,
    note: &mut dyn FnMut(&str),
) -> Result<BTreeMap<u32, slurm::Ended>, Error> {
    match error {
        Error::Environment { what, .. } => {
            note(&format!("no other node measures them: {what}"));
            Ok(BTreeMap::new())
        }
        error => Err(error),
    }
}

fn counted(slices: usize) -> String {
    match slices {
        1 => "1 slice is".to_owned(),
        count => format!("{count} slices are"),
    }
}

fn joined(nodes: &BTreeSet<String>) -> String {
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    nodes.join(", ")
}
