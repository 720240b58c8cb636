//! The change that is judged, beside the base.

use std::collections::BTreeMap;
use std::path::Path;

use super::consent::Consent;
use super::place::{inside, unreadable};
use super::root::Root;
use crate::baseline::Store;
use crate::config::Config;
use crate::disk;
use crate::files::is_below;
use crate::finding::Error;
use crate::git::{self, TreeEntry, short};

/// A change, and what it is judged by.
pub(super) struct ChangeUnderReview<'a> {
    /// The folder of the project in its repository, `a/b/`; empty at the top.
    pub place: String,
    /// Its project, as it is judged.
    pub head: &'a Config,
    /// The revision whose rules count.
    pub root: &'a Root,
    /// What was accepted from outside.
    pub consent: &'a Consent,
}

impl ChangeUnderReview<'_> {
    /// The revision, for people.
    pub(super) fn revision(&self) -> String {
        format!("{} ({})", short(&self.root.commit), self.root.found_by)
    }

    /// A path of the project, from the top of the repository.
    pub(super) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.place)
    }

    /// The folder of its baselines, from the top of the repository.
    pub(super) fn baselines(&self) -> String {
        self.at(&inside(&self.head.root, &self.head.baselines))
    }

    /// What the base has at a path of the project, and below it.
    pub(super) fn files(&self, path: &str) -> Result<BTreeMap<String, TreeEntry>, Error> {
        let path = self.at(path);
        git::files_at(&self.head.root, &self.root.commit, &path).map_err(unreadable)
    }

    /// What the base has at a path of the project.
    pub(super) fn file(&self, path: &str) -> Result<Option<TreeEntry>, Error> {
        Ok(self.files(path)?.remove(&self.at(path)))
    }

    /// The base's baselines, as files below a folder, and whether all of them are files.
    pub(super) fn store(&self, baselines: &Path, snapshot: &Path) -> Result<(Store, bool), Error> {
        let below = inside(&self.head.root, baselines);
        let whole = self.at(&below);
        let folder = snapshot.join("baselines");
        let mut all_files = true;
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
                _ => {
                    all_files = false;
                    continue;
                }
            };
            if is_below(rest) {
                write(&folder.join(rest), &bytes)?;
            }
        }
        Ok((Store::open(&folder)?, all_files))
    }
}

/// Writes a file of a snapshot, with its folders.
///
/// # Errors
/// [`Error::Io`].
fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(path);
    disk::create_dir_all(folder).map_err(Error::io("create", folder))?;
    disk::write(path, bytes).map_err(Error::io("write", path))
}

/// The name of the configuration in its folder.
pub(super) fn config_name(config: &Config) -> String {
    config
        .path
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
