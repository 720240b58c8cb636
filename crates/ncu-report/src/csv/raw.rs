//! The raw page: a row of units, then a row a launch with a column a counter.

use std::sync::Arc;

use super::cell::Cell;
use super::lines::Table;
use super::row::{Row, for_each_row};
use super::{Header, Reading, text};
use crate::counter::{Unit, decimal_scale};
use crate::metrics::CHUNK;
use crate::{Launch, Measurement, Metrics, ReadError, Text, Value};

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
    let mut recent = vec![Recent::default(); columns.len().div_ceil(CHUNK)];
    let mut units_seen = false;
    let mut head_before = None;
    for region in &table.rows {
        // A cell takes four bytes or so, hence this is about as many rows as the region can hold.
        reading.launches.reserve(region.bytes.len() / (4 * width));
        for_each_row(region, |row| {
            if row.len() != width || row.ends_in_comma {
                return header.refuse_unless_foreign(&row, width);
            }
            if !units_seen {
                units_seen = true;
                return read_units(&row, &mut columns, reading);
            }
            // All but the ID.
            let head = row.stretch(1, header.last_leading);
            let mut launch = match reading.launches.last() {
                Some(before) if head.is_some() && head == head_before => Launch {
                    kernel: before.kernel.clone(),
                    metrics: Metrics::new(),
                    labels: Vec::new(),
                    source: None,
                    ..*before
                },
                _ => header.launch(&row)?,
            };
            head_before = head;
            let decimals = &mut reading.decimals;
            let chunks = columns
                .chunks_mut(CHUNK)
                .zip(&mut recent)
                .map(|(columns, recent)| {
                    let cells = stretch(columns, &row);
                    recent.find(cells).unwrap_or_else(|| {
                        let chunk: Chunk = columns
                            .iter_mut()
                            .map(|column| column.measurement(&row, decimals))
                            .collect();
                        recent.keep(cells, &chunk);
                        chunk
                    })
                });
            launch.metrics = Metrics::from_chunks(Arc::clone(&names), chunks.collect());
            reading.launches.push(launch);
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
    row: &Row<'_, '_>,
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
    fn measurement(&mut self, row: &Row<'_, '_>, decimals: &mut u8) -> Measurement {
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

/// The text that holds the cells of these columns and nothing else.
fn stretch<'a>(columns: &[Column], row: &Row<'a, '_>) -> Option<&'a [u8]> {
    let (first, last) = (columns.first()?, columns.last()?);
    // ncu prints its columns sorted, so that these lie side by side; a page of another hand may not.
    let mut neighbours = columns.windows(2);
    let side_by_side = neighbours.all(|pair| pair[1].index == pair[0].index + 1);
    side_by_side.then(|| row.stretch(first.index, last.index))?
}

type Chunk = Arc<[Measurement]>;

/// How many rows a chunk may be shared with: programs launch a few kernels in turn.
const RECENT: usize = 8;

/// What a chunk's columns held lately, and the text that said so.
#[derive(Clone, Default)]
struct Recent<'a> {
    chunks: Vec<(&'a [u8], Chunk)>,
    /// The place to be given up next.
    oldest: usize,
}

impl<'a> Recent<'a> {
    fn find(&self, cells: Option<&'a [u8]>) -> Option<Chunk> {
        let cells = cells?;
        let (_, chunk) = self.chunks.iter().find(|(text, _)| *text == cells)?;
        Some(Arc::clone(chunk))
    }

    fn keep(&mut self, cells: Option<&'a [u8]>, chunk: &Chunk) {
        let Some(cells) = cells else {
            return;
        };
        let entry = (cells, Arc::clone(chunk));
        match self.chunks.get_mut(self.oldest) {
            Some(place) => *place = entry,
            None => self.chunks.push(entry),
        }
        self.oldest = (self.oldest + 1) % RECENT;
    }
}
