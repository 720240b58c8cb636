//! The raw page: a row of units, then one row for each launch with one column for each metric.

use std::sync::Arc;

use super::cell::{Cell, text};
use super::header::Header;
use super::numbers::Numbers;
use super::reading::Reading;
use super::row::{OtherRows, Row, for_each_row};
use super::tables::Table;
use crate::catalog::{Unit, decimal_scale};
use crate::error::ReadError;
use crate::launch::Launch;
use crate::metrics::{CHUNK, Metrics};
use crate::value::{Measurement, Value};

/// A page that is being read.
struct Page<'a, 'p> {
    header: &'p Header,
    reading: &'p mut Reading,
    /// Sorted by name.
    columns: Vec<Column>,
    /// The names of the columns.
    names: Arc<[Arc<str>]>,
    /// The values that each chunk of columns had in the last rows.
    recent: Vec<Recent<'a>>,
    units_were_read: bool,
    /// The leading cells of the row before, without the ID.
    head: Option<&'a [u8]>,
}

/// Memory of the name of a column without its letters, of a text without them, and of a chunk
/// without its values, in bytes.
const NAME: usize = 64;
pub(super) const TEXT: usize = 96;
const CHUNK_HEAD: usize = 32;

/// The column of a metric.
struct Column {
    index: usize,
    name: Arc<str>,
    unit: Unit,
    /// Power of ten by which the unit was scaled.
    exponent: i8,
    /// The last text of the column: device attributes are the same in every row.
    text: Option<Arc<String>>,
}

/// Reads the launches of a page into `reading`.
pub(super) fn read<'a>(
    header: &Header,
    table: &Table<'a>,
    reading: &mut Reading,
    others: &mut OtherRows,
) -> Result<(), ReadError> {
    let columns = columns(header);
    let letters = columns.iter().map(|column| column.name.len());
    let names = letters.fold(0_usize, |sum, letters| {
        sum.saturating_add(letters).saturating_add(NAME)
    });
    reading.take(names, || table.header.line)?;
    let names = columns.iter().map(|column| Arc::clone(&column.name));
    let mut page: Page<'a, '_> = Page {
        header,
        reading,
        names: names.collect(),
        recent: vec![Recent::default(); columns.len().div_ceil(CHUNK)],
        columns,
        units_were_read: false,
        head: None,
    };
    let width = header.cells.len();
    for region in &table.rows {
        for_each_row(region, others, |row| {
            if row.len() != width || row.ends_in_comma {
                return header.reject(&row, width);
            }
            // Several ncu that share a console may print their headers first, then their units.
            if page.units_were_read && !row.cell(0).is_empty() {
                page.add(&row)
            } else {
                page.units_were_read = true;
                page.read_units(&row)
            }
        })?;
    }
    Ok(())
}

/// The columns of the metrics, sorted by name.
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

impl<'a> Page<'a, '_> {
    fn read_units(&mut self, row: &Row<'a, '_>) -> Result<(), ReadError> {
        if !row.cell(0).is_empty() {
            return Err(ReadError::line(
                row.line(),
                "expected the row of units after the header, found a launch",
            ));
        }
        for column in &mut self.columns {
            if let Some((exponent, base)) = decimal_scale(&text(row.cell(column.index))) {
                column.unit = Unit::Known(base);
                column.exponent = exponent;
                self.reading.note_scale(&column.name, exponent);
            }
        }
        Ok(())
    }

    fn add(&mut self, row: &Row<'a, '_>) -> Result<(), ReadError> {
        row.in_one_line()?;
        let mut launch = self.launch(row)?;
        self.reading.see_launch(self.header, row)?;
        let mut memory = self.recent.len().saturating_mul(size_of::<Chunk>());
        launch.metrics = self.metrics(row, &mut memory);
        self.reading.take(memory, || row.line())?;
        self.reading.push(launch, row)
    }

    /// A launch without its metrics. Most rows have the leading cells of the row before.
    fn launch(&mut self, row: &Row<'a, '_>) -> Result<Launch, ReadError> {
        let head = row.stretch(1, self.header.last_leading);
        let launch = match self.reading.launches.last() {
            Some(before) if head.is_some() && head == self.head => Launch {
                kernel: before.kernel.clone(),
                metrics: Metrics::default(),
                labels: Vec::new(),
                ..*before
            },
            _ => self.header.launch(row)?,
        };
        self.head = head;
        Ok(launch)
    }

    #[inline]
    fn metrics(&mut self, row: &Row<'a, '_>, memory: &mut usize) -> Metrics {
        let numbers = &mut self.reading.numbers;
        let chunks =
            self.columns
                .chunks_mut(CHUNK)
                .zip(&mut self.recent)
                .map(|(columns, recent)| {
                    let cells = stretch(columns, row);
                    recent.find(cells).unwrap_or_else(|| {
                        let chunk: Chunk = columns
                            .iter_mut()
                            .map(|column| column.measurement(row, numbers, memory))
                            .collect();
                        *memory = memory
                            .saturating_add(size_of_val(&*chunk))
                            .saturating_add(CHUNK_HEAD);
                        recent.keep(cells, &chunk);
                        chunk
                    })
                });
        Metrics::from_chunks(Arc::clone(&self.names), chunks.collect())
    }
}

impl Column {
    #[inline]
    fn measurement(
        &mut self,
        row: &Row<'_, '_>,
        numbers: &mut Numbers,
        memory: &mut usize,
    ) -> Measurement {
        let cell = row.cell(self.index);
        let value = match numbers.parse(&self.name, cell, || row.line()) {
            Cell::Number(number) => number.value(self.exponent),
            Cell::Missing => Value::Missing,
            Cell::Text(cell) => Value::Text(self.intern(cell, memory)),
        };
        Measurement {
            value,
            unit: self.unit,
        }
    }

    /// The text of a cell, which takes `memory` if it is a new one.
    fn intern(&mut self, cell: &[u8], memory: &mut usize) -> Arc<String> {
        match &self.text {
            Some(last) if last.as_bytes() == cell => last.clone(),
            _ => {
                let text = text(cell);
                *memory = memory.saturating_add(text.len()).saturating_add(TEXT);
                let new = Arc::new(text);
                self.text = Some(new.clone());
                new
            }
        }
    }
}

/// The text with the cells of these columns and no other cell.
fn stretch<'a>(columns: &[Column], row: &Row<'a, '_>) -> Option<&'a [u8]> {
    let (first, last) = (columns.first()?, columns.last()?);
    // ncu sorts its columns, so these are adjacent. In a page of another origin they may not be.
    let mut neighbours = columns.windows(2);
    let adjacent = neighbours.all(|pair| pair[1].index == pair[0].index + 1);
    adjacent.then(|| row.stretch(first.index, last.index))?
}

type Chunk = Arc<[Measurement]>;

/// The number of rows that a chunk may be shared with: programs launch a few kernels in turn.
const RECENT: usize = 8;

/// The values that a chunk of columns had in the last rows, and their text.
#[derive(Clone, Default)]
struct Recent<'a> {
    chunks: Vec<(&'a [u8], Chunk)>,
    /// The index that is replaced next.
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
