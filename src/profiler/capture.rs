//! What one session left.

use std::thread::JoinHandle;
use std::time::Duration;

use ncu_report::Recording;

use crate::finding::{Error, Stop};
use crate::profile::{CaptureRecord, LaunchList};
use crate::terms::Phase;

/// What one session left.
#[derive(Clone, Debug)]
pub struct Capture {
    /// As a profile has it. Its files lie in the folder of the session.
    pub record: CaptureRecord,
    /// The report, decoded, or the records of a tier below the counters.
    pub report: Recording,
    /// The CSV that ncu printed of its report, decoded.
    pub page: Option<Recording>,
    /// What the process launched in all, where the profiler sees it.
    pub launch_list: Option<LaunchList>,
}

/// How long a process took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// All of it.
    pub wall: Duration,
    /// Until its first launch was measured; `None` where that cannot be seen.
    pub until_launch: Option<Duration>,
}

/// A session that is over, and whose report may still be read in the background. Reading needs no
/// GPU, so the next session need not wait for it.
#[derive(Debug)]
pub struct Pending {
    /// Which metrics it measured.
    pub phase: Phase,
    /// How long the process took.
    pub times: Times,
    reader: Option<JoinHandle<Result<Capture, Stop>>>,
}

impl Drop for Pending {
    /// No program is left running behind a run that ended early.
    fn drop(&mut self) {
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl Pending {
    /// A capture that a thread still reads.
    pub(super) fn reading(
        phase: Phase,
        times: Times,
        read: impl FnOnce() -> Result<Capture, Stop> + Send + 'static,
    ) -> Pending {
        Pending {
            phase,
            times,
            reader: Some(std::thread::spawn(read)),
        }
    }

    /// Waits for the reader.
    ///
    /// # Errors
    /// A finding where the capture cannot be read; an error where the machine failed.
    pub fn finish(mut self) -> Result<Capture, Stop> {
        match self.reader.take().map(JoinHandle::join) {
            Some(Ok(answer)) => answer,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Err(Error::Interrupted.into()),
        }
    }
}
