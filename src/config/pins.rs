//! Pins: which tools, driver and GPUs the configuration promises, and whether a machine is so.

use std::cmp::Ordering;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Toolchain;
use crate::finding::Error;
use crate::terms::spelled;

/// What mends a mismatch.
pub(crate) const NEXT: &str =
    "install what is pinned, or change `[toolchain.pins]` knowingly and lock anew";

spelled! {
    /// What a machine does that is not as pinned.
    Mismatch {
        /// Ends the run before anything is done.
        Deny = "deny",
        /// Is reported, and the run goes on.
        Warn = "warn",
    }
}

/// What the configuration pins (`[toolchain.pins]`). Its target is a promise too: `toolchain.arch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pins {
    /// nvcc's release.
    pub cuda: Option<VersionRange>,
    /// ncu's version.
    pub ncu: Option<VersionRange>,
    /// The kernel driver's version.
    pub driver: Option<VersionRange>,
    /// Names of GPU models, in which `*` stands for any text; empty is any model.
    pub gpus: Vec<String>,
    /// What a machine does that is not so.
    pub mismatch: Mismatch,
}

/// One pinned thing, and what was there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pin {
    /// The key that pins it: `arch`, `cuda`, `ncu`, `driver` or `gpus`.
    pub what: String,
    /// What the configuration asks for.
    pub wanted: String,
    /// What was there; absent where that could not be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// Whether that is what was asked for. What cannot be told is not.
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

impl Toolchain {
    /// Whether code for the target runs on a GPU of this compute capability, `major.minor`.
    pub fn arch_pin(&self, compute_capability: &str) -> Option<Pin> {
        Some(Pin {
            what: "arch".to_owned(),
            wanted: self.arch.clone(),
            found: Some(format!("compute capability {compute_capability}")),
            held: runs_on(&self.arch, compute_capability)?,
        })
    }

    /// Ends the run where the configuration says so and a pin does not hold.
    ///
    /// # Errors
    /// [`Error::Environment`], with each pin that does not hold.
    pub fn enforce(&self, config: &Path, pins: &[Pin]) -> Result<(), Error> {
        let broken: Vec<String> = pins
            .iter()
            .filter(|pin| !pin.held)
            .map(Pin::words)
            .collect();
        if broken.is_empty() || self.pins.mismatch == Mismatch::Warn {
            return Ok(());
        }
        Err(Error::Environment {
            what: format!(
                "this machine is not the one that {} pins:\n  {}",
                config.display(),
                broken.join("\n  ")
            ),
            next: format!("{NEXT}; `mismatch = \"warn\"` there goes on with a warning"),
        })
    }
}

impl Pin {
    /// What was found and what is pinned, in a few words.
    pub fn words(&self) -> String {
        let found = self.found.as_deref().unwrap_or("it cannot be told");
        format!("{}: {found}, where `{}` is pinned", self.what, self.wanted)
    }
}

fn version_pin(what: &str, wanted: Option<&VersionRange>, found: Option<&str>) -> Option<Pin> {
    let wanted = wanted?;
    Some(Pin {
        what: what.to_owned(),
        wanted: wanted.to_string(),
        found: found.map(str::to_owned),
        held: found.is_some_and(|found| wanted.holds(found)),
    })
}

/// A range of versions: `13.0` is what begins so, `>=2025.3, <2027` is what all of its bounds hold
/// for. A bound compares as many numbers as it has, so that `<=13.0` holds for `13.0.88`.
///
/// Versions of drivers and of ncu have four numbers or a leading zero, which semantic versions
/// must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionRange {
    text: String,
    bounds: Vec<(Bound, Vec<u64>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Exactly,
    AtLeast,
    Above,
    AtMost,
    Below,
}

impl VersionRange {
    /// Reads a range.
    ///
    /// # Errors
    /// Says which part is none.
    pub fn parse(text: &str) -> Result<VersionRange, String> {
        const SIGNS: [(&str, Bound); 5] = [
            (">=", Bound::AtLeast),
            ("<=", Bound::AtMost),
            (">", Bound::Above),
            ("<", Bound::Below),
            ("=", Bound::Exactly),
        ];
        let bound = |part: &str| {
            let part = part.trim();
            let (bound, version) = SIGNS
                .iter()
                .find_map(|(sign, bound)| Some((*bound, part.strip_prefix(sign)?)))
                .unwrap_or((Bound::Exactly, part));
            let numbers = numbers(version.trim())
                .ok_or_else(|| format!("`{part}` is no version, nor a bound on one"))?;
            Ok((bound, numbers))
        };
        Ok(VersionRange {
            text: text.trim().to_owned(),
            bounds: text.split(',').map(bound).collect::<Result<_, String>>()?,
        })
    }

    /// Whether a version is in the range. What is no version is not.
    pub fn holds(&self, version: &str) -> bool {
        let Some(numbers) = numbers(version.trim_start_matches(['V', 'v'])) else {
            return false;
        };
        self.bounds.iter().all(|(bound, wanted)| {
            let order = (0..wanted.len())
                .map(|at| numbers.get(at).unwrap_or(&0).cmp(&wanted[at]))
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal);
            match bound {
                Bound::Exactly => order.is_eq(),
                Bound::AtLeast => order.is_ge(),
                Bound::Above => order.is_gt(),
                Bound::AtMost => order.is_le(),
                Bound::Below => order.is_lt(),
            }
        })
    }
}

impl std::fmt::Display for VersionRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.text)
    }
}

/// The numbers of a dotted version.
pub(crate) fn numbers(version: &str) -> Option<Vec<u64>> {
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    version
        .split('.')
        .map(|part| digits(part).then(|| part.parse().ok())?)
        .collect()
}

/// Whether a name fits a pattern in which `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|left| {
            left.char_indices()
                .map(|(at, _)| &left[at..])
                .chain([""])
                .any(|left| matches(rest, left))
        }),
    }
}

/// Whether code for `sm_90`, `sm_90a` or `sm_100f` runs on a compute capability `major.minor`:
/// plain code on every later minor version, that with a suffix only where its features are.
fn runs_on(arch: &str, compute_capability: &str) -> Option<bool> {
    let target = arch.strip_prefix("sm_")?;
    let suffix = target.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u32 = target.strip_suffix(suffix)?.parse().ok()?;
    let (major, minor) = compute_capability.split_once('.')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    let (target_major, target_minor) = (number / 10, number % 10);
    Some(match suffix {
        "a" => (major, minor) == (target_major, target_minor),
        _ => major == target_major && minor >= target_minor,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn holds(range: &str, version: &str) -> bool {
        VersionRange::parse(range).unwrap().holds(version)
    }

    #[test]
    fn a_version_alone_is_what_begins_so() {
        assert!(holds("13.0", "V13.0.88"));
        assert!(holds("13.0.88", "V13.0.88"));
        assert!(holds("=2025.3.1.0", "2025.3.1.0"));
        assert!(!holds("13.0", "V13.1.5"));
        assert!(!holds("1", "V13.0.88"));
        assert!(!holds("13.0.88", "V13.0"));
    }

    #[test]
    fn every_bound_must_hold_and_compares_the_numbers_that_it_has() {
        for (version, inside) in [
            ("2025.2.9", false),
            ("2025.3", true),
            ("2025.3.1.0", true),
            ("2026.4", true),
            ("2027.1.0", false),
            ("2027", false),
        ] {
            assert_eq!(holds(">=2025.3, <2027", version), inside, "{version}");
        }
        assert!(holds("<=13.0", "V13.0.88"));
        assert!(!holds(">13.0", "V13.0.88"));
        assert!(holds(">=580.65.06", "580.159.04"));
        assert!(!holds(">=580.159.05", "580.159.04"));
    }

    #[test]
    fn what_is_no_version_is_in_no_range() {
        for text in ["", "V", "unknown", "13.x", "13..0", "-1"] {
            assert!(!holds(">=0", text), "{text:?}");
        }
        for text in ["", ">=", "latest", "13.0,", "^13", ">= 13 0", "~>13"] {
            assert!(VersionRange::parse(text).is_err(), "{text:?}");
        }
    }

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

    #[test]
    fn code_runs_where_its_target_says() {
        for (arch, capability, runs) in [
            ("sm_90a", "9.0", true),
            ("sm_90", "9.0", true),
            ("sm_90a", "10.0", false),
            ("sm_80", "8.9", true),
            ("sm_89", "8.0", false),
            ("sm_80", "9.0", false),
            ("sm_100f", "10.3", true),
            ("sm_100a", "10.3", false),
            ("sm_120", "12.1", true),
        ] {
            assert_eq!(runs_on(arch, capability), Some(runs), "{arch} {capability}");
        }
    }
}
