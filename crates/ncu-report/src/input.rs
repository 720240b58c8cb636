//! Reads bytes or a file of either kind.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::Path;

use crate::error::ReadError;
use crate::limits::MAX_FILE_SIZE;
use crate::recording::Recording;
use crate::{csv, report};

/// Reads a report or CSV pages. The content decides which reader is used.
///
/// # Errors
/// [`ReadError`] with the byte offset or the line; see [`report::read`] and [`csv::read`].
///
/// ```
/// let empty_report = b"NVR\0\x02\0\0\0\x08\x07\0\0\0\0";
/// let recording = ncu_report::read(empty_report)?;
/// assert_eq!(recording.format_version, Some(7));
/// assert!(recording.launches.is_empty());
///
/// let error = ncu_report::read(&empty_report[..7]).unwrap_err();
/// assert!(error.to_string().starts_with("byte 4: "));
/// # Ok::<(), ncu_report::ReadError>(())
/// ```
pub fn read(bytes: &[u8]) -> Result<Recording, ReadError> {
    if report::ending(bytes).is_some() {
        report::read(bytes)
    } else {
        csv::read(bytes)
    }
}

/// Reads a file with a report or CSV pages, of at most [`MAX_FILE_SIZE`] bytes.
///
/// # Errors
/// [`ReadError::InFile`] with the path, around the error of [`read`], [`ReadError::TooLarge`], or
/// [`ReadError::Io`], also for a folder, a pipe or a device, which may not end.
///
/// ```no_run
/// let recording = ncu_report::read_file("gemm.ncu-rep")?;
/// for launch in &recording.launches {
///     println!("{} {:?}", launch.kernel.function, launch.number("gpu__time_duration.sum"));
/// }
/// # Ok::<(), ncu_report::ReadError>(())
/// ```
pub fn read_file(path: impl AsRef<Path>) -> Result<Recording, ReadError> {
    let path = path.as_ref();
    read_bounded(path, MAX_FILE_SIZE)
        .and_then(|bytes| read(&bytes))
        .map_err(|source| ReadError::InFile {
            path: path.to_owned(),
            source: Box::new(source),
        })
}

/// The bytes of a regular file, if it has at most `limit` of them.
fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    let is_file = |metadata: Metadata| match metadata.is_file() {
        true => Ok(metadata.len()),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        )),
    };
    // To open a pipe waits for the one who writes, so it is asked before.
    is_file(fs::metadata(path)?)?;
    let file = File::open(path)?;
    let stated = is_file(file.metadata()?)?;
    if stated > limit {
        return Err(ReadError::TooLarge {
            bytes: stated,
            limit,
        });
    }
    // The file may grow while it is read.
    let mut bytes = Vec::with_capacity(usize::try_from(stated).unwrap_or_default());
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(ReadError::TooLarge {
            bytes: bytes.len() as u64,
            limit,
        });
    }
    Ok(bytes)
}
