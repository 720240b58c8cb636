//! The files in the folder of a variant.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::disk;
use crate::files;

/// What the folder of a variant may have at most.
mod most {
    /// Files.
    pub const FILES: usize = 20_000;
    /// Folders inside of one another.
    pub const DEPTH: usize = 8;
    /// Bytes of all files together: 64 GiB.
    pub const BYTES: u64 = 64 << 30;
}

/// The regular files below a folder by their paths from there, with `/` between the parts, but for the
/// record of its variant.
///
/// # Errors
/// In words, where there is anything else, too much, or it cannot be read.
pub(super) fn listed(folder: &Path) -> Result<BTreeMap<String, PathBuf>, String> {
    let mut found = BTreeMap::new();
    let mut bytes = 0;
    list(folder, "", 0, &mut found, &mut bytes)?;
    Ok(found)
}

fn list(
    folder: &Path,
    place: &str,
    depth: usize,
    found: &mut BTreeMap<String, PathBuf>,
    bytes: &mut u64,
) -> Result<(), String> {
    if depth > most::DEPTH {
        return Err(format!("`{place}` is deeper than {} folders", most::DEPTH));
    }
    let unreadable = |error: std::io::Error| format!("`{place}` cannot be read: {error}");
    for entry in disk::read_dir(folder).map_err(unreadable)? {
        let name = entry.name().to_str();
        let name = name.ok_or_else(|| format!("`{place}` has a file whose name is not UTF-8"))?;
        let below = match place {
            "" => name.to_owned(),
            place => format!("{place}/{name}"),
        };
        if entry.is_dir() && name.starts_with(".earlier") {
            // Its files would be read in the place of those that are named.
            return Err(format!("`{below}` was added to it"));
        } else if entry.is_dir() {
            list(&entry.path, &below, depth + 1, found, bytes)?;
        } else if entry.is_file() && below == files::VARIANT_FILE {
            continue;
        } else if entry.is_file() {
            let size = disk::symlink_metadata(&entry.path)
                .map_err(unreadable)?
                .len();
            *bytes = bytes.saturating_add(size);
            if size > files::most::BINARY || *bytes > most::BYTES {
                return Err(format!("`{below}` makes it too large"));
            }
            if found.len() == most::FILES {
                return Err(format!("it has more than {} files", most::FILES));
            }
            found.insert(below, entry.path);
        } else {
            return Err(format!("`{below}` is neither a file nor a folder"));
        }
    }
    Ok(())
}
