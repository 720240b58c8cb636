//! The header of a page, and the leading cells of a row, which describe the launch.

use std::sync::Arc;

use super::cell::{number_u64, text};
use super::row::{OtherRows, Row, for_each_row};
use super::tables::Region;
use crate::error::ReadError;
use crate::function_name::function_name;
use crate::launch::{Kernel, Launch, ResultKind};
use crate::metrics::Metrics;

/// The columns that may precede the first metric, after the kernel name.
const LEADING: [&str; 6] = [
    "Context", "Stream", "Block Size", "Grid Size", "Device", "CC",
];

/// The columns of a page, by index.
pub(super) struct Header {
    /// The names of all columns.
    pub(super) cells: Vec<String>,
    line: u64,
    pub(super) process_id: usize,
    kernel: usize,
    /// Those of [`LEADING`].
    leading: [Option<usize>; 6],
    /// The columns of a details page; `None` for a raw page.
    pub(super) details: Option<DetailColumns>,
    /// The last column that describes the launch. Metrics or sections follow.
    pub(super) last_leading: usize,
}

/// The columns that only the details page has.
#[derive(Clone, Copy)]
pub(super) struct DetailColumns {
    pub(super) section: usize,
    pub(super) name: usize,
    pub(super) unit: usize,
    pub(super) value: usize,
}

impl Header {
    pub(super) fn read(region: &Region<'_>, others: &mut OtherRows) -> Result<Header, ReadError> {
        let mut cells = Vec::new();
        for_each_row(region, others, |row| {
            cells = row.cells().map(text).collect();
            Ok(())
        })?;
        let line = region.line;
        let find = |name: &str| cells.iter().position(|cell| cell == name);
        let need = |name: &str| {
            find(name).ok_or_else(|| ReadError::line(line, format!("the header has no {name:?}")))
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
        let (kernel, leading) = (need("Kernel Name")?, LEADING.map(find));
        Ok(Header {
            line,
            process_id: need("Process ID")?,
            kernel,
            leading,
            details,
            last_leading: leading.into_iter().flatten().fold(kernel, usize::max),
            cells,
        })
    }

    /// A row with another number of cells than `width`.
    pub(super) fn reject(&self, row: &Row<'_, '_>, width: usize) -> Result<(), ReadError> {
        let (cells, line) = (row.len(), self.line);
        let problem = match row.is_unterminated || row.ends_in_comma {
            true => "the row that begins here is truncated".to_owned(),
            false => format!("the row has {cells} cells, the header on line {line} has {width}"),
        };
        Err(ReadError::line(row.line(), problem))
    }

    /// The cells that name the process of a row: its ID, its name, its host.
    pub(super) fn process<'r>(&self, row: &'r Row<'_, '_>) -> [&'r [u8]; 3] {
        let first = self.process_id;
        [first, first + 1, first + 2].map(|column| row.cell(column))
    }

    /// A launch without its metrics.
    pub(super) fn launch(&self, row: &Row<'_, '_>) -> Result<Launch, ReadError> {
        let signature = text(row.cell(self.kernel));
        let [context, stream, block, grid, device, chip] = self.leading;
        let ordinal = |column: Option<usize>| u32::try_from(number_u64(row.cell(column?))?).ok();
        Ok(Launch {
            kind: match signature.as_str() {
                // ncu's names of these results; the signature of a kernel has parentheses.
                "graph" => ResultKind::Graph,
                "range" => ResultKind::Range,
                _ => ResultKind::Kernel,
            },
            kernel: Arc::new(Kernel {
                function: function_name(&signature).to_owned(),
                mangled: None,
                demangled: Some(signature),
            }),
            grid: size(row, grid, "grid size")?,
            block: size(row, block, "block size")?,
            process_id: ordinal(Some(self.process_id)),
            device: ordinal(device),
            context: ordinal(context),
            stream: ordinal(stream),
            clock_locked: None,
            compute_capability: chip.and_then(|column| compute_capability(row.cell(column))),
            metrics: Metrics::default(),
            labels: Vec::new(),
        })
    }
}

fn size(row: &Row<'_, '_>, column: Option<usize>, what: &str) -> Result<[u64; 3], ReadError> {
    let Some(column) = column else {
        return Ok([0; 3]);
    };
    dimensions(row.cell(column)).ok_or_else(|| {
        let found = text(row.cell(column));
        ReadError::line(
            row.line(),
            format!("expected the {what} as (x, y, z), found {found:?}"),
        )
    })
}

/// Parses `(16384, 1, 1)`.
fn dimensions(cell: &[u8]) -> Option<[u64; 3]> {
    let inner = cell.trim_ascii().strip_prefix(b"(")?.strip_suffix(b")")?;
    let mut parts = std::str::from_utf8(inner)
        .ok()?
        .split(',')
        .map(|part| part.trim().parse().ok());
    let size = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(size)
}

/// Parses `9.0`.
fn compute_capability(cell: &[u8]) -> Option<(u64, u64)> {
    let (major, minor) = std::str::from_utf8(cell).ok()?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
