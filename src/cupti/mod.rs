//! Kernel times without ncu and without a right to the counters: the program runs with a library
//! injected that has NVIDIA's CUPTI record when each kernel began and ended.
//!
//! What is measured is the program as it runs: launches follow each other as it makes them, with
//! caches as the launch before left them. ncu lets each launch run alone, and flushes the caches
//! first unless it is told otherwise, so the two differ where that matters.

mod library;
mod records;
mod select;
mod session;

pub use library::Recorder;
pub use records::{Incomplete, KernelCapture, KernelRecord, MAGIC, ProcessRecords, read};
pub use session::record;
