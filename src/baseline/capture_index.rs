//! Captures below a folder, found by their hash.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::finding::Error;
use crate::hash::sha256_file;

/// The endings of captures' names.
const ENDINGS: [&str; 4] = ["ncu-rep", "csv", "records", "times"];

/// The captures in a folder by their sha256, wherever they were put.
#[derive(Debug, Default)]
pub struct CaptureIndex {
    by_hash: BTreeMap<String, PathBuf>,
    /// Names of those in the folder itself, which is where a profile's own captures are.
    beside: BTreeSet<String>,
}

impl CaptureIndex {
    /// Hashes every capture below a folder. A capture that cannot be read counts as missing.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn of(folder: &Path) -> Result<CaptureIndex, Error> {
        let mut index = CaptureIndex::default();
        index.add(folder)?;
        let beside = index.by_hash.values().filter_map(|path| {
            let is_beside = path.parent() == Some(folder);
            is_beside.then(|| path.file_name()?.to_str().map(str::to_owned))?
        });
        index.beside = beside.collect();
        Ok(index)
    }

    /// Adds the captures below another folder.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn add(&mut self, folder: &Path) -> Result<(), Error> {
        for entry in fs::read_dir(folder).map_err(Error::io("read", folder))? {
            let entry = entry.map_err(Error::io("read", folder))?;
            let path = entry.path();
            // Links to folders are not followed: they may form a cycle.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.add(&path)?;
            } else if path
                .extension()
                .is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known))
                && let Ok(hash) = sha256_file(&path)
            {
                self.by_hash.insert(hash, path);
            }
        }
        Ok(())
    }

    /// Where the capture of this hash is.
    pub(super) fn path_of(&self, sha256: &str) -> Option<&Path> {
        self.by_hash.get(sha256).map(PathBuf::as_path)
    }

    /// Whether a capture of this name is in the folder itself.
    pub(super) fn has_beside(&self, name: &str) -> bool {
        self.beside.contains(name)
    }
}
