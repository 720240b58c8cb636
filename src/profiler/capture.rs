//! What one session left.

use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use ncu_report::Recording;

use crate::capture::{Span, Tuned};
use crate::device::State;
use crate::finding::{Error, Stop};
use crate::profile::LaunchList;
use crate::terms::{Phase, Seed};

/// What one session left.
#[derive(Clone, Debug)]
pub struct Capture {
    /// The report file, or the records of a tier below the counters.
    pub report_path: PathBuf,
    /// sha256 of the report.
    pub report_sha256: String,
    /// The CSV that ncu printed of its report.
    pub page: Option<Page>,
    /// Which metrics it measured.
    pub phase: Phase,
    /// The state of the GPU meanwhile, where the driver reports it.
    pub device: Option<State>,
    /// The argv of ncu, or of the program where ncu was not run.
    pub argv: Vec<String>,
    /// The report, decoded.
    pub report: Recording,
    /// What the process was given to make the values of its inputs from.
    pub seed: Seed,
    /// Whether the process itself reported that the numbers of the measured launches are correct.
    pub checked: bool,
    /// What autotuners chose in the process, where it shows that.
    pub tuned: Vec<Tuned>,
    /// How long it kept the GPU, where every launch has its time.
    pub span: Option<Span>,
    /// What the process launched in all, where the profiler sees it.
    pub launch_list: Option<LaunchList>,
}

/// The CSV page of a report.
#[derive(Clone, Debug)]
pub struct Page {
    /// The file.
    pub path: PathBuf,
    /// Its sha256.
    pub sha256: String,
    /// Its content.
    pub recording: Recording,
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

    /// A capture that is read already.
    pub(super) fn of(capture: Capture, times: Times) -> Pending {
        Pending::reading(capture.phase, times, move || Ok(capture))
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
