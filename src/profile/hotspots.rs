//! Where the warps of a kernel were found while it ran, by source line.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Role;
use ncu_report::report::InstructionCounters;
use ncu_report::{Launch, Line};

/// Most lines that a profile keeps of a kernel.
pub const MOST_LINES: usize = 16;
/// Most reasons that are kept of a line.
const MOST_REASONS: usize = 4;

/// The samples of the launches of one kernel in one process. Samples of warps are in proportion to
/// the time that warps spent, all of them together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hotspots {
    /// Launches that were sampled.
    pub launches: u32,
    /// Samples of all of them.
    pub samples: u64,
    /// Cycles between two samples of a scheduler, where the report states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_cycles: Option<f64>,
    /// All samples by what the warp waited for; `selected` is one that issued.
    pub stalls: BTreeMap<String, u64>,
    /// Bytes of the files below when they were compiled, where the code names them: lines of files
    /// that differ are not the same lines.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub file_bytes: BTreeMap<String, u64>,
    /// The lines with most samples, most first.
    pub lines: Vec<HotLine>,
}

/// A line of a source, or an instruction where the code has no lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HotLine {
    /// Path below the configuration, of a file that the variant is made of; else the file's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// From 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Samples that found a warp at it.
    pub samples: u64,
    /// Their share of all samples of the kernel, 0 to 1.
    pub share: f64,
    /// The samples by what the warp waited for, most first.
    pub stalls: Vec<Stall>,
    /// Offset of its instruction with most samples in the function, in bytes.
    pub offset: u64,
    /// That instruction, where there was a disassembler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
}

/// Samples of warps that waited for one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stall {
    /// As ncu calls it: `long_scoreboard`.
    pub reason: String,
    /// How many.
    pub samples: u64,
}

/// File and line, or the offset of an instruction that has none.
type Key = (Option<String>, Option<u32>, u64);

/// The samples of one place, while they are added up.
#[derive(Default)]
struct Place {
    samples: u64,
    stalls: BTreeMap<Arc<str>, u64>,
    hottest: Option<(u64, u64)>,
}

impl Hotspots {
    /// Of launches of one kernel; `None` where none was sampled. `files` are the paths of the files
    /// that the variant is made of, below the configuration.
    pub fn of<'a>(
        launches: impl IntoIterator<Item = &'a Launch>,
        files: &[&str],
    ) -> Option<Hotspots> {
        let mut hotspots = Hotspots::default();
        let mut sizes = BTreeMap::new();
        let mut places: BTreeMap<Key, Place> = BTreeMap::new();
        for launch in launches {
            let Some(source) = &launch.source else {
                continue;
            };
            if source.samples() == 0 {
                continue;
            }
            hotspots.launches += 1;
            hotspots.interval_cycles = hotspots
                .interval_cycles
                .or_else(|| Role::SampleInterval.number(launch));
            for instruction in &source.instructions {
                hotspots.samples = hotspots.samples.saturating_add(instruction.samples);
                for (reason, samples) in &instruction.stalls {
                    add(
                        hotspots.stalls.entry(reason.to_string()).or_default(),
                        *samples,
                    );
                }
                if instruction.samples > 0 {
                    let (key, bytes) = place_of(instruction, files);
                    if let (Some(file), Some(bytes)) = (&key.0, bytes) {
                        sizes.insert(file.clone(), bytes);
                    }
                    places.entry(key).or_default().take(instruction);
                }
            }
        }
        if hotspots.samples == 0 {
            return None;
        }
        let mut lines: Vec<HotLine> = places
            .into_iter()
            .map(|((file, line, _), place)| place.line(file, line, hotspots.samples))
            .collect();
        // Equal ones stay in the order of their places.
        lines.sort_by_key(|line| std::cmp::Reverse(line.samples));
        lines.truncate(MOST_LINES);
        sizes.retain(|file, _| lines.iter().any(|line| line.file.as_ref() == Some(file)));
        hotspots.file_bytes = sizes;
        hotspots.lines = lines;
        Some(hotspots)
    }

    /// The same without what needs a disassembler.
    pub fn without_instructions(&self) -> Hotspots {
        let mut hotspots = self.clone();
        for line in &mut hotspots.lines {
            line.instruction = None;
        }
        hotspots
    }

    /// Names the instructions: `text` has those of a function by their offset.
    pub fn name_instructions(&mut self, text: &BTreeMap<u64, String>) {
        for line in &mut self.lines {
            line.instruction = text.get(&line.offset).cloned();
        }
    }

    /// The share of all samples that waited for one thing, 0 to 1.
    pub fn stall_share(&self, reason: &str) -> f64 {
        let samples = self.stalls.get(reason).copied().unwrap_or(0);
        match self.samples {
            0 => 0.0,
            all => samples as f64 / all as f64,
        }
    }
}

impl HotLine {
    /// `cp_async.cu:88`, or the place of the instruction.
    pub fn place(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            (Some(file), None) => format!("{file}+{:#x}", self.offset),
            _ => format!("instruction {:#x}", self.offset),
        }
    }
}

impl Place {
    fn take(&mut self, instruction: &InstructionCounters) {
        add(&mut self.samples, instruction.samples);
        for (reason, samples) in &instruction.stalls {
            add(self.stalls.entry(Arc::clone(reason)).or_default(), *samples);
        }
        if self
            .hottest
            .is_none_or(|(most, _)| instruction.samples > most)
        {
            self.hottest = Some((instruction.samples, instruction.offset));
        }
    }

    fn line(self, file: Option<String>, line: Option<u32>, all: u64) -> HotLine {
        let mut stalls: Vec<Stall> = self
            .stalls
            .into_iter()
            .map(|(reason, samples)| Stall {
                reason: reason.to_string(),
                samples,
            })
            .collect();
        stalls.sort_by_key(|stall| std::cmp::Reverse(stall.samples));
        stalls.truncate(MOST_REASONS);
        HotLine {
            file,
            line,
            samples: self.samples,
            share: self.samples as f64 / all as f64,
            stalls,
            offset: self.hottest.map_or(0, |(_, offset)| offset),
            instruction: None,
        }
    }
}

fn add(sum: &mut u64, further: u64) {
    *sum = sum.saturating_add(further);
}

/// Where an instruction counts, and the bytes of that file: the innermost line that lies in the
/// variant's own files; else the innermost that is not the toolkit's; else the innermost. Without
/// lines, the instruction itself.
fn place_of(instruction: &InstructionCounters, files: &[&str]) -> (Key, Option<u64>) {
    let lines = &instruction.lines;
    let own = lines
        .iter()
        .find_map(|line| Some((own_path(&line.file, files)?, line)));
    let foreign = || {
        let line: &Line = lines
            .iter()
            .find(|line| !of_toolkit(&line.file))
            .or_else(|| lines.first())?;
        Some((line.file.rsplit('/').next().unwrap_or(&line.file), line))
    };
    match own.or_else(foreign) {
        Some((file, line)) => (
            (Some(file.to_owned()), Some(line.line), 0),
            (line.file_bytes > 0).then_some(line.file_bytes),
        ),
        None => ((None, None, instruction.offset), None),
    }
}

/// The longest of the paths that a file's path ends in.
fn own_path<'f>(path: &str, files: &[&'f str]) -> Option<&'f str> {
    let matches = |file: &&&str| {
        path.strip_suffix(**file)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    files
        .iter()
        .filter(matches)
        .max_by_key(|file| file.len())
        .copied()
}

/// Whether a header came with the CUDA toolkit, by where it lies.
fn of_toolkit(path: &str) -> bool {
    let Some((before, _)) = path.rsplit_once("/include/") else {
        return false;
    };
    let mut folders = before.split('/');
    folders.any(|folder| folder == "targets" || folder == "nvidia" || folder.starts_with("cuda"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_the_end_of_its_path() {
        let files = ["kernels/a.cu", "a.cu", "common/x.cuh"];
        assert_eq!(own_path("/w/kernels/a.cu", &files), Some("kernels/a.cu"));
        assert_eq!(own_path("a.cu", &files), Some("a.cu"));
        assert_eq!(own_path("/w/other/a.cu", &files), Some("a.cu"));
        assert_eq!(own_path("/w/uncommon/x.cuh", &files), None);
        assert!(of_toolkit(
            "/usr/local/cuda/targets/x86_64-linux/include/crt/mma.hpp"
        ));
        assert!(of_toolkit(
            "/v/site-packages/nvidia/cu13/include/cuda_fp16.hpp"
        ));
        assert!(!of_toolkit("/home/me/project/include/tile.cuh"));
    }
}
