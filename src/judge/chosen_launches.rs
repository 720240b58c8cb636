//! What is reported about the launches that were chosen for a variant.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::terms::VariantId;
use crate::verdict::Schedule;

/// The launches that were chosen for a variant, and what was expected of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChosenLaunches {
    /// Which variant.
    pub variant: VariantId,
    /// Launches in each process of the timing phase.
    pub launches: u32,
    /// The round by which nine of ten unchanged checks are decided, by the locked noise; `None` where
    /// no round was expected to do that.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub round: Option<u32>,
    /// What these rounds were expected to take, in seconds.
    pub expected_s: f64,
}

impl ChosenLaunches {
    /// Of a variant.
    pub fn new(variant: VariantId, schedule: Schedule) -> ChosenLaunches {
        ChosenLaunches {
            variant,
            launches: schedule.launches,
            round: schedule.round,
            expected_s: schedule.seconds,
        }
    }
}
