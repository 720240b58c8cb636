//! Writing a slice.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::contents::{PROFILES, hashed, listed, most};
use super::manifest::{MANIFEST_FILE, Manifest};
use crate::files::{
    self, VARIANT_FILE, read_regular_up_to, recorded_folder, variant_folder, write_atomically,
};
use crate::finding::{Code, Error, Finding};
use crate::hash::sha256_hex;
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
    /// Files that are no longer as they were `sealed` are a finding in it. Returns the manifest's
    /// sha256.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Input`] where a file cannot be part of a slice.
    pub fn finish(
        &self,
        mut manifest: Manifest,
        sealed: &BTreeMap<PathBuf, String>,
    ) -> Result<String, Error> {
        let profiles = self.profiles();
        let files = listed(&profiles).and_then(|files| hashed(&files));
        let files = files.map_err(|cause| Error::Input {
            path: profiles.clone(),
            cause,
        })?;
        let is_kept = |path: &&PathBuf| {
            let name = path.strip_prefix(&profiles).ok().and_then(Path::to_str);
            name.is_some_and(|name| files.get(name) == sealed.get(*path))
        };
        // What a run is resumed by is no part of it.
        let is_of_run = |path: &PathBuf| path.file_name().is_some_and(|name| name == VARIANT_FILE);
        let own = sealed
            .keys()
            .filter(|path| path.starts_with(&profiles) && !is_of_run(path));
        let altered: Vec<String> = own
            .filter(|path| !is_kept(path))
            .map(|path| path.display().to_string())
            .collect();
        if let (Some(run), [first, ..]) = (&mut manifest.run, altered.as_slice()) {
            run.findings.push(Finding::of_project(
                Code::AlteredDuringRun,
                format!(
                    "{first} changed after it was measured; {} files in all",
                    altered.len()
                ),
                "find out which program writes there, and run again",
            ));
        }
        let text = serde_json::to_string_pretty(&Manifest { files, ..manifest });
        let mut text = text.map_err(|error| Error::Input {
            path: self.folder.join(MANIFEST_FILE),
            cause: error.to_string(),
        })?;
        text.push('\n');
        let path = self.folder.join(MANIFEST_FILE);
        write_atomically(&path, text.as_bytes()).map_err(Error::io("write", &path))?;
        Ok(sha256_hex(text.as_bytes()))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SlicePlace;
    use crate::slice::manifest::Run;

    #[test]
    fn a_file_that_changed_after_it_was_sealed_is_a_finding_of_the_slice() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = || Manifest {
            schema: Manifest::SCHEMA,
            tool: String::new(),
            plan: String::new(),
            place: SlicePlace { index: 1, count: 1 },
            archive: None,
            recording: None,
            slices: vec![Vec::new()],
            same_programs: Vec::new(),
            controls: Vec::new(),
            run: Some(Run::default()),
            files: BTreeMap::new(),
        };
        for (content, gone, found) in [("a", false, 0), ("b", false, 1), ("a", true, 1)] {
            let slice = SliceFolder::create(&folder.path().join("slice"), false).unwrap();
            let file = slice.profiles().join("file");
            let elsewhere = folder.path().join("elsewhere");
            let sealed = [&file, &elsewhere].map(|path| (path.clone(), sha256_hex(b"a")));
            if !gone {
                fs::write(&file, content).unwrap();
            }
            let sha256 = slice.finish(manifest(), &sealed.into()).unwrap();
            let written = Manifest::read(&folder.path().join("slice"), Some(&sha256)).unwrap();
            let findings = written.run.unwrap().findings;
            assert_eq!(findings.len(), found, "{content} {gone}");
            assert!(
                findings
                    .iter()
                    .all(|one| one.code == Code::AlteredDuringRun)
            );
            let other = Manifest::read(&folder.path().join("slice"), Some("0"));
            assert_eq!(other.unwrap_err(), "its slice.json is not what was written");
        }
    }
}
