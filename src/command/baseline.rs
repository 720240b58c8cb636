//! `sparsek-gate baseline`.

use super::{answer, load};
use crate::profile::{Profile, now};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::baseline::{
    Acceptance, CaptureIndex, Entry, Lock, NewBaseline, Signer, Store, Stored, accept,
    accept_compiled, consistent, rederive, trust,
};
use crate::cli::BaselineArgs;
use crate::comparable::merge;
use crate::config::{Config, Selected, Trust, Variant};
use crate::evidence::unpinned;
use crate::files::variant_folder;
use crate::finding::{Code, Error, ExitCode, Finding, WarnReason};
use crate::report;
use crate::terms::{Tier, VariantId};

pub(super) fn run(config: &Path, arguments: &BaselineArgs) -> Result<ExitCode, Error> {
    // clap does not hold an option to the action that it `requires` where another one is given.
    for (option, given, action, right) in [
        (
            "--captures",
            arguments.captures.is_some(),
            "--verify",
            arguments.verify,
        ),
        ("--in-ci", arguments.in_ci, "--lock", arguments.lock),
        ("--static", arguments.r#static, "--lock", arguments.lock),
        (
            "--sign-key",
            arguments.sign_key.is_some(),
            "--lock` or `--sign",
            arguments.lock || arguments.sign,
        ),
        (
            "--accept-imported",
            arguments.accept_imported,
            "--lock",
            arguments.lock,
        ),
        (
            "--accept-immutable",
            arguments.accept_immutable,
            "--lock",
            arguments.lock,
        ),
    ] {
        if given && !right {
            return Err(Error::Usage(format!("`{option}` belongs to `{action}`")));
        }
    }
    let plan = load(config, &arguments.selection, None)?;
    if arguments.lock {
        return lock(&plan, arguments);
    }
    if arguments.sign {
        return sign(&plan, arguments);
    }
    let store = Store::open(&plan.config.baselines)?;
    if arguments.verify {
        verify(&plan, &store, arguments)
    } else {
        show(&plan, &store, arguments)
    }
}

/// The profiles of a variant in each of the folders, and their captures.
fn recorded(
    variant: &Variant,
    folders: &[PathBuf],
) -> Result<Result<(Vec<Profile>, CaptureIndex), Finding>, Error> {
    let mut profiles = Vec::new();
    let mut captures = CaptureIndex::default();
    for folder in folders {
        match Profile::recorded(folder, &variant.id) {
            Ok(Some(profile)) => profiles.push(profile),
            Ok(None) => {
                return Ok(Err(Finding::deny(
                    Code::ProfileMissing,
                    &variant.id,
                    format!("{} holds no profile of it", folder.display()),
                    format!("profile it: sparsek-gate profile {}", variant.id),
                )));
            }
            Err(error @ (Error::Input { .. } | Error::Io { .. })) => {
                return Ok(Err(Finding::deny(
                    Code::ProfileUnreadable,
                    &variant.id,
                    error.to_string(),
                    format!("profile it again: sparsek-gate profile {}", variant.id),
                )));
            }
            Err(error) => return Err(error),
        }
        captures.add(&variant_folder(folder, &variant.id))?;
    }
    Ok(Ok((profiles, captures)))
}

#[derive(Serialize)]
struct Locked {
    variant: VariantId,
    gpu: String,
    changes: Vec<Line>,
    entry: Option<Entry>,
}

/// One line of the normalized text, old and new.
#[derive(Serialize)]
struct Line {
    name: String,
    old: Option<String>,
    new: Option<String>,
}

fn lock(plan: &Selected, arguments: &BaselineArgs) -> Result<ExitCode, Error> {
    let reason = arguments
        .reason
        .as_deref()
        .map(str::trim)
        .unwrap_or_default();
    if reason.is_empty() {
        return Err(Error::Usage(
            "--reason must say why the profiles are accepted".to_owned(),
        ));
    }
    let who = match &arguments.who {
        Some(who) => who.trim().to_owned(),
        None => crate::git::person(&plan.config.root),
    };
    if who.is_empty() {
        return Err(Error::Usage(
            "--who must name who accepts the profiles".to_owned(),
        ));
    }
    if let Some(c) = reason
        .chars()
        .chain(who.chars())
        .find(|c| c.is_control() && *c != '\n')
    {
        return Err(Error::Usage(format!(
            "the ledger is read by people: it takes no control character ({c:?})"
        )));
    }
    let in_ci = std::env::var("CI")
        .is_ok_and(|value| !value.is_empty() && value != "false" && value != "0");
    // Before anything else: a key that cannot be opened must not be found out last.
    let signer = arguments
        .sign_key
        .as_deref()
        .map(Signer::open)
        .transpose()?;
    if in_ci && !arguments.in_ci {
        return Err(Error::Usage(
            "the CI variable is set: a pipeline that locks its own baselines gates nothing; --in-ci locks all the same"
                .to_owned(),
        ));
    }
    let acceptance = Acceptance {
        time: now(),
        who,
        reason: reason.to_owned(),
        imported: arguments.accept_imported,
        immutable: arguments.accept_immutable,
    };
    let folders = if arguments.from.is_empty() {
        vec![plan.profiles(None)?]
    } else {
        arguments
            .from
            .iter()
            .map(|folder| plan.profiles(Some(folder)))
            .collect::<Result<Vec<_>, _>>()?
    };
    let store = Store::open_to_change(&plan.config.baselines)?;
    let mut findings = Vec::new();
    let mut warnings = Vec::new();
    let mut accepted: Vec<NewBaseline> = Vec::new();
    let mut locked = Vec::new();
    for variant in plan.variants() {
        let static_findings = lock_compiled(
            &plan.config,
            variant,
            &folders,
            arguments.r#static,
            &store,
            &acceptance,
            &mut locked,
            &mut accepted,
            &mut warnings,
        )?;
        findings.extend(static_findings);
        if arguments.r#static {
            continue;
        }
        let (profiles, captures) = match recorded(variant, &folders)? {
            Ok(found) => found,
            Err(finding) => {
                findings.push(finding);
                continue;
            }
        };
        let profile = match merge(profiles) {
            Ok(profile) => profile,
            Err(why) => {
                findings.push(Finding::deny(
                    Code::NotComparable,
                    &variant.id,
                    format!("they make no baseline together: {why}"),
                    "lock profiles of the same code, taken under the same conditions".to_owned(),
                ));
                continue;
            }
        };
        warnings.extend(measured_unpinned(&profile));
        let gpu = profile.identity.folder();
        let stored = store.load(&gpu, &variant.id)?;
        match accept(
            &plan.config,
            variant,
            &profile,
            &captures,
            stored.as_ref(),
            &acceptance,
        )? {
            Err(refusals) => findings.extend(refusals),
            Ok(new) => take(new, stored.as_ref(), &mut locked, &mut accepted),
        }
    }
    let refused = !findings.is_empty();
    if let Some(signer) = &signer {
        for new in &mut accepted {
            let id = &new.lock.variant;
            new.signature = Some(signer.sign(&new.gpu, id, &new.lock.to_toml())?);
        }
        warnings.extend(unknown_key(&plan.config, signer));
    }
    if !refused && !accepted.is_empty() {
        store.replace(&accepted)?;
    }
    findings.extend(warnings);
    #[derive(Serialize)]
    struct Content {
        locked: bool,
        baselines: Vec<Locked>,
    }
    let content = Content {
        locked: !refused,
        baselines: locked,
    };
    answer(arguments.format, &content, &findings, || {
        let mut text = String::new();
        for baseline in &content.baselines {
            let state = match (&baseline.entry, refused) {
                (None, _) => "already locked, unchanged",
                (Some(_), true) => "not locked",
                (Some(_), false) => "locked",
            };
            let _ = writeln!(text, "{} on {}: {state}", baseline.variant, baseline.gpu);
            for line in &baseline.changes {
                let (old, new) = (
                    line.old.as_deref().unwrap_or("–"),
                    line.new.as_deref().unwrap_or("–"),
                );
                let _ = writeln!(text, "  {}: {old} → {new}", line.name);
            }
        }
        if refused {
            text.push_str("nothing was locked: all of the selected variants are, or none\n");
        }
        report::clean(&text)
    })
}

/// That a signature will not count, because the configuration does not name the key.
fn unknown_key(config: &Config, signer: &Signer) -> Option<Finding> {
    let key = signer.public_key();
    if config.trust.public_keys.contains(&key) {
        return None;
    }
    let finding = Finding::of_project(
        Code::Unsigned,
        format!("the locks are signed with {key}, which `trust.public_keys` does not name"),
        "name the key there, in a change of its own, for signatures to be verified",
    );
    Some(finding.warn_for(WarnReason::SignerUnknown))
}

/// Signs the locks that are there, where they hold.
fn sign(plan: &Selected, arguments: &BaselineArgs) -> Result<ExitCode, Error> {
    let Some(key) = &arguments.sign_key else {
        return Err(Error::Usage("`--sign` needs `--sign-key FILE`".to_owned()));
    };
    let signer = Signer::open(key)?;
    let store = Store::open_to_change(&plan.config.baselines)?;
    // The signature that is there is about to be replaced, so it is not asked.
    let without_keys = Config {
        trust: Trust::default(),
        ..plan.config.clone()
    };
    let mut findings = Vec::new();
    let mut signatures = Vec::new();
    for variant in plan.variants() {
        let baselines = store.all_of(&variant.id)?;
        if baselines.is_empty() {
            findings.push(no_baseline(variant));
        }
        for stored in baselines {
            let (trusted, found) = trust(&without_keys, variant, &stored);
            findings.extend(found);
            if let (Some(_), Some(lock)) = (trusted, &stored.lock) {
                let signature = signer.sign(&stored.gpu, &variant.id, lock)?;
                signatures.push((stored.gpu, variant.id.clone(), signature));
            }
        }
    }
    let refused = !findings.is_empty();
    if !refused {
        store.sign(&signatures)?;
    }
    findings.extend(unknown_key(&plan.config, &signer));
    #[derive(Serialize)]
    struct Content {
        signed: bool,
        key: String,
        locks: Vec<String>,
    }
    let content = Content {
        signed: !refused,
        key: signer.public_key(),
        locks: signatures
            .iter()
            .map(|(gpu, variant, _)| format!("{gpu}/{variant}"))
            .collect(),
    };
    answer(arguments.format, &content, &findings, || {
        if refused {
            return "nothing was signed: all of the selected locks are, or none\n".to_owned();
        }
        let lines = content.locks.iter();
        lines.map(|name| format!("{name}: signed\n")).collect()
    })
}

fn no_baseline(variant: &Variant) -> Finding {
    Finding::deny(
        Code::NewBaseline,
        &variant.id,
        "it has no baseline yet".to_owned(),
        format!("sparsek-gate baseline --lock --reason '...' {}", variant.id),
    )
}

/// Verifies what is locked of variants that are not selected because nothing gates them: the
/// configuration does not hold them, or they are experimental and were not asked for.
fn verify_ungated(
    plan: &Selected,
    store: &Store,
    arguments: &BaselineArgs,
    captures: Option<&CaptureIndex>,
    held: &mut Vec<String>,
) -> Result<Vec<Finding>, Error> {
    let names = &arguments.selection.names;
    let mut findings = Vec::new();
    for (gpu, id) in store.stored()? {
        let meant = names.is_empty() || names.contains(&id.suite);
        if !meant || plan.variants.iter().any(|variant| variant.id == id) {
            continue;
        }
        let Some(stored) = store.load(&gpu, &id)? else {
            continue;
        };
        let variant = plan.config.variant(&id);
        let (trusted, mut found) = match variant {
            Some(variant) => trust(&plan.config, variant, &stored),
            None => consistent(&plan.config, &stored),
        };
        // Without a variant there is nothing to derive the profile's kernels for.
        if let (Some(trusted), Some(captures), Some(variant)) = (&trusted, captures, variant)
            && trusted.profile.identity.tier != Tier::Static
        {
            found.extend(rederive(variant, &trusted.profile, captures)?);
        }
        if found.is_empty() {
            held.push(format!("{gpu}/{id}"));
        }
        findings.extend(found);
        let why = match variant {
            Some(_) => "it is experimental, and only checked where it is asked for",
            None => "the configuration does not hold it",
        };
        let finding = Finding::deny(
            Code::LockUnused,
            &id,
            format!("it is locked on {gpu}, and no check judges by that: {why}"),
            "put the variant back, or remove its baseline",
        );
        findings.push(finding);
    }
    Ok(findings)
}

/// That a profile was measured with another toolchain than was pinned.
fn measured_unpinned(profile: &Profile) -> Option<Finding> {
    unpinned(&profile.variant, "measured", &profile.provenance.pins)
}

/// Notes what a new baseline changes, and keeps it where it changes anything.
fn take(
    new: NewBaseline,
    stored: Option<&Stored>,
    locked: &mut Vec<Locked>,
    accepted: &mut Vec<NewBaseline>,
) {
    let old = stored.and_then(|stored| stored.norm.clone());
    let old = old.unwrap_or_default();
    let unchanged =
        stored.is_some_and(|stored| stored.profile.as_deref() == Some(new.profile.as_bytes()));
    locked.push(Locked {
        variant: new.lock.variant.clone(),
        gpu: new.gpu.clone(),
        changes: changes(&String::from_utf8_lossy(&old), &new.norm),
        entry: if unchanged {
            None
        } else {
            new.lock.ledger.last().cloned()
        },
    });
    if !unchanged {
        accepted.push(new);
    }
}

/// Accepts what the compiler made of a variant, where the static gate is about it; the findings
/// say why not. Where it was not `asked` for by name it may be missing.
#[expect(
    clippy::too_many_arguments,
    reason = "what locking shares with the other tiers"
)]
fn lock_compiled(
    config: &Config,
    variant: &Variant,
    folders: &[PathBuf],
    asked: bool,
    store: &Store,
    acceptance: &Acceptance,
    locked: &mut Vec<Locked>,
    accepted: &mut Vec<NewBaseline>,
    warnings: &mut Vec<Finding>,
) -> Result<Vec<Finding>, Error> {
    if let Some(why) = variant.why_no_static_gate() {
        if asked {
            let finding = Finding::deny(
                Code::NotMeasured,
                &variant.id,
                format!("it has nothing to lock without a GPU: {why}"),
                format!(
                    "profile it, and lock that: sparsek-gate profile {}",
                    variant.id
                ),
            );
            warnings.push(finding.warn_for(WarnReason::NoStaticGate));
        }
        return Ok(Vec::new());
    }
    let missing = || {
        let finding = Finding::deny(
            Code::ProfileMissing,
            &variant.id,
            "there is no static profile of it".to_owned(),
            format!("build it: sparsek-gate build {}", variant.id),
        );
        Ok(vec![finding])
    };
    let mut profiles = Vec::new();
    for folder in folders {
        match Profile::recorded_static(folder, &variant.id) {
            Ok(profile) => profiles.extend(profile),
            Err(error @ (Error::Input { .. } | Error::Io { .. })) => {
                return Ok(vec![Finding::deny(
                    Code::ProfileUnreadable,
                    &variant.id,
                    error.to_string(),
                    format!("build it again: sparsek-gate build {}", variant.id),
                )]);
            }
            Err(error) => return Err(error),
        }
    }
    let Some(profile) = profiles.first() else {
        return if asked { missing() } else { Ok(Vec::new()) };
    };
    if let Some(other) = profiles
        .iter()
        .find(|other| other.kernels != profile.kernels)
    {
        return Ok(vec![Finding::deny(
            Code::NotComparable,
            &variant.id,
            format!(
                "the folders hold static profiles of different code ({} and {})",
                profile.provenance.created, other.provenance.created
            ),
            "lock profiles of the same code".to_owned(),
        )]);
    }
    warnings.extend(unpinned(&variant.id, "compiled", &profile.provenance.pins));
    let stored = store.load(&profile.identity.folder(), &variant.id)?;
    // The same code compiled at another time is no other baseline.
    let same = stored
        .as_ref()
        .and_then(|stored| Profile::parse(stored.profile.as_deref()?).ok());
    let same = same.filter(|old| {
        old.kernels == profile.kernels
            && old.identity == profile.identity
            && old.provenance.sources == profile.provenance.sources
            && old.provenance.warnings == profile.provenance.warnings
    });
    let profile = same.as_ref().unwrap_or(profile);
    match accept_compiled(config, variant, profile, stored.as_ref(), acceptance)? {
        Err(refusals) => Ok(refusals),
        Ok(new) => {
            take(new, stored.as_ref(), locked, accepted);
            Ok(Vec::new())
        }
    }
}

/// Old and new normalized text, line by line.
fn changes(old: &str, new: &str) -> Vec<Line> {
    let parse = |text: &str| -> std::collections::BTreeMap<String, String> {
        text.lines()
            .filter_map(|line| {
                line.rsplit_once(": ")
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
            })
            .collect()
    };
    let (old, new) = (parse(old), parse(new));
    let names: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    names
        .into_iter()
        .map(|name| Line {
            name: name.clone(),
            old: old.get(name).cloned(),
            new: new.get(name).cloned(),
        })
        .collect()
}

fn verify(plan: &Selected, store: &Store, arguments: &BaselineArgs) -> Result<ExitCode, Error> {
    let captures = arguments
        .captures
        .as_deref()
        .map(CaptureIndex::of)
        .transpose()?;
    let mut findings = Vec::new();
    let mut held = Vec::new();
    for variant in plan.variants() {
        let baselines = store.all_of(&variant.id)?;
        if baselines.is_empty() {
            findings.push(no_baseline(variant));
        }
        for stored in baselines {
            let (trusted, mut found) = trust(&plan.config, variant, &stored);
            // What the compiler made is derived again by compiling it: `check --static`.
            if let (Some(trusted), Some(captures)) = (&trusted, &captures)
                && trusted.profile.identity.tier != Tier::Static
            {
                found.extend(rederive(variant, &trusted.profile, captures)?);
            }
            if found.is_empty() {
                held.push(format!("{}/{}", stored.gpu, variant.id));
            }
            findings.extend(found);
            findings.extend(trusted.and_then(|trusted| measured_unpinned(&trusted.profile)));
        }
    }
    findings.extend(verify_ungated(
        plan,
        store,
        arguments,
        captures.as_ref(),
        &mut held,
    )?);
    #[derive(Serialize)]
    struct Content {
        rederived: bool,
        verified: Vec<String>,
    }
    let content = Content {
        rederived: captures.is_some(),
        verified: held,
    };
    answer(arguments.format, &content, &findings, || {
        let what = if content.rederived {
            "locked, and derived again from its captures"
        } else {
            "as locked"
        };
        content
            .verified
            .iter()
            .map(|name| format!("{name}: {what}\n"))
            .collect()
    })
}

fn show(plan: &Selected, store: &Store, arguments: &BaselineArgs) -> Result<ExitCode, Error> {
    #[derive(Serialize)]
    struct Shown {
        variant: VariantId,
        description: String,
        gpu: String,
        norm: Vec<Line>,
        lock: Option<Lock>,
    }
    #[derive(Serialize)]
    struct Content {
        baselines: Vec<Shown>,
    }
    let mut findings = Vec::new();
    let mut baselines = Vec::new();
    for variant in plan.variants() {
        for stored in store.all_of(&variant.id)? {
            let (trusted, found) = trust(&plan.config, variant, &stored);
            findings.extend(found);
            findings.extend(trusted.and_then(|trusted| measured_unpinned(&trusted.profile)));
            let norm = stored.norm.unwrap_or_default();
            baselines.push(Shown {
                variant: variant.id.clone(),
                description: plan.config.describe(variant),
                gpu: stored.gpu,
                norm: changes("", &String::from_utf8_lossy(&norm)),
                lock: stored.lock.and_then(|text| Lock::parse(&text).ok()),
            });
        }
    }
    let content = Content { baselines };
    answer(arguments.format, &content, &findings, || {
        let mut text = String::new();
        for baseline in &content.baselines {
            let _ = writeln!(text, "{} on {}", baseline.variant, baseline.gpu);
            if !baseline.description.is_empty() {
                let _ = writeln!(text, "  {}", baseline.description);
            }
            for line in &baseline.norm {
                let _ = writeln!(
                    text,
                    "  {}: {}",
                    line.name,
                    line.new.as_deref().unwrap_or("–")
                );
            }
            for entry in baseline.lock.iter().flat_map(|lock| &lock.ledger) {
                let reason = entry.reason.replace('\n', "\n    ");
                let _ = writeln!(text, "  {} {}: {reason}", entry.time, entry.who);
            }
        }
        if content.baselines.is_empty() {
            text.push_str("nothing is locked yet\n");
        }
        report::clean(&text)
    })
}
