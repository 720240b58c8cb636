//! The reader of the CSV pages `raw` and `details`, which `ncu --csv` prints.
//!
//! The raw page is wide: a header, a row of units, and one row for each launch. The details page is
//! long: one row for each metric, and rows of rules. Lines of ncu and of the program may surround
//! both.

mod cell;
mod details;
mod header;
mod raw;
mod reading;
mod row;
mod tables;

use crate::describe::describe;
use crate::error::ReadError;
use crate::recording::Recording;
use header::Header;
use reading::Reading;
use row::OtherRows;
use tables::Table;

/// Reads raw or details pages from the console output of ncu. The header decides which page it is.
///
/// Values are converted to base units by the page's own units. A value in an unknown unit keeps its
/// printed number, and its unit is [`Unit::Unknown`](crate::Unit::Unknown).
///
/// # Errors
/// [`ReadError::NoKernels`] if ncu reports that no kernel was profiled; [`ReadError::NoHeader`] if
/// there is no CSV page; [`ReadError::NoRows`] if no launch follows the header;
/// [`ReadError::Csv`] with the line for a truncated or corrupt page.
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
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let tables = tables::tables(bytes)?;
    let mut reading = Reading::of_text(bytes.len());
    let mut others = OtherRows::new();
    for table in &tables {
        let header = Header::read(&table.header, &mut others)?;
        match header.details {
            Some(columns) => details::read(&header, columns, table, &mut reading, &mut others)?,
            None => raw::read(&header, table, &mut reading, &mut others)?,
        }
    }
    if reading.launches.is_empty() {
        return Err(nothing(bytes, tables.first()));
    }
    Ok(reading.finish())
}

/// The cells of each row of a text, as [`read`] splits them. For comparisons with another reader.
///
/// # Errors
/// [`ReadError::Csv`].
#[doc(hidden)]
pub fn cells(text: &[u8]) -> Result<Vec<Vec<Vec<u8>>>, ReadError> {
    let region = tables::Region {
        bytes: text,
        line: 1,
    };
    let mut rows = Vec::new();
    row::for_each_row(&region, &mut row::OtherRows::new(), |row| {
        rows.push(row.cells().map(<[u8]>::to_vec).collect());
        Ok(())
    })?;
    Ok(rows)
}

/// Why there is no launch in the text.
fn nothing(bytes: &[u8], table: Option<&Table<'_>>) -> ReadError {
    let mut available = None;
    let mut messages = Vec::new();
    for line in bytes.split(|&byte| byte == b'\n') {
        if available.is_none() && contains(line, b"==WARNING== No kernels were profiled") {
            available = Some(Vec::new());
        }
        let line = String::from_utf8_lossy(line.get(..MOST_LINE).unwrap_or(line));
        if let Some(kernels) = &mut available {
            // A numbered list: `1. k1`.
            if let Some((number, kernel)) = line.trim().split_once(". ")
                && number.parse::<u32>().is_ok()
                && kernels.len() < MOST_TOLD
            {
                kernels.push(kernel.to_owned());
            }
        } else if let Some((_, message)) = line.split_once("==ERROR== ")
            && messages.len() < MOST_TOLD
        {
            messages.push(message.trim_end().to_owned());
        }
    }
    if let Some(available) = available {
        return ReadError::NoKernels { available };
    }
    match table {
        Some(table) => ReadError::NoRows {
            line: table.header.line,
            messages,
        },
        None => ReadError::NoHeader {
            found: describe(bytes),
            messages,
        },
    }
}

/// Most kernels or messages that an error repeats, and most bytes of each.
const MOST_TOLD: usize = 1000;
const MOST_LINE: usize = 1 << 14;

fn contains(line: &[u8], text: &[u8]) -> bool {
    line.windows(text.len()).any(|window| window == text)
}
