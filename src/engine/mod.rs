//! What measures the slices of a check. An engine renders the pipeline, the manifest or the script
//! that packs an archive, lets other machines measure its slices, and merges them. Slurm is also
//! driven from here ([`slurm::run`]), and so are the GPUs of this host ([`host::run`]).
//!
//! A new engine is a file with its constant, and a line of the table.

mod buildkite;
mod github;
mod gitlab;
pub mod host;
mod kubernetes;
pub mod slurm;
mod table;
mod task;

pub use table::{ENGINES, engine, engine_parser};
pub use task::{Engine, Task};
