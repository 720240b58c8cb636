//! From two profiles to comparisons and findings, and from these to one outcome.

mod compare;
mod explain;
mod outcome;
mod pair;

pub use compare::compiled::compare_compiled;
pub use compare::metric::{Case, Comparison, Judged, Summary};
pub use compare::mode::Mode;
pub use compare::profiles::compare;
pub use explain::cause::{Cause, CauseKind, causes};
pub use explain::overview::{Bound, KernelOverview};
pub use explain::proposal::Proposal;
pub use explain::stored::{Stored, StoredKernel, StoredMetric};
pub use outcome::recorded::examined;
pub use outcome::recordings::{PackedBase, Recordings};
pub use outcome::rules::{Rules, judge};
pub use outcome::unchecked::unchecked;
pub use outcome::variant_report::{KernelCauses, SideProvenance, VariantReport};
pub use outcome::variants::Judge;
pub use outcome::whole::{Ended, Origin, Outcome, Place};
pub use pair::programs::{ComparedProgram, ComparedPrograms};
pub use pair::share::{KernelShare, share_words};
