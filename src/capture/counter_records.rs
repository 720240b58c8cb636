//! Counter records: what the injected library writes of each process whose launches CUPTI's range
//! profiler measures, and the capture file that is kept of the launches that were asked for.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use ncu_report::{
    Chip, Kernel, Launch, Measurement, Metrics, ReadError, Recording, ResultKind, Unit, Value,
    base_name, unit_of,
};

use super::file::{capability, fits};
use crate::metric::Role;

/// How a capture file begins; the number is its version.
pub const MAGIC: &[u8] = b"sparsek-gate counter records 1\n";

/// Most counters of one capture: each takes a value of each launch.
const MOST_COUNTERS: usize = 4096;
/// Written for a number that the driver did not say.
const UNKNOWN: &str = "?";
/// Bytes of a value in memory, with its place in a map.
const VALUE_BYTES: usize = 96;

/// One launch of one kernel with the values of its counters.
#[derive(Clone, Debug, PartialEq)]
pub struct CountedLaunch {
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
    /// Registers a thread; `None` where the driver did not say.
    pub registers: Option<u64>,
    /// Static shared memory of a block, in bytes; `None` likewise.
    pub static_shared: Option<u64>,
    /// Dynamic shared memory of a block, in bytes.
    pub dynamic_shared: u64,
    /// One a counter, in their order; finite.
    pub values: Vec<f64>,
    /// The linker's name.
    pub name: String,
}

/// What one process left.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessCounters {
    /// Its number.
    pub pid: u32,
    /// What `cuptiGetVersion` answers there.
    pub cupti_version: u32,
    /// CUPTI's name of the chip, and how often each launch was replayed; `None` where none was
    /// measured.
    pub session: Option<(String, u32)>,
    /// The counters, in the order of the values.
    pub counters: Vec<String>,
    /// Kernels that it launched and the list did not name.
    pub unlisted: Vec<String>,
    /// The launches that were measured, in their order.
    pub launches: Vec<CountedLaunch>,
    /// Launches of selected kernels, until the last that was asked for.
    pub selected: u64,
}

/// Why what a process left is no measurement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Uncounted {
    /// CUPTI or the driver refused something, or gave no value.
    #[error("{what}")]
    Failed {
        /// What CUPTI answered (`CUptiResult`), 0 where it did not refuse.
        status: u32,
        /// What went wrong.
        what: String,
    },
    /// The process ended before all was written.
    #[error(
        "the counters of process {pid} have no end: it was killed, or left before the last launch that is measured without running what is registered for its exit"
    )]
    Unfinished {
        /// Its number.
        pid: u32,
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

impl CountedLaunch {
    /// Of a line that begins with `k`, with so many values.
    fn parse(line: &str, counters: usize) -> Result<CountedLaunch, String> {
        let mut words = line.splitn(14 + counters, ' ');
        if words.next() != Some("k") {
            return Err(format!("a launch was expected, not {line:?}"));
        }
        fn read<'w, T: std::str::FromStr>(
            words: &mut impl Iterator<Item = &'w str>,
            what: &str,
        ) -> Result<T, String> {
            let word = words.next().ok_or_else(|| format!("{what} is missing"))?;
            word.parse()
                .map_err(|_| format!("{what} is no number: {word:?}"))
        }
        let words = &mut words;
        fn read_known<'w>(
            words: &mut impl Iterator<Item = &'w str>,
            what: &str,
        ) -> Result<Option<u64>, String> {
            let word: String = read(words, what)?;
            match word.as_str() {
                UNKNOWN => Ok(None),
                word => read(&mut std::iter::once(word), what).map(Some),
            }
        }
        let (device, context) = (read(words, "the device")?, read(words, "the context")?);
        let stream = read(words, "the stream")?;
        let mut size = |what: &str| -> Result<[u64; 3], String> {
            let size = [read(words, what)?, read(words, what)?, read(words, what)?];
            if size.contains(&0) {
                return Err(format!("{what} has no extent: {size:?}"));
            }
            Ok(size)
        };
        let (grid, block) = (size("the grid")?, size("the block")?);
        let registers = read_known(words, "the registers")?;
        let static_shared = read_known(words, "the static shared memory")?;
        let dynamic_shared = read(words, "the dynamic shared memory")?;
        let mut values = Vec::with_capacity(counters);
        for _ in 0..counters {
            let value: f64 = read(words, "a value")?;
            if !value.is_finite() {
                return Err(format!("a value is no number: {value}"));
            }
            values.push(value);
        }
        let name = words.next().unwrap_or_default().to_owned();
        if name.is_empty() {
            return Err("the kernel has no name".to_owned());
        }
        Ok(CountedLaunch {
            device,
            context,
            stream,
            grid,
            block,
            registers,
            static_shared,
            dynamic_shared,
            values,
            name,
        })
    }

    fn line(&self) -> String {
        let [gx, gy, gz] = self.grid;
        let [bx, by, bz] = self.block;
        let known = |value: Option<u64>| value.map_or(UNKNOWN.to_owned(), |v| v.to_string());
        let mut line = format!(
            "k {} {} {} {gx} {gy} {gz} {bx} {by} {bz} {} {} {}",
            self.device,
            self.context,
            self.stream,
            known(self.registers),
            known(self.static_shared),
            self.dynamic_shared
        );
        for value in &self.values {
            // The shortest text that is read back as the same number.
            let _ = write!(line, " {value:?}");
        }
        let _ = writeln!(line, " {}", self.name);
        line
    }

    /// Refuses more launches than a bounded memory has room for.
    fn fits(&self, launches: usize) -> Result<(), String> {
        fits(launches, self.name.len() + self.values.len() * VALUE_BYTES)
    }
}

impl ProcessCounters {
    /// Reads what the injected library wrote, see `injection/counters.rs`.
    ///
    /// # Errors
    /// [`Uncounted`]: nothing of a process is a measurement unless all of it is there.
    pub fn parse(text: &str) -> Result<ProcessCounters, Uncounted> {
        let damaged = |line: usize, problem: String| Uncounted::Damaged { line, problem };
        let mut lines = text.split_inclusive('\n').zip(1..);
        let first = lines.next().map_or("", |(line, _)| line.trim_end());
        let (pid, cupti_version) = first
            .strip_prefix("counters ")
            .and_then(|rest| rest.split_once(" cupti "))
            .and_then(|(pid, version)| Some((pid.parse().ok()?, version.parse().ok()?)))
            .ok_or_else(|| damaged(1, format!("{first:?} names no process")))?;
        let mut process = ProcessCounters {
            pid,
            cupti_version,
            session: None,
            counters: Vec::new(),
            unlisted: Vec::new(),
            launches: Vec::new(),
            selected: 0,
        };
        let mut ended = false;
        for (line, number) in lines {
            if ended {
                return Err(damaged(number, "something follows the end".to_owned()));
            }
            // What was written last may be cut anywhere.
            let Some(line) = line.strip_suffix('\n') else {
                return Err(Uncounted::Unfinished { pid });
            };
            ended = process.take(line).map_err(|why| match why {
                Taken::Failed { status, what } => Uncounted::Failed { status, what },
                Taken::Damaged(problem) => damaged(number, problem),
            })?;
        }
        match ended {
            true => Ok(process),
            false => Err(Uncounted::Unfinished { pid }),
        }
    }

    /// Takes one line; whether it is the last.
    fn take(&mut self, line: &str) -> Result<bool, Taken> {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        let unclear = || Taken::Damaged(format!("{line:?}"));
        match kind {
            "error" => {
                let (status, what) = rest.split_once(' ').ok_or_else(unclear)?;
                return Err(Taken::Failed {
                    status: status.parse().map_err(|_| unclear())?,
                    what: what.to_owned(),
                });
            }
            "u" => self.unlisted.push(rest.to_owned()),
            "n" if self.launches.is_empty() && self.counters.len() < MOST_COUNTERS => {
                self.counters.push(rest.to_owned());
            }
            "g" => {
                let (chip, passes) = rest.split_once(' ').ok_or_else(unclear)?;
                self.session = Some((chip.to_owned(), passes.parse().map_err(|_| unclear())?));
            }
            "k" => {
                let launch = CountedLaunch::parse(line, self.counters.len());
                let launch = launch.map_err(Taken::Damaged)?;
                launch
                    .fits(self.launches.len() + 1)
                    .map_err(Taken::Damaged)?;
                self.launches.push(launch);
            }
            "end" => {
                let counts = rest.split_once(' ').ok_or_else(unclear)?;
                let launches: usize = counts.0.parse().map_err(|_| unclear())?;
                self.selected = counts.1.parse().map_err(|_| unclear())?;
                if launches != self.launches.len() {
                    let found = self.launches.len();
                    let problem = format!("{found} launches where the end counts {launches}");
                    return Err(Taken::Damaged(problem));
                }
                return Ok(true);
            }
            _ => return Err(unclear()),
        }
        Ok(false)
    }
}

/// What is wrong with a line.
enum Taken {
    Failed { status: u32, what: String },
    Damaged(String),
}

/// The launches of one process that were asked for, and what they were measured with.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterCapture {
    /// Name of the GPU model.
    pub gpu: String,
    /// `major.minor`.
    pub compute_capability: String,
    /// Whether the caches were flushed before each launch, as ncu spells it.
    pub cache_control: String,
    /// What the process left.
    pub process: ProcessCounters,
}

impl CounterCapture {
    /// The capture file: [`MAGIC`], `gpu NAME`, `compute-capability MAJOR.MINOR`, `cache-control
    /// NAME`, then what the process left.
    pub fn text(&self) -> String {
        let process = &self.process;
        let mut text = String::from_utf8_lossy(MAGIC).into_owned();
        let _ = writeln!(text, "gpu {}", self.gpu);
        let _ = writeln!(text, "compute-capability {}", self.compute_capability);
        let _ = writeln!(text, "cache-control {}", self.cache_control);
        let (pid, version) = (process.pid, process.cupti_version);
        let _ = writeln!(text, "counters {pid} cupti {version}");
        if let Some((chip, passes)) = &process.session {
            let _ = writeln!(text, "g {chip} {passes}");
        }
        for counter in &process.counters {
            let _ = writeln!(text, "n {counter}");
        }
        for name in &process.unlisted {
            let _ = writeln!(text, "u {name}");
        }
        for launch in &process.launches {
            text.push_str(&launch.line());
        }
        let _ = writeln!(text, "end {} {}", process.launches.len(), process.selected);
        text
    }

    fn parse(bytes: &[u8]) -> Result<CounterCapture, ReadError> {
        let error = |line: u64, problem: String| ReadError::Records { line, problem };
        let text = bytes
            .strip_prefix(MAGIC)
            .and_then(|rest| std::str::from_utf8(rest).ok())
            .ok_or_else(|| error(1, "not a file of counter records".to_owned()))?;
        let mut rest = text;
        // The first line was the version.
        let mut value = |key: &str, at: u64| {
            let found = rest.split_once('\n').and_then(|(line, after)| {
                let value = line.strip_prefix(key)?.strip_prefix(' ')?;
                rest = after;
                Some(value.to_owned())
            });
            found.ok_or_else(|| error(at, format!("`{key}` was expected")))
        };
        let gpu = value("gpu", 2)?;
        let compute_capability = value("compute-capability", 3)?;
        let cache_control = value("cache-control", 4)?;
        let process = ProcessCounters::parse(rest).map_err(|why| match why {
            Uncounted::Damaged { line, problem } => error(line as u64 + 4, problem),
            other => error(0, other.to_string()),
        })?;
        Ok(CounterCapture {
            gpu,
            compute_capability,
            cache_control,
            process,
        })
    }
}

/// Reads a capture file of counter records.
///
/// # Errors
/// [`ReadError::Records`], with the line.
pub fn read(bytes: &[u8]) -> Result<Recording, ReadError> {
    let capture = CounterCapture::parse(bytes)?;
    let (major, minor) = capability(&capture.compute_capability)?;
    let process = capture.process;
    let chip = Chip::from_compute_capability(major, minor);
    // Values come in the base units, as those of a report do.
    let counters: Vec<(Arc<str>, Unit)> = process
        .counters
        .iter()
        .map(|counter| (counter.as_str().into(), unit_of(chip, counter)))
        .collect();
    let of_device = [
        (Role::DeviceName, Value::Text(capture.gpu.into())),
        (Role::ComputeCapabilityMajor, Value::Integer(major)),
        (Role::ComputeCapabilityMinor, Value::Integer(minor)),
    ];
    let launch = |launch: CountedLaunch| Launch {
        kind: ResultKind::Kernel,
        kernel: Kernel {
            function: base_name(&launch.name),
            mangled: Some(launch.name.clone()),
            demangled: None,
        },
        grid: launch.grid,
        block: launch.block,
        process_id: Some(process.pid),
        device: Some(launch.device),
        context: Some(launch.context),
        stream: Some(launch.stream),
        clock_locked: Some(false),
        compute_capability: Some((major, minor)),
        metrics: metrics(chip, &launch, &of_device, &counters),
        labels: Vec::new(),
        source: None,
    };
    Ok(Recording {
        launches: process.launches.into_iter().map(launch).collect(),
        profiler_version: Some(format!("CUPTI {}", process.cupti_version)),
        ..Recording::default()
    })
}

/// What is known of a launch, each under its counter's name.
fn metrics(
    chip: Option<Chip>,
    launch: &CountedLaunch,
    of_device: &[(Role, Value)],
    counters: &[(Arc<str>, Unit)],
) -> Metrics {
    let of_launch = [
        (Role::RegistersPerThread, launch.registers),
        (Role::StaticSharedBytes, launch.static_shared),
        (Role::DynamicSharedBytes, Some(launch.dynamic_shared)),
        (
            Role::ThreadsPerBlock,
            Some(launch.block.iter().copied().fold(1, u64::saturating_mul)),
        ),
    ];
    let known = of_device.iter().cloned().map(|(role, value)| {
        let unit = Unit::NONE;
        (Arc::from(role.counter()), Measurement { value, unit })
    });
    let of_launch = of_launch.into_iter().filter_map(|(role, number)| {
        let (value, unit) = (Value::Integer(number?), unit_of(chip, role.counter()));
        Some((Arc::from(role.counter()), Measurement { value, unit }))
    });
    let measured = counters
        .iter()
        .zip(&launch.values)
        .map(|((name, unit), value)| {
            let (value, unit) = (Value::Float(*value), *unit);
            (Arc::clone(name), Measurement { value, unit })
        });
    let all: BTreeMap<Arc<str>, Measurement> = known.chain(of_launch).chain(measured).collect();
    Metrics::from(all)
}
