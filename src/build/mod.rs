//! Variant to artifact: a content-addressed cache of builds.
//!
//! A key covers the compiler, the host compiler, every flag, the source, and every header that
//! the last build included. The list of headers is kept per source and flags; it can only be
//! stale if one of the files in it changed, and then the key changes too.

mod argv;
mod artifact;
mod builder;
mod command;
mod cubins;
pub mod definitions;
mod depfile;
mod inputs;
mod nvcc;
mod planned;
mod run;
mod static_profile;

pub(crate) use argv::{filled_argv, program_argv};
pub use artifact::{Artifact, Built};
pub use builder::{Builder, built_program, stated_flags};
#[doc(hidden)]
pub use depfile::prerequisites;
pub use planned::{BuildState, PlannedBuild, UNBUILT, planned_build};
pub use static_profile::compiled_profile;
