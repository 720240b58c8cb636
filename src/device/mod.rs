//! The GPU: its identity, through cudarc; a lock, so that one run at a time measures on it; and its
//! state while something runs on it, through NVML.

mod asked;
mod driver;
mod faults;
mod gpu;
mod health;
mod lock;
mod owner;
pub mod probe;
mod state;
mod watcher;

pub use asked::{GpusAsked, SHORTEST_UUID, short_names};
pub use faults::FaultWatch;
pub use gpu::Gpu;
pub use health::Health;
pub use state::{ComputeProcess, Faults, Owner, Reading, Slowdown, Span, State};
pub use watcher::{Unwatched, Watcher, any_mig};
