//! Pins: which tools, driver and GPUs the configuration requires.

use globset::Glob;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::range;
use super::version_range::VersionRange;
use crate::finding::Code;
use crate::terms::spelled;

spelled! {
    /// What happens on a machine that differs from the pins.
    #[derive(Default)]
    Mismatch {
        /// Ends the run before anything is done.
        #[default]
        Deny = "deny",
        /// Is reported, and the run goes on.
        Warn = "warn",
    }
}

/// What tools, driver and GPU must be, besides the target: `toolchain.arch`. `13.0` is every version
/// that begins with it; bounds are written `>=2025.3, <2027`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "pins")]
pub struct Pins {
    /// nvcc's release, such as `13.0` or `13.0.88`. Default: any.
    #[serde(deserialize_with = "range::version")]
    #[schemars(with = "String")]
    pub cuda: Option<VersionRange>,
    /// ncu's version. Default: any.
    #[serde(deserialize_with = "range::version")]
    #[schemars(with = "String")]
    pub ncu: Option<VersionRange>,
    /// The kernel driver's version. Default: any.
    #[serde(deserialize_with = "range::version")]
    #[schemars(with = "String")]
    pub driver: Option<VersionRange>,
    /// Names of GPU models; `*` stands for any text. Default: any.
    #[serde(deserialize_with = "range::models")]
    pub gpus: Vec<String>,
    /// What happens on a machine that differs. Default: `deny`.
    pub mismatch: Mismatch,
}

/// One pinned thing, and what was there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pin {
    /// The key that pins it: `arch`, `cuda`, `ncu`, `driver` or `gpus`.
    pub what: String,
    /// What the configuration asks for.
    pub wanted: String,
    /// What was there; absent where it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// Whether that is what was asked for. What is unknown is not.
    pub held: bool,
}

impl Pins {
    /// nvcc, by its version.
    pub fn cuda(&self, found: &str) -> Option<Pin> {
        version_pin("cuda", self.cuda.as_ref(), Some(found))
    }

    /// ncu, by its version.
    pub fn ncu(&self, found: &str) -> Option<Pin> {
        version_pin("ncu", self.ncu.as_ref(), Some(found))
    }

    /// The driver, by its version, where that is known.
    pub fn driver(&self, found: Option<&str>) -> Option<Pin> {
        version_pin("driver", self.driver.as_ref(), found)
    }

    /// The GPU, by the name of its model.
    pub fn gpu(&self, model: &str) -> Option<Pin> {
        (!self.gpus.is_empty()).then(|| Pin {
            what: "gpus".to_owned(),
            wanted: self.gpus.join(", "),
            found: Some(model.to_owned()),
            held: self.gpus.iter().any(|pattern| matches(pattern, model)),
        })
    }
}

impl Pin {
    /// Those of pins that are not as asked for, in words.
    pub fn broken(pins: &[Pin]) -> Vec<String> {
        let broken = pins.iter().filter(|pin| !pin.held);
        broken.map(Pin::words).collect()
    }

    /// What to do where some are not as asked for.
    pub fn next_step(pins: &[Pin]) -> String {
        let mut broken = pins.iter().filter(|pin| !pin.held);
        match broken.all(|pin| pin.what == "arch") {
            true => "state the GPU's target in `toolchain.arch`, or measure on a GPU that runs code for the stated one".to_owned(),
            false => Code::ToolchainMismatch.next_step_of(None),
        }
    }

    /// What was found and what is pinned, in a few words.
    pub fn words(&self) -> String {
        let found = self.found.as_deref().unwrap_or("unknown");
        let whole = match self.what.as_str() {
            "gpus" => " (the whole name counts; `*` stands for any text)",
            _ => "",
        };
        format!(
            "{}: {found}, where `{}` is pinned{whole}",
            self.what, self.wanted
        )
    }
}

fn version_pin(what: &str, wanted: Option<&VersionRange>, found: Option<&str>) -> Option<Pin> {
    let wanted = wanted?;
    Some(Pin {
        what: what.to_owned(),
        wanted: wanted.to_string(),
        found: found.map(str::to_owned),
        held: found.is_some_and(|found| wanted.contains(found)),
    })
}

/// Whether a name fits a pattern in which `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let glob = Glob::new(&globset::escape(pattern).replace("[*]", "*"));
    glob.is_ok_and(|glob| glob.compile_matcher().is_match(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_in_a_gpus_name_stands_for_any_text() {
        assert!(matches("NVIDIA H200", "NVIDIA H200"));
        assert!(matches("NVIDIA H*", "NVIDIA H200"));
        assert!(matches("*H100*", "NVIDIA H100 80GB HBM3"));
        assert!(matches("*", ""));
        assert!(matches("*0", "NVIDIA H200"));
        assert!(!matches("NVIDIA H200", "NVIDIA H200 NVL"));
        assert!(!matches("*H100", "NVIDIA H100 80GB HBM3"));
    }
}
