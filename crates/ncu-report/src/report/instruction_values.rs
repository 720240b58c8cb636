//! Values of metrics by instruction: how often each instruction was executed, how often warps were
//! sampled at it, and what they waited for.
//!
//! The values are lists under the metrics `inst_executed` and `smsp__pcsamp_*`, by the address of
//! the instruction on the GPU.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::memory::Memory;
use super::metric_values::Read;
use super::scalar::{scalar, single_integer};
use super::sources::Source;
use super::wire::{Slice, short_message};
use crate::error::ReadError;
use crate::instructions::{InstructionCounters, SourceCounters};
use crate::line_table::Line;
use crate::value::Value;

const EXECUTED: &str = "inst_executed";
const SAMPLES: &str = "smsp__pcsamp_sample_count";
const STALLED: &str = "smsp__pcsamp_warps_issue_stalled_";
const NOT_ISSUED: &str = "_not_issued";

/// Memory of a metric of the current result, in bytes, in a list that grows.
const METRIC: usize = 2 * size_of::<(u32, Slice<'_>)>();

/// What the values of a metric count at an instruction.
enum Counted {
    Executed,
    Samples,
    /// Samples of warps that waited for this reason.
    Stalls(Arc<str>),
}

impl Counted {
    /// By the name of the metric.
    fn by(metric: &str) -> Option<Counted> {
        match metric {
            EXECUTED => Some(Counted::Executed),
            SAMPLES => Some(Counted::Samples),
            // Those in which the scheduler issued nothing are a part of the others.
            metric if metric.ends_with(NOT_ISSUED) => None,
            metric => Some(Counted::Stalls(metric.strip_prefix(STALLED)?.into())),
        }
    }
}

/// Collects the values by instruction of one result after the other.
pub(super) struct InstructionValues<'a> {
    /// By the rank of the name; `None` for metrics without values by instruction.
    counted: Vec<Option<Counted>>,
    /// Rank and metric, of the current result.
    metrics: Vec<(u32, Slice<'a>)>,
}

impl<'a> InstructionValues<'a> {
    /// `names` are the names of the metrics with their ranks, which are below the number of names.
    pub(super) fn new<'n>(
        names: impl ExactSizeIterator<Item = (u32, &'n str)>,
    ) -> InstructionValues<'a> {
        let mut counted = Vec::new();
        counted.resize_with(names.len(), || None);
        for (rank, name) in names {
            counted[rank as usize] = Counted::by(name);
        }
        InstructionValues {
            counted,
            metrics: Vec::new(),
        }
    }

    /// Adds a metric: `ProfileMetricResult { 3: repeated MetricValueList }`. It replaces the lists
    /// of an earlier one of its name, also where it has none.
    pub(super) fn add(
        &mut self,
        metric: &Read,
        message: Slice<'a>,
        memory: &mut Memory,
    ) -> Result<(), ReadError> {
        if matches!(self.counted.get(metric.rank as usize), Some(Some(_))) {
            self.metrics.retain(|(rank, _)| *rank != metric.rank);
            if metric.has_list {
                memory.take(METRIC, message.offset())?;
                self.metrics.push((metric.rank, message));
            }
        }
        Ok(())
    }

    /// Ends the current result: its instructions by address, without function and lines.
    pub(super) fn finish(
        &mut self,
        memory: &mut Memory,
    ) -> Result<Vec<InstructionCounters>, ReadError> {
        let mut instructions = Instructions::default();
        for (rank, metric) in self.metrics.drain(..) {
            if let Some(Some(counted)) = self.counted.get(rank as usize) {
                metric.each(3, |value| instructions.add(counted, value, memory))?;
            }
        }
        let mut instructions = instructions.list;
        instructions.sort_unstable_by_key(|instruction| instruction.address);
        for instruction in &mut instructions {
            instruction.stalls.sort();
            let same = |later: &mut (Arc<str>, _), first: &mut (Arc<str>, _)| later.0 == first.0;
            instruction.stalls.dedup_by(same);
        }
        Ok(instructions)
    }
}

/// The instructions of a result so far.
#[derive(Default)]
struct Instructions {
    list: Vec<InstructionCounters>,
    /// By address: the index in `list`.
    places: BTreeMap<u64, usize>,
    /// The index after the last value's instruction. The metrics list the same instructions in the
    /// same order, so most values need no search.
    next: usize,
    no_name: Arc<str>,
}

/// Memory of an instruction without its lists, in bytes: the list and the map grow, and the nodes
/// of the map may be half empty.
const INSTRUCTION: usize = 2 * size_of::<InstructionCounters>() + 48;

impl Instructions {
    /// Adds a value of a metric.
    fn add(
        &mut self,
        counted: &Counted,
        value: Slice<'_>,
        memory: &mut Memory,
    ) -> Result<(), ReadError> {
        let Some((address, count)) = address_and_count(value, memory)? else {
            return Ok(());
        };
        let place = self.place(address, value.offset(), memory)?;
        self.next = place.saturating_add(1);
        let Some(instruction) = self.list.get_mut(place) else {
            return Ok(());
        };
        match counted {
            Counted::Executed => instruction.executed = Some(count),
            Counted::Samples => instruction.samples = count,
            Counted::Stalls(reason) if count > 0 => {
                let before = instruction.stalls.capacity();
                instruction.stalls.push((Arc::clone(reason), count));
                let more = instruction.stalls.capacity().saturating_sub(before);
                let size = more.saturating_mul(size_of::<(Arc<str>, u64)>());
                memory.take(size, value.offset())?;
            }
            Counted::Stalls(_) => {}
        }
        Ok(())
    }

    /// The index of the instruction at an address, which is added if it is new.
    #[inline]
    fn place(
        &mut self,
        address: u64,
        offset: usize,
        memory: &mut Memory,
    ) -> Result<usize, ReadError> {
        let next = self.list.get(self.next);
        if next.is_some_and(|next| next.address == address) {
            return Ok(self.next);
        }
        match self.places.entry(address) {
            Entry::Occupied(entry) => Ok(*entry.get()),
            Entry::Vacant(entry) => {
                memory.take(INSTRUCTION, offset)?;
                self.list.push(uncounted(address, &self.no_name));
                Ok(*entry.insert(self.list.len().saturating_sub(1)))
            }
        }
    }
}

/// `MetricValueList { 1: CorrelationId, 2: ElementValue }`: an address and a count. `None` where
/// one of them is no integer.
#[inline(always)]
fn address_and_count(
    list: Slice<'_>,
    memory: &mut Memory,
) -> Result<Option<(u64, u64)>, ReadError> {
    match usual_address_and_count(list.bytes) {
        Some(found) => Ok(Some(found)),
        None => any_address_and_count(list, memory),
    }
}

/// The same where both are a single integer, one after the other, as ncu writes them. `None` for
/// any other message, damaged or not. This costs a third of reading a message of any kind.
#[inline(always)]
fn usual_address_and_count(list: &[u8]) -> Option<(u64, u64)> {
    let (address, rest) = short_message(list, 1)?;
    let (count, rest) = short_message(rest, 2)?;
    let numbers = single_integer(address).zip(single_integer(count));
    numbers.filter(|_| rest.is_empty())
}

#[inline(never)]
fn any_address_and_count(
    mut list: Slice<'_>,
    memory: &mut Memory,
) -> Result<Option<(u64, u64)>, ReadError> {
    let (mut address, mut count) = (None, None);
    while let Some(field) = list.field()? {
        let place = match field.number {
            1 => &mut address,
            2 => &mut count,
            _ => continue,
        };
        if let Value::Integer(number) = scalar(field.bytes()?, memory)? {
            *place = Some(number);
        }
    }
    Ok(address.zip(count))
}

fn uncounted(address: u64, no_name: &Arc<str>) -> InstructionCounters {
    InstructionCounters {
        address,
        function: Arc::clone(no_name),
        ..InstructionCounters::default()
    }
}

/// Adds function, offset and lines to instructions that are sorted by address.
pub(super) fn with_source(
    mut instructions: Vec<InstructionCounters>,
    source: Option<&Source<'_>>,
    memory: &mut Memory,
) -> Result<SourceCounters, ReadError> {
    let lowest = instructions.first().map_or(0, |first| first.address);
    for instruction in &mut instructions {
        let function = source.and_then(|source| source.function_at(instruction.address));
        let Some((source, (start, function))) = source.zip(function) else {
            instruction.offset = instruction.address.saturating_sub(lowest);
            continue;
        };
        instruction.offset = instruction.address.saturating_sub(start);
        instruction.function = Arc::clone(&function.name);
        instruction.lines = source.lines(function, instruction.offset);
        let lines = instruction.lines.capacity();
        memory.take(lines.saturating_mul(size_of::<Line>()), 0)?;
    }
    Ok(SourceCounters {
        instructions,
        cubin: source.and_then(Source::cubin),
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::arithmetic_side_effects, reason = "numbers of a test")]

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_usual_value_is_read_as_any_value_is(
            lengths in [0_u8..6, 0..6],
            numbers in [any::<[u8; 4]>(), any::<[u8; 4]>()],
            change in proptest::option::of((0_usize..16, any::<u8>())),
            more in proptest::option::of(any::<u8>()),
        ) {
            let mut bytes = Vec::new();
            for (key, (length, number)) in [0x0a, 0x12].into_iter().zip(lengths.iter().zip(numbers)) {
                let number = &number[..usize::from(*length).saturating_sub(1).min(4)];
                bytes.extend([key, number.len() as u8 + 1, 0x28]);
                bytes.extend(number);
            }
            if let Some((at, byte)) = change {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            bytes.extend(more);
            let any = any_address_and_count(Slice::of_file(&bytes), &mut Memory::for_file(16));
            if let Some(usual) = usual_address_and_count(&bytes) {
                prop_assert_eq!(any.ok(), Some(Some(usual)), "{:x?}", bytes);
            }
        }
    }

    #[test]
    fn the_values_that_ncu_writes_are_usual() {
        let bytes = [0x0a, 3, 0x28, 0x80, 0x02, 0x12, 2, 0x28, 7];
        assert_eq!(usual_address_and_count(&bytes), Some((0x100, 7)));
    }
}
