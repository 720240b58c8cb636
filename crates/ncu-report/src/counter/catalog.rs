//! Which counters a chip has, and the unit of each.
//!
//! `gh100.tsv` holds name, type and unit of each base counter, as
//! `ncu --query-metrics --chips gh100 --csv` (2025.3.1) lists them. `ncu_own.tsv` holds the names
//! that ncu computes itself and that no chip lists, with the unit that NVIDIA's reader gives them;
//! `?` marks a unit that is not a function of the name. Both are sorted bytewise and searched
//! where they lie.

use super::nearest;
use super::unit::Unit;

static GH100: &str = include_str!("gh100.tsv");
static NCU_OWN: &str = include_str!("ncu_own.tsv");

/// A GPU chip, as far as the counter tables tell chips apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Chip {
    /// GH100: H100, H200 and the GPU of GH200.
    Gh100,
    /// A chip whose counters are not listed here.
    Other,
}

impl Chip {
    /// The chip of a compute capability. 9.0 is GH100 and nothing else.
    pub fn from_compute_capability(major: u64, minor: u64) -> Chip {
        match (major, minor) {
            (9, 0) => Chip::Gh100,
            _ => Chip::Other,
        }
    }

    pub(super) fn table(self) -> Option<&'static str> {
        match self {
            Chip::Gh100 => Some(GH100),
            Chip::Other => None,
        }
    }
}

/// Whether a chip has a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Existence {
    /// The base counter is listed and its type has the suffix.
    ///
    /// The list does not say which counters have a peak rate, so a `.pct_of_peak_…` of a counter
    /// without one is `Known` and still comes back `n/a`.
    Known,
    /// The chip is listed and lacks the name.
    Unknown {
        /// The nearest full name that the chip has, if one is near.
        nearest: Option<String>,
    },
    /// No list says: the chip has no table, or the name belongs to an open family of ncu's own
    /// (`sass__`, `derived__`, `group:` ...).
    NoTable,
}

/// What a counter counts, which decides the suffixes it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Ratio,
    Throughput,
}

/// A base counter of a chip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base {
    pub(super) kind: Kind,
    pub(super) unit: &'static str,
}

pub(super) const ROLLUPS: &[&str] = &[".avg", ".max", ".min", ".sum"];

/// What may follow the roll-up of a counter (Nsight Compute Profiling Guide, "Metrics Structure").
pub(super) const COUNTER_SUFFIXES: &[&str] = &[
    "",
    ".pct_of_peak_sustained_active",
    ".pct_of_peak_sustained_elapsed",
    ".pct_of_peak_sustained_frame",
    ".pct_of_peak_sustained_region",
    ".peak_sustained",
    ".peak_sustained_active",
    ".peak_sustained_active.per_second",
    ".peak_sustained_elapsed",
    ".peak_sustained_elapsed.per_second",
    ".peak_sustained_frame",
    ".peak_sustained_frame.per_second",
    ".peak_sustained_region",
    ".peak_sustained_region.per_second",
    ".per_cycle_active",
    ".per_cycle_elapsed",
    ".per_cycle_in_frame",
    ".per_cycle_in_region",
    ".per_second",
];

pub(super) const THROUGHPUT_SUFFIXES: &[&str] = &[
    ".pct_of_peak_sustained_active",
    ".pct_of_peak_sustained_elapsed",
    ".pct_of_peak_sustained_frame",
    ".pct_of_peak_sustained_region",
];

pub(super) const RATIO_SUFFIXES: &[&str] = &[".max_rate", ".pct", ".ratio"];

/// Families of ncu's own names that have no unit, whichever member it is.
const PLAIN_FAMILIES: &[&str] = &["device__attribute_", "nvlink__", "numa__", "c2clink__"];

/// Families of ncu's own names whose members no list enumerates: sections and versions add to them.
const OPEN_FAMILIES: &[&str] = &[
    "breakdown:",
    "c2clink__",
    "derived_",
    "device__attribute_",
    "group:",
    "numa__",
    "nvlink__",
    "profiler__",
    "sass__",
    "smsp__pcsamp_",
];

/// Families whose unit differs between reports of one version, so that no name decides it.
const FAMILIES_WITHOUT_A_RULE: &[&str] = &["breakdown:", "derived_", "group:", "sass__"];

/// The unit of a counter's values in base units, from its full name.
///
/// On a chip without a table only ncu's own names and the percentages have a unit.
pub fn unit_of(chip: Chip, counter: &str) -> Unit {
    if in_family(FAMILIES_WITHOUT_A_RULE, counter) {
        return Unit::Unknown;
    }
    if in_family(PLAIN_FAMILIES, counter) {
        return Unit::NONE;
    }
    let (name, suffix) = split(counter);
    if let Some(base) = find_base(chip, name) {
        return suffixed(name, base, suffix);
    }
    match find(NCU_OWN, counter) {
        Some("?") => Unit::Unknown,
        Some(unit) => Unit::named(unit),
        None if is_percentage(suffix) => Unit::Known(&"%"),
        None => Unit::Unknown,
    }
}

/// Whether the chip has the counter, given by its full name (`dram__bytes_read.sum`).
pub fn exists(chip: Chip, counter: &str) -> Existence {
    if find(NCU_OWN, counter).is_some() {
        return Existence::Known;
    }
    let (name, suffix) = split(counter);
    if let Some(base) = find_base(chip, name)
        && has_suffix(base.kind, suffix)
    {
        return Existence::Known;
    }
    if chip.table().is_none() || in_family(OPEN_FAMILIES, counter) {
        return Existence::NoTable;
    }
    Existence::Unknown {
        nearest: nearest::name(chip, counter),
    }
}

/// The base counter and the rest. Dots before the double underscore belong to the name, as in
/// `FBSP.TriageCompute.dramc__throughput.avg`.
pub(super) fn split(counter: &str) -> (&str, &str) {
    let from = counter.find("__").unwrap_or(0);
    match counter.get(from..).and_then(|rest| rest.find('.')) {
        Some(dot) => counter.split_at(from + dot),
        None => (counter, ""),
    }
}

pub(super) fn has_suffix(kind: Kind, suffix: &str) -> bool {
    let after_rollup = || {
        ROLLUPS
            .iter()
            .find_map(|rollup| suffix.strip_prefix(rollup))
    };
    match kind {
        Kind::Counter => after_rollup().is_some_and(|rest| COUNTER_SUFFIXES.contains(&rest)),
        Kind::Throughput => after_rollup().is_some_and(|rest| THROUGHPUT_SUFFIXES.contains(&rest)),
        Kind::Ratio => RATIO_SUFFIXES.contains(&suffix),
    }
}

pub(super) fn find_base(chip: Chip, name: &str) -> Option<Base> {
    base_of_row(find(chip.table()?, name)?)
}

/// All base counters of a chip.
pub(super) fn bases(chip: Chip) -> impl Iterator<Item = (&'static str, Base)> {
    rows(chip.table().unwrap_or_default())
        .filter_map(|(name, rest)| Some((name, base_of_row(rest)?)))
}

/// All names of ncu's own that the list holds.
pub(super) fn ncu_own() -> impl Iterator<Item = &'static str> {
    rows(NCU_OWN).map(|(name, _)| name)
}

fn rows(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    table.lines().filter_map(|line| line.split_once('\t'))
}

fn base_of_row(rest: &'static str) -> Option<Base> {
    let (kind, unit) = rest.split_once('\t')?;
    let kind = match kind {
        "C" => Kind::Counter,
        "R" => Kind::Ratio,
        "T" => Kind::Throughput,
        _ => return None,
    };
    Some(Base { kind, unit })
}

fn in_family(prefixes: &[&str], counter: &str) -> bool {
    prefixes.iter().any(|prefix| counter.starts_with(prefix))
}

fn is_percentage(suffix: &str) -> bool {
    suffix == ".pct" || suffix.contains(".pct_of_peak_sustained_")
}

/// The unit of a base counter's submetric.
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
    let after_rollup = ROLLUPS
        .iter()
        .find_map(|rollup| suffix.strip_prefix(rollup))
        .unwrap_or(suffix);
    match after_rollup {
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

/// Whether the counter adds up a level in each cycle (warps in flight), so that its own unit is
/// really a product with cycles.
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
        // NVIDIA's reader was seen to give these two a plain `warp`; of the other levels nothing
        // was seen.
        "warp" if name.contains("warps_active") || name.contains("warps_eligible") => {
            Unit::Known(&"warp")
        }
        _ if accumulates(name) => Unit::Unknown,
        _ => Unit::per(unit, "cycle"),
    }
}

/// The rest of the row of `table` that begins with `name`, by binary search over the text.
fn find(table: &'static str, name: &str) -> Option<&'static str> {
    let bytes = table.as_bytes();
    let (mut low, mut high) = (0, bytes.len());
    // Both ends always stand at the start of a row (or the end of the text).
    while low < high {
        let middle = low + (high - low) / 2;
        let start = match bytes[low..middle].iter().rposition(|&byte| byte == b'\n') {
            Some(newline) => low + newline + 1,
            None => low,
        };
        let end = match bytes[start..high].iter().position(|&byte| byte == b'\n') {
            Some(newline) => start + newline,
            None => high,
        };
        let row = &bytes[start..end];
        let tab = row.iter().position(|&byte| byte == b'\t')?;
        match row[..tab].cmp(name.as_bytes()) {
            std::cmp::Ordering::Equal => return table.get(start + tab + 1..end),
            std::cmp::Ordering::Less => low = (end + 1).min(high),
            std::cmp::Ordering::Greater => high = start,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_tables_are_sorted_and_every_row_can_be_found() {
        for table in [GH100, NCU_OWN] {
            let names: Vec<_> = rows(table).map(|(name, _)| name).collect();
            assert!(names.windows(2).all(|pair| pair[0] < pair[1]));
            assert_eq!(names.len(), table.lines().count());
            for (name, rest) in rows(table) {
                assert_eq!(find(table, name), Some(rest), "{name}");
            }
        }
        assert_eq!(bases(Chip::Gh100).count(), 3650);
    }

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
        for row in NCU_OWN.lines() {
            let (name, unit) = row.split_once('\t').unwrap();
            let known = unit_of(Chip::Gh100, name).symbol();
            assert_eq!(known, (unit != "?").then_some(unit), "{name}");
        }
    }

    #[test]
    fn a_name_beside_the_rows_is_not_found() {
        for name in [
            "",
            "\n",
            "a",
            "zzz",
            "dram__byte",
            "dram__bytesX",
            "CTC",
            "tpc__z",
        ] {
            assert_eq!(find(GH100, name), None, "{name}");
        }
    }

    #[test]
    fn a_suffix_of_another_type_of_counter_does_not_exist() {
        let unknown = |counter| matches!(exists(Chip::Gh100, counter), Existence::Unknown { .. });
        assert_eq!(
            exists(Chip::Gh100, "dram__bytes_read.sum"),
            Existence::Known
        );
        assert_eq!(
            exists(Chip::Gh100, "launch__registers_per_thread"),
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
            exists(Chip::Gh100, "sass__inst_executed_by_moonlight"),
            Existence::NoTable
        );
        assert_eq!(
            exists(Chip::Other, "dram__bytes_read.sum"),
            Existence::NoTable
        );
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
