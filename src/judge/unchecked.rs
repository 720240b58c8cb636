//! Locked variants that a check left out.

use crate::baseline::Store;
use crate::config::Selected;
use crate::finding::{Code, Error, Finding};
use crate::terms::Tier;

/// Locked variants that a check of everything, or of their suite, left out, and locked code that
/// is no longer gated: removing a variant from the configuration must be seen.
///
/// # Errors
/// [`Error::Io`].
pub fn unchecked(plan: &Selected, store: &Store) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    for id in store.variants()? {
        if !plan.covers(&id) || plan.variants.iter().any(|variant| variant.id == id) {
            continue;
        }
        let why = match plan.config.variant(&id) {
            None => "the configuration does not contain it",
            Some(_) => "it is experimental, and was not asked for (--experimental)",
        };
        findings.push(Finding::deny(
            Code::VariantGone,
            &id,
            format!("it is locked and was not checked: {why}"),
            format!(
                "put it back, or remove its baseline from {}",
                plan.config.baselines.display()
            ),
        ));
    }
    for variant in &plan.variants {
        let folders = store.gpus_of(&variant.id)?;
        let mut compiled = folders
            .iter()
            .filter(|folder| Tier::of_folder(folder) == Tier::Static);
        let (Some(why), Some(folder)) = (variant.why_no_static_gate(), compiled.next()) else {
            continue;
        };
        findings.push(Finding::deny(
            Code::VariantGone,
            &variant.id,
            format!("its compiled code is locked and was not checked: {why}"),
            format!(
                "put it back, or remove its baseline from {}",
                plan.config.baselines.join(folder).display()
            ),
        ));
    }
    Ok(findings)
}
