//! Signs the locks of the selected variants: all of them, or none.

use serde::Serialize;

use super::signature::{Signer, unknown_key};
use super::store::{Store, Stored};
use super::verify::verify_stored;
use super::verify_selected::no_baseline;
use crate::config::{Config, Selected, Trust};
use crate::finding::{Error, Finding};

/// What was signed.
#[derive(Debug, Serialize)]
pub struct SignReport {
    /// Whether the signatures were stored. They are not if any lock was refused.
    pub signed: bool,
    /// The public key of who signed.
    pub key: String,
    /// The locks that were accepted, `GPU folder/suite/variant`.
    pub locks: Vec<String>,
    /// Why locks were refused, and warnings.
    #[serde(skip)]
    pub findings: Vec<Finding>,
}

/// Signs the locks of the selected variants, if all of their baselines are unchanged.
///
/// # Errors
/// [`Error::Io`], and [`Error::Baseline`] where a lock cannot be signed.
pub fn sign_selected(selected: &Selected, signer: &Signer) -> Result<SignReport, Error> {
    let store = Store::open_to_change(&selected.config.baselines)?;
    // The present signature is about to be replaced, so it is not verified.
    let without_keys = Config {
        trust: Trust::default(),
        ..selected.config.clone()
    };
    let mut findings = Vec::new();
    let mut signatures = Vec::new();
    for variant in selected.variants() {
        let baselines = store.all_of(&variant.id)?;
        if baselines.is_empty() {
            findings.push(no_baseline(variant));
        }
        for stored in baselines {
            let stored = Stored {
                signature: None,
                ..stored
            };
            let (trusted, found) = verify_stored(&without_keys, variant, &stored);
            findings.extend(found);
            if let (Some(_), Some(lock)) = (trusted, &stored.lock) {
                let signature = signer.sign(&stored.gpu, &variant.id, lock)?;
                signatures.push((stored.gpu, variant.id.clone(), signature));
            }
        }
    }
    let signed = findings.is_empty();
    if signed {
        store.sign(&signatures)?;
    }
    findings.extend(unknown_key(&selected.config, Some(signer)));
    let locks = signatures.iter();
    Ok(SignReport {
        signed,
        key: signer.public_key(),
        locks: locks
            .map(|(gpu, variant, _)| format!("{gpu}/{variant}"))
            .collect(),
        findings,
    })
}
