//! Why a capture could not be read.

use std::path::PathBuf;

/// Why a report or a CSV page could not be read, and where.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file could not be opened or read.
    #[error("cannot read the file: {0}")]
    Io(#[from] std::io::Error),
    /// The file is larger than a capture can sensibly be.
    #[error("the file holds {bytes} bytes, the limit is {limit}")]
    TooLarge {
        /// Size of the file.
        bytes: u64,
        /// Largest size that is read.
        limit: u64,
    },
    /// An error in a named file.
    #[error("{}: {source}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// What went wrong in it.
        source: Box<ReadError>,
    },
    /// The bytes are something else than an `.ncu-rep` report.
    #[error("not an .ncu-rep report: expected the bytes \"NVR\\0\" at byte 0, found {found}")]
    NotAReport {
        /// What the bytes look like.
        found: String,
    },
    /// A report that is truncated or corrupt.
    #[error("byte {offset}: {problem}")]
    Report {
        /// Where in the file.
        offset: usize,
        /// What was expected and what was found.
        problem: String,
    },
    /// A CSV page that is truncated or corrupt.
    #[error("line {line}: {problem}")]
    Csv {
        /// Line in the file, from 1.
        line: u64,
        /// What was expected and what was found.
        problem: String,
    },
    /// Kernel records or event times that are truncated or corrupt.
    #[error("line {line}: {problem}")]
    Records {
        /// Line in the file, from 1; 0 where it is the end that is missing.
        line: u64,
        /// What was expected and what was found.
        problem: String,
    },
    /// The profiler ran and no launch matched its filters.
    #[error(
        "no kernels were profiled{}",
        listed("; the program launched: ", available)
    )]
    NoKernels {
        /// The kernels that the profiler says were there, as it spells them.
        available: Vec<String>,
    },
    /// The header of a CSV page is there and no launch follows it.
    #[error(
        "line {line}: no launch follows the CSV header{}",
        listed("; ncu said: ", messages)
    )]
    NoRows {
        /// Line of the header, from 1.
        line: u64,
        /// The profiler's own error lines, in order.
        messages: Vec<String>,
    },
    /// There is no CSV page in the text.
    #[error(
        "no CSV header of ncu (\"ID\",\"Process ID\",...) in the text, found {found}{}",
        listed("; ncu said: ", messages)
    )]
    NoHeader {
        /// What the text looks like.
        found: String,
        /// The profiler's own error lines, in order.
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
    pub(super) fn report(offset: usize, problem: impl Into<String>) -> ReadError {
        ReadError::Report {
            offset,
            problem: problem.into(),
        }
    }

    pub(super) fn csv(line: u64, problem: impl Into<String>) -> ReadError {
        ReadError::Csv {
            line,
            problem: problem.into(),
        }
    }

    /// The profiler's own error lines, where the error holds any.
    pub fn profiler_messages(&self) -> &[String] {
        match self {
            ReadError::NoHeader { messages, .. } | ReadError::NoRows { messages, .. } => messages,
            ReadError::InFile { source, .. } => source.profiler_messages(),
            _ => &[],
        }
    }
}

/// A few words on what `bytes` are, for a reader that expected something else.
pub(super) fn describe(bytes: &[u8]) -> String {
    let known: &[(&[u8], &str)] = &[
        (b"\x7fELF", "an ELF file (a program or a cubin)"),
        (b"\x1f\x8b", "a gzip archive"),
        (b"PK\x03\x04", "a zip archive"),
        (
            b"SQLite format 3",
            "an SQLite database (Nsight Systems exports those)",
        ),
        (b"NVR\0", "an .ncu-rep report"),
        (b"\"ID\",\"Process ID\"", "a CSV page of ncu"),
        (b"==PROF==", "the console output of ncu"),
        (b"==WARNING==", "the console output of ncu"),
        (b"==ERROR==", "the console output of ncu"),
    ];
    if bytes.is_empty() {
        return "an empty file".to_owned();
    }
    if let Some((_, what)) = known.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return (*what).to_owned();
    }
    let head = &bytes[..bytes.len().min(64)];
    let text = String::from_utf8_lossy(head);
    let first_line = text.lines().next().unwrap_or_default();
    if head
        .iter()
        .all(|&byte| byte >= b' ' || b"\t\r\n".contains(&byte))
    {
        return format!("a text that begins with {first_line:?}");
    }
    format!(
        "{} bytes that begin with {:02x?}",
        bytes.len(),
        &head[..head.len().min(8)]
    )
}
