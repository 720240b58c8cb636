//! The unit of a metric.
//!
//! A report does not store units. They follow from the unit of the base metric and from the
//! suffix.

use memchr::memrchr;

use super::chip::Chip;
use super::suffix::{after_rollup, is_percentage, split};
use super::table::{Base, Kind, unit_of_ncu_own};
use super::unit::Unit;

/// Families of ncu's own names that have no unit.
const PLAIN_FAMILIES: &[&str] = &["device__attribute_", "nvlink__", "numa__", "c2clink__"];

/// Part of the names of operations, whose rates have no unit, as those of other plain counts have.
const OPERATIONS: &str = "__ops_path_";

/// What stands before the name of a metric that was sampled over time.
const SAMPLED: &str = "pmsampling:";

/// The unit in which a report stores a metric, from the metric's full name. A few metrics have
/// another unit on another chip.
///
/// The unit is [`Unit::Unknown`] where the name does not decide it.
///
/// ```
/// use ncu_report::{Chip, unit_of};
///
/// let a100 = Chip::named("ga100");
/// let unit = unit_of(a100, "dram__bytes_read.sum.per_second");
/// assert_eq!(unit.symbol(), Some("byte/s"));
/// assert_eq!(unit_of(a100, "no__such_metric.sum").symbol(), None);
/// ```
pub fn unit_of(chip: Option<Chip>, metric: &str) -> Unit {
    if PLAIN_FAMILIES
        .iter()
        .any(|prefix| metric.starts_with(prefix))
    {
        return Unit::NONE;
    }
    let (name, suffix) = split(metric.strip_prefix(SAMPLED).unwrap_or(metric));
    // Most of ncu's own names have no suffix, and no base metric is found for them.
    if suffix.is_empty()
        && let Some(unit) = unit_of_ncu_own(metric)
    {
        return Unit::named(unit);
    }
    // How a metric is sampled (`FBSP.TriageCompute.`) differs between chips, and its unit does not.
    let sampled = || Chip::any_base(chip, &name[memrchr(b'.', name.as_bytes())? + 1..]);
    if let Some(base) = Chip::any_base(chip, name).or_else(sampled) {
        return suffixed(name, base, suffix);
    }
    match unit_of_ncu_own(metric).or_else(|| unit_of_ncu_own(unnumbered(metric))) {
        Some(unit) => Unit::named(unit),
        None if is_percentage(suffix) => Unit::Known(&"%"),
        None => Unit::Unknown,
    }
}

/// Of a metric that ncu numbers (`profiler__pmsampler_ctxsw_1`) the name that all of them have.
fn unnumbered(metric: &str) -> &str {
    let name = metric.trim_end_matches(|c: char| c.is_ascii_digit());
    name.strip_suffix('_').unwrap_or(metric)
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
        "" | ".peak_sustained_active" | ".peak_sustained_elapsed" => Unit::named(base.unit),
        _ if name.contains(OPERATIONS) => Unit::NONE,
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
        "warps_active", "warps_eligible", "warps_inactive", "warps_issue_stalled", "ctas_active",
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
    use super::super::table::ncu_own;
    use super::*;

    #[test]
    fn every_counter_has_a_unit_and_a_rate() {
        let chips = [
            "gv100", "tu102", "ga100", "ad102", "gh100", "gb100", "gb202", "gr100",
        ];
        let chips = chips.map(|chip| Chip::named(chip).unwrap());
        for (name, base) in chips.into_iter().flat_map(Chip::bases) {
            assert_eq!(Unit::named(base.unit).symbol(), Some(base.unit), "{name}");
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
            let known = unit_of(None, name).symbol();
            assert_eq!(known, (unit != "?").then_some(unit), "{name}");
        }
    }

    #[test]
    fn a_unit_follows_from_name_and_suffix_or_stays_unknown() {
        for (counter, expected) in [
            ("dram__bytes_read.sum", "byte"),
            ("dram__bytes_read.sum.per_second", "byte/s"),
            ("dram__bytes_read.sum.pct_of_peak_sustained_elapsed", "%"),
            ("dram__cycles_elapsed.avg.per_second", "hz"),
            ("sm__warps_active.avg.per_cycle_active", "warp"),
            ("sm__ctas_active.avg.per_cycle_active", "unknown"),
            ("no__such_metric.sum", "unknown"),
            ("group:memory__chart", "unknown"),
        ] {
            let unit = unit_of(Chip::named("gh100"), counter);
            assert_eq!(unit.symbol().unwrap_or("unknown"), expected, "{counter}");
        }
    }

    #[test]
    fn what_ncu_samples_and_numbers_has_a_unit_whatever_the_chip() {
        let table = "
launch__registers_per_thread | register/thread
dram__bytes_read.sum | byte
pmsampling:dramc__throughput.avg.pct_of_peak_sustained_elapsed | %
pmsampling:sm__inst_executed_realtime.avg.per_cycle_active | inst/cycle
FBPA.TriageA.dramc__read_throughput.avg.pct_of_peak_sustained_elapsed | %
TPC.TriageA.tpc__warps_active_realtime.avg.per_cycle_active | warp
profiler__pmsampler_ctxsw_3 |
sass__inst_executed_global_loads | inst
derived__avg_thread_executed | thread
";
        for row in table.trim().lines() {
            let (metric, unit) = row.split_once(" |").unwrap();
            let unit = unit.trim();
            assert_eq!(unit_of(None, metric).symbol(), Some(unit), "{metric}");
        }
    }
}
