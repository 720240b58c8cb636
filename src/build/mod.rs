//! Variant to artifact: a content-addressed cache of builds.
//!
//! A key covers the compiler, the flags, every file that preprocessor, assembler and linker opened,
//! and every file that one of them would find in the place of another. The list of files is kept for
//! each request. Where a list cannot tell all that decides a program, it is built again.

mod argv;
mod artifact;
mod builder;
mod command;
mod commands;
mod cubins;
mod depfile;
mod flags;
mod inputs;
mod loaded_code;
mod machine_code;
mod nvcc;
mod opened;
mod reach;
mod run;
mod static_profile;
mod witness;

pub(crate) use argv::{Given, filled_argv, program_argv};
pub use artifact::{Artifact, Built};
pub use builder::{Builder, paths_of_flags, stated_flags};
pub use commands::build_log;
#[doc(hidden)]
pub use depfile::{assembled, linked, prerequisites};
pub use loaded_code::{code_not_kept, cubins_of, loaded_code};
pub use static_profile::{compiled_profile, launched};
pub use witness::Witness;
