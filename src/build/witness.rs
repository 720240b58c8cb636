//! Whether the files of a variant are the same after its last process as they were when it was
//! built. A program under test runs with the rights to write them.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::artifact::Artifact;
use crate::config::Variant;
use crate::disk;
use crate::finding::{Code, Finding};
use crate::git;

/// The files that a variant was made of, and the program, as they are before it runs.
#[derive(Clone, Debug)]
pub struct Witness {
    /// Messages name files as they are seen from here.
    root: PathBuf,
    /// Of each the sha256 of what was built, and what a change leaves, even if the content is restored;
    /// `None` where there was no file.
    files: BTreeMap<PathBuf, (String, Option<Stamp>)>,
}

/// When the content, name or mode last changed, device and inode: `touch` cannot set these back.
pub(super) type Stamp = ((i64, i64), u64, u64);

impl Witness {
    /// Looks at the sources, inputs and programs of an artifact. `root` is the folder of the
    /// configuration.
    pub fn of(root: &Path, artifact: &Artifact) -> Witness {
        let sources = artifact.sources.iter();
        let sources = sources.map(|(name, sha256)| (root.join(name), sha256));
        let programs = artifact.programs.iter();
        let programs = programs.map(|(path, sha256)| (path.clone(), sha256));
        let files = sources.chain(programs).map(|(path, sha256)| {
            let seen = (sha256.clone(), stamp(&path).ok());
            (path, seen)
        });
        Witness {
            root: root.to_path_buf(),
            files: files.collect(),
        }
    }

    /// The finding that files of a variant changed since then, also if they changed back.
    pub fn changes(&self, variant: &Variant) -> Option<Finding> {
        let changed = |(path, (sha256, seen)): (&PathBuf, &(String, Option<Stamp>))| {
            let same = seen.is_some()
                && stamp(path).ok() == *seen
                && git::sha256_of_input(path).is_ok_and(|now| now == *sha256);
            let name = path.strip_prefix(&self.root).unwrap_or(path);
            (!same).then(|| format!("`{}`", name.display()))
        };
        let changed: Vec<String> = self.files.iter().filter_map(changed).collect();
        let message = format!(
            "{} changed while the variant was run, so what was measured is not what was built",
            changed.join(", ")
        );
        (!changed.is_empty()).then(|| Finding::of(Code::AlteredDuringRun, &variant.id, message))
    }
}

pub(super) fn stamp(path: &Path) -> io::Result<Stamp> {
    let meta = disk::metadata(git::real_input(path)?)?;
    let changed = (meta.ctime(), meta.ctime_nsec());
    Ok((changed, meta.dev(), meta.ino()))
}
