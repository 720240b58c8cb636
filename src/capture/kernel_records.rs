//! Kernel records: what the injected library writes of each process, and the capture file that is
//! kept of the launches that were asked for.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write as _;
use std::sync::Arc;

use ncu_report::{
    Kernel, Launch, Measurement, Metrics, ReadError, Recording, ResultKind, Unit, Value, base_name,
};

use crate::metric::Role;

/// How a capture file begins; the number is its version.
pub const MAGIC: &[u8] = b"sparsek-gate kernel records 1\n";
/// The most launches of a file: each takes some 700 bytes of memory.
pub const MOST_LAUNCHES: usize = 256 << 10;

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
    pub name: Arc<str>,
}

/// The names that a file has stated. A later launch of such a kernel states `#` and how many were stated
/// before it.
#[derive(Default)]
struct Names(Vec<Arc<str>>);

impl Names {
    fn read(&mut self, word: &str) -> Result<Arc<str>, String> {
        let known = match word.strip_prefix('#') {
            Some(number) => number.parse().ok().and_then(|at: usize| self.0.get(at)),
            None if word.is_empty() => return Err("the kernel has no name".to_owned()),
            None => {
                self.0.push(word.into());
                self.0.last()
            }
        };
        let known = known.cloned();
        known.ok_or_else(|| format!("no name {word:?} was stated before"))
    }
}

/// What one process left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessRecords {
    /// Its number.
    pub pid: u32,
    /// What `cuptiGetVersion` answers there.
    pub cupti_version: u32,
    /// The number of the call at which it waited for its first turn, if it did.
    pub turn: Option<u64>,
    /// Whether a kernel of it ran while it stood still, between two of its turns.
    pub ran_between: bool,
    /// Its kernels in the order in which they were launched. Where only ranges of the profiler count,
    /// those that were launched within one.
    pub kernels: Vec<KernelRecord>,
}

/// When the turns of a process began and ended, in nanoseconds.
#[derive(Clone, Debug, Default)]
struct Turns {
    /// The number of the call at which the first one began.
    first: Option<u64>,
    /// When it left the GPU idle, as long as that turn is the last.
    idle: Option<u64>,
    between: Vec<Between>,
}

/// Between two turns of a process.
#[derive(Clone, Copy, Debug)]
struct Between {
    from: u64,
    until: u64,
    /// How long of it the process stood still.
    stood: u64,
}

impl Turns {
    /// Begins a turn.
    fn begin(&mut self, call: u64, until: u64, stood: u64) {
        self.first.get_or_insert(call);
        let from = self.idle.take();
        self.between
            .extend(from.map(|from| Between { from, until, stood }));
    }

    /// Whether a kernel ran between two turns, or after the last.
    fn ran_between(&self, kernels: &[KernelRecord]) -> bool {
        let within = |kernel: &KernelRecord| {
            let mut between = self.between.iter();
            between.any(|one| kernel.end_ns > one.from && kernel.start_ns < one.until)
                || self.idle.is_some_and(|from| kernel.end_ns > from)
        };
        // One that had not ended when its times were written ran on.
        let pauses = self.idle.is_some() || !self.between.is_empty();
        let unended = |kernel: &KernelRecord| pauses && kernel.duration_ns().is_none();
        kernels
            .iter()
            .any(|kernel| within(kernel) || unended(kernel))
    }

    /// Takes out of the times of kernels for how long the process stood still.
    fn take_out(&self, kernels: &mut [KernelRecord]) {
        for kernel in kernels {
            let before = self
                .between
                .iter()
                .filter(|one| one.until <= kernel.start_ns);
            let stood: u64 = before.map(|one| one.stood).sum();
            kernel.start_ns = kernel.start_ns.saturating_sub(stood);
            kernel.end_ns = kernel.end_ns.saturating_sub(stood);
        }
    }
}

/// The calls at which ranges of the profiler start (`true`) and stop.
#[derive(Clone, Debug, Default)]
struct Ranges(Vec<(u64, bool)>);

impl Ranges {
    /// Adds what a line states: `start CALL` or `stop CALL`.
    fn add(&mut self, stated: &str) -> Option<()> {
        let (what, call) = stated.split_once(' ')?;
        let starts = match what {
            "start" => true,
            "stop" => false,
            _ => return None,
        };
        self.0.push((call.parse().ok()?, starts));
        Some(())
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

    /// Of a line that begins with `k`.
    fn parse(line: &str, names: &mut Names) -> Result<KernelRecord, String> {
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
        Ok(KernelRecord {
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
            name: names.read(words.next().unwrap_or_default())?,
        })
    }

    /// With the name, or what stands for it.
    fn line(&self, name: &str) -> String {
        let [gx, gy, gz] = self.grid;
        let [bx, by, bz] = self.block;
        format!(
            "k {} {} {} {} {} {} {gx} {gy} {gz} {bx} {by} {bz} {} {} {} {} {name}\n",
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
        let (mut kernels, mut names) = (Vec::new(), Names::default());
        let mut ranges = None;
        let mut turns = Turns::default();
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
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            if word == "k" {
                let kernel = KernelRecord::parse(line, &mut names);
                kernels.push(kernel.map_err(|problem| damaged(number, problem))?);
                continue;
            }
            let unexpected = || damaged(number, format!("a kernel was expected, not {line:?}"));
            let numbers = rest.split(' ').map(|word| word.parse().ok());
            let numbers = numbers.collect::<Option<Vec<u64>>>();
            match (word, numbers.as_deref(), &mut ranges) {
                ("error", ..) => return Err(Incomplete::Unavailable(rest.to_owned())),
                ("end", Some([records, dropped]), _) => end = Some((*records, *dropped)),
                ("turn", Some([call, until, stood]), _) => turns.begin(*call, *until, *stood),
                ("idle", Some([from]), _) => turns.idle = Some(*from),
                ("ranges", _, None) => ranges = Some(Ranges::default()),
                ("range", _, Some(ranges)) => ranges.add(rest).ok_or_else(unexpected)?,
                _ => return Err(unexpected()),
            }
        }
        let (records, dropped) = end.ok_or(Incomplete::Unfinished { pid })?;
        if dropped > 0 {
            return Err(Incomplete::Dropped { pid, dropped });
        }
        if records != kernels.len() as u64 {
            let problem = format!("{} kernels where the end counts {records}", kernels.len());
            return Err(damaged(1, problem));
        }
        // Each launching thread has a buffer of its own, and CUPTI hands them over as they fill.
        kernels.sort_by_key(|kernel| (kernel.correlation, kernel.start_ns));
        if let Some(mut ranges) = ranges {
            // Threads may have written them in another order than that of the calls.
            ranges.0.sort_unstable();
            kernels.retain(|kernel| ranges.contain(kernel.correlation));
        }
        let ran_between = turns.ran_between(&kernels);
        turns.take_out(&mut kernels);
        Ok(ProcessRecords {
            pid,
            cupti_version,
            turn: turns.first,
            ran_between,
            kernels,
        })
    }

    /// Whether its kernels ran in its turns only.
    pub fn kept_its_turns(&self) -> bool {
        let begins = self.turn.unwrap_or(u64::MAX);
        let first = self.kernels.first();
        !self.ran_between && first.is_none_or(|first| first.correlation >= begins)
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
    /// then for each launch, in order, a line `k` as the injected library writes it, with a line
    /// `process PID` before those of another process, and `end LAUNCHES`.
    pub fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(MAGIC).into_owned();
        let _ = write!(
            text,
            "gpu {}\ncompute-capability {}\ncupti {}\n",
            self.gpu, self.compute_capability, self.cupti_version
        );
        let mut of = None;
        let mut names: HashMap<&str, String> = HashMap::new();
        for (pid, kernel) in &self.launches {
            if of != Some(*pid) {
                let _ = writeln!(text, "process {pid}");
                of = Some(*pid);
            }
            let number = names.len();
            text.push_str(&match names.entry(&kernel.name) {
                Entry::Occupied(number) => kernel.line(number.get()),
                Entry::Vacant(first) => {
                    first.insert(format!("#{number}"));
                    kernel.line(&kernel.name)
                }
            });
        }
        let _ = writeln!(text, "end {}", self.launches.len());
        text
    }

    fn parse(bytes: &[u8]) -> Result<KernelCapture, ReadError> {
        let text = bytes
            .strip_prefix(MAGIC)
            .and_then(|rest| std::str::from_utf8(rest).ok())
            .ok_or_else(|| ReadError::line(1, "not a file of kernel records"))?;
        // The first line was the version.
        let mut lines = text.split_inclusive('\n').zip(2..);
        let mut value = |key: &str, at: u64| {
            let line = lines.next().and_then(|(line, _)| line.strip_suffix('\n'));
            let value = line.and_then(|line| line.strip_prefix(key)?.strip_prefix(' '));
            value.ok_or_else(|| ReadError::line(at, format!("`{key}` was expected")))
        };
        let gpu = value("gpu", 2)?.to_owned();
        let compute_capability = value("compute-capability", 3)?.to_owned();
        let cupti_version = value("cupti", 4)?
            .parse()
            .map_err(|_| ReadError::line(4, "the version is no number"))?;
        let (mut launches, mut names) = (Vec::new(), Names::default());
        let mut pid = None;
        let mut ended = false;
        for (line, number) in lines {
            let whole = line.strip_suffix('\n').filter(|_| !ended);
            let line = whole.ok_or_else(|| {
                ReadError::line(number, "the file is cut or goes on after its end")
            })?;
            if let Some(process) = line.strip_prefix("process ") {
                let process = process.parse();
                pid = Some(process.map_err(|_| ReadError::line(number, "no process"))?);
            } else if let Some(count) = line.strip_prefix("end ") {
                if count.parse() != Ok(launches.len()) {
                    let found = launches.len();
                    let problem = format!("{found} launches, not {count}");
                    return Err(ReadError::line(number, problem));
                }
                ended = true;
            } else {
                let kernel = KernelRecord::parse(line, &mut names);
                let kernel = kernel.map_err(|problem| ReadError::line(number, problem))?;
                let pid = pid.ok_or_else(|| ReadError::line(number, "a launch of no process"))?;
                if launches.len() == MOST_LAUNCHES {
                    let problem = format!("more than {MOST_LAUNCHES} launches of kernels");
                    return Err(ReadError::line(number, problem));
                }
                launches.push((pid, kernel));
            }
        }
        if !ended {
            return Err(ReadError::line(0, "the file has no end"));
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
    if !name.starts_with("_Z") {
        return None;
    }
    cpp_demangle::Symbol::new(name).ok()?.demangle().ok()
}

/// Reads a capture file of kernel records.
///
/// # Errors
/// [`ReadError::Line`], with the line.
pub fn read(bytes: &[u8]) -> Result<Recording, ReadError> {
    let capture = KernelCapture::parse(bytes)?;
    let capability = capture.compute_capability.split_once('.');
    let compute_capability =
        capability.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let (major, minor) = compute_capability.ok_or_else(|| {
        let problem = format!("no compute capability: {:?}", capture.compute_capability);
        ReadError::line(3, problem)
    })?;
    // The values of a launch take the place of the missing ones.
    let all = [
        (Role::DeviceName, Value::Text(capture.gpu.into()), ""),
        (Role::ComputeCapabilityMajor, Value::Integer(major), ""),
        (Role::ComputeCapabilityMinor, Value::Integer(minor), ""),
        (Role::Duration, Value::Missing, "ns"),
        (Role::RegistersPerThread, Value::Missing, "register/thread"),
        (Role::DynamicSharedBytes, Value::Missing, "byte/block"),
    ];
    let all = Metrics::from_iter(all.map(|(role, value, unit)| {
        let unit = Unit::named(unit);
        (Arc::from(role.counter()), Measurement { value, unit })
    }));
    let metrics = |kernel: &KernelRecord| {
        let duration = kernel.duration_ns().map_or(Value::Missing, Value::Integer);
        let mut metrics = all.clone();
        for (role, value) in [
            (Role::Duration, duration),
            (Role::RegistersPerThread, Value::Integer(kernel.registers)),
            (
                Role::DynamicSharedBytes,
                Value::Integer(kernel.dynamic_shared),
            ),
        ] {
            if let Some(measurement) = metrics.get_mut(role.counter()) {
                measurement.value = value;
            }
        }
        metrics
    };
    let mut kernels: HashMap<Arc<str>, Arc<Kernel>> = HashMap::new();
    let launch = |(pid, kernel): (u32, KernelRecord)| Launch {
        kind: ResultKind::Kernel,
        metrics: metrics(&kernel),
        kernel: Arc::clone(kernels.entry(kernel.name).or_insert_with_key(|name| {
            Arc::new(Kernel {
                function: base_name(name),
                demangled: demangled(name),
                mangled: Some(name.to_string()),
            })
        })),
        grid: kernel.grid,
        block: kernel.block,
        process_id: Some(pid),
        device: Some(kernel.device),
        context: Some(kernel.context),
        stream: Some(kernel.stream),
        clock_locked: None,
        compute_capability,
        labels: Vec::new(),
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

    /// What `cp_async` launches, as recorded on an H200, with lines at the end of that.
    fn process(turns: &str) -> ProcessRecords {
        let text = include_str!("../../tests/data/cupti/cp_async.process");
        let (launched, end) = text.split_at(text.rfind("end").unwrap());
        ProcessRecords::parse(&format!("{launched}{turns}{end}")).unwrap()
    }

    #[test]
    fn what_is_launched_before_the_first_turn_or_runs_between_turns_was_not_held() {
        let all = process("").kernels;
        let [second, third, last] = [&all[1], &all[2], &all[all.len() - 1]];
        let kept = |turns: String| process(&turns).kept_its_turns();
        assert!(!kept(String::new()));
        assert!(kept("turn 1 5 0\n".to_owned()));
        assert!(!kept("turn 3 5 0\n".to_owned()));
        let between = |from, until| kept(format!("turn 1 5 0\nidle {from}\nturn 3 {until} 0\n"));
        assert!(between(second.end_ns, third.start_ns));
        assert!(!between(second.end_ns - 1, third.start_ns));
        assert!(!between(second.end_ns, third.start_ns + 1));
        // Nothing runs after its last turn.
        assert!(kept(format!("turn 1 5 0\nidle {}\n", last.end_ns)));
        assert!(!kept(format!("turn 1 5 0\nidle {}\n", last.end_ns - 1)));
        // Later than it, and a second time.
        assert!(!kept(format!(
            "turn 1 5 0\nidle 6\nturn 2 7 0\nidle {}\n",
            third.start_ns
        )));
    }

    #[test]
    fn for_how_long_a_process_stood_still_is_no_part_of_its_span() {
        let (before, between) = (process(""), process("").kernels);
        let (from, until) = (between[1].end_ns, between[2].start_ns);
        let stands = |stood: u64| {
            let turns = format!("turn 1 5 9\nidle {from}\nturn 3 {until} {stood}\n");
            process(&turns).kernels
        };
        assert_eq!(stands(0), before.kernels);
        let shorter = stands(until - from);
        assert_eq!(shorter[1], between[1]);
        assert_eq!(shorter[2].start_ns, shorter[1].end_ns);
        for (one, other) in shorter.iter().zip(&between) {
            assert_eq!(one.duration_ns(), other.duration_ns());
        }
    }

    #[test]
    fn a_turn_without_its_numbers_is_damage() {
        for line in [
            "turn 1", "turn 1 2", "turn 1 2 x", "idle", "idle x", "idle 1 2",
        ] {
            let text = format!("process 1 cupti 130001\n{line}\nend 0 0\n");
            let damaged = ProcessRecords::parse(&text).unwrap_err();
            assert!(
                matches!(damaged, Incomplete::Damaged { line: 2, .. }),
                "{line}"
            );
        }
    }
}
