//! Blocks: counts, and the payload that they count.

use super::file::MAGIC;
use super::wire::Slice;
use crate::error::ReadError;

/// A block of a report.
pub(super) struct Block<'a> {
    pub(super) header: Slice<'a>,
    /// How many sources the payload begins with.
    pub(super) sources: u64,
    /// How many results of each kind follow them, in the order of
    /// [`LAYOUTS`](super::layout::LAYOUTS).
    pub(super) results: [u64; 4],
    pub(super) process_id: Option<u32>,
    pub(super) payload: Slice<'a>,
}

impl<'a> Block<'a> {
    /// Cuts the next block off `blocks`; `None` at the end.
    ///
    /// `BlockHeader { 1: NumSources, 2: NumResults, 3: SessionDetails, 4: StringTable,
    /// 5: PayloadSize, 6: Process, 7: NumRangeResults, 8: NumCmdlistResults, 9: NumGraphResults }`.
    pub(super) fn next(blocks: &mut Slice<'a>) -> Result<Option<Block<'a>>, ReadError> {
        if blocks.bytes.is_empty() {
            return Ok(None);
        }
        let at = blocks.offset();
        if blocks.bytes.starts_with(MAGIC) {
            let problem = "another report begins here: two files were joined; import each of them";
            return Err(ReadError::report(at, problem));
        }
        let header = blocks.take_sized(format_args!("the header of the block at byte {at}"))?;
        let [mut kernels, mut ranges, mut command_lists, mut graphs] = [0; 4];
        let (mut sources, mut payload_size, mut process_id) = (0, 0, None);
        let mut fields = header;
        while let Some(field) = fields.field()? {
            match field.number {
                1 => sources = field.integer()?,
                2 => kernels = field.integer()?,
                5 => payload_size = field.integer()?,
                // `ProcessInfo { 1: ProcessID }`.
                6 => process_id = field.bytes()?.integer(1)?.or(process_id),
                7 => ranges = field.integer()?,
                8 => command_lists = field.integer()?,
                9 => graphs = field.integer()?,
                _ => {}
            }
        }
        let payload = blocks.take(
            payload_size,
            format_args!("the payload of the block at byte {at}"),
        )?;
        Ok(Some(Block {
            header,
            sources,
            results: [kernels, ranges, command_lists, graphs],
            process_id: process_id.map(|id| id as u32),
            payload,
        }))
    }
}
