//! What measures the slices of a check. An engine renders the pipeline, the manifest or the script
//! that packs an archive, lets other machines measure its slices, and judges them.
//!
//! A new engine is a template, and a row of the table.

mod table;
mod task;

pub use table::{ENGINES, engine, engine_parser};
pub use task::{Engine, Task};
