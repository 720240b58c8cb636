//! Whether a chip has a metric.

use super::chip::Chip;
use super::suffix::{has_suffix, split};
use super::table::unit_of_ncu_own;

/// Families of ncu's own names that the table does not list in full: sections and versions of ncu
/// add members.
const OPEN_FAMILIES: &str = "\
    breakdown: c2clink__ derived_ device__attribute_ group: numa__ nvlink__ \
    profiler__ sass__ smsp__pcsamp_";

/// Whether a chip has a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existence {
    /// The base metric is in the table, and metrics of its type have the suffix.
    ///
    /// The table does not state which counters have a peak rate. A `.pct_of_peak_…` of a counter
    /// without one is `Known`, and ncu measures it as `n/a`.
    Known,
    /// The chip does not have the metric. [`nearest`](super::nearest) may know which one was meant.
    Unknown,
    /// No table decides: the name belongs to an open family of ncu's own (`sass__`, `derived__`,
    /// `group:` …).
    NoTable,
}

/// Whether the chip has the metric with this full name, such as `dram__bytes_read.sum`.
///
/// ```
/// use ncu_report::{Chip, Existence, exists};
///
/// let h100 = Chip::named("gh100").unwrap();
/// assert_eq!(exists(h100, "dram__bytes_read.sum"), Existence::Known);
/// assert_eq!(exists(h100, "dram__bytes_raed.sum"), Existence::Unknown);
/// ```
pub fn exists(chip: Chip, metric: &str) -> Existence {
    if unit_of_ncu_own(metric).is_some() {
        return Existence::Known;
    }
    let (name, suffix) = split(metric);
    if let Some(base) = chip.base(name)
        && has_suffix(base.kind, suffix)
    {
        return Existence::Known;
    }
    let in_open_family = OPEN_FAMILIES
        .split_whitespace()
        .any(|prefix| metric.starts_with(prefix));
    if in_open_family {
        return Existence::NoTable;
    }
    Existence::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suffix_of_another_type_of_metric_does_not_exist() {
        let h100 = Chip::named("gh100").unwrap();
        let unknown = |counter| exists(h100, counter) == Existence::Unknown;
        assert_eq!(exists(h100, "dram__bytes_read.sum"), Existence::Known);
        assert_eq!(
            exists(h100, "launch__registers_per_thread"),
            Existence::Known
        );
        assert!(unknown("dram__bytes_read"));
        assert!(unknown("dram__bytes_read.ratio"));
        assert!(unknown("dram__bytes_read.sum.sum"));
        assert!(unknown("dram__throughput.avg"));
        assert!(unknown("smsp__warp_issue_stalled_gmma_per_warp_active.sum"));
        assert!(unknown("smsp__stall_memory_dependency.avg.pct"));
        assert!(unknown(""));
        assert_eq!(
            exists(h100, "sass__inst_executed_by_moonlight"),
            Existence::NoTable
        );
    }

    #[test]
    fn a_metric_of_another_chip_does_not_exist() {
        for (chip, reads) in [
            ("gv100", "dram__bytes_read.sum"),
            ("ad102", "dram__bytes_read.sum"),
            ("gb202", "dram__bytes_op_read.sum"),
        ] {
            let chip = Chip::named(chip).unwrap();
            for name in ["dram__bytes_read.sum", "dram__bytes_op_read.sum"] {
                assert_eq!(
                    exists(chip, name) == Existence::Known,
                    name == reads,
                    "{name}"
                );
            }
        }
    }
}
