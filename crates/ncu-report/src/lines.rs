//! Source lines of machine code, from the `.debug_line` section that `-lineinfo` puts into a cubin.
//!
//! It is DWARF 2 with one sequence a kernel, whose address is a relocation against the kernel's
//! `.text` section, and with an extended opcode of NVIDIA's for inlined functions. Its first
//! operand is the number of the row that the call stands in, counted from 1 within the sequence.

use std::collections::BTreeMap;
use std::sync::Arc;

use gimli::{AttributeValue, DebugLine, DebugLineOffset, EndianSlice, LittleEndian, Reader as _};
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionIndex};

use thiserror::Error;

/// `DW_LNE_NVIDIA_inlined_call`, as nvdisasm and cuda-gdb read it.
const INLINED_CALL: gimli::DwLne = gimli::DwLne(0x90);

/// A relocated address is the section's index above, and the offset into it below.
const OFFSET_BITS: u32 = 40;

/// Deepest chain of inlined calls that is followed.
const DEEPEST: usize = 64;

/// Most rows of a table that are kept; a table of real code has a few thousand.
const MOST_ROWS: usize = 1 << 20;

/// Why the lines of a cubin cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the cubin cannot be read: {0}")]
pub struct LineError(pub String);

/// A line of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Path as the compiler was given it.
    pub file: Arc<str>,
    /// Bytes of the file when it was compiled; 0 where the table does not tell.
    pub file_bytes: u64,
    /// From 1.
    pub line: u32,
}

/// The lines of the functions of a cubin.
#[derive(Clone, Debug, Default)]
pub struct LineTable {
    /// Path and bytes.
    files: Vec<(Arc<str>, u64)>,
    /// All rows in the order of the table: calls name them by it.
    rows: Vec<Row>,
    /// By mangled name: offset into the function, and the row in which the code from there on
    /// stands; sorted.
    functions: BTreeMap<String, Vec<(u64, Option<u32>)>>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    file: u32,
    line: u32,
    /// The row that the call of the inlined function stands in, from 1; 0 where nothing is inlined.
    called_from: u32,
}

impl LineTable {
    /// Reads the table of a cubin; one without lines has none.
    ///
    /// # Errors
    /// [`LineError`] where ELF or table are damaged.
    pub fn of(cubin: &[u8]) -> Result<LineTable, LineError> {
        let wrong = |error: object::Error| LineError(error.to_string());
        let file =
            object::read::elf::ElfFile64::<object::Endianness>::parse(cubin).map_err(wrong)?;
        let mut table = LineTable::default();
        let Some(section) = file.section_by_name(".debug_line") else {
            return Ok(table);
        };
        let mut data = section.data().map_err(wrong)?.to_vec();
        for (at, relocation) in section.relocations() {
            let RelocationTarget::Symbol(symbol) = relocation.target() else {
                continue;
            };
            let symbol = file.symbol_by_index(symbol).map_err(wrong)?;
            let Some(SectionIndex(index)) = symbol.section_index() else {
                continue;
            };
            let offset = symbol.address().wrapping_add_signed(relocation.addend());
            let address = (index as u64) << OFFSET_BITS | offset & ((1 << OFFSET_BITS) - 1);
            let place = usize::try_from(at)
                .ok()
                .and_then(|at| data.get_mut(at..at.checked_add(8)?));
            if let Some(place) = place {
                place.copy_from_slice(&address.to_le_bytes());
            }
        }
        let mut names: BTreeMap<u64, String> = BTreeMap::new();
        for section in file.sections() {
            if let Some(name) = section.name().map_err(wrong)?.strip_prefix(".text.") {
                names.insert(section.index().0 as u64, name.to_owned());
            }
        }
        table
            .read(&data, &names)
            .map_err(|error| LineError(format!(".debug_line: {error}")))?;
        for lines in table.functions.values_mut() {
            lines.sort_by_key(|(offset, _)| *offset);
        }
        Ok(table)
    }

    /// `names` has the function of each `.text` section by the section's index.
    fn read(&mut self, data: &[u8], names: &BTreeMap<u64, String>) -> gimli::Result<()> {
        let section = DebugLine::new(data, LittleEndian);
        let mut unit = 0;
        while unit < data.len() {
            let mut program = section.program(DebugLineOffset(unit), 8, None, None)?;
            let header = program.header().clone();
            let first_file = self.files.len();
            self.files.extend(paths(&header));
            let mut row = gimli::LineRow::new(&header);
            let mut instructions = header.instructions();
            let mut called_from = 0;
            let mut first_row = self.rows.len();
            while let Some(instruction) = instructions.next_instruction(&header)? {
                if let gimli::LineInstruction::UnknownExtended(INLINED_CALL, mut operands) =
                    instruction
                {
                    let context = operands.read_uleb128()?;
                    called_from = u32::try_from(context).unwrap_or(0);
                    continue;
                }
                if !row.execute(instruction, &mut program)? {
                    continue;
                }
                let number = match row.end_sequence() {
                    true => None,
                    false => {
                        let file = first_file as u64 + row.file_index().wrapping_sub(1);
                        self.rows.push(Row {
                            file: u32::try_from(file).unwrap_or(u32::MAX),
                            line: row
                                .line()
                                .and_then(|line| u32::try_from(line.get()).ok())
                                .unwrap_or(0),
                            called_from: match called_from {
                                0 => 0,
                                own => own.saturating_add(first_row as u32),
                            },
                        });
                        u32::try_from(self.rows.len() - 1).ok()
                    }
                };
                if self.rows.len() > MOST_ROWS {
                    return Ok(());
                }
                let address = row.address();
                if let Some(name) = names.get(&(address >> OFFSET_BITS)) {
                    let offset = address & ((1 << OFFSET_BITS) - 1);
                    let lines = self.functions.entry(name.clone()).or_default();
                    lines.push((offset, number));
                }
                if row.end_sequence() {
                    called_from = 0;
                    first_row = self.rows.len();
                }
                row.reset(&header);
            }
            let length: usize = header.unit_length();
            unit = unit
                .saturating_add(length)
                .saturating_add(header.format().initial_length_size().into());
        }
        Ok(())
    }

    /// About how many bytes of memory it takes.
    pub fn memory(&self) -> usize {
        let steps: usize = self.functions.values().map(Vec::len).sum();
        size_of_val(&*self.rows) + steps * size_of::<(u64, Option<u32>)>()
    }

    /// Where the instruction at an offset into a function stands: the innermost line first, then
    /// the calls that it was inlined by. Empty where the table does not tell.
    pub fn at(&self, function: &str, offset: u64) -> Vec<Line> {
        let mut chain = Vec::new();
        let Some(lines) = self.functions.get(function) else {
            return chain;
        };
        let after = lines.partition_point(|(from, _)| *from <= offset);
        let mut next = after
            .checked_sub(1)
            .and_then(|at| lines.get(at)?.1)
            .map(|row| row as usize);
        while let Some(row) = next.and_then(|row| self.rows.get(row)) {
            if let Some((file, bytes)) = self.files.get(row.file as usize)
                && row.line > 0
            {
                chain.push(Line {
                    file: Arc::clone(file),
                    file_bytes: *bytes,
                    line: row.line,
                });
            }
            if chain.len() >= DEEPEST {
                break;
            }
            // A call stands before what it inlines, so that the chain comes to an end.
            let caller = (row.called_from as usize).checked_sub(1);
            next = caller.filter(|caller| next.is_some_and(|row| *caller < row));
        }
        chain
    }
}

/// The files of a program, each with its bytes.
fn paths(
    header: &gimli::LineProgramHeader<EndianSlice<'_, LittleEndian>>,
) -> impl Iterator<Item = (Arc<str>, u64)> {
    let text = |value: AttributeValue<EndianSlice<'_, LittleEndian>>| match value {
        AttributeValue::String(text) => text.to_string_lossy().into_owned(),
        _ => String::new(),
    };
    header.file_names().iter().map(move |file| {
        let name = text(file.path_name());
        let folder = file.directory(header).map(text).unwrap_or_default();
        let path = if folder.is_empty() || name.starts_with('/') {
            straight(&name)
        } else {
            straight(&format!("{folder}/{name}"))
        };
        (path.into(), file.size())
    })
}

/// Without the detours of a path: an `#include "../common/x.cuh"` leads through the folder of the
/// file that has it. Links are not looked at, for the path may be another machine's.
fn straight(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|last| !matches!(*last, "" | "..")) => {
                parts.pop();
            }
            "" if !parts.is_empty() => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::straight;

    #[test]
    fn a_path_goes_straight_to_its_file() {
        assert_eq!(straight("/a/b/../c/./d.cuh"), "/a/c/d.cuh");
        assert_eq!(straight("../k//x.cu"), "../k/x.cu");
        assert_eq!(straight("/../x.cu"), "/../x.cu");
        assert_eq!(straight("x.cu"), "x.cu");
    }
}
