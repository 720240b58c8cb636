//! The reader of the CSV pages `raw` and `details`, which `ncu --csv` prints.
//!
//! The raw page is wide: a header, a row of units, and one row for each launch. The details page is
//! long: one row for each metric, and rows of rules. Lines of ncu and of the program may surround
//! both.

mod cell;
mod details;
mod header;
mod marks;
mod numbers;
mod raw;
mod reading;
mod row;
mod strip;
mod tables;

use std::borrow::Cow;

use crate::describe::{describe, known};
use crate::error::ReadError;
use crate::recording::Recording;
use header::Header;
use numbers::Numbers;
use reading::Reading;
use row::OtherRows;
pub use strip::strip;
use tables::{Console, MOST_LINE, MOST_TOLD, Table};

/// Reads raw or details pages from the console output of ncu. The header decides which page it is.
///
/// Values are converted to base units by the page's own units. A value in an unknown unit keeps its
/// printed number, and its unit is [`Unit::Unknown`](crate::Unit::Unknown).
///
/// # Errors
/// [`ReadError::OtherFile`] or [`ReadError::NoPage`] if there is no CSV page, also where ncu reports that
/// no kernel was profiled; [`ReadError::Line`] with the line for a truncated or corrupt page, one without
/// launches or that lacks launches of a run, and numbers of an unknown locale.
///
/// ```
/// let page = r#"==PROF== Connected to process 7 (/home/ada/gemm)
/// "ID","Process ID","Process Name","Host Name","Kernel Name","CC","gpu__time_duration.sum"
/// "","","","","","","us"
/// "0","7","gemm","127.0.0.1","gemm(float *)","9.0","12.224000"
/// "#;
/// let recording = ncu_report::csv::read(page.as_bytes())?;
/// let launch = &recording.launches[0];
/// assert_eq!(launch.kernel.function, "gemm");
/// let duration = &launch.metrics["gpu__time_duration.sum"];
/// assert_eq!((duration.value.number(), duration.unit.symbol()), (Some(12_224.0), Some("ns")));
/// # Ok::<(), ncu_report::ReadError>(())
/// ```
pub fn read(bytes: &[u8]) -> Result<Recording, ReadError> {
    let text = utf8(bytes);
    let console = tables::console(&text)?;
    let mut reading = Reading::of_text(text.len());
    let mut others = OtherRows::new();
    for table in &console.tables {
        let header = Header::read(&table.header, &mut others)?;
        reading.begin();
        read_table(&header, table, &mut reading, &mut others)?;
        if let Some(locale) = reading.numbers.locale()? {
            reading.restart(Numbers::of(locale));
            read_table(&header, table, &mut reading, &mut others)?;
        }
        reading.end(&table.label);
    }
    if reading.launches.is_empty() {
        return Err(nothing(&text, console));
    }
    for part in &console.parts {
        if reading.has_process(&process_of(part.bytes)) {
            return Err(ReadError::line(
                part.line,
                "the row that begins here is cut: it has only its first cells",
            ));
        }
    }
    let gap = reading.gap(console.is_of_run, console.profiled);
    let gap = gap.map(|(line, problem)| ReadError::line(line, problem));
    reading.none_twice()?;
    match gap {
        Some(gap) if console.is_of_run => Err(gap),
        gap => Ok(Recording {
            messages: console.messages,
            gap: gap.map(|gap| gap.to_string()),
            ..reading.finish()
        }),
    }
}

fn read_table<'a>(
    header: &Header,
    table: &Table<'a>,
    reading: &mut Reading,
    others: &mut OtherRows,
) -> Result<(), ReadError> {
    match header.details {
        Some(columns) => details::read(header, columns, table, reading, others),
        None => raw::read(header, table, reading, others),
    }
}

/// A text in UTF-8 without a byte order mark, as [`read`] reads it. PowerShell writes what it redirects
/// as UTF-16.
pub fn utf8(bytes: &[u8]) -> Cow<'_, [u8]> {
    let (rest, is_little) = match bytes {
        [0xff, 0xfe, rest @ ..] => (rest, true),
        [0xfe, 0xff, rest @ ..] => (rest, false),
        [b'"' | b'=', 0, ..] => (bytes, true),
        [0, b'"' | b'=', ..] => (bytes, false),
        [0xef, 0xbb, 0xbf, rest @ ..] => return Cow::Borrowed(rest),
        _ => return Cow::Borrowed(bytes),
    };
    let (units, _) = rest.as_chunks();
    let unit = |bytes: &[u8; 2]| match is_little {
        true => u16::from_le_bytes(*bytes),
        false => u16::from_be_bytes(*bytes),
    };
    let letters = char::decode_utf16(units.iter().map(unit));
    let mut text = String::with_capacity(units.len());
    text.extend(letters.map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)));
    Cow::Owned(text.into_bytes())
}

/// The cells that name the process in the beginning of a row: its ID, its name, its host.
fn process_of(part: &[u8]) -> Vec<&[u8]> {
    let mut cells = Vec::new();
    let mut rest = part.strip_prefix(b"\"").unwrap_or(part);
    while let Some(end) = rest.iter().position(|&byte| byte == b'"')
        && cells.len() < 4
    {
        cells.push(&rest[..end]);
        match rest[end..].strip_prefix(b"\",\"") {
            Some(next) => rest = next,
            None => break,
        }
    }
    // The first is the ID of the launch.
    cells.split_off(1.min(cells.len()))
}

/// The cells of each row of a text, as [`read`] splits them. For comparisons with another reader.
///
/// # Errors
/// [`ReadError::Line`].
#[doc(hidden)]
pub fn cells(text: &[u8]) -> Result<Vec<Vec<Vec<u8>>>, ReadError> {
    let region = tables::Region::of(text, 1);
    let mut rows = Vec::new();
    row::for_each_row(&region, &mut row::OtherRows::new(), |row| {
        rows.push(row.cells().map(<[u8]>::to_vec).collect());
        Ok(())
    })?;
    Ok(rows)
}

/// Why there is no launch in the text.
fn nothing(text: &[u8], console: Console<'_>) -> ReadError {
    let listed = |lead: &str, items: Vec<String>| match items.is_empty() {
        true => String::new(),
        false => format!("{lead}{}", items.join("; ")),
    };
    let messages = console.messages.iter();
    let errors = messages.filter_map(|message| message.strip_prefix("==ERROR== "));
    let reported = listed("; ncu reported: ", errors.map(str::to_owned).collect());
    let was_nothing = |message: &String| message.contains(NOTHING);
    if console.messages.iter().any(was_nothing) {
        let launched = listed("; the program launched: ", available_kernels(text));
        return ReadError::NoPage(format!("no kernels were profiled{reported}{launched}"));
    }
    match (console.tables.first(), known(text)) {
        (Some(table), _) => ReadError::line(
            table.header.line,
            format!("no launch follows the CSV header{reported}"),
        ),
        (None, Some((what, next))) => ReadError::OtherFile(format!("it is {what}; {next}")),
        (None, None) => {
            let found = describe(text);
            let why = format!(
                "no CSV header of ncu (\"ID\",\"Process ID\",...) in the text, found {found}{reported}"
            );
            match reported.is_empty() {
                true => ReadError::OtherFile(format!(
                    "{why}; name a `.ncu-rep` of ncu, or a CSV page of it (`--csv --page raw`)"
                )),
                false => ReadError::NoPage(why),
            }
        }
    }
}

/// What ncu reports where no launch matched its filters.
const NOTHING: &str = "No kernels were profiled";

/// The numbered list of the kernels that ncu did not profile: `1. k1`.
fn available_kernels(text: &[u8]) -> Vec<String> {
    let lines = text.split(|&byte| byte == b'\n');
    let lines = lines.map(|line| String::from_utf8_lossy(line.get(..MOST_LINE).unwrap_or(line)));
    let listed = lines.skip_while(|line| !line.contains(NOTHING));
    let kernels = listed.filter_map(|line| {
        let (number, kernel) = line.trim().split_once(". ")?;
        number.parse::<u32>().ok()?;
        Some(kernel.to_owned())
    });
    kernels.take(MOST_TOLD).collect()
}
