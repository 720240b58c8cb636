//! The dynamic shared memory of launches, as a row of the report. That it changed is a finding about
//! the kernel (`launch-changed`), like another grid; the row shows the numbers, and judges nothing.

use super::metric::{Case, Comparison, Pair, Summary};
use crate::binary::static_metric;
use crate::config::Metric;
use crate::metric::{Direction, Role};
use crate::profile::KernelProfile;
use crate::verdict::Change;

/// The name of the row.
const NAME: &str = "dynamic_shared_bytes";

/// The row of a kernel; `None` where the launches of neither side show it, or a metric of the
/// configuration already does.
pub(in crate::judge) fn shared_memory(case: &Case<'_>, pair: Pair<'_>) -> Option<Comparison> {
    let counter = Role::DynamicSharedBytes.counter();
    let mut configured = case.variant.metrics.iter();
    if configured.any(|metric| metric.alias == NAME || metric.counter == counter) {
        return None;
    }
    let (was, is) = (largest(pair.reference), largest(pair.current));
    let reference = case.mode.reference();
    let why = match (was, is) {
        (None, None) => return None,
        (Some(_), Some(_)) => "recorded, not judged".to_owned(),
        (None, Some(_)) => format!("recorded only: the {reference} does not state it"),
        (Some(_), None) => "recorded only: the launches do not show it".to_owned(),
    };
    let (reference, current) = (was.map(Summary::of_one), is.map(Summary::of_one));
    let name = &pair.current.name;
    Some(Comparison {
        unit: static_metric(NAME).map(|metric| metric.unit.to_owned()),
        direction: Direction::Lower,
        change: was.zip(is).map(|(was, is)| Change::Absolute(is - was)),
        why,
        ..Comparison::new(
            &Metric::shown(NAME, counter),
            name,
            pair,
            reference,
            current,
        )
    })
}

/// The most that a launch of the kernel has, in bytes.
fn largest(kernel: &KernelProfile) -> Option<f64> {
    kernel.dynamic_shared_bytes.last().copied().map(f64::from)
}
