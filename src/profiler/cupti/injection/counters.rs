//! Measures hardware counters of selected launches, with CUPTI's callbacks around the calls that launch
//! and its range profiler. Each process writes one file, `$SPARSEK_GATE_COUNTERS.<pid>`, which
//! `crate::capture::counter_records` reads:
//!
//! ```text
//! counters <pid> cupti <version>
//! u <mangled name of a kernel that the request does not know>
//! g <chip> <passes>
//! n <counter>                 once a counter
//! k <device> <context> <stream> <grid x y z> <block x y z> <registers> <static shared bytes>
//!   <dynamic shared bytes> <a value a counter> <mangled name>     `?`: not known
//! error <CUPTI's answer, or 0> <what went wrong>
//! end <k lines> <launches of selected kernels>
//! ```
//!
//! All values are written after the last launch that is asked for. Where there are fewer launches, there
//! is none. A launch is measured alone: before it the context is idle, and other threads that
//! launch wait until it is over.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, OsString, c_char, c_int, c_void};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

use super::callbacks::{self, CallbackData, DRIVER_API, ENTER, EXIT, NOT_SUPPORTED};
use super::driver::{Driver, Handle, REGISTERS, STATIC_SHARED};
use super::flush::Flush;
use super::range_profiler::{RangeProfiler, Refused, Session, refused};
use super::request::Request;
use super::symbols::{Library, SUCCESS, Status, at_exit, create, function};

/// `CU_STREAM_PER_THREAD` of `cuda.h`: what the default stream is in the calls with `_ptsz`.
const STREAM_PER_THREAD: usize = 2;
/// Unknown kernels that are reported, so that the file stays small.
const MOST_UNKNOWN: usize = 64;

/// The calls that launch, by their numbers in `cupti_driver_cbid.h`, and how their parameters lie
/// in `generated_cuda_meta.h`.
const LAUNCHES: [(u32, Shape); 6] = [
    (307, Shape::Plain),
    (442, Shape::Plain.of_thread()),
    (477, Shape::Plain),
    (478, Shape::Plain.of_thread()),
    (652, Shape::Extended),
    (653, Shape::Extended.of_thread()),
];
/// Calls that launch kernels in a way that is not measured here: `cuLaunch`, `cuLaunchGrid`,
/// `cuLaunchGridAsync`, `cuLaunchCooperativeKernelMultiDevice`, `cuGraphLaunch` and its `_ptsz`.
const OTHERS: [(u32, &str); 6] = [
    (115, "cuLaunch"),
    (116, "cuLaunchGrid"),
    (117, "cuLaunchGridAsync"),
    (480, "cuLaunchCooperativeKernelMultiDevice"),
    (514, "cuGraphLaunch"),
    (515, "cuGraphLaunch"),
];

/// How the parameters of a call lie in memory.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    /// `cuLaunchKernel` and `cuLaunchCooperativeKernel`: the function, then its grid and block.
    Plain,
    PlainOfThread,
    /// `cuLaunchKernelEx`: a pointer to grid and block, then the function.
    Extended,
    ExtendedOfThread,
}

impl Shape {
    const fn of_thread(self) -> Shape {
        match self {
            Shape::Plain | Shape::PlainOfThread => Shape::PlainOfThread,
            Shape::Extended | Shape::ExtendedOfThread => Shape::ExtendedOfThread,
        }
    }
}

/// The first fields of `cuLaunchKernel_params` and `cuLaunchCooperativeKernel_params`, which are the
/// same.
#[repr(C)]
struct PlainParameters {
    function: Handle,
    config: LaunchConfig,
}

/// The first fields of `cuLaunchKernelEx_params`.
#[repr(C)]
struct ExtendedParameters {
    config: *const LaunchConfig,
    function: Handle,
}

/// The first fields of `CUlaunchConfig` of `cuda.h`, and those after the function above.
#[repr(C)]
#[derive(Clone, Copy)]
struct LaunchConfig {
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared: u32,
    stream: Handle,
}

/// What is known of a launch that is measured.
struct Launch {
    device: c_int,
    context: u32,
    stream: u32,
    config: LaunchConfig,
    /// `None` where the driver does not say.
    registers: Option<c_int>,
    static_shared: Option<c_int>,
    name: String,
}

/// A launch between its two callbacks.
#[derive(Clone, Copy)]
struct Running {
    /// The thread that launches, see [`thread`].
    thread: usize,
    /// What CUPTI hands from the callback before the call to the one after it.
    token: u64,
}

/// What measures, from the first selected launch that is measured.
struct Measuring {
    context: Handle,
    session: Session,
    flush: Option<Flush>,
    /// Ranges before that of the first launch.
    unused: usize,
}

impl Measuring {
    /// Measures the kernel of the flush once. The first start of CUPTI writes to the GPU's memory, and
    /// what it leaves in the L2 would leave it during the first launch: on an H200 4 MB.
    fn warm_up(
        &mut self,
        mut flush: Flush,
        driver: &Driver,
        stream: Handle,
    ) -> Result<(), Refused> {
        let of_driver = |what| refused(0, what);
        driver.synchronize().map_err(of_driver)?;
        self.session.start()?;
        flush.run(driver, stream).map_err(of_driver)?;
        driver.synchronize().map_err(of_driver)?;
        self.session.stop()?;
        self.flush = Some(flush);
        self.unused += 1;
        Ok(())
    }
}

struct Counters {
    file: File,
    request: Request,
    driver: Driver,
    stream_id: unsafe extern "C" fn(Handle, Handle, u8, *mut u32) -> Status,
    /// Until there is a context.
    profiler: Option<RangeProfiler>,
    measuring: Option<Measuring>,
    /// The launch that is measured now.
    running: Option<Running>,
    unknown: Vec<Vec<u8>>,
    launches: Vec<Launch>,
    selected: u64,
    /// Launches of each selected kernel, where these are counted by themselves.
    seen: HashMap<(Vec<u8>, [u32; 3], [u32; 3]), u64>,
}

// SAFETY: the pointers belong to the process, and are used under the lock.
unsafe impl Send for Counters {}

static COUNTERS: Mutex<Option<Counters>> = Mutex::new(None);
/// Signalled when a measured launch is over.
static OVER: Condvar = Condvar::new();
/// Whether nothing more is measured: all is written, or something failed.
static DONE: AtomicBool = AtomicBool::new(false);
/// The process that measures: a forked child has no CUDA, and shares the file.
static PID: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Whether this thread is in the library, whose own launches are not the program's.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// A number of this thread, which no other living thread has.
fn thread() -> usize {
    INSIDE
        .try_with(|inside| std::ptr::from_ref(inside).addr())
        .unwrap_or_default()
}

/// Measures from now on into the file of this process.
pub fn begin(prefix: OsString) {
    let pid = std::process::id();
    PID.store(pid, Ordering::Release);
    let Some(mut file) = create(prefix) else {
        return;
    };
    let mut version = 0;
    let started = start(&mut version);
    write(&mut file, &format!("counters {pid} cupti {version}\n"));
    match started {
        Err(why) => {
            fail(&mut file, &why);
            return;
        }
        Ok((profiler, driver, stream_id, request)) => {
            let Ok(mut place) = COUNTERS.lock() else {
                return;
            };
            *place = Some(Counters {
                file,
                request,
                driver,
                stream_id,
                profiler: Some(profiler),
                measuring: None,
                running: None,
                unknown: Vec::new(),
                launches: Vec::new(),
                selected: 0,
                seen: HashMap::new(),
            });
        }
    }
    at_exit(finish);
    if let Err(why) = subscribe() {
        if let Ok(mut place) = COUNTERS.lock()
            && let Some(counters) = place.as_mut()
        {
            fail(&mut counters.file, &why);
        }
    }
}

type StreamId = unsafe extern "C" fn(Handle, Handle, u8, *mut u32) -> Status;

/// What is needed before the first launch.
fn start(version: &mut u32) -> Result<(RangeProfiler, Driver, StreamId, Request), Refused> {
    let unsupported = |what| refused(NOT_SUPPORTED, what);
    let find = |version: &mut u32| {
        let cupti = Library::cupti()?;
        let version_of: unsafe extern "C" fn(*mut u32) -> Status =
            function!(cupti, "cuptiGetVersion");
        // SAFETY: writes one integer.
        unsafe { version_of(version) };
        cupti.load_beside("libnvperf_host.so");
        let stream_id: StreamId = function!(cupti, "cuptiGetStreamIdEx");
        let profiler = RangeProfiler::of(cupti)?;
        Ok((profiler, Driver::of(Library::cuda()?)?, stream_id))
    };
    let (profiler, driver, stream_id) = find(version).map_err(unsupported)?;
    let request = Request::read().map_err(|what| refused(0, what))?;
    Ok((profiler, driver, stream_id, request))
}

/// Has CUPTI call [`callback`] before and after each call that launches.
fn subscribe() -> Result<(), Refused> {
    let launches = LAUNCHES.iter().map(|(id, _)| *id);
    let calls = launches.chain(OTHERS.iter().map(|(id, _)| *id));
    callbacks::subscribe(callback, calls.map(|id| (DRIVER_API, id)))
        .map_err(|(status, what)| refused(status, what))
}

fn write(file: &mut File, text: &str) {
    // Without room on the disk there will be no `end` either.
    if file.write_all(text.as_bytes()).is_err() {
        DONE.store(true, Ordering::Release);
    }
}

/// Writes what went wrong. Nothing is measured after that.
fn fail(file: &mut File, why: &Refused) {
    let what = why.what.replace('\n', " ");
    write(file, &format!("error {} {what}\n", why.status));
    DONE.store(true, Ordering::Release);
}

/// # Safety
/// CUPTI calls it, with the data of a call of the driver.
unsafe extern "C" fn callback(_: *mut c_void, domain: u32, id: u32, data: *const CallbackData) {
    let inside = INSIDE
        .try_with(|inside| inside.replace(true))
        .unwrap_or(true);
    if inside {
        return;
    }
    let mine = PID.load(Ordering::Acquire) == std::process::id();
    if domain == DRIVER_API && mine && !data.is_null() && !DONE.load(Ordering::Acquire) {
        // SAFETY: as above; the data lives while this function runs.
        unsafe { around(id, &*data) };
    }
    let _ = INSIDE.try_with(|inside| inside.set(false));
}

/// # Safety
/// As [`callback`].
unsafe fn around(id: u32, data: &CallbackData) {
    let Some(mut guard) = idle() else {
        return;
    };
    let Some(counters) = guard.as_mut() else {
        return;
    };
    // Another thread may have measured the last one meanwhile.
    if DONE.load(Ordering::Acquire) {
        return;
    }
    // SAFETY: as above.
    let answer = unsafe {
        match data.site {
            ENTER => counters.enter(id, data),
            EXIT => counters.exit(data),
            _ => Ok(()),
        }
    };
    if let Err(why) = answer {
        counters.running = None;
        fail(&mut counters.file, &why);
    }
    if counters.running.is_none() {
        OVER.notify_all();
    }
}

/// The state, once no launch of another thread is measured.
fn idle() -> Option<MutexGuard<'static, Option<Counters>>> {
    let mut guard = COUNTERS.lock().ok()?;
    loop {
        let running = guard.as_ref()?.running;
        // What this thread launches meanwhile is a part of the call.
        if running.is_none_or(|running| running.thread == thread()) {
            return Some(guard);
        }
        guard = OVER.wait(guard).ok()?;
    }
}

impl Counters {
    /// Before a call that launches.
    ///
    /// # Safety
    /// As [`callback`].
    unsafe fn enter(&mut self, id: u32, data: &CallbackData) -> Result<(), Refused> {
        if self.running.is_some() {
            return Ok(());
        }
        if !data.correlation_data.is_null() {
            // SAFETY: CUPTI keeps this place from one callback of a call to the other.
            unsafe { data.correlation_data.write(0) };
        }
        if let Some((_, name)) = OTHERS.iter().find(|(other, _)| *other == id) {
            let what = format!("the program launches by {name}, which is not measured in it");
            return Err(refused(0, what));
        }
        let Some((_, shape)) = LAUNCHES.iter().find(|(launch, _)| *launch == id) else {
            return Ok(());
        };
        if data.symbol_name.is_null()
            || data.parameters.is_null()
            || data.correlation_data.is_null()
        {
            return Err(refused(0, "CUPTI does not name a kernel".to_owned()));
        }
        // SAFETY: CUPTI's text ends in a zero.
        let name = unsafe { CStr::from_ptr(data.symbol_name) };
        match self.request.selects(name.to_bytes()) {
            Some(true) => {}
            Some(false) => return Ok(()),
            None => {
                self.note_unknown(name);
                return Ok(());
            }
        }
        // SAFETY: the parameters are those of the call.
        let (function, config) = unsafe { parameters(*shape, data.parameters) };
        let ordinal = self.ordinal(name, &config);
        self.selected += 1;
        if self.capturing(config.stream)? {
            let what = "a selected kernel is launched into a CUDA graph, which is not measured in the program";
            return Err(refused(0, what.to_owned()));
        }
        let (skip, each) = (self.request.skip, self.request.each);
        if ordinal < skip || each > 0 && ordinal - skip >= each {
            return Ok(());
        }
        self.begin(name, function, config, data)
    }

    /// How many launches came before this one: of all selected kernels, or of this one.
    fn ordinal(&mut self, name: &CStr, config: &LaunchConfig) -> u64 {
        if self.request.each == 0 {
            return self.selected;
        }
        let key = (name.to_bytes().to_vec(), config.grid, config.block);
        let seen = self.seen.entry(key).or_default();
        *seen += 1;
        *seen - 1
    }

    fn capturing(&self, stream: Handle) -> Result<bool, Refused> {
        let answer = self.driver.is_capturing(stream);
        answer.map_err(|what| refused(0, what))
    }

    fn note_unknown(&mut self, name: &CStr) {
        let bytes = name.to_bytes();
        let known = self.unknown.iter().any(|known| known == bytes);
        if !known && self.unknown.len() < MOST_UNKNOWN {
            self.unknown.push(bytes.to_vec());
            let line = format!("u {}\n", name.to_string_lossy().replace('\n', "?"));
            write(&mut self.file, &line);
        }
    }

    /// Makes the GPU ready for a launch that is measured, and starts.
    fn begin(
        &mut self,
        name: &CStr,
        function: Handle,
        config: LaunchConfig,
        data: &CallbackData,
    ) -> Result<(), Refused> {
        let of_driver = |what| refused(0, what);
        let device = self.driver.device().map_err(of_driver)?;
        let mut measuring = match self.measuring.take() {
            Some(measuring) if measuring.context == data.context => measuring,
            Some(_) => {
                let what = "the program launches selected kernels in several CUDA contexts";
                return Err(of_driver(what.to_owned()));
            }
            None => self.set_up(data.context, device, config.stream)?,
        };
        let mut stream = 0;
        let per_thread = u8::from(config.stream.addr() == STREAM_PER_THREAD);
        // SAFETY: context and stream are those of the call; writes one integer.
        unsafe { (self.stream_id)(data.context, config.stream, per_thread, &mut stream) };
        let of_function = |attribute| self.driver.of_function(function, attribute).ok();
        let launch = Launch {
            device,
            context: data.context_id,
            stream,
            config,
            registers: of_function(REGISTERS),
            static_shared: of_function(STATIC_SHARED),
            name: name.to_string_lossy().replace('\n', "?"),
        };
        if let Some(flush) = &mut measuring.flush {
            let flushed = flush.run(&self.driver, config.stream);
            flushed.map_err(of_driver)?;
        }
        self.driver.synchronize().map_err(of_driver)?;
        measuring.session.start()?;
        self.measuring = Some(measuring);
        self.launches.push(launch);
        let token = self.launches.len() as u64;
        // SAFETY: see `enter`.
        unsafe { data.correlation_data.write(token) };
        let thread = thread();
        self.running = Some(Running { thread, token });
        Ok(())
    }

    fn set_up(
        &mut self,
        context: Handle,
        device: c_int,
        stream: Handle,
    ) -> Result<Measuring, Refused> {
        let taken = || refused(0, "the context of the program is gone".to_owned());
        let profiler = self.profiler.take().ok_or_else(taken)?;
        let launches = usize::try_from(self.request.count).unwrap_or(usize::MAX);
        let device = usize::try_from(device).unwrap_or_default();
        let session = profiler.session(context, device, &self.request.counters, launches)?;
        let mut measuring = Measuring {
            context,
            session,
            flush: None,
            unused: 0,
        };
        if self.request.flush {
            let flush = Flush::new(&self.driver).map_err(|what| refused(0, what))?;
            measuring.warm_up(flush, &self.driver, stream)?;
        }
        Ok(measuring)
    }

    /// After a call that launches.
    ///
    /// # Safety
    /// As [`callback`].
    unsafe fn exit(&mut self, data: &CallbackData) -> Result<(), Refused> {
        let token = match data.correlation_data.is_null() {
            true => 0,
            // SAFETY: see `enter`.
            false => unsafe { data.correlation_data.read() },
        };
        if self.running.is_none_or(|running| running.token != token) {
            return Ok(());
        }
        self.running = None;
        let Some(measuring) = &self.measuring else {
            return Ok(());
        };
        measuring.session.stop()?;
        // SAFETY: after a call of the driver, this is its `CUresult`.
        let answer = match data.answer.is_null() {
            true => SUCCESS,
            false => unsafe { data.answer.cast::<u32>().read_unaligned() },
        };
        if answer != SUCCESS {
            return Err(refused(0, format!("a launch was answered with {answer}")));
        }
        match self.launches.len() as u64 == self.request.count {
            true => self.complete(),
            false => Ok(()),
        }
    }

    /// Writes all values, after the last launch.
    fn complete(&mut self) -> Result<(), Refused> {
        let Some(mut measuring) = self.measuring.take() else {
            return Ok(());
        };
        let unused = measuring.unused;
        let values = measuring.session.values(unused + self.launches.len())?;
        let values = &values[unused..];
        let (chip, passes) = (&measuring.session.chip, measuring.session.passes);
        let mut text = format!("g {chip} {passes}\n");
        for counter in &self.request.counters {
            let _ = writeln!(text, "n {counter}");
        }
        for (launch, values) in self.launches.iter().zip(values) {
            launch.line(values, &mut text);
        }
        let (launches, selected) = (self.launches.len(), self.selected);
        let _ = writeln!(text, "end {launches} {selected}");
        // From here on the program runs as if it were alone.
        measuring.session.end()?;
        if let Some(flush) = measuring.flush {
            flush.end(&self.driver);
        }
        write(&mut self.file, &text);
        DONE.store(true, Ordering::Release);
        Ok(())
    }
}

/// What is launched, with its grid, block and stream.
///
/// # Safety
/// The parameters are those of a call of this shape.
unsafe fn parameters(shape: Shape, parameters: *const c_void) -> (Handle, LaunchConfig) {
    // SAFETY: as above; the driver reads as many fields itself.
    let (function, mut config) = unsafe {
        match shape {
            Shape::Plain | Shape::PlainOfThread => {
                let parameters = &*parameters.cast::<PlainParameters>();
                (parameters.function, parameters.config)
            }
            Shape::Extended | Shape::ExtendedOfThread => {
                let parameters = &*parameters.cast::<ExtendedParameters>();
                (parameters.function, *parameters.config)
            }
        }
    };
    let of_thread = matches!(shape, Shape::PlainOfThread | Shape::ExtendedOfThread);
    if of_thread && config.stream.is_null() {
        config.stream = std::ptr::without_provenance_mut(STREAM_PER_THREAD);
    }
    (function, config)
}

impl Launch {
    fn line(&self, values: &[f64], text: &mut String) {
        let LaunchConfig { grid, block, .. } = self.config;
        let known = |number: Option<c_int>| number.map_or("?".to_owned(), |n| n.to_string());
        let _ = write!(
            text,
            "k {} {} {} {} {} {} {} {} {} {} {} {}",
            self.device,
            self.context,
            self.stream,
            grid[0],
            grid[1],
            grid[2],
            block[0],
            block[1],
            block[2],
            known(self.registers),
            known(self.static_shared),
            self.config.dynamic_shared,
        );
        for value in values {
            // The shortest text that is read back as the same number.
            let _ = write!(text, " {value:?}");
        }
        let _ = writeln!(text, " {}", self.name);
    }
}

/// Ends the file of a process that launched less than was asked for.
extern "C" fn finish() {
    if PID.load(Ordering::Acquire) != std::process::id() || DONE.load(Ordering::Acquire) {
        return;
    }
    if let Ok(mut place) = COUNTERS.lock()
        && let Some(counters) = place.as_mut()
    {
        let end = format!("end 0 {}\n", counters.selected);
        write(&mut counters.file, &end);
        DONE.store(true, Ordering::Release);
    }
}
