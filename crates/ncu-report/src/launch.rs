//! Launches of kernels, and the other results of ncu.

use std::sync::Arc;

use crate::metrics::Metrics;
use crate::value::Measurement;

/// The kind of a result of ncu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// One launch of one kernel.
    Kernel,
    /// One launch of a CUDA graph, profiled as a whole (`--graph-profiling graph`).
    Graph,
    /// A range between two marks (`--replay-mode range` or `app-range`).
    Range,
    /// A command list.
    CommandList,
}

/// The names of a kernel. Reports and CSV pages spell the demangled name differently.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// The function name without parameters and template arguments. For another kind of result:
    /// `graph`, `range` or `cmdlist`.
    pub function: String,
    /// The mangled name; CSV pages do not state it.
    pub mangled: Option<String>,
    /// The signature in the file's spelling; the report has none for some library kernels.
    pub demangled: Option<String>,
}

/// One profiled launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// The kind of the result.
    pub kind: ResultKind,
    /// The names of the kernel, which launches may share.
    pub kernel: Arc<Kernel>,
    /// Blocks in x, y, z; zeros where the file does not state them.
    pub grid: [u64; 3],
    /// Threads of a block in x, y, z; zeros where the file does not state them.
    pub block: [u64; 3],
    /// Identifier of the process that launched.
    pub process_id: Option<u32>,
    /// Ordinal of the device within the process.
    pub device: Option<u32>,
    /// Identifier of the CUDA context.
    pub context: Option<u32>,
    /// Identifier of the CUDA stream.
    pub stream: Option<u32>,
    /// Whether ncu locked the clocks to the base clock; `None` where the file does not state it.
    pub clock_locked: Option<bool>,
    /// Major and minor compute capability of the device.
    pub compute_capability: Option<(u64, u64)>,
    /// The metrics by their full names.
    pub metrics: Metrics,
    /// Rows of the details page that have a label instead of the name of a metric.
    pub labels: Vec<Label>,
}

impl Launch {
    /// The value of a metric in its base unit, if it is present and a number.
    pub fn number(&self, metric: &str) -> Option<f64> {
        self.metrics.get(metric)?.value.number()
    }
}

/// A row of a section on the details page. It has a label instead of the name of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// The section, such as `GPU Speed Of Light Throughput`.
    pub section: String,
    /// The label, such as `Duration`.
    pub name: String,
    /// Value and unit.
    pub measurement: Measurement,
}
