//! Executes plans on this machine: build, verify, capture, normalize.

mod base;
mod batch;
mod bench;
mod compile;
mod cost;
mod journal;
mod noted;
mod prebuilt;
mod program_key;
mod readable;
mod resume;
mod retry;
mod rounds;
mod run;
mod same;
mod seal;
mod seeds;
mod sick;
mod subject;
mod verified;
mod watch;

pub use base::BaseProject;
pub use batch::Batch;
pub use bench::{Bench, gpu_env};
pub use compile::compile;
pub use cost::{Spent, Times};
pub use journal::{Journal, Resumed, journal_rounds};
pub use prebuilt::{Prebuilt, PrebuiltSide};
pub use program_key::program_key;
pub use rounds::StillOpen;
pub use run::{Built, Choose, CompiledSources, Measured, Order, Pair, build, measure};
pub use same::{ChangedFiles, must_measure};
pub use sick::set_aside_findings;
pub use verified::{RecordUse, ReusedVerification};
pub use watch::{TimeLeft, Watch};
