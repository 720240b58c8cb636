//! Slices of a check: what one machine measured of a plan, in a folder that `check --from` reads.
//!
//! A slice's folder has the profiles with their captures in `profiles/`, as a recording has them, and
//! `slice.json`, which is written last: without it the slice was cut off.

mod contents;
mod manifest;
mod read;
mod write;

pub use contents::{most, profiles_in};
pub use manifest::{MANIFEST_FILE, Manifest, Run, plan_sha256};
pub use read::{Known, Slices, Wanted, read_slices};
pub use write::{SliceFolder, copy_recorded};
