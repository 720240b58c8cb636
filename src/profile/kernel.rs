//! One kernel of a profile, and the samples of its metrics.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::binary::{LaunchShape, StaticMetric};
use crate::statistics::Samples;
use crate::terms::Phase;

/// What an alias stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricIdentity {
    /// The counter.
    pub counter: String,
    /// Its unit; `None` where it is not known.
    pub unit: Option<String>,
    /// Which capture measures it.
    pub phase: Phase,
}

impl MetricIdentity {
    /// Of a metric of compiled code.
    pub fn of_static(metric: &StaticMetric) -> MetricIdentity {
        MetricIdentity {
            counter: metric.counter(),
            unit: Some(metric.unit.to_owned()),
            phase: Phase::Counting,
        }
    }
}

/// One kernel at one grid and block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelProfile {
    /// The function's name, for people.
    pub name: String,
    /// The linker's name; CSV files lack it.
    pub mangled: Option<String>,
    /// The signature as the report spells it.
    pub demangled: Option<String>,
    /// Blocks in x, y, z; zeros on the static tier, where nothing is launched.
    pub grid: [u64; 3],
    /// Threads a block in x, y, z; zeros likewise.
    pub block: [u64; 3],
    /// Dynamic shared memory of a block in its launches, in bytes: each size once, the smallest first.
    /// Empty where a launch does not show it, and on the static tier.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dynamic_shared_bytes: Vec<u32>,
    /// Its machine code, on the static tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// By alias.
    pub metrics: BTreeMap<String, Series>,
}

/// What identifies and summarizes a kernel's machine code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    /// sha256 of the kernel's `.text`.
    pub text_sha256: String,
    /// Instructions by opcode with its modifiers; `None` where there was no disassembler.
    pub opcodes: Option<BTreeMap<String, u32>>,
}

/// The samples of one metric of one kernel, and what they come to, in the counter's unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The value that is judged, see [`Samples::value`]; absent where a launch has none.
    pub value: Option<f64>,
    /// One list a profiler process, one entry a launch, in launch order; `null` is a launch
    /// without a value.
    pub samples: Vec<Vec<Option<f64>>>,
}

impl KernelProfile {
    /// What identifies the kernel's code wherever it is compiled: the mangled name, or the best the
    /// file had.
    pub fn identity(&self) -> Cow<'_, str> {
        match &self.mangled {
            Some(mangled) => ncu_report::placeless(mangled),
            None => Cow::Borrowed(self.demangled.as_deref().unwrap_or(&self.name)),
        }
    }

    /// The hash of its machine code, on the static tier.
    pub fn text_sha256(&self) -> Option<&str> {
        self.code.as_ref().map(|code| code.text_sha256.as_str())
    }

    /// What its launches were seen to have; none on the static tier.
    pub fn launch_shapes(&self) -> Vec<LaunchShape> {
        let threads = self.block.iter().copied().fold(1, u64::saturating_mul);
        if threads == 0 {
            return Vec::new();
        }
        let shape = |dynamic_shared_bytes| LaunchShape {
            dynamic_shared_bytes,
            threads: u32::try_from(threads).ok(),
        };
        match self.dynamic_shared_bytes.as_slice() {
            [] => vec![shape(None)],
            sizes => sizes.iter().map(|bytes| shape(Some(*bytes))).collect(),
        }
    }
}

impl Series {
    /// Of a value that was not sampled.
    pub(crate) fn of_one(value: f64) -> Series {
        Series::new(vec![vec![Some(value)]], &[None])
    }

    /// Of samples as the captures gave them; `machines` names the GPU of each process, where it is
    /// known. Processes of which it is not known count as those of one machine.
    pub fn new(samples: Vec<Vec<Option<f64>>>, machines: &[Option<&str>]) -> Series {
        let mut series = Series {
            value: None,
            samples,
        };
        if let Some(samples) = series.grouped(machines) {
            series.value = Some(samples.value()).filter(|value| value.is_finite());
        }
        series
    }

    /// The samples by machine, in the order in which the machines first appear; `None` where any
    /// launch has no value, or there is none.
    pub fn grouped(&self, machines: &[Option<&str>]) -> Option<Samples> {
        let mut places: BTreeMap<Option<&str>, usize> = BTreeMap::new();
        let mut grouped: Vec<Vec<Vec<f64>>> = Vec::new();
        for (index, process) in self.samples.iter().enumerate() {
            // A process in which this kernel was not launched has no sample of it.
            if process.is_empty() {
                continue;
            }
            let launches: Vec<f64> = process.iter().copied().collect::<Option<_>>()?;
            let name = machines.get(index).copied().flatten();
            let at = *places.entry(name).or_insert_with(|| {
                grouped.push(Vec::new());
                grouped.len() - 1
            });
            grouped[at].push(launches);
        }
        Samples::new(grouped)
    }

    /// Launches in all processes, with or without a value.
    pub fn launch_count(&self) -> usize {
        self.samples.iter().map(Vec::len).sum()
    }
}
