//! Reader of the CSV pages that `ncu --csv` prints, `raw` and `details`.
//!
//! The raw page is wide: a header, a row of units, then a row a launch. The details page is long:
//! a row a metric, and rows of rules. Both may stand between lines of ncu and of the program.

mod cell;
mod kernel_name;
mod lines;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ::csv::{ByteRecord, ReaderBuilder};

pub use super::agree::{Disagreement, agree};
use super::error::{ReadError, describe};
use super::metrics::CHUNK;
use super::{Kernel, Label, Launch, Measurement, Metrics, Recording, ResultKind, Rounding, Value};
use crate::metric::Unit;
use crate::metric::decimal_scale;
use cell::{Cell, Number};
use lines::{Region, Table};

/// Section under which the details page lists counters that were asked for by name.
const ASKED_METRICS: &str = "Command line profiler metrics";

/// What ncu prints in decimals where a page shows none: two in base units.
const USUAL_DECIMALS: u8 = 2;

/// Reads a raw or a details page, whichever the header says, out of the console output of `ncu`.
///
/// Values are converted to base units by the page's own units; a value in a unit that is not known
/// keeps its printed number and gets [`Unit::Unknown`].
///
/// # Errors
/// [`ReadError::NoKernels`] where ncu says that nothing was profiled, [`ReadError::NoHeader`] where
/// there is no CSV, [`ReadError::Csv`] with the line for a truncated or corrupt page.
pub fn read(bytes: &[u8]) -> Result<Recording, ReadError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let tables = lines::tables(bytes)?;
    let mut reading = Reading::default();
    for table in &tables {
        let header = Header::read(&table.header)?;
        match header.details {
            Some(details) => reading.details_page(&header, details, table)?,
            None => reading.raw_page(&header, table)?,
        }
    }
    if reading.launches.is_empty() {
        return Err(nothing(bytes, tables.first()));
    }
    Ok(reading.finish())
}

/// Why there is no launch in the text.
fn nothing(bytes: &[u8], table: Option<&Table<'_>>) -> ReadError {
    let text = String::from_utf8_lossy(bytes);
    if let Some((_, after)) = text.split_once("==WARNING== No kernels were profiled") {
        // A numbered list: `1. k1`.
        let available = after
            .lines()
            .filter_map(|line| line.trim().split_once(". "))
            .filter(|(number, _)| number.parse::<u32>().is_ok())
            .map(|(_, kernel)| kernel.to_owned())
            .collect();
        return ReadError::NoKernels { available };
    }
    let messages = text
        .lines()
        .filter_map(|line| line.split_once("==ERROR== "))
        .map(|(_, message)| message.trim_end().to_owned())
        .collect();
    match table {
        Some(table) => ReadError::NoRows {
            line: table.header.line,
            messages,
        },
        None => ReadError::NoHeader {
            found: describe(bytes),
            messages,
        },
    }
}

/// Where the columns of a page lie.
struct Header {
    cells: Vec<String>,
    line: u64,
    process_id: usize,
    kernel: usize,
    context: Option<usize>,
    stream: Option<usize>,
    block: Option<usize>,
    grid: Option<usize>,
    device: Option<usize>,
    details: Option<DetailColumns>,
}

/// The columns that only the details page has.
#[derive(Clone, Copy)]
struct DetailColumns {
    section: usize,
    name: usize,
    unit: usize,
    value: usize,
}

impl Header {
    fn read(region: &Region<'_>) -> Result<Header, ReadError> {
        let mut cells = Vec::new();
        for_each_record(region, |_, record, _| {
            cells = record.iter().map(text).collect();
            Ok(())
        })?;
        let line = region.line;
        let find = |name: &str| cells.iter().position(|cell| cell == name);
        let need = |name: &str| {
            find(name).ok_or_else(|| ReadError::csv(line, format!("the header has no {name:?}")))
        };
        let details = match find("Section Name") {
            Some(section) => Some(DetailColumns {
                section,
                name: need("Metric Name")?,
                unit: need("Metric Unit")?,
                value: need("Metric Value")?,
            }),
            None => None,
        };
        Ok(Header {
            line,
            process_id: need("Process ID")?,
            kernel: need("Kernel Name")?,
            context: find("Context"),
            stream: find("Stream"),
            block: find("Block Size"),
            grid: find("Grid Size"),
            device: find("Device"),
            details,
            cells,
        })
    }

    /// The last column that describes the launch; metrics and sections follow.
    fn last_leading(&self) -> usize {
        let leading = [
            self.context,
            self.stream,
            self.block,
            self.grid,
            self.device,
        ];
        let compute_capability = self.cells.iter().position(|cell| cell == "CC");
        leading
            .into_iter()
            .chain([compute_capability, Some(self.kernel)])
            .flatten()
            .max()
            .unwrap_or(self.kernel)
    }

    /// A launch without its metrics.
    fn launch(&self, record: &ByteRecord, line: u64) -> Result<Launch, ReadError> {
        let cell = |column: usize| record.get(column).unwrap_or_default();
        let signature = text(cell(self.kernel));
        let function = kernel_name::function_name(&signature).to_owned();
        let size = |column: Option<usize>, what: &str| match column {
            Some(column) => dimensions(cell(column)).ok_or_else(|| {
                let found = text(cell(column));
                ReadError::csv(
                    line,
                    format!("expected the {what} as (x, y, z), found {found:?}"),
                )
            }),
            None => Ok([0; 3]),
        };
        let ordinal = |column: Option<usize>| number_u32(cell(column?));
        Ok(Launch {
            kind: match signature.as_str() {
                // ncu's own names of these results; a kernel's signature has parentheses.
                "graph" => ResultKind::Graph,
                "range" => ResultKind::Range,
                _ => ResultKind::Kernel,
            },
            kernel: Kernel {
                function,
                mangled: None,
                demangled: Some(signature),
            },
            grid: size(self.grid, "grid size")?,
            block: size(self.block, "block size")?,
            process_id: number_u32(cell(self.process_id)),
            device: ordinal(self.device),
            context: ordinal(self.context),
            stream: ordinal(self.stream),
            clock_locked: None,
            metrics: Metrics::new(),
            labels: Vec::new(),
        })
    }
}

/// What is read so far.
#[derive(Default)]
struct Reading {
    launches: Vec<Launch>,
    /// Most decimals of any number on the pages.
    decimals: u8,
    /// Power of ten of each counter in a scaled unit.
    exponents: BTreeMap<Arc<str>, i8>,
}

/// A counter's column of the raw page.
struct Column {
    index: usize,
    name: Arc<str>,
    unit: Unit,
    exponent: i8,
    /// The last text of the column: device attributes repeat in every row.
    text: Option<Arc<str>>,
}

impl Reading {
    fn finish(self) -> Recording {
        let decimals = if self.decimals == 0 {
            USUAL_DECIMALS
        } else {
            self.decimals
        };
        let half_step = |exponent: i8| 0.5 * 10_f64.powi(i32::from(exponent) - i32::from(decimals));
        Recording {
            launches: self.launches,
            rounding: Rounding {
                unscaled: half_step(0),
                scaled: self
                    .exponents
                    .into_iter()
                    .map(|(name, exponent)| (name, half_step(exponent)))
                    .collect(),
            },
            ..Recording::default()
        }
    }

    fn raw_page(&mut self, header: &Header, table: &Table<'_>) -> Result<(), ReadError> {
        let mut columns: Vec<Column> = (header.last_leading() + 1..header.cells.len())
            .map(|index| Column {
                index,
                name: Arc::from(header.cells[index].as_str()),
                unit: Unit::Unknown,
                exponent: 0,
                text: None,
            })
            .collect();
        columns.sort_by(|a, b| a.name.cmp(&b.name));
        columns.dedup_by(|a, b| a.name == b.name);
        let names: Arc<[Arc<str>]> = columns
            .iter()
            .map(|column| Arc::clone(&column.name))
            .collect();
        let width = header.cells.len();
        let mut units_seen = false;
        for region in &table.rows {
            // A cell takes two bytes at least and four on average, so this is no more than rows
            // of the page's width can fill.
            self.launches.reserve(region.bytes.len() / (4 * width));
            // Whether the record before is the launch before.
            let mut repeats = false;
            for_each_record(region, |line, record, before| {
                if record.len() != width {
                    repeats = false;
                    return foreign_or_truncated(record, width, header, line);
                }
                if !units_seen {
                    units_seen = true;
                    if record.get(0) != Some(b"") {
                        return Err(ReadError::csv(
                            line,
                            "expected the row of units below the header, found a launch",
                        ));
                    }
                    self.units_row(record, &mut columns);
                    return Ok(());
                }
                let before = self
                    .launches
                    .last()
                    .filter(|_| repeats)
                    .map(|launch| (before, launch));
                let mut launch = match before {
                    // All but the ID.
                    Some((cells, launch)) if same(record, cells, 1, header.last_leading()) => {
                        Launch {
                            kernel: launch.kernel.clone(),
                            metrics: Metrics::new(),
                            labels: Vec::new(),
                            ..*launch
                        }
                    }
                    _ => header.launch(record, line)?,
                };
                let decimals = &mut self.decimals;
                let chunks = columns
                    .chunks_mut(CHUNK)
                    .enumerate()
                    .map(|(index, columns)| {
                        match before {
                            Some((cells, launch)) if columns_repeat(columns, record, cells) => {
                                launch.metrics.chunks().get(index).map(Arc::clone)
                            }
                            _ => None,
                        }
                        .unwrap_or_else(|| {
                            columns
                                .iter_mut()
                                .map(|column| column.measurement(record, decimals))
                                .collect()
                        })
                    })
                    .collect();
                launch.metrics = Metrics::from_chunks(Arc::clone(&names), chunks);
                self.launches.push(launch);
                repeats = true;
                Ok(())
            })?;
        }
        Ok(())
    }

    fn units_row(&mut self, record: &ByteRecord, columns: &mut [Column]) {
        for column in columns {
            let symbol = text(record.get(column.index).unwrap_or_default());
            if let Some((exponent, base)) = decimal_scale(&symbol) {
                column.unit = Unit::Known(base);
                column.exponent = exponent;
                self.scaled(&column.name, exponent);
            }
        }
    }

    fn details_page(
        &mut self,
        header: &Header,
        columns: DetailColumns,
        table: &Table<'_>,
    ) -> Result<(), ReadError> {
        // Rows of a section have fewer cells than a header with the columns of the rules.
        let (least, most) = (columns.value + 1, header.cells.len());
        let mut names: HashMap<Vec<u8>, Arc<str>> = HashMap::new();
        let mut metrics: Vec<BTreeMap<Arc<str>, Measurement>> = Vec::new();
        let first = self.launches.len();
        let mut launch_of: HashMap<(Vec<u8>, Vec<u8>), usize> = HashMap::new();
        for region in &table.rows {
            for_each_record(region, |line, record, _| {
                if record.len() < least || record.len() > most {
                    return foreign_or_truncated(record, most, header, line);
                }
                let cell = |column: usize| record.get(column).unwrap_or_default();
                let key = (cell(0).to_vec(), cell(header.process_id).to_vec());
                let index = match launch_of.get(&key) {
                    Some(&index) => index,
                    None => {
                        self.launches.push(header.launch(record, line)?);
                        metrics.push(BTreeMap::new());
                        launch_of.insert(key, metrics.len() - 1);
                        metrics.len() - 1
                    }
                };
                let metric = cell(columns.name);
                // The row of a rule.
                if metric.is_empty() {
                    return Ok(());
                }
                let symbol = text(cell(columns.unit));
                let (exponent, unit) = match decimal_scale(&symbol) {
                    Some((exponent, base)) => (exponent, Unit::Known(base)),
                    None => (0, Unit::Unknown),
                };
                let value = match Cell::parse(cell(columns.value)) {
                    Cell::Number(number) => self.number(number, exponent),
                    Cell::Missing => Value::Missing,
                    Cell::Text(cell) => Value::Text(text(cell).into()),
                };
                // An empty unit beside `n/a` says nothing about the unit.
                let unit = if value == Value::Missing && symbol.is_empty() {
                    Unit::Unknown
                } else {
                    unit
                };
                let measurement = Measurement { value, unit };
                let section = text(cell(columns.section));
                let is_counter =
                    section == ASKED_METRICS || metric.windows(2).any(|pair| pair == b"__");
                if is_counter {
                    let name = match names.get(metric) {
                        Some(name) => Arc::clone(name),
                        None => {
                            let name: Arc<str> = text(metric).into();
                            names.insert(metric.to_vec(), Arc::clone(&name));
                            name
                        }
                    };
                    self.scaled(&name, exponent);
                    metrics[index].insert(name, measurement);
                } else {
                    let name = text(metric);
                    self.launches[first + index].labels.push(Label {
                        section,
                        name,
                        measurement,
                    });
                }
                Ok(())
            })?;
        }
        for (launch, metrics) in self.launches.iter_mut().skip(first).zip(metrics) {
            launch.metrics = metrics.into();
        }
        Ok(())
    }

    fn number(&mut self, number: Number, exponent: i8) -> Value {
        self.decimals = self.decimals.max(number.decimals());
        number.value(exponent)
    }

    /// Remembers the coarsest scale of a counter: the details page may scale each launch anew.
    fn scaled(&mut self, name: &Arc<str>, exponent: i8) {
        if exponent == 0 {
            return;
        }
        let coarsest = self.exponents.entry(Arc::clone(name)).or_insert(exponent);
        *coarsest = exponent.max(*coarsest);
    }
}

impl Column {
    #[inline]
    fn measurement(&mut self, record: &ByteRecord, decimals: &mut u8) -> Measurement {
        let value = match Cell::parse(record.get(self.index).unwrap_or_default()) {
            Cell::Number(number) => {
                *decimals = number.decimals().max(*decimals);
                number.value(self.exponent)
            }
            Cell::Missing => Value::Missing,
            Cell::Text(cell) => Value::Text(self.intern(cell)),
        };
        Measurement {
            value,
            unit: self.unit.clone(),
        }
    }

    fn intern(&mut self, cell: &[u8]) -> Arc<str> {
        match &self.text {
            Some(last) if last.as_bytes() == cell => Arc::clone(last),
            _ => {
                let new: Arc<str> = text(cell).into();
                self.text = Some(Arc::clone(&new));
                new
            }
        }
    }
}

/// A record with another count of cells than the header: a line of the program if it has fewer
/// than every row begins with, otherwise a row that lost some.
fn foreign_or_truncated(
    record: &ByteRecord,
    width: usize,
    header: &Header,
    line: u64,
) -> Result<(), ReadError> {
    if record.len() <= header.last_leading() {
        return Ok(());
    }
    Err(ReadError::csv(
        line,
        format!(
            "the row has {} cells, the header on line {} has {width}",
            record.len(),
            header.line
        ),
    ))
}

/// Whether these columns hold the same cells in both records.
fn columns_repeat(columns: &[Column], record: &ByteRecord, before: &ByteRecord) -> bool {
    let (Some(first), Some(last)) = (columns.first(), columns.last()) else {
        return false;
    };
    // ncu prints its columns sorted, so that most chunks of sorted columns lie in one stretch.
    if last.index.checked_sub(first.index) == Some(columns.len() - 1) {
        return same(record, before, first.index, last.index);
    }
    columns
        .iter()
        .all(|column| record.get(column.index) == before.get(column.index))
}

/// Whether the cells from `first` to `last` are the same in both records.
fn same(record: &ByteRecord, before: &ByteRecord, first: usize, last: usize) -> bool {
    let stretch = |record: &ByteRecord| Some(record.range(first)?.start..record.range(last)?.end);
    let (Some(ours), Some(theirs)) = (stretch(record), stretch(before)) else {
        return false;
    };
    record.as_slice().get(ours.clone()) == before.as_slice().get(theirs.clone())
        && (first..last).all(|index| match (record.range(index), before.range(index)) {
            (Some(a), Some(b)) => a.end - ours.start == b.end - theirs.start,
            _ => false,
        })
}

/// Hands each record of a region and the line it begins on to `each`, with the record before it.
fn for_each_record(
    region: &Region<'_>,
    mut each: impl FnMut(u64, &ByteRecord, &ByteRecord) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .buffer_capacity(1 << 15)
        .from_reader(region.bytes);
    let (mut record, mut before) = (ByteRecord::new(), ByteRecord::new());
    loop {
        let line = region.line + reader.position().line() - 1;
        match reader.read_byte_record(&mut record) {
            Ok(true) => each(line, &record, &before)?,
            Ok(false) => return Ok(()),
            Err(error) => return Err(ReadError::csv(line, error.to_string())),
        }
        std::mem::swap(&mut record, &mut before);
    }
}

fn text(cell: &[u8]) -> String {
    String::from_utf8_lossy(cell).into_owned()
}

fn number_u32(cell: &[u8]) -> Option<u32> {
    match Cell::parse(cell) {
        Cell::Number(number) => match number.value(0) {
            Value::Integer(number) => u32::try_from(number).ok(),
            _ => None,
        },
        _ => None,
    }
}

/// `(16384, 1, 1)`.
fn dimensions(cell: &[u8]) -> Option<[u64; 3]> {
    let inner = cell.trim_ascii().strip_prefix(b"(")?.strip_suffix(b")")?;
    let mut parts = std::str::from_utf8(inner)
        .ok()?
        .split(',')
        .map(|part| part.trim().parse().ok());
    let size = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(size)
}
