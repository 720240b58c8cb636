//! Verifies what is locked: of the selected variants, and of those that nothing gates.

use super::capture_index::CaptureIndex;
use super::rederive::rederive;
use super::store::{Store, Stored};
use super::verify::{Trusted, verify_files, verify_stored};
use crate::config::{Config, Selected, Variant};
use crate::evidence::unpinned;
use crate::finding::{Code, Error, Finding};
use crate::git;
use crate::profile::Profile;
use crate::terms::{Tier, VariantId};

/// What was verified.
#[derive(Debug, Default)]
pub struct VerifyReport {
    /// The baselines without a finding, `GPU folder/suite/variant`.
    pub verified: Vec<String>,
    /// What is wrong with the others, and warnings.
    pub findings: Vec<Finding>,
}

/// Verifies the baselines of the selected variants, and those that no check uses. With captures,
/// the locked profiles are derived from them again.
///
/// # Errors
/// [`Error::Io`].
pub fn verify_selected(
    selected: &Selected,
    store: &Store,
    captures: Option<&CaptureIndex>,
) -> Result<VerifyReport, Error> {
    let config = &selected.config;
    let mut report = VerifyReport::default();
    for variant in selected.variants() {
        let baselines = store.all_of(&variant.id)?;
        if baselines.is_empty() {
            report.findings.push(no_baseline(variant));
        }
        for stored in baselines {
            let trusted = report.verify(config, captures, Some(variant), &stored);
            let unpinned = trusted.as_ref().and_then(measured_unpinned);
            report.findings.extend(unpinned);
        }
    }
    for (gpu, id) in store.stored()? {
        if !selected.covers(&id) || selected.variants.iter().any(|variant| variant.id == id) {
            continue;
        }
        if let Some(stored) = store.load(&gpu, &id)? {
            let variant = config.variant(&id);
            report.verify(config, captures, variant, &stored);
            report.findings.push(unused(&gpu, &id, variant));
        }
    }
    Ok(report)
}

impl VerifyReport {
    /// Verifies one baseline, of a variant or of none that is configured.
    fn verify(
        &mut self,
        config: &Config,
        captures: Option<&CaptureIndex>,
        variant: Option<&Variant>,
        stored: &Stored,
    ) -> Option<Trusted> {
        let (trusted, mut findings) = match variant {
            Some(variant) => verify_stored(config, variant, stored),
            None => verify_files(config, stored),
        };
        // Without a variant there is nothing to derive the profile's kernels for. What the compiler
        // made is derived again by compiling it: `check --static`.
        if let (Some(trusted), Some(captures), Some(variant)) = (&trusted, captures, variant)
            && trusted.profile.identity.tier != Tier::Static
        {
            findings.extend(rederive(variant, &trusted.profile, captures));
        }
        if !findings.iter().any(Finding::denies) {
            self.verified
                .push(format!("{}/{}", stored.gpu, stored.variant));
        }
        self.findings.extend(findings);
        trusted
    }
}

/// That a locked profile was measured with another toolchain than is pinned.
pub fn measured_unpinned(trusted: &Trusted) -> Option<Finding> {
    let profile = &trusted.profile;
    unpinned(&profile.variant, "measured", &profile.provenance.pins)
}

/// The lock of a profile's variant that git knows in another folder than that of the baselines.
pub fn lock_elsewhere(config: &Config, profile: &Profile) -> Option<String> {
    let top = git::repository(&config.root).ok()?.top;
    let name = format!(
        "/{}/{}.lock.toml",
        profile.identity.folder(),
        profile.variant
    );
    let mut files = git::shown(&top).ok()?.into_iter();
    files.find(|file| file.ends_with(&name) && !top.join(file).starts_with(&config.baselines))
}

/// That a variant has no baseline.
pub(super) fn no_baseline(variant: &Variant) -> Finding {
    Finding::of(Code::NewBaseline, &variant.id, "it has no baseline yet")
}

/// That no check uses a baseline.
fn unused(gpu: &str, id: &VariantId, variant: Option<&Variant>) -> Finding {
    let why = match variant {
        Some(_) => "it is experimental, and only checked when named",
        None => "it is not in the configuration",
    };
    let message = format!("it is locked on {gpu}, and no check uses the baseline: {why}");
    Finding::of(Code::LockUnused, id, message)
}
