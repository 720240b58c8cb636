//! Counter names, the chips that have them, and the units they are in.

mod unit;

pub use unit::Unit;
