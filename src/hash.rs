//! sha256, in hex.

use std::io;
use std::path::Path;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::files::open_regular;

/// The pieces that a file is read in, in bytes.
const SMALLEST_PIECE: usize = 4 * 1024;
const LARGEST_PIECE: usize = 128 * 1024;

/// The largest file that is hashed, in bytes: a program can make one of any size, which takes no room,
/// in a moment.
const LARGEST_FILE: u64 = 16 << 30;

/// The sha256 of bytes.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The sha256 of a value, serialized.
///
/// # Errors
/// In words, why it cannot be serialized.
pub fn sha256_of(value: &impl Serialize) -> Result<String, String> {
    let text = serde_json::to_vec(value).map_err(|error| error.to_string())?;
    Ok(sha256_hex(&text))
}

/// The sha256 of a regular file, read in pieces.
///
/// # Errors
/// Where the file cannot be read, is a device or a pipe, or is larger than 16 GiB.
pub fn sha256_file(path: &Path) -> io::Result<String> {
    let mut file = open_regular(path)?;
    let len = file.metadata()?.len();
    if len > LARGEST_FILE {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut hasher = Sha256::new();
    // Most files are small sources. A buffer of the largest size costs more than their hash.
    let stated = usize::try_from(len).unwrap_or(usize::MAX);
    let mut file = io::Read::take(&mut file, LARGEST_FILE);
    let mut buffer = vec![0; stated.clamp(SMALLEST_PIECE, LARGEST_PIECE)];
    loop {
        let count = io::Read::read(&mut file, &mut buffer)?;
        if count == 0 {
            return Ok(hex(&hasher.finalize()));
        }
        hasher.update(&buffer[..count]);
    }
}

/// Passes bytes on, and takes their sha256.
pub struct Hashing<T> {
    inner: T,
    hasher: Sha256,
}

impl<T> Hashing<T> {
    /// Around a reader or a writer.
    pub fn new(inner: T) -> Hashing<T> {
        Hashing {
            inner,
            hasher: Sha256::new(),
        }
    }

    /// The sha256 of all that passed.
    pub fn sha256(self) -> String {
        hex(&self.hasher.finalize())
    }
}

impl<R: io::Read> io::Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        Ok(count)
    }
}

impl<W: io::Write> io::Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn a_device_has_no_sha256() {
        assert!(sha256_file(Path::new("/dev/null")).is_err());
        assert!(sha256_file(Path::new(".")).is_err());
    }

    #[test]
    fn a_file_that_takes_no_room_and_has_a_terabyte_is_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 40).unwrap();
        let error = sha256_file(file.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn values_that_print_alike_have_different_hashes() {
        let of = |bytes: &[u8]| sha256_of(&OsString::from_vec(bytes.to_vec())).unwrap();
        let texts: [&[u8]; 5] = [
            b"\xff",
            b"\xfe",
            b"\\xff",
            "\u{fffd}".as_bytes(),
            b"\"\\xff\"",
        ];
        let hashes: BTreeSet<String> = texts.into_iter().map(of).collect();
        assert_eq!(hashes.len(), texts.len());
        assert!(sha256_of(&Path::new(&OsString::from_vec(b"\xff".to_vec()))).is_err());
    }

    #[test]
    fn a_file_has_the_hash_of_its_bytes_whatever_its_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for size in [
            0,
            1,
            SMALLEST_PIECE,
            SMALLEST_PIECE + 1,
            LARGEST_PIECE,
            3 * LARGEST_PIECE + 7,
        ] {
            let bytes: Vec<u8> = (0..size).map(|index| (index % 251) as u8).collect();
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(sha256_file(&path).unwrap(), sha256_hex(&bytes), "{size}");
        }
        // Its size is stated as 0.
        let status = std::fs::read("/proc/version").unwrap();
        assert_eq!(
            sha256_file(Path::new("/proc/version")).unwrap(),
            sha256_hex(&status)
        );
    }
}
