//! Calls of the NVIDIA driver.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};

use cudarc::driver::{result, sys};

use crate::finding::Error;

/// Asks the driver. Where libcuda is missing or lacks a symbol, cudarc panics; this returns an error.
pub(super) fn guarded<T>(ask: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Error> {
    let missing = |what: String, next: &str| {
        Error::environment(
            what,
            format!(
                "{next}; without a GPU, `sparsek-gate check --static` gates what the compiler makes, `sparsek-gate check --from DIR` profiles recorded elsewhere, and `sparsek-gate compare --static A B` compares machine code"
            ),
        )
    };
    // SAFETY: only tries to open the library.
    if !unsafe { sys::is_culib_present() } {
        return Err(match unloadable() {
            Some(why) => missing(
                format!("no GPU can be used: the NVIDIA driver's library libcuda.so.1 cannot be loaded: {why}"),
                "reinstall the driver, and check which libraries LD_LIBRARY_PATH puts before it",
            ),
            None => missing(
                "no GPU can be used: the NVIDIA driver's library libcuda.so.1 is not on this machine".to_owned(),
                "install the NVIDIA driver, or start the container with `--gpus all`",
            ),
        });
    }
    // There is one hook for all threads.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let answer = panic::catch_unwind(AssertUnwindSafe(ask));
    panic::set_hook(hook);
    match answer {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(Refusal(what, next))) => Err(missing(what, next)),
        Err(_) => Err(missing(
            "the NVIDIA driver's library libcuda.so.1 is broken: it lacks a function that every driver has".to_owned(),
            "reinstall the driver",
        )),
    }
}

/// Why the driver's library cannot be loaded, where there is one.
fn unloadable() -> Option<String> {
    // SAFETY: the library was tried before and does not load.
    let error = unsafe { libloading::Library::new("libcuda.so.1") }.err()?;
    let why =
        std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
    (!why.contains("No such file or directory")).then_some(why)
}

/// What the driver refuses, and what to do.
pub(super) struct Refusal(String, &'static str);

impl From<result::DriverError> for Refusal {
    fn from(error: result::DriverError) -> Self {
        let text = error.error_string();
        let text = text
            .ok()
            .and_then(|text| text.to_str().ok())
            .unwrap_or("unknown error");
        let what = format!("the NVIDIA driver reports: {text} ({:?})", error.0);
        Refusal(what, "check that `nvidia-smi` works")
    }
}

/// The driver's handle of a GPU.
pub(super) fn device(ordinal: u32) -> Result<sys::CUdevice, Refusal> {
    let count = result::device::get_count()?;
    let index = i32::try_from(ordinal)
        .ok()
        .filter(|index| *index < count)
        .ok_or_else(|| {
            let what = format!("there is no GPU {ordinal}: the driver shows {count}");
            Refusal(what, "check --gpu and CUDA_VISIBLE_DEVICES")
        })?;
    Ok(result::device::get(index)?)
}
