//! Writing a slice.

use std::fs;
use std::path::{Path, PathBuf};

use super::contents::{PROFILES, hashed, listed, most};
use super::manifest::{MANIFEST_FILE, Manifest};
use crate::files::{self, read_regular_up_to, recorded_folder, variant_folder, write_atomically};
use crate::finding::Error;
use crate::terms::VariantId;

/// The folder of a slice that is being made.
#[derive(Debug)]
pub struct SliceFolder {
    folder: PathBuf,
}

impl SliceFolder {
    /// Creates the folder of a slice. An earlier slice in it is removed, its manifest first; to `resume`
    /// an interrupted one, only that.
    ///
    /// # Errors
    /// [`Error::Usage`] where it has anything else; [`Error::Io`].
    pub fn create(folder: &Path, resume: bool) -> Result<SliceFolder, Error> {
        let folder = std::path::absolute(folder).map_err(Error::io("find", folder))?;
        fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        for entry in fs::read_dir(&folder).map_err(Error::io("read", &folder))? {
            let name = entry.map_err(Error::io("read", &folder))?.file_name();
            let own = name == MANIFEST_FILE
                || name == PROFILES
                || name.to_string_lossy().starts_with(".tmp-");
            if !own {
                return Err(Error::Usage(format!(
                    "`--slice-output {}` has `{}`, which is no part of a slice\n  next: name a new folder, or an earlier slice to replace",
                    folder.display(),
                    name.to_string_lossy()
                )));
            }
        }
        let manifest = folder.join(MANIFEST_FILE);
        match fs::remove_file(&manifest) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("clear", &manifest)(error));
            }
            _ => {}
        }
        files::sync_folder(&folder).map_err(Error::io("write", &folder))?;
        let profiles = folder.join(PROFILES);
        if !resume && profiles.symlink_metadata().is_ok() {
            fs::remove_dir_all(&profiles).map_err(Error::io("clear", &profiles))?;
        }
        fs::create_dir_all(&profiles).map_err(Error::io("create", &profiles))?;
        Ok(SliceFolder { folder })
    }

    /// Where profiles and captures are left.
    pub fn profiles(&self) -> PathBuf {
        self.folder.join(PROFILES)
    }

    /// Writes the manifest, with the hash of each file that is there. From then on the slice is whole.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Input`] where a file cannot be part of a slice.
    pub fn finish(&self, manifest: Manifest) -> Result<(), Error> {
        let profiles = self.profiles();
        let files = listed(&profiles).and_then(|files| hashed(&files));
        let files = files.map_err(|cause| Error::Input {
            path: profiles,
            cause,
        })?;
        let text = serde_json::to_string_pretty(&Manifest { files, ..manifest });
        let mut text = text.map_err(|error| Error::Input {
            path: self.folder.join(MANIFEST_FILE),
            cause: error.to_string(),
        })?;
        text.push('\n');
        let path = self.folder.join(MANIFEST_FILE);
        write_atomically(&path, text.as_bytes()).map_err(Error::io("write", &path))
    }
}

/// Copies what a recording has of a variant, where it has anything, to a folder of profiles.
///
/// # Errors
/// [`Error::Io`] where a file cannot be read whole, or is no regular file; [`Error::Input`] where
/// there is too much of it.
pub fn copy_recorded(recording: &Path, variant: &VariantId, to: &Path) -> Result<(), Error> {
    let from = recorded_folder(recording, variant);
    match from.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        _ => copy(&from, &variant_folder(to, variant), 0),
    }
}

fn copy(from: &Path, to: &Path, depth: usize) -> Result<(), Error> {
    if depth > most::DEPTH - 2 {
        return Err(Error::Input {
            path: from.to_path_buf(),
            cause: format!("it is deeper than {} folders", most::DEPTH - 2),
        });
    }
    fs::create_dir_all(to).map_err(Error::io("create", to))?;
    for entry in fs::read_dir(from).map_err(Error::io("read", from))? {
        let entry = entry.map_err(Error::io("read", from))?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        // A link to a folder is not followed: it may form a cycle. The index of captures follows none
        // either.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            // What an earlier run left is not part of what is read.
            if !entry.file_name().to_string_lossy().starts_with(".earlier") {
                copy(&path, &target, depth + 1)?;
            }
            continue;
        }
        if path.is_dir() {
            continue;
        }
        let bytes = read_regular_up_to(&path, files::most::BINARY);
        let bytes = bytes.map_err(Error::io("read", &path))?;
        fs::write(&target, bytes).map_err(Error::io("write", &target))?;
    }
    Ok(())
}
