//! What was read of the pages so far, and how far their numbers are rounded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::cell::number_u64;
use super::header::Header;
use super::numbers::Numbers;
use super::row::Row;
use crate::error::ReadError;
use crate::launch::Launch;
use crate::recording::Recording;
use crate::rounding::Rounding;

/// The decimals that ncu prints in base units. Assumed where all numbers of the pages are whole.
const USUAL_DECIMALS: u8 = 2;

/// Bytes of memory for each byte of the text. Real pages need less than 4; a crafted one, full of
/// empty cells, is rejected before it fills the memory of the machine. The text itself is one more,
/// its regions are one, and a row that is not plain has a copy.
const PER_TEXT_BYTE: usize = 4;

/// Memory that any text may take, in bytes.
const ANY_TEXT: usize = 32 << 20;

/// Most jumps of launch IDs of which the line is kept: to find it takes long.
const MOST_JUMPS: usize = 16;

/// Memory of the ID of a launch, and of a process without its letters, in bytes.
const ID: usize = 16;
const PROCESS: usize = 320;

/// The launches of one run of ncu, which numbers them from 0, whatever process they are of.
#[derive(Default)]
struct Run {
    ids: Vec<u64>,
    /// IDs that are not the next one after that of the row before, with their lines.
    jumps: Vec<(u64, u64)>,
    processes: BTreeSet<[Vec<u8>; 3]>,
    last: Option<[Vec<u8>; 3]>,
}

/// What was read so far.
#[derive(Default)]
pub(super) struct Reading {
    pub(super) launches: Vec<Launch>,
    /// The index of the first launch of the present table, and the memory that was left before it.
    pub(super) first: usize,
    left_before: usize,
    /// Of the present table.
    pub(super) numbers: Numbers,
    /// Most decimals of any number of the tables before.
    decimals: u8,
    /// The launches of the present table, and those of each run of ncu before.
    table: Run,
    runs: Vec<Run>,
    /// The run of each process with the label of its rows.
    processes: BTreeMap<([Vec<u8>; 3], Vec<u8>), usize>,
    /// Power of ten of each metric in a scaled unit.
    exponents: BTreeMap<Arc<str>, i8>,
    /// The memory that is left, in bytes.
    left: usize,
}

impl Reading {
    /// For a text of as many bytes.
    pub(super) fn of_text(bytes: usize) -> Reading {
        Reading {
            left: bytes.saturating_mul(PER_TEXT_BYTE).saturating_add(ANY_TEXT),
            ..Reading::default()
        }
    }

    /// Reserves `bytes` of memory for the content on a line. A list that grows may be half empty,
    /// so its elements count twice.
    pub(super) fn take(
        &mut self,
        bytes: usize,
        line: impl FnOnce() -> u64,
    ) -> Result<(), ReadError> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            ReadError::line(
                line(),
                format!(
                    "the pages up to here need more memory than {PER_TEXT_BYTE} times the text \
                     and {} MiB, as those of no real run do",
                    ANY_TEXT >> 20
                ),
            )
        })?;
        Ok(())
    }

    /// Adds the launch of a row. The rows of a page have similar lengths, so the room for all of
    /// them is reserved with the first.
    pub(super) fn push(&mut self, launch: Launch, row: &Row<'_, '_>) -> Result<(), ReadError> {
        let before = self.launches.capacity();
        if self.launches.len() == before {
            let more = row.rows_left().max(before / 2);
            self.take(more.saturating_mul(size_of::<Launch>()), || row.line())?;
            self.launches.reserve_exact(more);
        }
        let signature = launch.kernel.demangled.as_ref().map_or(0, String::len);
        let names = launch.kernel.function.len().saturating_add(signature);
        self.take(names.saturating_add(96), || row.line())?;
        self.launches.push(launch);
        Ok(())
    }

    /// Begins a table.
    pub(super) fn begin(&mut self) {
        (self.first, self.left_before) = (self.launches.len(), self.left);
        self.restart(Numbers::default());
    }

    /// Returns to the beginning of a table, to read it with the numbers of its locale.
    pub(super) fn restart(&mut self, numbers: Numbers) {
        self.launches.truncate(self.first);
        self.left = self.left_before;
        (self.numbers, self.table) = (numbers, Run::default());
    }

    /// Ends a table whose rows have a label. Tables that have a process in common are of one run: where
    /// several ncu share a console, a row may stand below the header of another one.
    pub(super) fn end(&mut self, label: &[u8]) {
        self.decimals = self.numbers.decimals.max(self.decimals);
        let mut table = std::mem::take(&mut self.table);
        let processes = std::mem::take(&mut table.processes).into_iter();
        let processes: Vec<_> = processes.map(|it| (it, label.to_vec())).collect();
        let known = |process| self.processes.get(process).copied();
        let run = processes.iter().find_map(known);
        match run.and_then(|run| self.runs.get_mut(run)) {
            Some(run) => {
                run.ids.extend(table.ids);
                run.jumps.extend(table.jumps);
            }
            None => self.runs.push(table),
        }
        let run = run.unwrap_or(self.runs.len() - 1);
        self.processes
            .extend(processes.into_iter().map(|it| (it, run)));
    }

    /// Notes the ID and the process of a row's launch.
    pub(super) fn see_launch(
        &mut self,
        header: &Header,
        row: &Row<'_, '_>,
    ) -> Result<(), ReadError> {
        let process = header.process(row);
        let is_last = |last: &[Vec<u8>; 3]| last.iter().zip(process).all(|(a, b)| a == b);
        if !self.table.last.as_ref().is_some_and(is_last) {
            let process = process.map(<[u8]>::to_vec);
            let letters = process
                .iter()
                .map(Vec::len)
                .fold(PROCESS, usize::saturating_add);
            self.take(letters.saturating_mul(2), || row.line())?;
            self.table.last = Some(process.clone());
            self.table.processes.insert(process);
        }
        let Some(id) = number_u64(row.cell(0)) else {
            return Ok(());
        };
        let expected = self
            .table
            .ids
            .last()
            .map_or(0, |last| last.saturating_add(1));
        if id != expected && self.table.jumps.len() < MOST_JUMPS {
            self.table.jumps.push((id, row.line()));
        }
        self.take(ID, || row.line())?;
        self.table.ids.push(id);
        Ok(())
    }

    /// Whether rows of a process were read that begins with these: its ID, its name, its host.
    pub(super) fn has_process(&self, process: &[&[u8]]) -> bool {
        let cell = |at: usize| process.get(at).map_or_else(Vec::new, |cell| cell.to_vec());
        let from = ([cell(0), cell(1), cell(2)], Vec::new());
        let next = self.processes.range(from..).next();
        next.is_some_and(|((known, _), _)| known.iter().zip(process).all(|(a, b)| a == b))
    }

    /// The first launches that are missing between others, with the line of the next one; in the
    /// console of a run also those before the first one, and up to the one that was `profiled` last.
    pub(super) fn gap(&mut self, is_of_run: bool, profiled: Option<u64>) -> Option<(u64, String)> {
        let mut first: Option<(u64, String)> = None;
        let mut all = 0_u64;
        for run in &mut self.runs {
            run.ids.sort_unstable();
            let mut next = run.ids.first().copied().filter(|_| !is_of_run).unwrap_or(0);
            for &id in &run.ids {
                let missing = id.saturating_sub(next);
                if missing > 0 && first.is_none() {
                    let jump = run.jumps.iter().find(|(at, _)| *at == id);
                    let launch = format!("launch {next} is missing before launch {id}");
                    first = Some((jump.map_or(1, |(_, line)| *line), launch));
                }
                all = all.saturating_add(missing);
                next = id.saturating_add(1).max(next);
            }
        }
        let ids = self.runs.iter().filter_map(|run| run.ids.last()).max();
        if let Some(last) = profiled
            && ids.is_some_and(|id| *id < last)
        {
            first = first.or(Some((
                1,
                format!("launch {last} was profiled and has no row"),
            )));
            all = all.max(1);
        }
        let (line, launch) = first?;
        Some((
            line,
            match all {
                1 => launch,
                _ => format!("{launch}, and {} more", all - 1),
            },
        ))
    }

    /// Refuses a launch that a run has twice, once [`Reading::gap`] sorted them.
    pub(super) fn none_twice(&self) -> Result<(), ReadError> {
        let twice = self.runs.iter().zip(0..).find_map(|(run, own)| {
            // Processes that share a console may each have it.
            let mut others = self.processes.values().filter(|of| **of == own);
            let is_alone = others.nth(1).is_none();
            let mut pairs = run.ids.iter().zip(run.ids.get(1..)?);
            let (id, _) = pairs.find(|(one, next)| is_alone && one == next)?;
            let jump = run.jumps.iter().find(|(at, _)| at == id);
            let problem = format!("launch {id} is there twice: import each page of a run once");
            Some(ReadError::line(jump.map_or(1, |(_, line)| *line), problem))
        });
        twice.map_or(Ok(()), Err)
    }

    /// Keeps the largest scale of a metric: the details page may scale each launch differently.
    pub(super) fn note_scale(&mut self, name: &Arc<str>, exponent: i8) {
        if exponent == 0 {
            return;
        }
        let largest = self.exponents.entry(Arc::clone(name)).or_insert(exponent);
        *largest = exponent.max(*largest);
    }

    pub(super) fn finish(self) -> Recording {
        let decimals = match self.decimals {
            0 => USUAL_DECIMALS,
            decimals => decimals,
        };
        let half_step = |exponent: i8| 0.5 * 10_f64.powi(i32::from(exponent) - i32::from(decimals));
        let scaled = self.exponents.into_iter();
        Recording {
            launches: self.launches,
            rounding: Rounding {
                unscaled: half_step(0),
                scaled: scaled
                    .map(|(name, exponent)| (name, half_step(exponent)))
                    .collect(),
            },
            ..Recording::default()
        }
    }
}
