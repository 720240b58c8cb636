//! The parts of a metric's name: `dram__bytes_read.sum.per_second` is the base metric
//! `dram__bytes_read`, the roll-up `.sum` and `.per_second`. NVIDIA documents them in the Nsight
//! Compute Profiling Guide, "Metrics Structure".

use memchr::memchr;

use super::table::Kind;

/// How the values of the units of a chip become one value.
pub(super) const ROLLUPS: &[&str] = &[".avg", ".max", ".min", ".sum"];

/// What may follow the roll-up of a counter.
const COUNTER_SUFFIXES: &[&str] = &[
    "", ".pct_of_peak_sustained_active", ".pct_of_peak_sustained_elapsed",
    ".pct_of_peak_sustained_frame", ".pct_of_peak_sustained_region", ".peak_sustained",
    ".peak_sustained_active", ".peak_sustained_active.per_second", ".peak_sustained_elapsed",
    ".peak_sustained_elapsed.per_second", ".peak_sustained_frame",
    ".peak_sustained_frame.per_second", ".peak_sustained_region",
    ".peak_sustained_region.per_second", ".per_cycle_active", ".per_cycle_elapsed",
    ".per_cycle_in_frame", ".per_cycle_in_region", ".per_second",
];

/// What may follow the roll-up of a throughput.
const THROUGHPUT_SUFFIXES: &[&str] = &[
    ".pct_of_peak_sustained_active", ".pct_of_peak_sustained_elapsed",
    ".pct_of_peak_sustained_frame", ".pct_of_peak_sustained_region",
];

/// The suffixes of a ratio, which has no roll-up.
const RATIO_SUFFIXES: &[&str] = &[".max_rate", ".pct", ".ratio"];

/// The base metric and the suffix. Dots before the double underscore belong to the name, as in
/// `FBSP.TriageCompute.dramc__throughput.avg`.
pub(super) fn split(metric: &str) -> (&str, &str) {
    let bytes = metric.as_bytes();
    let from = bytes.windows(2).position(|two| two == b"__").unwrap_or(0);
    match memchr(b'.', &bytes[from..]) {
        Some(dot) => metric.split_at(from + dot),
        None => (metric, ""),
    }
}

/// What follows the roll-up; `None` where the suffix begins with none.
pub(super) fn after_rollup(suffix: &str) -> Option<&str> {
    ROLLUPS
        .iter()
        .find_map(|rollup| suffix.strip_prefix(rollup))
}

/// The roll-ups of metrics of this type, and what may follow them.
pub(super) fn parts(kind: Kind) -> [&'static [&'static str]; 2] {
    match kind {
        Kind::Counter => [ROLLUPS, COUNTER_SUFFIXES],
        Kind::Throughput => [ROLLUPS, THROUGHPUT_SUFFIXES],
        Kind::Ratio => [&[""], RATIO_SUFFIXES],
    }
}

/// Whether metrics of this type have the suffix.
pub(super) fn has_suffix(kind: Kind, suffix: &str) -> bool {
    let [rollups, rests] = parts(kind);
    let mut behind = rollups
        .iter()
        .filter_map(|rollup| suffix.strip_prefix(rollup));
    behind.any(|rest| rests.contains(&rest))
}

/// Whether values with this suffix are percentages.
pub(super) fn is_percentage(suffix: &str) -> bool {
    let rest = after_rollup(suffix).unwrap_or(suffix);
    suffix == ".pct" || rest.starts_with(".pct_of_peak_sustained_")
}
