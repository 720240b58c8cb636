//! The tables of metrics, which are searched as texts in the program.
//!
//! `gh100.tsv` has name, type and unit of each base metric, as `ncu --query-metrics --chips gh100
//! --csv` (2025.3.1) lists them. `ncu_own.tsv` has the names that ncu computes itself and lists for
//! no chip, with the unit that NVIDIA's `ncu_report` module gives them; `?` marks a unit that is
//! not a function of the name. Both are sorted by their bytes.

use super::chip::Chip;

static GH100: &str = include_str!("gh100.tsv");
static NCU_OWN: &str = include_str!("ncu_own.tsv");

/// The type of a base metric. It decides which suffixes the metric has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Ratio,
    Throughput,
}

/// A base metric of a chip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base {
    pub(super) kind: Kind,
    pub(super) unit: &'static str,
}

/// Whether there is a table of the chip's metrics.
pub(super) fn has_table(chip: Chip) -> bool {
    table(chip).is_some()
}

/// The base metric of this name, without a suffix.
pub(super) fn find_base(chip: Chip, name: &str) -> Option<Base> {
    base_of_row(find(table(chip)?, name)?)
}

/// All base metrics of a chip.
pub(super) fn bases(chip: Chip) -> impl Iterator<Item = (&'static str, Base)> {
    rows(table(chip).unwrap_or_default())
        .filter_map(|(name, rest)| Some((name, base_of_row(rest)?)))
}

/// The unit of one of ncu's own metrics; `?` where the name does not decide it.
pub(super) fn unit_of_ncu_own(metric: &str) -> Option<&'static str> {
    find(NCU_OWN, metric)
}

/// All of ncu's own names in the table.
pub(super) fn ncu_own() -> impl Iterator<Item = &'static str> {
    rows(NCU_OWN).map(|(name, _)| name)
}

fn table(chip: Chip) -> Option<&'static str> {
    match chip {
        Chip::Gh100 => Some(GH100),
        Chip::Other => None,
    }
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

/// The rest of the row of `table` that begins with `name`. Binary search over the text.
fn find(table: &'static str, name: &str) -> Option<&'static str> {
    let bytes = table.as_bytes();
    let (mut low, mut high) = (0, bytes.len());
    // Both ends are always at the start of a row or at the end of the text.
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
    fn both_tables_are_sorted_and_every_row_is_found() {
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
}
