//! Source lines of machine code, from the section `.debug_line` that `-lineinfo` adds to a cubin.
//!
//! The section is DWARF 2 (DWARF Debugging Information Format 2.0.0, section 6.2) with one sequence
//! for each kernel. The address of a sequence is a relocation against the kernel's section `.text`.
//! NVIDIA's compiler adds an extended opcode for inlined functions, as nvdisasm and cuda-gdb read
//! it. Its first operand is the number of the row with the call, counted from 1 within the
//! sequence.

use std::collections::BTreeMap;
use std::sync::Arc;

use gimli::{AttributeValue, DebugLine, DebugLineOffset, EndianSlice, LittleEndian, Reader as _};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionIndex};
use thiserror::Error;

/// `DW_LNE_NVIDIA_inlined_call`.
const INLINED_CALL: gimli::DwLne = gimli::DwLne(0x90);

/// A relocated address is the index of the section in the high bits and the offset in the low ones.
const OFFSET_BITS: u32 = 40;

/// Length of the longest chain of inlined calls that is followed.
const DEEPEST: usize = 64;

/// The number of rows that are kept; the table of a real cubin has a few thousand.
const MOST_ROWS: usize = 1 << 20;

/// Why the lines of a cubin cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the cubin cannot be read: {0}")]
pub struct LineError(
    /// The section and the problem.
    pub String,
);

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Path as it was given to the compiler, without `.` and `..` where these can be resolved.
    pub file: Arc<str>,
    /// Size of the file when it was compiled, in bytes; 0 where the table does not state it.
    pub file_bytes: u64,
    /// Number of the line, from 1.
    pub line: u32,
}

/// The source lines of the functions of a cubin.
#[derive(Clone, Debug, Default)]
pub struct LineTable {
    /// Path and size in bytes.
    files: Vec<(Arc<str>, u64)>,
    /// All rows in the order of the table: calls refer to them by index.
    rows: Vec<Row>,
    /// By mangled name: offsets into the function, sorted, and the row from each offset on.
    functions: BTreeMap<String, Vec<(u64, Option<u32>)>>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    file: u32,
    line: u32,
    /// The row with the call of the inlined function, from 1; 0 where nothing is inlined.
    called_from: u32,
}

impl LineTable {
    /// Reads the table of a cubin. The table of a cubin without `-lineinfo` is empty.
    ///
    /// # Errors
    /// [`LineError`] if the ELF file or its `.debug_line` is damaged.
    ///
    /// ```no_run
    /// use ncu_report::LineTable;
    ///
    /// let table = LineTable::of(&std::fs::read("gemm.cubin")?)?;
    /// for line in table.at("_Z4gemmPf", 0x40) {
    ///     println!("{}:{}", line.file, line.line);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(cubin: &[u8]) -> Result<LineTable, LineError> {
        let wrong = |error: object::Error| LineError(error.to_string());
        let file = ElfFile64::<object::Endianness>::parse(cubin).map_err(wrong)?;
        let mut table = LineTable::default();
        let Some(data) = relocated_debug_line(&file).map_err(wrong)? else {
            return Ok(table);
        };
        let names = text_sections(&file).map_err(wrong)?;
        table
            .read(&data, &names)
            .map_err(|error| LineError(format!(".debug_line: {error}")))?;
        for lines in table.functions.values_mut() {
            lines.sort_by_key(|(offset, _)| *offset);
        }
        Ok(table)
    }

    /// Reads the line programs one after the other. `names` has the function of each section
    /// `.text`, by the section's index.
    fn read(&mut self, data: &[u8], names: &BTreeMap<u64, String>) -> gimli::Result<()> {
        let section = DebugLine::new(data, LittleEndian);
        let mut unit = 0;
        while unit < data.len() && self.rows.len() <= MOST_ROWS {
            let program = section.program(DebugLineOffset(unit), 8, None, None)?;
            let header = program.header();
            let length: usize = header.unit_length();
            unit = unit
                .saturating_add(length)
                .saturating_add(header.format().initial_length_size().into());
            self.run(program, names)?;
        }
        Ok(())
    }

    /// Runs one line program.
    fn run<'a>(
        &mut self,
        mut program: gimli::IncompleteLineProgram<EndianSlice<'a, LittleEndian>>,
        names: &BTreeMap<u64, String>,
    ) -> gimli::Result<()> {
        let header = program.header().clone();
        let first_file = self.files.len();
        self.files.extend(paths(&header));
        let mut row = gimli::LineRow::new(&header);
        let mut instructions = header.instructions();
        // The call that the next rows were inlined from, and the first row of the sequence.
        let (mut called_from, mut first_row) = (0, self.rows.len());
        while let Some(instruction) = instructions.next_instruction(&header)? {
            if let gimli::LineInstruction::UnknownExtended(INLINED_CALL, mut operands) = instruction
            {
                called_from = u32::try_from(operands.read_uleb128()?).unwrap_or(0);
                continue;
            }
            if !row.execute(instruction, &mut program)? {
                continue;
            }
            let mut number = None;
            if !row.end_sequence() {
                self.push(&row, first_file, first_row, called_from);
                number = u32::try_from(self.rows.len() - 1).ok();
            }
            if self.rows.len() > MOST_ROWS {
                return Ok(());
            }
            if let Some(name) = names.get(&(row.address() >> OFFSET_BITS)) {
                let offset = row.address() & ((1 << OFFSET_BITS) - 1);
                match self.functions.get_mut(name) {
                    Some(lines) => lines.push((offset, number)),
                    None => drop(self.functions.insert(name.clone(), vec![(offset, number)])),
                }
            }
            if row.end_sequence() {
                (called_from, first_row) = (0, self.rows.len());
            }
            row.reset(&header);
        }
        Ok(())
    }

    fn push(&mut self, row: &gimli::LineRow, first_file: usize, first_row: usize, caller: u32) {
        let file = first_file as u64 + row.file_index().wrapping_sub(1);
        let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
        self.rows.push(Row {
            file: u32::try_from(file).unwrap_or(u32::MAX),
            line: line.unwrap_or(0),
            called_from: match caller {
                0 => 0,
                own => own.saturating_add(first_row as u32),
            },
        });
    }

    /// The memory that the table takes, in bytes; an estimate.
    pub fn memory(&self) -> usize {
        let steps: usize = self.functions.values().map(Vec::len).sum();
        size_of_val(&*self.rows) + steps * size_of::<(u64, Option<u32>)>()
    }

    /// The lines of the instruction at an offset in bytes into a function, by its mangled name:
    /// the innermost line first, then the calls that were inlined. Empty where the table has no
    /// line for it.
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
            // A call precedes what it inlines, so the chain ends.
            let caller = (row.called_from as usize).checked_sub(1);
            next = caller.filter(|caller| next.is_some_and(|row| *caller < row));
        }
        chain
    }
}

/// The section `.debug_line` with its relocations applied; `None` where there is none.
fn relocated_debug_line(
    file: &ElfFile64<'_, object::Endianness>,
) -> Result<Option<Vec<u8>>, object::Error> {
    let Some(section) = file.section_by_name(".debug_line") else {
        return Ok(None);
    };
    let mut data = section.data()?.to_vec();
    for (at, relocation) in section.relocations() {
        let RelocationTarget::Symbol(symbol) = relocation.target() else {
            continue;
        };
        let symbol = file.symbol_by_index(symbol)?;
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
    Ok(Some(data))
}

/// The function of each section `.text.<mangled name>`, by the section's index.
fn text_sections(
    file: &ElfFile64<'_, object::Endianness>,
) -> Result<BTreeMap<u64, String>, object::Error> {
    let mut names = BTreeMap::new();
    for section in file.sections() {
        if let Some(name) = section.name()?.strip_prefix(".text.") {
            names.insert(section.index().0 as u64, name.to_owned());
        }
    }
    Ok(names)
}

/// The files of a program: path and size in bytes.
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
            normalized(&name)
        } else {
            normalized(&format!("{folder}/{name}"))
        };
        (path.into(), file.size())
    })
}

/// A path without `.` and `..`: the path of an `#include "../common/x.cuh"` begins with the folder of
/// the file that includes it. Links are not followed, because the path may be another machine's.
fn normalized(path: &str) -> String {
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
    use super::normalized;

    #[test]
    fn a_normalized_path_has_no_detours() {
        assert_eq!(normalized("/a/b/../c/./d.cuh"), "/a/c/d.cuh");
        assert_eq!(normalized("../k//x.cu"), "../k/x.cu");
        assert_eq!(normalized("/../x.cu"), "/../x.cu");
        assert_eq!(normalized("x.cu"), "x.cu");
    }
}
