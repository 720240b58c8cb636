//! What is reported about one judged variant.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::binary::OF_LAUNCH;
use crate::config::{Variant, Work};
use crate::finding::{Compared, in_words};
use crate::judge::compare::metric::Comparison;
use crate::judge::compare::mode::Mode;
use crate::judge::compare::waits::Waits;
use crate::judge::explain::cause::Cause;
use crate::judge::pair::share::KernelShare;
use crate::metric::Level;
use crate::profile::{Profile, ProfileOrigin, Provenance, TOTAL};
use crate::terms::{Tier, VariantId};
use crate::verdict::Verdict;

/// What a report says of where one side came from. The profile says all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideProvenance {
    /// Measured by this tool, or imported.
    pub origin: ProfileOrigin,
    /// When it was measured, RFC 3339, UTC.
    pub created: String,
    /// How many processes were measured, on all machines.
    pub processes: u32,
    /// Whether each of them reported that its numbers are right.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checked: bool,
    /// ncu's version.
    pub profiler: Option<String>,
    /// nvcc's version.
    pub compiler: Option<String>,
    /// The driver's version.
    pub driver: Option<String>,
    /// UUID of the GPU, or of several with `, ` between them.
    pub gpu_uuid: Option<String>,
    /// Commit of the working tree, with `+dirty` where it had changes.
    pub git: Option<String>,
    /// sha256 of the program.
    pub artifact_sha256: Option<String>,
    /// The source and each header, by path below the configuration.
    pub sources: Vec<String>,
    /// Constants that the command line set for a trial (`--define`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<String>,
}

impl SideProvenance {
    fn of(profile: &Provenance) -> SideProvenance {
        let captures = &profile.captures;
        SideProvenance {
            origin: profile.origin,
            created: profile.created.clone(),
            processes: profile.processes,
            checked: !captures.is_empty() && captures.iter().all(|capture| capture.checked),
            profiler: profile.profiler.clone(),
            compiler: profile.compiler.clone(),
            driver: profile.driver.clone(),
            gpu_uuid: profile.gpu_uuid.clone(),
            git: profile.git.clone(),
            artifact_sha256: profile.artifact_sha256.clone(),
            sources: profile.sources.keys().cloned().collect(),
            overrides: profile.overrides.clone(),
        }
    }
}

/// How well the sum of two programs is known at least where that takes seconds: half of its interval, in percent.
const FINE: f64 = 0.3;

/// Everything about one judged variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantReport {
    /// Which one.
    pub variant: VariantId,
    /// Model of the GPU; the compiler's target on the static tier.
    pub gpu: String,
    /// How the current profile was measured.
    pub tier: Tier,
    /// What it was compared with.
    pub mode: Mode,
    /// What its kernels have to do, as declared.
    pub work: Work,
    /// Where the reference came from.
    pub reference: SideProvenance,
    /// Where the current profile came from.
    pub current: SideProvenance,
    /// Judged metrics.
    pub comparisons: Vec<Comparison>,
    /// The part of each kernel in the total, where that is judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<KernelShare>,
    /// How long the GPU waits between kernels, where both programs were timed as they run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
    /// What moved together with what got worse, of each kernel.
    pub causes: Vec<KernelCauses>,
    /// The base as measured now against its locked baseline: how far machine and toolchain have
    /// drifted. It fails no gate.
    pub drift: Vec<Comparison>,
}

impl VariantReport {
    /// Of a variant that was compared with itself, because it has neither a base nor a baseline: its values
    /// are shown, and what is beyond a limit fails.
    pub(crate) fn of_new(mut self) -> VariantReport {
        for one in &mut self.comparisons {
            one.verdict = one.verdict.filter(|verdict| *verdict == Verdict::Regressed);
            if one.verdict.is_none() {
                one.why = "there is neither a base nor a baseline".to_owned();
            }
            (one.reference, one.samples) = (None, None);
            (one.change, one.band, one.threshold) = (None, None, None);
        }
        self
    }

    /// Of two profiles, before anything is compared.
    pub(crate) fn new(
        variant: &Variant,
        mode: Mode,
        reference: &Profile,
        current: &Profile,
    ) -> VariantReport {
        VariantReport {
            variant: variant.id.clone(),
            gpu: current.identity.gpu.clone(),
            tier: current.identity.tier,
            mode,
            work: variant.work,
            reference: SideProvenance::of(&reference.provenance),
            current: SideProvenance::of(&current.provenance),
            comparisons: Vec::new(),
            shares: Vec::new(),
            waits: None,
            causes: Vec::new(),
            drift: Vec::new(),
        }
    }

    /// Which comparison of the outcome one of its own is.
    pub fn compared<'a>(&'a self, comparison: &'a Comparison) -> Compared<'a> {
        Compared {
            variant: &self.variant,
            compiled: self.tier == Tier::Static,
            kernel: &comparison.kernel,
            shape: (comparison.grid, comparison.block),
            metric: &comparison.metric,
        }
    }

    /// Says of what depends on the launch of these kernels that the launch is the baseline's.
    pub(in crate::judge) fn launched_as_locked(&mut self, kernels: &BTreeSet<String>) {
        for comparison in &mut self.comparisons {
            let depends = OF_LAUNCH.contains(&comparison.metric.as_str());
            if depends && kernels.contains(&comparison.kernel) {
                comparison.why.push_str("; with the launch of the baseline");
            }
        }
    }

    /// The comparison of the sum of all kernels.
    pub fn sum(&self) -> Option<&Comparison> {
        self.comparisons.iter().find(|one| one.kernel == TOTAL)
    }

    /// Whether two programs are as fast, and that is known less well than it could be.
    pub fn is_coarse(&self) -> bool {
        let is_coarse = |sum: &Comparison| {
            sum.verdict == Some(Verdict::Pass) && sum.band.is_some_and(|band| band > FINE)
        };
        self.mode == Mode::Programs && self.sum().is_some_and(is_coarse)
    }

    /// Whether more samples may decide what is open. A variant that surely fails already is only measured
    /// on for its duration. A waived metric decides nothing.
    pub fn open(&self, waived: impl Fn(&str) -> bool) -> bool {
        let fails = self.comparisons.iter().any(|comparison| {
            comparison.verdict == Some(Verdict::Regressed)
                && comparison.level == Level::Deny
                && !waived(&comparison.metric)
        });
        // Of two programs all was said once the sum is clear.
        let only_sum = self.mode == Mode::Programs;
        self.comparisons.iter().any(|comparison| {
            let matters =
                !fails || comparison.is_duration() && (!only_sum || comparison.kernel == TOTAL);
            matters && comparison.open
        })
    }
}

/// What moved together in one kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelCauses {
    /// The kernel's function name.
    pub kernel: String,
    /// The change of its duration, where that is a regression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// The metrics in percent that moved with it, most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub percentages: Vec<String>,
    /// The largest share first.
    pub causes: Vec<Cause>,
}

impl KernelCauses {
    /// All of it in one sentence, the most important first.
    pub fn sentence(&self) -> String {
        let (named, others): (Vec<_>, Vec<_>) = self.causes.iter().partition(|it| it.is_named());
        let named: Vec<String> = named.into_iter().map(Cause::words).collect();
        let percentages = self.percentages.join(", ");
        let others = others.into_iter().map(Cause::words);
        let others = others.chain((!percentages.is_empty()).then_some(percentages));
        let parts = in_words(&named, &others.collect::<Vec<String>>());
        let duration = self.duration.iter().cloned();
        duration.chain(parts).collect::<Vec<String>>().join("; ")
    }
}
