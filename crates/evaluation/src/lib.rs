#![allow(missing_docs)]
mod unpack;
pub use unpack::unpacked;
