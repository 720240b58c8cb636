//! The lock by which runs of this tool take turns on a GPU.

use std::fs::{File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;

use super::gpu::Gpu;
use super::owner;
use crate::disk;
use crate::finding::Error;
use crate::process::{lock_holder, longest_wait, wait_for_lock};

impl Gpu {
    /// The file by which runs of this tool take turns on the GPU. It stays when they are over.
    pub fn lock_path(&self) -> PathBuf {
        std::env::temp_dir().join(format!("sparsek-gate-{}.lock", self.uuid))
    }

    /// Everybody may have put anything there: no link is followed, nothing is waited for, and what is no
    /// lock file is refused. To take the lock it need not be writable.
    fn lock_file(&self) -> Result<File, Error> {
        let path = self.lock_path();
        let file = match opened(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => match created(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => opened(&path),
                created => created,
            },
            opened => opened,
        };
        let file = file.map_err(Error::io("open", &path))?;
        let meta = file.metadata().map_err(Error::io("read", &path))?;
        match meta.is_file() && meta.len() == 0 {
            true => Ok(file),
            false => Err(Error::environment(
                format!(
                    "{} is no lock file: it is not a regular, empty file",
                    path.display()
                ),
                format!(
                    "look at what it is, and remove it: ls -l {}",
                    path.display()
                ),
            )),
        }
    }

    /// Takes the GPU's lock, if no other run of this tool has it. To drop the file releases it, as does the
    /// end of the process.
    ///
    /// # Errors
    /// [`Error::Io`] where the lock's file cannot be used.
    pub fn try_lock(&self) -> Result<Option<File>, Error> {
        let file = self.lock_file()?;
        let lock = || file.try_lock();
        let is_free = wait_for_lock(lock, &self.lock_path(), Duration::ZERO, || ())?;
        Ok(is_free.then_some(file))
    }

    /// The process that holds the GPU's lock and its name, where this machine shows them.
    pub fn lock_holder(&self) -> Option<(u32, Option<String>)> {
        let pid = lock_holder(&self.lock_path())?;
        Some((pid, owner::name(pid)))
    }

    /// Waits until no other run of this tool measures on the GPU, then takes its lock.
    /// `waiting` is called once if there is something to wait for.
    ///
    /// # Errors
    /// [`Error::Environment`] where the GPU stays busy for half an hour, or is not waited for.
    pub fn lock(&self, waiting: impl FnOnce()) -> Result<File, Error> {
        let path = self.lock_path();
        let file = self.lock_file()?;
        if wait_for_lock(|| file.try_lock(), &path, longest_wait(), waiting)? {
            return Ok(file);
        }
        Err(Error::environment(
            format!("another sparsek-gate measures on {}", self.uuid),
            format!("find the process: fuser -v {}", path.display()),
        ))
    }
}

/// A link there is an error, and a pipe is not waited for.
fn opened(path: &Path) -> io::Result<File> {
    disk::open_as(path, OFlags::RDONLY | OFlags::NOFOLLOW, 0)
}

/// A new file that every user of the machine can open, whatever the mask of this process.
fn created(path: &Path) -> io::Result<File> {
    let file = disk::create_new(path)?;
    file.set_permissions(Permissions::from_mode(0o644))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn gpu(name: &str) -> Gpu {
        Gpu {
            ordinal: 0,
            name: "test".into(),
            uuid: format!("GPU-{name}-{}", std::process::id()),
            compute_capability: "9.0".into(),
            multiprocessors: 1,
            memory_bytes: 1,
            driver: None,
            cuda: "13.0".into(),
        }
    }

    #[test]
    fn what_is_no_lock_file_is_refused_and_stays_as_it_is() {
        let gpu = gpu("not-a-lock");
        let path = gpu.lock_path();
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        std::fs::write(&victim, "").unwrap();
        std::fs::set_permissions(&victim, Permissions::from_mode(0o600)).unwrap();
        let is_refused = || assert!(gpu.try_lock().is_err());
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        is_refused();
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(folder.path().join("new"), &path).unwrap();
        is_refused();
        std::fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
        is_refused();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "content").unwrap();
        is_refused();
        assert_eq!(std::fs::read(&path).unwrap(), b"content");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(victim.metadata().unwrap().mode() & 0o777, 0o600);
        assert!(!folder.path().join("new").exists());
        // A lock of another user, which may only be read.
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
        assert!(gpu.try_lock().unwrap().is_some());
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o444);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_second_measurement_waits_for_the_first() {
        let gpu = gpu("test");
        let first = gpu.lock(|| panic!("nothing to wait for")).unwrap();
        std::thread::scope(|scope| {
            let (sender, receiver) = std::sync::mpsc::channel();
            let second = scope.spawn({
                let gpu = &gpu;
                move || gpu.lock(|| sender.send(()).unwrap()).map(drop)
            });
            receiver.recv().unwrap();
            assert!(!second.is_finished());
            drop(first);
            second.join().unwrap().unwrap();
        });
        let _ = std::fs::remove_file(gpu.lock_path());
    }
}
