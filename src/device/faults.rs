//! Faults of a GPU that its driver reports while it is measured: Xid errors, and memory errors that
//! could not be corrected.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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
    ended: AtomicBool,
}

impl FaultWatch {
    /// Begins to watch the GPU of a UUID; `None` where NVML does not show it. Where the driver reports
    /// no events, or does not count errors, these stay unknown. `at_once` gets the Xid errors so far when
    /// a new one comes: the program that is measured may hang then, and this process be killed.
    pub fn start(uuid: &str, at_once: impl Fn(&Faults) + Send + 'static) -> Option<FaultWatch> {
        let device = NvmlProbe::open(uuid).ok()?.into_device();
        let seen = Arc::new(Seen::default());
        if let Some(events) = events(&device) {
            let seen = Arc::clone(&seen);
            // Without the thread Xid errors stay unknown.
            let _ = thread::Builder::new()
                .name("gpu-faults".to_owned())
                .spawn(move || seen.follow(&events, &at_once));
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
    fn follow(&self, events: &EventSet<'static>, at_once: &dyn Fn(&Faults)) {
        let milliseconds = u32::try_from(WAIT.as_millis()).unwrap_or(u32::MAX);
        while !self.ended.load(Ordering::Relaxed) {
            let begun = Instant::now();
            match events.wait(milliseconds) {
                Ok(event) => {
                    if let Some(XidError::Value(xid)) = event.event_data
                        && let Ok(xid) = u32::try_from(xid)
                    {
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
                }
                // An interrupt ends a wait early.
                Err(NvmlError::Timeout) => thread::sleep(
                    WAIT.saturating_sub(begun.elapsed())
                        .min(Duration::from_millis(20)),
                ),
                Err(_) => return,
            }
        }
    }
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

    #[test]
    fn without_the_gpu_nothing_is_watched() {
        assert!(FaultWatch::start("GPU-00000000-0000-0000-0000-000000000000", |_| {}).is_none());
    }
}
