//! The outcome: all findings of a run; it alone decides the exit code.

use serde::{Deserialize, Serialize};

use super::compare::VariantReport;
use super::finding::{Finding, Severity};
use super::rule::Verdict;

/// What the process exits with. One code, one meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ExitCode {
    /// Every gate passed.
    Pass = 0,
    /// A gated metric regressed.
    Regressed = 1,
    /// Usage or configuration.
    Usage = 2,
    /// A tool, the GPU or the permission is missing.
    Environment = 3,
    /// A baseline is missing, tampered with, or not comparable.
    Baseline = 4,
    /// A variant failed: build, wrong numbers, crash, time-out, unreadable output.
    Failed = 5,
    /// Inconclusive or not measured, and nothing worse.
    Inconclusive = 6,
    /// A defect of this program.
    Internal = 70,
    /// Stopped by a signal.
    Interrupted = 130,
}

impl ExitCode {
    /// Which of two codes a run with both ends with: a broken build never reads as "slower".
    pub fn worse(self, other: ExitCode) -> ExitCode {
        const RANKS: [ExitCode; 9] = [
            ExitCode::Interrupted,
            ExitCode::Internal,
            ExitCode::Usage,
            ExitCode::Failed,
            ExitCode::Environment,
            ExitCode::Baseline,
            ExitCode::Regressed,
            ExitCode::Inconclusive,
            ExitCode::Pass,
        ];
        RANKS
            .into_iter()
            .find(|code| *code == self || *code == other)
            .unwrap_or(self)
    }

    /// A few words for people.
    pub fn meaning(self) -> &'static str {
        match self {
            ExitCode::Pass => "every gate passed",
            ExitCode::Regressed => "a gated metric regressed",
            ExitCode::Usage => "usage or configuration",
            ExitCode::Environment => "a tool, the GPU or a permission is missing",
            ExitCode::Baseline => "a baseline is missing, tampered with or not comparable",
            ExitCode::Failed => "a variant failed",
            ExitCode::Inconclusive => "inconclusive or not measured",
            ExitCode::Internal => "internal error",
            ExitCode::Interrupted => "interrupted",
        }
    }
}

/// Where the judged profiles came from. A report never shows the one as the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "folder")]
pub enum Origin {
    /// Measured in this run.
    Measured,
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
    pub const SCHEMA: u32 = 1;

    /// An outcome without findings.
    pub fn new(origin: Origin) -> Self {
        Outcome {
            schema: Self::SCHEMA,
            origin,
            variants: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// The worst of all findings that deny. A run that judged nothing has measured nothing.
    pub fn exit_code(&self) -> ExitCode {
        let nothing = if self
            .variants
            .iter()
            .all(|variant| variant.comparisons.is_empty())
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
    fn a_failed_variant_outranks_a_tampered_baseline_and_that_a_regression() {
        use ExitCode::*;
        let order = [Failed, Baseline, Regressed, Inconclusive, Pass];
        for (better, worse) in order
            .iter()
            .enumerate()
            .flat_map(|(at, worse)| order[at..].iter().map(move |b| (b, worse)))
        {
            assert_eq!(better.worse(*worse), *worse);
            assert_eq!(worse.worse(*better), *worse);
        }
    }

    #[test]
    fn a_run_that_judged_nothing_does_not_pass() {
        assert_eq!(
            Outcome::new(Origin::Measured).exit_code(),
            ExitCode::Inconclusive
        );
    }
}
