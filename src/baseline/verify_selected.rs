//! Verifies what is locked: of the selected variants, and of those that nothing gates.

use std::collections::BTreeMap;
use std::path::PathBuf;

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
    let removed = removed_locks(config).unwrap_or_default();
    for variant in selected.variants() {
        let id = &variant.id;
        let gone = removed_of(&removed, id);
        let baselines = store.all_of(id)?;
        if baselines.is_empty() && gone.is_empty() {
            report.findings.push(no_baseline(config, variant));
        }
        report.findings.extend(gone);
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

/// The findings that locks of these variants are missing which HEAD has.
pub fn removed(selected: &Selected) -> Vec<Finding> {
    let removed = removed_locks(&selected.config).unwrap_or_default();
    let variants = selected.variants.iter();
    variants
        .flat_map(|one| removed_of(&removed, &one.id))
        .collect()
}

fn removed_of(removed: &BTreeMap<String, String>, id: &VariantId) -> Vec<Finding> {
    let own = format!("/{id}");
    let gone = removed.iter().filter(|(lock, _)| lock.ends_with(&own));
    gone.map(|(_, next)| was_removed(id, next)).collect()
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

/// What to do where git has a lock of a variant in another folder than that of the baselines,
/// and not in that of another project.
pub fn lock_elsewhere(config: &Config, id: &VariantId) -> Option<String> {
    let top = git::repository(&config.root).ok()?.top;
    let name = format!("/{id}.lock.toml");
    let is_moved = |file: &String| {
        let of_gpu = file.strip_suffix(&name).map(|folder| top.join(folder));
        of_gpu.is_some_and(|of_gpu| {
            let folder = folder_of(&of_gpu);
            let project = folder_of(folder);
            let has_own = disk::is_file(project.join(FILE_NAME));
            folder != config.baselines && (project == config.root || !has_own)
        })
    };
    let lock = git::shown(&top).ok()?.into_iter().find(is_moved)?;
    let or = match top.join(&lock).starts_with(&config.root) {
        true => "correct the key",
        false => "move the configuration back: all paths count from its folder",
    };
    Some(format!(
        "`{lock}` is not where `paths.baselines` has them: move the baselines there (git mv), or {or}"
    ))
}

/// What to do where the lock of a profile's variant is not used: it is part of the change, or was removed
/// and HEAD has it. A new one would begin its ledger again.
pub fn lock_in_git(config: &Config, profile: &Profile) -> Option<String> {
    let (_, baselines) = baselines_in_git(config)?;
    let own = format!("{}/{}", profile.identity.folder(), profile.variant);
    let lock = format!("{own}.lock.toml");
    match disk::is_there(config.baselines.join(&lock)) {
        true => Some(format!(
            "`{baselines}/{lock}` is part of this change, and counts once it is accepted"
        )),
        false => removed_locks(config)?.remove(&own),
    }
}

/// The top of the repository, and the folder of the baselines as seen from there.
fn baselines_in_git(config: &Config) -> Option<(PathBuf, String)> {
    let top = git::repository(&config.root).ok()?.top;
    // Git knows the folder without links and `..`.
    let below = config.baselines.strip_prefix(&config.root).ok()?;
    let baselines = disk::leads_to(&config.root).join(below);
    let baselines = baselines.strip_prefix(&top).ok()?.to_str()?.to_owned();
    Some((top, baselines))
}

/// The locks that HEAD has and the working tree lacks, `GPU folder/suite/variant`, with what to do.
fn removed_locks(config: &Config) -> Option<BTreeMap<String, String>> {
    let (top, baselines) = baselines_in_git(config)?;
    let committed = git::objects_at(&top, "HEAD").ok()?;
    let removed = committed.keys().filter(|it| !disk::is_there(top.join(it)));
    let restored = |lock: &String| {
        let path = lock.strip_suffix(".lock.toml")?;
        let own = path.strip_prefix(&baselines)?.strip_prefix('/')?;
        let next = match git::is_left_out(&top, lock) {
            true => {
                "the sparse checkout leaves its lock out: git sparse-checkout disable".to_owned()
            }
            false => format!("HEAD has its lock: restore it: git checkout HEAD -- ':/{path}.*'"),
        };
        Some((own.to_owned(), next))
    };
    Some(removed.filter_map(restored).collect())
}

/// That a lock of a variant is missing which HEAD has.
pub(super) fn was_removed(id: &VariantId, next: &str) -> Finding {
    let message = "git has a lock of it that is not used";
    Finding::deny(Code::NewBaseline, id, message, next)
}

/// That a variant has no baseline.
pub(super) fn no_baseline(config: &Config, variant: &Variant) -> Finding {
    let finding = Finding::of(Code::NewBaseline, &variant.id, "it has no baseline yet");
    let next = lock_elsewhere(config, &variant.id).unwrap_or(finding.next);
    Finding { next, ..finding }
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
