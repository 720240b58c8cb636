//! Appends the effects of a check to what is recorded of the variants.

use serde::Serialize;

use super::effects::{EffectEntry, gaps, parse_effects, with_entry};
use super::lock::Lock;
use super::store::Store;
use crate::finding::{Code, Error, Finding};
use crate::terms::VariantId;

/// What a check measured of a variant on a GPU model.
#[derive(Debug)]
pub struct NewEffects {
    /// Folder of the GPU model and the tier.
    pub gpu: String,
    /// Which variant.
    pub variant: VariantId,
    /// What was measured.
    pub entry: EffectEntry,
}

/// What was recorded of a variant.
#[derive(Debug, Serialize)]
pub struct RecordedEffects {
    /// Which variant.
    pub variant: VariantId,
    /// Folder of the GPU model and the tier.
    pub gpu: String,
    /// Whether a line was appended; otherwise this measurement is recorded already.
    pub appended: bool,
    /// How many checks are recorded now.
    pub checks: usize,
}

/// Appends the effects of variants that have a baseline. Those of others are refused, and so are
/// those of a file that was edited.
///
/// # Errors
/// [`Error::Io`].
pub fn record_effects(
    store: &Store,
    new: Vec<NewEffects>,
) -> Result<(Vec<RecordedEffects>, Vec<Finding>), Error> {
    let (mut texts, mut recorded, mut findings) = (Vec::new(), Vec::new(), Vec::new());
    for NewEffects {
        gpu,
        variant,
        entry,
    } in new
    {
        let twice = |(other, of, _): &(String, VariantId, String)| (other, of) == (&gpu, &variant);
        if texts.iter().any(twice) {
            findings.push(Finding::deny(
                Code::Tampered,
                &variant,
                format!("the outcome has two reports of it on {gpu}"),
                "record the outcome as `check` wrote it",
            ));
            continue;
        }
        let stored = store.load(&gpu, &variant)?;
        let lock = stored.as_ref().and_then(|stored| stored.lock.as_deref());
        if lock.is_none_or(|text| Lock::parse(text).is_err()) {
            findings.push(Finding::deny(
                Code::NewBaseline,
                &variant,
                format!("it has no baseline on {gpu}, so its effects are not recorded"),
                format!("sparsek-gate baseline --lock --reason '...' {variant}"),
            ));
            continue;
        }
        let text = stored.and_then(|stored| stored.effects).unwrap_or_default();
        let entries = match parse_effects(&text) {
            Ok(entries) => entries,
            Err(cause) => {
                findings.push(Finding::deny(
                    Code::Tampered,
                    &variant,
                    format!("{gpu}/{variant}.effects.jsonl: {cause}"),
                    "restore it from version control",
                ));
                continue;
            }
        };
        let same = |one: &EffectEntry| one.time == entry.time && one.after == entry.after;
        let known = entries.iter().any(same);
        let mut checks = entries.len();
        if !known {
            let mut all = entries;
            all.push(entry.clone());
            checks = all.len();
            if gaps(&all).last() == Some(&(checks - 1)) {
                findings.push(Finding::deny(
                    Code::EffectsMissing,
                    &variant,
                    format!("its code changed between the check before and this one on {gpu}, and no effect of that is recorded"),
                    "record the outcome of each check on the target branch: sparsek-gate baseline --record outcome.json",
                ));
            }
            texts.push((gpu.clone(), variant.clone(), with_entry(&text, entry)));
        }
        recorded.push(RecordedEffects {
            variant,
            gpu,
            appended: !known,
            checks,
        });
    }
    if !texts.is_empty() {
        store.record(&texts)?;
    }
    Ok((recorded, findings))
}
