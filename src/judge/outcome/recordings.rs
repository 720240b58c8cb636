//! Where recorded profiles are: in one folder, or in those of several slices.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::disk;
use crate::files::is_below;
use crate::hash::sha256_file;
use crate::terms::VariantId;

/// Recorded profiles, and what reports call their place.
#[derive(Debug, Default)]
pub struct Recordings {
    /// What reports call it.
    pub shown: PathBuf,
    /// The folder with the profiles of each variant; `None` where all are in `shown`.
    pub folders: Option<BTreeMap<VariantId, PathBuf>>,
    /// Whether machines measured them for this check, so that a variant of which a finding says why
    /// it was not measured need not have a profile.
    pub measured: bool,
    /// The commit that each variant was measured beside, where one is known.
    pub base: Option<String>,
    /// Where an archive supplies the rules: the base that is in it, if there is one. Git is not asked
    /// then.
    pub packed_base: Option<Option<PackedBase>>,
}

/// The base that an archive has.
#[derive(Clone, Debug)]
pub struct PackedBase {
    /// The folder of its project; `None` where it has none.
    pub root: Option<PathBuf>,
}

impl PackedBase {
    /// Sources that differ from those that a profile says that it was made of.
    pub(in crate::judge) fn unlike<'s>(
        &self,
        stated: &'s BTreeMap<String, String>,
    ) -> Vec<&'s str> {
        let Some(root) = &self.root else {
            return stated.keys().map(String::as_str).collect();
        };
        let stated = stated.iter().filter(|(path, _)| is_below(path));
        let unlike = stated.filter(|(path, sha256)| {
            let path = root.join(path);
            disk::is_file(&path) && !sha256_file(&path).is_ok_and(|now| now == **sha256)
        });
        unlike.map(|(path, _)| path.as_str()).collect()
    }
}

impl Recordings {
    /// The folder that has the profiles of a variant; `None` where nobody brought them.
    pub(in crate::judge) fn of(&self, variant: &VariantId) -> Option<&Path> {
        match &self.folders {
            None => Some(&self.shown),
            Some(folders) => folders.get(variant).map(PathBuf::as_path),
        }
    }

    /// Every folder that is read.
    pub(in crate::judge) fn all(&self) -> Vec<&Path> {
        let folders = self.folders.iter().flat_map(BTreeMap::values);
        let mut all: Vec<&Path> = folders.map(PathBuf::as_path).collect();
        all.sort_unstable();
        all.dedup();
        // A folder of another machine may not exist here.
        if disk::is_dir(&self.shown) {
            all.insert(0, &self.shown);
        }
        all
    }
}
