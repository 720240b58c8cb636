//! The tables of metrics, which are texts in the program.
//!
//! `gh100.tsv` has name, type and unit of each base metric, as `ncu --query-metrics --chips gh100
//! --csv` (2025.3.1) lists them. `ncu_own.tsv` has the names that ncu computes itself and lists for
//! no chip, with the unit that NVIDIA's `ncu_report` module gives them; `?` marks a unit that is
//! not a function of the name. Both are sorted by their bytes.

use super::chip::Chip;

static GH100: Table<8192> = Table::of(include_str!("gh100.tsv"));
static NCU_OWN: Table<1024> = Table::of(include_str!("ncu_own.tsv"));

/// Rows of a name, a tab and the rest, and where each of them begins.
///
/// Every name of a report is searched, so the rows are found by the hash of their name. The
/// compiler computes the places.
struct Table<const SLOTS: usize> {
    text: &'static str,
    /// One more than the offset of the row whose name has the hash of the slot, or of a slot before
    /// it without a gap between; 0 where there is none. At least half of the slots are empty.
    slots: [u32; SLOTS],
}

impl<const SLOTS: usize> Table<SLOTS> {
    /// The text ends with a newline.
    const fn of(text: &'static str) -> Table<SLOTS> {
        let bytes = text.as_bytes();
        let mut slots = [0; SLOTS];
        let mut start = 0;
        while start < bytes.len() {
            let mut end = start;
            while bytes[end] != b'\t' {
                end += 1;
            }
            let mut slot = hash(bytes.split_at(end).0.split_at(start).1) as usize % SLOTS;
            while slots[slot] != 0 {
                slot = (slot + 1) % SLOTS;
            }
            slots[slot] = start as u32 + 1;
            while bytes[end] != b'\n' {
                end += 1;
            }
            start = end + 1;
        }
        Table { text, slots }
    }

    /// The rest of the row with this name.
    fn find(&self, name: &str) -> Option<&'static str> {
        let mut slot = hash(name.as_bytes()) as usize % SLOTS;
        loop {
            let start = self.slots[slot].checked_sub(1)?;
            let row = self.text.get(start as usize..)?;
            if let Some(rest) = row.strip_prefix(name)
                && rest.starts_with('\t')
                && !name.contains('\t')
            {
                let end = rest.bytes().position(|byte| byte == b'\n')?;
                return rest.get(1..end);
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    fn rows(&self) -> impl Iterator<Item = (&'static str, &'static str)> + use<SLOTS> {
        self.text.lines().filter_map(|line| line.split_once('\t'))
    }
}

/// A hash of a name: eight bytes at a time, multiplied as FxHash does, so that the high bits depend
/// on all bytes.
const fn hash(mut name: &[u8]) -> u64 {
    const FACTOR: u64 = 0xf135_7aea_2e62_a9c5;
    let mut hash = name.len() as u64;
    while let Some((word, rest)) = name.split_first_chunk::<8>() {
        hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
        hash ^= hash >> 32;
        name = rest;
    }
    let mut last = 0;
    while let Some((byte, rest)) = name.split_first() {
        last = last << 8 | *byte as u64;
        name = rest;
    }
    hash = (hash ^ last).wrapping_mul(FACTOR);
    hash ^ hash >> 32
}

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
    base_of_row(table(chip)?.find(name)?)
}

/// All base metrics of a chip.
pub(super) fn bases(chip: Chip) -> impl Iterator<Item = (&'static str, Base)> {
    let rows = table(chip).into_iter().flat_map(Table::rows);
    rows.filter_map(|(name, rest)| Some((name, base_of_row(rest)?)))
}

/// The unit of one of ncu's own metrics; `?` where the name does not decide it.
pub(super) fn unit_of_ncu_own(metric: &str) -> Option<&'static str> {
    NCU_OWN.find(metric)
}

/// All of ncu's own names in the table.
pub(super) fn ncu_own() -> impl Iterator<Item = &'static str> {
    NCU_OWN.rows().map(|(name, _)| name)
}

fn table(chip: Chip) -> Option<&'static Table<8192>> {
    match chip {
        Chip::Gh100 => Some(&GH100),
        Chip::Other => None,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_tables_are_sorted_and_every_row_is_found() {
        fn check<const SLOTS: usize>(table: &Table<SLOTS>) {
            let names: Vec<_> = table.rows().map(|(name, _)| name).collect();
            assert!(names.windows(2).all(|pair| pair[0] < pair[1]));
            assert_eq!(names.len(), table.text.lines().count());
            assert!(2 * names.len() <= SLOTS);
            for (name, rest) in table.rows() {
                assert_eq!(table.find(name), Some(rest), "{name}");
            }
        }
        check(&GH100);
        check(&NCU_OWN);
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
            assert_eq!(GH100.find(name), None, "{name}");
        }
        // A damaged report may have a name with a tab. Some of these have the slot of the row.
        for text in [
            "a\tb\tc\n",
            "d\te\tf\n",
            "g\th\ti\n",
            "j\tk\tl\n",
            "m\tn\to\n",
        ] {
            assert_eq!(Table::<2>::of(text).find(&text[..3]), None);
        }
    }
}
