//! Captures below a folder, found by their hash.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ncu_report::{ReadError, Recording};

use crate::capture::{self, Format};
use crate::disk;
use crate::files::{PROFILE_FILE, ends_in, most, read_regular_up_to};
use crate::finding::Error;
use crate::hash::{sha256_file, sha256_hex};
use crate::parallel;
use crate::profile::{FileHash, Profile};
use crate::terms::VariantId;

/// The endings of captures' names.
const ENDINGS: [&str; 6] = ["ncu-rep", "ncu-repz", "csv", "counters", "records", "times"];

/// The captures in a folder by their sha256, wherever they were put.
///
/// A capture is usually beside its profile under the name that the profile states. It is then read
/// once, to be hashed and decoded. Only where one is not there, all captures are hashed.
#[derive(Debug, Default)]
pub struct CaptureIndex {
    /// Where a profile's own captures are.
    folder: Option<PathBuf>,
    /// Every capture.
    files: Vec<PathBuf>,
    /// The readable ones by their sha256, once that was needed.
    by_hash: OnceLock<BTreeMap<String, PathBuf>>,
}

impl CaptureIndex {
    /// The captures below a folder.
    ///
    /// # Errors
    /// [`Error::Io`], also for a capture that this user may not read.
    pub fn of(folder: &Path) -> Result<CaptureIndex, Error> {
        let mut index = CaptureIndex {
            folder: Some(folder.to_path_buf()),
            ..CaptureIndex::default()
        };
        index.add(folder)?;
        Ok(index)
    }

    /// Adds the captures below another folder.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn add(&mut self, folder: &Path) -> Result<(), Error> {
        self.by_hash = OnceLock::new();
        for entry in disk::read_dir(folder).map_err(Error::named(folder))? {
            // Links to folders are not followed: they may form a cycle.
            if entry.is_dir() {
                self.add(&entry.path)?;
            } else if ends_in(&entry.path, &ENDINGS) {
                Error::if_denied(&entry.path)?;
                self.files.push(entry.path);
            }
        }
        Ok(())
    }

    /// The content of a capture; `None` where there is no capture of its hash.
    pub(super) fn read(
        &self,
        capture: &FileHash,
    ) -> Option<Result<(Format, Recording), ReadError>> {
        let (path, bytes) = self.found(capture)?;
        Some(capture::read_bytes(path, &bytes))
    }

    /// The bytes of a capture; `None` where there is no capture of its hash.
    pub(super) fn bytes(&self, capture: &FileHash) -> Option<Vec<u8>> {
        self.found(capture).map(|(_, bytes)| bytes)
    }

    fn found(&self, capture: &FileHash) -> Option<(&Path, Vec<u8>)> {
        let read = |path: &PathBuf| {
            let bytes = read_regular_up_to(path, most::BINARY).ok()?;
            (sha256_hex(&bytes) == capture.sha256).then_some(bytes)
        };
        let mut beside = self.files.iter();
        let beside = beside.find(|path| self.is_beside(path, &capture.file));
        let own = beside.and_then(|path| Some((path.as_path(), read(path)?)));
        own.or_else(|| {
            let path = self.by_hash().get(&capture.sha256)?;
            Some((path, read(path)?))
        })
    }

    /// The files of this name beside the profile, or in a folder of its variant.
    pub(super) fn named(&self, name: &str, id: &VariantId) -> impl Iterator<Item = &Path> + Clone {
        let place = format!("{id}/{name}");
        let files = self.files.iter().map(PathBuf::as_path);
        files.filter(move |path| self.is_beside(path, name) || path.ends_with(&place))
    }

    fn is_beside(&self, path: &Path, name: &str) -> bool {
        path.parent() == self.folder.as_deref() && path.file_name().is_some_and(|own| own == name)
    }

    fn by_hash(&self) -> &BTreeMap<String, PathBuf> {
        self.by_hash.get_or_init(|| {
            let hashes = parallel::map(&self.files, |path| sha256_file(path).ok());
            let hashed = hashes.into_iter().zip(&self.files);
            hashed
                .filter_map(|(hash, path)| Some((hash?, path.clone())))
                .collect()
        })
    }
}

/// What to do where a folder has no profile of a variant: where that is, or what was not copied.
/// `recorded` is the folder of the variant in it.
pub fn find_profile(folder: &Path, recorded: &Path, id: &VariantId) -> Option<String> {
    let is_file = |inner: &Path| disk::is_file(folder.join(inner).join(PROFILE_FILE));
    let whole = std::path::absolute(folder).unwrap_or_default();
    let own = Profile::read(&folder.join(PROFILE_FILE)).map(|it| it.variant);
    if let (Ok(of), false) = (own, whole.ends_with(id.to_string())) {
        let (suite, folder) = (&of.suite, folder.display());
        return Some(format!(
            "it is the folder of {of} alone: mkdir -p DIR/{suite} && mv {folder} DIR/{of}, then `--from DIR`"
        ));
    }
    if is_file(Path::new("")) || is_file(Path::new(&id.variant)) {
        let next = "name the folder above it that has all: `--from DIR` for DIR/SUITE/VARIANT/profile.json";
        return Some(next.to_owned());
    }
    let entries = disk::read_dir(folder).ok()?;
    let inner = entries.iter().filter(|one| one.is_dir()).flat_map(|one| {
        let inner = disk::read_dir(&one.path).into_iter().flatten();
        inner.map(|two| format!("{}/{}", one.text(), two.text()))
    });
    let mut names = entries.iter().map(disk::Entry::text).chain(inner);
    let own = |name: &str| Path::new(name).join(&id.suite).join(&id.variant);
    if let Some(inner) = names.find(|name| *name == "profiles" || is_file(&own(name))) {
        let folder = folder.display();
        return Some(format!("name the folder in it: `--from {folder}/{inner}`"));
    }
    let captures = CaptureIndex::of(recorded).ok()?;
    (!captures.files.is_empty()).then(|| {
        format!("its captures are there without their {PROFILE_FILE}: copy the whole folder of the recording again; one that was interrupted is measured again")
    })
}
