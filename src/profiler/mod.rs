//! The profilers: each runs a program once and turns what it left into a [`Capture`].
//!
//! [`Profiler`] is what a profiler has to bring; [`run`] starts, watches and ends a process in
//! the same way for all of them. There is one implementation a tier: [`ncu`] reads hardware
//! counters, [`cupti`] times kernels, [`event_times`] takes the times that a program measures of
//! itself.
//!
//! A profiler of another vendor brings:
//! * a [`Tier`] of its own in `terms`, with what it can measure in `metric::measures`;
//! * the names of its counters in `metric` (aliases, roles, units);
//! * a reader of its files in `capture`, which returns launches with values under these names;
//! * an implementation of [`Profiler`] here, and its place in [`Profilers`].

mod capture;
pub mod cupti;
pub mod event_times;
pub mod ncu;
mod session;

use std::cell::OnceCell;

pub use capture::{Capture, Page, Pending};
pub use cupti::Recorder;
pub(crate) use ncu::{NCU_LOCK, home};
pub use ncu::{Ncu, Trouble};
pub use session::{Ran, Session, run};

use crate::config::Config;
use crate::device::Gpu;
use crate::finding::{Error, Stop};
use crate::process::Invocation;
use crate::terms::Tier;

/// What measures the launches of a program on one tier.
///
/// The three steps of a session are apart, so that a dry run can print the command without
/// running it, and so that all profilers are started, watched and ended by the same code.
pub trait Profiler {
    /// The tier it measures on.
    fn tier(&self) -> Tier;

    /// What people call the process that is started: `ncu`, or `the program`.
    fn process_name(&self) -> &'static str;

    /// The process that measures: argv, folder, environment, time limit, files for its output.
    /// Nothing is started and nothing is written.
    ///
    /// # Errors
    /// A finding where this profiler cannot measure the variant at all.
    fn invocation(&self, session: &Session<'_>) -> Result<Invocation, Stop>;

    /// Removes what an earlier session left and this one would take for its own.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn clear(&self, _session: &Session<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Judges how the process ended and reads what it left. What needs no GPU may go on in the
    /// background, see [`Pending`].
    ///
    /// # Errors
    /// A finding that says why the session measured nothing.
    fn finish(&self, session: &Session<'_>, ran: Ran) -> Result<Pending, Stop>;
}

/// The profilers of one machine. Those that a run may not need are prepared when they are needed.
pub struct Profilers {
    ncu: Ncu,
    event_times: event_times::EventTimes,
    /// What kernels are timed with, or why they cannot be.
    cupti: OnceCell<cupti::Cupti>,
}

impl Profilers {
    /// Nothing is prepared yet.
    pub fn new(ncu: Ncu) -> Profilers {
        Profilers {
            ncu,
            event_times: event_times::EventTimes,
            cupti: OnceCell::new(),
        }
    }

    /// The profiler of a tier.
    ///
    /// # Errors
    /// [`Error::Usage`] for the static tier, where nothing runs; [`Error::Io`] where a library
    /// cannot be written.
    pub fn of(&self, tier: Tier, config: &Config, gpu: &Gpu) -> Result<&dyn Profiler, Error> {
        match tier {
            Tier::Counters => Ok(&self.ncu),
            Tier::KernelTimes => {
                if self.cupti.get().is_none() {
                    let found = Recorder::prepare(
                        &config.toolchain,
                        &self.ncu.path,
                        &config.work,
                        &gpu.cuda,
                    )?;
                    let _ = self.cupti.set(cupti::Cupti::new(found));
                }
                match self.cupti.get() {
                    Some(cupti) => Ok(cupti),
                    None => Err(Error::Interrupted),
                }
            }
            Tier::EventTimes => Ok(&self.event_times),
            Tier::Static => Err(Error::Usage(
                "nothing runs on the static tier, so there is nothing to measure".to_owned(),
            )),
        }
    }
}
