//! The reader of `.ncu-rep` reports.
//!
//! The format is documented by the `.proto` files in `extras/FileFormat` of every installation of
//! Nsight Compute (proto2, package `NV.Profiler.Messages`). The field numbers in this module are
//! the ones of those files. A report is the bytes `NVR\0`, a file header, and blocks up to the end
//! of the file. A block is a header with counts, and a payload of sources and results.

// No length or count in a file may make a sum wrap.
#![warn(clippy::arithmetic_side_effects)]

mod block;
mod compressed;
mod debug_sections;
mod file;
mod layout;
mod memory;
mod metric_values;
mod raw;
mod result;
mod scalar;
mod session;
mod sources;
mod strings;
mod strip;
mod wire;

pub use compressed::{ENDINGS, compress, ending};
pub use file::{KNOWN_FORMAT_VERSION, MAGIC};
pub use sources::{MachineCode, machine_code};
pub use strip::{identifies_the_gpu, strip};

use crate::error::ReadError;
use crate::recording::Recording;
use block::Block;
use file::File;
use memory::Memory;
use result::Decoder;
use session::Session;
use strings::StringTable;

/// Reads a report at full precision, compressed (`.ncu-repz`) or not.
///
/// No length or count in the file is trusted: each is checked against the bytes that are left, and
/// the whole content takes less than 8 times the size of the file and 64 MiB of memory. The machine code
/// is not read.
///
/// # Errors
/// [`ReadError::NotAReport`] for another kind of file; [`ReadError::Report`] with the byte offset
/// for a truncated or corrupt report. The offset of a compressed one counts from the beginning of
/// the report in it.
///
/// ```
/// use ncu_report::report;
///
/// let without_launches = b"NVR\0\x02\0\0\0\x08\x07\0\0\0\0";
/// let recording = report::read(without_launches)?;
/// assert_eq!(recording.format_version, Some(report::KNOWN_FORMAT_VERSION));
/// # Ok::<(), ncu_report::ReadError>(())
/// ```
pub fn read(bytes: &[u8]) -> Result<Recording, ReadError> {
    let bytes = &*compressed::plain(bytes)?;
    let file = File::open(bytes)?;
    // The names may be in a later block than the first result that needs them, so the blocks are
    // read twice.
    let mut session = Session::default();
    let mut strings = StringTable::new(bytes.len());
    let memory = Memory::for_file(bytes.len());
    let mut blocks = file.blocks;
    while let Some(block) = Block::next(&mut blocks)? {
        block.header.each(3, |details| session.merge(details))?;
        block.header.each(4, |table| strings.merge(table))?;
    }

    let is_known = file.version == Some(KNOWN_FORMAT_VERSION);
    let mut decoder = Decoder::new(&strings, memory)?;
    let mut launches = Vec::new();
    let mut blocks = file.blocks;
    while let Some(block) = Block::next(&mut blocks)? {
        let left = decoder.results(&block, &mut launches)?;
        // A newer format may add results of a new kind after the known ones.
        if !left.bytes.is_empty() && is_known {
            return Err(ReadError::report(
                left.offset(),
                format!(
                    "{} bytes follow the last result that the block's header counts",
                    left.bytes.len()
                ),
            ));
        }
    }
    Ok(Recording {
        launches,
        profiler_version: session.profiler_version,
        command_line: session.command_line,
        created_unix_s: session.created_unix_s,
        format_version: file.version,
        ..Recording::default()
    })
}
