//! The locks by which runs of this tool take turns.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use super::interrupted;
use crate::files::open_regular;
use crate::finding::Error;

/// Between two attempts.
const AGAIN: Duration = Duration::from_millis(50);

/// Whether another process has the lock of a file now; false where there is no such file.
pub fn is_locked(path: &Path) -> bool {
    let file = open_regular(path);
    file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

/// Waits until no other run has the lock of a file, and takes it; dropping the file releases it, as
/// does the end of this process. `waiting` is called once if there is something to wait for. False if
/// the lock is not free before the time is over.
///
/// # Errors
/// [`Error::Io`] where the file cannot be locked, [`Error::Interrupted`] after a signal.
pub fn wait_for_lock(
    file: &File,
    path: &Path,
    longest: Duration,
    waiting: impl FnOnce(),
) -> Result<bool, Error> {
    let mut waiting = Some(waiting);
    let start = Instant::now();
    loop {
        match file.try_lock() {
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
