//! Rows of a region, split into cells.
//!
//! ncu quotes every cell, so nearly all rows are split by a search for quotes. The csv-core crate
//! splits a row of another form (with a quote in a cell, or a line of the program). It gives the same
//! cells for a plain row.

use std::ops::Range;

use csv_core::{ReadRecordResult, Reader};
use memchr::{memchr, memchr_iter};

use super::tables::Region;
use crate::error::ReadError;
use crate::limits::LONGEST_TEXT;

/// Most cells of a row. A page with every metric that a GH100 has would have 60,000.
const MOST_CELLS: usize = 1 << 16;

/// A row of a page.
pub(super) struct Row<'a, 'r> {
    region: &'r Region<'a>,
    /// Offset in the region.
    start: usize,
    /// Offset of the next row in the region.
    end: usize,
    /// The text of the cells, and where each is in it.
    text: &'r [u8],
    places: &'r [Range<usize>],
    /// The text of the cells; empty unless the row is a plain one.
    plain: &'a [u8],
    /// Whether the text ends with this row, without a line end.
    pub(super) is_unterminated: bool,
    /// Whether a comma ends the row: ncu quotes also an empty last cell, so it is lost.
    pub(super) ends_in_comma: bool,
}

impl<'a> Row<'a, '_> {
    /// Line of the file, from 1.
    pub(super) fn line(&self) -> u64 {
        line_at(self.region, self.start)
    }

    /// Refuses a row with a line end in a cell: ncu prints none, so something else was printed into
    /// the row.
    pub(super) fn in_one_line(&self) -> Result<(), ReadError> {
        match self.region.in_lines {
            false => Ok(()),
            true => Err(ReadError::line(
                self.region.line,
                "the row that begins here is cut: a line end is in one of its cells",
            )),
        }
    }

    /// The number of rows of this length that the region has from this row on, rounded up.
    pub(super) fn rows_left(&self) -> usize {
        let length = self.end.saturating_sub(self.start).max(1);
        let left = self.region.bytes.len().saturating_sub(self.start);
        left.div_ceil(length)
    }

    /// The number of cells.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// A cell, empty where the row has none.
    #[inline]
    pub(super) fn cell(&self, column: usize) -> &[u8] {
        let place = self.places.get(column);
        place
            .and_then(|place| self.text.get(place.clone()))
            .unwrap_or_default()
    }

    /// All cells.
    pub(super) fn cells(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|column| self.cell(column))
    }

    /// The text from one cell to another of a plain row. No cell contains a quote, so the quotes
    /// between the cells are unique: the same text has the same cells.
    #[inline]
    pub(super) fn stretch(&self, first: usize, last: usize) -> Option<&'a [u8]> {
        self.plain
            .get(self.places.get(first)?.start..self.places.get(last)?.end)
    }
}

/// Calls `each` for each row of a region.
pub(super) fn for_each_row<'a>(
    region: &Region<'a>,
    others: &mut OtherRows,
    mut each: impl FnMut(Row<'a, '_>) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let mut places = Vec::new();
    let mut next = 0;
    loop {
        // The csv crate ignores empty lines, and may stop between a carriage return and its line
        // feed.
        next += line_ends(&region.bytes[next..]);
        let start = next;
        let text = &region.bytes[start..];
        if text.is_empty() {
            return Ok(());
        }
        places.clear();
        let (end, plain, text) = match split(text, &mut places) {
            Some(length) => (start + length, text, text),
            None => {
                let end = others.read(region, start, &mut places)?;
                (end, &[][..], others.text.as_slice())
            }
        };
        next = end;
        if end.saturating_sub(start) > LONGEST_TEXT
            && let Some(long) = places.iter().find(|cell| cell.len() > LONGEST_TEXT)
        {
            return Err(ReadError::line(
                line_at(region, start),
                format!(
                    "a cell has {} bytes, the limit is {LONGEST_TEXT}",
                    long.len()
                ),
            ));
        }
        let is_last = next >= region.bytes.len();
        each(Row {
            region,
            start,
            end,
            text,
            places: &places,
            plain,
            is_unterminated: is_last && !region.bytes.ends_with(b"\n"),
            ends_in_comma: region.bytes[start..end].trim_ascii_end().ends_with(b","),
        })?;
    }
}

/// Line of the file at an offset in a region, from 1.
fn line_at(region: &Region<'_>, offset: usize) -> u64 {
    let above = region.bytes.get(..offset).unwrap_or_default();
    let lines = memchr_iter(b'\n', above).count();
    region.line.saturating_add(lines as u64)
}

fn line_ends(text: &[u8]) -> usize {
    text.iter()
        .take_while(|byte| matches!(byte, b'\r' | b'\n'))
        .count()
}

/// Splits the first row of `text` if each of its cells is quoted without a quote in it, or empty.
/// Returns its length with the line end.
fn split(text: &[u8], cells: &mut Vec<Range<usize>>) -> Option<usize> {
    // No row of ncu begins with a cell that is not quoted.
    if !text.starts_with(b"\"") {
        return None;
    }
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => {
                let start = at + 1;
                let end = start + memchr(b'"', text.get(start..)?)?;
                cells.push(start..end);
                at = end + 1;
            }
            b',' | b'\r' | b'\n' => cells.push(at..at),
            _ => return None,
        }
        match text.get(at..)? {
            // The other way to split stops at the limit.
            [b',', ..] if cells.len() > MOST_CELLS => return None,
            [b',', ..] => at += 1,
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            [] => return Some(at),
            _ => return None,
        }
    }
}

/// The rows that are not plain.
pub(super) struct OtherRows {
    /// Its tables take longer to make than a row takes to read.
    reader: Reader,
    /// The cells of the last row, one after the other; longer than they are.
    text: Vec<u8>,
    /// The ends of the cells in `text`.
    ends: Vec<usize>,
}

impl OtherRows {
    pub(super) fn new() -> OtherRows {
        OtherRows {
            reader: Reader::new(),
            text: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Reads the row at `start` and returns the offset of its end.
    fn read(
        &mut self,
        region: &Region<'_>,
        start: usize,
        places: &mut Vec<Range<usize>>,
    ) -> Result<usize, ReadError> {
        self.reader.reset();
        let mut rest = region.bytes.get(start..).unwrap_or_default();
        let (mut written, mut cells) = (0_usize, 0_usize);
        loop {
            let (result, read, bytes, ends) = self.reader.read_record(
                rest,
                self.text.get_mut(written..).unwrap_or_default(),
                self.ends.get_mut(cells..).unwrap_or_default(),
            );
            rest = rest.get(read..).unwrap_or_default();
            written = written.saturating_add(bytes);
            cells = cells.saturating_add(ends);
            match result {
                ReadRecordResult::OutputFull => {
                    let longer = written.max(128).saturating_mul(2);
                    self.text.resize(longer, 0);
                }
                ReadRecordResult::OutputEndsFull if cells > MOST_CELLS => {
                    return Err(ReadError::line(
                        line_at(region, start),
                        format!("a row has more than {MOST_CELLS} cells"),
                    ));
                }
                ReadRecordResult::OutputEndsFull => {
                    self.ends.resize(cells.max(32).saturating_mul(2), 0);
                }
                // The end of the text ends the row.
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::Record | ReadRecordResult::End => break,
            }
        }
        places.clear();
        let mut from = 0;
        places.extend(self.ends.iter().take(cells).map(|&end| {
            let cell = from..end;
            from = end;
            cell
        }));
        // The reader does not advance where there is no row.
        let end = region.bytes.len().saturating_sub(rest.len());
        Ok(end.clamp(start.saturating_add(1), region.bytes.len()))
    }
}

#[cfg(test)]
mod tests {
    use ::csv::ReaderBuilder;
    use proptest::prelude::*;

    use super::*;

    /// The rows of the csv crate.
    fn reference(text: &[u8]) -> Vec<Vec<Vec<u8>>> {
        ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(text)
            .byte_records()
            .map(|record| record.unwrap().iter().map(<[u8]>::to_vec).collect())
            .collect()
    }

    fn ours(text: &[u8]) -> Vec<Vec<Vec<u8>>> {
        let mut rows = Vec::new();
        let region = Region::of(text, 1);
        for_each_row(&region, &mut OtherRows::new(), |row| {
            rows.push(row.cells().map(<[u8]>::to_vec).collect());
            Ok(())
        })
        .unwrap();
        rows
    }

    proptest! {
        #[test]
        fn quoted_rows_are_split_as_the_csv_crate_splits_them(
            rows in proptest::collection::vec(
                proptest::collection::vec("[a-z0-9 ,\"\n\r]{0,12}", 1..12), 0..8),
            ending in prop_oneof!["\n", "\r\n"],
        ) {
            let quoted = |cell: &String| format!("\"{}\"", cell.replace('"', "\"\""));
            let line = |row: &Vec<String>| row.iter().map(quoted).collect::<Vec<_>>().join(",");
            let text = rows.iter().map(|row| line(row) + &ending).collect::<String>();
            prop_assert_eq!(ours(text.as_bytes()), reference(text.as_bytes()));
        }

        #[test]
        fn any_text_is_split_as_the_csv_crate_splits_it(text in "[a1,\"\n\r]{0,64}") {
            prop_assert_eq!(ours(text.as_bytes()), reference(text.as_bytes()));
        }
    }
}
