//! The locks by which runs of this tool take turns.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::interrupted;
use crate::disk;
use crate::files::open_regular;
use crate::finding::Error;

/// Between two attempts.
const AGAIN: Duration = Duration::from_millis(50);
/// Longest wait for another command in a folder, or on a GPU.
const LONGEST: Duration = Duration::from_secs(1800);
/// Whether other commands are waited for at all.
static WAITS: AtomicBool = AtomicBool::new(true);

/// From now on no other command is waited for.
pub fn never_wait() {
    WAITS.store(false, Ordering::Relaxed);
}

/// How long another command is waited for.
pub fn longest_wait() -> Duration {
    match WAITS.load(Ordering::Relaxed) {
        true => LONGEST,
        false => Duration::ZERO,
    }
}

/// Whether another process has the lock of a file now; false where there is no such file.
///
/// True also where the file cannot be locked, as on a file system without locks: nobody knows then, and
/// those who ask kill or remove what no run uses any more. No run may be refused because of this.
pub fn is_locked(path: &Path) -> bool {
    // Shared, so that two processes that ask at once do not take each other for a run. On NFS this lock
    // needs a file that is open for reading, and the other one a file that is open for writing.
    let file = open_regular(path);
    file.is_ok_and(|file| !is_free(&file.try_lock_shared()))
}

/// Whether the answer to a try shows that nobody has the lock.
fn is_free(tried: &Result<(), TryLockError>) -> bool {
    tried.is_ok()
}

/// Waits until no other run has the lock of a file, and takes it by `lock`; dropping the file releases it, as
/// does the end of this process. `waiting` is called once if there is something to wait for. False if
/// the lock is not free before the time is over.
///
/// # Errors
/// [`Error::Io`] where the file cannot be locked, [`Error::Interrupted`] after a signal.
pub fn wait_for_lock(
    lock: impl Fn() -> Result<(), TryLockError>,
    path: &Path,
    longest: Duration,
    waiting: impl FnOnce(),
) -> Result<bool, Error> {
    let mut waiting = Some(waiting);
    let start = Instant::now();
    loop {
        match lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(source)) => return Err(Error::io("lock", path)(source)),
            Err(TryLockError::WouldBlock) => {}
        }
        if interrupted() {
            return Err(Error::Interrupted);
        }
        if start.elapsed() > longest {
            return Ok(false);
        }
        if let Some(waiting) = waiting.take() {
            waiting();
        }
        std::thread::sleep(AGAIN);
    }
}

/// The process that has the lock of a file, where this machine shows it.
pub fn lock_holder(path: &Path) -> Option<u32> {
    let inode = disk::symlink_metadata(path).ok()?.ino();
    let locks = disk::read_to_string("/proc/locks").ok()?;
    // `1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF`; waiting ones have `->` before FLOCK.
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK", _, _, pid, file, ..] = fields.as_slice() else {
            return None;
        };
        let locked: u64 = file.rsplit(':').next()?.parse().ok()?;
        (locked == inode).then(|| pid.parse().ok())?
    })
}

/// What a command does in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Others may read it as well.
    Reads,
    /// By itself.
    Writes,
}

/// Takes the lock of a folder, which one command changes at a time while no other one reads it. Dropping
/// the file releases it, as does the end of this process. `waiting` is called once if another command has it. `None` where the folder
/// does not exist, or the file system has no locks.
///
/// # Errors
/// [`Error::Environment`] where the other command does not end in half an hour, or is not waited for;
/// [`Error::Interrupted`] after a signal.
pub fn lock_folder(
    folder: &Path,
    access: Access,
    waiting: impl FnOnce(&str),
) -> Result<Option<File>, Error> {
    let Ok(file) = disk::open(folder) else {
        return Ok(None);
    };
    let works = || {
        let place = folder.display();
        match lock_holder(folder) {
            Some(pid) => format!("another sparsek-gate (process {pid}) works in {place}"),
            None => format!("another sparsek-gate works in {place}"),
        }
    };
    let longest = longest_wait();
    let waits = || {
        let minutes = longest.as_secs() / 60;
        waiting(&format!(
            "{}; waiting for its end, for {minutes} minutes at most",
            works()
        ));
    };
    let lock = || match access {
        Access::Reads => file.try_lock_shared(),
        Access::Writes => file.try_lock(),
    };
    match wait_for_lock(lock, folder, longest, waits) {
        Ok(true) => Ok(Some(file)),
        Ok(false) => Err(Error::environment(
            works(),
            match access {
                Access::Reads => "wait for its end",
                Access::Writes => "wait for its end, or name another folder: --output DIR",
            },
        )),
        Err(Error::Io { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_counts_as_locked_unless_its_lock_was_free() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        assert!(!is_locked(&path), "there is none");
        let file = File::create(&path).unwrap();
        assert!(!is_locked(&path));
        // Somebody else who only asks.
        let asks = File::open(&path).unwrap();
        asks.try_lock_shared().unwrap();
        assert!(!is_locked(&path));
        drop(asks);
        // A process that another test is starting may still have the file open.
        file.lock().unwrap();
        assert!(is_locked(&path));
        assert_eq!(lock_holder(&path), Some(std::process::id()));
        let none = std::io::Error::from(std::io::ErrorKind::Unsupported);
        assert!(!is_free(&Err(TryLockError::Error(none))));
    }
}
