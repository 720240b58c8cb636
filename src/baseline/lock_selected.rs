//! Locks the latest profiles of the selected variants: those that are sound, each with all of its
//! baselines; or all of them, or none.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;

use super::accept::{Acceptance, Candidate, Decision, noise};
use super::capture_index::{CaptureIndex, find_profile};
use super::lock::{Entry, Lock};
use super::norm_line::{NormLine, norm_lines};
use super::rederive_loaded::rederive_loaded;
use super::store::{NewBaseline, Store};
use super::verify_selected::{lock_elsewhere, lock_in_git, was_removed};
use crate::comparable::{merge, same_captures};
use crate::config::{Config, Selected, Variant};
use crate::disk;
use crate::evidence::{fewer_imported, numbers_unchecked, pins_of, unpinned};
use crate::files::{SICK_FILE, recorded_folder};
use crate::finding::{Code, Error, Finding, Stop, WarnReason};
use crate::measure::folders_of;
use crate::process;
use crate::profile::{Profile, ProfileOrigin, Taken, norm_text};
use crate::terms::VariantId;

/// What is to be locked, and by whom.
#[derive(Debug)]
pub struct LockOrder<'a> {
    /// Folders of the profiles. Profiles of one variant from several folders, or of several GPUs in
    /// one, become one baseline.
    pub folders: &'a [PathBuf],
    /// Whether only what the compiler made is locked.
    pub static_only: bool,
    /// Who accepts it, and why.
    pub acceptance: &'a Acceptance,
    /// Whether nothing is locked where a variant is refused.
    pub all_or_none: bool,
}

/// What was locked.
#[derive(Debug, Serialize)]
pub struct LockReport {
    /// Whether every selected variant was accepted, and is locked.
    pub locked: bool,
    /// The baselines that were accepted. They are stored, unless nothing is: where all or none was
    /// asked for, and a variant was refused.
    pub baselines: Vec<LockedBaseline>,
    /// The variants that were refused.
    pub left_out: Vec<LeftOut>,
    /// Why baselines were refused, and warnings.
    #[serde(skip)]
    pub findings: Vec<Finding>,
}

/// A baseline that was accepted.
#[derive(Debug, Serialize)]
pub struct LockedBaseline {
    /// The variant.
    pub variant: VariantId,
    /// The folder of its GPU model and tier.
    pub gpu: String,
    /// The normalized text, old and new.
    pub changes: Vec<NormLine>,
    /// The new entry of the ledger; absent where the same profile is locked already.
    pub entry: Option<Entry>,
}

/// A variant that was refused.
#[derive(Debug, Serialize)]
pub struct LeftOut {
    /// The variant.
    pub variant: VariantId,
    /// Its earlier baselines, which are unchanged.
    pub keeps: Vec<KeptBaseline>,
}

/// A baseline that is as it was before.
#[derive(Debug, Serialize)]
pub struct KeptBaseline {
    /// The folder of its GPU model and tier.
    pub gpu: String,
    /// When it was accepted, and why; absent where its lock cannot be read.
    pub entry: Option<Entry>,
}

/// Refuses to lock in a pipeline, unless that is `allowed`. `ci` is the environment variable `CI`.
///
/// # Errors
/// [`Error::Usage`].
pub fn refuse_in_pipeline(ci: Option<&str>, allowed: bool) -> Result<(), Error> {
    let in_ci = ci.is_some_and(|value| !matches!(value, "" | "false" | "0"));
    if in_ci && !allowed {
        return Err(Error::Usage(
            "the CI variable is set, and a pipeline that locks its own baselines gates nothing: lock on your own machine, and commit the baselines; to lock here all the same: --in-ci"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Locks the profiles of the selected variants. A variant of which anything is refused is left out,
/// with its earlier baselines unchanged.
///
/// # Errors
/// [`Error::Io`].
pub fn lock_selected(selected: &Selected, order: &LockOrder<'_>) -> Result<LockReport, Error> {
    let store = Store::open_to_change(&selected.config.baselines)?;
    let mut locking = Locking {
        config: &selected.config,
        store: &store,
        order,
        new: Vec::new(),
        baselines: Vec::new(),
        refusals: Vec::new(),
        warnings: Vec::new(),
    };
    for variant in selected.variants() {
        if process::interrupted() {
            return Err(Error::Interrupted);
        }
        let compiled = locking.compiled(variant);
        locking.note(compiled)?;
        if !order.static_only {
            let measured = locking.measured(variant);
            locking.note(measured)?;
        }
    }
    locking.finish()
}

struct Locking<'a> {
    config: &'a Config,
    store: &'a Store,
    order: &'a LockOrder<'a>,
    /// Those to be stored.
    new: Vec<NewBaseline>,
    baselines: Vec<LockedBaseline>,
    refusals: Vec<Finding>,
    warnings: Vec<Finding>,
}

impl Locking<'_> {
    /// Keeps the finding on a variant, and goes on with the others.
    fn note(&mut self, result: Result<(), Stop>) -> Result<(), Error> {
        if let Err(stop) = result {
            self.refusals.push(stop.finding()?);
        }
        Ok(())
    }

    /// Accepts or refuses the measured profiles of a variant.
    fn measured(&mut self, variant: &Variant) -> Result<(), Stop> {
        // Of a library only the code is locked.
        if self
            .compiled_profile(variant)?
            .is_some_and(|code| code.provenance.library)
        {
            return Ok(());
        }
        let (profiles, captures) = self.recorded(variant)?;
        let profile = merge(profiles).map_err(|why| {
            let message = format!("the profiles cannot become one baseline: {why}");
            let next = "lock profiles of the same code that were taken under the same conditions";
            Finding::deny(Code::NotComparable, &variant.id, message, next)
        })?;
        // What was pinned when it was measured, and what is now.
        let measured = unpinned(&variant.id, "measured", &profile.provenance.pins).or_else(|| {
            let now = pins_of(&self.config.toolchain, &profile);
            unpinned(&variant.id, "measured", &now)
        });
        self.warnings.extend(measured);
        self.warnings.extend(fewer_imported(variant, &profile));
        self.decide(variant, &profile, |candidate| {
            candidate.decide_measured(&captures)
        })
    }

    /// The folders of a variant's profiles, one a GPU.
    fn folders(&self, variant: &Variant) -> Result<Vec<PathBuf>, Error> {
        let named = self.order.folders.iter();
        let folders = named.map(|folder| folders_of(folder, &variant.id));
        let folders: Vec<Vec<PathBuf>> = folders.collect::<Result<_, _>>()?;
        Ok(folders.concat())
    }

    /// The profiles of a variant, one from each of the folders, and their captures.
    fn recorded(&self, variant: &Variant) -> Result<(Vec<Profile>, CaptureIndex), Stop> {
        let mut profiles = Vec::new();
        let mut captures = CaptureIndex::default();
        let folders = self.folders(variant)?;
        for folder in &folders {
            match readable(Profile::recorded(folder, &variant.id), variant)? {
                Some(_) if disk::is_there(folder.join(SICK_FILE)) => {
                    let folder = folder.display();
                    let message =
                        format!("the run that measured into {folder} saw that its GPU is sick");
                    return Err(Finding::of(Code::GpuSick, &variant.id, message).into());
                }
                Some(profile) => {
                    if let Some(at) = profiles.iter().position(|it| same_captures(it, &profile)) {
                        let [one, other] = [&folders[at], folder].map(|it| it.display());
                        let message = format!("{one} and {other} have the same captures");
                        let (code, next) = (Code::NotComparable, "leave one of them out");
                        return Err(Finding::deny(code, &variant.id, message, next).into());
                    }
                    profiles.push(profile);
                }
                None => {
                    let message = format!("{} contains no profile of it", folder.display());
                    let (code, id) = (Code::ProfileMissing, &variant.id);
                    let found = find_profile(folder, &recorded_folder(folder, id), id);
                    let next = found.unwrap_or_else(|| format!(
                        "measure it: `sparsek-gate profile {id}` (`--output DIR` for `--from DIR`); without a GPU, `sparsek-gate build {id}` and `sparsek-gate baseline --lock --static --reason '...' {id}` lock its compiled code"
                    ));
                    return Err(Finding::deny(code, id, message, next).into());
                }
            }
            captures.add(&recorded_folder(folder, &variant.id))?;
        }
        Ok((profiles, captures))
    }

    /// Accepts or refuses what the compiler made of a variant, if the static gate covers it. Unless
    /// only this is to be locked, it may be missing.
    fn compiled(&mut self, variant: &Variant) -> Result<(), Stop> {
        if let Some(why) = variant.why_no_static_gate() {
            if self.order.static_only {
                let message = format!("nothing of it can be locked without a GPU: {why}");
                let next = "profile it, and lock that";
                let finding = Finding::deny(Code::NotMeasured, &variant.id, message, next);
                self.warnings
                    .push(finding.warn_for(WarnReason::NoStaticGate));
            }
            return Ok(());
        }
        let Some(profile) = self.compiled_profile(variant)? else {
            return Ok(());
        };
        if variant.loaded_code {
            let (measured, captures) = self.recorded(variant)?;
            for measured in &measured {
                let config = self.config;
                if let Some(altered) =
                    rederive_loaded(config, variant, measured, &profile, &captures)?
                {
                    return Err(altered.into());
                }
            }
        }
        let pins = &profile.provenance.pins;
        self.warnings
            .extend(unpinned(&variant.id, "compiled", pins));
        let stored = self.store.load(&profile.identity.folder(), &variant.id)?;
        // The same code that was compiled at another time makes no new baseline.
        let locked = stored.and_then(|stored| Profile::parse(stored.profile.as_deref()?).ok());
        // Where neither a launch nor the configuration gives it, what was locked of it stays locked.
        let profile = match &locked {
            Some(locked) => profile.with_launches_of(locked, Taken::Unknown).0,
            None => profile,
        };
        let locked = locked.filter(|locked| {
            locked.variant == profile.variant
                && locked.kernels == profile.kernels
                && locked.identity == profile.identity
                && locked.provenance.sources == profile.provenance.sources
                && locked.provenance.warnings == profile.provenance.warnings
        });
        let profile = locked.unwrap_or(profile);
        self.decide(variant, &profile, |candidate| candidate.decide_compiled())
    }

    /// The static profile of a variant, the same in all folders that contain one.
    fn compiled_profile(&self, variant: &Variant) -> Result<Option<Profile>, Stop> {
        let mut profiles = Vec::new();
        for folder in self.folders(variant)? {
            let profile = Profile::recorded_static(&folder, &variant.id);
            profiles.extend(readable(profile, variant)?);
        }
        let Some((profile, others)) = profiles.split_first() else {
            // Every measurement makes one of what it loaded.
            if !self.order.static_only && !variant.loaded_code {
                return Ok(None);
            }
            let message = "it has no static profile";
            let next = format!(
                "build it, then lock it: `sparsek-gate build {}`",
                variant.id
            );
            let code = Code::ProfileMissing;
            return Err(Finding::deny(code, &variant.id, message, next).into());
        };
        let other = others.iter().find(|other| other.kernels != profile.kernels);
        if let Some(other) = other {
            let message = format!(
                "the folders contain static profiles of different code ({} and {})",
                profile.provenance.created, other.provenance.created
            );
            let next = "lock profiles of the same code";
            return Err(Finding::deny(Code::NotComparable, &variant.id, message, next).into());
        }
        Ok(Some(profile.clone()))
    }

    fn decide(
        &mut self,
        variant: &Variant,
        profile: &Profile,
        decide: impl FnOnce(&Candidate<'_>) -> Decision,
    ) -> Result<(), Stop> {
        let stored = self.store.load(&profile.identity.folder(), &variant.id)?;
        if stored.is_none()
            && let Some(next) = lock_in_git(self.config, profile)
                .or_else(|| lock_elsewhere(self.config, &variant.id))
        {
            self.refusals.push(was_removed(&variant.id, &next));
            return Ok(());
        }
        let decision = decide(&Candidate {
            config: self.config,
            variant,
            profile,
            stored: stored.as_ref(),
            acceptance: self.order.acceptance,
        });
        let new = match decision {
            Ok(new) => new,
            Err(findings) => {
                self.refusals.extend(findings);
                return Ok(());
            }
        };
        self.warnings.extend(noise(variant, profile));
        let (norm, norm_sha256, locked, lock) = stored.map_or((None, None, None, None), |old| {
            (old.norm, old.norm_sha256, old.profile, old.lock)
        });
        let lock = lock.and_then(|text| Lock::parse(&text).ok());
        let hashes = |lock: &Lock| {
            let last = lock.ledger.last()?.clone();
            Some((last.norm_sha256, last.profile_sha256, lock.code_sha256()))
        };
        let same_lock = lock.is_some_and(|old| hashes(&old) == hashes(&new.lock));
        let before = locked.as_deref().and_then(|old| Profile::parse(old).ok());
        let unchecked = numbers_unchecked(variant, &before.iter().collect::<Vec<_>>(), profile);
        // An import that is locked now is not to be locked again.
        let measure = (profile.provenance.origin == ProfileOrigin::Imported).then(|| {
            format!(
                "an import has no results of its program: measure it, `sparsek-gate profile {}`",
                variant.id
            )
        });
        let unchecked = unchecked.map(|finding| finding.or_next(measure));
        self.warnings
            .extend(unchecked.map(|finding| finding.warn_for(WarnReason::Replaced)));
        let same_norm =
            norm.as_deref() == Some(new.norm.as_bytes()) && norm_sha256 == Some(new.norm_sha256());
        // The text may be damaged, or missing.
        let locked_norm = before
            .as_ref()
            .and_then(norm_text)
            .unwrap_or_else(|| String::from_utf8_lossy(&norm.unwrap_or_default()).into_owned());
        let unchanged =
            same_norm && same_lock && locked.is_some_and(|locked| locked == new.profile.as_bytes());
        self.baselines.push(LockedBaseline {
            variant: variant.id.clone(),
            gpu: new.gpu.clone(),
            changes: norm_lines(&locked_norm, &new.norm),
            entry: new.lock.ledger.last().cloned().filter(|_| !unchanged),
        });
        if !unchanged {
            self.new.push(new);
        }
        Ok(())
    }

    /// Stores the accepted baselines of the variants of which none was refused.
    fn finish(mut self) -> Result<LockReport, Error> {
        let refused: BTreeSet<VariantId> = self
            .refusals
            .iter()
            .filter_map(|finding| finding.variant.clone())
            .collect();
        let left_out = refused.iter().map(|id| self.left_out(id));
        let left_out = left_out.collect::<Result<Vec<_>, _>>()?;
        let locked = self.refusals.is_empty();
        // What is not about one variant may be about each of them.
        let about_all = self.refusals.iter().any(|one| one.variant.is_none());
        if about_all {
            self.new.clear();
            self.baselines.clear();
        } else if self.order.all_or_none && !locked {
            self.new.clear();
        } else {
            self.new.retain(|new| !refused.contains(&new.lock.variant));
            self.baselines.retain(|one| !refused.contains(&one.variant));
        }
        if !self.new.is_empty() {
            self.store.replace(&self.new)?;
        }
        self.refusals.extend(self.warnings);
        Ok(LockReport {
            locked,
            baselines: self.baselines,
            left_out,
            findings: self.refusals,
        })
    }

    /// A refused variant, with the baselines that it keeps.
    fn left_out(&self, variant: &VariantId) -> Result<LeftOut, Error> {
        let stored = self.store.all_of(variant)?.into_iter();
        let keeps = stored.map(|stored| {
            let lock = stored.lock.and_then(|text| Lock::parse(&text).ok());
            KeptBaseline {
                gpu: stored.gpu,
                entry: lock.and_then(|lock| lock.ledger.last().cloned()),
            }
        });
        Ok(LeftOut {
            variant: variant.clone(),
            keeps: keeps.collect(),
        })
    }
}

/// A profile that was read; the finding that its file is damaged.
fn readable(
    profile: Result<Option<Profile>, Error>,
    variant: &Variant,
) -> Result<Option<Profile>, Stop> {
    profile.map_err(|error| match error {
        Error::Input { .. } | Error::Io { .. } => {
            Finding::of(Code::CaptureUnreadable, &variant.id, error.to_string()).into()
        }
        error => error.into(),
    })
}
