//! The tier of a measurement.

use super::{VariantId, joined_or, spelled};

spelled! {
    /// How much of the machine could be measured, the most first. What a lower tier cannot measure is
    /// not measured.
    Tier {
        /// Hardware counters, through ncu.
        Counters = "counters",
        /// Start and end of every kernel, through CUPTI's activity records.
        KernelTimes = "kernel-times",
        /// What the compiler made, and nothing that runs.
        Static = "static",
    }
}

impl Tier {
    /// What a configuration may take for a measurement where the counters are denied.
    pub const ACCEPTABLE: [Tier; 2] = [Tier::KernelTimes, Tier::Static];

    /// The folder of the baselines of this tier on a GPU model: `nvidia-h200` for ncu's counters, and
    /// `nvidia-h200+kernel-times`, so that no tier is locked over another. What never runs has the
    /// compiler's target for its model: `sm-90a+static`.
    pub fn folder(self, gpu: &str) -> String {
        let slug = slug(gpu);
        match self {
            Tier::Counters => slug,
            other => format!("{slug}+{}", other.as_str()),
        }
    }

    /// The tier of a folder of baselines, see [`Tier::folder`].
    pub fn of_folder(folder: &str) -> Tier {
        Tier::ACCEPTABLE
            .into_iter()
            .find(|tier| folder.ends_with(&format!("+{tier}")))
            .unwrap_or(Tier::Counters)
    }

    /// The command that locks a new baseline of what this tier measured or compiled.
    pub fn lock_command(self, variant: &VariantId) -> String {
        let only = match self {
            Tier::Static => " --static",
            _ => "",
        };
        format!("sparsek-gate baseline --lock{only} --reason '...' {variant}")
    }
}

/// A folder name for the model: `NVIDIA H200` becomes `nvidia-h200`.
pub(crate) fn slug(model: &str) -> String {
    let lower = model.to_ascii_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    joined_or("unknown-gpu", words.filter(|word| !word.is_empty()), "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_name_becomes_a_folder_name() {
        assert_eq!(slug("NVIDIA H200"), "nvidia-h200");
        assert_eq!(slug("NVIDIA A100-SXM4-80GB"), "nvidia-a100-sxm4-80gb");
        assert_eq!(slug("../.."), "unknown-gpu");
    }

    #[test]
    fn each_tier_has_a_folder_of_its_own() {
        for tier in Tier::ACCEPTABLE.into_iter().chain([Tier::Counters]) {
            assert_eq!(Tier::of_folder(&tier.folder("NVIDIA H200")), tier);
        }
    }
}
