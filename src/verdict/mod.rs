//! The rule of the verdict: decisions on numbers, with no file and no configuration.

mod band;
mod budget;
mod change;
mod change_point;
mod creep;
mod expected;
mod outlying;
mod quantile;
mod schedule;

pub use band::{Decision, Question, Scale, Timed, against_stored, side_by_side};
pub use budget::Distance;
pub use change::{Change, Verdict};
pub use change_point::{FEWEST_FOR_CHANGE, change_points};
pub use creep::{Creep, Step, creep};
pub use expected::{Design, Deviation, Expected, Needed, Population};
pub use outlying::{Outlying, ROUNDS_IN_ALL};
pub use schedule::{Bounds, KnownNoise, ProcessCost, Schedule, cheapest};
