//! Watching the GPU through NVML while something runs on it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::enums::device::{SampleValue, UsedGpuMemory};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::sys_exports::field_id;
use nvml_wrapper::{Device, Nvml};
use thiserror::Error;

use super::owner;
use super::state::{ComputeProcess, Owner, Reading, Slowdown, State};

/// Between two readings.
const POLL: Duration = Duration::from_millis(100);
/// Between the two readings of a GPU that is not at rest. A program of an earlier run takes less to
/// leave it, and a clock to change.
const AGAIN: Duration = Duration::from_millis(300);
/// Where containers put the library when the loader's own folders do not have it.
const CONTAINER_LIBRARY: &str = "/usr/local/nvidia/lib64/libnvidia-ml.so.1";

const REASONS: [(ThrottleReasons, Slowdown); 6] = [
    (ThrottleReasons::SW_POWER_CAP, Slowdown::SwPowerCap),
    (ThrottleReasons::HW_SLOWDOWN, Slowdown::HwSlowdown),
    (ThrottleReasons::HW_THERMAL_SLOWDOWN, Slowdown::HwThermal),
    (ThrottleReasons::SW_THERMAL_SLOWDOWN, Slowdown::SwThermal),
    (
        ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN,
        Slowdown::PowerBrake,
    ),
    (ThrottleReasons::SYNC_BOOST, Slowdown::SyncBoost),
];

/// Counters of the time spent for a reason, in ns since the driver was loaded.
const COUNTERS: [(u32, Slowdown); 5] = {
    use Slowdown::*;
    use field_id::*;
    [
        (NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP, SwPowerCap),
        (NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN, HwThermal),
        (NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, SwThermal),
        (
            NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN,
            PowerBrake,
        ),
        (NVML_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST, SyncBoost),
    ]
};

/// Why a GPU cannot be watched. The measurement goes on without it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the GPU's state is not recorded: {why}")]
pub struct Unwatched {
    why: String,
    /// NVML's message where it says that the GPU is not there, and not only that the question failed.
    pub gone: Option<String>,
}

/// Watches one GPU while something runs on it, until it is stopped or dropped.
#[derive(Debug)]
pub struct Watcher {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<State>,
}

impl Watcher {
    /// Begins to watch the GPU of a UUID. A process that is on the GPU now and is not ours belongs to
    /// somebody else, so call this before the program to be watched is started.
    ///
    /// # Errors
    /// [`Unwatched`] where there is no NVML, or where it does not show the GPU. A single value that the
    /// GPU does not report is absent in the state.
    pub fn start(uuid: &str) -> Result<Watcher, Unwatched> {
        Watcher::over(NvmlProbe::open(uuid)?)
    }

    /// Stops watching. Empty where the watching thread broke.
    pub fn stop(self) -> State {
        // The thread may be gone already.
        let _ = self.stop.send(());
        self.thread.join().unwrap_or_default()
    }

    fn over(mut probe: impl Probe + 'static) -> Result<Watcher, Unwatched> {
        // A program that an earlier run ended may still be leaving.
        let is_foreign = |(_, owner): &(_, Owner)| *owner != Owner::Ours;
        let before = settled(&mut probe, |reading| {
            reading.processes.iter().any(is_foreign)
        });
        let counted = probe.counters();
        let (stop, stopped) = mpsc::channel();
        let watch = move || {
            let mut state = State::new(&before);
            while stopped.recv_timeout(POLL) == Err(RecvTimeoutError::Timeout) {
                state.add(&probe.read());
            }
            state.count(&counted, &probe.counters());
            state
        };
        let thread = thread::Builder::new()
            .name("gpu-watcher".to_owned())
            .spawn(watch)
            .map_err(|error| Unwatched {
                why: format!("no thread can be started: {error}"),
                gone: None,
            })?;
        Ok(Watcher { stop, thread })
    }
}

/// A source of readings of a GPU.
pub(super) trait Probe: Send {
    fn read(&mut self) -> Reading;
    /// Time spent below the requested clock, by reason, in ns.
    fn counters(&mut self) -> BTreeMap<Slowdown, u64>;
}

/// A reading; where it asks for a second one, with only those slowdowns and processes that both saw.
pub(super) fn settled(probe: &mut impl Probe, asks: impl Fn(&Reading) -> bool) -> Reading {
    let mut reading = probe.read();
    if asks(&reading) {
        thread::sleep(AGAIN);
        let later = probe.read();
        let still: HashSet<u32> = later.processes.iter().map(|(it, _)| it.pid).collect();
        reading.processes.retain(|(it, _)| still.contains(&it.pid));
        reading
            .slowdown
            .retain(|reason| later.slowdown.contains(reason));
    }
    reading
}

/// The version of the kernel driver, where NVML reports it.
pub(super) fn driver_version() -> Option<String> {
    nvml().ok()?.sys_driver_version().ok()
}

/// Whether any GPU of this machine is split into instances (MIG). The driver gives an instance a UUID
/// that is not a GPU's.
pub fn any_mig() -> bool {
    let Ok(nvml) = nvml() else {
        return false;
    };
    let count = nvml.device_count().unwrap_or(0);
    let mut devices = (0..count).filter_map(|index| nvml.device_by_index(index).ok());
    devices.any(|device| device.mig_mode().is_ok_and(|mode| mode.current != 0))
}

/// Loaded once and never shut down: where no persistence daemon runs, a process that uses NVML keeps
/// the GPU initialised between two programs.
fn nvml() -> Result<&'static Nvml, String> {
    static NVML: OnceLock<Result<Nvml, String>> = OnceLock::new();
    let loaded = NVML.get_or_init(|| {
        Nvml::init().or_else(|error| {
            Nvml::builder()
                .lib_path(OsStr::new(CONTAINER_LIBRARY))
                .init()
                .map_err(|_| error.to_string())
        })
    });
    loaded.as_ref().map_err(Clone::clone)
}

pub(super) struct NvmlProbe {
    pub(super) device: Device<'static>,
    uuid: String,
    /// Once ours, always ours: a process that ends loses its parent and its environment first.
    ours: HashSet<u32>,
}

impl Probe for NvmlProbe {
    fn read(&mut self) -> Reading {
        let device = &self.device;
        let reasons = device.current_throttle_reasons().ok();
        let reason = |flag: ThrottleReasons| reasons.is_some_and(|reasons| reasons.contains(flag));
        let slowdown: BTreeSet<Slowdown> = REASONS
            .iter()
            .filter(|(flag, _)| reason(*flag))
            .map(|(_, slowdown)| *slowdown)
            .collect();
        let clock = |kind| device.clock_info(kind).ok();
        let (sm_clock_mhz, memory_clock_mhz) = (clock(Clock::SM), clock(Clock::Memory));
        let temperature_c = device.temperature(TemperatureSensor::Gpu).ok();
        let power_mw = device.power_usage().ok();
        let running = device.running_compute_processes().unwrap_or_default();
        let processes = running
            .into_iter()
            .map(|process| {
                let memory_bytes = match process.used_gpu_memory {
                    UsedGpuMemory::Used(bytes) => Some(bytes),
                    UsedGpuMemory::Unavailable => None,
                };
                self.owned(process.pid, memory_bytes)
            })
            .collect();
        Reading {
            sm_clock_mhz,
            memory_clock_mhz,
            temperature_c,
            power_mw,
            rests: reasons.map(|reasons| reasons.contains(ThrottleReasons::GPU_IDLE)),
            slowdown,
            processes,
        }
    }

    fn counters(&mut self) -> BTreeMap<Slowdown, u64> {
        let asked = COUNTERS.map(|(field, _)| FieldId(field));
        let samples = self.device.field_values_for(&asked).unwrap_or_default();
        // The answers are in the order of the questions.
        COUNTERS
            .iter()
            .zip(samples)
            .filter_map(|((_, slowdown), sample)| {
                let ns = match sample.ok()?.value.ok()? {
                    SampleValue::U64(ns) => ns,
                    SampleValue::U32(ns) => u64::from(ns),
                    SampleValue::I64(ns) => u64::try_from(ns).ok()?,
                    SampleValue::F64(_) => return None,
                };
                Some((*slowdown, ns))
            })
            .collect()
    }
}

impl NvmlProbe {
    /// The GPU of a UUID, as NVML shows it.
    pub(super) fn open(uuid: &str) -> Result<NvmlProbe, Unwatched> {
        let nvml = nvml().map_err(|why| Unwatched {
            why: format!("NVML (libnvidia-ml.so.1) cannot be used: {why}"),
            gone: None,
        })?;
        let device = nvml.device_by_uuid(uuid).map_err(|error| Unwatched {
            why: format!("NVML does not show {uuid}: {error}"),
            gone: matches!(error, NvmlError::GpuLost | NvmlError::NotFound)
                .then(|| error.to_string()),
        })?;
        Ok(NvmlProbe {
            device,
            uuid: uuid.to_owned(),
            ours: HashSet::new(),
        })
    }

    fn owned(&mut self, pid: u32, memory_bytes: Option<u64>) -> (ComputeProcess, Owner) {
        let owner = match self.ours.contains(&pid) {
            true => Owner::Ours,
            false => owner::owner(pid, &self.uuid),
        };
        if owner == Owner::Ours {
            self.ours.insert(pid);
        }
        let name = (owner == Owner::Other).then(|| owner::name(pid)).flatten();
        let process = ComputeProcess {
            pid,
            name,
            memory_bytes,
        };
        (process, owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Gives its readings one after the other, the last one for ever.
    struct Script {
        readings: VecDeque<Reading>,
        counted: u64,
    }

    impl Probe for Script {
        fn read(&mut self) -> Reading {
            match self.readings.len() {
                1 => self.readings[0].clone(),
                _ => self.readings.pop_front().unwrap(),
            }
        }

        fn counters(&mut self) -> BTreeMap<Slowdown, u64> {
            self.counted += 7;
            [(Slowdown::SwPowerCap, self.counted)].into()
        }
    }

    fn with(pids: &[u32]) -> Reading {
        let process = |pid: &u32| ComputeProcess {
            pid: *pid,
            name: None,
            memory_bytes: None,
        };
        let processes = pids.iter().map(|pid| (process(pid), Owner::Unknown));
        Reading {
            sm_clock_mhz: Some(1980),
            processes: processes.collect(),
            ..Reading::default()
        }
    }

    fn others(readings: &[Reading]) -> (State, Vec<u32>) {
        let watcher = Watcher::over(Script {
            readings: readings.iter().cloned().collect(),
            counted: 100,
        })
        .unwrap();
        thread::sleep(POLL * 4);
        let state = watcher.stop();
        let pids = state.other_processes.iter().map(|p| p.pid).collect();
        (state, pids)
    }

    #[test]
    fn a_watcher_reads_until_it_is_stopped() {
        let (state, _) = others(&[with(&[])]);
        assert!(state.readings >= 1, "{state:?}");
        assert_eq!(state.working_readings, state.readings);
        assert_eq!(state.slowdown_ns, [(Slowdown::SwPowerCap, 7)].into());
    }

    #[test]
    fn a_program_that_is_leaving_is_no_other_process_and_one_that_stays_is() {
        let (state, pids) = others(&[with(&[40, 41]), with(&[41]), with(&[41, 42])]);
        assert_eq!(pids, [41]);
        assert_eq!(state.unknown_processes, 1);
    }

    #[test]
    fn without_a_gpu_the_watcher_says_so_and_with_one_it_reads() {
        let absent = Watcher::start("GPU-00000000-0000-0000-0000-000000000000");
        let why = absent.err().unwrap().to_string();
        assert!(why.starts_with("the GPU's state is not recorded"), "{why}");
        let Ok(gpu) = super::super::gpu::Gpu::query(0) else {
            return;
        };
        let watcher = Watcher::start(&gpu.uuid).unwrap();
        thread::sleep(POLL * 4);
        let state = watcher.stop();
        assert!(state.readings >= 1, "{state:?}");
        assert!(state.temperature_c.is_some(), "{state:?}");
    }
}
