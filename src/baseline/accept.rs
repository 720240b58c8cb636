//! Profile to baseline: what may be locked, and what the lock then says.

use std::collections::BTreeMap;

use super::lock::{Entry, Lock};
use super::store::{NewBaseline, Stored};
use super::verify::{CaptureIndex, rederive};
use crate::build::stated_flags;
use crate::config::{Config, Variant};
use crate::device::Gpu;
use crate::error::Error;
use crate::hash::{sha256_file, sha256_hex};
use crate::profile::{Profile, ProfileOrigin, norm_text};
use crate::verdict::{Code, Finding, incomplete};

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
    for change in changed_conditions(variant, profile) {
        refuse(
            Code::NotMeasured,
            format!("{change} in the configuration changed since it was measured"),
            &again,
        );
    }
    if profile.provenance.origin == ProfileOrigin::Measured {
        if profile.provenance.captures.is_empty() {
            refuse(
                Code::CaptureMissing,
                "the profile names no capture".to_owned(),
                &again,
            );
        }
        let stated = stated_flags(&config.toolchain, variant);
        let measured = profile.provenance.build_argv.iter();
        let same = match variant.recipe {
            // `nvcc FLAGS... SOURCE`
            crate::config::Recipe::Nvcc { .. } => {
                measured.skip(1).take(stated.len()).eq(stated.iter())
                    && profile.provenance.build_argv.len() == stated.len() + 2
            }
            crate::config::Recipe::Command { .. } => true,
        };
        if !same {
            refuse(
                Code::NotMeasured,
                "the flags in the configuration changed since it was measured".to_owned(),
                &again,
            );
        }
    }
    for (path, measured) in &profile.provenance.sources {
        if sha256_file(&config.root.join(path)).ok().as_ref() != Some(measured) {
            refuse(
                Code::NotMeasured,
                format!("`{path}` changed since it was measured"),
                &again,
            );
        }
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
        gpu: Gpu::slug(&profile.identity.gpu),
        lock,
        norm,
        profile: json,
    }))
}

/// Conditions of the measurement that are not those of the configuration any more. What an
/// imported profile was taken under is not the configuration's to say, but for the workload.
fn changed_conditions(variant: &Variant, profile: &Profile) -> Vec<&'static str> {
    let (identity, settings) = (&profile.identity, &variant.profile);
    let measured = profile.provenance.origin == ProfileOrigin::Measured;
    [
        ("the workload", identity.workload == variant.args),
        (
            "clock control",
            !measured || identity.clock_control == Some(settings.clock_control),
        ),
        (
            "cache control",
            !measured || identity.cache_control == Some(settings.cache_control),
        ),
        (
            "the replay mode",
            !measured || identity.replay_mode == Some(settings.replay_mode),
        ),
        (
            "graph profiling",
            !measured || identity.graph_profiling == Some(settings.graph_profiling),
        ),
    ]
    .into_iter()
    .filter_map(|(what, same)| (!same).then_some(what))
    .collect()
}
