//! What a slice says of itself.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::config::Selected;
use crate::evidence::SickGpu;
use crate::files::{bounded_json, most, read_regular_up_to};
use crate::finding::{Error, Finding};
use crate::hash::{sha256_hex, sha256_of};
use crate::measure::{
    ChosenLaunches, GpuPart, Resumed, ReusedVerification, SameProgram, Spent, Times,
};
use crate::plan::SlicePlace;
use crate::terms::VariantId;

/// The name of the manifest in a slice's folder.
pub const MANIFEST_FILE: &str = "slice.json";

/// What a slice says of itself; written after everything else of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of this format.
    pub schema: u32,
    /// Version of the tool that wrote it.
    pub tool: String,
    /// sha256 of the plan, see [`plan_sha256`].
    pub plan: String,
    /// Which slice it is.
    pub place: SlicePlace,
    /// sha256 of the archive that was measured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub archive: Option<String>,
    /// The recording that it was copied from; `None` where it was measured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recording: Option<String>,
    /// The variants of every slice of the plan, this one's among them.
    pub slices: Vec<Vec<VariantId>>,
    /// Variants that no slice measures, because their program is the base's.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub same_programs: Vec<SameProgram>,
    /// Unchanged variants of other slices, which were measured here to see how far this machine is
    /// from those of the baselines.
    pub controls: Vec<VariantId>,
    /// What the measurement found besides profiles; `None` of a recording.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub run: Option<Run>,
    /// sha256 of each file in `profiles`, by its path from there.
    pub files: BTreeMap<String, String>,
}

/// What a measurement found besides profiles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Why variants could not be measured, and what else happened.
    pub findings: Vec<Finding>,
    /// How many launches were chosen for variants that were measured side by side.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub chosen_launches: Vec<ChosenLaunches>,
    /// Verifications of earlier runs that were not repeated.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub reused_verifications: Vec<ReusedVerification>,
    /// What was taken over of an interrupted run.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub resumed: Vec<Resumed>,
    /// The GPU, where its driver reported a defect: what it measured does not count.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub sick: Vec<SickGpu>,
    /// Time inside the programs that were started.
    pub spent: Spent,
    /// The GPU, and what it did; `None` where nothing was measured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub part: Option<GpuPart>,
    /// What the variants took, for the next plan.
    #[serde(default)]
    pub times: Times,
}

impl Manifest {
    /// Version of the format.
    pub const SCHEMA: u32 = 1;

    /// Reads the manifest in a slice's folder, which must have this sha256 where one is known.
    ///
    /// # Errors
    /// In words, what is wrong with it.
    pub(super) fn read(folder: &Path, sha256: Option<&str>) -> Result<Manifest, String> {
        let path = folder.join(MANIFEST_FILE);
        let is_there = |path: &Path| path.symlink_metadata().is_ok();
        let bytes = match read_regular_up_to(&path, most::TEXT) {
            Ok(bytes) => bytes,
            Err(_) if !is_there(folder) => return Err("there is no such folder".to_owned()),
            Err(_) if !is_there(&path) => {
                return Err(format!(
                    "it was cut off: it has no {MANIFEST_FILE}, which is written last"
                ));
            }
            Err(error) => return Err(format!("its {MANIFEST_FILE} cannot be read: {error}")),
        };
        if sha256.is_some_and(|sha256| sha256 != sha256_hex(&bytes)) {
            return Err(format!("its {MANIFEST_FILE} is not what was written"));
        }
        Manifest::parse(&bytes)
    }

    /// Reads a manifest from its JSON form.
    ///
    /// # Errors
    /// In words, what is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Manifest, String> {
        #[derive(Deserialize)]
        struct Schema {
            schema: u32,
        }
        bounded_json(bytes).map_err(|why| format!("its {MANIFEST_FILE} is refused: {why}"))?;
        let wrong = |error: serde_json::Error| format!("its {MANIFEST_FILE} is damaged: {error}");
        let found: Schema = serde_json::from_slice(bytes).map_err(wrong)?;
        if found.schema != Manifest::SCHEMA {
            return Err(format!(
                "its {MANIFEST_FILE} has schema {}, and this version reads {}",
                found.schema,
                Manifest::SCHEMA
            ));
        }
        let manifest: Manifest = serde_json::from_slice(bytes).map_err(wrong)?;
        let SlicePlace { index, count } = manifest.place;
        SlicePlace::new(index, count).map_err(|why| format!("its {MANIFEST_FILE} says: {why}"))?;
        if manifest.slices.len() != count as usize {
            return Err(format!(
                "its {MANIFEST_FILE} lists {} slices of {count}",
                manifest.slices.len()
            ));
        }
        Ok(manifest)
    }

    /// The variants that the slice had to measure.
    pub(super) fn own(&self) -> &[VariantId] {
        let at = self.place.index as usize - 1;
        self.slices.get(at).map_or(&[], Vec::as_slice)
    }
}

/// The sha256 of a plan: the version of this tool, the selected variants and how each is measured. It is
/// the same in every checkout, and does not depend on what was locked.
///
/// # Errors
/// [`Error::Usage`], that it cannot be made.
pub fn plan_sha256(plan: &Selected) -> Result<String, Error> {
    let arch = &plan.config.toolchain.arch;
    let plan = (env!("CARGO_PKG_VERSION"), arch, &plan.variants);
    sha256_of(&plan).map_err(Error::Usage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn a_plan_is_the_same_in_every_checkout_and_another_one_for_any_other_word() {
        let sha256 = |root: &str, text: &str| {
            let text = format!(
                "[metric.duration]\ndirection = \"lower\"\ntolerance = {{ relative_percent = 3.0 }}\n\
                 [suite.s.variant.v]\nsource = \"v.cu\"\n{text}"
            );
            let config = Config::parse(&Path::new(root).join("config.toml"), &text).unwrap();
            plan_sha256(&Selected::new(config, &[], false, &[]).unwrap()).unwrap()
        };
        let plan = sha256("/p", "args = [\"/path\", \"a\"]");
        let same = "# Why.\nargs = [ '/path', 'a' ]";
        assert_eq!(sha256("/elsewhere", same), plan);
        for other in [
            // What a path would be if each `/p` were the folder of the project.
            "args = [\".ath\", \"a\"]",
            "args = [\"/path\", \"/p\"]",
            "args = [\"/path\\\", \\\"a\"]",
            "args = [\"/path\", \"a\"]\nenv = { A = \"\" }",
            "args = [\"/path\", \"a\"]\nprofile = { launches = 21 }",
        ] {
            assert_ne!(sha256("/p", other), plan, "{other}");
        }
    }
}
