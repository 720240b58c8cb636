//! Launches of which only the times are known, as the tiers below the counters measure them.
//!
//! Their readers name each value by what it is. The conversion to a [`Recording`] here is the only
//! place that puts such a value under the name of ncu's counter, which is that of its [`Role`]:
//! after it a profile is derived in the same way on every tier, and a baseline keeps the same
//! names. A role that a tier does not measure is absent, and never zero.

use std::collections::BTreeMap;
use std::sync::Arc;

use ncu_report::{Kernel, Launch, Measurement, Metrics, Recording, ResultKind, Unit, Value};

use crate::metric::Role;

/// The launches of one capture of a tier below the counters, and the GPU that they ran on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TimedLaunches {
    /// Name of the GPU model.
    pub gpu: String,
    /// Major and minor compute capability.
    pub compute_capability: (u64, u64),
    /// What measured them, with its version.
    pub measured_by: String,
    /// In the order in which they ran.
    pub launches: Vec<TimedLaunch>,
}

/// One launch of one kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TimedLaunch {
    /// Which kernel.
    pub kernel: Kernel,
    /// Blocks in x, y, z; zeros where it is not known.
    pub grid: [u64; 3],
    /// Threads a block in x, y, z; zeros where it is not known.
    pub block: [u64; 3],
    pub process_id: Option<u32>,
    pub device: Option<u32>,
    pub context: Option<u32>,
    pub stream: Option<u32>,
    /// `None` where its beginning or its end is not known.
    pub duration_ns: Option<Value>,
    pub registers_per_thread: Option<u64>,
    /// Dynamic shared memory of a block, in bytes.
    pub dynamic_shared: Option<u64>,
}

/// Bytes that the launches of one file may take together, and about what one takes beside its name.
const MOST_MEMORY: usize = 48 << 20;
const LAUNCH: usize = 1024;

/// Refuses more launches than a bounded memory has room for: a file states one in two bytes.
pub(super) fn fits(launches: usize, name: usize) -> Result<(), String> {
    let most = MOST_MEMORY / name.saturating_mul(2).saturating_add(LAUNCH);
    match launches > most {
        true => Err(format!(
            "{launches} launches of a kernel with a name of {name} bytes; at most {most} are read"
        )),
        false => Ok(()),
    }
}

impl From<TimedLaunches> for Recording {
    /// The same launches with each value under the counter of its role.
    fn from(times: TimedLaunches) -> Recording {
        let (major, minor) = times.compute_capability;
        let of_device = [
            (Role::DeviceName, Value::Text(times.gpu.into())),
            (Role::ComputeCapabilityMajor, Value::Integer(major)),
            (Role::ComputeCapabilityMinor, Value::Integer(minor)),
        ];
        let launch = |launch: TimedLaunch| {
            let duration = launch.duration_ns.unwrap_or(Value::Missing);
            let of_launch = [
                (
                    Role::RegistersPerThread,
                    launch.registers_per_thread,
                    "register/thread",
                ),
                (
                    Role::DynamicSharedBytes,
                    launch.dynamic_shared,
                    "byte/block",
                ),
            ];
            let of_launch = of_launch.into_iter().filter_map(|(role, number, unit)| {
                Some((role, Value::Integer(number?), Unit::named(unit)))
            });
            let values = of_device
                .iter()
                .cloned()
                .map(|(role, value)| (role, value, Unit::NONE))
                .chain([(Role::Duration, duration, Unit::named("ns"))])
                .chain(of_launch);
            let metrics: BTreeMap<Arc<str>, Measurement> = values
                .map(|(role, value, unit)| (role.counter().into(), Measurement { value, unit }))
                .collect();
            Launch {
                kind: ResultKind::Kernel,
                kernel: launch.kernel,
                grid: launch.grid,
                block: launch.block,
                process_id: launch.process_id,
                device: launch.device,
                context: launch.context,
                stream: launch.stream,
                clock_locked: None,
                compute_capability: Some((major, minor)),
                metrics: Metrics::from(metrics),
                labels: Vec::new(),
                source: None,
            }
        };
        Recording {
            launches: times.launches.into_iter().map(launch).collect(),
            profiler_version: Some(times.measured_by),
            ..Recording::default()
        }
    }
}
