//! Where the ranges between `cudaProfilerStart` and `cudaProfilerStop` begin and end, among the calls
//! of the program.
//!
//! CUPTI numbers all calls of a program in their order, and a kernel has the number of the call that
//! launched it.

use std::ffi::c_void;
use std::sync::OnceLock;

use super::callbacks::{self, CallbackData, DRIVER_API, ENTER, RUNTIME_API};

/// Domain, number and meaning of the calls, from `cupti_driver_cbid.h` and `cupti_runtime_cbid.h`.
/// A call of the runtime may contain the driver's; the second of two that mean the same changes
/// nothing.
const CALLS: [(u32, u32, &str); 4] = [
    (DRIVER_API, 308, "start"),
    (DRIVER_API, 309, "stop"),
    (RUNTIME_API, 171, "start"),
    (RUNTIME_API, 172, "stop"),
];

/// Takes each line.
static WRITE: OnceLock<fn(&str)> = OnceLock::new();

/// From now on hands over a line `range start CALL` or `range stop CALL` for each such call.
pub fn begin(write: fn(&str)) -> Result<(), String> {
    WRITE.get_or_init(|| write);
    let calls = CALLS.iter().map(|(domain, id, _)| (*domain, *id));
    callbacks::subscribe(callback, calls).map_err(|(_, what)| what)
}

/// # Safety
/// CUPTI calls this with the data of a call.
unsafe extern "C" fn callback(_: *mut c_void, domain: u32, id: u32, data: *const CallbackData) {
    let call = CALLS
        .iter()
        .find(|(of, number, _)| (*of, *number) == (domain, id));
    if let (Some((_, _, what)), false) = (call, data.is_null()) {
        // SAFETY: the data lives while this function runs.
        let (site, call) = unsafe { ((*data).site, (*data).correlation_id) };
        if let (ENTER, Some(write)) = (site, WRITE.get()) {
            write(&format!("range {what} {call}\n"));
        }
    }
}
