//! Whether the files of a variant are the same after its last process as they were when it was
//! built. A program under test runs with the rights to write them.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::artifact::Artifact;
use crate::config::Variant;
use crate::finding::{Code, Finding};
use crate::hash::sha256_file;

/// The files that a variant was made of, and the program, as they are before it runs.
#[derive(Clone, Debug)]
pub struct Witness {
    files: BTreeMap<PathBuf, Seen>,
}

#[derive(Clone, Debug)]
struct Seen {
    /// As messages name it.
    name: String,
    /// sha256 of what was built; `None` where it could not be read.
    sha256: Option<String>,
    /// What a change leaves, even if the content is restored; `None` where there was no file.
    stamp: Option<Stamp>,
}

/// Device, inode, and when the content, name or mode last changed: `touch` cannot set these back.
type Stamp = (u64, u64, i64, i64);

impl Witness {
    /// Looks at the sources, inputs and the program of an artifact. `root` is the folder of the
    /// configuration.
    pub fn of(root: &Path, artifact: &Artifact) -> Witness {
        let mut files = BTreeMap::new();
        for (name, sha256) in &artifact.sources {
            let path = root.join(name);
            let stamp = stamp(&path).ok();
            let (name, sha256) = (name.clone(), Some(sha256.clone()));
            files.insert(
                path,
                Seen {
                    name,
                    sha256,
                    stamp,
                },
            );
        }
        // A program that is found on the PATH is not part of the project.
        let program = artifact.run.first().map(|name| (name, root.join(name)));
        if let Some((name, path)) = program.filter(|(_, path)| path.is_file()) {
            let sha256 = artifact.sha256.clone().or_else(|| sha256_file(&path).ok());
            let (name, stamp) = (name.clone(), stamp(&path).ok());
            files.entry(path).or_insert(Seen {
                name,
                sha256,
                stamp,
            });
        }
        Witness { files }
    }

    /// The finding that files of a variant changed since then, also if they changed back.
    pub fn changes(&self, variant: &Variant) -> Option<Finding> {
        let changed = |(path, seen): (&PathBuf, &Seen)| {
            let same = seen.stamp.is_some()
                && stamp(path).ok() == seen.stamp
                && sha256_file(path).ok() == seen.sha256;
            (!same).then(|| format!("`{}`", seen.name))
        };
        let changed: Vec<String> = self.files.iter().filter_map(changed).collect();
        let message = format!(
            "{} changed while the variant was run, so what was measured is not what was built",
            changed.join(", ")
        );
        let next = "make sure that neither the program nor anything else writes there while it is measured, and run again";
        (!changed.is_empty())
            .then(|| Finding::deny(Code::SourcesChanged, &variant.id, message, next))
    }
}

fn stamp(path: &Path) -> io::Result<Stamp> {
    let meta = std::fs::metadata(path)?;
    Ok((meta.dev(), meta.ino(), meta.ctime(), meta.ctime_nsec()))
}
