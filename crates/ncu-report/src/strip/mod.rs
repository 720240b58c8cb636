//! What copies for publication must not contain.

mod known;
mod text;

pub use text::Scrubber;
