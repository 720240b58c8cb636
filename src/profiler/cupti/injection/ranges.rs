//! Where the ranges between `cudaProfilerStart` and `cudaProfilerStop` begin and end, among the calls
//! of the program.
//!
//! CUPTI numbers all calls of a program in their order, and a kernel has the number of the call that
//! launched it.

use std::ffi::{c_char, c_void};
use std::sync::OnceLock;

use super::symbols::{Library, SUCCESS, Status, function};

/// `CUPTI_CB_DOMAIN_DRIVER_API` and `CUPTI_CB_DOMAIN_RUNTIME_API` of `cupti_callbacks.h`.
const DRIVER_API: u32 = 1;
const RUNTIME_API: u32 = 2;
/// `CUPTI_API_ENTER`.
const ENTER: u32 = 0;

/// Domain, number and meaning of the calls, from `cupti_driver_cbid.h` and `cupti_runtime_cbid.h`.
/// A call of the runtime may contain the driver's; the second of two that mean the same changes
/// nothing.
const CALLS: [(u32, u32, &str); 4] = [
    (DRIVER_API, 308, "start"),
    (DRIVER_API, 309, "stop"),
    (RUNTIME_API, 171, "start"),
    (RUNTIME_API, 172, "stop"),
];

/// `CUpti_CallbackData` of `cupti_callbacks.h`.
#[repr(C)]
struct CallbackData {
    site: u32,
    function_name: *const c_char,
    parameters: *const c_void,
    answer: *const c_void,
    symbol_name: *const c_char,
    context: *mut c_void,
    context_id: u32,
    correlation_data: *mut u64,
    correlation_id: u32,
}

/// Gets the domain and the number of the call.
type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const CallbackData);

/// Takes each line.
static WRITE: OnceLock<fn(&str)> = OnceLock::new();

/// From now on hands over a line `range start CALL` or `range stop CALL` for each such call. A program
/// has one subscriber to its calls at most.
pub fn begin(write: fn(&str)) -> Result<(), String> {
    WRITE.get_or_init(|| write);
    let cupti = Library::cupti()?;
    let subscribe: unsafe extern "C" fn(*mut *mut c_void, Callback, *mut c_void) -> Status =
        function!(cupti, "cuptiSubscribe");
    let enable: unsafe extern "C" fn(u32, *mut c_void, u32, u32) -> Status =
        function!(cupti, "cuptiEnableCallback");
    let mut subscriber = std::ptr::null_mut();
    // SAFETY: the callback lives as long as the process.
    let status = unsafe { subscribe(&mut subscriber, callback, std::ptr::null_mut()) };
    if status != SUCCESS {
        return Err(format!(
            "cuptiSubscribe answered {status} (39: another profiler is in the program)"
        ));
    }
    for (domain, call, _) in CALLS {
        // SAFETY: a plain call.
        let status = unsafe { enable(1, subscriber, domain, call) };
        if status != SUCCESS {
            return Err(format!(
                "cuptiEnableCallback answered {status} for call {call}"
            ));
        }
    }
    Ok(())
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
