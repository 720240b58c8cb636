//! CUPTI's range profiler: each kernel between start and stop is a range, which is replayed until all
//! counters are read.
//!
//! Structures and their order are those of `cupti_target.h`, `cupti_profiler_target.h`,
//! `cupti_profiler_host.h` and `cupti_range_profiler.h` of CUDA 13.0. Each states its size up to its
//! last field (`CUPTI_PROFILER_STRUCT_SIZE`), by which another version knows what it contains.

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::offset_of;

use super::driver::Handle;
use super::symbols::{Library, SUCCESS, Status, function};

/// `CUPTI_PROFILER_TYPE_RANGE_PROFILER` of `cupti_profiler_host.h`.
const RANGE_PROFILER: u32 = 0;
/// `CUPTI_AutoRange` of `CUpti_ProfilerRange`: each kernel is a range.
const AUTO_RANGE: u32 = 1;
/// `CUPTI_KernelReplay` of `CUpti_ProfilerReplayMode`.
const KERNEL_REPLAY: u32 = 2;
/// Room for ranges beside those of the launches, so that one too many is seen and not dropped.
const FURTHER_RANGES: usize = 8;

/// What CUPTI refused: its answer, and which call.
pub struct Refused {
    pub status: Status,
    pub what: String,
}

type Call = unsafe extern "C" fn(*mut c_void) -> Status;

/// The functions that take one structure each.
struct Calls {
    calls: Vec<(&'static str, Call)>,
}

macro_rules! parameters {
    ($(#[$doc:meta])* $name:ident = $call:literal { $($field:ident: $type:ty,)* ; $last:ident: $last_type:ty }) => {
        $(#[$doc])*
        #[repr(C)]
        struct $name {
            struct_size: usize,
            private: *mut c_void,
            $($field: $type,)*
            $last: $last_type,
        }

        impl Parameters for $name {
            const CALL: &'static str = $call;
            const SIZE: usize = offset_of!($name, $last) + size_of::<$last_type>();

            fn state_size(&mut self) {
                self.struct_size = Self::SIZE;
            }
        }
    };
}

/// The structure of one call.
trait Parameters: Sized {
    const CALL: &'static str;
    const SIZE: usize;

    fn state_size(&mut self);

    /// All zero but the size.
    fn new() -> Self {
        // SAFETY: every field is an integer or a pointer.
        let mut new: Self = unsafe { std::mem::zeroed() };
        new.state_size();
        new
    }
}

/// `cupti_profiler_target.h`; nothing follows `pPriv`.
#[repr(C)]
struct Initialize {
    struct_size: usize,
    private: *mut c_void,
}

impl Parameters for Initialize {
    const CALL: &'static str = "cuptiProfilerInitialize";
    const SIZE: usize = size_of::<Initialize>();

    fn state_size(&mut self) {
        self.struct_size = Self::SIZE;
    }
}

parameters!(
    /// `cupti_target.h`.
    ChipName = "cuptiDeviceGetChipName" { device: usize, ; name: *const c_char }
);
parameters!(
    /// `cupti_profiler_target.h`.
    Availability = "cuptiProfilerGetCounterAvailability" {
        context: Handle, size: usize, ; image: *mut u8
    }
);
parameters!(
    /// `cupti_profiler_host.h`, as the next five.
    HostInitialize = "cuptiProfilerHostInitialize" {
        profiler: u32, chip: *const c_char, availability: *const u8, ; host: *mut c_void
    }
);
parameters!(
    AddMetrics = "cuptiProfilerHostConfigAddMetrics" {
        host: *mut c_void, names: *const *const c_char, ; count: usize
    }
);
parameters!(
    ConfigSize = "cuptiProfilerHostGetConfigImageSize" { host: *mut c_void, ; size: usize }
);
parameters!(
    ConfigImage = "cuptiProfilerHostGetConfigImage" {
        host: *mut c_void, size: usize, ; image: *mut u8
    }
);
parameters!(
    Passes = "cuptiProfilerHostGetNumOfPasses" { size: usize, image: *mut u8, ; passes: usize }
);
parameters!(
    Evaluate = "cuptiProfilerHostEvaluateToGpuValues" {
        host: *mut c_void, data: *const u8, size: usize, range: usize,
        names: *const *const c_char, count: usize, ; values: *mut f64
    }
);
parameters!(
    /// `cupti_range_profiler.h`, as all that follow.
    Enable = "cuptiRangeProfilerEnable" { context: Handle, ; profiler: *mut c_void }
);
parameters!(
    DataSize = "cuptiRangeProfilerGetCounterDataSize" {
        profiler: *mut c_void, names: *const *const c_char, count: usize, ranges: usize,
        nodes: u32, ; size: usize
    }
);
parameters!(
    DataInitialize = "cuptiRangeProfilerCounterDataImageInitialize" {
        profiler: *mut c_void, size: usize, ; data: *mut u8
    }
);
parameters!(
    SetConfig = "cuptiRangeProfilerSetConfig" {
        profiler: *mut c_void, config_size: usize, config: *const u8, data_size: usize,
        data: *mut u8, range: u32, replay: u32, ranges: usize, levels: u16, least_level: u16,
        pass: usize, ; target_level: u16
    }
);
parameters!(Start = "cuptiRangeProfilerStart" { ; profiler: *mut c_void });
parameters!(
    Stop = "cuptiRangeProfilerStop" {
        profiler: *mut c_void, pass: usize, target_level: usize, ; all_submitted: u8
    }
);
parameters!(
    Decode = "cuptiRangeProfilerDecodeData" { profiler: *mut c_void, ; dropped: usize }
);
parameters!(
    DataInfo = "cuptiRangeProfilerGetCounterDataInfo" {
        data: *const u8, size: usize, ; ranges: usize
    }
);
parameters!(Disable = "cuptiRangeProfilerDisable" { ; profiler: *mut c_void });

const ALL: [&str; 17] = [
    Initialize::CALL,
    ChipName::CALL,
    Availability::CALL,
    HostInitialize::CALL,
    AddMetrics::CALL,
    ConfigSize::CALL,
    ConfigImage::CALL,
    Passes::CALL,
    Evaluate::CALL,
    Enable::CALL,
    DataSize::CALL,
    DataInitialize::CALL,
    SetConfig::CALL,
    Start::CALL,
    Stop::CALL,
    Decode::CALL,
    DataInfo::CALL,
];

impl Calls {
    fn of(cupti: Library) -> Result<Calls, String> {
        let mut calls = Vec::new();
        for name in ALL.into_iter().chain([Disable::CALL]) {
            let call: Call = function!(cupti, name);
            calls.push((name, call));
        }
        Ok(Calls { calls })
    }

    fn make<P: Parameters>(&self, parameters: &mut P) -> Result<(), Refused> {
        let found = self.calls.iter().find(|(name, _)| *name == P::CALL);
        let status = match found {
            // SAFETY: the structure is that of this call, and what it points to lives longer.
            Some((_, call)) => unsafe { call(std::ptr::from_mut(parameters).cast()) },
            None => return Err(refused(0, format!("{} was not looked up", P::CALL))),
        };
        match status {
            SUCCESS => Ok(()),
            status => Err(refused(status, format!("{} answered {status}", P::CALL))),
        }
    }
}

/// An error with CUPTI's answer, 0 where it gave none.
pub fn refused(status: Status, what: String) -> Refused {
    Refused { status, what }
}

/// The range profiler of a process, before it has a context.
pub struct RangeProfiler {
    calls: Calls,
}

/// The range profiler of a context, with what its objects point to.
pub struct Session {
    calls: Calls,
    host: *mut c_void,
    profiler: *mut c_void,
    data: Vec<u8>,
    /// Keeps `pointers` valid.
    names: Vec<CString>,
    pointers: Vec<*const c_char>,
    /// CUPTI reads them until the session ends.
    config: Vec<u8>,
    _availability: Vec<u8>,
    /// CUPTI's name of the chip.
    pub chip: String,
    /// How often each launch is replayed.
    pub passes: usize,
}

// SAFETY: CUPTI's objects belong to the process, and are used under a lock.
unsafe impl Send for Session {}

impl RangeProfiler {
    /// Finds the functions.
    pub fn of(cupti: Library) -> Result<RangeProfiler, String> {
        let calls = Calls::of(cupti)?;
        Ok(RangeProfiler { calls })
    }

    /// Prepares to measure counters of so many launches in a context, on a device.
    pub fn session(
        self,
        context: Handle,
        device: usize,
        counters: &[String],
        launches: usize,
    ) -> Result<Session, Refused> {
        let calls = self.calls;
        calls.make(&mut Initialize::new())?;
        let mut chip = ChipName::new();
        chip.device = device;
        calls.make(&mut chip)?;
        let availability = availability(&calls, context)?;
        let host = Host {
            chip: chip.name,
            availability: &availability,
        };
        let names: Result<Vec<CString>, _> = counters
            .iter()
            .map(|name| CString::new(name.as_str()))
            .collect();
        let names = names.map_err(|error| refused(0, error.to_string()))?;
        let pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let (object, config, passes) = host.configuration(&calls, &pointers)?;
        let mut enable = Enable::new();
        enable.context = context;
        calls.make(&mut enable)?;
        let name = match chip.name.is_null() {
            true => "?".to_owned(),
            // SAFETY: CUPTI's own text, which ends in a zero.
            false => unsafe { CStr::from_ptr(chip.name) }
                .to_string_lossy()
                .into_owned(),
        };
        let mut session = Session {
            calls,
            host: object,
            profiler: enable.profiler,
            data: Vec::new(),
            names,
            pointers,
            config,
            _availability: availability,
            chip: name,
            passes,
        };
        session.configure(launches + FURTHER_RANGES)?;
        Ok(session)
    }
}

/// Which counters the device has, as CUPTI's host side wants to know it.
fn availability(calls: &Calls, context: Handle) -> Result<Vec<u8>, Refused> {
    let mut asked = Availability::new();
    asked.context = context;
    calls.make(&mut asked)?;
    let mut image = vec![0; asked.size];
    asked.image = image.as_mut_ptr();
    calls.make(&mut asked)?;
    Ok(image)
}

/// What an object of CUPTI's host side is made for.
struct Host<'a> {
    chip: *const c_char,
    availability: &'a [u8],
}

impl Host<'_> {
    /// An object that knows these counters.
    fn knowing(&self, calls: &Calls, names: &[*const c_char]) -> Result<*mut c_void, Refused> {
        let mut host = HostInitialize::new();
        host.profiler = RANGE_PROFILER;
        host.chip = self.chip;
        host.availability = self.availability.as_ptr();
        calls.make(&mut host)?;
        let mut add = AddMetrics::new();
        (add.host, add.names, add.count) = (host.host, names.as_ptr(), names.len());
        calls.make(&mut add)?;
        Ok(host.host)
    }

    /// An object for the counters, their configuration, and how often a launch is replayed with it.
    fn configuration(
        &self,
        calls: &Calls,
        names: &[*const c_char],
    ) -> Result<(*mut c_void, Vec<u8>, usize), Refused> {
        let host = self.knowing(calls, names);
        let host = host.map_err(|why| self.unknown(calls, names).unwrap_or(why))?;
        let mut size = ConfigSize::new();
        size.host = host;
        calls.make(&mut size)?;
        let mut config = vec![0; size.size];
        let mut image = ConfigImage::new();
        (image.host, image.size, image.image) = (host, config.len(), config.as_mut_ptr());
        calls.make(&mut image)?;
        let mut passes = Passes::new();
        (passes.size, passes.image) = (config.len(), config.as_mut_ptr());
        calls.make(&mut passes)?;
        Ok((host, config, passes.passes))
    }

    /// The first counter that CUPTI refuses by itself. An object that refused one takes no other.
    fn unknown(&self, calls: &Calls, names: &[*const c_char]) -> Option<Refused> {
        names.iter().find_map(|name| {
            let why = self.knowing(calls, std::slice::from_ref(name)).err()?;
            // SAFETY: the names are C strings of this library.
            let name = unsafe { CStr::from_ptr(*name) }.to_string_lossy();
            let what = format!("{} for the counter {name}", why.what);
            Some(refused(why.status, what))
        })
    }
}

impl Session {
    fn configure(&mut self, ranges: usize) -> Result<(), Refused> {
        let mut size = DataSize::new();
        size.profiler = self.profiler;
        (size.names, size.count) = (self.pointers.as_ptr(), self.pointers.len());
        size.ranges = ranges;
        size.nodes = u32::try_from(ranges).unwrap_or(u32::MAX);
        self.calls.make(&mut size)?;
        self.data = vec![0; size.size];
        let mut initialize = DataInitialize::new();
        initialize.profiler = self.profiler;
        (initialize.size, initialize.data) = (self.data.len(), self.data.as_mut_ptr());
        self.calls.make(&mut initialize)?;
        let mut config = SetConfig::new();
        config.profiler = self.profiler;
        (config.config_size, config.config) = (self.config.len(), self.config.as_ptr());
        (config.data_size, config.data) = (self.data.len(), self.data.as_mut_ptr());
        (config.range, config.replay) = (AUTO_RANGE, KERNEL_REPLAY);
        config.ranges = ranges;
        (config.levels, config.least_level) = (1, 1);
        self.calls.make(&mut config)
    }

    /// From here on each kernel of the context is a range.
    pub fn start(&self) -> Result<(), Refused> {
        let mut start = Start::new();
        start.profiler = self.profiler;
        self.calls.make(&mut start)
    }

    /// Until here.
    pub fn stop(&self) -> Result<(), Refused> {
        let mut stop = Stop::new();
        stop.profiler = self.profiler;
        self.calls.make(&mut stop)
    }

    /// The values of all ranges: so many, none dropped, and each a number.
    pub fn values(&mut self, ranges: usize) -> Result<Vec<Vec<f64>>, Refused> {
        let mut decode = Decode::new();
        decode.profiler = self.profiler;
        self.calls.make(&mut decode)?;
        let mut info = DataInfo::new();
        (info.data, info.size) = (self.data.as_ptr(), self.data.len());
        self.calls.make(&mut info)?;
        if info.ranges != ranges || decode.dropped > 0 {
            let (found, dropped) = (info.ranges, decode.dropped);
            let what = format!(
                "CUPTI measured {found} ranges and dropped {dropped}, where {ranges} were expected: other kernels ran beside them"
            );
            return Err(refused(0, what));
        }
        (0..ranges).map(|range| self.evaluate(range)).collect()
    }

    fn evaluate(&self, range: usize) -> Result<Vec<f64>, Refused> {
        let mut values = vec![f64::NAN; self.pointers.len()];
        let mut evaluate = Evaluate::new();
        evaluate.host = self.host;
        (evaluate.data, evaluate.size) = (self.data.as_ptr(), self.data.len());
        evaluate.range = range;
        (evaluate.names, evaluate.count) = (self.pointers.as_ptr(), self.pointers.len());
        evaluate.values = values.as_mut_ptr();
        self.calls.make(&mut evaluate)?;
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(values),
            Some(at) => {
                let name = self.names[at].to_string_lossy();
                Err(refused(
                    0,
                    format!("CUPTI has no value of {name} in launch {range}"),
                ))
            }
        }
    }

    /// Gives the context back.
    pub fn end(&self) -> Result<(), Refused> {
        let mut disable = Disable::new();
        disable.profiler = self.profiler;
        self.calls.make(&mut disable)
    }
}

/// The sizes that the headers of CUDA 13.0 state (`..._STRUCT_SIZE`), on 64-bit machines.
const _: () = {
    assert!(Initialize::SIZE == 16);
    assert!(ChipName::SIZE == 32);
    assert!(Availability::SIZE == 40);
    assert!(HostInitialize::SIZE == 48);
    assert!(AddMetrics::SIZE == 40);
    assert!(ConfigSize::SIZE == 32);
    assert!(ConfigImage::SIZE == 40);
    assert!(Passes::SIZE == 40);
    assert!(Evaluate::SIZE == 72);
    assert!(Enable::SIZE == 32);
    assert!(DataSize::SIZE == 64);
    assert!(DataInitialize::SIZE == 40);
    assert!(SetConfig::SIZE == 90);
    assert!(offset_of!(SetConfig, ranges) == 64 && offset_of!(SetConfig, pass) == 80);
    assert!(Start::SIZE == 24);
    assert!(Stop::SIZE == 41);
    assert!(Decode::SIZE == 32);
    assert!(DataInfo::SIZE == 40);
    assert!(Disable::SIZE == 24);
};
