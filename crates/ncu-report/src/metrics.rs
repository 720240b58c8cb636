//! The metrics of a launch.

use std::collections::BTreeMap;
use std::ops::Index;
use std::sync::Arc;

use crate::value::Measurement;

/// The number of values that are shared or copied together.
pub(crate) const CHUNK: usize = 12;

/// The metrics of a launch: full name to value and unit, sorted by name.
///
/// The launches of one recording have the same names, and many equal values (some 200 device
/// attributes). Launches share both: the names as a whole, and the values in chunks, which are
/// copied on write.
///
/// ```
/// use ncu_report::{Measurement, Metrics, Unit, Value};
///
/// let measurement = Measurement { value: Value::Integer(12_224), unit: Unit::named("ns") };
/// let metrics = Metrics::from_iter([("gpu__time_duration.sum".into(), measurement)]);
/// assert_eq!(metrics["gpu__time_duration.sum"].value.number(), Some(12_224.0));
/// assert_eq!(metrics.get("dram__bytes.sum"), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    names: Arc<[Arc<str>]>,
    /// The values in the order of the names, [`CHUNK`] in each but the last.
    chunks: Vec<Arc<[Measurement]>>,
}

impl Metrics {
    /// `names` are sorted without repetition; `chunks` have as many values, [`CHUNK`] in each but
    /// the last.
    pub(crate) fn from_chunks(names: Arc<[Arc<str>]>, chunks: Vec<Arc<[Measurement]>>) -> Metrics {
        debug_assert!(names.is_sorted());
        debug_assert_eq!(
            chunks.iter().map(|chunk| chunk.len()).sum::<usize>(),
            names.len()
        );
        Metrics { names, chunks }
    }

    /// `names` are sorted without repetition; `values` are as many.
    pub(crate) fn from_sorted(
        names: Arc<[Arc<str>]>,
        values: impl IntoIterator<Item = Measurement>,
    ) -> Metrics {
        let mut values = values.into_iter();
        let chunks = (0..names.len().div_ceil(CHUNK))
            .map(|_| values.by_ref().take(CHUNK).collect())
            .collect();
        Metrics::from_chunks(names, chunks)
    }

    fn place(&self, metric: &str) -> Result<usize, usize> {
        self.names.binary_search_by(|name| (**name).cmp(metric))
    }

    /// The value and the unit of a metric.
    pub fn get(&self, metric: &str) -> Option<&Measurement> {
        let place = self.place(metric).ok()?;
        self.chunks.get(place / CHUNK)?.get(place % CHUNK)
    }

    /// The value of a metric, to change it.
    pub fn get_mut(&mut self, metric: &str) -> Option<&mut Measurement> {
        let place = self.place(metric).ok()?;
        Arc::make_mut(self.chunks.get_mut(place / CHUNK)?).get_mut(place % CHUNK)
    }

    /// The number of metrics.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no metrics.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The metrics, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Measurement)> {
        self.names.iter().zip(self.values())
    }

    /// The names, sorted.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.names.iter()
    }

    /// The values in the order of the names.
    pub fn values(&self) -> impl Iterator<Item = &Measurement> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }
}

impl Index<&str> for Metrics {
    type Output = Measurement;

    /// # Panics
    /// If the metric is absent. [`Metrics::get`] does not panic.
    #[expect(
        clippy::panic,
        reason = "the index of an absent name is a mistake of the caller"
    )]
    fn index(&self, metric: &str) -> &Measurement {
        match self.get(metric) {
            Some(measurement) => measurement,
            None => panic!("no metric {metric:?}"),
        }
    }
}

impl FromIterator<(Arc<str>, Measurement)> for Metrics {
    fn from_iter<T: IntoIterator<Item = (Arc<str>, Measurement)>>(pairs: T) -> Metrics {
        let sorted = BTreeMap::from_iter(pairs);
        let (names, values): (Vec<_>, Vec<_>) = sorted.into_iter().unzip();
        Metrics::from_sorted(names.into(), values)
    }
}

impl<'a> IntoIterator for &'a Metrics {
    type Item = (&'a Arc<str>, &'a Measurement);
    type IntoIter = Box<dyn Iterator<Item = Self::Item> + 'a>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Unit;
    use crate::value::Value;

    fn number(value: u64) -> Measurement {
        Measurement {
            value: Value::Integer(value),
            unit: Unit::NONE,
        }
    }

    /// Names in an order that is not sorted, more than a chunk of them.
    fn shuffled() -> Vec<(Arc<str>, Measurement)> {
        (0..50)
            .map(|index| (format!("c{:02}", index * 37 % 50).into(), number(index)))
            .collect()
    }

    #[test]
    fn metrics_behave_as_a_sorted_map() {
        let map: BTreeMap<_, _> = shuffled().into_iter().collect();
        let metrics: Metrics = shuffled().into_iter().collect();
        for name in ["c00", "c49", "c20", "c20a", "a", "z"] {
            assert_eq!(metrics.get(name), map.get(name));
        }
        assert!(metrics.iter().eq(map.iter()) && metrics.len() == map.len());
    }

    #[test]
    fn a_change_to_a_copy_leaves_the_original_alone() {
        let original: Metrics = shuffled().into_iter().collect();
        let mut copy = original.clone();
        *copy.get_mut("c33").unwrap() = number(1000);
        assert_ne!(original["c33"], number(1000));
        assert_eq!(copy["c33"], number(1000));
        assert_eq!(copy["c34"], original["c34"]);
    }
}
