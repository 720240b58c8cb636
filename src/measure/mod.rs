//! Executes plans on this machine: build, verify, capture, normalize.

mod base;
mod batch;
mod bench;
mod built;
mod captures;
mod compile;
mod cost;
mod folder;
mod key;
mod measuring;
mod order;
mod prebuilt;
mod readable;
mod retry;
mod rounds;
mod run;
mod same;
mod seal;
mod seeds;
mod sides;
mod subject;
mod unmeasured;
mod verified;
mod watch;

pub use base::BaseProject;
pub use batch::Batch;
pub use bench::{Bench, gpu_env};
pub use captures::{Captures, ChosenLaunches, GpuPart, Resumed, SameProgram, SlicePart, Source};
pub use compile::compile;
pub use cost::{Spent, Times};
pub use folder::{
    Found, RunFile, RunRecord, SliceOf, VariantRecord, folders_of, measured_on, measured_on_none,
    sealed, unsealed,
};
pub use measuring::{measure, programs};
pub use order::{Locks, Packed, Place, Plan};
pub use prebuilt::{Prebuilt, PrebuiltSide};
pub use verified::{RecordUse, ReusedVerification, tool};
pub use watch::Watch;
