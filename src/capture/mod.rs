//! What one profiling run left, and the two readers of it.
//!
//! [`report`] decodes the report file at full precision, [`csv`] reads the pages that
//! `ncu --csv` prints. Both give a [`Recording`], as [`kernel_records`] does of times alone, under the
//! name of ncu's counter. A value that was not measured is absent, and never zero. [`read_file`] distinguishes the
//! files by content.

pub mod kernel_records;
mod span;
mod tuning;

use std::io::ErrorKind;
use std::path::Path;

use ncu_report::{ReadError, Recording, csv, report};

use crate::disk;
use crate::files::{most, read_regular_up_to};
use crate::terms::{Tier, spelled};
pub use span::Span;
pub use tuning::{Tuned, tuned};

spelled! {
    /// Which reader a file needs.
    Format {
        /// The binary `.ncu-rep` report, also compressed (`.ncu-repz`).
        Report = "ncu-rep",
        /// A CSV page, with or without the profiler's and the program's own lines around it.
        Csv = "csv",
        /// Kernel records, see [`kernel_records`].
        KernelRecords = "kernel-records",
    }
}

impl Format {
    /// The tier of measurement that leaves such files.
    pub fn tier(self) -> Tier {
        match self {
            Format::Report | Format::Csv => Tier::Counters,
            Format::KernelRecords => Tier::KernelTimes,
        }
    }
}

/// Reads a report, a CSV page or kernel records; the content says which it is.
///
/// # Errors
/// [`ReadError::InFile`] with the path, around whatever was wrong with the file.
pub fn read_file(path: impl AsRef<Path>) -> Result<(Format, Recording), ReadError> {
    let path = path.as_ref();
    read_regular_up_to(path, most::BINARY)
        .map_err(|error| match error.kind() {
            ErrorKind::FileTooLarge => ReadError::TooLarge {
                bytes: disk::metadata(path).map_or(0, |meta| meta.len()),
                limit: most::BINARY,
            },
            _ => ReadError::Io(error),
        })
        .map_err(|source| in_file(path, source))
        .and_then(|bytes| read_bytes(path, &bytes))
}

/// The same with the bytes of the file. `path` is for the error.
///
/// # Errors
/// As [`read_file`].
pub fn read_bytes(path: &Path, bytes: &[u8]) -> Result<(Format, Recording), ReadError> {
    let (format, recording) = if report::ending(bytes).is_some() {
        (Format::Report, report::read(bytes))
    } else if bytes.starts_with(kernel_records::MAGIC) {
        (Format::KernelRecords, kernel_records::read(bytes))
    } else {
        (Format::Csv, csv::read(bytes))
    };
    let recording = recording.map_err(|source| in_file(path, source))?;
    Ok((format, recording))
}

fn in_file(path: &Path, source: ReadError) -> ReadError {
    ReadError::InFile {
        path: path.to_owned(),
        source: Box::new(source),
    }
}
