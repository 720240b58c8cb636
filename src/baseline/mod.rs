//! Baselines: profiles that were accepted with a reason and locked by hash.

mod accept;
mod lock;
mod signature;
mod store;
mod verify;

pub use accept::{Acceptance, accept, accept_compiled};
pub use lock::{Entry, Lock};
pub use signature::{PASSWORD_VARIABLE, Signer, unsigned};
pub use store::{FILES, NewBaseline, Store, Stored};
pub use verify::{CaptureIndex, Trusted, consistent, rederive, trust};
