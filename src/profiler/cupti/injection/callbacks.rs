//! Has CUPTI call a function before and after calls of the program.

use std::ffi::{c_char, c_void};

use super::driver::Handle;
use super::symbols::{Library, SUCCESS, Status, function};

/// `CUPTI_CB_DOMAIN_DRIVER_API` and `CUPTI_CB_DOMAIN_RUNTIME_API` of `cupti_callbacks.h`.
pub const DRIVER_API: u32 = 1;
pub const RUNTIME_API: u32 = 2;
/// `CUPTI_API_ENTER` and `CUPTI_API_EXIT`.
pub const ENTER: u32 = 0;
pub const EXIT: u32 = 1;
/// `CUPTI_ERROR_NOT_SUPPORTED`: also said where there is no such library or function.
pub const NOT_SUPPORTED: Status = 27;

/// `CUpti_CallbackData` of `cupti_callbacks.h`.
#[repr(C)]
pub struct CallbackData {
    pub site: u32,
    pub function_name: *const c_char,
    pub parameters: *const c_void,
    pub answer: *const c_void,
    pub symbol_name: *const c_char,
    pub context: Handle,
    pub context_id: u32,
    pub correlation_data: *mut u64,
    pub correlation_id: u32,
}

/// Gets the domain and the number of the call.
pub type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const CallbackData);

/// Subscribes to calls, each a domain and a number. A program has one subscriber at most.
pub fn subscribe(
    callback: Callback,
    calls: impl Iterator<Item = (u32, u32)>,
) -> Result<(), (Status, String)> {
    let find = || {
        let cupti = Library::cupti()?;
        let subscribe: unsafe extern "C" fn(*mut Handle, Callback, *mut c_void) -> Status =
            function!(cupti, "cuptiSubscribe");
        let enable: unsafe extern "C" fn(u32, Handle, u32, u32) -> Status =
            function!(cupti, "cuptiEnableCallback");
        Ok((subscribe, enable))
    };
    let (subscribe, enable) = find().map_err(|what: String| (NOT_SUPPORTED, what))?;
    let mut subscriber = std::ptr::null_mut();
    // SAFETY: the callback lives as long as the process.
    let status = unsafe { subscribe(&mut subscriber, callback, std::ptr::null_mut()) };
    if status != SUCCESS {
        let what =
            format!("cuptiSubscribe answered {status} (39: another profiler is in the program)");
        return Err((status, what));
    }
    for (domain, call) in calls {
        // SAFETY: a plain call.
        let status = unsafe { enable(1, subscriber, domain, call) };
        if status != SUCCESS {
            let what = format!("cuptiEnableCallback answered {status} for call {call}");
            return Err((status, what));
        }
    }
    Ok(())
}
