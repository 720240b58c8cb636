//! Decoder of the `.ncu-rep` report file.
//!
//! The format is documented by the `.proto` files in `extras/FileFormat` of every installation of
//! Nsight Compute (proto2, package `NV.Profiler.Messages`); the numbers of the fields below are
//! theirs. A report is the bytes `NVR\0`, a file header, and blocks to the end of the file; a
//! block is a header that counts what follows, and a payload of sources and results.

mod results;
mod source;
mod strip;

use super::Recording;
use super::error::{ReadError, describe};
use super::wire::Slice;
use results::{Decoder, MEMORY_PER_BYTE};
use source::Sources;
pub use source::{Cubin, InstructionCounters, SourceCounters};
pub use strip::{Stripping, identifies_the_gpu, strip};

/// The bytes every report begins with.
pub const MAGIC: &[u8; 4] = b"NVR\0";

/// The version in the file header that this decoder was checked against.
pub const KNOWN_FORMAT_VERSION: u64 = 7;

/// Reads a report. Nothing in the file is trusted: each length is checked before it is followed,
/// and no memory is set aside on the word of a count.
///
/// # Errors
/// [`ReadError::NotAReport`] for other files, [`ReadError::Report`] with the byte offset for a
/// truncated or corrupt one.
pub fn read(bytes: &[u8]) -> Result<Recording, ReadError> {
    let mut file = Slice { bytes, offset: 0 };
    if !bytes.starts_with(MAGIC) {
        return Err(ReadError::NotAReport {
            found: describe(bytes),
        });
    }
    file.take(4, "the magic number")?;
    let mut recording = Recording::default();
    let mut file_header = file.take_sized("the file header")?;
    while let Some(field) = file_header.field()? {
        if field.number == 1 {
            recording.format_version = Some(field.integer()?);
        }
    }

    // The names may stand in a later block than the first result that needs them, so the blocks
    // are walked twice.
    let first_block = file;
    let mut strings = StringTable::new(bytes.len());
    let mut sources = Sources::default();
    while let Some(block) = Block::next(&mut file)? {
        sources.add(&block);
        block.read_session(&mut recording, &mut strings)?;
    }
    if first_block.bytes.is_empty() {
        return Err(ReadError::report(
            file.offset,
            "expected a block after the file header",
        ));
    }
    let mut decoder = Decoder::new(&strings, sources, bytes.len());
    let tolerant = recording.format_version != Some(KNOWN_FORMAT_VERSION);
    file = first_block;
    while let Some(block) = Block::next(&mut file)? {
        decoder.results(&block, tolerant, &mut recording.launches)?;
    }
    Ok(recording)
}

/// Names by `NameId`, as they lie in the file.
struct StringTable<'a> {
    strings: Vec<&'a [u8]>,
    most: usize,
}

/// What a name costs in memory beside its letters, rounded up.
const MEMORY_PER_NAME: usize = 128;

impl<'a> StringTable<'a> {
    fn new(file_size: usize) -> StringTable<'a> {
        StringTable {
            strings: Vec::new(),
            most: file_size / (MEMORY_PER_NAME / MEMORY_PER_BYTE) + 256,
        }
    }

    /// `StringTable { 1: repeated string }`. A later block's table goes on where the tables before
    /// it ended: it holds the names that are new. One that repeats them all, or all and more, adds
    /// only what is new.
    fn merge(&mut self, mut message: Slice<'a>) -> Result<(), ReadError> {
        let offset = message.offset;
        let mut strings = Vec::new();
        while let Some(field) = message.field()? {
            if field.number == 1 {
                strings.push(field.bytes()?.bytes);
                if strings.len() + self.strings.len() > self.most {
                    return Err(ReadError::report(
                        offset,
                        format!(
                            "a table of more than {} names, as no real report has",
                            self.most
                        ),
                    ));
                }
            }
        }
        if strings.starts_with(&self.strings) {
            self.strings = strings;
        } else {
            self.strings.extend(strings);
        }
        Ok(())
    }
}

/// A block: the counts of its `BlockHeader`, and its payload.
struct Block<'a> {
    header: Slice<'a>,
    sources: u64,
    kernels: u64,
    ranges: u64,
    command_lists: u64,
    graphs: u64,
    process_id: Option<u32>,
    payload: Slice<'a>,
}

impl<'a> Block<'a> {
    /// Cuts the next block off the file, or gives `None` at its end.
    fn next(file: &mut Slice<'a>) -> Result<Option<Block<'a>>, ReadError> {
        if file.bytes.is_empty() {
            return Ok(None);
        }
        let at = file.offset;
        let header = file.take_sized(format_args!("the header of the block at byte {at}"))?;
        let mut block = Block {
            header,
            sources: 0,
            kernels: 0,
            ranges: 0,
            command_lists: 0,
            graphs: 0,
            process_id: None,
            payload: *file,
        };
        let mut payload_size = 0;
        let mut fields = header;
        while let Some(field) = fields.field()? {
            match field.number {
                1 => block.sources = field.integer()?,
                2 => block.kernels = field.integer()?,
                5 => payload_size = field.integer()?,
                6 => {
                    let mut process = field.bytes()?;
                    while let Some(field) = process.field()? {
                        if field.number == 1 {
                            block.process_id = Some(field.integer_32()?);
                        }
                    }
                }
                7 => block.ranges = field.integer()?,
                8 => block.command_lists = field.integer()?,
                9 => block.graphs = field.integer()?,
                _ => {}
            }
        }
        block.payload = file.take(
            payload_size,
            format_args!("the payload of the block at byte {at}"),
        )?;
        Ok(Some(block))
    }

    /// Merges what the block says about the whole report.
    fn read_session(
        &self,
        recording: &mut Recording,
        strings: &mut StringTable<'a>,
    ) -> Result<(), ReadError> {
        let mut fields = self.header;
        while let Some(field) = fields.field()? {
            match field.number {
                3 => merge_session(field.bytes()?, recording)?,
                4 => strings.merge(field.bytes()?)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// `ReportSessionDetails`, which comes spread over several blocks. The first word on each wins.
fn merge_session(mut session: Slice<'_>, recording: &mut Recording) -> Result<(), ReadError> {
    while let Some(field) = session.field()? {
        match field.number {
            2 if recording.created_unix_s.is_none() => {
                recording.created_unix_s = Some(field.integer()?);
            }
            // VersionInfo { 1: Provider, 2: Version }; CUDA and PerfWorks state theirs here too.
            8 => {
                let (mut provider, mut version) = (String::new(), String::new());
                let mut info = field.bytes()?;
                while let Some(field) = info.field()? {
                    match field.number {
                        1 => provider = field.bytes()?.text(),
                        2 => version = field.bytes()?.text(),
                        _ => {}
                    }
                }
                if provider.starts_with("Nsight Compute") && recording.profiler_version.is_none() {
                    recording.profiler_version = Some(version);
                }
            }
            11 if recording.command_line.is_none() => {
                recording.command_line = Some(field.bytes()?.text());
            }
            _ => {}
        }
    }
    Ok(())
}
