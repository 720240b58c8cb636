//! sha256, in hex.

use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::files::open_regular;

/// The sha256 of bytes.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The sha256 of a regular file, read in pieces.
///
/// # Errors
/// Where the file cannot be read, or is a device or a pipe.
pub fn sha256_file(path: &Path) -> io::Result<String> {
    let mut file = open_regular(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 128 * 1024];
    loop {
        let count = io::Read::read(&mut file, &mut buffer)?;
        if count == 0 {
            return Ok(hex(&hasher.finalize()));
        }
        hasher.update(&buffer[..count]);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_no_sha256() {
        assert!(sha256_file(Path::new("/dev/null")).is_err());
        assert!(sha256_file(Path::new(".")).is_err());
    }
}
