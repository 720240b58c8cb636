//! The details page: one row for each metric, some by name and some by label, and rows of rules.

use std::collections::HashMap;
use std::sync::Arc;

use super::cell::{Cell, text};
use super::header::{DetailColumns, Header};
use super::raw::TEXT;
use super::reading::Reading;
use super::row::{OtherRows, Row, for_each_row};
use super::tables::Table;
use crate::catalog::{Unit, decimal_scale};
use crate::error::ReadError;
use crate::launch::Label;
use crate::value::{Measurement, Value};

/// The section of the metrics that the command line names.
const ASKED_METRICS: &[u8] = b"Command line profiler metrics";

/// Memory in bytes, without letters, of a metric (in the list of the rows and in that of the
/// launch), of a label, of the name of a metric, and of what the page knows of a launch.
const METRIC: usize = 3 * size_of::<(Arc<str>, Measurement)>() + 16;
const LABEL: usize = 2 * size_of::<Label>() + 64;
const NAME: usize = 320;
const LAUNCH: usize = 3 * size_of::<(Key, usize)>() + 128;

/// ID and process of a launch.
type Key = (Vec<u8>, Vec<u8>);

/// A page that is being read.
struct Page<'p> {
    header: &'p Header,
    columns: DetailColumns,
    reading: &'p mut Reading,
    /// The metrics of each launch of the page, in the order of the rows.
    metrics: Vec<Vec<(Arc<str>, Measurement)>>,
    /// Indices into `metrics`.
    launches: HashMap<Key, usize>,
    /// The launch of the row before; most rows have the same one.
    current: Option<(Key, usize)>,
    /// Names of metrics, which the launches share.
    names: HashMap<Vec<u8>, Arc<str>>,
}

/// Reads the launches of a page into `reading`.
pub(super) fn read(
    header: &Header,
    columns: DetailColumns,
    table: &Table<'_>,
    reading: &mut Reading,
    others: &mut OtherRows,
) -> Result<(), ReadError> {
    let mut page = Page {
        header,
        columns,
        reading,
        metrics: Vec::new(),
        launches: HashMap::new(),
        current: None,
        names: HashMap::new(),
    };
    // With rules the header has more columns than the row of a metric.
    let (least, most) = (columns.value.saturating_add(1), header.cells.len());
    for region in &table.rows {
        for_each_row(region, others, |row| {
            let cells = row.len();
            if cells < least || cells > most || (cells == least && row.ends_in_comma) {
                return header.reject(&row, most);
            }
            page.add(&row)
        })?;
    }
    let metrics = page.metrics;
    let launches = reading.launches.iter_mut().skip(reading.first);
    for (launch, metrics) in launches.zip(metrics) {
        launch.metrics = metrics.into_iter().collect();
    }
    Ok(())
}

impl Page<'_> {
    fn add(&mut self, row: &Row<'_, '_>) -> Result<(), ReadError> {
        let launch = self.launch(row)?;
        let metric = row.cell(self.columns.name);
        // The row of a rule, whose description may have several lines.
        if metric.is_empty() {
            return Ok(());
        }
        row.in_one_line()?;
        let (measurement, exponent) = self.measurement(row)?;
        let section = row.cell(self.columns.section);
        if section == ASKED_METRICS || metric.windows(2).any(|pair| pair == b"__") {
            let name = self.name(metric, row)?;
            self.reading.note_scale(&name, exponent);
            self.reading.take(METRIC, || row.line())?;
            if let Some(metrics) = self.metrics.get_mut(launch) {
                metrics.push((name, measurement));
            }
        } else {
            let label = Label {
                section: text(section),
                name: text(metric),
                measurement,
            };
            let letters = label.section.len().saturating_add(label.name.len());
            self.reading
                .take(letters.saturating_add(LABEL), || row.line())?;
            let launch = self.reading.first.saturating_add(launch);
            if let Some(launch) = self.reading.launches.get_mut(launch) {
                launch.labels.push(label);
            }
        }
        Ok(())
    }

    /// The index of the row's launch. The rows of a launch need not be consecutive.
    fn launch(&mut self, row: &Row<'_, '_>) -> Result<usize, ReadError> {
        let (id, process) = (row.cell(0), row.cell(self.header.process_id));
        if let Some(((last_id, last_process), launch)) = &self.current
            && last_id == id
            && last_process == process
        {
            return Ok(*launch);
        }
        let key = (id.to_vec(), process.to_vec());
        let launch = match self.launches.get(&key) {
            Some(&launch) => launch,
            None => {
                let letters = id.len().saturating_add(process.len());
                self.reading
                    .take(letters.saturating_add(LAUNCH), || row.line())?;
                self.reading.push(self.header.launch(row)?, row)?;
                self.reading.see_launch(self.header, row)?;
                let launch = self.metrics.len();
                self.metrics.push(Vec::new());
                self.launches.insert(key.clone(), launch);
                launch
            }
        };
        self.current = Some((key, launch));
        Ok(launch)
    }

    fn name(&mut self, metric: &[u8], row: &Row<'_, '_>) -> Result<Arc<str>, ReadError> {
        if let Some(name) = self.names.get(metric) {
            return Ok(Arc::clone(name));
        }
        let name: Arc<str> = text(metric).into();
        let letters = metric.len().saturating_add(name.len());
        self.reading
            .take(letters.saturating_add(NAME), || row.line())?;
        self.names.insert(metric.to_vec(), Arc::clone(&name));
        Ok(name)
    }

    /// The value of a row in base units, and the power of ten by which its unit was scaled.
    fn measurement(&mut self, row: &Row<'_, '_>) -> Result<(Measurement, i8), ReadError> {
        let symbol = text(row.cell(self.columns.unit));
        let (exponent, unit) = match decimal_scale(&symbol) {
            Some((exponent, base)) => (exponent, Unit::Known(base)),
            None => (0, Unit::Unknown),
        };
        let name = std::str::from_utf8(row.cell(self.columns.name)).unwrap_or_default();
        let cell = row.cell(self.columns.value);
        let value = match self.reading.numbers.parse(name, cell, || row.line()) {
            Cell::Number(number) => number.value(exponent),
            Cell::Missing => Value::Missing,
            Cell::Text(cell) => {
                let text = text(cell);
                self.reading
                    .take(text.len().saturating_add(TEXT), || row.line())?;
                Value::Text(text.into())
            }
        };
        // An empty unit beside `n/a` does not state the unit.
        let states_no_unit = value == Value::Missing && symbol.is_empty();
        let unit = if states_no_unit { Unit::Unknown } else { unit };
        Ok((Measurement { value, unit }, exponent))
    }
}
