//! Finds the CSV tables in a text that ncu and the profiled program wrote.
//!
//! The program may print anything, quotes included, so the text as a whole is not CSV. A table is a
//! line with ncu's header, and the lines after it that begin like a row.

use std::io::BufRead as _;

use crate::error::ReadError;

/// The beginning of every header of ncu. With NVTX, columns of ranges precede the kernel name.
const HEADER: &[u8] = b"\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",";

/// The beginning of the units row of the raw page: no launch has an empty ID.
const UNITS: &[u8] = b"\"\",\"\",";

/// Most lines of a record: a quoted cell may contain line ends.
const MAX_RECORD_LINES: u64 = 1000;

/// The regions that any text may have, and the bytes of a text for each region beyond them: a row
/// of a real page is longer.
const ANY_REGIONS: usize = 1 << 16;
const BYTES_PER_REGION: usize = 64;

/// Consecutive rows without another line between them.
#[derive(Debug)]
pub(super) struct Region<'a> {
    pub(super) bytes: &'a [u8],
    /// Line of the first row, from 1.
    pub(super) line: u64,
}

/// A header and its rows.
#[derive(Debug)]
pub(super) struct Table<'a> {
    pub(super) header: Region<'a>,
    pub(super) rows: Vec<Region<'a>>,
}

/// The tables in `text`, in order.
pub(super) fn tables(text: &[u8]) -> Result<Vec<Table<'_>>, ReadError> {
    let mut tables: Vec<Table<'_>> = Vec::new();
    let mut lines = Lines {
        text,
        next: 0,
        line: 0,
    };
    // A header and each region take memory.
    let most = (text.len() / BYTES_PER_REGION).saturating_add(ANY_REGIONS);
    let mut regions = 0_usize;
    // The beginning of the rows before this line, if they reach up to it.
    let mut open: Option<(usize, u64)> = None;
    while let Some((start, line)) = lines.next() {
        let bytes = &text[start..lines.next];
        if regions > most {
            return Err(ReadError::csv(
                line,
                format!("the rows up to here are interrupted more than {most} times"),
            ));
        }
        if let Some(header) = header(bytes) {
            close(&mut tables, text, &mut open, start);
            tables.push(Table {
                header: Region {
                    bytes: header,
                    line,
                },
                rows: Vec::new(),
            });
            continue;
        }
        let is_row = !tables.is_empty() && (looks_like_row(bytes) || bytes.starts_with(UNITS));
        if is_row && lines.finish_record(start, line)? {
            if open.is_none() {
                regions = regions.saturating_add(1);
                open = Some((start, line));
            }
        } else if !tables.is_empty() && !bytes.ends_with(b"\n") && begins_like_row(bytes) {
            return Err(ReadError::csv(
                line,
                "the row that begins here is truncated",
            ));
        } else {
            close(&mut tables, text, &mut open, start);
        }
    }
    close(&mut tables, text, &mut open, text.len());
    Ok(tables)
}

fn close<'a>(
    tables: &mut [Table<'a>],
    text: &'a [u8],
    open: &mut Option<(usize, u64)>,
    end: usize,
) {
    if let (Some((start, line)), Some(table)) = (open.take(), tables.last_mut()) {
        table.rows.push(Region {
            bytes: &text[start..end],
            line,
        });
    }
}

struct Lines<'a> {
    text: &'a [u8],
    /// Offset of the next line.
    next: usize,
    /// Number of the last line, from 1.
    line: u64,
}

impl Lines<'_> {
    /// Offset and number of the next line, which ends at `self.next`.
    fn next(&mut self) -> Option<(usize, u64)> {
        let start = self.next;
        let mut rest = &self.text[start..];
        // Reading from memory cannot fail.
        let length = rest.skip_until(b'\n').unwrap_or(0);
        if length == 0 {
            return None;
        }
        self.next = start + length;
        self.line = self.line.saturating_add(1);
        Some((start, self.line))
    }

    /// Adds lines until every quoted cell of the row is closed. False if the line only looked like
    /// a row.
    fn finish_record(&mut self, start: usize, line: u64) -> Result<bool, ReadError> {
        let first = &self.text[start..self.next];
        let mut quotes = count_quotes(first);
        if quotes.is_multiple_of(2) {
            return Ok(true);
        }
        // A line of the program with a few cells.
        if quotes < 2 * LEADING_CELLS && first.ends_with(b"\n") {
            return Ok(false);
        }
        let unclosed = || {
            ReadError::csv(
                line,
                "a quoted cell of the row that begins here is not closed",
            )
        };
        while !quotes.is_multiple_of(2) {
            let (next, number) = self.next().ok_or_else(unclosed)?;
            let bytes = &self.text[next..self.next];
            if number.saturating_sub(line) >= MAX_RECORD_LINES || looks_like_row(bytes) {
                return Err(unclosed());
            }
            quotes += count_quotes(bytes);
        }
        Ok(true)
    }
}

/// Cells before the first metric: the ID up to the compute capability.
const LEADING_CELLS: usize = 11;

/// A plain sum, so that the compiler vectorises it.
fn count_quotes(bytes: &[u8]) -> usize {
    bytes
        .chunks(128)
        .map(|chunk| usize::from(chunk.iter().map(|&byte| u8::from(byte == b'"')).sum::<u8>()))
        .sum()
}

/// The header in a line, without the program's text before it that had no line end.
fn header(line: &[u8]) -> Option<&[u8]> {
    if line.starts_with(HEADER) {
        return Some(line);
    }
    // Most lines of a file are rows, and no row contains a header.
    if line.len() < HEADER.len() || line.starts_with(b"\"") {
        return None;
    }
    let at = line
        .windows(HEADER.len())
        .position(|window| window == HEADER)?;
    line.get(at..)
}

/// Whether a line begins with an ID and a process, such as `"0","1127",`.
fn looks_like_row(line: &[u8]) -> bool {
    let number = |line| {
        let rest = <[u8]>::strip_prefix(line, b"\"")?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (digits > 0).then_some(())?;
        rest.get(digits..)?.strip_prefix(b"\",")
    };
    number(line).and_then(number).is_some()
}

/// Whether a line may be a row that was truncated in its first cells.
fn begins_like_row(line: &[u8]) -> bool {
    line.starts_with(b"\"")
        && line
            .iter()
            .all(|byte| byte.is_ascii_digit() || b"\",".contains(byte))
}
