//! Recorded profiles, and what their captures say against them.

use std::path::Path;

use super::variants::{Judge, Profiles};
use crate::baseline::{CaptureIndex, changes_since, rederive};
use crate::config::{Config, Selected, Variant};
use crate::files::{PROFILE_FILE, STATIC_PROFILE_FILE, base_folder, variant_folder};
use crate::finding::{Code, Error, Finding, WarnReason};
use crate::judge::Outcome;
use crate::profile::{Profile, ProfileOrigin};
use crate::terms::Tier;
use crate::trust::{Authority, brought_by_change, unlike_base};

/// The recorded profiles of the selected variants. Their verdict comes from their samples; where
/// these are not those of the captures beside them, a warning says so, or a finding that denies
/// where the authority is outside of what is here.
pub fn read_recorded(
    folder: &Path,
    plan: &Selected,
    judge: &Judge<'_>,
    outcome: &mut Outcome,
) -> Result<Profiles, Error> {
    let mut profiles = Profiles::default();
    let is_change = outcome.authority != Authority::WorkingTree;
    // Of what nobody but its author judges, the samples count as they are.
    let unproved = |variant: &Variant, findings| told(variant, findings, is_change);
    for variant in plan.variants() {
        match Profile::recorded(folder, &variant.id) {
            // Left alone it would be judged as nothing, and nothing fails no gate.
            Ok(Some(profile)) if profile.variant != variant.id => {
                outcome.findings.push(Finding::deny(
                    Code::ProfileUnreadable,
                    &variant.id,
                    format!(
                        "{} holds a profile of {}",
                        variant_folder(folder, &variant.id).display(),
                        profile.variant
                    ),
                    "record it again".to_owned(),
                ));
            }
            Ok(Some(profile)) => {
                let captures = CaptureIndex::of(&variant_folder(folder, &variant.id))?;
                outcome
                    .findings
                    .extend(unproved(variant, rederive(variant, &profile, &captures)));
                outcome
                    .findings
                    .extend(stale(&plan.config, variant, &profile));
                outcome.findings.extend(stripped(variant, &profile));
                if profile.provenance.origin == ProfileOrigin::Imported {
                    let needless = is_change && judge.is_locked_measured(&profile);
                    outcome.findings.push(
                        Finding::deny(
                            Code::ProfileImported,
                            &variant.id,
                            "the profile was imported: how many launches were asked for, and of which code, is not known".to_owned(),
                            format!("measure it: sparsek-gate profile {}", variant.id),
                        )
                        .warn_for((!needless).then_some(WarnReason::ImportAllowed)),
                    );
                }
                profiles.heads.push(profile);
            }
            Ok(None) => outcome.findings.push(Finding::deny(
                Code::ProfileMissing,
                &variant.id,
                format!("{} holds no profile of it", folder.display()),
                format!(
                    "record one: sparsek-gate profile --output {} {}",
                    folder.display(),
                    variant.id
                ),
            )),
            Err(error @ (Error::Input { .. } | Error::Io { .. })) => {
                outcome.findings.push(Finding::deny(
                    Code::ProfileUnreadable,
                    &variant.id,
                    error.to_string(),
                    "record it again".to_owned(),
                ))
            }
            Err(error) => return Err(error),
        }
        let base = base_folder(folder, &variant.id).join(PROFILE_FILE);
        // A link that leads nowhere is a base that cannot be read, not the lack of one.
        if !base
            .symlink_metadata()
            .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
        {
            match Profile::read(&base) {
                Ok(profile) if profile.variant == variant.id => {
                    let captures = CaptureIndex::of(&base_folder(folder, &variant.id))?;
                    let altered = rederive(variant, &profile, &captures);
                    let altered = unproved(variant, altered)
                        .into_iter()
                        .map(|finding| Finding {
                            message: format!("in the base: {}", finding.message),
                            ..finding
                        });
                    outcome.findings.extend(altered);
                    profiles.bases.push(profile);
                }
                Ok(profile) => outcome.findings.push(Finding::deny(
                    Code::ProfileUnreadable,
                    &variant.id,
                    format!("{} holds a profile of {}", base.display(), profile.variant),
                    "record it again".to_owned(),
                )),
                Err(error) => outcome.findings.push(Finding::deny(
                    Code::ProfileUnreadable,
                    &variant.id,
                    error.to_string(),
                    "record it again".to_owned(),
                )),
            }
        }
    }
    for variant in plan.variants() {
        let of_base = base_folder(folder, &variant.id).join(STATIC_PROFILE_FILE);
        let found = [
            (Profile::recorded_static(folder, &variant.id), false),
            (Profile::at(&of_base), true),
        ];
        for (found, is_base) in found {
            let unreadable = match found {
                Ok(None) => continue,
                Ok(Some(profile))
                    if profile.variant == variant.id && profile.identity.tier == Tier::Static =>
                {
                    let told = outcome.findings.iter().any(|finding| {
                        finding.concerns(&variant.id) && finding.code == Code::ProfileStale
                    });
                    if !is_base && !told {
                        let of_other_code = stale(&plan.config, variant, &profile);
                        outcome.findings.extend(of_other_code);
                    }
                    let place = if is_base {
                        &mut profiles.compiled_bases
                    } else {
                        &mut profiles.compiled
                    };
                    place.push(profile);
                    continue;
                }
                Ok(Some(profile)) => format!("it is a profile of {}", profile.variant),
                Err(error) => error.to_string(),
            };
            outcome.findings.push(Finding::deny(
                Code::ProfileUnreadable,
                &variant.id,
                format!("its static profile cannot be used: {unreadable}"),
                format!("make it again: sparsek-gate build {}", variant.id),
            ));
        }
    }
    // A control that was not asked for bounds the machine's difference all the same.
    let suites: Vec<&str> = plan
        .variants()
        .iter()
        .map(|variant| variant.id.suite.as_str())
        .collect();
    for variant in plan.config.variants().filter(|variant| variant.immutable) {
        if plan.variants.iter().any(|other| other.id == variant.id)
            || !suites.contains(&variant.id.suite.as_str())
        {
            continue;
        }
        match Profile::recorded(folder, &variant.id) {
            Ok(Some(profile)) if profile.variant == variant.id => {
                let captures = CaptureIndex::of(&variant_folder(folder, &variant.id))?;
                let altered = rederive(variant, &profile, &captures);
                outcome.findings.extend(unproved(variant, altered));
                profiles.controls.push(profile);
            }
            Ok(None) => {}
            unreadable => {
                let why = match unreadable {
                    Err(error) => error.to_string(),
                    Ok(_) => "it is the profile of another variant".to_owned(),
                };
                outcome.findings.push(Finding::deny(
                    Code::ProfileUnreadable,
                    &variant.id,
                    format!("the control cannot be read: {why}"),
                    "record it again, or take it out of the folder".to_owned(),
                ));
            }
        }
    }
    let trials = profiles.heads.iter().chain(&profiles.compiled);
    let mut trials: Vec<Finding> = trials.filter_map(trial).collect();
    trials.sort_by(|one, other| one.variant.cmp(&other.variant));
    trials.dedup();
    outcome.findings.extend(trials.into_iter().map(|finding| {
        // Whoever tries a constant out knows; a change under review must not.
        finding.warn_for((!is_change).then_some(WarnReason::NoReview))
    }));
    if is_change {
        for base in profiles.bases.iter().chain(&profiles.compiled_bases) {
            let sources = &base.provenance.sources;
            let unlike = unlike_base(&plan.config.root, &outcome.authority, sources)?;
            if !unlike.is_empty() {
                outcome.findings.push(of_other_base(base, &unlike));
            }
        }
        let brought = brought_by_change(&plan.config.root, &outcome.authority, folder)?;
        if let Some(first) = brought.first() {
            let finding = Finding::of_project(
                Code::RecordedInChange,
                format!(
                    "the recording is part of the change, `{}` first: its numbers are the word of whoever proposes the change",
                    first.path
                ),
                "record it where the change cannot write, and hand it to the check as an artifact",
            );
            outcome.findings.push(finding);
        }
    }
    Ok(profiles)
}

/// Whoever records both sides could choose what to be compared with.
fn of_other_base(base: &Profile, unlike: &[&str]) -> Finding {
    let files: Vec<String> = unlike.iter().map(|path| format!("`{path}`")).collect();
    Finding::deny(
        Code::ProfileStale,
        &base.variant,
        format!(
            "the base was recorded of other code than the revision holds that this is judged by: {}",
            files.join(", ")
        ),
        "record both again with that revision: sparsek-gate check --against REV --output FOLDER",
    )
}

/// A profile with constants of a trial is not one of the code under review.
fn trial(profile: &Profile) -> Option<Finding> {
    let overrides = &profile.provenance.overrides;
    let finding = || {
        Finding::deny(
            Code::ProfileStale,
            &profile.variant,
            format!(
                "it was measured with --define {}, which the configuration does not say: the verdict is on that code, not on this",
                overrides.join(" ")
            ),
            format!("record it again: sparsek-gate profile {}", profile.variant),
        )
    };
    (!overrides.is_empty()).then(finding)
}

/// What the captures of a recorded profile show against it. An altered profile of a change under
/// review denies, the rest warns. Recordings without any captures are common: one line for all.
fn told(variant: &Variant, findings: Vec<Finding>, is_change: bool) -> Vec<Finding> {
    let missing = |finding: &Finding| finding.code == Code::CaptureMissing;
    if findings.len() > 1 && findings.iter().all(missing) {
        let one = Finding::deny(
            Code::CaptureMissing,
            &variant.id,
            format!(
                "{} captures that the profile names are not there: its numbers were not derived again",
                findings.len()
            ),
            "keep the captures beside the profile where its numbers must be proved".to_owned(),
        );
        return vec![one.warn_for(WarnReason::SamplesDecide)];
    }
    let reason = |code| match code {
        Code::ProfileAltered => (!is_change).then_some(WarnReason::NoReview),
        _ => Some(WarnReason::SamplesDecide),
    };
    let findings = findings.into_iter();
    findings
        .map(|finding| {
            let reason = reason(finding.code);
            finding.warn_for(reason)
        })
        .collect()
}

/// A stripped copy may be judged, and the report says so.
fn stripped(variant: &Variant, profile: &Profile) -> Option<Finding> {
    profile.provenance.stripped.then(|| {
        Finding::deny(
            Code::ProfileStripped,
            &variant.id,
            "the profile is a stripped copy: its captures are not those that were measured"
                .to_owned(),
            "ask whoever published it for the original, where that must be proved".to_owned(),
        )
        .warn_for(WarnReason::SamplesDecide)
    })
}

/// A recorded profile of other code says nothing of what is here.
fn stale(config: &Config, variant: &Variant, profile: &Profile) -> Option<Finding> {
    let code = changes_since(config, variant, profile).code;
    let finding = Finding::deny(
        Code::ProfileStale,
        &variant.id,
        format!(
            "{} changed since the profile was recorded: the verdict is on that code, not on this",
            code.join(", ")
        ),
        format!("record it again: sparsek-gate profile {}", variant.id),
    );
    (!code.is_empty()).then_some(finding)
}
