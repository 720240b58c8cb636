//! Executes plans on this machine: build, verify, capture, normalize.

mod base;
mod batch;
mod bench;
mod compile;
mod retry;
mod rounds;
mod run;
mod seal;
mod seeds;
mod subject;
mod watch;

pub use base::BaseProject;
pub use batch::Batch;
pub use bench::gpu_env;
pub use compile::compile;
pub use rounds::StillOpen;
pub use run::{Measured, Order, measure};
pub use watch::Watch;
