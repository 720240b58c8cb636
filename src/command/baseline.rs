//! `sparsek-gate baseline`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;
use serde_json::json;

use super::answer::{answer, answer_in, named};
use super::from;
use super::judging::refuse_without_recording;
use super::select::load;
use crate::baseline::{
    Acceptance, CaptureIndex, FILES, LeftOut, Lock, LockOrder, LockReport, LockedBaseline,
    NormLine, Store, lock_selected, measured_unpinned, noise, norm_lines, refuse_in_pipeline,
    removed, verify_selected, verify_stored,
};
use crate::cli::BaselineArgs;
use crate::config::Selected;
use crate::disk::leads_to;
use crate::finding::{Error, ExitCode};
use crate::git;
use crate::report::Detail;
use crate::terms::{Tier, VariantId, counted};

pub(super) fn run(config: &Path, arguments: &BaselineArgs) -> Result<ExitCode, Error> {
    let selected = load(config, &arguments.selection, &[])?;
    if arguments.lock {
        lock(&selected, arguments)
    } else if arguments.verify {
        verify(&selected, arguments)
    } else {
        show(&selected, arguments)
    }
}

fn lock(selected: &Selected, arguments: &BaselineArgs) -> Result<ExitCode, Error> {
    let who = match &arguments.who {
        Some(who) => who.clone(),
        None => git::person(&selected.config.root),
    };
    let reason = arguments.reason.as_deref().unwrap_or_default();
    let mut ids = selected.config.variants().map(|variant| &variant.id);
    let names = &arguments.selection.names;
    if names.is_empty() && ids.any(|id| id.to_string() == reason || id.suite == reason) {
        let message = format!("`{reason}` is a name, and no reason: write --reason TEXT {reason}");
        return Err(Error::Usage(message));
    }
    let (imported, immutable) = (arguments.accept_imported, arguments.accept_immutable);
    let acceptance = Acceptance::new(reason, &who, imported, immutable)?;
    refuse_in_pipeline(std::env::var("CI").ok().as_deref(), arguments.in_ci)?;
    let folders = match arguments.from.as_slice() {
        [] => vec![selected.profiles(None)?],
        named => named
            .iter()
            .map(|folder| {
                refuse_without_recording("--from", folder, selected)?;
                selected.profiles(Some(folder))
            })
            .collect::<Result<_, _>>()?,
    };
    let mut seen = BTreeSet::new();
    if let Some(twice) = folders.iter().find(|it| !seen.insert(leads_to(it))) {
        let message = format!("`--from` names {} twice", twice.display());
        return Err(Error::Usage(message));
    }
    let _locked = from::locked(&folders)?;
    let report = lock_selected(
        selected,
        &LockOrder {
            folders: &folders,
            static_only: arguments.r#static,
            acceptance: &acceptance,
            all_or_none: arguments.all_or_none,
        },
    )?;
    let stored = report.locked || !arguments.all_or_none;
    let detail = arguments.verbosity.detail();
    answer_in(detail, arguments.format, &report, &report.findings, || {
        let mut text = lock_text(stored, &report, detail);
        if report.locked && detail != Detail::Verdict {
            text.push_str(to_commit(&selected.config.baselines, &report.baselines));
        }
        text
    })
}

/// What keeps a lock from other clones.
fn to_commit(baselines: &Path, locked: &[LockedBaseline]) -> &'static str {
    let is_lock = |path: &str| path.ends_with(".lock.toml");
    let files = locked
        .iter()
        .flat_map(|one| FILES.map(|ending| format!("{}/{}.{ending}", one.gpu, one.variant)));
    let ignored = |shown: Vec<String>| files.into_iter().any(|file| !shown.contains(&file));
    if git::shown(baselines).is_ok_and(ignored) {
        return "git ignores files of the baselines, so that no clone has them: `git check-ignore -v baselines/*/*/*` shows the rule; remove it there, or `git add --force baselines`\n";
    }
    match git::changed_since(baselines, "HEAD", is_lock) {
        Ok(changed) if changed.is_empty() => "",
        Err(_) if git::repository(baselines).is_err() => "",
        _ => "commit the baselines: no other clone has them yet\n",
    }
}

/// What was locked, with the values that changed.
fn lock_text(stored: bool, report: &LockReport, detail: Detail) -> String {
    let (baselines, left_out) = (&report.baselines, &report.left_out);
    let mut text = String::new();
    for baseline in baselines.iter().filter(|_| detail != Detail::Verdict) {
        let lines = &baseline.changes;
        let is_first = lines.iter().all(|line| line.old.is_none());
        let changed = lines.iter().filter(|line| line.old != line.new).count();
        let what = match (is_first, changed) {
            (true, 1) => "first baseline, 1 value".to_owned(),
            (true, changed) => format!("first baseline, {changed} values"),
            (false, changed) => format!("{changed} of {} values changed", lines.len()),
        };
        let state = match (&baseline.entry, stored) {
            (None, _) => "already locked, unchanged".to_owned(),
            (Some(_), false) => format!("not locked; {what}"),
            (Some(_), true) => format!("locked; {what}"),
        };
        let _ = writeln!(text, "{} on {}: {state}", baseline.variant, baseline.gpu);
        let shown = |line: &&NormLine| match detail {
            Detail::All => true,
            _ => !is_first && line.old != line.new,
        };
        for line in lines.iter().filter(shown) {
            let (old, new) = (value(&line.old), value(&line.new));
            let _ = writeln!(text, "  {}: {old} → {new}", line.name);
        }
    }
    let words = left_out_words(left_out);
    for words in words.iter().filter(|_| detail != Detail::Verdict) {
        let _ = writeln!(text, "{words}");
    }
    let new = baselines.iter().filter(|one| one.entry.is_some()).count();
    if !stored {
        text.push_str("nothing was locked: with --all-or-none either all selected variants are locked, or none\n");
    } else if detail == Detail::Verdict || !left_out.is_empty() {
        let new = counted(new, "baseline", "baselines");
        let names: Vec<String> = left_out.iter().map(|one| one.variant.to_string()).collect();
        let not = match names.is_empty() {
            true => String::new(),
            false => format!("; not locked: {}", names.join(", ")),
        };
        let _ = writeln!(text, "{new} locked{not}");
    }
    text
}

/// Which variants were left out, and the baselines that they have now.
fn left_out_words(left_out: &[LeftOut]) -> Vec<String> {
    let words = left_out.iter().map(|one| {
        let kept = one.keeps.iter().map(|kept| match &kept.entry {
            Some(entry) => format!("{} of {} ({})", kept.gpu, entry.time, entry.reason),
            None => format!("{} with a lock that cannot be read", kept.gpu),
        });
        let kept: Vec<String> = kept.collect();
        match kept.is_empty() {
            true => format!("{}: not locked, and has no baseline", one.variant),
            false => format!(
                "{}: not locked; its baseline is still the old one: {}",
                one.variant,
                kept.join(", ").replace('\n', " ")
            ),
        }
    });
    words.collect()
}

/// A value of the normalized text, for people.
fn value(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or("–")
}

fn verify(selected: &Selected, arguments: &BaselineArgs) -> Result<ExitCode, Error> {
    let store = Store::open(&selected.config.baselines)?;
    let captures = arguments.captures.as_deref().map(|folder| {
        refuse_without_recording("--captures", folder, selected)?;
        CaptureIndex::of(folder)
    });
    let captures = captures.transpose()?;
    let report = verify_selected(selected, &store, captures.as_ref())?;
    let rederived = captures.is_some();
    let content = json!({ "rederived": rederived, "verified": report.verified });
    answer(arguments.format, content, &report.findings, || {
        let lines = report.verified.iter().map(|name| {
            let gpu = name.split('/').next().unwrap_or_default();
            let what = match rederived && Tier::of_folder(gpu) != Tier::Static {
                true => "locked, and derived again from its captures",
                false => "as locked",
            };
            format!("{name}: {what}\n")
        });
        lines.collect()
    })
}

fn show(selected: &Selected, arguments: &BaselineArgs) -> Result<ExitCode, Error> {
    #[derive(Serialize)]
    struct Shown {
        variant: VariantId,
        description: String,
        gpu: String,
        norm: Vec<NormLine>,
        lock: Option<Lock>,
    }
    let store = Store::open(&selected.config.baselines)?;
    let mut findings = Vec::new();
    let mut baselines = Vec::new();
    for variant in selected.variants() {
        for stored in store.all_of(&variant.id)? {
            let (trusted, found) = verify_stored(&selected.config, variant, &stored);
            findings.extend(found);
            findings.extend(trusted.as_ref().and_then(measured_unpinned));
            let locked = trusted.iter().map(|trusted| &trusted.profile);
            findings.extend(locked.flat_map(|profile| noise(variant, profile)));
            let norm = stored.norm.unwrap_or_default();
            baselines.push(Shown {
                variant: variant.id.clone(),
                description: selected.config.describe(variant),
                gpu: stored.gpu,
                norm: norm_lines("", &String::from_utf8_lossy(&norm)),
                lock: stored.lock.and_then(|text| Lock::parse(&text).ok()),
            });
        }
    }
    if baselines.is_empty() {
        findings.extend(removed(selected));
    }
    let content = named("baselines", &baselines);
    answer(arguments.format, content, &findings, || {
        let mut text = String::new();
        for baseline in &baselines {
            let _ = writeln!(text, "{} on {}", baseline.variant, baseline.gpu);
            if !baseline.description.is_empty() {
                let _ = writeln!(text, "  {}", baseline.description);
            }
            for line in &baseline.norm {
                let _ = writeln!(text, "  {}: {}", line.name, value(&line.new));
            }
            for entry in baseline.lock.iter().flat_map(|lock| &lock.ledger) {
                let reason = entry.reason.replace('\n', "\n    ");
                let _ = writeln!(text, "  {} {}: {reason}", entry.time, entry.who);
            }
        }
        if baselines.is_empty() {
            let of = if arguments.selection.names.is_empty() {
                ""
            } else {
                " of what was named"
            };
            let _ = writeln!(
                text,
                "nothing{of} is locked yet; `sparsek-gate baseline --verify` says what is missing"
            );
        }
        text
    })
}
