//! The archive: programs, configuration, rules and locks of both sides in one file, so that the
//! machine that measures needs no nvcc, no git and no checkout.
//!
//! A `.tar.zst` with `archive.json` first, which names everything, and then each content once, as
//! `blobs/<sha256>` in the order of the hashes. It has no times, owners or links: equal content makes
//! an equal file.

mod frames;
mod index;
mod pack;
mod unpack;

pub use index::Packing;
pub use pack::{Summary, pack};
pub use unpack::{Unpacked, Unpacking, indexed_paths, unpack};
