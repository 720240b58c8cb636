//! The outcome: all findings of a run; it alone decides the exit code.

use crate::trust::Authority;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::variant_report::VariantReport;
use crate::evidence::SickGpu;
use crate::finding::{ExitCode, Finding, worst};
use crate::judge::compare::mode::Mode;
use crate::judge::pair::programs::ComparedPrograms;
use crate::measure::{GpuPart, Resumed, ReusedVerification, SameProgram, Spent};
use crate::metric::Level;
use crate::terms::VariantId;
use crate::verdict::Verdict;

/// Where the judged profiles came from. A report never shows the one as the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "folder")]
pub enum Origin {
    /// Measured in this run.
    #[default]
    Measured,
    /// Compiled in this run; nothing ran.
    Compiled,
    /// Read from recorded profiles in this folder.
    Recorded(String),
}

/// Where a kernel is in the sources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// The variant.
    pub variant: VariantId,
    /// The kernel's function name; `None` is the source of the variant as a whole.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kernel: Option<String>,
    /// Path below the folder of the configuration.
    pub file: String,
    /// The first line of its definition, from 1, where it was found.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<u32>,
}

/// Why a run could not go on to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ended {
    /// What happened, and what to do about it.
    pub message: String,
    /// What the process exited with.
    pub exit_code: u8,
}

/// Everything a run found.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// Version of this format.
    #[schemars(extend("const" = Outcome::SCHEMA))]
    pub schema: u32,
    /// Where the profiles came from.
    pub origin: Origin,
    /// Whose rules were judged by.
    pub authority: Authority,
    /// The programs, where two of them were compared with each other (`compare`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub programs: Option<ComparedPrograms>,
    /// Why the run ended before everything was judged.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ended: Option<Ended>,
    /// Where variants and kernels are in the sources, as far as they were found.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub places: Vec<Place>,
    /// One entry a variant that was judged.
    pub variants: Vec<VariantReport>,
    /// Variants whose program is the base's, so that nothing of them was measured.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub same_programs: Vec<SameProgram>,
    /// Verifications of earlier runs that were not repeated.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub reused_verifications: Vec<ReusedVerification>,
    /// What was taken over of an interrupted run.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub resumed: Vec<Resumed>,
    /// GPUs whose measurements cannot be trusted: what they measured is set aside.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub sick_gpus: Vec<SickGpu>,
    /// Where the time of a run went that compiled or measured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub spent: Option<Spent>,
    /// What each GPU did, where slices were measured.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub gpus: Vec<GpuPart>,
    /// Seconds from the start of the run to its report.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub wall_s: Option<f64>,
    /// Everything that was found.
    pub findings: Vec<Finding>,
}

impl Outcome {
    /// Version of the JSON form.
    pub const SCHEMA: u32 = 5;

    /// An outcome without findings.
    pub fn new(origin: Origin) -> Self {
        Outcome {
            schema: Self::SCHEMA,
            origin,
            ..Outcome::default()
        }
    }

    /// An outcome of the same run with these findings.
    pub(in crate::judge) fn with(&self, findings: Vec<Finding>) -> Outcome {
        Outcome {
            authority: self.authority.clone(),
            findings,
            ..Outcome::new(self.origin.clone())
        }
    }

    /// The worst of all findings that deny. A run, or a variant in it, that judged nothing has
    /// measured nothing.
    pub fn exit_code(&self) -> ExitCode {
        if let Some(ended) = &self.ended {
            return match ExitCode::of(ended.exit_code) {
                // A run that did not end passed nothing.
                ExitCode::Pass => ExitCode::Internal,
                code => code,
            };
        }
        let judged = |variant: &VariantReport| {
            variant.comparisons.iter().any(|one| match variant.mode {
                Mode::New => one.current.is_some(),
                _ => one.verdict.is_some(),
            })
        };
        let unmeasured = |variant: &VariantReport| {
            variant.comparisons.iter().any(|comparison| {
                comparison.level == Level::Deny && comparison.verdict == Some(Verdict::NotMeasured)
            })
        };
        let nothing = if self.variants.is_empty() && self.same_programs.is_empty()
            || !self.variants.iter().all(judged)
            || self.variants.iter().any(unmeasured)
        {
            ExitCode::Inconclusive
        } else {
            ExitCode::Pass
        };
        worst(&self.findings, nothing)
    }

    /// Whether a finding about this variant fails the run.
    pub fn denies(&self, variant: &VariantId) -> bool {
        let mut findings = self.findings.iter();
        findings.any(|finding| finding.concerns(variant) && finding.denies())
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
