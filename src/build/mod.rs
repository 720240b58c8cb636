//! Variant to artifact: a content-addressed cache of builds.
//!
//! A key covers the compiler, the host compiler, every flag, the preprocessed texts, and every file
//! that preprocessor, assembler and linker opened. The list of files is kept per source and flags.
//! Before a build is reused, the preprocessor runs again: it sees what appeared since then, and a
//! file that changed changes the key by its content. Flags are those of a list; others are refused.

mod argv;
mod artifact;
mod builder;
mod command;
mod commands;
mod cubins;
pub mod definitions;
mod depfile;
mod flags;
mod inputs;
mod known_flags;
mod loaded_code;
mod machine_code;
mod nvcc;
mod opened;
mod planned;
mod run;
mod static_profile;
mod texts;
mod witness;

pub(crate) use argv::{Given, filled_argv, program_argv};
pub use artifact::{Artifact, Built};
pub use builder::{Builder, stated_flags};
#[doc(hidden)]
pub use depfile::{assembled, prerequisites};
pub use loaded_code::{code_not_kept, cubins_of, loaded_code};
pub use planned::{BuildState, PlannedBuild, UNBUILT, planned_build};
pub use static_profile::{compiled_profile, launched};
pub use witness::Witness;
