//! Faults of a GPU that its driver reports while it is measured: Xid errors, and memory errors that
//! could not be corrected.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enum_wrappers::device::{EccCounter, MemoryError};
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, EventSet};

use super::state::Faults;
use super::watcher::NvmlProbe;

/// How long one wait for the next event takes. The driver keeps only the newest Xid, and one fault of
/// the hardware is often followed by others at once: so the watch waits for events, and does not poll.
const WAIT: Duration = Duration::from_millis(200);

/// After so many errors in a row in the place of events, no more are waited for.
const MOST_ERRORS: u32 = 50;

/// Watches a GPU for faults until it is dropped.
#[derive(Debug)]
pub struct FaultWatch {
    device: Device<'static>,
    errors_before: Option<u64>,
    seen: Arc<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    xids: Mutex<BTreeSet<u32>>,
    /// That nobody wants to know any more.
    ended: AtomicBool,
    /// Why no more Xid errors are heard of.
    deaf: OnceLock<String>,
}

impl FaultWatch {
    /// Begins to watch the GPU of a UUID; `None` where NVML does not show it. Where the driver reports
    /// no events, or does not count errors, these stay unknown. `at_once` gets the Xid errors so far when
    /// a new one comes: the program that is measured may hang then, and this process be killed.
    pub fn start(uuid: &str, at_once: impl Fn(&Faults) + Send + 'static) -> Option<FaultWatch> {
        let device = NvmlProbe::open(uuid).ok()?.device;
        let seen = Arc::new(Seen::default());
        if let Some(events) = events(&device) {
            let thread = {
                let seen = Arc::clone(&seen);
                let mut next = move || next_xid(&events);
                let follow = move || seen.follow(&mut next, WAIT, &at_once);
                let thread = thread::Builder::new().name("gpu-faults".to_owned());
                thread.spawn(follow)
            };
            if let Err(error) = thread {
                seen.hears_no_more(format!("no thread can be started: {error}"));
            }
        }
        Some(FaultWatch {
            errors_before: uncorrected(&device),
            device,
            seen,
        })
    }

    /// Memory errors that could not be corrected, as the driver counts them in all: since it was loaded,
    /// and in the life of the GPU.
    pub fn counted_errors(&self) -> [Option<u64>; 2] {
        [EccCounter::Volatile, EccCounter::Aggregate].map(|counter| errors(&self.device, counter))
    }

    /// Why Xid errors are heard of no more, where the driver reports them.
    pub fn deaf(&self) -> Option<&str> {
        self.seen.deaf.get().map(String::as_str)
    }

    /// What the driver reported since the start.
    pub fn faults(&self) -> Faults {
        let counted = uncorrected(&self.device).zip(self.errors_before);
        let xids = self
            .seen
            .xids
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Faults {
            xids: xids.clone(),
            // A counter that went back was reset, and is ignored.
            uncorrected_errors: counted
                .and_then(|(now, before)| now.checked_sub(before))
                .unwrap_or(0),
        }
    }
}

impl Drop for FaultWatch {
    fn drop(&mut self) {
        // The thread ends with its wait; nobody waits for it.
        self.seen.ended.store(true, Ordering::Relaxed);
    }
}

impl Seen {
    /// Keeps the Xid errors that `next` waits for. After an error it waits again, with a pause: the driver
    /// may answer later. It ends where the GPU or the library is gone, or after many errors in a row.
    fn follow(
        &self,
        next: &mut dyn FnMut() -> Result<Option<u32>, NvmlError>,
        pause: Duration,
        at_once: &dyn Fn(&Faults),
    ) {
        let mut errors = 0;
        while !self.ended.load(Ordering::Relaxed) {
            let begun = Instant::now();
            match next() {
                Ok(xid) => {
                    errors = 0;
                    xid.into_iter().for_each(|xid| self.hears(xid, at_once));
                }
                // An interrupt ends a wait early.
                Err(NvmlError::Timeout) => {
                    errors = 0;
                    let left = pause.saturating_sub(begun.elapsed());
                    thread::sleep(left.min(Duration::from_millis(20)));
                }
                Err(error) => {
                    errors += 1;
                    if is_the_end(&error) || errors == MOST_ERRORS {
                        return self.hears_no_more(error.to_string());
                    }
                    thread::sleep(pause);
                }
            }
        }
    }

    fn hears(&self, xid: u32, at_once: &dyn Fn(&Faults)) {
        let mut xids = self.xids.lock().unwrap_or_else(PoisonError::into_inner);
        let so_far = xids.insert(xid).then(|| xids.clone());
        drop(xids);
        if let Some(xids) = so_far {
            at_once(&Faults {
                xids,
                ..Faults::default()
            });
        }
    }

    fn hears_no_more(&self, why: String) {
        // The first cause is kept.
        let _ = self.deaf.set(why);
    }
}

/// Waits for an event, and returns its Xid.
fn next_xid(events: &EventSet<'static>) -> Result<Option<u32>, NvmlError> {
    let milliseconds = u32::try_from(WAIT.as_millis()).unwrap_or(u32::MAX);
    let event = events.wait(milliseconds)?;
    Ok(match event.event_data {
        Some(XidError::Value(xid)) => u32::try_from(xid).ok(),
        _ => None,
    })
}

/// Whether an error means that the GPU or the driver's library is gone, so that no event will come.
fn is_the_end(error: &NvmlError) -> bool {
    matches!(
        error,
        NvmlError::GpuLost
            | NvmlError::Uninitialized
            | NvmlError::DriverNotLoaded
            | NvmlError::LibraryNotFound
            | NvmlError::FunctionNotFound
            | NvmlError::FailedToLoadSymbol(_)
            | NvmlError::LibloadingError(_)
    )
}

/// The critical Xid errors of a GPU, as events.
fn events(device: &Device<'static>) -> Option<EventSet<'static>> {
    let set = device.nvml().create_event_set().ok()?;
    device
        .register_events(EventTypes::CRITICAL_XID_ERROR, set)
        .ok()
}

/// Memory errors that could not be corrected, since the driver was loaded.
pub(super) fn uncorrected(device: &Device<'static>) -> Option<u64> {
    errors(device, EccCounter::Volatile)
}

fn errors(device: &Device<'static>, counter: EccCounter) -> Option<u64> {
    device
        .total_ecc_errors(MemoryError::Uncorrected, counter)
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is heard of these answers, which end with the GPU: the Xid errors, and why no more are.
    fn heard(answers: Vec<Result<Option<u32>, NvmlError>>) -> (Vec<u32>, String, usize) {
        let seen = Seen::default();
        let mut answers = answers.into_iter();
        let mut next = || answers.next().unwrap_or(Err(NvmlError::GpuLost));
        seen.follow(&mut next, Duration::ZERO, &|_| {});
        let xids = seen.xids.into_inner().unwrap();
        let why = seen.deaf.into_inner().unwrap();
        (xids.into_iter().collect(), why, answers.count())
    }

    #[test]
    fn errors_in_the_place_of_events_do_not_end_the_watch_until_there_are_many_in_a_row() {
        let lost = NvmlError::GpuLost.to_string();
        let unknown = |count: u32| (0..count).map(|_| Err(NvmlError::Unknown));
        let most = MOST_ERRORS - 1;
        for between in [Ok(Some(13)), Ok(None), Err(NvmlError::Timeout)] {
            let had = between.as_ref().ok().copied().flatten();
            let answers = unknown(most).chain([between]).chain(unknown(most));
            let (xids, why, _) = heard(answers.chain([Ok(Some(48))]).collect());
            let expected: Vec<u32> = had.into_iter().chain([48]).collect();
            assert_eq!((xids, &why), (expected, &lost));
        }
        let (xids, why, left) = heard(unknown(MOST_ERRORS).chain([Ok(Some(48))]).collect());
        let expected = NvmlError::Unknown.to_string();
        assert_eq!((xids, why, left), (vec![], expected, 1));
        let (xids, why, left) = heard(vec![Err(NvmlError::Uninitialized), Ok(Some(48))]);
        let expected = NvmlError::Uninitialized.to_string();
        assert_eq!((xids, why, left), (vec![], expected, 1));
    }

    #[test]
    fn without_the_gpu_nothing_is_watched() {
        assert!(FaultWatch::start("GPU-00000000-0000-0000-0000-000000000000", |_| {}).is_none());
    }
}
