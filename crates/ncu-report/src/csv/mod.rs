//! Reader of the CSV pages that `ncu --csv` prints, `raw` and `details`.
//!
//! The raw page is wide: a header, a row of units, then a row a launch. The details page is long:
//! a row a metric, and rows of rules. Both may stand between lines of ncu and of the program.

mod cell;
mod details;
mod lines;
mod raw;
mod row;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use super::agree::{Disagreement, agree};
use super::error::{ReadError, describe};
use super::{Kernel, Launch, Metrics, Recording, ResultKind, Rounding, Value};
use cell::Cell;
use lines::{Region, Table};
use row::{Row, for_each_row};

/// What ncu prints in decimals where a page shows none: two in base units.
const USUAL_DECIMALS: u8 = 2;

/// Reads a raw or a details page, whichever the header says, out of the console output of `ncu`.
///
/// Values are converted to base units by the page's own units; a value in a unit that is not known
/// keeps its printed number and gets [`Unit::Unknown`](crate::counter::Unit::Unknown).
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
            Some(columns) => details::read(&header, columns, table, &mut reading)?,
            None => raw::read(&header, table, &mut reading)?,
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
    compute_capability: Option<usize>,
    details: Option<DetailColumns>,
    /// The last column that describes the launch; metrics and sections follow.
    last_leading: usize,
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
        for_each_row(region, |row| {
            cells = row.cells().map(text).collect();
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
        let kernel = need("Kernel Name")?;
        let leading = [
            "Context",
            "Stream",
            "Block Size",
            "Grid Size",
            "Device",
            "CC",
        ];
        let last_leading = leading
            .iter()
            .filter_map(|name| find(name))
            .fold(kernel, usize::max);
        Ok(Header {
            line,
            process_id: need("Process ID")?,
            kernel,
            context: find("Context"),
            stream: find("Stream"),
            block: find("Block Size"),
            grid: find("Grid Size"),
            device: find("Device"),
            compute_capability: find("CC"),
            details,
            last_leading,
            cells,
        })
    }

    /// Judges a record with another count of cells than `width`: a line of the program if it has
    /// fewer than every row begins with, otherwise a row that lost some.
    fn refuse_unless_foreign(&self, row: &Row<'_, '_>, width: usize) -> Result<(), ReadError> {
        let cells = row.len();
        if cells <= self.last_leading && !row.is_unterminated {
            return Ok(());
        }
        if row.is_unterminated {
            return Err(ReadError::csv(
                row.line(),
                "the row that begins here is cut off",
            ));
        }
        Err(ReadError::csv(
            row.line(),
            format!(
                "the row has {cells} cells, the header on line {} has {width}",
                self.line
            ),
        ))
    }

    /// A launch without its metrics.
    fn launch(&self, row: &Row<'_, '_>) -> Result<Launch, ReadError> {
        let cell = |column: usize| row.cell(column);
        let signature = text(cell(self.kernel));
        let function = crate::function_name::function_name(&signature).to_owned();
        let size = |column: Option<usize>, what: &str| match column {
            Some(column) => dimensions(cell(column)).ok_or_else(|| {
                let found = text(cell(column));
                ReadError::csv(
                    row.line(),
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
            compute_capability: self
                .compute_capability
                .and_then(|column| compute_capability(cell(column))),
            metrics: Metrics::new(),
            labels: Vec::new(),
            source: None,
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

    /// Remembers the coarsest scale of a counter: the details page may scale each launch anew.
    fn note_scale(&mut self, name: &Arc<str>, exponent: i8) {
        if exponent == 0 {
            return;
        }
        let coarsest = self.exponents.entry(Arc::clone(name)).or_insert(exponent);
        *coarsest = exponent.max(*coarsest);
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

/// `9.0`.
fn compute_capability(cell: &[u8]) -> Option<(u64, u64)> {
    let (major, minor) = std::str::from_utf8(cell).ok()?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
