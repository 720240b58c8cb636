//! Source lines of machine code, from the section `.debug_line` that `-lineinfo` adds to a cubin.
//!
//! The section is DWARF 2 (DWARF Debugging Information Format 2.0.0, section 6.2) with one sequence
//! for each kernel. The address of a sequence is a relocation against the kernel's section `.text`.
//! NVIDIA's compiler adds an extended opcode for inlined functions, as nvdisasm and cuda-gdb read
//! it. Its first operand is the number of the row with the call, counted from 1 within the
//! sequence.

#![warn(clippy::arithmetic_side_effects)]

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use gimli::{AttributeValue, DebugLine, DebugLineOffset, EndianSlice, LittleEndian, Reader as _};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionIndex};

use crate::elf_sections::named_sections;

/// `DW_LNE_NVIDIA_inlined_call`.
const INLINED_CALL: gimli::DwLne = gimli::DwLne(0x90);

/// A relocated address is the index of the section in the high bits and the offset in the low ones.
const OFFSET_BITS: u32 = 40;

/// Length of the longest chain of inlined calls that is followed.
const DEEPEST: usize = 64;

/// Longest path of a file, in bytes: `PATH_MAX` of Linux.
const LONGEST_PATH: usize = 4096;

/// Longest header of a line program, in bytes. Its entries take about 50 times the memory while
/// they are read. A real header with a hundred files has 6 kB.
const LONGEST_HEADER: usize = 1 << 18;

/// Memory of a table beside twice the size of its cubin, in bytes: 400,000 rows.
const MEMORY: usize = 24 << 20;

/// Memory of a row with its step, and of a step alone, in bytes. A list that grows may be half
/// empty.
const ROW: usize = 2 * size_of::<Row>();
const STEP: usize = 2 * size_of::<Step>();
/// The same of a file without its path.
const FILE: usize = 2 * size_of::<(Arc<str>, u64)>();
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
    /// By mangled name: the index into `steps`.
    functions: BTreeMap<String, usize>,
    /// The steps of each function, sorted.
    steps: Vec<Vec<Step>>,
    /// The memory that the table takes, in bytes; an estimate that is not too low.
    memory: usize,
    /// The most memory that it may take.
    most_memory: usize,
}

/// An offset into a function, and the row from there on.
type Step = (u64, Option<u32>);

#[derive(Clone, Copy, Debug)]
struct Row {
    file: u32,
    line: u32,
    /// The row with the call of the inlined function, from 1; 0 where nothing is inlined.
    called_from: u32,
}

/// By the index of a section of code: the index into the steps.
type Texts = BTreeMap<u64, usize>;

/// The paths so far. Each unit of a cubin repeats the files that it includes.
type Paths = HashMap<String, Arc<str>>;

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

impl LineTable {
    /// Reads the table of a cubin. The table of a cubin without `-lineinfo` is empty.
    ///
    /// # Errors
    /// If the ELF file or its `.debug_line` is damaged, or if the table would take
    /// more memory than twice the cubin and 24 MiB.
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
    pub fn of(cubin: &[u8]) -> Result<LineTable, String> {
        let wrong = |error: object::Error| error.to_string();
        let file = ElfFile64::<object::Endianness>::parse(cubin).map_err(wrong)?;
        let mut table = LineTable {
            most_memory: cubin.len().saturating_mul(2).saturating_add(MEMORY),
            ..LineTable::default()
        };
        let sections = named_sections(&file)?;
        let debug_line = sections
            .iter()
            .find(|(_, name, _)| *name == b".debug_line")
            .map(|(index, ..)| *index);
        let Some(debug_line) = debug_line else {
            return Ok(table);
        };
        let data = relocated(&file, debug_line)?;
        let mut texts = Texts::new();
        for (index, name, _) in &sections {
            let name = name.strip_prefix(b".text.").map(std::str::from_utf8);
            let Some(Ok(function)) = name else { continue };
            table.take(function.len().saturating_add(128))?;
            let new = table.steps.len();
            let place = *table.functions.entry(function.to_owned()).or_insert(new);
            if place == new {
                table.steps.push(Vec::new());
            }
            texts.insert(index.0 as u64, place);
        }
        table.read(&data, &texts)?;
        for steps in &mut table.steps {
            steps.sort_by_key(|(offset, _)| *offset);
        }
        Ok(table)
    }

    /// Reserves memory.
    fn take(&mut self, bytes: usize) -> Result<(), String> {
        self.memory = self.memory.saturating_add(bytes);
        if self.memory > self.most_memory {
            return Err(format!(
                ".debug_line: the table needs more than {} bytes of memory, as that of no real \
                 cubin does",
                self.most_memory
            ));
        }
        Ok(())
    }

    /// Reads the line programs one after the other.
    fn read(&mut self, data: &[u8], texts: &Texts) -> Result<(), String> {
        let wrong = |error: gimli::Error| format!(".debug_line: {error}");
        let section = DebugLine::new(data, LittleEndian);
        let mut paths = Paths::new();
        let mut unit = 0_usize;
        while let Some(rest) = data.get(unit..).filter(|rest| !rest.is_empty()) {
            check_header(rest)?;
            let program = section
                .program(DebugLineOffset(unit), 8, None, None)
                .map_err(wrong)?;
            let header = program.header();
            let length: usize = header.unit_length();
            unit = unit
                .saturating_add(length)
                .saturating_add(header.format().initial_length_size().into());
            self.run(program, texts, &mut paths)?;
        }
        Ok(())
    }

    /// Runs one line program.
    fn run(
        &mut self,
        mut program: gimli::IncompleteLineProgram<Bytes<'_>>,
        texts: &Texts,
        paths: &mut Paths,
    ) -> Result<(), String> {
        let wrong = |error: gimli::Error| format!(".debug_line: {error}");
        let header = program.header().clone();
        let first_file = self.files.len();
        self.add_files(&header, paths)?;
        let mut row = gimli::LineRow::new(&header);
        let mut instructions = header.instructions();
        // The call that the next rows were inlined from, and the first row of the sequence.
        let (mut called_from, mut first_row) = (0, self.rows.len());
        // The section that the sequence began in. No advance of the address may leave it.
        let mut section = 0;
        while let Some(instruction) = instructions.next_instruction(&header).map_err(wrong)? {
            match instruction {
                gimli::LineInstruction::UnknownExtended(INLINED_CALL, mut operands) => {
                    let call = operands.read_uleb128().map_err(wrong)?;
                    called_from = u32::try_from(call).unwrap_or(0);
                    continue;
                }
                // No compiler of NVIDIA writes it, and gimli keeps each of them.
                gimli::LineInstruction::DefineFile(_) => continue,
                gimli::LineInstruction::SetAddress(address) => section = address >> OFFSET_BITS,
                _ => {}
            }
            if !row.execute(instruction, &mut program).map_err(wrong)? {
                continue;
            }
            let mut number = None;
            if !row.end_sequence() {
                self.take(ROW)?;
                number = u32::try_from(self.rows.len()).ok();
                let file = self.file(&row, first_file);
                self.push(&row, file, first_row, called_from);
            }
            if row.address() >> OFFSET_BITS == section
                && let Some(place) = texts.get(&section)
            {
                self.take(STEP)?;
                let offset = row.address() & ((1 << OFFSET_BITS) - 1);
                self.steps[*place].push((offset, number));
            }
            if row.end_sequence() {
                (called_from, first_row, section) = (0, self.rows.len(), 0);
            }
            row.reset(&header);
        }
        Ok(())
    }

    /// The index of a row's file. File 0 is none in DWARF 2 to 4, and the files after those of the
    /// unit belong to another one.
    fn file(&self, row: &gimli::LineRow, first_file: usize) -> u32 {
        let index = usize::try_from(row.file_index())
            .ok()
            .and_then(|index| index.checked_sub(1)?.checked_add(first_file))
            .filter(|index| *index < self.files.len());
        index
            .and_then(|index| u32::try_from(index).ok())
            .unwrap_or(u32::MAX)
    }

    fn push(&mut self, row: &gimli::LineRow, file: u32, first_row: usize, caller: u32) {
        let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
        self.rows.push(Row {
            file,
            line: line.unwrap_or(0),
            called_from: match (caller, u32::try_from(first_row)) {
                (1.., Ok(first)) => caller.checked_add(first).unwrap_or(0),
                _ => 0,
            },
        });
    }

    /// Adds the files of a program.
    fn add_files(
        &mut self,
        header: &gimli::LineProgramHeader<Bytes<'_>>,
        paths: &mut Paths,
    ) -> Result<(), String> {
        for file in header.file_names() {
            self.take(FILE)?;
            let path = path(file, header);
            let path = match paths.get(&path) {
                Some(known) => Arc::clone(known),
                None => {
                    // The path itself, and the key of `paths`.
                    self.take(path.len().saturating_mul(2).saturating_add(192))?;
                    let new: Arc<str> = path.as_str().into();
                    paths.insert(path, Arc::clone(&new));
                    new
                }
            };
            self.files.push((path, file.size()));
        }
        Ok(())
    }

    /// The memory that the table takes, in bytes; an estimate.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// The place of a function, by its mangled name.
    pub(crate) fn place(&self, function: &str) -> Option<usize> {
        self.functions.get(function).copied()
    }

    /// The lines of the instruction at an offset in bytes into a function, by its mangled name:
    /// the innermost line first, then the calls that were inlined. Empty where the table has no
    /// line for it.
    pub fn at(&self, function: &str, offset: u64) -> Vec<Line> {
        self.place(function)
            .map_or_else(Vec::new, |place| self.at_place(place, offset))
    }

    /// The same by the [`place`](Self::place) of the function, without a search for its name.
    pub(crate) fn at_place(&self, place: usize, offset: u64) -> Vec<Line> {
        let mut chain = Vec::new();
        let Some(steps) = self.steps.get(place) else {
            return chain;
        };
        let after = steps.partition_point(|(from, _)| *from <= offset);
        let mut next = after
            .checked_sub(1)
            .and_then(|at| steps.get(at)?.1)
            .map(|row| row as usize);
        // A line that is not known has no place in the chain, but its call was followed.
        for _ in 0..DEEPEST {
            let Some(row) = next.and_then(|row| self.rows.get(row)) else {
                break;
            };
            if let Some((file, bytes)) = self.files.get(row.file as usize)
                && row.line > 0
                && !file.is_empty()
            {
                chain.push(Line {
                    file: Arc::clone(file),
                    file_bytes: *bytes,
                    line: row.line,
                });
            }
            // A call precedes what it inlines, so the chain ends.
            let caller = (row.called_from as usize).checked_sub(1);
            next = caller.filter(|caller| next.is_some_and(|row| *caller < row));
        }
        chain
    }
}

/// Rejects the header of a line program that gimli would read into much memory: version 5, whose
/// lists may be longer than the file, and long lists.
fn check_header(unit: &[u8]) -> Result<(), String> {
    let number = |at: usize, size: usize| {
        let bytes = unit.get(at..)?.get(..size)?;
        let number = |number, byte: &u8| number << 8 | u64::from(*byte);
        Some(bytes.iter().rev().fold(0_u64, number))
    };
    // 64-bit DWARF: the length has 12 bytes instead of 4, the length of the header 8 instead of 4.
    let (at, size) = match number(0, 4) {
        Some(0xffff_ffff) => (12, 8),
        _ => (4, 4),
    };
    match number(at, 2) {
        Some(2..=4) => {}
        Some(version) => return Err(format!(".debug_line: the version {version} is not known")),
        None => return Err(".debug_line: a unit is truncated".to_owned()),
    }
    let after_version = match size {
        8 => 14,
        _ => 6,
    };
    match number(after_version, size) {
        Some(length) if length <= LONGEST_HEADER as u64 => Ok(()),
        Some(length) => Err(format!(
            ".debug_line: a header has {length} bytes, the limit is {LONGEST_HEADER}"
        )),
        None => Err(".debug_line: a unit is truncated".to_owned()),
    }
}

/// A section with its relocations applied.
fn relocated(
    file: &ElfFile64<'_, object::Endianness>,
    index: SectionIndex,
) -> Result<Vec<u8>, String> {
    let wrong = |error: object::Error| error.to_string();
    let section = file.section_by_index(index).map_err(wrong)?;
    let mut data = section.data().map_err(wrong)?.to_vec();
    // Each relocation of a real file is for another eight bytes.
    let mut left = data.len() / 8;
    for (at, relocation) in section.relocations() {
        left = left
            .checked_sub(1)
            .ok_or_else(|| ".debug_line: it has more relocations than addresses".to_owned())?;
        let RelocationTarget::Symbol(symbol) = relocation.target() else {
            continue;
        };
        let symbol = file.symbol_by_index(symbol).map_err(wrong)?;
        let Some(SectionIndex(index)) = symbol.section_index() else {
            continue;
        };
        let address = symbol
            .address()
            .checked_add_signed(relocation.addend())
            .filter(|offset| *offset < 1 << OFFSET_BITS)
            .zip(u64::try_from(index).ok())
            .filter(|(_, index)| *index < 1 << (u64::BITS - OFFSET_BITS))
            .map(|(offset, index)| index << OFFSET_BITS | offset);
        let place = usize::try_from(at)
            .ok()
            .and_then(|at| data.get_mut(at..at.checked_add(8)?));
        if let (Some(place), Some(address)) = (place, address) {
            place.copy_from_slice(&address.to_le_bytes());
        }
    }
    Ok(data)
}

/// The path of a file; empty where it is longer than a path can be.
fn path(
    file: &gimli::FileEntry<Bytes<'_>>,
    header: &gimli::LineProgramHeader<Bytes<'_>>,
) -> String {
    let name = text_of(Some(file.path_name()));
    let folder = text_of(file.directory(header));
    if name.len().saturating_add(folder.len()) >= LONGEST_PATH {
        return String::new();
    }
    let (name, folder) = (name.to_string_lossy(), folder.to_string_lossy());
    if folder.is_empty() || name.starts_with('/') {
        normalized(&name)
    } else {
        normalized(&format!("{folder}/{name}"))
    }
}

fn text_of(value: Option<AttributeValue<Bytes<'_>>>) -> Bytes<'_> {
    match value {
        Some(AttributeValue::String(text)) => text,
        _ => EndianSlice::new(&[], LittleEndian),
    }
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
