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
    /// A CSV page is truncated or corrupt.
    #[error("line {line}: {problem}")]
    Csv {
        /// Line of the file, from 1.
        line: u64,
        /// What was expected and what was found.
        problem: String,
    },
    /// A file of lines that another reader makes a [`Recording`](crate::Recording) of is truncated
    /// or corrupt.
    #[doc(hidden)]
    #[error("line {line}: {problem}")]
    Records {
        /// Line of the file, from 1; 0 where the end is missing.
        line: u64,
        /// What was expected and what was found.
        problem: String,
    },
    /// ncu reports that no launch matched its filters.
    #[error(
        "no kernels were profiled{}{}",
        listed("; ncu reported: ", messages),
        listed("; the program launched: ", available)
    )]
    NoKernels {
        /// The kernels that the program launched, in ncu's spelling.
        available: Vec<String>,
        /// The error lines of ncu, in order.
        messages: Vec<String>,
    },
    /// No launch follows the header of a CSV page.
    #[error(
        "line {line}: no launch follows the CSV header{}",
        listed("; ncu reported: ", messages)
    )]
    NoRows {
        /// Line of the header, from 1.
        line: u64,
        /// The error lines of ncu, in order.
        messages: Vec<String>,
    },
    /// The file is of another kind.
    #[error("it is {what}; {next}")]
    OtherFile {
        /// What it is.
        what: &'static str,
        /// What to do.
        next: &'static str,
    },
    /// There is no CSV page in the text.
    #[error(
        "no CSV header of ncu (\"ID\",\"Process ID\",...) in the text, found {found}{}",
        listed("; ncu reported: ", messages)
    )]
    NoHeader {
        /// What the text looks like.
        found: String,
        /// The error lines of ncu, in order.
        messages: Vec<String>,
    },
}

fn listed(lead: &str, items: &[String]) -> String {
    if items.is_empty() {
        String::new()
    } else {
        format!("{lead}{}", items.join("; "))
    }
}

impl ReadError {
    pub(crate) fn report(offset: usize, problem: impl Into<String>) -> ReadError {
        ReadError::Report {
            offset,
            problem: problem.into(),
        }
    }

    pub(crate) fn csv(line: u64, problem: impl Into<String>) -> ReadError {
        ReadError::Csv {
            line,
            problem: problem.into(),
        }
    }

    /// The error lines of ncu (`==ERROR== …`) that were in the text instead of a page.
    pub fn profiler_messages(&self) -> &[String] {
        match self {
            ReadError::NoHeader { messages, .. }
            | ReadError::NoRows { messages, .. }
            | ReadError::NoKernels { messages, .. } => messages,
            ReadError::InFile { source, .. } => source.profiler_messages(),
            _ => &[],
        }
    }
}
