//! The GPU: its identity, through cudarc, one profiler on it at a time, and its state while
//! something runs on it, through NVML.

mod health;
mod owner;
pub mod probe;
mod state;
mod watcher;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use cudarc::driver::sys::CUdevice_attribute;
use cudarc::driver::{result, sys};
use serde::{Deserialize, Serialize};

pub use health::Health;
pub use state::{ComputeProcess, Owner, Reading, Slowdown, Span, State};
pub use watcher::{Unwatched, Watcher};

use crate::finding::Error;
use crate::process;

/// Longest wait for another measurement on the same GPU.
const LOCK_PATIENCE: Duration = Duration::from_secs(1800);

/// A GPU, as the driver describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// CUDA ordinal, as `CUDA_VISIBLE_DEVICES` leaves it.
    pub ordinal: u32,
    /// Model name.
    pub name: String,
    /// `GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`.
    pub uuid: String,
    /// `major.minor`.
    pub compute_capability: String,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Device memory in bytes.
    pub memory_bytes: u64,
    /// Version of the kernel driver, where the system tells it.
    pub driver: Option<String>,
    /// Newest CUDA version that the driver serves, `major.minor`.
    pub cuda: String,
}

/// Held while a GPU is measured; released when dropped, or when the process dies.
#[derive(Debug)]
pub struct GpuLock {
    _file: File,
}

impl Gpu {
    /// Asks the driver about one GPU.
    ///
    /// # Errors
    /// [`Error::Environment`] where there is no driver or no such GPU. Never panics: cudarc does
    /// where libcuda lacks a symbol, and that is caught here.
    pub fn query(ordinal: u32) -> Result<Gpu, Error> {
        guarded(|| ask_driver(ordinal))
    }

    /// The file by which runs of this tool take turns on the GPU. It stays when they are over.
    pub fn lock_path(&self) -> PathBuf {
        std::env::temp_dir().join(format!("sparsek-gate-{}.lock", self.uuid))
    }

    fn lock_file(&self) -> Result<File, Error> {
        let path = self.lock_path();
        // One that is there is opened as it is: in a folder of everybody's, systems refuse to
        // "create" the file of another user.
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
        // Every user of the machine must be able to take the lock; only its owner may say so.
        let _ = file.set_permissions(std::fs::Permissions::from_mode(0o666));
        Ok(file)
    }

    /// Holds the GPU, if no other run of this tool measures on it now.
    ///
    /// # Errors
    /// [`Error::Io`] where the lock's file cannot be used.
    pub fn try_lock(&self) -> Result<Option<GpuLock>, Error> {
        let file = self.lock_file()?;
        match file.try_lock() {
            Ok(()) => Ok(Some(GpuLock { _file: file })),
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(source)) => {
                Err(Error::io("lock", self.lock_path())(source))
            }
        }
    }

    /// The process that holds the GPU's lock, where this machine knows it.
    pub fn lock_holder(&self) -> Option<ComputeProcess> {
        let inode = std::fs::metadata(self.lock_path()).ok()?.ino();
        let locks = std::fs::read_to_string("/proc/locks").ok()?;
        // `1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF`; waiting ones have `->` before FLOCK.
        let pid = locks.lines().find_map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let [_, "FLOCK", _, _, pid, file, ..] = fields.as_slice() else {
                return None;
            };
            let held: u64 = file.rsplit(':').next()?.parse().ok()?;
            (held == inode).then(|| pid.parse().ok())?
        })?;
        Some(ComputeProcess {
            pid,
            name: owner::name(pid),
            memory_bytes: None,
        })
    }

    /// Waits until no other run of this tool measures on the GPU, then holds it.
    /// `waiting` is called once if there is something to wait for.
    ///
    /// # Errors
    /// [`Error::Environment`] where the GPU stays busy for half an hour.
    pub fn lock(&self, waiting: impl FnOnce()) -> Result<GpuLock, Error> {
        let path = self.lock_path();
        let file = self.lock_file()?;
        let mut waiting = Some(waiting);
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(GpuLock { _file: file }),
                Err(std::fs::TryLockError::Error(source)) => {
                    return Err(Error::io("lock", &path)(source));
                }
                Err(std::fs::TryLockError::WouldBlock) => {}
            }
            if process::interrupted() {
                return Err(Error::Interrupted);
            }
            if start.elapsed() > LOCK_PATIENCE {
                return Err(Error::Environment {
                    what: format!(
                        "another sparsek-gate has measured on {} for {} s",
                        self.uuid,
                        LOCK_PATIENCE.as_secs()
                    ),
                    next: format!("see who holds {}", path.display()),
                });
            }
            if let Some(waiting) = waiting.take() {
                waiting();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Asks the driver. cudarc panics where libcuda is missing or lacks a symbol; here that is an error.
fn guarded<T>(ask: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Error> {
    let missing = |what: String, next: &str| Error::Environment {
        what,
        next: format!(
            "{next}; profiles recorded elsewhere need no GPU: `sparsek-gate check --from DIR`"
        ),
    };
    // SAFETY: only tries to open the library.
    if !unsafe { sys::is_culib_present() } {
        return Err(match unloadable() {
            Some(why) => missing(
                format!("no GPU can be used: the NVIDIA driver's library libcuda.so.1 cannot be loaded: {why}"),
                "reinstall the driver, and see what LD_LIBRARY_PATH puts before it",
            ),
            None => missing(
                "no GPU can be used: the NVIDIA driver's library libcuda.so.1 is not on this machine".to_owned(),
                "install the NVIDIA driver, or start the container with `--gpus all`",
            ),
        });
    }
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let answer = panic::catch_unwind(AssertUnwindSafe(ask));
    panic::set_hook(hook);
    match answer {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(Refusal::NoSuchDevice { ordinal, count })) => Err(missing(
            format!("there is no GPU {ordinal}: the driver shows {count}"),
            "check `gpu.device` and CUDA_VISIBLE_DEVICES",
        )),
        Ok(Err(Refusal::Driver(error))) => Err(missing(
            format!("the NVIDIA driver refuses: {error}"),
            "see whether `nvidia-smi` works",
        )),
        Err(_) => Err(missing(
            "the NVIDIA driver's library libcuda.so.1 is broken: a function that every driver has is not in it".to_owned(),
            "reinstall the driver",
        )),
    }
}

/// Why the driver's library cannot be loaded, where there is one.
fn unloadable() -> Option<String> {
    // SAFETY: what is there was tried before and does not load.
    let error = unsafe { libloading::Library::new("libcuda.so.1") }.err()?;
    let why =
        std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
    (!why.contains("No such file or directory")).then_some(why)
}

enum Refusal {
    NoSuchDevice { ordinal: u32, count: i32 },
    Driver(String),
}

impl From<result::DriverError> for Refusal {
    fn from(error: result::DriverError) -> Self {
        let text = error
            .error_string()
            .ok()
            .and_then(|text| text.to_str().ok())
            .unwrap_or("unknown error")
            .to_owned();
        Refusal::Driver(format!("{text} ({:?})", error.0))
    }
}

/// The driver's handle of a GPU.
fn device(ordinal: u32) -> Result<sys::CUdevice, Refusal> {
    let count = result::device::get_count()?;
    let index = i32::try_from(ordinal)
        .ok()
        .filter(|index| *index < count)
        .ok_or(Refusal::NoSuchDevice { ordinal, count })?;
    Ok(result::device::get(index)?)
}

fn ask_driver(ordinal: u32) -> Result<Gpu, Refusal> {
    result::init()?;
    let device = device(ordinal)?;
    let attribute = |which| {
        // SAFETY: `device` came from the driver.
        unsafe { result::device::get_attribute(device, which) }
    };
    let major = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    let multiprocessors = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
    // SAFETY: as above.
    let memory_bytes = unsafe { result::device::total_mem(device) }? as u64;
    let mut version = 0;
    // SAFETY: writes one integer.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result()?;
    Ok(Gpu {
        ordinal,
        name: result::device::get_name(device)?,
        uuid: uuid_text(
            result::device::get_uuid(device)?
                .bytes
                .map(|byte| byte as u8),
        ),
        compute_capability: format!("{major}.{minor}"),
        multiprocessors: u32::try_from(multiprocessors).unwrap_or(0),
        memory_bytes,
        driver: kernel_driver(),
        cuda: format!("{}.{}", version / 1000, version % 1000 / 10),
    })
}

fn uuid_text(bytes: [u8; 16]) -> String {
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |range: std::ops::Range<usize>| hex[range].concat();
    format!(
        "GPU-{}-{}-{}-{}-{}",
        part(0..4),
        part(4..6),
        part(6..8),
        part(8..10),
        part(10..16)
    )
}

fn kernel_driver() -> Option<String> {
    let module = || {
        let text = std::fs::read_to_string("/sys/module/nvidia/version").ok()?;
        Some(text.trim().to_owned())
    };
    watcher::driver_version().or_else(module).or_else(|| {
        let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
        let is_version = |word: &&str| {
            word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.')
        };
        text.split_whitespace().find(is_version).map(str::to_owned)
    })
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
            let (told, hears) = std::sync::mpsc::channel();
            let second = scope.spawn({
                let gpu = &gpu;
                move || gpu.lock(|| told.send(()).unwrap()).map(drop)
            });
            hears.recv().unwrap();
            assert!(!second.is_finished());
            drop(first);
            second.join().unwrap().unwrap();
        });
        let _ = std::fs::remove_file(gpu.lock_path());
    }
}
