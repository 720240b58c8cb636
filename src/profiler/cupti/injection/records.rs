//! Records when each kernel began and ended, by CUPTI's activity records, which need no right to the
//! performance counters
//! (<https://developer.nvidia.com/CUPTI_ERROR_INSUFFICIENT_PRIVILEGES>: "tracing APIs produce
//! normal results"). Each process writes one file, `$SPARSEK_GATE_KERNEL_RECORDS.<pid>`, which
//! `crate::capture::kernel_records` reads:
//!
//! ```text
//! process <pid> cupti <version>
//! k <correlation> <start ns> <end ns> <device> <context> <stream> <grid x y z> <block x y z>
//!   <registers> <static shared bytes> <dynamic shared bytes> <graph node> <mangled name, or # and its number>
//! turn <correlation> <ns> <stood ns>   its turn begins with this call, before which it stood still
//! idle <ns>                   it left the GPU idle, and what it does next may be in another turn
//! ranges                      only what is launched within a range counts
//! range start <correlation>   or `range stop`
//! error <what went wrong>
//! end <k lines> <records that CUPTI dropped>
//! ```
//!
//! A file without its `end` is one of a process that ended before it had written all.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::ffi::{CStr, OsString, c_char, c_void};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use super::calls;
use super::symbols::{Library, SUCCESS, Status, at_exit, create, function, synchronize};

/// `CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL`: kernels, without making them wait for each other.
const CONCURRENT_KERNEL: u32 = 10;
/// `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`: also buffers that are not full.
const FLUSH_FORCED: u32 = 1;
/// The first version whose kernel record has a graph node at [`GRAPH_NODE`] (CUDA 11.1,
/// `CUpti_ActivityKernel5`'s successor).
const OLDEST_VERSION: u32 = 14;

/// Offsets into `CUpti_ActivityKernel6` (CUDA 11.1) to `CUpti_ActivityKernel10` (CUDA 13.0), in
/// bytes, from `cupti_activity.h` and `cupti_activity_deprecated.h` of CUDA 12.9 and 13.0: later
/// versions append fields, and these stay where they are.
const REGISTERS: usize = 6;
const START: usize = 16;
const END: usize = 24;
const DEVICE: usize = 40;
const CONTEXT: usize = 44;
const STREAM: usize = 48;
const GRID: usize = 52;
const BLOCK: usize = 64;
const STATIC_SHARED: usize = 76;
const DYNAMIC_SHARED: usize = 80;
const CORRELATION: usize = 92;
const NAME: usize = 104;
const GRAPH_NODE: usize = 144;

/// Attributes of `cuptiActivitySetAttribute`, each a `size_t`: bytes of a buffer on the device, of
/// which CUPTI may take 250 (8,000 kernels fit into one), and how many it takes at once. Its own
/// 3 × 3.2 MB cost a short program 10 ms.
const DEVICE_BUFFERS: [(u32, usize); 2] = [(0, 256 << 10), (6, 1)];

/// Space for some 4,800 records; CUPTI asks for one such buffer a launching thread.
const BUFFER_BYTES: usize = 1 << 20;
const ALIGNMENT: usize = 8;

type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Complete = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

#[derive(Clone, Copy)]
struct Cupti {
    flush: unsafe extern "C" fn(u32) -> Status,
    next: unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> Status,
    dropped: unsafe extern "C" fn(*mut c_void, u32, *mut usize) -> Status,
}

struct Recorder {
    file: File,
    /// The names that were written, with their numbers.
    names: BTreeMap<String, usize>,
    cupti: Option<Cupti>,
    records: u64,
    dropped: u64,
    failed: bool,
}

static RECORDER: Mutex<Option<Recorder>> = Mutex::new(None);
/// The process that records; 0 before there is one. A forked child has no CUDA to record, shares
/// the file, and may have been forked while a thread that it lacks had the lock.
static PID: AtomicU32 = AtomicU32::new(0);

impl Recorder {
    fn write(&mut self, text: &str) {
        // Without room on the disk there will be no `end` either.
        self.failed |= self.file.write_all(text.as_bytes()).is_err();
    }

    fn error(&mut self, what: &str) {
        self.write(&format!("error {}\n", what.replace('\n', " ")));
    }
}

fn with_recorder<T>(act: impl FnOnce(&mut Recorder) -> T) -> Option<T> {
    if PID.load(Ordering::Acquire) != std::process::id() {
        return None;
    }
    let mut recorder = RECORDER.lock().ok()?;
    recorder.as_mut().map(act)
}

/// Records from now on into the file of this process.
pub fn begin(prefix: OsString) {
    let pid = std::process::id();
    PID.store(pid, Ordering::Release);
    let Some(file) = create(prefix) else {
        return;
    };
    {
        let Ok(mut place) = RECORDER.lock() else {
            return;
        };
        *place = Some(Recorder {
            file,
            names: BTreeMap::new(),
            cupti: None,
            records: 0,
            dropped: 0,
            failed: false,
        });
    }
    // CUPTI may ask for a buffer while it starts, so the lock is free here.
    match start() {
        Ok((cupti, version)) => {
            with_recorder(|recorder| {
                recorder.cupti = Some(cupti);
                recorder.write(&format!("process {pid} cupti {version}\n"));
            });
            if let Err(what) = calls::begin(note, write_out) {
                with_recorder(|recorder| recorder.error(&what));
            }
        }
        Err(what) => {
            with_recorder(|recorder| {
                recorder.write(&format!("process {pid} cupti 0\n"));
                recorder.error(&what);
            });
        }
    }
    at_exit(finish);
}

/// Adds a line to the file of this process.
fn note(line: &str) {
    with_recorder(|recorder| recorder.write(line));
}

fn start() -> Result<(Cupti, u32), String> {
    let library = Library::cupti()?;
    // The signatures are those of `cupti_activity.h` and `cupti_version.h`.
    let version_of: unsafe extern "C" fn(*mut u32) -> Status =
        function!(library, "cuptiGetVersion");
    let register: unsafe extern "C" fn(Request, Complete) -> Status =
        function!(library, "cuptiActivityRegisterCallbacks");
    let enable: unsafe extern "C" fn(u32) -> Status = function!(library, "cuptiActivityEnable");
    let cupti = Cupti {
        flush: function!(library, "cuptiActivityFlushAll"),
        next: function!(library, "cuptiActivityGetNextRecord"),
        dropped: function!(library, "cuptiActivityGetNumDroppedRecords"),
    };
    let mut version = 0;
    // SAFETY: writes one integer.
    let status = unsafe { version_of(&mut version) };
    if status != SUCCESS || version < OLDEST_VERSION {
        return Err(format!(
            "CUPTI of version {version} (status {status}) is older than {OLDEST_VERSION}, that of CUDA 11.1"
        ));
    }
    let set: unsafe extern "C" fn(u32, *mut usize, *mut c_void) -> Status =
        function!(library, "cuptiActivitySetAttribute");
    for (attribute, mut value) in DEVICE_BUFFERS {
        let mut size = size_of::<usize>();
        // A version that refuses keeps its own sizes.
        // SAFETY: reads as many bytes as `size` says.
        unsafe { set(attribute, &mut size, (&raw mut value).cast()) };
    }
    // SAFETY: both callbacks live as long as the process, and this library is never closed.
    let status = unsafe { register(request, complete) };
    if status != SUCCESS {
        return Err(format!(
            "cuptiActivityRegisterCallbacks answered {status}: another profiler may be in the program"
        ));
    }
    // SAFETY: a plain call.
    let status = unsafe { enable(CONCURRENT_KERNEL) };
    if status != SUCCESS {
        return Err(format!("cuptiActivityEnable answered {status}"));
    }
    Ok((cupti, version))
}

fn layout() -> Option<Layout> {
    Layout::from_size_align(BUFFER_BYTES, ALIGNMENT).ok()
}

unsafe extern "C" fn request(buffer: *mut *mut u8, size: *mut usize, most_records: *mut usize) {
    // SAFETY: CUPTI passes three places to write to; without memory it gets an empty buffer, and
    // drops records, which it counts.
    unsafe {
        let memory = layout().map_or(std::ptr::null_mut(), |layout| alloc(layout));
        *buffer = memory;
        *size = if memory.is_null() { 0 } else { BUFFER_BYTES };
        *most_records = 0;
    }
}

unsafe extern "C" fn complete(
    context: *mut c_void,
    stream: u32,
    buffer: *mut u8,
    _size: usize,
    valid: usize,
) {
    with_recorder(|recorder| {
        let Some(cupti) = recorder.cupti else {
            recorder.error("CUPTI gave a buffer before it had started");
            return;
        };
        let mut text = String::new();
        let mut record = std::ptr::null_mut();
        // SAFETY: CUPTI hands over a buffer that it no longer writes to, and walks it itself.
        while valid > 0 && unsafe { (cupti.next)(buffer, valid, &mut record) } == SUCCESS {
            // SAFETY: a record begins with its kind, and one of a kernel is as the offsets say.
            unsafe {
                if read::<u32>(record, 0) == CONCURRENT_KERNEL {
                    kernel(record, &mut text, &mut recorder.names);
                    recorder.records += 1;
                }
            }
        }
        let mut dropped = 0;
        // SAFETY: writes one integer.
        if unsafe { (cupti.dropped)(context, stream, &mut dropped) } == SUCCESS {
            recorder.dropped += dropped as u64;
        }
        recorder.write(&text);
    });
    if let (false, Some(layout)) = (buffer.is_null(), layout()) {
        // SAFETY: it came from `request`.
        unsafe { dealloc(buffer, layout) };
    }
}

/// # Safety
/// `record` is one of CUPTI's, at least `offset` and the value long.
unsafe fn read<T>(record: *const u8, offset: usize) -> T {
    // SAFETY: as above; records are packed to 8 bytes, and an unaligned read asks for less.
    unsafe { record.add(offset).cast::<T>().read_unaligned() }
}

/// # Safety
/// `record` is a kernel record of CUPTI's.
unsafe fn kernel(record: *const u8, text: &mut String, names: &mut BTreeMap<String, usize>) {
    // SAFETY: the offsets are those of a kernel record, and its name, where there is one, ends in
    // a zero.
    unsafe {
        let word = |offset| read::<u32>(record, offset);
        let long = |offset| read::<u64>(record, offset);
        let name = read::<*const c_char>(record, NAME);
        let name = if name.is_null() {
            "?".into()
        } else {
            CStr::from_ptr(name).to_string_lossy()
        };
        let _ = write!(
            text,
            "k {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} ",
            word(CORRELATION),
            long(START),
            long(END),
            word(DEVICE),
            word(CONTEXT),
            word(STREAM),
            word(GRID),
            word(GRID + 4),
            word(GRID + 8),
            word(BLOCK),
            word(BLOCK + 4),
            word(BLOCK + 8),
            read::<u16>(record, REGISTERS),
            word(STATIC_SHARED),
            word(DYNAMIC_SHARED),
            long(GRAPH_NODE),
        );
        let mut name = name.replace('\n', "?");
        if name.starts_with('#') {
            name.insert(0, '?');
        }
        let _ = match names.get(&name) {
            Some(number) => writeln!(text, "#{number}"),
            None => writeln!(text, "{name}"),
        };
        let number = names.len();
        names.entry(name).or_insert(number);
    }
}

extern "C" fn finish() {
    if PID.load(Ordering::Acquire) == std::process::id() {
        calls::last();
        write_rest();
        calls::end_turn();
    }
}

/// Writes the records that CUPTI still has, and the end.
fn write_rest() {
    synchronize();
    let flushed = flush(FLUSH_FORCED);
    with_recorder(|recorder| {
        if flushed && !recorder.failed {
            let end = format!("end {} {}\n", recorder.records, recorder.dropped);
            recorder.write(&end);
        }
    });
}

/// Writes the records of what has ended.
fn write_out() {
    flush(FLUSH_FORCED);
}

/// Whether CUPTI handed over its records.
fn flush(how: u32) -> bool {
    // The buffers come back through `complete`, which takes the lock itself.
    let flush = with_recorder(|recorder| recorder.cupti.map(|cupti| cupti.flush)).flatten();
    let Some(flush) = flush else {
        return false;
    };
    // SAFETY: a plain call.
    let status = unsafe { flush(how) };
    if status != SUCCESS {
        let what = format!("cuptiActivityFlushAll answered {status}");
        with_recorder(|recorder| recorder.error(&what));
    }
    status == SUCCESS
}
