//! nvcc, compute-sanitizer and the tools beside them: where they are, their versions, how they are
//! called, and what their output means.

mod find;
mod nvcc;
mod nvdisasm;
mod query;
mod sanitizer;
mod tool;
mod version;

pub(crate) use find::{
    can_start, configured, cuda_roots, find as find_program, in_toolkit, path_folders, versioned,
};
pub use find::{libraries_of_environment, places_of_environment, without_nvcc};
pub(crate) use nvcc::install_folder;
pub use nvcc::{HostCompiler, Nvcc, dropped_target, nvcc_flags};
pub use nvdisasm::Nvdisasm;
pub use sanitizer::{FirstError, Sanitizer, SanitizerLog};
pub use tool::Tool;
