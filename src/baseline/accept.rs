//! Profile to baseline: what may be locked, and what the lock then says.

use std::collections::BTreeMap;

use super::lock::{Entry, Lock};
use super::store::{NewBaseline, Stored};
use super::verify::{CaptureIndex, rederive};
use crate::build::stated_flags;
use crate::comparable::changes_since;
use crate::config::{Config, Variant};
use crate::evidence::{disturbed, incomplete, incomplete_compiled};
use crate::finding::{Code, Error, Finding, Severity};
use crate::hash::sha256_hex;
use crate::profile::{Profile, ProfileOrigin, norm_text};
use crate::terms::{Phase, Tier};

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

/// Makes a baseline of a profile, or says why it must not become one.
///
/// # Errors
/// [`Error::Io`].
pub fn accept(
    config: &Config,
    variant: &Variant,
    profile: &Profile,
    captures: &CaptureIndex,
    stored: Option<&Stored>,
    acceptance: &Acceptance,
) -> Result<Result<NewBaseline, Vec<Finding>>, Error> {
    let mut findings = incomplete(variant, profile);
    let again = format!("profile it: sparsek-gate profile {}", variant.id);
    let mut refuse = |code, message: String, next: &str| {
        findings.push(Finding::deny(code, &variant.id, message, next))
    };
    if profile.variant != variant.id {
        refuse(
            Code::ProfileUnreadable,
            format!("the profile is one of {}", profile.variant),
            &again,
        );
    }
    if !profile.provenance.overrides.is_empty() {
        refuse(
            Code::NotMeasured,
            format!(
                "it was measured with --define {}, which the configuration does not say",
                profile.provenance.overrides.join(" ")
            ),
            &again,
        );
    }
    if profile.provenance.origin == ProfileOrigin::Imported && !acceptance.imported {
        refuse(
            Code::NotMeasured,
            "the profile was imported, not measured by this tool".to_owned(),
            "measure it here, or accept it knowingly with --accept-imported",
        );
    }
    let processes = profile.machines(Phase::Timing);
    let alone = |uuid: &Option<&str>| processes.iter().filter(|other| *other == uuid).count() < 2;
    if profile.provenance.origin == ProfileOrigin::Measured
        && variant.has_phase(Phase::Timing)
        && processes.iter().any(alone)
    {
        refuse(
            Code::NotMeasured,
            "it was measured in one process: nothing tells how much processes differ".to_owned(),
            "set `profile.processes` to 2 or more, and profile it again",
        );
    }
    let changes = changes_since(config, variant, profile);
    for change in changes.conditions.iter().chain(&changes.code) {
        refuse(
            Code::NotMeasured,
            format!("{change} changed since it was measured"),
            &again,
        );
    }
    if profile.provenance.origin == ProfileOrigin::Measured
        && profile.provenance.captures.is_empty()
    {
        refuse(
            Code::CaptureMissing,
            "the profile names no capture".to_owned(),
            &again,
        );
    }
    if profile.provenance.stripped {
        refuse(
            Code::ProfileStripped,
            "the profile is a stripped copy: its captures are not those that were measured, and its GPUs are not named".to_owned(),
            "lock the original",
        );
    }
    let norm = norm_text(profile);
    if norm.is_none() && findings.is_empty() {
        findings.push(Finding::deny(
            Code::NotMeasured,
            &variant.id,
            "a recorded metric has no value".to_owned(),
            again.clone(),
        ));
    }
    findings.extend(rederive(variant, profile, captures)?);
    findings.extend(
        disturbed(variant, profile)
            .into_iter()
            .filter(|finding| finding.severity == Severity::Deny),
    );
    locked(config, variant, profile, norm, findings, stored, acceptance)
}

/// Makes a baseline of a profile of the static tier, or says why it must not become one.
///
/// # Errors
/// [`Error::Io`].
pub fn accept_compiled(
    config: &Config,
    variant: &Variant,
    profile: &Profile,
    stored: Option<&Stored>,
    acceptance: &Acceptance,
) -> Result<Result<NewBaseline, Vec<Finding>>, Error> {
    let mut findings = incomplete_compiled(variant, profile);
    let again = format!("build it: sparsek-gate build {}", variant.id);
    let mut refuse = |message: String| {
        findings.push(Finding::deny(
            Code::NotMeasured,
            &variant.id,
            message,
            again.clone(),
        ));
    };
    if profile.variant != variant.id || profile.identity.tier != Tier::Static {
        refuse("it is no static profile of this variant".to_owned());
    }
    if profile.identity.gpu != config.toolchain.arch {
        refuse(format!(
            "it was compiled for {}, the configuration says {}",
            profile.identity.gpu, config.toolchain.arch
        ));
    }
    if !profile.provenance.overrides.is_empty() {
        refuse(format!(
            "it was compiled with --define {}, which the configuration does not say",
            profile.provenance.overrides.join(" ")
        ));
    }
    if profile.provenance.stripped {
        refuse("it is a stripped copy".to_owned());
    }
    for change in changes_since(config, variant, profile).code {
        refuse(format!("{change} changed since it was compiled"));
    }
    let norm = norm_text(profile);
    locked(config, variant, profile, norm, findings, stored, acceptance)
}

/// The baseline with its lock, where nothing was found against the profile.
fn locked(
    config: &Config,
    variant: &Variant,
    profile: &Profile,
    norm: Option<String>,
    mut findings: Vec<Finding>,
    stored: Option<&Stored>,
    acceptance: &Acceptance,
) -> Result<Result<NewBaseline, Vec<Finding>>, Error> {
    let old_lock = match stored
        .and_then(|stored| stored.lock.as_deref())
        .map(Lock::parse)
    {
        Some(Ok(lock)) => Some(lock),
        Some(Err(cause)) => {
            // A ledger whose past cannot be read must not be replaced by a fresh one in silence.
            findings.push(Finding::deny(
                Code::Tampered,
                &variant.id,
                format!("the present lock cannot be read: {cause}"),
                "restore it from version control, or remove the baseline's files by hand",
            ));
            None
        }
        None => None,
    };
    let sources = if variant.immutable {
        profile.provenance.sources.clone()
    } else {
        BTreeMap::new()
    };
    let flags = if variant.immutable {
        stated_flags(&config.toolchain, variant)
    } else {
        Vec::new()
    };
    if let Some(old) = &old_lock {
        for contradiction in old.contradictions() {
            findings.push(Finding::deny(
                Code::Tampered,
                &variant.id,
                contradiction,
                "restore the lock from version control first",
            ));
        }
        if old.immutable && !acceptance.immutable && (old.sources != sources || old.flags != flags)
        {
            findings.push(Finding::deny(
                Code::ImmutableChanged,
                &variant.id,
                "its sources, headers or flags are not those that are locked",
                "an immutable reference stays as it is; if it must change after all: --accept-immutable",
            ));
        }
    }
    let (Some(norm), true) = (norm, findings.is_empty()) else {
        return Ok(Err(findings));
    };
    let json = profile.to_json();
    let mut lock = Lock {
        schema: Lock::SCHEMA,
        variant: variant.id.clone(),
        immutable: variant.immutable,
        head: String::new(),
        flags,
        sources,
        ledger: old_lock
            .as_ref()
            .map(|lock| lock.ledger.clone())
            .unwrap_or_default(),
    };
    let entry = Entry {
        time: acceptance.time.clone(),
        who: acceptance.who.clone(),
        reason: acceptance.reason.clone(),
        norm_sha256: sha256_hex(norm.as_bytes()),
        profile_sha256: sha256_hex(json.as_bytes()),
        code_sha256: lock.code_sha256(),
        previous: old_lock.map_or_else(|| Entry::GENESIS.to_owned(), |lock| lock.head),
    };
    lock.head = entry.hash();
    lock.ledger.push(entry);
    Ok(Ok(NewBaseline {
        gpu: profile.identity.folder(),
        lock,
        norm,
        profile: json,
        signature: None,
    }))
}
