//! The quarantine: the GPUs of which a run showed that their measurements cannot be trusted.
//!
//! One file a GPU, in the state folder of the user, where every run on this machine finds it.

mod entry;
mod store;

pub use entry::{Entry, Lifting};
pub use store::{Quarantine, Quarantined, Written};
