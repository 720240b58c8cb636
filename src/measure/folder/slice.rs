//! The slice of a check that a run measured, for who judges it elsewhere.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::file::read;
use super::record::VariantRecord;
use super::run::RunRecord;
use crate::files::{RUN_FILE, VARIANT_FILE, variant_folder};
use crate::measure::captures::{Captures, SameProgram};
use crate::measure::cost::Times;
use crate::plan::SlicePlace;
use crate::terms::VariantId;

/// What a run measures a slice of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SliceOf {
    /// Version of the tool.
    pub tool: String,
    /// sha256 of the plan.
    pub plan: String,
    /// Which slice it is.
    pub place: SlicePlace,
    /// sha256 of the archive that is measured; `None` where a checkout is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub archive: Option<String>,
    /// The variants of every slice of the plan, this one's among them.
    pub slices: Vec<Vec<VariantId>>,
    /// Variants that no slice measures, because their program is the base's.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub same_programs: Vec<SameProgram>,
}

/// What was measured and found of a slice.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Found {
    /// What was found; the profiles are in the folders of the variants.
    pub captures: Captures,
    /// What the variants took, for the next plan.
    pub times: Times,
    /// The sha256 of the record of each variant that is complete, controls of other slices among them.
    pub variants: BTreeMap<VariantId, String>,
}

impl SliceOf {
    /// The variants that the slice has to measure.
    pub fn own(&self) -> &[VariantId] {
        let at = (self.place.index as usize).saturating_sub(1);
        self.slices.get(at).map_or(&[], Vec::as_slice)
    }

    /// Whether the folder has a run that measures a slice.
    pub fn is_in(folder: &Path) -> bool {
        let run = read::<RunRecord>(&folder.join(RUN_FILE)).ok().flatten();
        run.is_some_and(|(run, _)| run.slice.is_some())
    }

    /// Reads the slice in a folder, whose record must have this sha256 where one is known.
    ///
    /// # Errors
    /// In words, what is wrong with it.
    pub fn read(folder: &Path, sha256: Option<&str>) -> Result<(SliceOf, Found), String> {
        if folder.symlink_metadata().is_err() {
            return Err("there is no such folder".to_owned());
        }
        let run = read::<RunRecord>(&folder.join(RUN_FILE))?;
        let (run, own) = run.ok_or_else(|| format!("it has no {RUN_FILE}"))?;
        if sha256.is_some_and(|sha256| sha256 != own) {
            return Err(format!("its {RUN_FILE} is not what was written"));
        }
        let is_whole = run.is_whole();
        let slice = run.slice.ok_or("what its run measured is no slice")?;
        let found = run.found.filter(|_| is_whole);
        let found = found.ok_or("it was cut off: its run did not end")?;
        let SlicePlace { index, count } = slice.place;
        SlicePlace::new(index, count).map_err(|why| format!("its {RUN_FILE} says: {why}"))?;
        if slice.slices.len() != count as usize {
            let listed = slice.slices.len();
            return Err(format!("its {RUN_FILE} lists {listed} slices of {count}"));
        }
        Ok((slice, found))
    }
}

impl Found {
    /// The sha256 of each file in the folder of a complete variant, by the path from there.
    ///
    /// # Errors
    /// In words, that its record is not the one that was written.
    pub fn files_of(
        &self,
        folder: &Path,
        variant: &VariantId,
    ) -> Result<BTreeMap<String, String>, String> {
        let path = variant_folder(folder, variant).join(VARIANT_FILE);
        match read::<VariantRecord>(&path) {
            Ok(Some((record, own)))
                if self.variants.get(variant) == Some(&own) && record.variant == *variant =>
            {
                Ok(record.into_files())
            }
            _ => Err(format!(
                "it was cut off or changed: `{variant}/{VARIANT_FILE}` is not what was written"
            )),
        }
    }
}
