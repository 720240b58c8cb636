//! The slices of `check --on slurm`: which of them jobs measure, on which nodes, and how often.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::place::Place;
use crate::config::Launch;
use crate::engine::{Task, slurm};
use crate::finding::{Code, Error, ExitCode, Finding};
use crate::plan::SlicePlace;
use crate::slice::{Known, KnownManifest, is_whole};

/// How often slices are submitted again that a node could not begin.
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
    /// The nodes that get no further slice: they could not begin one.
    pub without: BTreeSet<String>,
    /// The slices that an interrupted run completed.
    pub kept: BTreeSet<u32>,
}

impl Cluster {
    /// Measures the slices of the archive with this sha256, without those that an interrupted run
    /// completed: the folders of all slices, with what is known of them.
    ///
    /// # Errors
    /// As [`slurm::run`], and where Slurm takes no job.
    pub fn measure(
        &mut self,
        place: &Place,
        archive: &str,
        note: &mut dyn FnMut(&str),
    ) -> Result<Vec<(PathBuf, Known)>, Error> {
        let is_kept = |index: &u32| self.is_kept(&place.slice(*index), *index, archive);
        let (kept, left): (BTreeSet<u32>, BTreeSet<u32>) = (1..=self.slices).partition(is_kept);
        self.kept = kept;
        if !self.kept.is_empty() {
            let are = if self.kept.len() == 1 { "is" } else { "are" };
            note(&format!(
                "{} of {} slices {are} complete of an interrupted run",
                self.kept.len(),
                self.slices
            ));
        }
        if let Some(unavailable) = self.submit(place, left, false, note)? {
            return Err(unavailable);
        }
        let slices = (1..=self.slices).map(|index| {
            let node = self.ended.get(&index).and_then(|ended| ended.node.clone());
            let node = node.map(|node| format!(" on {node}")).unwrap_or_default();
            let slice = self.place(index);
            let log = place.folder.join(format!("logs/slice-{index}.log"));
            let words = format!("slice {slice}{node} (log {})", log.display());
            (place.slice(index), known(words))
        });
        Ok(slices.collect())
    }

    /// Submits slices; those that a node could not begin again, without that node. Returns why the first
    /// job was not taken or not started.
    fn submit(
        &mut self,
        place: &Place,
        mut slices: BTreeSet<u32>,
        is_repeat: bool,
        note: &mut dyn FnMut(&str),
    ) -> Result<Option<Error>, Error> {
        for time in 0..=MOST_AGAIN {
            if slices.is_empty() {
                break;
            }
            let ended = match self.submit_once(place, &slices, is_repeat, note)? {
                slurm::Submitted::Ended(ended) => ended,
                slurm::Submitted::Unavailable(error) if time == 0 => return Ok(Some(error)),
                slurm::Submitted::Unavailable(error) => {
                    note(&format!("no other node measures them: {error}"));
                    break;
                }
            };
            if !is_repeat {
                self.ended.extend(ended.clone());
            }
            let refused = |(slice, ended): (&u32, &slurm::Ended)| {
                let node = ended.node.clone()?;
                let is_refused = ended.code == i32::from(ExitCode::NotBegun as u8);
                is_refused.then_some((*slice, node))
            };
            let (refused, nodes): (BTreeSet<u32>, BTreeSet<String>) =
                ended.iter().filter_map(refused).unzip();
            self.without.extend(nodes);
            slices = refused;
            if !slices.is_empty() && time < MOST_AGAIN {
                note(&format!(
                    "{} submitted again, not to {}: nothing was measured there",
                    counted(slices.len()),
                    joined(&self.without)
                ));
            }
        }
        Ok(None)
    }

    /// That slices of an interrupted run are used as they are.
    pub fn kept_finding(&self) -> Option<Finding> {
        let slices: Vec<String> = self.kept.iter().map(u32::to_string).collect();
        let message = format!(
            "slices that an interrupted run completed are used as they are: {} of {}",
            slices.join(", "),
            self.slices
        );
        let next = "nothing, if nobody could write to its files meanwhile; otherwise measure anew, without --resume";
        let finding = Finding::of_project(Code::Resumed, message, next);
        (!slices.is_empty()).then_some(finding)
    }

    fn submit_once(
        &self,
        place: &Place,
        slices: &BTreeSet<u32>,
        is_repeat: bool,
        note: &mut dyn FnMut(&str),
    ) -> Result<slurm::Submitted, Error> {
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
            without: &self.without,
            resume: self.resume,
        };
        slurm::run(&order, &array, note)
    }

    fn place(&self, index: u32) -> SlicePlace {
        SlicePlace {
            index,
            count: self.slices,
        }
    }

    /// Whether a folder has the slice as an interrupted run completed it.
    fn is_kept(&self, folder: &Path, index: u32, archive: &str) -> bool {
        self.resume && is_whole(folder, self.place(index), archive)
    }
}

/// What is known of a slice: nothing of what it measured.
fn known(words: String) -> Known {
    Known {
        words,
        manifest: KnownManifest::Nothing,
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
