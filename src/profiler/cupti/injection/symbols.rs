//! Finds libcupti and libcuda in the program, and functions in them.

use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::fs::File;

/// What CUPTI's functions return: `CUptiResult`.
pub type Status = u32;
/// `CUPTI_SUCCESS`, and `CUDA_SUCCESS`.
pub const SUCCESS: Status = 0;

/// Resolved as called: few of libcupti's functions are.
const RTLD_LAZY: c_int = 1;
const RTLD_NOLOAD: c_int = 4;

unsafe extern "C" {
    fn dlopen(file: *const c_char, mode: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
    fn atexit(handler: extern "C" fn()) -> c_int;
}

/// A loaded library.
#[derive(Clone, Copy)]
pub struct Library {
    handle: *mut c_void,
    name: &'static str,
    /// Whether it was loaded by the path in `SPARSEK_GATE_CUPTI`.
    is_ours: bool,
}

impl Library {
    /// The program's own libcupti where it has one: two of them do not work beside each other.
    pub fn cupti() -> Result<Library, String> {
        let of = |handle, is_ours| Library {
            handle,
            name: "libcupti",
            is_ours,
        };
        for known in ["libcupti.so.13", "libcupti.so.12", "libcupti.so"] {
            let handle = open(known, RTLD_LAZY | RTLD_NOLOAD);
            if !handle.is_null() {
                return Ok(of(handle, false));
            }
        }
        let path = std::env::var("SPARSEK_GATE_CUPTI").unwrap_or_default();
        let handle = open(&path, RTLD_LAZY);
        if !handle.is_null() {
            return Ok(of(handle, true));
        }
        // SAFETY: the text, where there is one, lives until the next call of this thread.
        let why = unsafe {
            let text = dlerror();
            if text.is_null() {
                "no reason is given".to_owned()
            } else {
                CStr::from_ptr(text).to_string_lossy().into_owned()
            }
        };
        Err(format!("`{path}` cannot be loaded: {why}"))
    }

    /// Loads what libcupti loads by its name alone to evaluate counters, from the folder of a
    /// libcupti that the program does not have itself: in an environment of Python nothing else
    /// says where it is.
    pub fn load_beside(self, file: &str) {
        if !self.is_ours {
            return;
        }
        let path = std::env::var("SPARSEK_GATE_CUPTI").unwrap_or_default();
        if let Some((folder, _)) = path.rsplit_once('/') {
            open(&format!("{folder}/{file}"), RTLD_LAZY);
        }
    }

    /// The driver's library, which called this one.
    pub fn cuda() -> Result<Library, String> {
        for known in ["libcuda.so.1", "libcuda.so"] {
            let handle = open(known, RTLD_LAZY | RTLD_NOLOAD);
            if !handle.is_null() {
                return Ok(Library {
                    handle,
                    name: "libcuda",
                    is_ours: false,
                });
            }
        }
        Err("the driver's library is not loaded under its name".to_owned())
    }

    /// The address of a function.
    pub fn symbol(self, name: &str) -> Result<*mut c_void, String> {
        let text = CString::new(name).map_err(|error| error.to_string())?;
        // SAFETY: the library is open and the name ends in a zero.
        let found = unsafe { dlsym(self.handle, text.as_ptr()) };
        if found.is_null() {
            return Err(format!("{} has no {name}", self.name));
        }
        Ok(found)
    }
}

fn open(name: &str, mode: c_int) -> *mut c_void {
    let Ok(text) = CString::new(name) else {
        return std::ptr::null_mut();
    };
    // SAFETY: the name ends in a zero; the initializers of these libraries are what a program that
    // links them runs too.
    unsafe { dlopen(text.as_ptr(), mode) }
}

/// A function of a library, of the type that the declaration asks for.
macro_rules! function {
    ($library:expr, $name:expr) => {
        // SAFETY: the type is that of the header which declares the function; handles and
        // enumerations are pointers and 32-bit integers.
        unsafe { std::mem::transmute::<*mut std::ffi::c_void, _>($library.symbol($name)?) }
    };
}
pub(crate) use function;

/// The file of this process: `PREFIX.PID`.
pub fn create(prefix: OsString) -> Option<File> {
    let mut path = prefix;
    path.push(format!(".{}", std::process::id()));
    File::create(path).ok()
}

/// Calls a handler when the program ends through `exit` or its `main`.
pub fn at_exit(handler: extern "C" fn()) {
    // SAFETY: the handler takes and returns nothing, and this library is never closed.
    unsafe { atexit(handler) };
}
