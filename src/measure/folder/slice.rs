//! The slice of a check that a run measured, for who judges it elsewhere.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::file::read;
use super::record::VariantRecord;
use crate::files::{VARIANT_FILE, variant_folder};
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
    /// The revision that is measured, and the commit of the base beside it, where they are known.
    pub revisions: [Option<String>; 2],
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
    /// The sha256 of the record of each variant that is complete.
    pub variants: BTreeMap<VariantId, String>,
}

impl SliceOf {
    /// The variants that the slice has to measure.
    pub fn own(&self) -> &[VariantId] {
        let at = (self.place.index as usize).saturating_sub(1);
        self.slices.get(at).map_or(&[], Vec::as_slice)
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
