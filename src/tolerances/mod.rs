//! Which tolerances the recorded noise allows: for each judged metric of a variant the smallest one at
//! which an unchanged check seldom stays open, and the gates that cannot fail.

mod gather;
mod judged;
mod noise;
mod propose;
mod toml_lines;

pub use gather::{Evidence, Further, Gathered, LeftOut, further, gather};
pub use noise::Recorded;
pub use propose::{
    BetweenGpus, Gate, MetricTolerances, Noise, Tuner, VariantTolerances, comparisons,
};
pub use toml_lines::toml_lines;
