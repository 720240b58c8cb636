//! Executes plans on this machine: build, verify, capture, normalize.
//!
//! Its floors, the lowest first: what is measured and what it costs (`captures`, `cost`, `seal`, `watch`);
//! the `folder` that a run leaves; the `place` where it measures; the `key`s that say what is the same; the
//! `job`s of a variant; the `run` of all.

mod captures;
mod cost;
mod folder;
mod job;
mod key;
mod place;
mod run;
mod seal;
mod watch;

pub use captures::{Captures, GpuPart, Resumed, SameProgram, SlicePart, Source};
pub use cost::{Spent, Times};
pub use folder::{
    Found, RunFile, RunRecord, SliceOf, VariantRecord, folders_of, measured_on, measured_on_none,
    sealed, unsealed,
};
pub use key::verified::{RecordUse, ReusedVerification, tool};
pub use place::base::BaseProject;
pub use place::batch::{Batch, why_not_startable};
pub use place::bench::{Bench, gpu_env};
pub use place::order::{Locks, Packed, Place, Plan};
pub use place::prebuilt::{Prebuilt, PrebuiltSide};
pub use run::compile::compile;
pub use run::measuring::{measure, programs};
pub use watch::{Silent, Watch};
