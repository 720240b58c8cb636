//! What each GPU of a run did, where several measured it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::terms::VariantId;

/// What one GPU measured of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GpuPart {
    /// Its UUID.
    pub uuid: String,
    /// The name of its model.
    pub name: String,
    /// What it measured, the controls of its suites among them.
    pub variants: Vec<VariantId>,
    /// Processes that were profiled.
    pub processes: u32,
    /// Seconds in these processes.
    pub profile_s: f64,
    /// Seconds from the first variant to the last; of several slices together.
    pub wall_s: f64,
}

impl GpuPart {
    /// Adds a part to others: to that of the same GPU, which measured one after the other.
    pub fn add_to(self, parts: &mut Vec<GpuPart>) {
        let Some(part) = parts.iter_mut().find(|part| part.uuid == self.uuid) else {
            parts.push(self);
            return;
        };
        for variant in self.variants {
            if !part.variants.contains(&variant) {
                part.variants.push(variant);
            }
        }
        part.processes = part.processes.saturating_add(self.processes);
        part.profile_s += self.profile_s;
        part.wall_s += self.wall_s;
    }
}
