//! What CUPTI reports of the program's calls: its work on the GPU, at which it waits for its turn, and the
//! ranges between `cudaProfilerStart` and `cudaProfilerStop`.
//!
//! CUPTI numbers all calls of a program in their order, and a kernel has the number of the call that
//! launched it. Where ranges count, the first work is the beginning of the first one.
//!
//! `$SPARSEK_GATE_TURN` names a file that exists while it is the program's turn. A process that comes to
//! its first work before that stops itself (SIGSTOP), and the tool lets it go on (SIGCONT). In its turn
//! it stops itself where it leaves the GPU idle ([`IDLE`]): the tool may take the file away then, let it
//! compute beside others, and give it another turn at its next work. It stops itself once more when all
//! is written that it did, and ends outside of its turn. It never stands still without the tool, whose
//! number and namespace are `$SPARSEK_GATE_PROCESS`: nobody would let it go on.

use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::path::PathBuf;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::symbols::{Library, SUCCESS, Status, function, synchronize, synchronize_context};

/// `CUPTI_CB_DOMAIN_DRIVER_API` and `CUPTI_CB_DOMAIN_RUNTIME_API` of `cupti_callbacks.h`.
const DRIVER_API: u32 = 1;
const RUNTIME_API: u32 = 2;
/// `CUPTI_API_ENTER`.
const ENTER: u32 = 0;

/// A program that makes no call for so long, which gives the GPU work, computes elsewhere. Twice as long
/// after each time that it did so for less than [`WORTH`].
const IDLE: Duration = Duration::from_millis(40);
/// To give a turn away and to get another one takes about as long, in nanoseconds.
const WORTH: u64 = 100_000_000;
/// The GPU was busy if waiting for it takes longer.
const BUSY: Duration = Duration::from_millis(5);
/// A capture may begin once another thread has surely begun to wait for the GPU.
const SURELY: Duration = Duration::from_millis(100);

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
/// Of those between which a stream is captured. No other thread may wait for the GPU meanwhile.
const CAPTURE_BEGINS: &[u8] = b"cuStreamBeginCapture";
const CAPTURE_ENDS: &[u8] = b"cuStreamEndCapture";
/// Of those that end a context, which nothing may wait for then.
const CONTEXT_ENDS: [&[u8]; 3] = [
    b"cuCtxDestroy",
    b"cuDevicePrimaryCtxRelease",
    b"cuDevicePrimaryCtxReset",
];
/// More than the driver of CUDA 13.0 has functions (some 800).
const MOST_CALLS: u32 = 2000;

/// What a call of the driver does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    Nothing,
    Work,
    BeginsCapture,
    EndsCapture,
    EndsContext,
}

/// `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED` and `CUDA_ERROR_STREAM_CAPTURE_UNJOINED` of `cuda.h`: the capture
/// has ended all the same.
const ENDED: [c_int; 2] = [901, 904];

const SIGKILL: c_int = 9;
const SIGSTOP: c_int = 19;
/// `SIG_SETMASK`, and the words of a `sigset_t` (1024 bits).
const SET_MASK: c_int = 2;
const SIGNALS: usize = 1024 / 64;
/// `PR_SET_PDEATHSIG` and `PR_GET_PDEATHSIG`.
const SET_DEATH_SIGNAL: c_int = 1;
const GET_DEATH_SIGNAL: c_int = 2;

unsafe extern "C" {
    fn raise(signal: c_int) -> c_int;
    fn kill(process: c_int, signal: c_int) -> c_int;
    fn sigfillset(set: *mut u64) -> c_int;
    fn pthread_sigmask(how: c_int, set: *const u64, before: *mut u64) -> c_int;
    fn prctl(option: c_int, ...) -> c_int;
}

/// `CUpti_CallbackData` of `cupti_callbacks.h`.
#[repr(C)]
struct CallbackData {
    site: u32,
    function_name: *const c_char,
    parameters: *const c_void,
    answer: *const c_int,
    symbol_name: *const c_char,
    context: *mut c_void,
    context_id: u32,
    correlation_data: *mut u64,
    correlation_id: u32,
}

/// Gets the domain and the number of the call.
type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const CallbackData);

/// `cuptiGetTimestamp`.
type Clock = unsafe extern "C" fn(*mut u64) -> Status;

/// `cuptiEnableCallback`: on or off, the subscriber, domain, number of the call.
type Enable = unsafe extern "C" fn(u32, *mut c_void, u32, u32) -> Status;

/// What is asked of the calls.
struct Asked {
    /// Takes each line.
    write: fn(&str),
    /// Writes what was done until now.
    write_out: fn(),
    /// The file of the turn, where there are turns.
    turn: Option<PathBuf>,
    /// The number of the tool's process, where this one sees it.
    tool: Option<c_int>,
    subscriber: *mut c_void,
    enable: Enable,
    /// Nanoseconds of the clock of the kernels' times.
    clock: Clock,
    /// What the driver's calls do, by their numbers; nothing is known where ranges count.
    does: Vec<Does>,
}

// SAFETY: CUPTI may be called from any thread, and the subscriber is only handed to it.
unsafe impl Send for Asked {}
// SAFETY: as above.
unsafe impl Sync for Asked {}

static ASKED: OnceLock<Asked> = OnceLock::new();
/// Whether it is the program's turn.
static IN_TURN: AtomicBool = AtomicBool::new(false);
/// Whether it had one.
static HAD_TURN: AtomicBool = AtomicBool::new(false);
/// How many calls gave the GPU work.
static CALLED: AtomicU64 = AtomicU64::new(0);
/// How many of them have not returned. One that loads code first takes long.
static WITHIN: AtomicU64 = AtomicU64::new(0);
/// The context of the last work that was seen.
static CONTEXT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
/// Whether work in another one was seen: what that has done would not be waited for.
static SEVERAL_CONTEXTS: AtomicBool = AtomicBool::new(false);
/// How many streams are captured.
static CAPTURED: AtomicU32 = AtomicU32::new(0);
/// For how many nanoseconds the process stood still since its last turn.
static STOOD: AtomicU64 = AtomicU64::new(0);
/// When it went on to compute after a turn.
static WENT_ON: AtomicU64 = AtomicU64::new(u64::MAX);
/// For how many nanoseconds it computed then until its next work.
static COMPUTED: AtomicU64 = AtomicU64::new(u64::MAX);
/// Whoever has it decides if the turn goes on: it ends, or the process does.
static TURN: Mutex<()> = Mutex::new(());
/// Whether all is written that the process did.
static OVER: AtomicBool = AtomicBool::new(false);

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on holds the program as the environment asks for, and hands over lines: `turn CALL TIME STOOD`,
/// `idle TIME`, `range start CALL`, `range stop CALL`. A program has one subscriber to its calls at most.
pub fn begin(write: fn(&str), write_out: fn()) -> Result<(), String> {
    let ranges = std::env::var_os("SPARSEK_GATE_PROFILER_RANGE").is_some();
    let turn = std::env::var_os("SPARSEK_GATE_TURN").map(PathBuf::from);
    let tool = std::env::var("SPARSEK_GATE_PROCESS").ok().and_then(|of| seen(&of));
    if !ranges && turn.is_none() {
        return Ok(());
    }
    if ranges {
        write("ranges\n");
    }
    let cupti = Library::cupti()?;
    let subscribe: unsafe extern "C" fn(*mut *mut c_void, Callback, *mut c_void) -> Status =
        function!(cupti, "cuptiSubscribe");
    let enable: Enable = function!(cupti, "cuptiEnableCallback");
    let clock: Clock = function!(cupti, "cuptiGetTimestamp");
    let mut subscriber = std::ptr::null_mut();
    // SAFETY: the callback lives as long as the process.
    let status = unsafe { subscribe(&mut subscriber, callback, std::ptr::null_mut()) };
    if status != SUCCESS {
        return Err(format!(
            "cuptiSubscribe answered {status} (39: another profiler is in the program)"
        ));
    }
    let does = match ranges {
        true => Vec::new(),
        false => known_calls(cupti)?,
    };
    let asked = ASKED.get_or_init(|| Asked {
        write,
        write_out,
        turn,
        tool,
        subscriber,
        enable,
        clock,
        does,
    });
    if ranges {
        return CALLS
            .iter()
            .try_for_each(|(domain, call, _)| asked.enable(*domain, *call));
    }
    for (call, does) in (0..).zip(&asked.does) {
        if *does != Does::Nothing {
            asked.enable(DRIVER_API, call)?;
        }
    }
    // Where there is no room for a thread, the program keeps its turn.
    let watch = || asked.watch();
    let _ = without_signals(|| std::thread::Builder::new().spawn(watch));
    Ok(())
}

/// Starts a thread that takes none of the program's signals.
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let (mut all, mut before) = ([0; SIGNALS], [0; SIGNALS]);
    // SAFETY: both are as large as a `sigset_t` of glibc.
    unsafe {
        sigfillset(all.as_mut_ptr());
        pthread_sigmask(SET_MASK, all.as_ptr(), before.as_mut_ptr());
    }
    let started = start();
    // SAFETY: as above.
    unsafe { pthread_sigmask(SET_MASK, before.as_ptr(), std::ptr::null_mut()) };
    started
}

/// What the driver's calls do, by their numbers.
fn known_calls(cupti: Library) -> Result<Vec<Does>, String> {
    let name_of: unsafe extern "C" fn(u32, u32, *mut *const c_char) -> Status =
        function!(cupti, "cuptiGetCallbackName");
    let does = |call: u32| {
        let mut name = std::ptr::null();
        // SAFETY: writes a pointer to a text that lives as long as CUPTI and ends in a zero.
        let name = unsafe {
            if name_of(DRIVER_API, call, &mut name) != SUCCESS || name.is_null() {
                return Does::Nothing;
            }
            CStr::from_ptr(name).to_bytes()
        };
        if name.starts_with(CAPTURE_BEGINS) {
            Does::BeginsCapture
        } else if name.starts_with(CAPTURE_ENDS) {
            Does::EndsCapture
        } else if CONTEXT_ENDS.iter().any(|begin| name.starts_with(begin)) {
            Does::EndsContext
        } else if WORK.iter().any(|begin| name.starts_with(begin)) {
            Does::Work
        } else {
            Does::Nothing
        }
    };
    Ok((0..MOST_CALLS).map(does).collect())
}

/// # Safety
/// CUPTI calls this with the data of a call.
unsafe extern "C" fn callback(_: *mut c_void, domain: u32, id: u32, data: *const CallbackData) {
    let (Some(asked), false) = (ASKED.get(), data.is_null()) else {
        return;
    };
    // SAFETY: the data lives while this function runs.
    let data = unsafe { &*data };
    let (enters, call) = (data.site == ENTER, data.correlation_id);
    let does = (domain == DRIVER_API).then(|| asked.does.get(id as usize)).flatten();
    match (does, enters) {
        (Some(Does::Work), true) => {
            let before = CONTEXT.swap(data.context, SeqCst);
            if !before.is_null() && before != data.context {
                SEVERAL_CONTEXTS.store(true, SeqCst);
            }
            WITHIN.fetch_add(1, SeqCst);
            CALLED.fetch_add(1, SeqCst);
            asked.wait(call);
        }
        (Some(Does::Work), false) => {
            WITHIN.fetch_sub(1, SeqCst);
        }
        (Some(Does::BeginsCapture), true) => begin_capture(),
        // SAFETY: the answer of a call lives as long as its data.
        (Some(Does::BeginsCapture | Does::EndsCapture), false) => unsafe {
            let answer = data.answer.as_ref().copied().unwrap_or(0);
            let begun = does == Some(&Does::BeginsCapture) && answer == 0;
            let goes_on = does == Some(&Does::EndsCapture) && answer != 0 && !ENDED.contains(&answer);
            if !begun && !goes_on {
                let fewer = |captured: u32| captured.checked_sub(1);
                let _ = CAPTURED.fetch_update(SeqCst, SeqCst, fewer);
            }
        },
        (Some(Does::EndsContext), true) => {
            let _not_while_it_is_waited_for = turn();
            CONTEXT.store(std::ptr::null_mut(), SeqCst);
        }
        (_, true) => {
            let mut known = CALLS.iter();
            let known = known.find(|(of, number, _)| (*of, *number) == (domain, id));
            if let Some((_, _, what)) = known {
                if *what == "start" {
                    asked.wait(call);
                }
                (asked.write)(&format!("range {what} {call}\n"));
            }
        }
        (_, false) => {}
    }
}

impl Asked {
    /// Has a call reported.
    fn enable(&self, domain: u32, call: u32) -> Result<(), String> {
        // SAFETY: a plain call.
        match unsafe { (self.enable)(1, self.subscriber, domain, call) } {
            SUCCESS => Ok(()),
            status => Err(format!(
                "cuptiEnableCallback answered {status} for call {call}"
            )),
        }
    }

    /// Nanoseconds of the clock of the kernels' times.
    fn now(&self) -> u64 {
        let mut now = 0;
        // SAFETY: writes one integer.
        unsafe { (self.clock)(&mut now) };
        now
    }

    fn has_turn(&self) -> bool {
        self.turn.as_ref().is_none_or(|turn| turn.exists())
    }

    /// Waits for the turn, where there are turns, which begins with this call. A thread that comes here
    /// while another waits is stopped with it.
    fn wait(&self, call: u32) {
        if self.turn.is_none() || IN_TURN.load(SeqCst) || OVER.load(SeqCst) {
            return;
        }
        let _turn = turn();
        if IN_TURN.load(SeqCst) || OVER.load(SeqCst) {
            return;
        }
        if self.does.is_empty() {
            // What it gave the GPU before a range of the profiler must not run in the turn of another.
            synchronize();
        }
        let came = self.now();
        let went_on = WENT_ON.swap(u64::MAX, SeqCst);
        COMPUTED.store(came.checked_sub(went_on).unwrap_or(u64::MAX), SeqCst);
        self.stand_still(|| self.has_turn());
        self.begin_turn(call, came);
    }

    /// A turn begins with this call, before which the process stood still since `came`.
    fn begin_turn(&self, call: u32, came: u64) {
        let now = self.now();
        let stood = STOOD.swap(0, SeqCst) + now.saturating_sub(came);
        (self.write)(&format!("turn {call} {now} {stood}\n"));
        HAD_TURN.store(true, SeqCst);
        IN_TURN.store(true, SeqCst);
    }

    /// Ends the turns of the program in which it leaves the GPU idle.
    fn watch(&self) {
        let mut idle = IDLE;
        loop {
            let called = CALLED.load(SeqCst);
            std::thread::sleep(idle);
            if COMPUTED.swap(u64::MAX, SeqCst) < WORTH {
                idle *= 2;
            }
            let _turn = turn();
            if !IN_TURN.load(SeqCst) || !leaves(called) {
                continue;
            }
            (self.write_out)();
            let left = self.now();
            (self.write)(&format!("idle {left}\n"));
            let mut first = true;
            self.stand_still(|| !std::mem::take(&mut first));
            if self.has_turn() {
                // Another process of the program works.
                self.begin_turn(0, left);
                return;
            }
            let goes_on = self.now();
            STOOD.store(goes_on.saturating_sub(left), SeqCst);
            WENT_ON.store(goes_on, SeqCst);
        }
    }

    /// Stops the process until it may go on. Without the tool, it ends.
    fn stand_still(&self, mut goes_on: impl FnMut() -> bool) {
        let mut before: c_int = 0;
        // SAFETY: calls of the process about itself; the second argument is a place for a number.
        unsafe {
            prctl(GET_DEATH_SIGNAL, &raw mut before);
            prctl(SET_DEATH_SIGNAL, SIGKILL as c_ulong);
            while !goes_on() {
                // Of this thread: of the process, another could take it, and this one would run on.
                raise(if self.is_alone() { SIGKILL } else { SIGSTOP });
            }
            prctl(SET_DEATH_SIGNAL, before as c_ulong);
        }
    }

    /// Whether the tool has ended.
    fn is_alone(&self) -> bool {
        self.tool.is_some_and(|tool| !lives(tool))
    }
}

/// The number in `NUMBER NAMESPACE`, where that is the namespace of the numbers of processes here.
fn seen(process: &str) -> Option<c_int> {
    let (number, namespace) = process.split_once(' ')?;
    let own = std::fs::read_link("/proc/self/ns/pid").ok()?;
    (own.to_str() == Some(namespace)).then(|| number.parse().ok())?
}

/// Whether there is a process of this number.
fn lives(process: c_int) -> bool {
    const NO_SUCH_PROCESS: i32 = 3;
    // SAFETY: sends nothing.
    let sent = unsafe { kill(process, 0) };
    sent == 0 || std::io::Error::last_os_error().raw_os_error() != Some(NO_SUCH_PROCESS)
}

/// A capture begins, and nothing may begin to wait for the GPU until it ends. What waits already may
/// wait for something that this thread does next.
fn begin_capture() {
    let began = Instant::now();
    loop {
        let turn = TURN.try_lock();
        if turn.is_ok() || began.elapsed() > SURELY {
            CAPTURED.fetch_add(1, SeqCst);
            return;
        }
        std::thread::sleep(BUSY / 5);
    }
}

/// Whether the program gave the GPU nothing to do since it had made so many calls, and what it gave before
/// is done. From then on work waits.
fn leaves(called: u64) -> bool {
    let is_idle = || WITHIN.load(SeqCst) == 0 && CALLED.load(SeqCst) == called;
    let keeps = [&OVER, &SEVERAL_CONTEXTS].iter().any(|it| it.load(SeqCst));
    if !is_idle() || CAPTURED.load(SeqCst) > 0 || keeps {
        return false;
    }
    let asked = Instant::now();
    if !synchronize_context(CONTEXT.load(SeqCst)) || asked.elapsed() > BUSY {
        return false;
    }
    IN_TURN.store(false, SeqCst);
    // Work that came before is seen now; what comes later sees that the turn is over.
    let leaves = is_idle();
    IN_TURN.store(!leaves, SeqCst);
    leaves
}

/// The process ends: from now on it is not stopped any more, but for [`end_turn`].
pub fn last() {
    let _turn = turn();
    OVER.store(true, SeqCst);
}

/// Stops the process, whose work is done, if it had a turn.
pub fn end_turn() {
    if let (true, Some(asked)) = (HAD_TURN.load(SeqCst), ASKED.get()) {
        let mut first = true;
        asked.stand_still(|| !std::mem::take(&mut first) || asked.is_alone());
    }
}
