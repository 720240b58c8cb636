//! The lock by which runs of this tool take turns on a GPU.

use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::time::Duration;

use super::gpu::Gpu;
use super::owner;
use super::state::ComputeProcess;
use crate::finding::Error;
use crate::process::wait_for_lock;

/// Longest wait for another measurement on the same GPU.
const LOCK_PATIENCE: Duration = Duration::from_secs(1800);

/// A GPU's lock, held while the GPU is measured; released when dropped, or when the process dies.
#[derive(Debug)]
pub struct GpuLock {
    _file: File,
}

impl Gpu {
    /// The file by which runs of this tool take turns on the GPU. It stays when they are over.
    pub fn lock_path(&self) -> PathBuf {
        std::env::temp_dir().join(format!("sparsek-gate-{}.lock", self.uuid))
    }

    fn lock_file(&self) -> Result<File, Error> {
        let path = self.lock_path();
        // An existing file is opened as it is: in a folder that everybody may write, systems reject
        // "create" for the file of another user.
        let file = match OpenOptions::new().write(true).open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => OpenOptions::new()
                .create(true)
                .write(true)
                .truncate(false)
                .mode(0o666)
                .open(&path),
            opened => opened,
        };
        let file = file.map_err(Error::io("open", &path))?;
        // Every user of the machine must be able to take the lock; only the file's owner can allow it.
        let _ = file.set_permissions(Permissions::from_mode(0o666));
        Ok(file)
    }

    /// Takes the GPU's lock, if no other run of this tool has it.
    ///
    /// # Errors
    /// [`Error::Io`] where the lock's file cannot be used.
    pub fn try_lock(&self) -> Result<Option<GpuLock>, Error> {
        let file = self.lock_file()?;
        match file.try_lock() {
            Ok(()) => Ok(Some(GpuLock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(Error::io("lock", self.lock_path())(source)),
        }
    }

    /// The process that holds the GPU's lock, where this machine shows it.
    pub fn lock_holder(&self) -> Option<ComputeProcess> {
        let inode = std::fs::metadata(self.lock_path()).ok()?.ino();
        let locks = std::fs::read_to_string("/proc/locks").ok()?;
        // `1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF`; waiting ones have `->` before FLOCK.
        let pid = locks.lines().find_map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let [_, "FLOCK", _, _, pid, file, ..] = fields.as_slice() else {
                return None;
            };
            let locked: u64 = file.rsplit(':').next()?.parse().ok()?;
            (locked == inode).then(|| pid.parse().ok())?
        })?;
        Some(ComputeProcess {
            pid,
            name: owner::name(pid),
            memory_bytes: None,
        })
    }

    /// Waits until no other run of this tool measures on the GPU, then takes its lock.
    /// `waiting` is called once if there is something to wait for.
    ///
    /// # Errors
    /// [`Error::Environment`] where the GPU stays busy for half an hour.
    pub fn lock(&self, waiting: impl FnOnce()) -> Result<GpuLock, Error> {
        let path = self.lock_path();
        let file = self.lock_file()?;
        if wait_for_lock(&file, &path, LOCK_PATIENCE, waiting)? {
            return Ok(GpuLock { _file: file });
        }
        Err(Error::environment(
            format!(
                "another sparsek-gate has measured on {} for {} s",
                self.uuid,
                LOCK_PATIENCE.as_secs()
            ),
            format!("find the process: fuser -v {}", path.display()),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_measurement_waits_for_the_first() {
        let gpu = Gpu {
            ordinal: 0,
            name: "test".into(),
            uuid: format!("GPU-test-{}", std::process::id()),
            compute_capability: "9.0".into(),
            multiprocessors: 1,
            memory_bytes: 1,
            driver: None,
            cuda: "13.0".into(),
        };
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
