//! The recordings of this repository, of which some are packed.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use ruzstd::decoding::StreamingDecoder;
use sparsek_gate::hash;

/// A folder with all that `recordings` contains, each `NAME.tar.zst` unpacked to `NAME`. It stays
/// below `into`, and the next call finds it there.
///
/// # Errors
/// [`io::Error`] if an archive cannot be read, or `into` cannot be written.
pub fn unpacked(recordings: &Path, into: &Path) -> io::Result<PathBuf> {
    let mut folders = Vec::new();
    let mut archives = Vec::new();
    for entry in fs::read_dir(recordings)? {
        let path = entry?.path();
        if path.is_dir() {
            folders.push(path);
        } else if path.extension().is_some_and(|ending| ending == "zst") {
            archives.push(fs::read(&path)?);
        }
    }
    archives.sort();
    let all = into.join(hash::sha256_hex(&archives.concat()));
    if all.exists() {
        return Ok(all);
    }
    fs::create_dir_all(into)?;
    let complete = tempfile::tempdir_in(into)?;
    for folder in folders {
        let name = folder.file_name().unwrap_or_default();
        symlink(&folder, complete.path().join(name))?;
    }
    for archive in archives {
        let content = StreamingDecoder::new(archive.as_slice()).map_err(io::Error::other)?;
        tar::Archive::new(content).unpack(complete.path())?;
    }
    // Two processes may unpack at the same time: the folder that is complete first stays.
    match fs::rename(complete.path(), &all) {
        Err(error) if !all.exists() => Err(error),
        _ => Ok(all),
    }
}
