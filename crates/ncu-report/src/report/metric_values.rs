//! The metrics of a result, under their names and with their units.

use std::sync::Arc;

use super::memory::Memory;
use super::scalar::scalar;
use super::strings::{MEMORY_PER_NAME, StringTable};
use super::wire::Slice;
use crate::catalog::{Chip, Unit, unit_of};
use crate::error::ReadError;
use crate::metrics::Metrics;
use crate::value::{Measurement, Value};

/// Attributes of the device, which are among the metrics of every result.
const COMPUTE_CAPABILITY: [&str; 2] = [
    "device__attribute_compute_capability_major",
    "device__attribute_compute_capability_minor",
];

/// Reads the metrics of one result after the other.
#[derive(Default)]
pub(super) struct MetricValues {
    /// By `NameId`.
    names: Vec<Arc<str>>,
    /// By `NameId`: the index of the name in sorted order.
    rank: Vec<u32>,
    /// Rank of major and minor compute capability.
    compute_capability: [Option<u32>; 2],
    /// The compute capability of the result before, and its chip.
    chip: (Option<(u64, u64)>, Option<Chip>),
    /// Of each chip, by `NameId`: the unit, once it was needed. The results of one report may alternate
    /// between chips.
    units: Vec<(Option<Chip>, Vec<Option<Unit>>)>,
    /// The metrics of the current result: `NameId`, value.
    found: Vec<(u32, Value)>,
    /// The `NameId`s of the last result, in the order of the file; most results have the same ones.
    last_ids: Vec<u32>,
    /// Where the metrics of such a result are in it, by rank, without those that are repeated.
    places: Vec<u32>,
    /// The names of such a result.
    last_names: Arc<[Arc<str>]>,
}

/// Memory of a metric in bytes: its name, its value, and its share of the chunk.
const METRIC: usize = size_of::<(Arc<str>, Measurement)>() + 16;

impl MetricValues {
    pub(super) fn new(
        strings: &StringTable<'_>,
        memory: &mut Memory,
    ) -> Result<MetricValues, ReadError> {
        let names: Vec<Arc<str>> = strings
            .strings
            .iter()
            .map(|name| {
                let text = String::from_utf8_lossy(name);
                memory.take(text.len().saturating_add(MEMORY_PER_NAME), 0)?;
                Ok(Arc::from(text.as_ref()))
            })
            .collect::<Result<_, ReadError>>()?;
        let rank = ranks(&names);
        let rank_of = |wanted: &str| {
            let mut ranked = names.iter().zip(&rank);
            ranked.find_map(|(name, rank)| (**name == *wanted).then_some(*rank))
        };
        Ok(MetricValues {
            compute_capability: COMPUTE_CAPABILITY.map(rank_of),
            rank,
            names,
            ..MetricValues::default()
        })
    }

    /// `ProfileMetricResult { 1: NameId, 2: MetricValue, 3: repeated MetricValueList }`. A metric
    /// of which ncu collected only a list has no scalar.
    pub(super) fn read(
        &mut self,
        mut message: Slice<'_>,
        memory: &mut Memory,
    ) -> Result<(), ReadError> {
        let offset = message.offset();
        let (mut id, mut value) = (None, Value::Missing);
        while let Some(field) = message.field()? {
            match field.number {
                1 => id = Some(field.integer()?),
                2 => value = scalar(field.bytes()?, memory)?,
                _ => {}
            }
        }
        let id = id.and_then(|id| u32::try_from(id).ok()).ok_or_else(|| {
            ReadError::report(offset, "expected the NameId of a metric, found none")
        })?;
        if self.rank.get(id as usize).is_none() {
            return Err(ReadError::report(
                offset,
                format!(
                    "a metric has the NameId {id}, the string table ends at {}",
                    self.rank.len()
                ),
            ));
        }
        memory.take(METRIC, offset)?;
        self.found.push((id, value));
        Ok(())
    }

    /// Sorts the names of the current result, where they are not those of the last one.
    fn sort(&mut self) {
        let ids = self.found.iter().map(|(id, _)| *id);
        if ids.clone().eq(self.last_ids.iter().copied()) {
            return;
        }
        self.last_ids = ids.collect();
        let ranked = self.last_ids.iter().map(|id| self.rank[*id as usize]);
        // As one number: half of the time of a sort by a key.
        let mut order: Vec<u64> = ranked
            .zip(0_u64..)
            .map(|(rank, place)| u64::from(rank) << 32 | place)
            .collect();
        order.sort_unstable();
        // Of a metric that is repeated, the last one counts, as in NVIDIA's own reader.
        order.dedup_by(|later, kept| {
            let repeated = *later >> 32 == *kept >> 32;
            if repeated {
                *kept = *later;
            }
            repeated
        });
        self.places = order.into_iter().map(|it| it as u32).collect();
        let ids = &self.last_ids;
        let places = self.places.iter();
        let names = places.map(|place| Arc::clone(&self.names[ids[*place as usize] as usize]));
        self.last_names = names.collect();
    }

    /// The compute capability of the device that the current result, which is sorted, was measured
    /// on.
    fn compute_capability(&self) -> Option<(u64, u64)> {
        let rank_at = |place: &u32| self.rank[self.last_ids[*place as usize] as usize];
        let [major, minor] = self.compute_capability.map(|rank| {
            let at = self.places.binary_search_by_key(&rank?, rank_at).ok()?;
            match self.found.get(self.places[at] as usize)?.1 {
                Value::Integer(number) => Some(number),
                _ => None,
            }
        });
        major.zip(minor)
    }

    /// Ends the current result: its metrics with their units, and its compute capability.
    pub(super) fn finish(
        &mut self,
        memory: &mut Memory,
    ) -> Result<(Metrics, Option<(u64, u64)>), ReadError> {
        self.sort();
        let capability = self.compute_capability();
        if capability != self.chip.0 {
            let chip =
                capability.and_then(|(major, minor)| Chip::from_compute_capability(major, minor));
            self.chip = (capability, chip);
        }
        let chip = self.chip.1;
        let seen = self.units.iter().position(|(of, _)| *of == chip);
        let at = match seen {
            Some(at) => at,
            None => {
                memory.take(
                    self.names.len().saturating_mul(size_of::<Option<Unit>>()),
                    0,
                )?;
                let next = self.units.len();
                self.units.push((chip, vec![None; self.names.len()]));
                next
            }
        };
        let (names, units) = (&self.names, &mut self.units[at].1);
        let (found, places) = (&mut self.found, &self.places);
        let values = places.iter().map(|place| {
            let (id, value) = &mut found[*place as usize];
            let (id, value) = (*id as usize, std::mem::replace(value, Value::Missing));
            let unit = *units[id].get_or_insert_with(|| unit_of(chip, &names[id]));
            Measurement { value, unit }
        });
        let metrics = Metrics::from_sorted(Arc::clone(&self.last_names), values);
        self.found.clear();
        Ok((metrics, capability))
    }
}

/// For each name its index in sorted order. A name that is twice in the table has one index.
fn ranks(names: &[Arc<str>]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..).take(names.len()).collect();
    order.sort_by(|&a, &b| names[a as usize].cmp(&names[b as usize]));
    let mut rank = vec![0; names.len()];
    let mut index = 0_u32;
    for pair in order.windows(2) {
        let differ = names[pair[0] as usize] != names[pair[1] as usize];
        index = index.saturating_add(differ.into());
        rank[pair[1] as usize] = index;
    }
    rank
}
