//! Compressed reports (`.ncu-repz`): one Zstandard frame around a report.

use std::borrow::Cow;
use std::io::Read as _;

use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::file::MAGIC;
use crate::describe::{UNPACK, describe};
use crate::error::ReadError;
use crate::limits::MAX_FILE_SIZE;

/// The first bytes of a Zstandard frame.
const FRAME: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();

/// The most that a frame may ask its reader to remember, in bytes: what `zstd` itself allows.
const WINDOW: u64 = 128 << 20;

/// How many times its compressed size a report may have. Real reports have up to 53 times: the
/// launches of one kernel differ little.
const RATIO: u64 = 500;

/// The endings of the names of reports. The second one is that of compressed reports, which ncu writes
/// since 2026.3.
pub const ENDINGS: [&str; 2] = ["ncu-rep", "ncu-repz"];

/// Which of [`ENDINGS`] a file needs that begins as a report does; `None` of any other file. NVIDIA's
/// tools go by the ending. Other files that are compressed with Zstandard begin as a compressed report.
///
/// ```
/// use ncu_report::report;
///
/// let empty_report = b"NVR\0\x02\0\0\0\x08\x07\0\0\0\0";
/// assert_eq!(report::ending(empty_report), Some("ncu-rep"));
/// assert_eq!(report::ending(&report::compress(empty_report)), Some("ncu-repz"));
/// assert_eq!(report::ending(b"\"ID\",\"Process ID\""), None);
/// ```
pub fn ending(bytes: &[u8]) -> Option<&'static str> {
    let of_magic = [(&MAGIC[..], ENDINGS[0]), (&FRAME[..], ENDINGS[1])];
    let mut of_magic = of_magic.into_iter();
    let found = of_magic.find(|(magic, _)| bytes.starts_with(magic))?;
    Some(found.1)
}

/// A report as newer versions of ncu write it to a `.ncu-repz` file.
///
/// ```
/// # use ncu_report::report;
/// # let bytes = b"NVR\0\x02\0\0\0\x08\x07\0\0\0\0";
/// assert_eq!(report::read(&report::compress(bytes))?, report::read(bytes)?);
/// # Ok::<(), ncu_report::ReadError>(())
/// ```
pub fn compress(report: &[u8]) -> Vec<u8> {
    compress_to_vec(report, CompressionLevel::Fastest)
}

/// The report in a file, decompressed where it is compressed: up to [`MAX_FILE_SIZE`] bytes.
pub(super) fn plain(file: &[u8]) -> Result<Cow<'_, [u8]>, ReadError> {
    if !file.starts_with(&FRAME) {
        return Ok(Cow::Borrowed(file));
    }
    let damaged = |problem: String| ReadError::report(0, format!("a Zstandard frame: {problem}"));
    let mut frame = StreamingDecoder::new_with_max_window_size(file, WINDOW)
        .map_err(|error| damaged(error.to_string()))?;
    let stated = frame.decoder.content_size();
    let limit = (file.len() as u64).saturating_mul(RATIO).min(MAX_FILE_SIZE);
    let too_large = || damaged(format!("more than {limit} bytes, as no real report has"));
    // Of a file that is cut, the ratio of its sizes says nothing.
    if stated > MAX_FILE_SIZE {
        return Err(too_large());
    }
    let mut report = Vec::with_capacity(usize::try_from(stated.min(limit)).unwrap_or_default());
    let read = (&mut frame)
        .take(limit.saturating_add(1))
        .read_to_end(&mut report);
    // What else is compressed is named before its damage.
    if !report.starts_with(MAGIC) && !report.is_empty() {
        return Err(ReadError::NotAReport {
            found: format!("a Zstandard frame around {}; {UNPACK}", describe(&report)),
        });
    }
    read.map_err(|error| {
        damaged(format!(
            "it is cut or damaged ({error}); copy the file again"
        ))
    })?;
    let size = report.len() as u64;
    if size > limit {
        return Err(too_large());
    }
    if stated != 0 && size != stated {
        return Err(damaged(format!("it states {stated} bytes and has {size}")));
    }
    match frame.into_inner().len() {
        0 => Ok(Cow::Owned(report)),
        left => Err(damaged(format!("{left} bytes follow it"))),
    }
}
