//! From two profiles to findings, and from findings to one exit code.

mod compare;
mod finding;
mod outcome;
mod statistics;

pub use compare::{
    Change, Comparison, VariantReport, Verdict, compare, counters, display_value, incomplete,
};
pub use finding::{Code, Finding, Severity};
pub use outcome::{ExitCode, Origin, Outcome};
pub use statistics::{Summary, median};
