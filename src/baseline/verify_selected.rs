//! Verifies what is locked: of the selected variants, and of those that nothing gates.

use super::capture_index::CaptureIndex;
use super::rederive::rederive;
use super::store::{Store, Stored};
use super::verify::{Trusted, verify_files, verify_stored};
use crate::config::{Config, FILE_NAME, Selected, Variant};
use crate::disk::{self, folder_of};
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

/// What to do where git has the lock of a profile's variant in another folder than that of the baselines,
/// and not in that of another project.
pub fn lock_elsewhere(config: &Config, profile: &Profile) -> Option<String> {
    let top = git::repository(&config.root).ok()?.top;
    let (gpu, id) = (profile.identity.folder(), &profile.variant);
    let name = format!("/{gpu}/{id}.lock.toml");
    let is_moved = |file: &String| {
        let folder = file.strip_suffix(&name).map(|folder| top.join(folder));
        folder.is_some_and(|folder| {
            let project = folder_of(&folder);
            let has_own = disk::is_file(project.join(FILE_NAME));
            folder != config.baselines && (project == config.root || !has_own)
        })
    };
    let lock = git::shown(&top).ok()?.into_iter().find(is_moved)?;
    Some(format!(
        "`{lock}` is not where `paths.baselines` has them: move the baselines there (git mv), or correct the key"
    ))
}

/// What to do where the lock of a profile's variant is not used: it is part of the change, or was removed
/// and HEAD has it. A new one would begin its ledger again.
pub fn lock_in_git(config: &Config, profile: &Profile) -> Option<String> {
    let top = git::repository(&config.root).ok()?.top;
    let own = format!("{}/{}", profile.identity.folder(), profile.variant);
    let own = config.baselines.join(own);
    let own = own.strip_prefix(&top).ok()?.to_str()?;
    let lock = format!("{own}.lock.toml");
    if disk::is_there(top.join(&lock)) {
        return Some(format!(
            "`{lock}` is part of this change, and counts once it is accepted"
        ));
    }
    let committed = git::files_at(&top, "HEAD", &lock).ok()?;
    let restore = match git::is_left_out(&top, &lock) {
        true => "the sparse checkout leaves its lock out: git sparse-checkout disable".to_owned(),
        false => format!("HEAD has its lock: restore it: git checkout HEAD -- ':/{own}.*'"),
    };
    (!committed.is_empty()).then_some(restore)
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
