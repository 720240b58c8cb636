//! Statistics of samples: numbers in, numbers out.

mod sample;
mod spread;

pub use sample::{Noise, Samples, location};
pub(crate) use sample::{Scatter, farthest, mean};
pub use spread::median;
