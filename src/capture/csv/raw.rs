//! The raw page: a row of units, then a row a launch with a column a counter.

use std::sync::Arc;

use super::cell::Cell;
use super::lines::Table;
use super::row::{Row, for_each_row};
use super::{Header, Reading, text};
use crate::capture::metrics::CHUNK;
use crate::capture::{Launch, Measurement, Metrics, ReadError, Text, Value};
use crate::metric::{Unit, decimal_scale};

/// A counter's column of the raw page.
struct Column {
    index: usize,
    name: Arc<str>,
    unit: Unit,
    exponent: i8,
    /// The last text of the column: device attributes repeat in every row.
    text: Option<Text>,
}

/// Reads the launches of a page into `reading`.
pub(super) fn read(
    header: &Header,
    table: &Table<'_>,
    reading: &mut Reading,
) -> Result<(), ReadError> {
    let mut columns = columns(header);
    let names: Arc<[Arc<str>]> = columns
        .iter()
        .map(|column| Arc::clone(&column.name))
        .collect();
    let width = header.cells.len();
    let mut units_seen = false;
    for region in &table.rows {
        // A cell takes four bytes or so, hence this is about as many rows as the region can hold.
        reading.launches.reserve(region.bytes.len() / (4 * width));
        // Whether the record before is the launch before.
        let mut follows_launch = false;
        for_each_row(region, |row| {
            if row.len() != width || row.ends_in_comma {
                follows_launch = false;
                return header.refuse_unless_foreign(&row, width);
            }
            if !units_seen {
                units_seen = true;
                return read_units(&row, &mut columns, reading);
            }
            let before = reading.launches.last().filter(|_| follows_launch);
            let mut launch = match before {
                // All but the ID.
                Some(launch) if row.repeats(1, header.last_leading) => Launch {
                    kernel: launch.kernel.clone(),
                    metrics: Metrics::new(),
                    labels: Vec::new(),
                    ..*launch
                },
                _ => header.launch(&row)?,
            };
            let decimals = &mut reading.decimals;
            let chunks = columns
                .chunks_mut(CHUNK)
                .enumerate()
                .map(|(index, columns)| {
                    let shared = before
                        .filter(|_| repeat(columns, &row))
                        .and_then(|launch| launch.metrics.chunks().get(index));
                    match shared {
                        Some(chunk) => Arc::clone(chunk),
                        None => columns
                            .iter_mut()
                            .map(|column| column.measurement(&row, decimals))
                            .collect(),
                    }
                });
            launch.metrics = Metrics::from_chunks(Arc::clone(&names), chunks.collect());
            reading.launches.push(launch);
            follows_launch = true;
            Ok(())
        })?;
    }
    Ok(())
}

/// The counters' columns, sorted by name.
fn columns(header: &Header) -> Vec<Column> {
    let mut columns: Vec<Column> = header
        .cells
        .iter()
        .enumerate()
        .skip(header.last_leading + 1)
        .map(|(index, name)| Column {
            index,
            name: Arc::from(name.as_str()),
            unit: Unit::Unknown,
            exponent: 0,
            text: None,
        })
        .collect();
    columns.sort_by(|a, b| a.name.cmp(&b.name));
    columns.dedup_by(|a, b| a.name == b.name);
    columns
}

fn read_units(
    row: &Row<'_>,
    columns: &mut [Column],
    reading: &mut Reading,
) -> Result<(), ReadError> {
    if !row.cell(0).is_empty() {
        return Err(ReadError::csv(
            row.line(),
            "expected the row of units below the header, found a launch",
        ));
    }
    for column in columns {
        if let Some((exponent, base)) = decimal_scale(&text(row.cell(column.index))) {
            column.unit = Unit::Known(base);
            column.exponent = exponent;
            reading.note_scale(&column.name, exponent);
        }
    }
    Ok(())
}

impl Column {
    #[inline]
    fn measurement(&mut self, row: &Row<'_>, decimals: &mut u8) -> Measurement {
        let value = match Cell::parse(row.cell(self.index)) {
            Cell::Number(number) => {
                *decimals = number.decimals().max(*decimals);
                number.value(self.exponent)
            }
            Cell::Missing => Value::Missing,
            Cell::Text(cell) => Value::Text(self.intern(cell)),
        };
        Measurement {
            value,
            unit: self.unit,
        }
    }

    fn intern(&mut self, cell: &[u8]) -> Text {
        match &self.text {
            Some(last) if last.as_bytes() == cell => last.clone(),
            _ => {
                let new = Text::from(text(cell));
                self.text = Some(new.clone());
                new
            }
        }
    }
}

/// Whether these columns hold the same cells as in the row before.
fn repeat(columns: &[Column], row: &Row<'_>) -> bool {
    let (Some(first), Some(last)) = (columns.first(), columns.last()) else {
        return false;
    };
    // ncu prints its columns sorted, so that most chunks of sorted columns lie in one stretch.
    if last.index.checked_sub(first.index) == Some(columns.len() - 1) {
        return row.repeats(first.index, last.index);
    }
    columns.iter().all(|column| row.repeats_cell(column.index))
}
