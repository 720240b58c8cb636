//! What CUPTI reports of the program's calls: its work on the GPU, at which it waits for its turn, the
//! code that it loads, and the ranges between `cudaProfilerStart` and `cudaProfilerStop`.
//!
//! CUPTI numbers all calls of a program in their order, and a kernel has the number of the call that
//! launched it. Where ranges count, the first work is the beginning of the first one.
//!
//! `$SPARSEK_GATE_TURN` names a file that exists once it is the program's turn. A process that comes to
//! its first work after `$SPARSEK_GATE_TURN_AFTER` loads of code (0 if it is not set) before that stops
//! itself (SIGSTOP), and the tool lets it go on (SIGCONT). It stops
//! itself once more when all is written that it did, and ends outside of its turn. A process whose
//! parent is killed while it waits for its turn ends with it.

use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::symbols::{Library, SUCCESS, Status, function, synchronize};

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

/// How the names of the driver's functions begin that have the GPU work.
const WORK: [&[u8]; 5] = [
    b"cuLaunch",
    b"cuGraphLaunch",
    b"cuMemcpy",
    b"cuMemset",
    b"cuMemPrefetch",
];
/// Of those that load code.
const LOADS: [&[u8]; 2] = [b"cuModuleLoad", b"cuLibraryLoad"];
/// More than the driver of CUDA 13.0 has functions (some 800).
const MOST_CALLS: u32 = 2000;

const SIGKILL: c_ulong = 9;
const SIGSTOP: c_int = 19;
/// `PR_SET_PDEATHSIG` and `PR_GET_PDEATHSIG`.
const SET_DEATH_SIGNAL: c_int = 1;
const GET_DEATH_SIGNAL: c_int = 2;

unsafe extern "C" {
    fn kill(process: c_int, signal: c_int) -> c_int;
    fn getpid() -> c_int;
    fn prctl(option: c_int, ...) -> c_int;
}

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

/// `cuptiEnableCallback`: on or off, the subscriber, domain, number of the call.
type Enable = unsafe extern "C" fn(u32, *mut c_void, u32, u32) -> Status;

/// What is asked of the calls.
struct Asked {
    /// Takes each line.
    write: fn(&str),
    /// The file of the turn, where there are turns.
    turn: Option<PathBuf>,
    /// How many loads come before the turn.
    after: u32,
    subscriber: *mut c_void,
    enable: Enable,
    /// The numbers of the driver's calls that may be the first work; none where ranges count.
    work: Vec<u32>,
}

// SAFETY: CUPTI may be called from any thread, and the subscriber is only handed to it.
unsafe impl Send for Asked {}
// SAFETY: as above.
unsafe impl Sync for Asked {}

static ASKED: OnceLock<Asked> = OnceLock::new();
/// Whether the turn has come.
static COME: AtomicBool = AtomicBool::new(false);
static LOADED: AtomicU32 = AtomicU32::new(0);

/// From now on holds the program as the environment asks for, and hands over lines: `turn CALL TIME`, `load
/// CALL TIME`, `range start CALL`, `range stop CALL`. A program has one subscriber to its calls at most.
pub fn begin(write: fn(&str)) -> Result<(), String> {
    let ranges = std::env::var_os("SPARSEK_GATE_PROFILER_RANGE").is_some();
    let turn = std::env::var_os("SPARSEK_GATE_TURN").map(PathBuf::from);
    let turns = turn.is_some();
    if !ranges && !turns {
        return Ok(());
    }
    if ranges {
        write("ranges\n");
    }
    let after = std::env::var("SPARSEK_GATE_TURN_AFTER").ok();
    let cupti = Library::cupti()?;
    let subscribe: unsafe extern "C" fn(*mut *mut c_void, Callback, *mut c_void) -> Status =
        function!(cupti, "cuptiSubscribe");
    let enable: Enable = function!(cupti, "cuptiEnableCallback");
    let mut subscriber = std::ptr::null_mut();
    // SAFETY: the callback lives as long as the process.
    let status = unsafe { subscribe(&mut subscriber, callback, std::ptr::null_mut()) };
    if status != SUCCESS {
        return Err(format!(
            "cuptiSubscribe answered {status} (39: another profiler is in the program)"
        ));
    }
    let work = match ranges {
        true => Vec::new(),
        false => named(cupti, &WORK)?,
    };
    let asked = ASKED.get_or_init(|| Asked {
        write,
        turn,
        after: after.and_then(|after| after.parse().ok()).unwrap_or(0),
        subscriber,
        enable,
        work,
    });
    if ranges {
        return CALLS
            .iter()
            .try_for_each(|(domain, call, _)| asked.enable(1, *domain, *call));
    }
    let loads = named(cupti, &LOADS)?;
    let mut reported = asked.work.iter().chain(&loads);
    reported.try_for_each(|call| asked.enable(1, DRIVER_API, *call))
}

/// The numbers of the driver's calls whose names begin in one of these ways.
fn named(cupti: Library, beginnings: &[&[u8]]) -> Result<Vec<u32>, String> {
    let name_of: unsafe extern "C" fn(u32, u32, *mut *const c_char) -> Status =
        function!(cupti, "cuptiGetCallbackName");
    let begins = |call: &u32| {
        let mut name = std::ptr::null();
        // SAFETY: writes a pointer to a text that lives as long as CUPTI.
        let status = unsafe { name_of(DRIVER_API, *call, &mut name) };
        status == SUCCESS && is_of(name, beginnings)
    };
    Ok((1..MOST_CALLS).filter(begins).collect())
}

/// Whether a function's name begins in one of these ways.
fn is_of(name: *const c_char, beginnings: &[&[u8]]) -> bool {
    // SAFETY: a name ends in a zero.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_bytes());
    name.is_some_and(|name| beginnings.iter().any(|begin| name.starts_with(begin)))
}

/// # Safety
/// CUPTI calls this with the data of a call.
unsafe extern "C" fn callback(_: *mut c_void, domain: u32, id: u32, data: *const CallbackData) {
    let (Some(asked), false) = (ASKED.get(), data.is_null()) else {
        return;
    };
    // SAFETY: the data lives while this function runs.
    let (site, call, name) = unsafe {
        let data = &*data;
        (data.site, data.correlation_id, data.function_name)
    };
    if site != ENTER {
        return;
    }
    let known = CALLS
        .iter()
        .find(|(of, number, _)| (*of, *number) == (domain, id));
    if let Some((_, _, what)) = known {
        if *what == "start" {
            asked.wait(call);
        }
        (asked.write)(&format!("range {what} {call}\n"));
    } else if is_of(name, &LOADS) {
        LOADED.fetch_add(1, Ordering::AcqRel);
        (asked.write)(&format!("load {call} {}\n", now()));
    } else if is_of(name, &WORK) && LOADED.load(Ordering::Acquire) >= asked.after {
        asked.wait(call);
    }
}

/// Nanoseconds of the system's clock.
fn now() -> u128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos())
}

impl Asked {
    /// Has a call reported (1) or not (0).
    fn enable(&self, reported: u32, domain: u32, call: u32) -> Result<(), String> {
        // SAFETY: a plain call.
        match unsafe { (self.enable)(reported, self.subscriber, domain, call) } {
            SUCCESS => Ok(()),
            status => Err(format!(
                "cuptiEnableCallback answered {status} for call {call}"
            )),
        }
    }

    /// Waits for the turn, where there are turns, which begins with this call. A thread that comes here
    /// while another waits is stopped with it.
    fn wait(&self, call: u32) {
        let Some(turn) = &self.turn else {
            return;
        };
        if COME.load(Ordering::Acquire) {
            return;
        }
        if self.work.is_empty() {
            // What it gave the GPU before a range of the profiler must not run in the turn of another.
            synchronize();
        }
        let mut before: c_int = 0;
        // SAFETY: calls of the process about itself; the second argument is a place for a number.
        unsafe {
            prctl(GET_DEATH_SIGNAL, &raw mut before);
            prctl(SET_DEATH_SIGNAL, SIGKILL);
            while !turn.exists() {
                kill(getpid(), SIGSTOP);
            }
            prctl(SET_DEATH_SIGNAL, before as c_ulong);
        }
        if !COME.swap(true, Ordering::AcqRel) {
            (self.write)(&format!("turn {call} {}\n", now()));
            for call in &self.work {
                // If it fails, calls take longer, on both sides.
                let _ = self.enable(0, DRIVER_API, *call);
            }
        }
    }
}

/// Stops the process, whose work is done, if it had to wait for a turn.
pub fn end_turn() {
    if COME.load(Ordering::Acquire) {
        // SAFETY: a call of the process about itself.
        unsafe { kill(getpid(), SIGSTOP) };
    }
}
