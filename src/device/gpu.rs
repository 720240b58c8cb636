//! The identity of a GPU.

use cudarc::driver::sys::CUdevice_attribute;
use cudarc::driver::{result, sys};
use serde::{Deserialize, Serialize};

use super::driver::{Refusal, device, guarded};
use super::watcher;
use crate::disk;
use crate::finding::Error;

/// A GPU, as the driver describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Version of the kernel driver, where the system reports it.
    pub driver: Option<String>,
    /// Newest CUDA version that the driver supports, `major.minor`.
    pub cuda: String,
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

    /// Asks the driver about all GPUs that it shows, by their ordinals.
    ///
    /// # Errors
    /// As [`Gpu::query`]; also where it shows none.
    pub fn all() -> Result<Vec<Gpu>, Error> {
        guarded(|| {
            result::init()?;
            let count = u32::try_from(result::device::get_count()?).unwrap_or(0);
            (0..count.max(1)).map(ask_driver).collect()
        })
    }
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
    let hex = format!("{:032x}", u128::from_be_bytes(bytes));
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &hex[part]);
    format!("GPU-{}", parts.join("-"))
}

fn kernel_driver() -> Option<String> {
    let module = || {
        let text = disk::read_to_string("/sys/module/nvidia/version").ok()?;
        Some(text.trim().to_owned())
    };
    watcher::driver_version().or_else(module).or_else(|| {
        let text = disk::read_to_string("/proc/driver/nvidia/version").ok()?;
        let is_version = |word: &&str| {
            word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.')
        };
        text.split_whitespace().find(is_version).map(str::to_owned)
    })
}
