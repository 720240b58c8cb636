//! Profile to baseline: which profiles may be locked, and what the lock then says.

use std::collections::BTreeMap;

use super::capture_index::CaptureIndex;
use super::lock::{Entry, Lock};
use super::rederive::rederive;
use super::store::{NewBaseline, Stored};
use super::verify::repair;
use crate::build::stated_flags;
use crate::comparable::{changed_code, changed_conditions};
use crate::config::{Config, Variant};
use crate::evidence::{Purpose, conditions_unknown, disturbed, incomplete, incomplete_compiled};
use crate::finding::{Code, Error, Finding};
use crate::hash::sha256_hex;
use crate::profile::{Profile, ProfileOrigin, norm_text, now};
use crate::terms::{Phase, Tier};

/// What to do where a profile cannot become a baseline.
const AGAIN: &str = "measure it again with `sparsek-gate profile` (`--output DIR` for `--from DIR`), which always verifies, by this version and from this configuration";

/// Who accepts, when, and why.
#[derive(Clone, Debug)]
pub struct Acceptance {
    /// RFC 3339, UTC.
    pub time: String,
    /// Who.
    pub who: String,
    /// Why.
    pub reason: String,
    /// Whether an imported profile may be locked.
    pub imported: bool,
    /// Whether an immutable variant may be locked with other sources than before.
    pub immutable: bool,
}

impl Acceptance {
    /// An acceptance of this moment.
    ///
    /// # Errors
    /// [`Error::Usage`] where the reason or the name is empty, or not plain text.
    pub fn new(
        reason: &str,
        who: &str,
        imported: bool,
        immutable: bool,
    ) -> Result<Acceptance, Error> {
        let (reason, who) = (reason.trim(), who.trim());
        for (text, needed) in [
            (
                reason,
                "--reason must say why the profiles are accepted: --reason \"128-bit loads\"",
            ),
            (
                who,
                "the person who accepts the profiles has no name, or git is not on the PATH: --who NAME, or git config --global user.name NAME",
            ),
        ] {
            if text.is_empty() {
                return Err(Error::Usage(needed.to_owned()));
            }
        }
        let mut text = reason.chars().chain(who.chars());
        if let Some(c) = text.find(|c| c.is_control() && *c != '\n') {
            return Err(Error::Usage(format!(
                "--reason and --who go into the ledger as plain text, without control characters ({c:?})"
            )));
        }
        Ok(Acceptance {
            time: now(),
            who: who.to_owned(),
            reason: reason.to_owned(),
            imported,
            immutable,
        })
    }
}

/// A profile that may become a baseline.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The variant.
    pub variant: &'a Variant,
    /// The profile.
    pub profile: &'a Profile,
    /// The baseline that it would replace.
    pub stored: Option<&'a Stored>,
    /// Who accepts it, and why.
    pub acceptance: &'a Acceptance,
}

/// The baseline that a profile becomes, or why it must not.
pub type Decision = Result<NewBaseline, Vec<Finding>>;

impl Candidate<'_> {
    /// Decides on a measured or imported profile.
    pub fn decide_measured(&self, captures: &CaptureIndex) -> Decision {
        let (variant, profile) = (self.variant, self.profile);
        let mut findings = incomplete(variant, profile);
        findings.extend(self.origin());
        findings.extend(self.changed_or_stripped());
        let norm = norm_text(profile);
        if norm.is_none() && findings.is_empty() {
            findings.push(self.again("a recorded metric has no value"));
        }
        findings.extend(rederive(variant, profile, captures));
        let disturbed = disturbed(variant, profile, Purpose::Baseline).into_iter();
        findings.extend(disturbed.filter(Finding::denies));
        self.decide(norm, findings)
    }

    /// Decides on a profile of the static tier.
    pub fn decide_compiled(&self) -> Decision {
        let (variant, profile) = (self.variant, self.profile);
        let mut reasons = Vec::new();
        if profile.variant != variant.id || profile.identity.tier != Tier::Static {
            reasons.push("the profile is not a static profile of this variant".to_owned());
        }
        let (gpu, arch) = (&profile.identity.gpu, &self.config.toolchain.arch);
        if gpu != arch {
            reasons.push(format!(
                "it was compiled for {gpu}, and the configuration names {arch}"
            ));
        }
        if !profile.provenance.overrides.is_empty() {
            reasons.push(format!(
                "it was compiled with --define {}, which is not in the configuration",
                profile.provenance.overrides.join(" ")
            ));
        }
        if profile.provenance.stripped {
            reasons.push("the profile is a stripped copy".to_owned());
        }
        for change in changed_code(self.config, variant, profile) {
            reasons.push(format!("{change} changed since it was compiled"));
        }
        let filter = variant.kernel_filter();
        let mut names = profile.kernels.iter().map(|kernel| &kernel.name);
        if let Some(name) = names.find(|name| !filter.matches(name)) {
            reasons.push(format!(
                "it contains `{name}`, which `kernels` does not select"
            ));
        }
        let mut findings = incomplete_compiled(variant, profile);
        let reasons = reasons.into_iter();
        let next = format!(
            "where it was recorded, record it again (`profile --output DIR`); else compile it again: `sparsek-gate build {}`",
            variant.id
        );
        findings.extend(reasons.map(|why| self.refuse(Code::NotMeasured, why, &next)));
        self.decide(norm_text(profile), findings)
    }

    fn refuse(&self, code: Code, message: String, next: &str) -> Finding {
        Finding::deny(code, &self.variant.id, message, next)
    }

    fn again(&self, message: impl Into<String>) -> Finding {
        self.refuse(Code::NotMeasured, message.into(), AGAIN)
    }

    /// What the origin of the profile says against it.
    fn origin(&self) -> Vec<Finding> {
        let (variant, profile) = (self.variant, self.profile);
        let provenance = &profile.provenance;
        let mut findings = Vec::new();
        if profile.variant != variant.id {
            let message = format!("the profile is one of {}", profile.variant);
            findings.push(self.refuse(Code::CaptureUnreadable, message, AGAIN));
        }
        if !provenance.overrides.is_empty() {
            findings.push(self.again(format!(
                "it was measured with --define {}, which is not in the configuration",
                provenance.overrides.join(" ")
            )));
        }
        if let Some(date) = &provenance.verified_before {
            findings.push(self.again(format!(
                "the run that measured it did not verify it, because a run of {date} did"
            )));
        }
        if provenance.origin == ProfileOrigin::Imported && !self.acceptance.imported {
            findings.push(self.refuse(
                Code::NotMeasured,
                "the profile was imported, not measured by this tool".to_owned(),
                "measure it here, or accept the import: --accept-imported",
            ));
        }
        let unknown = conditions_unknown(profile).into_iter();
        findings.extend(unknown.map(|it| self.refuse(it.code, it.message, &it.next)));
        let processes = profile.machines(Phase::Timing);
        let alone =
            |uuid: &Option<&str>| processes.iter().filter(|other| *other == uuid).count() < 2;
        if provenance.origin == ProfileOrigin::Measured
            && variant.has_phase(Phase::Timing)
            && processes.iter().any(alone)
        {
            findings.push(self.again(
                "it was measured in one process (`profile.processes`), so the spread between processes is not known",
            ));
        }
        findings
    }

    /// What changed since the profile was measured, and what a copy of it lacks.
    fn changed_or_stripped(&self) -> Vec<Finding> {
        let provenance = &self.profile.provenance;
        let mut changes = changed_conditions(self.variant, self.profile);
        changes.extend(changed_code(self.config, self.variant, self.profile));
        let mut findings: Vec<Finding> = changes
            .iter()
            .map(|change| self.again(format!("{change} changed since it was measured")))
            .collect();
        if provenance.origin == ProfileOrigin::Measured && provenance.captures.is_empty() {
            let message = "the profile names no capture";
            findings.push(self.refuse(Code::CaptureMissing, message.to_owned(), AGAIN));
        }
        if provenance.stripped {
            let message = "the profile is a stripped copy: its captures are not the measured ones, and its GPUs are not named";
            findings.push(Finding::of(
                Code::ProfileStripped,
                &self.variant.id,
                message,
            ));
        }
        findings
    }

    /// The baseline with its lock, if there is no finding.
    fn decide(&self, norm: Option<String>, mut findings: Vec<Finding>) -> Decision {
        let old_lock = self.old_lock().unwrap_or_else(|unreadable| {
            findings.push(unreadable);
            None
        });
        let mut lock = Lock {
            schema: Lock::SCHEMA,
            variant: self.variant.id.clone(),
            immutable: self.variant.immutable,
            head: String::new(),
            flags: Vec::new(),
            sources: BTreeMap::new(),
            ledger: Vec::new(),
        };
        if lock.immutable {
            lock.flags = stated_flags(&self.config.toolchain, self.variant);
            lock.sources.clone_from(&self.profile.provenance.sources);
        }
        if let Some(old) = &old_lock {
            findings.extend(self.against_old_lock(old, &lock));
        }
        let (Some(norm), true) = (norm, findings.is_empty()) else {
            return Err(findings);
        };
        let profile = self.profile.to_json();
        let (ledger, previous) = old_lock.map_or_else(
            || (Vec::new(), Entry::GENESIS.to_owned()),
            |old| (old.ledger, old.head),
        );
        // The clock of the machine that locked before may be ahead.
        let before = ledger.last().map(|last| last.time.clone());
        let entry = Entry {
            time: self.acceptance.time.clone().max(before.unwrap_or_default()),
            who: self.acceptance.who.clone(),
            reason: self.acceptance.reason.clone(),
            norm_sha256: sha256_hex(norm.as_bytes()),
            profile_sha256: sha256_hex(profile.as_bytes()),
            code_sha256: lock.code_sha256(),
            previous,
        };
        lock.head = entry.hash();
        lock.ledger = ledger;
        lock.ledger.push(entry);
        Ok(NewBaseline {
            gpu: self.profile.identity.folder(),
            lock,
            norm,
            profile,
        })
    }

    /// The lock that is replaced. A ledger that cannot be read must not be replaced by a new one
    /// without notice.
    fn old_lock(&self) -> Result<Option<Lock>, Finding> {
        let text = self.stored.and_then(|stored| stored.lock.as_deref());
        text.map(Lock::parse).transpose().map_err(|cause| {
            let message = format!("the present lock cannot be read: {cause}");
            self.refuse(Code::Tampered, message, &self.repair())
        })
    }

    fn repair(&self) -> String {
        self.stored
            .map_or_else(String::new, |stored| repair(self.config, stored))
    }

    /// What the old lock says against the new one.
    fn against_old_lock(&self, old: &Lock, new: &Lock) -> Vec<Finding> {
        let restore = self.repair();
        let contradictions = old.contradictions().into_iter();
        let mut findings: Vec<Finding> = contradictions
            .map(|what| self.refuse(Code::Tampered, what, &restore))
            .collect();
        let same_code = old.sources == new.sources && old.flags == new.flags;
        if old.immutable && !self.acceptance.immutable && !same_code {
            let (message, instead) = match new.sources.is_empty() {
                true => (
                    "it is immutable, and an import does not list its sources",
                    "measure it",
                ),
                false => (
                    "its sources, headers or flags differ from the locked ones",
                    "undo the change",
                ),
            };
            let next = format!("{instead}; if the reference must change: --accept-immutable");
            findings.push(self.refuse(Code::ImmutableChanged, message.to_owned(), &next));
        }
        findings
    }
}

/// What was noisy while a locked profile was measured. The profile records the states of the GPU, so
/// that this is found again.
pub fn noise(variant: &Variant, profile: &Profile) -> Vec<Finding> {
    let mut found = disturbed(variant, profile, Purpose::Baseline);
    found.retain(|finding| finding.code == Code::ClockChanged && !finding.denies());
    found
}
