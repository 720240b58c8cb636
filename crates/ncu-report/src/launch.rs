//! Launches: what both readers produce.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::metrics::Metrics;
use super::report::SourceCounters;
use super::rounding::Rounding;
use crate::counter::{Chip, Unit};

/// Everything one `.ncu-rep` file or one CSV holds, in file order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// The profiled launches in the order in which they ran.
    pub launches: Vec<Launch>,
    /// Version of the profiler that wrote the recording, as it spells it.
    pub profiler_version: Option<String>,
    /// The profiler's command line, as one string.
    pub command_line: Option<String>,
    /// When the session began, seconds since the Unix epoch.
    pub created_unix_s: Option<u64>,
    /// Version of the report format that the file states; CSV pages have none. Another one than
    /// [`KNOWN_FORMAT_VERSION`](super::report::KNOWN_FORMAT_VERSION) is decoded all the same.
    pub format_version: Option<u64>,
    /// How far the printed numbers may lie from the measured ones; exact for a report.
    pub rounding: Rounding,
}

/// What a result of the profiler stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// One launch of one kernel.
    Kernel,
    /// One launch of a CUDA graph, profiled as a whole.
    Graph,
    /// A range between two marks.
    Range,
    /// A command list.
    CommandList,
}

/// The names of a kernel. Each reader spells the demangled name in its own way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// The function name without parameters or template arguments.
    pub function: String,
    /// The linker's name; CSV pages do not hold it.
    pub mangled: Option<String>,
    /// The signature as the file spells it.
    pub demangled: Option<String>,
}

/// One profiled launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// What kind of result this is.
    pub kind: ResultKind,
    /// The names of the kernel.
    pub kernel: Kernel,
    /// Blocks in x, y, z.
    pub grid: [u64; 3],
    /// Threads a block in x, y, z.
    pub block: [u64; 3],
    /// Identifier of the process that launched.
    pub process_id: Option<u32>,
    /// Ordinal of the device within the process.
    pub device: Option<u32>,
    /// CUDA context.
    pub context: Option<u32>,
    /// CUDA stream.
    pub stream: Option<u32>,
    /// Whether the profiler locked the clocks to base; `None` where the file does not say.
    pub clock_locked: Option<bool>,
    /// Major and minor compute capability of the device.
    pub compute_capability: Option<(u64, u64)>,
    /// Counter name to value.
    pub metrics: Metrics,
    /// Rows of the details page that name a metric by its label only. Shown, never gated.
    pub labels: Vec<Label>,
    /// What was counted and sampled of single instructions; only reports hold it.
    pub source: Option<Arc<SourceCounters>>,
}

impl Launch {
    /// The value of a counter, if it is there and a number.
    pub fn number(&self, counter: &str) -> Option<f64> {
        self.metrics.get(counter)?.value.number()
    }

    /// Whether both are launches of the same kernel with the same grid and block.
    pub fn same_kernel(&self, other: &Launch) -> bool {
        self.kernel == other.kernel && self.grid == other.grid && self.block == other.block
    }

    /// The chip that the launch ran on.
    pub fn chip(&self) -> Chip {
        match self.compute_capability {
            Some((major, minor)) => Chip::from_compute_capability(major, minor),
            None => Chip::Other,
        }
    }
}

/// A row of a section on the details page, which carries a label instead of a counter name.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// The section, such as `GPU Speed Of Light Throughput`.
    pub section: String,
    /// The label, such as `Duration`.
    pub name: String,
    /// Value and unit.
    pub measurement: Measurement,
}

/// A value with its unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The value.
    pub value: Value,
    /// Its unit.
    pub unit: Unit,
}

/// A counter's value. Missing is a state, never a number.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Integer(u64),
    /// A finite floating-point number.
    Float(f64),
    /// A text, such as the name of the device.
    Text(Text),
    /// No scalar: an empty cell, `no data`, `n/a`, or a number that is not finite.
    Missing,
}

/// A text that launches share. One word, so that it makes no value larger than a number does.
#[derive(Clone, PartialEq, Eq)]
pub struct Text(Arc<Box<str>>);

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text(Arc::new(text.into()))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(Arc::new(text.into()))
    }
}

impl Value {
    /// The number, if the value is one. Integers above 2^53 are rounded.
    pub fn number(&self) -> Option<f64> {
        match *self {
            Value::Integer(number) => Some(number as f64),
            Value::Float(number) if number.is_finite() => Some(number),
            Value::Float(_) | Value::Text(_) | Value::Missing => None,
        }
    }

    /// The text, if the value is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}
