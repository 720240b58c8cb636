//! Why a file could not be read.

use std::path::PathBuf;

/// Why a report or a CSV page could not be read, and where.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file could not be opened or read.
    #[error("cannot read the file: {0}")]
    Io(#[from] std::io::Error),
    /// The file is larger than the limit.
    #[error("the file has {bytes} bytes, the limit is {limit}")]
    TooLarge {
        /// Size of the file, in bytes.
        bytes: u64,
        /// Size of the largest file that is read, in bytes.
        limit: u64,
    },
    /// An error in a named file.
    #[error("{}: {source}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// The error in it.
        source: Box<ReadError>,
    },
    /// The file is no `.ncu-rep` report.
    #[error("not an .ncu-rep report: expected the bytes \"NVR\\0\" at byte 0, found {found}")]
    NotAReport {
        /// What the file looks like.
        found: String,
    },
    /// A report is truncated or corrupt.
    #[error("byte {offset}: {problem}")]
    Report {
        /// Offset in the file, in bytes.
        offset: usize,
        /// What was expected and what was found.
        problem: String,
    },
    /// A CSV page, or another file of lines, is truncated or corrupt.
    #[error("line {line}: {problem}")]
    Line {
        /// Line of the file, from 1; 0 where the end is missing.
        line: u64,
        /// What was expected and what was found.
        problem: String,
    },
    /// The file is of another kind: what it is, and what to do.
    #[error("{0}")]
    OtherFile(String),
    /// There is no CSV page in the text: why, with the error lines of ncu.
    #[error("{0}")]
    NoPage(String),
}

impl ReadError {
    pub(crate) fn report(offset: usize, problem: impl Into<String>) -> ReadError {
        ReadError::Report {
            offset,
            problem: problem.into(),
        }
    }

    /// An error in a line.
    #[doc(hidden)]
    pub fn line(line: u64, problem: impl Into<String>) -> ReadError {
        ReadError::Line {
            line,
            problem: problem.into(),
        }
    }
}
