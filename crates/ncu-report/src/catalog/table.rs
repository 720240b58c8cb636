//! The tables of metrics, which are texts in the program and become a table in memory when the first
//! name is looked up: in a millisecond.
//!
//! `metrics.txt` has name, type, unit and chips of each base metric of NVIDIA's chips. `ci/chips.py`
//! makes it from the answers of `ncu --query-metrics` and from NVIDIA's host library, and describes the
//! form. `ncu_own.tsv` has the names that ncu computes itself and lists for no chip, with the unit that
//! NVIDIA's `ncu_report` module gives them, where it gives one always or mostly; `?` marks texts.

use std::sync::OnceLock;

/// All rows, sorted by name.
pub(super) struct Table {
    rows: Vec<Row>,
    /// The groups of chips with equal metrics, by the bit of a row.
    groups: Vec<&'static str>,
}

pub(super) struct Row {
    name: String,
    /// `None` of ncu's own names.
    kind: Option<Kind>,
    unit: &'static str,
    /// One bit a chip.
    chips: u32,
}

/// The type of a base metric. It decides which suffixes the metric has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Ratio,
    Throughput,
}

/// A base metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Base {
    pub(super) kind: Kind,
    pub(super) unit: &'static str,
}

/// The table of this program.
pub(super) fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| Table::of(include_str!("metrics.txt"), include_str!("ncu_own.tsv")))
}

impl Table {
    fn of(metrics: &'static str, own: &'static str) -> Table {
        let mut lines = metrics.lines();
        let groups = lines.next().unwrap_or_default().split('\t').collect();
        let mut rows: Vec<Row> = Vec::new();
        let (mut kind, mut unit, mut chips) = (None, "", 0);
        for line in lines {
            let mut cells = line.split('\t');
            let mut next = || cells.next().unwrap_or_default();
            // The name shares its beginning with that of the row before.
            let (shared, rest) = (next().parse().unwrap_or(0), next());
            let before = rows.last().map_or("", |row| &row.name);
            let name = [&before[..shared], rest].concat();
            // What is not stated is as in the row before.
            if let Some(letter) = cells.next() {
                kind = match letter {
                    "R" => Some(Kind::Ratio),
                    "T" => Some(Kind::Throughput),
                    _ => Some(Kind::Counter),
                };
                unit = cells.next().unwrap_or_default();
                chips = u32::from_str_radix(cells.next().unwrap_or_default(), 16).unwrap_or(0);
            }
            rows.push(Row {
                name,
                kind,
                unit,
                chips,
            });
        }
        let own = own.lines().filter_map(|line| line.split_once('\t'));
        rows.extend(own.map(|(name, unit)| Row {
            name: name.to_owned(),
            kind: None,
            unit,
            chips: 0,
        }));
        rows.sort_by(|one, other| one.name.cmp(&other.name));
        Table { rows, groups }
    }

    /// The rows with this name: one, or for a few metrics one for each unit.
    pub(super) fn find(&self, name: &str) -> impl Iterator<Item = &Row> {
        let first = self.rows.partition_point(|row| *row.name < *name);
        self.rows[first..]
            .iter()
            .take_while(move |row| row.name == name)
    }

    /// ncu's names of the chips in a group, with spaces between.
    pub(super) fn chips(&self, group: u8) -> Option<&'static str> {
        self.groups.get(usize::from(group)).copied()
    }
}

impl Row {
    /// `None` of one of ncu's own names.
    pub(super) fn base(&self) -> Option<Base> {
        let unit = self.unit;
        self.kind.map(|kind| Base { kind, unit })
    }

    /// Whether the chips of this group have it.
    pub(super) fn is_of(&self, group: u8) -> bool {
        self.chips >> group & 1 == 1
    }
}

/// The base metrics of the chips in a group.
pub(super) fn bases(group: u8) -> impl Iterator<Item = (&'static str, Base)> {
    let rows = table().rows.iter().filter(move |row| row.is_of(group));
    rows.filter_map(|row| Some((row.name.as_str(), row.base()?)))
}

/// The unit of one of ncu's own metrics; `?` where the name does not decide it.
pub(super) fn unit_of_ncu_own(metric: &str) -> Option<&'static str> {
    let mut found = table().find(metric);
    found.find(|row| row.kind.is_none()).map(|row| row.unit)
}

/// All of ncu's own names in the table.
pub(super) fn ncu_own() -> impl Iterator<Item = &'static str> {
    let rows = table().rows.iter().filter(|row| row.kind.is_none());
    rows.map(|row| row.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found() {
        let table = table();
        assert!(table.groups.len() <= 32);
        for row in &table.rows {
            let mut found = table.find(&row.name);
            assert!(found.any(|it| std::ptr::eq(it, row)), "{}", row.name);
        }
        let own: Vec<_> = ncu_own().collect();
        assert!(own.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn a_name_beside_the_rows_is_not_found() {
        for name in [
            "", "\n", "a", "zzz", "dram__byte", "dram__bytesX", "CTC", "tpc__z",
        ] {
            assert_eq!(table().find(name).count(), 0, "{name}");
        }
    }
}
