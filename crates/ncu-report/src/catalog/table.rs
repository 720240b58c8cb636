//! The tables of metrics, which are texts in the program and become a table in memory when the first
//! name is looked up: in a fraction of a millisecond.
//!
//! `metrics.txt` has name, type, unit and chips of each base metric of NVIDIA's chips. `ci/chips.py`
//! makes it from the answers of `ncu --query-metrics` and from NVIDIA's host library, and describes the
//! form. `ncu_own.tsv` has the names that ncu computes itself and lists for no chip, with the unit that
//! NVIDIA's `ncu_report` module gives them, where it gives one always or mostly; `?` marks texts.

use std::sync::OnceLock;

use memchr::memchr;

/// At least half of them are empty.
const SLOTS: usize = 1 << 14;

/// All rows, found by the hash of their name, because every name of a report is looked up.
pub(super) struct Table {
    /// The names, one after the other.
    names: String,
    rows: Vec<Row>,
    /// One more than the index of a row whose name has the hash of the slot, or of a slot before it
    /// without a gap between; 0 where there is none.
    slots: Vec<u16>,
    /// The groups of chips with equal metrics, by the bit of a row.
    groups: Vec<&'static str>,
}

#[derive(Clone, Copy)]
pub(super) struct Row {
    /// Where the name stands.
    start: u32,
    length: u16,
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
        let mut table = Table {
            names: String::with_capacity(2 * metrics.len()),
            rows: Vec::with_capacity(SLOTS / 2),
            slots: vec![0; SLOTS],
            groups: lines.next().unwrap_or_default().split('\t').collect(),
        };
        let (mut kind, mut unit, mut chips) = (None, "", 0);
        for line in lines {
            let (shared, line) = cut(line);
            let (rest, line) = cut(line);
            if !line.is_empty() {
                let (letter, line) = cut(line);
                let (of, bits) = cut(line);
                kind = match letter {
                    "R" => Some(Kind::Ratio),
                    "T" => Some(Kind::Throughput),
                    _ => Some(Kind::Counter),
                };
                unit = of;
                chips = u32::from_str_radix(bits, 16).unwrap_or(0);
            }
            table.add(shared.parse().unwrap_or(0), rest, kind, unit, chips);
        }
        for (name, unit) in own.lines().filter_map(|line| line.split_once('\t')) {
            table.add(0, name, None, unit, 0);
        }
        table
    }

    /// Adds a row whose name shares its beginning with the row before.
    fn add(
        &mut self,
        shared: usize,
        rest: &str,
        kind: Option<Kind>,
        unit: &'static str,
        chips: u32,
    ) {
        let start = self.names.len();
        let before = self.rows.last().map_or(0, |row| row.start as usize);
        self.names.extend_from_within(before..before + shared);
        self.names.push_str(rest);
        let mut slot = hash(&self.names.as_bytes()[start..]) as usize % SLOTS;
        while self.slots[slot] != 0 {
            slot = (slot + 1) % SLOTS;
        }
        self.rows.push(Row {
            start: start as u32,
            length: (self.names.len() - start) as u16,
            kind,
            unit,
            chips,
        });
        self.slots[slot] = self.rows.len() as u16;
    }

    fn name(&self, row: &Row) -> &str {
        let start = row.start as usize;
        &self.names[start..start + usize::from(row.length)]
    }

    /// The rows with this name: one, or for a few metrics one for each unit.
    pub(super) fn find(&self, name: &str) -> impl Iterator<Item = &Row> {
        let first = hash(name.as_bytes()) as usize % SLOTS;
        let slots = (first..first + SLOTS).map(|slot| self.slots[slot % SLOTS]);
        let rows = slots.map_while(|index| self.rows.get(usize::from(index.checked_sub(1)?)));
        rows.filter(move |row| self.name(row) == name)
    }

    /// ncu's names of the chips in a group, with spaces between.
    pub(super) fn chips(&self, group: u8) -> Option<&'static str> {
        self.groups.get(usize::from(group)).copied()
    }
}

/// What stands before the first tab, and what behind it. `split_once` takes five times as long.
fn cut(line: &'static str) -> (&'static str, &'static str) {
    let tab = memchr(b'\t', line.as_bytes());
    tab.map_or((line, ""), |at| (&line[..at], &line[at + 1..]))
}

/// A hash of a name: eight bytes at a time, multiplied as FxHash does, so that the high bits depend
/// on all bytes.
fn hash(mut name: &[u8]) -> u64 {
    const FACTOR: u64 = 0xf135_7aea_2e62_a9c5;
    let mut hash = name.len() as u64;
    while let Some((word, rest)) = name.split_first_chunk::<8>() {
        hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
        hash ^= hash >> 32;
        name = rest;
    }
    let mut last = 0;
    while let Some((byte, rest)) = name.split_first() {
        last = last << 8 | u64::from(*byte);
        name = rest;
    }
    hash = (hash ^ last).wrapping_mul(FACTOR);
    hash ^ hash >> 32
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
    rows.filter_map(|row| Some((table().name(row), row.base()?)))
}

/// The unit of one of ncu's own metrics; `?` where the name does not decide it.
pub(super) fn unit_of_ncu_own(metric: &str) -> Option<&'static str> {
    let mut found = table().find(metric);
    found.find(|row| row.kind.is_none()).map(|row| row.unit)
}

/// All of ncu's own names in the table.
pub(super) fn ncu_own() -> impl Iterator<Item = &'static str> {
    let rows = table().rows.iter().filter(|row| row.kind.is_none());
    rows.map(|row| table().name(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_and_half_of_the_slots_are_empty() {
        let table = table();
        assert!(2 * table.rows.len() <= SLOTS, "{}", table.rows.len());
        assert!(table.groups.len() <= 32);
        for row in &table.rows {
            let found = table
                .find(table.name(row))
                .any(|found| std::ptr::eq(found, row));
            assert!(found, "{}", table.name(row));
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
