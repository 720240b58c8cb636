//! The folder of baselines: reading it, and replacing it as a whole.
//!
//! A change is made in a copy beside the folder, and the two are exchanged in one step of the
//! kernel (`renameat2` with `RENAME_EXCHANGE`): a process killed at any moment leaves the old
//! baselines or the new ones, with file and hash paired. What a killed process left beside the
//! folder is cleared by the next command.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::RenameFlags;
use rustix::io::Errno;

use super::lock::Lock;
use crate::disk::{self, Entry, folder_of};
use crate::files::{entries, if_there, read_regular};
use crate::finding::Error;
use crate::hash::sha256_hex;
use crate::process;
use crate::terms::VariantId;

/// The folder of baselines, `<root>/<gpu>/<suite>/<variant>.*`.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    /// The lock that keeps other processes out while the store is open to be changed.
    exclusive: Option<File>,
}

/// One stored baseline, as it is on disk: files may be missing or edited.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Folder name of the GPU model and the tier, see [`crate::terms::Tier::folder`].
    pub gpu: String,
    /// Which variant.
    pub variant: VariantId,
    /// The lock's text.
    pub lock: Option<String>,
    /// `<variant>.norm.txt`.
    pub norm: Option<Vec<u8>>,
    /// `<variant>.norm.txt.sha256`.
    pub norm_sha256: Option<String>,
    /// `<variant>.profile.json`.
    pub profile: Option<Vec<u8>>,
}

impl NewBaseline {
    /// The hash of the normalized text, as `sha256sum` prints it.
    pub(super) fn norm_sha256(&self) -> String {
        let hash = sha256_hex(self.norm.as_bytes());
        format!("{hash}  {}.norm.txt\n", self.lock.variant.variant)
    }
}

impl Stored {
    /// One of its files, for people.
    pub fn name(&self, ending: &str) -> String {
        format!("{}/{}.{ending}", self.gpu, self.variant)
    }

    /// Its files by their endings, in the order of [`FILES`].
    pub fn files(&self) -> [(&'static str, Option<&[u8]>); 4] {
        let [lock, norm, norm_sha256, profile] = FILES;
        [
            (lock, self.lock.as_deref().map(str::as_bytes)),
            (norm, self.norm.as_deref()),
            (norm_sha256, self.norm_sha256.as_deref().map(str::as_bytes)),
            (profile, self.profile.as_deref()),
        ]
    }
}

/// The files of a baseline to be stored.
#[derive(Clone, Debug)]
pub struct NewBaseline {
    /// Folder name of the GPU model and the tier, see [`crate::terms::Tier::folder`].
    pub gpu: String,
    /// The lock.
    pub lock: Lock,
    /// The normalized text.
    pub norm: String,
    /// The profile's JSON form.
    pub profile: String,
}

/// The endings of a baseline's files, after `<variant>.`.
pub const FILES: [&str; 4] = ["lock.toml", "norm.txt", "norm.txt.sha256", "profile.json"];

impl Store {
    fn at(root: &Path) -> Store {
        Store {
            // The exchange must replace the folder, not a link to it.
            root: disk::real(root).unwrap_or_else(|_| root.to_path_buf()),
            exclusive: None,
        }
    }

    /// The store in a folder, which need not exist yet. Clears what a killed process left.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(root: &Path) -> Result<Store, Error> {
        let store = Store::at(root);
        if !Store::leftovers(root).is_empty() {
            let guard = store.guard()?;
            // Otherwise another process is storing now, and what is beside the folder is its own.
            if guard.try_lock().is_ok() {
                store.recover()?;
            }
        }
        Ok(store)
    }

    /// The store, locked against other processes until it is dropped: a change must be made to the
    /// state that it was decided on. Waits for a process that is storing.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open_to_change(root: &Path) -> Result<Store, Error> {
        let mut store = Store::at(root);
        let guard = store.guard()?;
        guard.lock().map_err(Error::io("lock", store.parent()))?;
        store.exclusive = Some(guard);
        store.recover()?;
        Ok(store)
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A baseline, if any of its files exists.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn load(&self, gpu: &str, variant: &VariantId) -> Result<Option<Stored>, Error> {
        let _guard = self.shared()?;
        let mut files = FILES.map(|ending| (self.path(gpu, variant, ending), None));
        for (path, content) in &mut files {
            *content = if_there(read_regular(path)).map_err(Error::io("read", &*path))?;
        }
        if files.iter().all(|(_, content)| content.is_none()) {
            return Ok(None);
        }
        let [lock, norm, norm_sha256, profile] = files.map(|(_, content)| content);
        let text = |bytes: Option<Vec<u8>>| {
            bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        };
        Ok(Some(Stored {
            gpu: gpu.to_owned(),
            variant: variant.clone(),
            lock: text(lock),
            norm,
            norm_sha256: text(norm_sha256),
            profile,
        }))
    }

    /// GPU folders that contain any file of the variant's baseline.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn gpus_of(&self, variant: &VariantId) -> Result<Vec<String>, Error> {
        let is_there = |gpu: &str, ending| disk::is_there(self.path(gpu, variant, ending));
        let gpus = folders(&self.root)?.into_iter().map(|(gpu, _)| gpu);
        let gpus = gpus.filter(|gpu| FILES.iter().any(|ending| is_there(gpu, ending)));
        Ok(gpus.collect())
    }

    /// Every baseline of the variant, by the GPU folder's name.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn all_of(&self, variant: &VariantId) -> Result<Vec<Stored>, Error> {
        let gpus = self.gpus_of(variant)?;
        let loaded = gpus.iter().map(|gpu| self.load(gpu, variant));
        loaded.filter_map(Result::transpose).collect()
    }

    /// The GPU folders and the variants of which any file is stored there.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn stored(&self) -> Result<BTreeSet<(String, VariantId)>, Error> {
        let mut found = BTreeSet::new();
        for (gpu, suites) in folders(&self.root)? {
            for (suite, folder) in folders(&suites)? {
                for entry in entries(&folder)? {
                    let name = entry.text();
                    let variant = FILES
                        .iter()
                        .find_map(|ending| name.strip_suffix(ending)?.strip_suffix('.'));
                    // A file with another name was not stored here by this tool.
                    let id = variant
                        .and_then(|variant| VariantId::try_from(format!("{suite}/{variant}")).ok());
                    found.extend(id.map(|id| (gpu.clone(), id)));
                }
            }
        }
        Ok(found)
    }

    /// The path of a baseline's file.
    pub fn path(&self, gpu: &str, variant: &VariantId, ending: &str) -> PathBuf {
        self.root
            .join(gpu)
            .join(&variant.suite)
            .join(format!("{}.{ending}", variant.variant))
    }

    /// Stores baselines, all of them or none.
    ///
    /// # Errors
    /// [`Error::Io`], or [`Error::Baseline`] where the store is not open to be changed.
    pub fn replace(&self, baselines: &[NewBaseline]) -> Result<(), Error> {
        if self.exclusive.is_none() {
            return Err(Error::Baseline(format!(
                "{} is not open to be changed",
                self.root.display()
            )));
        }
        let staged = self.beside("staged");
        disk::create_dir(&staged).map_err(Error::io("create", &staged))?;
        if disk::is_there(&self.root) {
            copy_folder(&self.root, &staged)?;
        }
        let staging = Store {
            root: staged.clone(),
            exclusive: None,
        };
        for baseline in baselines {
            let id = &baseline.lock.variant;
            let contents = [
                &baseline.lock.to_toml(),
                &baseline.norm,
                &baseline.norm_sha256(),
                &baseline.profile,
            ];
            for (ending, content) in FILES.iter().zip(contents) {
                staging.put(&baseline.gpu, id, ending, Some(content.as_bytes()))?;
            }
        }
        // From here on the copy is complete, and has the name of a complete one.
        if !process::may_publish() {
            disk::remove_dir_all(&staged).map_err(Error::io("clear", &staged))?;
            return Err(Error::Interrupted);
        }
        let next = self.beside("next");
        disk::rename(&staged, &next).map_err(Error::io("write", &next))?;
        self.exchange(&next)?;
        disk::sync(self.parent()).map_err(Error::io("write", self.parent()))?;
        self.recover()
    }

    /// Writes a file of a baseline durably, or removes it: in a copy or a snapshot of a store.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn put(
        &self,
        gpu: &str,
        variant: &VariantId,
        ending: &str,
        content: Option<&[u8]>,
    ) -> Result<(), Error> {
        let path = self.path(gpu, variant, ending);
        let folder = path.parent().unwrap_or(&self.root);
        match content {
            Some(content) => {
                disk::create_dir_all(folder).map_err(Error::io("create", folder))?;
                let written = disk::write(&path, content).and_then(|()| disk::sync(&path));
                written.map_err(Error::io("write", &path))?;
            }
            None if disk::is_there(&path) => {
                disk::remove_file(&path).map_err(Error::io("remove", &path))?;
            }
            None => return Ok(()),
        }
        disk::sync(folder).map_err(Error::io("write", folder))
    }

    fn exchange(&self, next: &Path) -> Result<(), Error> {
        if !disk::is_there(&self.root) {
            return disk::rename(next, &self.root).map_err(Error::io("write", &self.root));
        }
        let exchanged = disk::rename_with(next, &self.root, RenameFlags::EXCHANGE);
        let lacking = [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP].map(Some);
        exchanged.or_else(|error| {
            if !lacking.contains(&Errno::from_io_error(&error)) {
                return Err(Error::io("exchange", &self.root)(error));
            }
            // Filesystems without the exchange: two renames, of which `recover` finishes the second.
            let old = self.beside("old");
            disk::rename(&self.root, &old).map_err(Error::io("write", &old))?;
            disk::rename(next, &self.root).map_err(Error::io("write", &self.root))
        })
    }

    /// What is beside a folder of baselines because a process was killed while it stored, or is
    /// storing now.
    pub fn leftovers(root: &Path) -> Vec<PathBuf> {
        let store = Store::at(root);
        let beside = ["next", "old", "staged"].map(|name| store.beside(name));
        beside
            .into_iter()
            .filter(|path| disk::is_there(path))
            .collect()
    }

    /// Finishes or clears what a killed process left. The caller holds the lock.
    fn recover(&self) -> Result<(), Error> {
        if !disk::is_there(&self.root) {
            for left in [self.beside("next"), self.beside("old")] {
                if disk::is_there(&left) {
                    disk::rename(&left, &self.root).map_err(Error::io("restore", &self.root))?;
                    break;
                }
            }
        }
        for left in Store::leftovers(&self.root) {
            // It may be a link or a file that somebody put there.
            let cleared = disk::remove_dir_all(&left);
            let cleared = cleared.or_else(|_| disk::remove_file(&left));
            cleared.map_err(Error::io("clear", &left))?;
        }
        Ok(())
    }

    fn parent(&self) -> &Path {
        folder_of(&self.root)
    }

    fn beside(&self, what: &str) -> PathBuf {
        let name = self.root.file_name().unwrap_or_default();
        let name = name.to_string_lossy();
        self.parent().join(format!(".{name}.{what}"))
    }

    /// The folder around the store serves as the lock file: it exists, and nothing has to be added.
    fn guard(&self) -> Result<File, Error> {
        let parent = self.parent();
        disk::create_dir_all(parent).map_err(Error::io("create", parent))?;
        disk::open(parent).map_err(Error::io("open", parent))
    }

    fn shared(&self) -> Result<Option<File>, Error> {
        if self.exclusive.is_some() || !disk::is_there(self.parent()) {
            return Ok(None);
        }
        let guard = self.guard()?;
        guard
            .lock_shared()
            .map_err(Error::io("lock", self.parent()))?;
        Ok(Some(guard))
    }
}

/// Folders in a folder, with their names; none where it does not exist.
fn folders(parent: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    let entries = entries(parent)?.into_iter().filter(Entry::is_dir);
    let named = entries.filter_map(|entry| Some((entry.name().to_str()?.to_owned(), entry.path)));
    Ok(named.collect())
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), Error> {
    // After the exchange it could not be cleared away.
    disk::may_change(from).map_err(|error| {
        let from = from.display();
        let what = format!("nothing was locked: {from} cannot be changed: {error}");
        let next = format!("if another user owns it: sudo chown -R \"$(id -u)\" '{from}'");
        Error::environment(what, next)
    })?;
    for entry in disk::read_dir(from).map_err(Error::io("read", from))? {
        let target = to.join(entry.name());
        if entry.is_dir() {
            disk::create_dir(&target).map_err(Error::io("create", &target))?;
            copy_folder(&entry.path, &target)?;
        } else {
            disk::copy(&entry.path, &target).map_err(Error::io("copy", &entry.path))?;
            disk::sync(&target).map_err(Error::io("write", &target))?;
        }
    }
    disk::sync(to).map_err(Error::io("write", to))
}
