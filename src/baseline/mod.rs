//! Baselines: profiles that were accepted with a reason and locked by hash.

mod accept;
mod capture_index;
mod immutable;
mod lock;
mod lock_selected;
mod norm_line;
mod rederive;
mod rederive_loaded;
mod store;
mod verify;
mod verify_selected;

pub use accept::{Acceptance, noise};
pub use capture_index::{CaptureIndex, find_profile};
pub use immutable::immutable_additions;
pub use lock::{Entry, Lock};
pub use lock_selected::{
    KeptBaseline, LeftOut, LockOrder, LockReport, LockedBaseline, lock_selected, refuse_in_pipeline,
};
pub use norm_line::{NormLine, norm_lines};
pub use rederive::rederive;
pub use rederive_loaded::rederive_loaded;
pub use store::{FILES, NewBaseline, Store, Stored};
pub use verify::{Trusted, removal, verify_files, verify_stored};
pub use verify_selected::{
    VerifyReport, lock_elsewhere, lock_in_git, measured_unpinned, removed, verify_selected,
};
