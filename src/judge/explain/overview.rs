//! The kernels of one measured program: what each takes, and which unit of the GPU it is nearest to
//! the peak of.

use serde::Serialize;

use crate::metric::Role;
use crate::profile::{KernelProfile, Profile};
use crate::terms::Phase;

/// From this share of a unit's peak on, in percent, the unit is called the bound.
const BOUND: f64 = 80.0;
/// Below this share of every unit's peak, in percent, no unit is near its peak.
const FAR: f64 = 60.0;
/// The units whose share of the peak is measured, by what people call them.
const UNITS: [(Role, &str, &str); 4] = [
    (Role::DramThroughput, "DRAM", "memory-bound"),
    (Role::L2Throughput, "L2", "bound by the L2 cache"),
    (
        Role::TensorActive,
        "tensor pipe",
        "bound by the tensor pipe",
    ),
    (Role::SmThroughput, "SM", "compute-bound"),
];

/// One kernel at one grid and block.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelOverview {
    /// Name of its function, with the signature where several kernels share the name.
    pub kernel: String,
    /// The name alone, as the profiler's filter takes it.
    #[serde(skip)]
    pub function: String,
    /// Blocks in x, y, z.
    pub grid: [u64; 3],
    /// Threads a block in x, y, z.
    pub block: [u64; 3],
    /// Launches that were measured, in all processes.
    pub launches: usize,
    /// Share of the time of all measured launches, in percent.
    pub time_percent: Option<f64>,
    /// Time of a launch, in ns.
    pub duration_ns: Option<f64>,
    /// Share of the time in which a multiprocessor had work, in percent.
    pub sm_active_percent: Option<f64>,
    /// Share of the tensor pipe's peak, in percent.
    pub tensor_percent: Option<f64>,
    /// Share of the DRAM's peak, in percent.
    pub dram_percent: Option<f64>,
    /// Registers of a thread.
    pub registers: Option<f64>,
    /// The measured unit that is nearest to its peak.
    pub bound: Option<Bound>,
}

/// How near a unit is to its peak.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// The unit.
    pub unit: &'static str,
    /// Share of its peak, in percent of the elapsed time.
    pub percent: f64,
    /// What that means, in words.
    pub words: String,
}

impl KernelOverview {
    /// The kernels of a measured profile, those that take most of the time first.
    pub fn all_of(profile: &Profile) -> Vec<KernelOverview> {
        let kernels = profile.kernels.iter();
        let mut kernels: Vec<KernelOverview> = kernels
            .map(|kernel| KernelOverview::of(profile, kernel))
            .collect();
        let time = |kernel: &KernelOverview| {
            let duration = kernel.duration_ns?;
            Some(duration * kernel.launches as f64)
        };
        let all: f64 = kernels.iter().filter_map(time).sum();
        let complete = kernels.iter().all(|kernel| kernel.duration_ns.is_some());
        for kernel in &mut kernels {
            let share = time(kernel).map(|time| 100.0 * time / all);
            kernel.time_percent = share.filter(|share| complete && share.is_finite());
        }
        kernels.sort_by(|a, b| {
            let share = |kernel: &KernelOverview| kernel.time_percent.unwrap_or(0.0);
            share(b).total_cmp(&share(a))
        });
        kernels
    }

    fn of(profile: &Profile, kernel: &KernelProfile) -> KernelOverview {
        let value = |role: Role| value(profile, kernel, role);
        KernelOverview {
            kernel: profile.label(kernel).to_owned(),
            function: kernel.name.clone(),
            grid: kernel.grid,
            block: kernel.block,
            launches: profile.launches_of(kernel, Phase::Timing),
            time_percent: None,
            duration_ns: value(Role::Duration),
            sm_active_percent: value(Role::SmActive),
            tensor_percent: value(Role::TensorActive),
            dram_percent: value(Role::DramThroughput),
            registers: value(Role::RegistersPerThread),
            bound: Bound::of(value),
        }
    }
}

impl Bound {
    /// The nearest of the units that were measured; `None` where none was.
    fn of(value: impl Fn(Role) -> Option<f64>) -> Option<Bound> {
        let shares = UNITS.iter();
        let shares = shares.filter_map(|(role, unit, bound)| Some((value(*role)?, *unit, *bound)));
        let (percent, unit, bound) = shares.max_by(|a, b| a.0.total_cmp(&b.0))?;
        let words = if percent >= BOUND {
            format!("{bound}: {unit} at {percent:.0} % of its peak")
        } else if percent >= FAR {
            format!("nearest to the peak of {unit}: {percent:.0} %")
        } else {
            format!(
                "no measured unit above {FAR:.0} % of its peak; the highest: {unit}, {percent:.0} %"
            )
        };
        Some(Bound {
            unit,
            percent,
            words,
        })
    }
}

/// The value of the metric with this role; `None` where it was not measured, or is no number.
fn value(profile: &Profile, kernel: &KernelProfile, role: Role) -> Option<f64> {
    let mut metrics = profile.identity.metrics.iter();
    let (alias, _) = metrics.find(|(_, metric)| Role::of(&metric.counter) == Some(role))?;
    let value = profile.samples(kernel, alias)?.value();
    Some(value).filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(dram: f64, tensor: f64) -> String {
        let value = |role| match role {
            Role::DramThroughput => Some(dram),
            Role::TensorActive => Some(tensor),
            _ => None,
        };
        Bound::of(value).unwrap().words
    }

    #[test]
    fn only_measured_units_bound_a_kernel() {
        assert_eq!(bound(91.2, 40.0), "memory-bound: DRAM at 91 % of its peak");
        assert_eq!(
            bound(30.0, 85.0),
            "bound by the tensor pipe: tensor pipe at 85 % of its peak"
        );
        assert_eq!(bound(70.0, 10.0), "nearest to the peak of DRAM: 70 %");
        assert_eq!(
            bound(12.0, 40.0),
            "no measured unit above 60 % of its peak; the highest: tensor pipe, 40 %"
        );
        assert_eq!(Bound::of(|_| None), None);
    }
}
