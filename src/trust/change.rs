//! The change that is judged, beside the base.

use std::collections::BTreeMap;

use super::authority::Authority;
use super::consent::Consent;
use super::place::{Place, unreadable};
use super::root::Root;
use crate::config::Config;
use crate::finding::Error;
use crate::git::{self, TreeEntry};

/// A change, and what it is judged by.
pub(super) struct ChangeUnderReview<'a> {
    /// The folder of the project.
    pub place: Place,
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
        let commit: String = self.root.commit.chars().take(10).collect();
        format!("{commit} ({})", self.root.found_by)
    }

    /// What the base has at a path of the project, and below it.
    pub(super) fn files(&self, path: &str) -> Result<BTreeMap<String, TreeEntry>, Error> {
        let path = self.place.join(path);
        git::files_at(&self.head.root, &self.root.commit, &path).map_err(unreadable)
    }

    /// What the base has at a path of the project.
    pub(super) fn file(&self, path: &str) -> Result<Option<TreeEntry>, Error> {
        Ok(self.files(path)?.remove(&self.place.join(path)))
    }

    /// Whose rules count.
    pub(super) fn authority(&self) -> Authority {
        Authority::Revision {
            commit: self.root.commit.clone(),
            found_by: self.root.found_by.clone(),
        }
    }
}

/// The name of the configuration in its folder.
pub(super) fn config_name(config: &Config) -> String {
    config
        .path
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
