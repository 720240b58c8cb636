//! The unit of a metric.
//!
//! A report does not store units. They follow from the unit of the base metric and from the
//! suffix.

use super::chip::Chip;
use super::suffix::{after_rollup, is_percentage, split};
use super::table::{Base, Kind, find_base, unit_of_ncu_own};
use super::unit::Unit;

/// Families of ncu's own names that have no unit.
const PLAIN_FAMILIES: &[&str] = &["device__attribute_", "nvlink__", "numa__", "c2clink__"];

/// Families whose unit differs between reports of one version, so that the name does not decide
/// it.
const FAMILIES_WITHOUT_A_RULE: &[&str] = &["breakdown:", "derived_", "group:", "sass__"];

/// The unit in which a report stores a metric, from the metric's full name.
///
/// The unit is [`Unit::Unknown`] where the name does not decide it. On a chip without a table,
/// only ncu's own metrics and the percentages have a unit.
///
/// ```
/// use ncu_report::{Chip, unit_of};
///
/// let unit = unit_of(Chip::Gh100, "dram__bytes_read.sum.per_second");
/// assert_eq!(unit.symbol(), Some("byte/s"));
/// assert_eq!(unit_of(Chip::Gh100, "no__such_metric.sum").symbol(), None);
/// ```
pub fn unit_of(chip: Chip, metric: &str) -> Unit {
    let in_family = |families: &[&str]| families.iter().any(|prefix| metric.starts_with(prefix));
    if in_family(FAMILIES_WITHOUT_A_RULE) {
        return Unit::Unknown;
    }
    if in_family(PLAIN_FAMILIES) {
        return Unit::NONE;
    }
    let (name, suffix) = split(metric);
    if let Some(base) = find_base(chip, name) {
        return suffixed(name, base, suffix);
    }
    match unit_of_ncu_own(metric) {
        Some("?") => Unit::Unknown,
        Some(unit) => Unit::named(unit),
        None if is_percentage(suffix) => Unit::Known(&"%"),
        None => Unit::Unknown,
    }
}

/// The unit of a base metric with a suffix.
fn suffixed(name: &str, base: Base, suffix: &str) -> Unit {
    if is_percentage(suffix) || base.kind == Kind::Throughput {
        return Unit::Known(&"%");
    }
    if base.kind == Kind::Ratio {
        return match suffix {
            ".ratio" | ".max_rate" => Unit::named(base.unit),
            _ => Unit::Unknown,
        };
    }
    match after_rollup(suffix).unwrap_or(suffix) {
        "" => Unit::named(base.unit),
        _ if base.unit.is_empty() => Unit::NONE,
        rest if rest == ".peak_sustained" || rest.starts_with(".per_cycle_") => {
            per_cycle(name, base.unit)
        }
        rest if rest.ends_with(".per_second") => match base.unit {
            _ if accumulates(name) => Unit::Unknown,
            "cycle" => Unit::Known(&"hz"),
            unit => Unit::per(unit, "s"),
        },
        _ => Unit::Unknown,
    }
}

/// Whether the counter adds up a level in each cycle (such as the warps in flight): its true unit
/// is a product with cycles.
fn accumulates(name: &str) -> bool {
    [
        "warps_active",
        "warps_eligible",
        "warps_inactive",
        "warps_issue_stalled",
        "ctas_active",
    ]
    .iter()
    .any(|level| name.contains(level))
}

fn per_cycle(name: &str, unit: &'static str) -> Unit {
    match unit {
        "cycle" => Unit::NONE,
        // NVIDIA's reader gives these two a plain `warp`. For the other levels there is no
        // recording.
        "warp" if name.contains("warps_active") || name.contains("warps_eligible") => {
            Unit::Known(&"warp")
        }
        _ if accumulates(name) => Unit::Unknown,
        _ => Unit::per(unit, "cycle"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::{bases, ncu_own};
    use super::*;

    #[test]
    fn every_counter_has_a_unit_and_a_rate() {
        for (name, base) in bases(Chip::Gh100) {
            assert_eq!(Unit::named(base.unit).symbol(), Some(base.unit));
            let is_plain = base.kind == Kind::Counter && !base.unit.is_empty();
            if is_plain && !accumulates(name) {
                for suffix in [".sum.per_second", ".sum.per_cycle_active"] {
                    let unit = suffixed(name, base, suffix);
                    assert_ne!(unit, Unit::Unknown, "{name}{suffix}");
                }
            }
        }
    }

    #[test]
    fn every_unit_of_ncus_own_names_is_a_known_one() {
        for name in ncu_own() {
            let unit = unit_of_ncu_own(name).unwrap();
            let known = unit_of(Chip::Gh100, name).symbol();
            assert_eq!(known, (unit != "?").then_some(unit), "{name}");
        }
    }

    #[test]
    fn a_unit_follows_from_name_and_suffix_or_stays_unknown() {
        let unit = |counter| unit_of(Chip::Gh100, counter);
        assert_eq!(unit("dram__bytes_read.sum"), Unit::Known(&"byte"));
        assert_eq!(
            unit("dram__bytes_read.sum.per_second"),
            Unit::Known(&"byte/s")
        );
        assert_eq!(
            unit("dram__bytes_read.sum.pct_of_peak_sustained_elapsed"),
            Unit::Known(&"%")
        );
        assert_eq!(
            unit("dram__cycles_elapsed.avg.per_second"),
            Unit::Known(&"hz")
        );
        assert_eq!(
            unit("sm__warps_active.avg.per_cycle_active"),
            Unit::Known(&"warp")
        );
        assert_eq!(unit("sm__ctas_active.avg.per_cycle_active"), Unit::Unknown);
        assert_eq!(unit("no__such_metric.sum"), Unit::Unknown);
        assert_eq!(
            unit("derived__l1tex__lsu_writeback_bytes_mem_lgds.sum.per_second"),
            Unit::Unknown
        );
        assert_eq!(unit_of(Chip::Other, "dram__bytes_read.sum"), Unit::Unknown);
        assert_eq!(
            unit_of(
                Chip::Other,
                "dram__throughput.avg.pct_of_peak_sustained_elapsed"
            ),
            Unit::Known(&"%")
        );
        assert_eq!(
            unit_of(Chip::Other, "launch__registers_per_thread"),
            Unit::Known(&"register/thread")
        );
    }
}
