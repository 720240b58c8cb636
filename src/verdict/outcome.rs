//! The outcome: all findings of a run; it alone decides the exit code.

use serde::{Deserialize, Serialize};

use super::compare::VariantReport;
use super::exit_code::ExitCode;
use super::finding::{Finding, Severity};
use super::rule::Verdict;
use crate::config::Level;

/// Where the judged profiles came from. A report never shows the one as the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "folder")]
pub enum Origin {
    /// Measured in this run.
    Measured,
    /// Compiled in this run; nothing ran.
    Compiled,
    /// Read from recorded profiles in this folder.
    Recorded(String),
}

/// Everything a run found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Version of this format.
    pub schema: u32,
    /// Where the profiles came from.
    pub origin: Origin,
    /// One entry a variant that was judged.
    pub variants: Vec<VariantReport>,
    /// What else there is to tell.
    pub findings: Vec<Finding>,
}

impl Outcome {
    /// Version of the JSON form.
    pub const SCHEMA: u32 = 2;

    /// An outcome without findings.
    pub fn new(origin: Origin) -> Self {
        Outcome {
            schema: Self::SCHEMA,
            origin,
            variants: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// The worst of all findings that deny. What judged nothing has measured nothing: that holds
    /// for the run, and for each variant in it.
    pub fn exit_code(&self) -> ExitCode {
        let judged = |variant: &VariantReport| {
            variant
                .comparisons
                .iter()
                .any(|comparison| comparison.verdict.is_some())
        };
        let unmeasured = |variant: &VariantReport| {
            variant.comparisons.iter().any(|comparison| {
                comparison.level == Level::Deny && comparison.verdict == Some(Verdict::NotMeasured)
            })
        };
        let nothing = if self.variants.is_empty()
            || !self.variants.iter().all(judged)
            || self.variants.iter().any(unmeasured)
        {
            ExitCode::Inconclusive
        } else {
            ExitCode::Pass
        };
        self.findings
            .iter()
            .filter(|finding| finding.severity == Severity::Deny)
            .map(|finding| finding.code.exit_code())
            .fold(nothing, ExitCode::worse)
    }

    /// How many comparisons got this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.variants
            .iter()
            .flat_map(|variant| &variant.comparisons)
            .filter(|comparison| comparison.verdict == Some(verdict))
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_judged_nothing_does_not_pass() {
        assert_eq!(
            Outcome::new(Origin::Measured).exit_code(),
            ExitCode::Inconclusive
        );
    }
}
