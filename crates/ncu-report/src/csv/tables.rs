//! Finds the CSV tables in a text that ncu and the profiled program wrote.
//!
//! The program may print anything, quotes included, so the text as a whole is not CSV. A table is a
//! line with ncu's header, and the lines after it that begin like a row.

use memchr::{memchr, memchr_iter};

use crate::error::ReadError;

/// The beginning of every header of ncu. With NVTX, columns of ranges precede the kernel name.
const HEADER: &[u8] = b"\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",";

/// The beginning of the units row of the raw page: no launch has an empty ID.
const UNITS: &[u8] = b"\"\",\"\",";
const UNITS_BEHIND_TEXT: &[u8] = b"\"\",\"\",\"\",\"\",\"\",";

/// Most lines of a record: a quoted cell may contain line ends.
const MAX_RECORD_LINES: u64 = 1000;

/// The regions that any text may have, and the bytes of a text for each region beyond them: a row
/// of a real page is longer.
const ANY_REGIONS: usize = 1 << 16;
const BYTES_PER_REGION: usize = 64;

/// Most messages that are kept, and most bytes of each.
pub(super) const MOST_TOLD: usize = 1000;
pub(super) const MOST_LINE: usize = 1 << 14;

/// Most labels that are looked for before a row with other text before it.
const MOST_LABELS: usize = 256;

/// Consecutive rows without another line between them.
#[derive(Debug)]
pub(super) struct Region<'a> {
    pub(super) bytes: &'a [u8],
    /// Line of the first row, from 1.
    pub(super) line: u64,
    /// Whether it is one row of several lines.
    pub(super) in_lines: bool,
}

impl<'a> Region<'a> {
    pub(super) fn of(bytes: &'a [u8], line: u64) -> Region<'a> {
        Region {
            bytes,
            line,
            in_lines: false,
        }
    }
}

/// A header and its rows.
#[derive(Debug)]
pub(super) struct Table<'a> {
    pub(super) header: Region<'a>,
    pub(super) rows: Vec<Region<'a>>,
    /// What stands before the header in its line, without times: the label of a process (`[1,0]<stdout>:`).
    pub(super) label: Vec<u8>,
    /// Quotes in a row that is whole.
    quotes: usize,
}

/// What a console shows beside the program's own lines.
#[derive(Debug, Default)]
pub(super) struct Console<'a> {
    /// The tables in order.
    pub(super) tables: Vec<Table<'a>>,
    /// Lines that may be parts of rows.
    pub(super) parts: Vec<Region<'a>>,
    /// The error and warning lines of ncu, in order.
    pub(super) messages: Vec<String>,
    /// Whether ncu profiled while it printed, and did not only print a report.
    pub(super) is_of_run: bool,
    /// The number of the last launch that ncu says it profiled.
    pub(super) profiled: Option<u64>,
}

/// Finds the tables in `text`, and the lines of ncu.
pub(super) fn console(text: &[u8]) -> Result<Console<'_>, ReadError> {
    let mut found = Console::default();
    let mut lines = Lines {
        text,
        next: 0,
        line: 0,
    };
    // A header and each region take memory.
    let most = (text.len() / BYTES_PER_REGION).saturating_add(ANY_REGIONS);
    let mut regions = 0_usize;
    // The beginning of the region before this line, if other rows of its table may continue it.
    let mut open: Option<usize> = None;
    while let Some((start, line)) = lines.next() {
        let bytes = &text[start..lines.next];
        if regions > most {
            return Err(ReadError::line(
                line,
                format!("the rows up to here are interrupted more than {most} times"),
            ));
        }
        let Some((before, is_header)) = begin_of_row(bytes) else {
            open = None;
            found.other_line(bytes, line)?;
            continue;
        };
        let begin = start + before;
        if is_header {
            open = None;
            let header = without_end(&text[begin..lines.next]);
            found.tables.push(Table {
                header: Region::of(header, line),
                rows: Vec::new(),
                label: label(&text[start..begin]),
                quotes: count_quotes(header).min(2 * LEADING_CELLS),
            });
            continue;
        }
        let Some(table) = found.table_of(&text[start..begin]) else {
            continue;
        };
        if !lines.finish_record(begin, line, found.tables[table].quotes)? {
            open = None;
            regions = regions.saturating_add(1);
            if before > 0 {
                not_an_end(bytes, line)?;
            }
            found.parts.push(Region::of(&bytes[before..], line));
            continue;
        }
        let row = &text[begin..lines.next];
        let (whole, in_lines) = (without_end(row), lines.line > line);
        let rows = &mut found.tables[table].rows;
        let is_plain = before == 0 && whole.len() == row.len() && !in_lines;
        match (is_plain, open, rows.last_mut()) {
            (true, Some(begin), Some(region)) => region.bytes = &text[begin..lines.next],
            _ => {
                open = is_plain.then_some(start);
                regions = regions.saturating_add(1);
                rows.push(Region {
                    bytes: whole,
                    line,
                    in_lines,
                });
            }
        }
    }
    Ok(found)
}

impl<'a> Console<'a> {
    /// The index of the table that a row belongs to, by the text before it in its line: that of the
    /// last header with the same label, or of the last header.
    fn table_of(&self, before: &[u8]) -> Option<usize> {
        let last = self.tables.len().checked_sub(1)?;
        if before.is_empty() && self.tables[last].label.is_empty() {
            return Some(last);
        }
        let label = label(before);
        let labelled = self.tables.iter().enumerate().rev().take(MOST_LABELS);
        let same = labelled
            .filter(|(_, table)| label.starts_with(&table.label))
            .max_by_key(|(index, table)| (table.label.len(), *index));
        Some(same.map_or(last, |(index, _)| index))
    }

    /// Keeps what counts of a line that is neither a header nor a row.
    fn other_line(&mut self, bytes: &'a [u8], line: u64) -> Result<(), ReadError> {
        let signs = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'=');
        for (at, _) in signs {
            let message = bytes.get(at..).unwrap_or_default();
            self.is_of_run |= message.starts_with(b"==PROF== ");
            self.profiled = profiled(message).max(self.profiled);
            let is_kept =
                message.starts_with(b"==ERROR== ") || message.starts_with(b"==WARNING== ");
            if is_kept && self.messages.len() < MOST_TOLD {
                let message = message.get(..MOST_LINE).unwrap_or(message);
                let message = String::from_utf8_lossy(message);
                self.messages.push(message.trim_end().to_owned());
                break;
            }
        }
        if self.tables.is_empty() {
            return Ok(());
        }
        if !bytes.ends_with(b"\n") && begins_like_row(bytes) {
            return Err(ReadError::line(
                line, "the row that begins here is truncated",
            ));
        }
        not_an_end(bytes, line)
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
        let rest = &self.text[start..];
        if rest.is_empty() {
            return None;
        }
        self.next = start + memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        self.line = self.line.saturating_add(1);
        Some((start, self.line))
    }

    /// Adds lines until every quoted cell of the row is closed. False if it is no row, or only a part
    /// of one, because it has fewer quotes than a row of the table.
    fn finish_record(&mut self, start: usize, line: u64, least: usize) -> Result<bool, ReadError> {
        let first = &self.text[start..self.next];
        let mut quotes = count_quotes(first);
        if quotes < least && first.ends_with(b"\n") {
            return Ok(false);
        }
        let unclosed = || {
            ReadError::line(
                line,
                "a quoted cell of the row that begins here is not closed: the file is cut, or no CSV of ncu",
            )
        };
        while !quotes.is_multiple_of(2) {
            let (next, number) = self.next().ok_or_else(unclosed)?;
            let bytes = &self.text[next..self.next];
            if number.saturating_sub(line) >= MAX_RECORD_LINES || begin_of_row(bytes).is_some() {
                return Err(unclosed());
            }
            quotes += count_quotes(bytes);
        }
        Ok(true)
    }
}

/// Cells before the first metric: the ID up to the compute capability.
const LEADING_CELLS: usize = 11;

fn count_quotes(bytes: &[u8]) -> usize {
    memchr_iter(b'"', bytes).count()
}

/// Where in a line a header or a row begins, and whether it is a header. The program's text, or a label
/// of its process, may stand before it.
fn begin_of_row(line: &[u8]) -> Option<(usize, bool)> {
    // Most lines of a file are rows, and no row contains a header.
    if looks_like_row(line) || line.starts_with(UNITS) {
        return Some((0, false));
    }
    let quotes = line.iter().enumerate().filter(|(_, byte)| **byte == b'"');
    for (at, _) in quotes {
        let rest = &line[at..];
        if rest.starts_with(HEADER) {
            return Some((at, true));
        }
        if looks_like_row(rest) || rest.starts_with(UNITS_BEHIND_TEXT) {
            return Some((at, false));
        }
    }
    None
}

/// The number of a launch in a line such as `==PROF== Profiling "k" - 7 (8/9): 0%....50%`.
fn profiled(line: &[u8]) -> Option<u64> {
    let line = line.strip_prefix(b"==PROF== Profiling \"")?;
    let quote = line.iter().rposition(|&byte| byte == b'"')?;
    let number = line.get(quote..)?.strip_prefix(b"\" - ")?;
    let digits = number.split(|byte| !byte.is_ascii_digit()).next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A label without spaces, and without the times in it, which differ in each line.
fn label(before: &[u8]) -> Vec<u8> {
    let is_of_time = |byte: &u8| byte.is_ascii_digit() || b":.-+/TZ".contains(byte);
    let is_time = |run: &&[u8]| {
        let count = |these: &[u8]| run.iter().filter(|byte| these.contains(byte)).count();
        count(b":") >= 2 || count(b"-/") >= 2 && count(b"0123456789") >= 6
    };
    let runs = before.chunk_by(|a, b| is_of_time(a) == is_of_time(b));
    let label = runs.filter(|run| !is_time(run)).flatten();
    label
        .filter(|byte| !byte.is_ascii_whitespace())
        .copied()
        .collect()
}

/// A row or a header without the program's text behind its last cell.
fn without_end(row: &[u8]) -> &[u8] {
    let Some(quote) = row.iter().rposition(|&byte| byte == b'"') else {
        return row;
    };
    let end = row.get(quote + 1..).unwrap_or_default();
    // Empty cells at the end are not quoted.
    match end.iter().all(|byte| b",\r\n".contains(byte)) {
        true => row,
        false => row.get(..=quote).unwrap_or(row),
    }
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

/// Refuses a line that may be the end of a row that was cut in its first cells: it ends with cells,
/// among them a grid or a block.
fn not_an_end(line: &[u8], number: u64) -> Result<(), ReadError> {
    const BETWEEN: &[u8] = b"\",\"";
    const SIZE_END: &[u8] = b")\",\"";
    let text = line.trim_ascii_end();
    let between = text.windows(BETWEEN.len()).filter(|it| *it == BETWEEN);
    let mut ends = text.windows(1 + SIZE_END.len());
    let mut has_size = || ends.any(|it| it[0].is_ascii_digit() && it.ends_with(SIZE_END));
    match text.ends_with(b"\"") && between.count() >= 5 && has_size() {
        true => Err(ReadError::line(
            number,
            "the row that ends here is cut: its first cells are not before it",
        )),
        false => Ok(()),
    }
}
