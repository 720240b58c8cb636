//! Statistics of samples: numbers in, numbers out.

mod sample;
mod spread;
mod tail;

pub use sample::{Noise, Samples, location, of_process};
pub(crate) use sample::{Scatter, farthest, mean};
pub use spread::median;
pub use tail::{fewest_launches, slowest_tenth, tenth};
