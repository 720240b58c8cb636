//! The commit that made a variant worse: commits of a history, each measured beside a good one, until
//! the first bad one is known.

mod answer;
mod beside;
mod run;
mod search;
mod step;

pub use answer::Seen;
pub use beside::{Beside, Rules};
pub use run::{Bisected, bisect};
pub use search::{Answer, End, Next, Search};
pub use step::Step;
