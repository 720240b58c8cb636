//! What one profiling run left, and the two readers of it.
//!
//! [`ncu_rep`] decodes the report file at full precision, [`csv`] reads the pages that
//! `ncu --csv` prints. Both give a [`Recording`].

pub mod csv;
mod launch;
pub mod ncu_rep;

pub use launch::{Kernel, Label, Launch, Measurement, Recording, ResultKind, Value};
