//! Reads the files of NVIDIA Nsight Compute (`ncu`) without NVIDIA's software: the binary
//! `.ncu-rep` report, and the CSV pages that `ncu --csv` prints.
//!
//! [`read`] and [`read_file`] choose the reader by content; [`report::read`] decodes a report at
//! full precision, [`csv::read`] reads a page. All return a [`Recording`]: the profiled launches,
//! each with the names of its kernel, its grid and block, and its metrics with units.
//!
//! A report also contains the machine code that ran ([`report::machine_code`]). [`agree`] compares
//! a report with a page of the same run.
//! [`report::strip`] makes a copy of a report that can be published.
//!
//! No file is trusted: each length is checked before it is used, and each error states the byte
//! offset or the line.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod agree;
mod catalog;
pub mod csv;
mod describe;
mod error;
mod function_name;
mod input;
mod launch;
mod limits;
mod mangled_name;
mod metrics;
mod recording;
pub mod report;
mod rounding;
mod strip;
mod value;

pub use agree::agree;
pub use catalog::{Chip, Existence, Symbol, Unit, exists, nearest, unit_of};
pub use error::ReadError;
pub use function_name::function_name;
pub use input::{read, read_file};
pub use launch::{Kernel, Label, Launch, ResultKind};
pub use limits::MAX_FILE_SIZE;
pub use mangled_name::{base_name, placeless};
pub use metrics::Metrics;
pub use recording::Recording;
pub use rounding::Rounding;
pub use strip::Scrubber;
pub use value::{Measurement, Value};

/// The example in the README is compiled as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
