//! From two profiles to findings, and from findings to one exit code.

mod compare;
mod display;
mod exit_code;
mod finding;
mod kernels;
mod measured;
mod outcome;
mod plausible;
mod rule;
mod statistics;

pub use compare::{VariantReport, compare};
pub use display::display_value;
pub use exit_code::ExitCode;
pub use finding::{Code, Finding, Severity};
pub use measured::incomplete;
pub use outcome::{Origin, Outcome};
pub use plausible::{Measurand, Side, bounds, device_findings, implausible, too_good};
pub use rule::{Change, Comparison, Verdict};
pub use statistics::{Summary, median};
