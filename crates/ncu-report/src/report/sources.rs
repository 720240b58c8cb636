//! The machine code in a report, and the functions in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::block::Block;
use super::compressed;
use super::file::File;
use super::memory::Memory;
use super::wire::Slice;
use crate::error::ReadError;
use crate::line_table::{Line, LineTable};

/// A cubin in a report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MachineCode {
    /// The bytes of the cubin, an ELF file.
    pub cubin: Vec<u8>,
    /// Mangled names of the functions that ran, by their addresses on the GPU.
    pub functions: BTreeMap<u64, Arc<str>>,
}

/// The machine code in a report, each cubin once. A report contains the cubins of the profiled
/// kernels unless ncu was run with `--import-sass no`.
///
/// [`Launch::source`](crate::Launch::source) has the cubin of a launch, but only in reports with
/// values by instruction.
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
    let mut sources = Sources::default();
    let mut memory = Memory::for_file(bytes.len());
    while let Some(block) = Block::next(&mut blocks)? {
        let mut payload = block.payload;
        for _ in 0..block.sources {
            sources.add_one(payload.take_sized("a source")?, &mut memory)?;
        }
    }
    let with_cubin = sources.by_reference.into_values().filter_map(|source| {
        let functions = source.functions.into_iter();
        Some(MachineCode {
            cubin: source.binary?.to_vec(),
            functions: functions
                .map(|(at, function)| (at, function.name))
                .collect(),
        })
    });
    Ok(with_cubin.collect())
}

/// Memory of a source and of a function without its name, in bytes: the nodes of a map may be half
/// empty, and the lists of [`machine_code`] are a copy.
const SOURCE: usize = 3 * size_of::<(u64, Source<'_>)>();
const FUNCTION: usize = 4 * size_of::<(u64, Function)>() + 32;

/// The sources of a report, by the reference that results have to them.
#[derive(Default)]
pub(super) struct Sources<'a> {
    by_reference: BTreeMap<u64, Source<'a>>,
}

/// A cubin and its functions.
#[derive(Default)]
pub(super) struct Source<'a> {
    /// The bytes of the cubin, if there are any.
    binary: Option<&'a [u8]>,
    /// By address.
    functions: BTreeMap<u64, Function>,
    /// The cubin and its lines, once a launch needed them.
    loaded: Option<(Arc<[u8]>, LineTable)>,
}

/// A function in a cubin.
pub(super) struct Function {
    /// The mangled name.
    pub(super) name: Arc<str>,
    /// Its place in the loaded table of lines. Names may be long, so each is looked up once.
    place: Option<usize>,
}

impl<'a> Sources<'a> {
    /// Adds the sources of a block, without the damaged ones: the numbers do not depend on them.
    ///
    /// # Errors
    /// Where they need more memory than is left.
    pub(super) fn add(&mut self, block: &Block<'a>, memory: &mut Memory) -> Result<(), ReadError> {
        let mut payload = block.payload;
        for _ in 0..block.sources {
            let Ok(message) = payload.take_sized("a source") else {
                return Ok(());
            };
            let _ = self.add_one(message, memory);
            memory.take(0, message.offset())?;
        }
        Ok(())
    }

    fn add_one(&mut self, message: Slice<'a>, memory: &mut Memory) -> Result<(), ReadError> {
        memory.take(SOURCE, message.offset())?;
        let (reference, found) = source(message, memory)?;
        // A later source with the same reference adds functions and has no cubin.
        let known = self.by_reference.entry(reference).or_default();
        known.binary = known.binary.or(found.binary);
        known.functions.extend(found.functions);
        Ok(())
    }

    /// The source with this reference, loaded if its cubin can be read.
    pub(super) fn get(
        &mut self,
        reference: u64,
        memory: &mut Memory,
    ) -> Result<Option<&Source<'a>>, ReadError> {
        let Some(source) = self.by_reference.get_mut(&reference) else {
            return Ok(None);
        };
        if let (None, Some(bytes)) = (&source.loaded, source.binary) {
            let table = LineTable::of(bytes).unwrap_or_default();
            memory.take(bytes.len().saturating_add(table.memory()), 0)?;
            for function in source.functions.values_mut() {
                function.place = table.place(&function.name);
            }
            source.loaded = Some((bytes.into(), table));
        }
        Ok(Some(source))
    }
}

impl Source<'_> {
    /// The function at an address: where it starts, and its name.
    pub(super) fn function_at(&self, address: u64) -> Option<(u64, &Function)> {
        let (start, function) = self.functions.range(..=address).next_back()?;
        Some((*start, function))
    }

    /// The lines at an offset into a function.
    pub(super) fn lines(&self, function: &Function, offset: u64) -> Vec<Line> {
        match (&self.loaded, function.place) {
            (Some((_, table)), Some(place)) => table.at_place(place, offset),
            _ => Vec::new(),
        }
    }

    pub(super) fn cubin(&self) -> Option<Arc<[u8]>> {
        let (cubin, _) = self.loaded.as_ref()?;
        Some(cubin.clone())
    }
}

/// `SourceData { 1: Reference, 4: Binary, 9: Functions }`.
fn source<'a>(mut message: Slice<'a>, memory: &mut Memory) -> Result<(u64, Source<'a>), ReadError> {
    let mut reference = 0;
    let mut found = Source::default();
    while let Some(field) = message.field()? {
        match field.number {
            1 => reference = field.integer()?,
            4 => found.binary = Some(field.bytes()?.bytes).filter(|bytes| !bytes.is_empty()),
            9 => add_functions(field.bytes()?, &mut found.functions, memory)?,
            _ => {}
        }
    }
    Ok((reference, found))
}

/// `{ 1: repeated { 1: mangled name, 2: address } }`.
fn add_functions(
    mut message: Slice<'_>,
    functions: &mut BTreeMap<u64, Function>,
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
            let name = name.into();
            functions.insert(address, Function { name, place: None });
        }
    }
    Ok(())
}
