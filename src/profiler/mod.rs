//! The profilers: each runs a program once and turns what it left into a [`Capture`].
//!
//! [`Profiler`] is what a profiler has to bring; [`run`] starts, watches and ends a process in
//! the same way for all of them. There is one implementation a tier: [`ncu`] reads hardware
//! counters, [`cupti`] times kernels.

mod capture;
pub mod cupti;
mod first_launch;
pub mod ncu;
mod profilers;
mod session;

pub use capture::{Capture, Pending, Times};
pub(crate) use ncu::{NCU_LOCK, home, judge_printed, other_selection, reports};
pub use ncu::{Ncu, Trouble};
pub use profilers::{LibraryFile, Profilers};
pub use session::{Left, Profiler, Ran, Session, Written, in_turn, run};
