//! Reads what NVIDIA Nsight Compute (`ncu`) leaves: the binary `.ncu-rep` report and the pages
//! that `ncu --csv` prints. No software of NVIDIA is needed.
//!
//! [`report::read`] decodes a report at full precision, [`csv::read`] reads a page. Both return a
//! [`Recording`]: the profiled launches, each with its kernel names, grid, block and counters with
//! units. [`read`] chooses the reader by content. A report also holds what was counted and sampled
//! of single instructions ([`Launch::source`]) and the machine code that ran ([`report::Cubin`]).
//!
//! Nothing in a file is trusted: each length is checked before it is followed, and every error
//! names the byte or the line.

mod agree;
mod counter;
pub mod csv;
mod error;
mod function_name;
mod launch;
mod lines;
mod mangled_name;
mod metrics;
pub mod report;
mod rounding;
mod wire;

pub use agree::{Disagreement, agree};
pub use counter::{Chip, Existence, Symbol, Unit, exists, unit_of};
pub use error::ReadError;
pub use function_name::function_name;
pub use launch::{Kernel, Label, Launch, Measurement, Recording, ResultKind, Text, Value};
pub use lines::{Line, LineError, LineTable};
pub use mangled_name::{base_name, demangled, placeless};
pub use metrics::Metrics;
pub use rounding::Rounding;

/// Reads a report or a CSV page, whichever the bytes are.
///
/// # Errors
/// [`ReadError`], which says what is wrong and where.
pub fn read(bytes: &[u8]) -> Result<Recording, ReadError> {
    if bytes.starts_with(report::MAGIC) {
        report::read(bytes)
    } else {
        csv::read(bytes)
    }
}
