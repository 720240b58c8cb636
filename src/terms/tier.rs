//! The tier of a measurement.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much of the machine could be measured, the most first. What a lower rung cannot measure is
/// not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// Hardware counters, through ncu.
    Counters,
    /// Start and end of every kernel, through CUPTI's activity records.
    KernelTimes,
    /// Times that the program takes itself, with CUDA events around its launches.
    EventTimes,
    /// What the compiler made, and nothing that runs.
    Static,
}

impl Rung {
    /// Those that stand in for the counters, the better first.
    pub const LOWER: [Rung; 2] = [Rung::KernelTimes, Rung::EventTimes];

    /// What a configuration may take for a measurement where the counters are denied.
    pub const ACCEPTABLE: [Rung; 3] = [Rung::KernelTimes, Rung::EventTimes, Rung::Static];

    /// The rung below the counters of this name.
    pub fn lower(name: &str) -> Option<Rung> {
        Rung::ACCEPTABLE
            .into_iter()
            .find(|rung| rung.as_str() == name)
    }

    /// As the configuration and the reports spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Rung::Counters => "counters",
            Rung::KernelTimes => "kernel-times",
            Rung::EventTimes => "event-times",
            Rung::Static => "static",
        }
    }

    /// The folder of the baselines of this rung on a GPU model: `nvidia-h200` for counters, and
    /// `nvidia-h200+kernel-times`, so that no rung is locked over another. What never runs has the
    /// compiler's target for its model: `sm-90a+static`.
    pub fn folder(self, gpu: &str) -> String {
        let slug = slug(gpu);
        match self {
            Rung::Counters => slug,
            lower => format!("{slug}+{}", lower.as_str()),
        }
    }
}

impl Rung {
    /// The rung of a folder of baselines, see [`Rung::folder`].
    pub fn of_folder(folder: &str) -> Rung {
        Rung::ACCEPTABLE
            .into_iter()
            .find(|rung| folder.ends_with(&format!("+{rung}")))
            .unwrap_or(Rung::Counters)
    }
}

impl std::fmt::Display for Rung {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// A folder name for the model: `NVIDIA H200` becomes `nvidia-h200`.
pub(crate) fn slug(model: &str) -> String {
    let mut slug = String::new();
    for c in model.chars() {
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() {
        "unknown-gpu".to_owned()
    } else {
        slug.to_owned()
    }
}
