//! `sparsek-gate check`.

use std::path::Path;

use super::{Plan, print};
use crate::baseline::{CaptureIndex, Store, Trusted, changes_since, rederive, trust};
use crate::cli::CheckArgs;
use crate::config::{Config, Variant};
use crate::device::Gpu;
use crate::error::Error;
use crate::files::variant_folder;
use crate::measure::measure;
use crate::profile::{Profile, ProfileOrigin};
use crate::report::{self, Progress};
use crate::verdict::{Code, ExitCode, Finding, Origin, Outcome, compare};

pub(super) fn run(config: &Path, arguments: &CheckArgs) -> Result<ExitCode, Error> {
    let plan = Plan::new(config, &arguments.selection, None)?;
    for path in &arguments.report {
        report::format_of(path)?;
        refuse_target(path, &plan, arguments.from.as_deref())?;
    }
    let store = Store::open(&plan.config.baselines)?;
    let (mut outcome, profiles) = match &arguments.from {
        Some(folder) => {
            if !folder.is_dir() {
                return Err(Error::Usage(format!(
                    "`--from {}` is no folder",
                    folder.display()
                )));
            }
            let mut outcome = Outcome::new(Origin::Recorded(folder.display().to_string()));
            let profiles = read_recorded(folder, &plan, &mut outcome)?;
            (outcome, profiles)
        }
        None => {
            let folder = plan.profiles(arguments.output.as_deref())?;
            let progress = Progress::new();
            let measured = measure(&plan.config, &plan.variants(), &folder, &[], &progress)?;
            let mut outcome = Outcome::new(Origin::Measured);
            // What is incomplete is told again, and in more words, by the comparison.
            let judged = |finding: &Finding| {
                measured
                    .profiles
                    .iter()
                    .any(|profile| profile.variant == finding.variant)
            };
            outcome.findings.extend(
                measured
                    .findings
                    .iter()
                    .filter(|finding| !judged(finding))
                    .cloned(),
            );
            (outcome, measured.profiles)
        }
    };
    for variant in plan.variants() {
        let profile = profiles
            .iter()
            .find(|profile| profile.variant == variant.id);
        judge(&plan.config, &store, variant, profile, &mut outcome)?;
    }
    outcome
        .findings
        .extend(unchecked(&plan, &store, &arguments.selection.names)?);
    // The verdict first: a report that cannot be written must not take it along.
    print(&report::render(&outcome, arguments.format))?;
    for path in &arguments.report {
        report::write(&outcome, path)?;
    }
    Ok(outcome.exit_code())
}

/// A report must have a folder to lie in, and must not replace what the check reads.
fn refuse_target(path: &Path, plan: &Plan, from: Option<&Path>) -> Result<(), Error> {
    let whole = std::path::absolute(path).map_err(Error::io("find", path))?;
    if !whole.parent().is_some_and(Path::is_dir) {
        return Err(Error::Usage(format!(
            "`--report {}`: there is no such folder",
            path.display()
        )));
    }
    let from = from
        .map(std::path::absolute)
        .transpose()
        .map_err(Error::io("find", path))?;
    let kept = [Some(plan.config.baselines.clone()), from];
    if whole.exists()
        && kept
            .iter()
            .flatten()
            .any(|folder| whole.starts_with(folder))
    {
        return Err(Error::Usage(format!(
            "`--report {}` would replace a file that the check reads",
            path.display()
        )));
    }
    Ok(())
}

/// The recorded profiles of the selected variants. Their verdict comes from their samples; where
/// these are not those of the captures beside them, a warning says so.
fn read_recorded(folder: &Path, plan: &Plan, outcome: &mut Outcome) -> Result<Vec<Profile>, Error> {
    let mut profiles = Vec::new();
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
                outcome.findings.extend(
                    rederive(variant, &profile, &captures)?
                        .into_iter()
                        .map(Finding::warn),
                );
                outcome
                    .findings
                    .extend(stale(&plan.config, variant, &profile));
                if profile.provenance.origin == ProfileOrigin::Imported {
                    outcome.findings.push(
                        Finding::deny(
                            Code::ProfileImported,
                            &variant.id,
                            "the profile was imported: how many launches were asked for, and of which code, is not known".to_owned(),
                            format!("measure it: sparsek-gate profile {}", variant.id),
                        )
                        .warn(),
                    );
                }
                profiles.push(profile);
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
    }
    Ok(profiles)
}

/// A recorded profile of other code than what is here may be judged, and the report says so.
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
    (!code.is_empty()).then(|| finding.warn())
}

/// Locked variants that a check of everything, or of their suite, left out: taking a variant out
/// of the configuration must not take it out of the gate unseen.
fn unchecked(plan: &Plan, store: &Store, names: &[String]) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    for id in store.variants()? {
        let meant = names.is_empty() || names.contains(&id.suite);
        if !meant || plan.variants.iter().any(|variant| variant.id == id) {
            continue;
        }
        let why = match plan.config.variant(&id) {
            None => "the configuration does not hold it",
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
    Ok(findings)
}

/// Verifies every lock of a variant, and compares where there is a profile and a baseline.
fn judge(
    config: &Config,
    store: &Store,
    variant: &Variant,
    profile: Option<&Profile>,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let slug = profile.map(|profile| Gpu::slug(&profile.identity.gpu));
    let mut baseline: Option<Trusted> = None;
    let gpus = store.gpus_of(&variant.id)?;
    for gpu in &gpus {
        let Some(stored) = store.load(gpu, &variant.id)? else {
            continue;
        };
        let (trusted, findings) = trust(config, variant, &stored);
        outcome.findings.extend(findings);
        if slug.as_ref() == Some(gpu) {
            baseline = trusted;
        }
    }
    let (Some(profile), Some(slug)) = (profile, slug) else {
        return Ok(());
    };
    if let Some(baseline) = baseline {
        let (report, findings) = compare(variant, &baseline.profile, profile);
        outcome.variants.push(report);
        let comparable = findings
            .iter()
            .all(|finding| finding.code != Code::NotComparable);
        outcome.findings.extend(findings);
        let conditions = changes_since(config, variant, profile).conditions;
        if comparable && !conditions.is_empty() {
            outcome.findings.push(Finding::deny(
                Code::NotComparable,
                &variant.id,
                format!(
                    "{} changed since baseline and profile were measured",
                    conditions.join(", ")
                ),
                format!("measure both again: sparsek-gate profile {}", variant.id),
            ));
        }
        return Ok(());
    }
    outcome
        .findings
        .extend(crate::verdict::incomplete(variant, profile));
    let lock = format!("sparsek-gate baseline --lock --reason '...' {}", variant.id);
    if gpus.is_empty() {
        outcome.findings.push(Finding::deny(
            Code::NewBaseline,
            &variant.id,
            "it has no baseline yet".to_owned(),
            format!("review its profile and lock it: {lock}"),
        ));
    } else if !gpus.contains(&slug) {
        outcome.findings.push(Finding::deny(
            Code::NotComparable,
            &variant.id,
            format!(
                "it was measured on {}, and has a baseline only for {}",
                profile.identity.gpu,
                gpus.join(", ")
            ),
            format!("measure on such a GPU, or lock a baseline for this one: {lock}"),
        ));
    }
    Ok(())
}
