//! The library that the CUDA driver loads into a measured program (`build.rs` compiles this file
//! with those beside it, `crate::profiler::cupti::library` embeds the result).
//!
//! The driver loads what `CUDA_INJECTION64_PATH` names when the program initializes CUDA, and calls
//! `InitializeInjection`. The library then records when each kernel began and ended ([`records`]).
//! Nothing that goes wrong here may stop the program: every failure is a line of the file that it
//! writes.

mod calls;
mod records;
mod symbols;

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

static CALLED: AtomicBool = AtomicBool::new(false);

/// Called by the driver. 1 lets the program go on.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> c_int {
    if CALLED.swap(true, Ordering::AcqRel) {
        return 1;
    }
    if let Some(prefix) = std::env::var_os("SPARSEK_GATE_KERNEL_RECORDS") {
        records::begin(prefix);
    }
    1
}
