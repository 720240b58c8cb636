//! What was accepted of a baseline over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::terms::{Tier, VariantId};

/// How the metrics of one baseline went from acceptance to acceptance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trend {
    /// Which variant.
    pub variant: VariantId,
    /// The folder of baselines: GPU model and tier.
    pub gpu: String,
    /// How it was measured.
    #[serde(alias = "rung")]
    pub tier: Tier,
    /// The oldest first.
    pub acceptances: Vec<Acceptance>,
    /// Each metric of each kernel, by name.
    pub metrics: Vec<Course>,
    /// The recorded effects of checks on the target branch, where there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<EffectCourse>,
}

/// The recorded effects on one metric of one kernel, side by side, in the order of the checks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EffectCourse {
    /// The kernel.
    pub kernel: String,
    /// The alias.
    pub metric: String,
    /// Whether the effects are in percent of the base, and otherwise in the metric's unit.
    pub relative: bool,
    /// Current less base of each check.
    pub effects: Vec<f64>,
    /// The commit of each check, or its time.
    pub commits: Vec<String>,
    /// What all of them add up to.
    pub total: f64,
    /// The places from which the effects have another size, from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<usize>,
}

/// One acceptance, and where its profile is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Acceptance {
    /// RFC 3339, UTC.
    pub time: String,
    /// Who locked.
    pub who: String,
    /// Why.
    pub reason: String,
    /// The oldest commit whose lock contains it; `None` where this repository has none.
    pub commit: Option<String>,
    /// sha256 of the accepted profile.
    pub profile_sha256: String,
    /// sha256 of its normalized text.
    pub norm_sha256: String,
    /// Why there are no values of it.
    pub missing: Option<String>,
    /// A remark on the values.
    pub note: Option<String>,
}

/// One metric of one kernel over the acceptances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Course {
    /// The kernel, by a name that no other of its profile has.
    pub kernel: String,
    /// The alias.
    pub metric: String,
    /// The counter behind it. Under another counter an alias is another metric.
    pub counter: String,
    /// Its unit.
    pub unit: Option<String>,
    /// One an acceptance; `None` where its profile is not to be had or lacks the metric.
    pub values: Vec<Option<Point>>,
    /// Where its level changed, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<LevelChange>,
}

/// A new level of a metric, which begins with an acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelChange {
    /// The place of that acceptance, from 0.
    pub at: usize,
    /// Median of the level before, in the counter's unit.
    pub before: f64,
    /// Median of the new level, in the counter's unit.
    pub after: f64,
}

/// An accepted value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// In the counter's unit.
    pub value: f64,
    /// By how much processes differ (standard deviation), or machines (the largest distance from
    /// their centre), whichever is more. `None` where it was locked from one process.
    pub noise: Option<f64>,
}

impl Trend {
    /// Whether there are kernels to distinguish by their names.
    pub fn several_kernels(&self) -> bool {
        let mut kernels = self.metrics.iter().map(|course| &course.kernel);
        let first = kernels.next();
        kernels.any(|kernel| Some(kernel) != first)
    }
}
