//! The details page: a row a metric, some by name and some by label, and rows of rules.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::cell::Cell;
use super::lines::Table;
use super::row::{Row, for_each_row};
use super::{DetailColumns, Header, Reading, text};
use crate::counter::{Unit, decimal_scale};
use crate::{Label, Measurement, ReadError, Value};

/// Section under which the page lists counters that were asked for by name.
const ASKED_METRICS: &[u8] = b"Command line profiler metrics";

/// ID and process, which tell launches apart.
type Key = (Vec<u8>, Vec<u8>);

/// Reads the launches of a page into `reading`.
pub(super) fn read(
    header: &Header,
    columns: DetailColumns,
    table: &Table<'_>,
    reading: &mut Reading,
) -> Result<(), ReadError> {
    // Rows of a section have fewer cells than a header with the columns of the rules.
    let (least, most) = (columns.value + 1, header.cells.len());
    let mut names: HashMap<Vec<u8>, Arc<str>> = HashMap::new();
    // Launches by ID and process, and the metrics of each.
    let mut places: HashMap<Key, usize> = HashMap::new();
    // Those of the row before, whose launch mostly has the next row too.
    let mut current: Option<(Key, usize)> = None;
    let mut metrics: Vec<BTreeMap<Arc<str>, Measurement>> = Vec::new();
    let first = reading.launches.len();
    for region in &table.rows {
        for_each_row(region, |row| {
            let cells = row.len();
            if cells < least || cells > most || (cells == least && row.ends_in_comma) {
                return header.refuse_unless_foreign(&row, most);
            }
            let (id, process) = (row.cell(0), row.cell(header.process_id));
            let place = match &current {
                Some(((last_id, last_process), place))
                    if last_id == id && last_process == process =>
                {
                    *place
                }
                _ => {
                    let key = (id.to_vec(), process.to_vec());
                    let place = match places.get(&key) {
                        Some(&place) => place,
                        None => {
                            reading.launches.push(header.launch(&row)?);
                            metrics.push(BTreeMap::new());
                            *places.entry(key.clone()).or_insert(metrics.len() - 1)
                        }
                    };
                    current = Some((key, place));
                    place
                }
            };
            let metric = row.cell(columns.name);
            // The row of a rule.
            if metric.is_empty() {
                return Ok(());
            }
            let (measurement, exponent) = measurement(&row, columns, reading);
            let section = row.cell(columns.section);
            if section == ASKED_METRICS || metric.windows(2).any(|pair| pair == b"__") {
                let name = match names.get(metric) {
                    Some(name) => Arc::clone(name),
                    None => {
                        let name: Arc<str> = text(metric).into();
                        names.insert(metric.to_vec(), Arc::clone(&name));
                        name
                    }
                };
                reading.note_scale(&name, exponent);
                metrics[place].insert(name, measurement);
            } else if let Some(launch) = reading.launches.get_mut(first + place) {
                launch.labels.push(Label {
                    section: text(section),
                    name: text(metric),
                    measurement,
                });
            }
            Ok(())
        })?;
    }
    for (launch, metrics) in reading.launches.iter_mut().skip(first).zip(metrics) {
        launch.metrics = metrics.into();
    }
    Ok(())
}

/// The value of a row in base units, and the power of ten that its unit was scaled by.
fn measurement(
    row: &Row<'_, '_>,
    columns: DetailColumns,
    reading: &mut Reading,
) -> (Measurement, i8) {
    let symbol = text(row.cell(columns.unit));
    let (exponent, unit) = match decimal_scale(&symbol) {
        Some((exponent, base)) => (exponent, Unit::Known(base)),
        None => (0, Unit::Unknown),
    };
    let value = match Cell::parse(row.cell(columns.value)) {
        Cell::Number(number) => {
            reading.decimals = number.decimals().max(reading.decimals);
            number.value(exponent)
        }
        Cell::Missing => Value::Missing,
        Cell::Text(cell) => Value::Text(text(cell).into()),
    };
    // An empty unit beside `n/a` says nothing about the unit.
    let says_nothing = value == Value::Missing && symbol.is_empty();
    let unit = if says_nothing { Unit::Unknown } else { unit };
    (Measurement { value, unit }, exponent)
}
