//! The words that every room shares: which variant, measured on which tier, in which phase.

mod counted;
mod nearest;
mod phase;
mod seed;
mod spelled;
mod tier;
mod variant_id;
mod words;

pub(crate) use counted::{counted, dimensions, first, joined, joined_or, more};
pub(crate) use nearest::nearest;
pub use phase::Phase;
pub use seed::Seed;
pub(crate) use spelled::spelled;
pub use tier::Tier;
pub use variant_id::VariantId;
pub(crate) use variant_id::{is_identifier, is_name};
pub(crate) use words::words;
