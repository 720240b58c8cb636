//! The GPUs of this host: one queue a GPU, which a process of this program measures.

mod run;
mod said;

pub use run::{Ended, Queue, run};
