//! Locked variants that a check left out.

use std::collections::BTreeSet;

use crate::baseline::{Store, removal};
use crate::config::{FILE_NAME, Selected};
use crate::finding::{Code, Error, Finding};
use crate::terms::{Tier, VariantId};

/// Locked variants that a check of everything, or of their suite, left out, and locked code that
/// is no longer gated: removing a variant from the configuration must be seen.
///
/// # Errors
/// [`Error::Io`].
pub fn unchecked(plan: &Selected, store: &Store) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    let remove = removal(&plan.config);
    let gone = |id: &VariantId, message: String, gpus: &str| {
        let back = match () {
            () if message.ends_with("no `program` that counts is stated") => {
                "state `program` or `libraries` again (one that a change adds counts once its `policy-changed` is accepted)"
            }
            () if message.ends_with("(--experimental)") => {
                "take `experimental` out of it, or check it too: --experimental"
            }
            () if !plan.config.path.ends_with(FILE_NAME) => {
                "put it back, or give this configuration a `paths.baselines` of its own"
            }
            () => "put it back",
        };
        let remove = remove(gpus, id);
        let next =
            format!("{back}, or remove its baseline, which a pull request has to accept: {remove}");
        Finding::deny(Code::VariantGone, id, message, next)
    };
    let stored = store.stored()?.into_iter().map(|(_, id)| id);
    for id in stored.collect::<BTreeSet<VariantId>>() {
        if !plan.covers(&id) || plan.variants.iter().any(|variant| variant.id == id) {
            continue;
        }
        let why = match plan.config.variant(&id) {
            None => "the configuration does not contain it",
            Some(_) => "it is experimental, and was not asked for (--experimental)",
        };
        let message = format!("it is locked and was not checked: {why}");
        findings.push(gone(&id, message, "*"));
    }
    for variant in &plan.variants {
        let folders = store.gpus_of(&variant.id)?;
        let is_static = |folder: &String| Tier::of_folder(folder) == Tier::Static;
        if let (Some(why), true) = (variant.why_no_static_gate(), folders.iter().any(is_static)) {
            let message = format!("its compiled code is locked and was not checked: {why}");
            findings.push(gone(&variant.id, message, "*+static"));
        }
    }
    Ok(findings)
}
