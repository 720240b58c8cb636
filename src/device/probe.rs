//! Launches the smallest kernel there is. This shows without a compiler that a GPU can be used, and
//! that a profiler can read it.

use std::ffi::CStr;

use cudarc::driver::{result, sys};

use super::driver::{device, guarded};
use crate::finding::Error;

/// The name of its kernel.
const KERNEL: &CStr = c"sparsek_gate_probe";

/// The driver compiles it for whatever GPU there is.
const PTX: &CStr = c"\
.version 6.0
.target sm_50
.address_size 64

.visible .entry sparsek_gate_probe()
{
    ret;
}
";

/// Launches the kernel on a GPU and waits for its end.
///
/// # Errors
/// [`Error::Environment`] where there is no driver, no such GPU, or the launch fails.
pub fn launch(ordinal: u32) -> Result<(), Error> {
    guarded(move || {
        result::init()?;
        let device = device(ordinal)?;
        // SAFETY: the device came from the driver, and each handle from the call before it; the
        // text of the module ends in a zero; the kernel has no parameters.
        unsafe {
            let context = result::primary_ctx::retain(device)?;
            result::ctx::set_current(context)?;
            let module = result::module::load_data(PTX.as_ptr().cast())?;
            let function = result::module::get_function(module, KERNEL.to_owned())?;
            let stream: sys::CUstream = std::ptr::null_mut();
            result::launch_kernel(function, (1, 1, 1), (32, 1, 1), 0, stream, &mut [])?;
            result::ctx::synchronize()?;
            result::primary_ctx::release(device)?;
        }
        Ok(())
    })
}
