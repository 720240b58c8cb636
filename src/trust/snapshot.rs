//! The base's baselines, as files of a folder.

use std::path::{Component, Path};

use super::change::ChangeUnderReview;
use super::locks;
use super::place::inside;
use crate::baseline::Store;
use crate::finding::Error;
use crate::git::TreeEntry;

impl ChangeUnderReview<'_> {
    /// The base's baselines, as files below a folder.
    pub(super) fn store(&self, baselines: &Path, snapshot: &Path) -> Result<Store, Error> {
        let below = inside(&self.head.root, baselines);
        let whole = self.place.join(&below);
        let folder = snapshot.join("baselines");
        for (path, entry) in self.files(&below)? {
            let rest = path.strip_prefix(&whole).unwrap_or(&path);
            let rest = Path::new(rest.trim_start_matches('/'));
            let bytes = match entry {
                TreeEntry::File(bytes) if rest != Path::new("") => bytes,
                _ if rest == Path::new("") => {
                    return Err(Error::Baseline(format!(
                        "`{below}` is not a folder at {}: commit the baselines themselves there",
                        self.revision()
                    )));
                }
                // A lock that is a link counts as missing, and is reported as missing.
                _ => continue,
            };
            if rest
                .components()
                .all(|part| matches!(part, Component::Normal(_)))
            {
                locks::write(&folder.join(rest), &bytes)?;
            }
        }
        Store::open(&folder)
    }
}
