//! What is carried between machines: the archive that one measures, and what it brings back: the folders
//! that `check --from` reads.

mod archive;
mod contents;
mod read;

pub use archive::{Packing, Summary, Unpacked, Unpacking, indexed_paths, pack, unpack};
pub use read::{Known, Slices, Wanted, plan_sha256, read_slices, recordings_in};
