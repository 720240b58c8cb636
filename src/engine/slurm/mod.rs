//! Slurm: an array of jobs, one slice each.

mod keeper;
mod queue;
mod run;
mod script;

pub use keeper::keep;
pub use run::{
    Array, Ended, Order, Submitted, are_over, end_earlier, ended_before, refuse_without, run,
};
pub(super) use script::ENGINE;
