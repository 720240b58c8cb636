//! What a report holds of single instructions: how often each was executed, how often warps were
//! found at it, and why they waited. ncu samples where warps are when it is asked for its section
//! `SourceCounters`.
//!
//! The values are lists under the metrics `inst_executed` and `smsp__pcsamp_*`, by the
//! instruction's address on the GPU. `SourceData { 1: Reference, 4: Binary (the cubin),
//! 9 { 1: repeated { 1: mangled name, 2: address } } }` says which functions lie there; a later
//! one of the same reference adds functions and brings no cubin.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::Block;
use crate::Value;
use crate::error::ReadError;
use crate::lines::{Line, LineTable};
use crate::wire::Slice;

const EXECUTED: &str = "inst_executed";
const SAMPLES: &str = "smsp__pcsamp_sample_count";
const STALLED: &str = "smsp__pcsamp_warps_issue_stalled_";
const NOT_ISSUED: &str = "_not_issued";

/// What was counted and sampled of the instructions of one launch.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceCounters {
    /// By address.
    pub instructions: Vec<InstructionCounters>,
    /// The machine code that ran, where the report holds it.
    pub cubin: Option<Cubin>,
}

/// What was counted and sampled of one instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct InstructionCounters {
    /// Address on the GPU.
    pub address: u64,
    /// The mangled name of the function it belongs to; empty where the report does not tell.
    pub function: Arc<str>,
    /// Bytes from the function's beginning, or from the lowest address that was counted.
    pub offset: u64,
    /// How many warps executed it.
    pub executed: Option<u64>,
    /// How many samples found a warp at it.
    pub samples: u64,
    /// The samples by what the warp waited for, those that are not zero, by name.
    pub stalls: Vec<(Arc<str>, u64)>,
    /// Those of them at which no warp of the scheduler issued anything.
    pub not_issued: Vec<(Arc<str>, u64)>,
    /// The line it was compiled from, the innermost first, then the calls that were inlined.
    pub lines: Vec<Line>,
}

/// A cubin that launches share.
#[derive(Clone, PartialEq, Eq)]
pub struct Cubin(pub Arc<[u8]>);

impl fmt::Debug for Cubin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a cubin of {} bytes", self.0.len())
    }
}

/// What a metric's list says of an instruction.
#[derive(Clone)]
pub(super) enum Role {
    Executed,
    Samples,
    Stalls(Arc<str>),
    NotIssued(Arc<str>),
}

impl Role {
    pub(super) fn of(name: &str) -> Option<Role> {
        match name {
            EXECUTED => Some(Role::Executed),
            SAMPLES => Some(Role::Samples),
            name => {
                let reason = name.strip_prefix(STALLED)?;
                Some(match reason.strip_suffix(NOT_ISSUED) {
                    Some(reason) => Role::NotIssued(reason.into()),
                    None => Role::Stalls(reason.into()),
                })
            }
        }
    }
}

/// The machine code of a report, by reference.
#[derive(Default)]
pub(super) struct Sources<'a> {
    by_reference: BTreeMap<u64, SourceData<'a>>,
}

#[derive(Default)]
struct SourceData<'a> {
    binary: Option<&'a [u8]>,
    functions: BTreeMap<u64, Arc<str>>,
    loaded: Option<(Cubin, LineTable)>,
}

impl<'a> Sources<'a> {
    /// Adds those of a block. Code explains numbers and is none: what is damaged is left out.
    pub(super) fn add(&mut self, block: &Block<'a>) {
        let mut payload = block.payload;
        for _ in 0..block.sources {
            let Ok(message) = payload.take_sized("a source") else {
                return;
            };
            let _ = self.add_one(message);
        }
    }

    fn add_one(&mut self, mut message: Slice<'a>) -> Result<(), ReadError> {
        let mut reference = 0;
        let mut found = SourceData::default();
        while let Some(field) = message.field()? {
            match field.number {
                1 => reference = field.integer()?,
                4 => found.binary = Some(field.bytes()?.bytes),
                9 => {
                    let mut functions = field.bytes()?;
                    while let Some(field) = functions.field()? {
                        let (mut name, mut address) = (String::new(), None);
                        let mut function = field.bytes()?;
                        while let Some(field) = function.field()? {
                            match field.number {
                                1 => name = field.bytes()?.text(),
                                2 => address = Some(field.integer()?),
                                _ => {}
                            }
                        }
                        if let Some(address) = address {
                            found.functions.insert(address, name.into());
                        }
                    }
                }
                _ => {}
            }
        }
        let known = self.by_reference.entry(reference).or_default();
        known.binary = known.binary.or(found.binary);
        known.functions.extend(found.functions);
        Ok(())
    }

    /// The code behind a reference; one that cannot be read has no lines.
    fn code(
        &mut self,
        reference: u64,
        spend: &mut impl FnMut(usize, usize) -> Result<(), ReadError>,
    ) -> Result<Option<&SourceData<'a>>, ReadError> {
        let Some(source) = self.by_reference.get_mut(&reference) else {
            return Ok(None);
        };
        if let (None, Some(bytes)) = (&source.loaded, source.binary.filter(|b| !b.is_empty())) {
            let table = LineTable::of(bytes).unwrap_or_default();
            spend(bytes.len().saturating_add(table.memory()), 0)?;
            source.loaded = Some((Cubin(bytes.into()), table));
        }
        Ok(Some(source))
    }

    /// Puts the lists of one launch together. `spend` accounts for the memory.
    pub(super) fn counters(
        &mut self,
        reference: Option<u64>,
        lists: &[(Role, Slice<'a>)],
        mut spend: impl FnMut(usize, usize) -> Result<(), ReadError>,
    ) -> Result<Option<Arc<SourceCounters>>, ReadError> {
        let mut found: BTreeMap<u64, InstructionCounters> = BTreeMap::new();
        for (role, list) in lists {
            let Some((address, value)) = entry(*list)? else {
                continue;
            };
            let instruction = match found.entry(address) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(entry) => {
                    spend(size_of::<InstructionCounters>(), list.offset)?;
                    entry.insert(InstructionCounters {
                        address,
                        function: Arc::from(""),
                        offset: 0,
                        executed: None,
                        samples: 0,
                        stalls: Vec::new(),
                        not_issued: Vec::new(),
                        lines: Vec::new(),
                    })
                }
            };
            let reasons = match role {
                Role::Executed => {
                    instruction.executed = Some(value);
                    continue;
                }
                Role::Samples => {
                    instruction.samples = value;
                    continue;
                }
                Role::Stalls(reason) => (&mut instruction.stalls, reason),
                Role::NotIssued(reason) => (&mut instruction.not_issued, reason),
            };
            if value > 0 {
                spend(size_of::<(Arc<str>, u64)>(), list.offset)?;
                reasons.0.push((Arc::clone(reasons.1), value));
            }
        }
        let Some(lowest) = found.keys().next().copied() else {
            return Ok(None);
        };
        let code = match reference {
            Some(reference) => self.code(reference, &mut spend)?,
            None => None,
        };
        for instruction in found.values_mut() {
            for reasons in [&mut instruction.stalls, &mut instruction.not_issued] {
                reasons.sort();
                reasons.dedup_by(|later, first| later.0 == first.0);
            }
            let function =
                code.and_then(|code| code.functions.range(..=instruction.address).next_back());
            let Some((start, name)) = function else {
                instruction.offset = instruction.address - lowest;
                continue;
            };
            instruction.offset = instruction.address - start;
            instruction.function = Arc::clone(name);
            if let Some((_, table)) = code.and_then(|code| code.loaded.as_ref()) {
                instruction.lines = table.at(name, instruction.offset);
                spend(instruction.lines.len() * size_of::<Line>(), 0)?;
            }
        }
        let cubin = code.and_then(|code| Some(code.loaded.as_ref()?.0.clone()));
        Ok(Some(Arc::new(SourceCounters {
            instructions: found.into_values().collect(),
            cubin,
        })))
    }
}

/// `MetricValueList { 1: CorrelationId, 2: ElementValue }`: an address and a count.
fn entry(mut list: Slice<'_>) -> Result<Option<(u64, u64)>, ReadError> {
    let (mut address, mut count) = (None, None);
    while let Some(field) = list.field()? {
        let place = match field.number {
            1 => &mut address,
            2 => &mut count,
            _ => continue,
        };
        if let Value::Integer(number) = super::results::scalar(field.bytes()?)? {
            *place = Some(number);
        }
    }
    Ok(address.zip(count))
}

impl SourceCounters {
    /// Samples of all instructions.
    pub fn samples(&self) -> u64 {
        self.instructions
            .iter()
            .fold(0, |sum: u64, one| sum.saturating_add(one.samples))
    }
}
