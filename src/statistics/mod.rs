//! Statistics of samples: numbers in, numbers out.

mod sample;
mod spread;

pub(crate) use sample::mean;
pub use sample::{Noise, Samples, of_process};
pub use spread::median;
