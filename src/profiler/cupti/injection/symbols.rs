//! Finds libcupti in the program, and functions in it.

use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::fs::File;

/// What CUPTI's functions return: `CUptiResult`.
pub type Status = u32;
/// `CUPTI_SUCCESS`.
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

/// A loaded libcupti.
#[derive(Clone, Copy)]
pub struct Library(*mut c_void);

impl Library {
    /// The program's own libcupti where it has one: two of them do not work beside each other.
    pub fn cupti() -> Result<Library, String> {
        for known in ["libcupti.so.13", "libcupti.so.12", "libcupti.so"] {
            let handle = open(known, RTLD_LAZY | RTLD_NOLOAD);
            if !handle.is_null() {
                return Ok(Library(handle));
            }
        }
        let path = std::env::var("SPARSEK_GATE_CUPTI").unwrap_or_default();
        let handle = open(&path, RTLD_LAZY);
        if !handle.is_null() {
            return Ok(Library(handle));
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

    /// The address of a function.
    pub fn symbol(self, name: &str) -> Result<*mut c_void, String> {
        let text = CString::new(name).map_err(|error| error.to_string())?;
        // SAFETY: the library is open and the name ends in a zero.
        let found = unsafe { dlsym(self.0, text.as_ptr()) };
        if found.is_null() {
            return Err(format!("libcupti has no {name}"));
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

/// Waits until the GPU has done what the current context gave it. Where there is none, nothing is waited for.
pub fn synchronize() {
    if let Some(wait) = driver("cuCtxSynchronize") {
        // SAFETY: the type is that of `cuda.h`; without a context it returns an error.
        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(wait)() };
    }
}

/// The same of this context; whether it could be waited for.
pub fn synchronize_context(context: *mut c_void) -> bool {
    let calls = ["cuCtxPushCurrent_v2", "cuCtxSynchronize", "cuCtxPopCurrent_v2"].map(driver);
    let ([Some(push), Some(wait), Some(pop)], false) = (calls, context.is_null()) else {
        return false;
    };
    type Call = unsafe extern "C" fn(*mut c_void) -> c_int;
    let mut popped: *mut c_void = std::ptr::null_mut();
    // SAFETY: the types are those of `cuda.h`; a call that takes nothing does not look at its argument.
    unsafe {
        let [push, wait, pop] = [push, wait, pop].map(|it| std::mem::transmute::<_, Call>(it));
        if push(context) != 0 {
            return false;
        }
        let waited = wait(std::ptr::null_mut()) == 0;
        pop((&raw mut popped).cast());
        waited
    }
}

/// A function of the driver, where the program has one.
fn driver(name: &str) -> Option<*mut c_void> {
    let driver = open("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    (!driver.is_null()).then(|| Library(driver).symbol(name).ok())?
}

/// The file of this process: `PREFIX.PID`, or `PREFIX.PID.2` and so on where a process of this number wrote
/// one before: it ran in another namespace, or is this one before it started another program.
pub fn create(prefix: OsString) -> Option<File> {
    const MOST: usize = 1000;
    (1..MOST).find_map(|number| {
        let mut path = prefix.clone();
        path.push(format!(".{}", std::process::id()));
        if number > 1 {
            path.push(format!(".{number}"));
        }
        File::create_new(path).ok()
    })
}

/// Calls a handler when the program ends through `exit` or its `main`.
pub fn at_exit(handler: extern "C" fn()) {
    // SAFETY: the handler takes and returns nothing, and this library is never closed.
    unsafe { atexit(handler) };
}
