//! Kernel records: what the injected library writes of each process, and the capture file that is
//! kept of the launches that were asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use ncu_report::{
    Kernel, Launch, Measurement, Metrics, ReadError, Recording, ResultKind, Unit, Value, base_name,
};

use crate::metric::Role;

/// How a capture file begins; the number is its version.
pub const MAGIC: &[u8] = b"sparsek-gate kernel records 1\n";
/// The most launches of a file: it states one in few bytes, and each takes about 1 KiB of memory.
const MOST_LAUNCHES: usize = 48 << 10;

/// One launch of one kernel, as CUPTI's `CUpti_ActivityKernel` reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRecord {
    /// Grows with every call that launches; the nodes of one launch of a CUDA graph share one.
    pub correlation: u64,
    /// When it began, in nanoseconds of CUPTI's clock; 0 where that was not recorded.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Ordinal of the device within the process.
    pub device: u32,
    /// CUDA context.
    pub context: u32,
    /// CUDA stream.
    pub stream: u32,
    /// Blocks in x, y, z.
    pub grid: [u64; 3],
    /// Threads a block in x, y, z.
    pub block: [u64; 3],
    /// Registers a thread.
    pub registers: u64,
    /// Static shared memory of a block, in bytes.
    pub static_shared: u64,
    /// Dynamic shared memory of a block, in bytes.
    pub dynamic_shared: u64,
    /// The node of a CUDA graph that launched it; 0 where none did.
    pub graph_node: u64,
    /// The linker's name.
    pub name: String,
}

/// What one process left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessRecords {
    /// Its number.
    pub pid: u32,
    /// What `cuptiGetVersion` answers there.
    pub cupti_version: u32,
    /// The call at which it waited for its turn, if it did.
    pub turn: Option<Call>,
    /// The calls that loaded code.
    pub loads: Vec<Call>,
    /// Its kernels in the order in which they were launched. Where only ranges of the profiler count,
    /// those that were launched within one.
    pub kernels: Vec<KernelRecord>,
}

/// A call of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// Its number, see [`KernelRecord::correlation`].
    pub correlation: u64,
    /// When it was made, in nanoseconds of the system's clock.
    pub at_ns: u64,
}

/// A kernel with its grid and block, and what a block takes: registers a thread, static and dynamic shared
/// memory. Two choices of a compiler or autotuner differ in one of them.
pub type Shape = (String, [u64; 3], [u64; 3], [u64; 3]);

/// What a program does on the GPU from its first work until it has loaded the last of its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Startup {
    /// How often it loads code, from its beginning on.
    pub loads: u32,
    /// How long it takes, in nanoseconds.
    pub takes_ns: u64,
    /// How long the kernels run that it launches meanwhile, in nanoseconds.
    pub kernels_ns: u64,
    /// How long all of its kernels run, in nanoseconds.
    pub all_ns: u64,
    /// What it launches afterwards.
    pub then: BTreeSet<Shape>,
}

impl Startup {
    /// Of a run in which one process launches. `None` where it loads nothing, and where the rest does not
    /// stand for all of it: what is launched before the last load takes more than a fifth of the time, or
    /// more than 2 % of it are kernels that are not launched again.
    pub fn of(processes: &[ProcessRecords]) -> Option<Startup> {
        let mut launching = processes.iter().filter(|one| !one.kernels.is_empty());
        let (process, None) = (launching.next()?, launching.next()) else {
            return None;
        };
        let (turn, last) = (process.turn?, *process.loads.iter().max()?);
        let is_before = |kernel: &KernelRecord| kernel.correlation < last.correlation;
        let (before, after) = process
            .kernels
            .split_at(process.kernels.partition_point(is_before));
        let then: BTreeSet<Shape> = after.iter().map(KernelRecord::shape).collect();
        let duration = |kernel: &KernelRecord| kernel.duration_ns().unwrap_or(0);
        let once = before
            .iter()
            .filter(|kernel| !then.contains(&kernel.shape()));
        let once_ns: u64 = once.map(duration).sum();
        let kernels_ns: u64 = before.iter().map(duration).sum();
        let all_ns: u64 = process.kernels.iter().map(duration).sum();
        let stands_for_all = 5 * kernels_ns <= all_ns && 50 * once_ns <= all_ns;
        stands_for_all.then_some(Startup {
            loads: u32::try_from(process.loads.len()).ok()?,
            takes_ns: last.at_ns.saturating_sub(turn.at_ns),
            kernels_ns,
            all_ns,
            then,
        })
    }

    /// Whether the kernels of both take as long, within half a percent of the time of all: then what is
    /// lost if neither counts is less than a tolerance.
    pub fn is_as_long_as(&self, other: &Startup) -> bool {
        let difference = self.kernels_ns.abs_diff(other.kernels_ns);
        200 * difference <= self.all_ns.min(other.all_ns)
    }
}

/// The calls at which ranges of the profiler start (`true`) and stop.
#[derive(Clone, Debug, Default)]
struct Ranges(Vec<(u64, bool)>);

impl Ranges {
    /// Adds a line `range start CALL` or `range stop CALL`.
    fn add(&mut self, line: &str) -> Option<()> {
        let (what, call) = line.strip_prefix("range ")?.split_once(' ')?;
        let starts = match what {
            "start" => true,
            "stop" => false,
            _ => return None,
        };
        self.0.push((call.parse().ok()?, starts));
        Some(())
    }

    /// In the order of the calls: threads may have written them in another one.
    fn sorted(mut self) -> Ranges {
        self.0.sort_unstable();
        self
    }

    /// Whether what a call launched is within a range.
    fn contain(&self, call: u64) -> bool {
        let before = self.0.partition_point(|(at, _)| *at < call);
        before.checked_sub(1).is_some_and(|last| self.0[last].1)
    }
}

/// Why what a process left is no measurement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incomplete {
    /// CUPTI could not record.
    #[error("{0}")]
    Unavailable(String),
    /// The process ended before all was written.
    #[error(
        "the records of process {pid} have no end: it was killed, or left without running what is registered for its exit"
    )]
    Unfinished {
        /// Its number.
        pid: u32,
    },
    /// CUPTI had no room for all records.
    #[error("CUPTI dropped {dropped} of the records of process {pid}")]
    Dropped {
        /// Its number.
        pid: u32,
        /// How many.
        dropped: u64,
    },
    /// The file is not what the library writes.
    #[error("line {line}: {problem}")]
    Damaged {
        /// From 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
}

impl KernelRecord {
    /// How long it ran; `None` where begin or end were not recorded.
    pub fn duration_ns(&self) -> Option<u64> {
        let length = self.end_ns.checked_sub(self.start_ns)?;
        (self.start_ns > 0 && length > 0).then_some(length)
    }

    /// Which kernel it is, with its shape.
    pub fn shape(&self) -> Shape {
        let takes = [self.registers, self.static_shared, self.dynamic_shared];
        (self.name.clone(), self.grid, self.block, takes)
    }

    /// Of a line that begins with `k`.
    fn parse(line: &str) -> Result<KernelRecord, String> {
        let mut words = line.splitn(18, ' ');
        if words.next() != Some("k") {
            return Err(format!("a kernel was expected, not {line:?}"));
        }
        let mut number = |what: &str| -> Result<u64, String> {
            let word = words.next().ok_or_else(|| format!("{what} is missing"))?;
            word.parse()
                .map_err(|_| format!("{what} is no number: {word:?}"))
        };
        let narrow = |value: u64, what: &str| {
            u32::try_from(value).map_err(|_| format!("{what} is too large: {value}"))
        };
        let correlation = number("the correlation")?;
        let (start_ns, end_ns) = (number("the start")?, number("the end")?);
        let device = narrow(number("the device")?, "the device")?;
        let context = narrow(number("the context")?, "the context")?;
        let stream = narrow(number("the stream")?, "the stream")?;
        let mut size = |what: &str| -> Result<[u64; 3], String> {
            let size = [number(what)?, number(what)?, number(what)?];
            if size.contains(&0) {
                return Err(format!("{what} has no extent: {size:?}"));
            }
            Ok(size)
        };
        let (grid, block) = (size("the grid")?, size("the block")?);
        let record = KernelRecord {
            correlation,
            start_ns,
            end_ns,
            device,
            context,
            stream,
            grid,
            block,
            registers: number("the registers")?,
            static_shared: number("the static shared memory")?,
            dynamic_shared: number("the dynamic shared memory")?,
            graph_node: number("the graph node")?,
            name: words.next().unwrap_or_default().to_owned(),
        };
        if record.name.is_empty() {
            return Err("the kernel has no name".to_owned());
        }
        Ok(record)
    }

    fn line(&self) -> String {
        let [gx, gy, gz] = self.grid;
        let [bx, by, bz] = self.block;
        format!(
            "k {} {} {} {} {} {} {gx} {gy} {gz} {bx} {by} {bz} {} {} {} {} {}\n",
            self.correlation,
            self.start_ns,
            self.end_ns,
            self.device,
            self.context,
            self.stream,
            self.registers,
            self.static_shared,
            self.dynamic_shared,
            self.graph_node,
            self.name
        )
    }
}

impl ProcessRecords {
    /// Reads what the injected library wrote, see `injection/records.rs`.
    ///
    /// # Errors
    /// [`Incomplete`]: nothing of a process is a measurement unless all of it is there.
    pub fn parse(text: &str) -> Result<ProcessRecords, Incomplete> {
        let damaged = |line: usize, problem: String| Incomplete::Damaged { line, problem };
        let mut lines = text.split_inclusive('\n').enumerate();
        let first = lines.next().map_or("", |(_, line)| line.trim_end());
        let (pid, cupti_version) = first
            .strip_prefix("process ")
            .and_then(|rest| rest.split_once(" cupti "))
            .and_then(|(pid, version)| Some((pid.parse().ok()?, version.parse().ok()?)))
            .ok_or_else(|| damaged(1, format!("{first:?} names no process")))?;
        let mut kernels = Vec::new();
        let mut ranges = None;
        let (mut turn, mut loads) = (None, Vec::new());
        let mut end = None;
        for (index, line) in lines {
            let number = index + 1;
            if let (Some(_), true) = (end, !line.trim().is_empty()) {
                return Err(damaged(number, "something follows the end".to_owned()));
            }
            // What was written last may be cut anywhere.
            let Some(line) = line.strip_suffix('\n') else {
                return Err(Incomplete::Unfinished { pid });
            };
            if let Some(what) = line.strip_prefix("error ") {
                return Err(Incomplete::Unavailable(what.to_owned()));
            }
            if let Some(counts) = line.strip_prefix("end ") {
                let counts: Option<(usize, u64)> =
                    counts.split_once(' ').and_then(|(records, dropped)| {
                        Some((records.parse().ok()?, dropped.parse().ok()?))
                    });
                end = Some(counts.ok_or_else(|| damaged(number, format!("{line:?}")))?);
                continue;
            }
            let call = |numbers: &str| {
                let call = numbers.split_once(' ').and_then(|(correlation, at_ns)| {
                    let (correlation, at_ns) = (correlation.parse().ok()?, at_ns.parse().ok()?);
                    Some(Call { correlation, at_ns })
                });
                call.ok_or_else(|| damaged(number, format!("{line:?}")))
            };
            if let Some(numbers) = line.strip_prefix("turn ") {
                turn = Some(call(numbers)?);
                continue;
            }
            if let Some(numbers) = line.strip_prefix("load ") {
                loads.push(call(numbers)?);
                continue;
            }
            match (line, &mut ranges) {
                ("ranges", None) => ranges = Some(Ranges::default()),
                (line, Some(ranges)) if line.starts_with("range ") => {
                    ranges
                        .add(line)
                        .ok_or_else(|| damaged(number, format!("{line:?}")))?;
                }
                _ => kernels
                    .push(KernelRecord::parse(line).map_err(|problem| damaged(number, problem))?),
            }
        }
        let (records, dropped) = end.ok_or(Incomplete::Unfinished { pid })?;
        if dropped > 0 {
            return Err(Incomplete::Dropped { pid, dropped });
        }
        if records != kernels.len() {
            let problem = format!("{} kernels where the end counts {records}", kernels.len());
            return Err(damaged(1, problem));
        }
        // Each launching thread has a buffer of its own, and CUPTI hands them over as they fill.
        kernels.sort_by_key(|kernel| (kernel.correlation, kernel.start_ns));
        if let Some(ranges) = ranges {
            let ranges = ranges.sorted();
            kernels.retain(|kernel| ranges.contain(kernel.correlation));
        }
        Ok(ProcessRecords {
            pid,
            cupti_version,
            turn,
            loads,
            kernels,
        })
    }

    /// Drops what it launched before its turn.
    pub fn drop_before_turn(&mut self) {
        let begins = self.turn.map_or(0, |turn| turn.correlation);
        self.kernels.retain(|kernel| kernel.correlation >= begins);
    }

    /// Whether it launched nothing before its turn.
    pub fn waited(&self) -> bool {
        let begins = self.turn.map_or(u64::MAX, |turn| turn.correlation);
        self.kernels
            .first()
            .is_none_or(|first| first.correlation >= begins)
    }

    fn began(&self) -> u64 {
        let starts = self.kernels.iter().map(|kernel| kernel.start_ns);
        starts.min().unwrap_or(u64::MAX)
    }
}

/// The launches of one run of a program that were asked for, and what they were measured with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelCapture {
    /// Name of the GPU model.
    pub gpu: String,
    /// `major.minor`.
    pub compute_capability: String,
    /// What `cuptiGetVersion` answers.
    pub cupti_version: u32,
    /// Number of the process and what it launched, in order.
    pub launches: Vec<(u32, KernelRecord)>,
}

impl KernelCapture {
    /// Every launch of all processes of a run, the process that launched first, first.
    pub fn of(
        gpu: &str,
        compute_capability: &str,
        mut processes: Vec<ProcessRecords>,
    ) -> KernelCapture {
        processes.sort_by_key(ProcessRecords::began);
        KernelCapture {
            gpu: gpu.to_owned(),
            compute_capability: compute_capability.to_owned(),
            cupti_version: processes.first().map_or(0, |process| process.cupti_version),
            launches: processes
                .into_iter()
                .flat_map(|process| {
                    let pid = process.pid;
                    process.kernels.into_iter().map(move |kernel| (pid, kernel))
                })
                .collect(),
        }
    }

    /// The capture file: [`MAGIC`], `gpu NAME`, `compute-capability MAJOR.MINOR`, `cupti VERSION`,
    /// then for each launch, in order, a line `k` as the injected library writes it with a line
    /// `process PID` before those of another process, and `end LAUNCHES`.
    pub fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(MAGIC).into_owned();
        let _ = write!(
            text,
            "gpu {}\ncompute-capability {}\ncupti {}\n",
            self.gpu, self.compute_capability, self.cupti_version
        );
        let mut of = None;
        for (pid, kernel) in &self.launches {
            if of != Some(*pid) {
                let _ = writeln!(text, "process {pid}");
                of = Some(*pid);
            }
            text.push_str(&kernel.line());
        }
        let _ = writeln!(text, "end {}", self.launches.len());
        text
    }

    fn parse(bytes: &[u8]) -> Result<KernelCapture, ReadError> {
        let error = |line: usize, problem: String| ReadError::Records {
            line: line as u64,
            problem,
        };
        let text = bytes
            .strip_prefix(MAGIC)
            .and_then(|rest| std::str::from_utf8(rest).ok())
            .ok_or_else(|| error(1, "not a file of kernel records".to_owned()))?;
        // The first line was the version.
        let mut lines = text.split_inclusive('\n').zip(2..);
        let mut value = |key: &str, at: usize| {
            let line = lines.next().and_then(|(line, _)| line.strip_suffix('\n'));
            let value = line.and_then(|line| line.strip_prefix(key)?.strip_prefix(' '));
            value.ok_or_else(|| error(at, format!("`{key}` was expected")))
        };
        let gpu = value("gpu", 2)?.to_owned();
        let compute_capability = value("compute-capability", 3)?.to_owned();
        let cupti_version = value("cupti", 4)?
            .parse()
            .map_err(|_| error(4, "the version is no number".to_owned()))?;
        let mut launches = Vec::new();
        let mut pid = None;
        let mut ended = false;
        for (line, number) in lines {
            let whole = line.strip_suffix('\n').filter(|_| !ended);
            let line = whole.ok_or_else(|| {
                error(
                    number,
                    "the file is cut or goes on after its end".to_owned(),
                )
            })?;
            if let Some(process) = line.strip_prefix("process ") {
                let process = process.parse();
                pid = Some(process.map_err(|_| error(number, "no process".to_owned()))?);
            } else if let Some(count) = line.strip_prefix("end ") {
                if count.parse() != Ok(launches.len()) {
                    let found = launches.len();
                    return Err(error(number, format!("{found} launches, not {count}")));
                }
                ended = true;
            } else {
                let kernel = KernelRecord::parse(line).map_err(|problem| error(number, problem))?;
                let pid = pid.ok_or_else(|| error(number, "a launch of no process".to_owned()))?;
                if launches.len() == MOST_LAUNCHES {
                    return Err(error(
                        number,
                        format!("more than {MOST_LAUNCHES} launches of kernels"),
                    ));
                }
                launches.push((pid, kernel));
            }
        }
        if !ended {
            return Err(error(0, "the file has no end".to_owned()));
        }
        Ok(KernelCapture {
            gpu,
            compute_capability,
            cupti_version,
            launches,
        })
    }
}

/// The signature of a linker's name; `None` of a name that is none, such as that of an `extern "C"` kernel.
fn demangled(name: &str) -> Option<String> {
    cpp_demangle::Symbol::new(name).ok()?.demangle().ok()
}

/// Reads a capture file of kernel records.
///
/// # Errors
/// [`ReadError::Records`], with the line.
pub fn read(bytes: &[u8]) -> Result<Recording, ReadError> {
    let capture = KernelCapture::parse(bytes)?;
    let capability = capture.compute_capability.split_once('.');
    let compute_capability =
        capability.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let (major, minor) = compute_capability.ok_or_else(|| ReadError::Records {
        line: 3,
        problem: format!("no compute capability: {:?}", capture.compute_capability),
    })?;
    let of_device = [
        (Role::DeviceName, Value::Text(capture.gpu.into())),
        (Role::ComputeCapabilityMajor, Value::Integer(major)),
        (Role::ComputeCapabilityMinor, Value::Integer(minor)),
    ];
    let metrics = |kernel: &KernelRecord| {
        let duration = kernel.duration_ns().map_or(Value::Missing, Value::Integer);
        let registers = Value::Integer(kernel.registers);
        let shared = Value::Integer(kernel.dynamic_shared);
        let of_launch = [
            (Role::Duration, duration, Unit::named("ns")),
            (
                Role::RegistersPerThread,
                registers,
                Unit::named("register/thread"),
            ),
            (Role::DynamicSharedBytes, shared, Unit::named("byte/block")),
        ];
        let of_device = of_device.iter().cloned();
        let of_device = of_device.map(|(role, value)| (role, value, Unit::NONE));
        let all: BTreeMap<Arc<str>, Measurement> = of_device
            .chain(of_launch)
            .map(|(role, value, unit)| (role.counter().into(), Measurement { value, unit }))
            .collect();
        Metrics::from(all)
    };
    let launch = |(pid, kernel): (u32, KernelRecord)| Launch {
        kind: ResultKind::Kernel,
        metrics: metrics(&kernel),
        kernel: Kernel {
            function: base_name(&kernel.name),
            demangled: demangled(&kernel.name),
            mangled: Some(kernel.name),
        },
        grid: kernel.grid,
        block: kernel.block,
        process_id: Some(pid),
        device: Some(kernel.device),
        context: Some(kernel.context),
        stream: Some(kernel.stream),
        clock_locked: None,
        compute_capability,
        labels: Vec::new(),
        source: None,
    };
    Ok(Recording {
        launches: capture.launches.into_iter().map(launch).collect(),
        profiler_version: Some(format!("CUPTI {}", capture.cupti_version)),
        ..Recording::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `cp_async` launches, as recorded on an H200, with a turn at its first launch and loads of code
    /// at these calls, the last of them so many seconds later.
    fn process(loads: &[u64], seconds: u64) -> ProcessRecords {
        let text = include_str!("../../tests/data/cupti/cp_async.process");
        let (first, rest) = text.split_once('\n').unwrap();
        let last = loads.len().saturating_sub(1);
        let load = |(at, call): (usize, &u64)| {
            let at_ns = 5_000_000_000
                + if at == last {
                    seconds * 1_000_000_000
                } else {
                    0
                };
            format!("load {call} {at_ns}\n")
        };
        let loads: String = loads.iter().enumerate().map(load).collect();
        ProcessRecords::parse(&format!("{first}\nturn 1 5000000000\n{loads}{rest}")).unwrap()
    }

    #[test]
    fn a_start_ends_with_the_last_load_of_code() {
        let one = process(&[1, 1, 2], 3);
        let start = Startup::of(std::slice::from_ref(&one)).unwrap();
        assert_eq!((start.loads, start.takes_ns), (3, 3_000_000_000));
        assert_eq!(start.kernels_ns, one.kernels[0].duration_ns().unwrap());
        // Both kernels are launched afterwards.
        assert_eq!(start.then.len(), 2);
        // What it launches again may take long.
        assert!(
            Startup::of(&[process(&[8], 3)]).is_none(),
            "fill_normal never again"
        );
        let mut again = process(&[5], 3);
        let fills = again.kernels[0].clone();
        again.kernels.push(KernelRecord {
            correlation: 99,
            ..fills
        });
        assert!(Startup::of(std::slice::from_ref(&again)).is_some());
        // What comes before takes more than a fifth of it.
        let later = process(&[8], 3).loads;
        let long = ProcessRecords {
            loads: later,
            ..again.clone()
        };
        assert!(Startup::of(&[long]).is_none());
        // Nothing is loaded, it had no turn, or two processes launch.
        assert!(Startup::of(&[process(&[], 0)]).is_none());
        assert!(
            Startup::of(&[ProcessRecords {
                turn: None,
                ..again.clone()
            }])
            .is_none()
        );
        assert!(Startup::of(&[again.clone(), again]).is_none());
    }

    #[test]
    fn starts_are_alike_whose_kernels_take_as_long() {
        let start = |kernels_ns, all_ns| Startup {
            loads: 1,
            takes_ns: 0,
            kernels_ns,
            all_ns,
            then: BTreeSet::new(),
        };
        let alike = |one: [u64; 2], other: [u64; 2]| {
            let [one, other] = [one, other].map(|[kernels, all]| start(kernels, all));
            assert_eq!(one.is_as_long_as(&other), other.is_as_long_as(&one));
            one.is_as_long_as(&other)
        };
        assert!(alike([900, 10_000], [949, 10_100]));
        assert!(alike([0, 10_000], [50, 10_000]));
        assert!(!alike([0, 10_000], [51, 10_000]));
        assert!(!alike([900, 1000], [910, 1000]));
    }

    #[test]
    fn what_is_launched_before_a_turn_is_dropped_only_where_the_turn_comes_later() {
        let mut one = process(&[2], 1);
        assert!(one.waited());
        one.turn = Some(Call {
            correlation: 3,
            at_ns: 0,
        });
        assert!(!one.waited());
        let launched = one.kernels.len();
        one.drop_before_turn();
        assert_eq!(one.kernels.len(), launched - 2);
        assert!(one.waited());
        one.turn = None;
        assert!(!one.waited());
    }
}
