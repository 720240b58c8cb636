//! The functions of the CUDA driver that are called here, and what they return.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use super::symbols::{Library, SUCCESS, function};

/// `CUresult`.
type Answer = u32;
/// `CUcontext`, `CUstream`, `CUfunction`, `CUmodule`, `CUlinkState`: pointers to what the driver
/// alone knows.
pub type Handle = *mut c_void;
/// `CUdeviceptr`.
pub type Address = u64;

/// `CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE` of `cuda.h`.
const L2_CACHE_SIZE: c_int = 38;
/// `CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES` and `CU_FUNC_ATTRIBUTE_NUM_REGS` of `cuda.h`.
pub const STATIC_SHARED: c_int = 1;
pub const REGISTERS: c_int = 4;
/// `CU_JIT_INPUT_PTX` of `cuda.h`.
const PTX: c_uint = 1;

/// The signatures are those of `cuda.h` of CUDA 13.0; none changed since CUDA 12.0.
pub struct Driver {
    synchronize: unsafe extern "C" fn() -> Answer,
    device: unsafe extern "C" fn(*mut c_int) -> Answer,
    attribute: unsafe extern "C" fn(*mut c_int, c_int, c_int) -> Answer,
    is_capturing: unsafe extern "C" fn(Handle, *mut c_uint) -> Answer,
    function_attribute: unsafe extern "C" fn(*mut c_int, c_int, Handle) -> Answer,
    kernel_attribute: unsafe extern "C" fn(*mut c_int, c_int, Handle, c_int) -> Answer,
    allocate: unsafe extern "C" fn(*mut Address, usize) -> Answer,
    free: unsafe extern "C" fn(Address) -> Answer,
    fill: unsafe extern "C" fn(Address, u8, usize, Handle) -> Answer,
    load: unsafe extern "C" fn(*mut Handle, *const c_void) -> Answer,
    unload: unsafe extern "C" fn(Handle) -> Answer,
    function: unsafe extern "C" fn(*mut Handle, Handle, *const c_char) -> Answer,
    launch: Launch,
    link_create: unsafe extern "C" fn(c_uint, Handle, Handle, *mut Handle) -> Answer,
    link_add: LinkAdd,
    link_complete: unsafe extern "C" fn(Handle, *mut *mut c_void, *mut usize) -> Answer,
    link_destroy: unsafe extern "C" fn(Handle) -> Answer,
}

type Launch = unsafe extern "C" fn(
    Handle,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    Handle,
    *mut *mut c_void,
    *mut *mut c_void,
) -> Answer;
type LinkAdd = unsafe extern "C" fn(
    Handle,
    c_uint,
    *mut c_void,
    usize,
    *const c_char,
    c_uint,
    Handle,
    Handle,
) -> Answer;

/// An error that names the call.
fn answered(call: &str, answer: Answer) -> Result<(), String> {
    match answer {
        SUCCESS => Ok(()),
        other => Err(format!("{call} answered {other}")),
    }
}

impl Driver {
    /// The driver of this process. The names with `_v2` are those that `cuda.h` gives the functions.
    pub fn of(cuda: Library) -> Result<Driver, String> {
        Ok(Driver {
            synchronize: function!(cuda, "cuCtxSynchronize"),
            device: function!(cuda, "cuCtxGetDevice"),
            attribute: function!(cuda, "cuDeviceGetAttribute"),
            is_capturing: function!(cuda, "cuStreamIsCapturing"),
            function_attribute: function!(cuda, "cuFuncGetAttribute"),
            kernel_attribute: function!(cuda, "cuKernelGetAttribute"),
            allocate: function!(cuda, "cuMemAlloc_v2"),
            free: function!(cuda, "cuMemFree_v2"),
            fill: function!(cuda, "cuMemsetD8Async"),
            load: function!(cuda, "cuModuleLoadData"),
            unload: function!(cuda, "cuModuleUnload"),
            function: function!(cuda, "cuModuleGetFunction"),
            launch: function!(cuda, "cuLaunchKernel"),
            link_create: function!(cuda, "cuLinkCreate_v2"),
            link_add: function!(cuda, "cuLinkAddData_v2"),
            link_complete: function!(cuda, "cuLinkComplete"),
            link_destroy: function!(cuda, "cuLinkDestroy"),
        })
    }

    /// Waits for all that the current context was given.
    pub fn synchronize(&self) -> Result<(), String> {
        // SAFETY: a plain call.
        answered("cuCtxSynchronize", unsafe { (self.synchronize)() })
    }

    /// The ordinal of the current context's device.
    pub fn device(&self) -> Result<c_int, String> {
        let mut device = 0;
        // SAFETY: writes one integer.
        answered("cuCtxGetDevice", unsafe { (self.device)(&mut device) })?;
        Ok(device)
    }

    /// Bytes of the device's second-level cache.
    pub fn l2_bytes(&self, device: c_int) -> Result<usize, String> {
        let mut bytes = 0;
        // SAFETY: writes one integer.
        let answer = unsafe { (self.attribute)(&mut bytes, L2_CACHE_SIZE, device) };
        answered("cuDeviceGetAttribute", answer)?;
        usize::try_from(bytes)
            .ok()
            .filter(|bytes| *bytes > 0)
            .ok_or_else(|| format!("the device states {bytes} bytes of L2"))
    }

    /// Whether launches on a stream go into a graph and do not run.
    pub fn is_capturing(&self, stream: Handle) -> Result<bool, String> {
        let mut state = 0;
        // SAFETY: the stream is that of a launch; writes one integer.
        let answer = unsafe { (self.is_capturing)(stream, &mut state) };
        answered("cuStreamIsCapturing", answer)?;
        Ok(state != 0)
    }

    /// An attribute of what is launched, a `CUfunction` or a `CUkernel`.
    pub fn of_function(&self, function: Handle, attribute: c_int) -> Result<c_int, String> {
        let mut value = 0;
        // SAFETY: the handle is that of a launch; writes one integer.
        let answer = unsafe { (self.function_attribute)(&mut value, attribute, function) };
        if answer == SUCCESS {
            return Ok(value);
        }
        let device = self.device()?;
        // SAFETY: as above.
        let answer = unsafe { (self.kernel_attribute)(&mut value, attribute, function, device) };
        answered("cuKernelGetAttribute", answer)?;
        Ok(value)
    }

    /// Memory on the device.
    pub fn allocate(&self, bytes: usize) -> Result<Address, String> {
        let mut address = 0;
        // SAFETY: writes one address.
        let answer = unsafe { (self.allocate)(&mut address, bytes) };
        answered("cuMemAlloc", answer)?;
        Ok(address)
    }

    /// Gives memory back. What cannot be given back stays until the program ends.
    pub fn free(&self, address: Address) {
        // SAFETY: it came from `allocate`, and is given back once.
        unsafe { (self.free)(address) };
    }

    /// Sets memory to zero, in the order of a stream.
    pub fn clear(&self, address: Address, bytes: usize, stream: Handle) -> Result<(), String> {
        // SAFETY: the memory came from `allocate` with as many bytes.
        let answer = unsafe { (self.fill)(address, 0, bytes, stream) };
        answered("cuMemsetD8Async", answer)
    }

    /// The machine code of a text in PTX, for the current device.
    pub fn compile(&self, ptx: &CStr) -> Result<Vec<u8>, String> {
        let null = std::ptr::null_mut();
        let mut state = null;
        // SAFETY: no options; the text ends in a zero, which counts; the image lives until the
        // state is destroyed, and is copied before.
        unsafe {
            let answer = (self.link_create)(0, null, null, &mut state);
            answered("cuLinkCreate", answer)?;
            let bytes = ptx.to_bytes_with_nul();
            let text = bytes.as_ptr().cast_mut().cast();
            let (name, size) = (c"flush".as_ptr(), bytes.len());
            let added = (self.link_add)(state, PTX, text, size, name, 0, null, null);
            let (mut image, mut length) = (null, 0);
            let made = answered("cuLinkAddData", added).and_then(|()| {
                let answer = (self.link_complete)(state, &mut image, &mut length);
                answered("cuLinkComplete", answer)?;
                Ok(std::slice::from_raw_parts(image.cast::<u8>(), length).to_vec())
            });
            (self.link_destroy)(state);
            made
        }
    }

    /// Loads a module, and finds its function.
    pub fn load(&self, image: &[u8], name: &CStr) -> Result<(Handle, Handle), String> {
        let (mut module, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the image is a whole one, see `compile`; the name ends in a zero.
        unsafe {
            let answer = (self.load)(&mut module, image.as_ptr().cast());
            answered("cuModuleLoadData", answer)?;
            let answer = (self.function)(&mut function, module, name.as_ptr());
            answered("cuModuleGetFunction", answer)?;
        }
        Ok((module, function))
    }

    /// Unloads a module.
    pub fn unload(&self, module: Handle) -> Result<(), String> {
        // SAFETY: it came from `load`, and is unloaded once.
        answered("cuModuleUnload", unsafe { (self.unload)(module) })
    }

    /// Launches a function that takes two integers of 64 bits.
    pub fn launch(
        &self,
        function: Handle,
        (blocks, threads): (u32, u32),
        stream: Handle,
        mut arguments: [u64; 2],
    ) -> Result<(), String> {
        let [first, second] = &mut arguments;
        let mut places: [*mut c_void; 2] = [
            std::ptr::from_mut(first).cast(),
            std::ptr::from_mut(second).cast(),
        ];
        // SAFETY: the driver copies the arguments before it returns.
        let answer = unsafe {
            (self.launch)(
                function,
                blocks,
                1,
                1,
                threads,
                1,
                1,
                0,
                stream,
                places.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        answered("cuLaunchKernel", answer)
    }
}
