//! The machine code in a report, and the functions in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::block::Block;
use super::compressed;
use super::file::File;
use super::memory::Memory;
use super::wire::Slice;
use crate::error::ReadError;

/// A cubin in a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MachineCode {
    /// The bytes of the cubin, an ELF file.
    pub cubin: Vec<u8>,
    /// Mangled names of the functions that ran, by their addresses on the GPU.
    pub functions: BTreeMap<u64, Arc<str>>,
}

/// Memory of a source and of a function without its name, in bytes: the nodes of a map may be half
/// empty, and the lists of [`machine_code`] are a copy.
const SOURCE: usize = 4 * size_of::<(u64, MachineCode)>();
const FUNCTION: usize = 4 * size_of::<(u64, Arc<str>)>() + 32;

/// The machine code in a report, each cubin once. A report contains the cubins of the profiled
/// kernels unless ncu was run with `--import-sass no`.
///
/// # Errors
/// [`ReadError::NotAReport`] and [`ReadError::Report`], as [`read`](crate::report::read).
///
/// ```no_run
/// let bytes = std::fs::read("gemm.ncu-rep")?;
/// for code in ncu_report::report::machine_code(&bytes)? {
///     println!("{} bytes with {:?}", code.cubin.len(), code.functions.values());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn machine_code(bytes: &[u8]) -> Result<Vec<MachineCode>, ReadError> {
    let bytes = compressed::plain(bytes)?;
    let mut blocks = File::open(&bytes)?.blocks;
    let mut sources: BTreeMap<u64, MachineCode> = BTreeMap::new();
    let mut memory = Memory::for_file(bytes.len());
    while let Some(block) = Block::next(&mut blocks)? {
        let mut payload = block.payload;
        for _ in 0..block.sources {
            add_source(&mut sources, payload.take_sized("a source")?, &mut memory)?;
        }
    }
    let mut sources: Vec<MachineCode> = sources.into_values().collect();
    sources.retain(|source| !source.cubin.is_empty());
    Ok(sources)
}

/// `SourceData { 1: Reference, 4: Binary, 9: Functions }`.
fn add_source(
    sources: &mut BTreeMap<u64, MachineCode>,
    mut message: Slice<'_>,
    memory: &mut Memory,
) -> Result<(), ReadError> {
    memory.take(SOURCE, message.offset())?;
    let (mut reference, mut cubin) = (0, &[][..]);
    let mut functions = BTreeMap::new();
    while let Some(field) = message.field()? {
        match field.number {
            1 => reference = field.integer()?,
            4 => cubin = field.bytes()?.bytes,
            9 => add_functions(field.bytes()?, &mut functions, memory)?,
            _ => {}
        }
    }
    // A later source with the same reference adds functions and has no cubin.
    let known = sources.entry(reference).or_default();
    if known.cubin.is_empty() {
        known.cubin = cubin.to_vec();
    }
    known.functions.extend(functions);
    Ok(())
}

/// `{ 1: repeated { 1: mangled name, 2: address } }`.
fn add_functions(
    mut message: Slice<'_>,
    functions: &mut BTreeMap<u64, Arc<str>>,
    memory: &mut Memory,
) -> Result<(), ReadError> {
    while let Some(field) = message.field()? {
        let (mut name, mut address) = (String::new(), None);
        let mut function = field.bytes()?;
        while let Some(field) = function.field()? {
            match field.number {
                1 => name = field.bytes()?.text()?,
                2 => address = Some(field.integer()?),
                _ => {}
            }
        }
        if let Some(address) = address {
            memory.take(name.len().saturating_add(FUNCTION), message.offset())?;
            functions.insert(address, name.into());
        }
    }
    Ok(())
}
