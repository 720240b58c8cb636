//! `sparsek-gate check --from`: recordings, and slices that were measured elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::PathBuf;

use super::archive::Opened;
use super::judging::{Judging, refuse_without_recording};
use crate::disk::{self, leads_to};
use crate::finding::{Error, name_recordings, with_files};
use crate::judge::{Outcome, PackedBase, examined};
use crate::measure::{Captures, SliceOf, Source, Spent};
use crate::process::{self, Access};
use crate::profile::ProfileOrigin;
use crate::report::say;
use crate::share::{Known, Wanted, plan_sha256, read_slices, recordings_in};
use crate::terms::joined;

/// What a run knows of the slices that it had measured, besides what they say.
#[derive(Default)]
pub(super) struct Measured {
    /// What building took.
    pub spent: Spent,
    /// What is known of the slices in their folders.
    pub known: BTreeMap<PathBuf, Known>,
}

/// The folders that are named, where one has no slice, and folders in it have some, with these instead.
fn all(from: &[PathBuf]) -> Vec<PathBuf> {
    let parts = |folder: &PathBuf| -> Vec<PathBuf> {
        let folders = disk::read_dir(folder).into_iter().flatten();
        let folders = folders.filter(disk::Entry::is_dir);
        let parts: Vec<PathBuf> = folders.map(|entry| entry.path).collect();
        let is_of_parts = !SliceOf::is_in(folder) && parts.iter().any(|part| SliceOf::is_in(part));
        match is_of_parts {
            true => parts,
            false => vec![folder.clone()],
        }
    };
    from.iter().flat_map(parts).collect()
}

/// The locks of folders that are read: none of them changes meanwhile.
pub(super) fn locked(folders: &[PathBuf]) -> Result<Vec<Option<File>>, Error> {
    let folders = folders.iter().filter_map(|folder| disk::real(folder).ok());
    let distinct: BTreeSet<PathBuf> = folders.filter(|folder| disk::is_dir(folder)).collect();
    let lock = |folder: &PathBuf| process::lock_folder(folder, Access::Reads, say);
    distinct.iter().map(lock).collect()
}

/// Judges recordings, or slices that were measured without an archive, by the rules of a checkout.
pub(super) fn recorded(judging: &Judging, from: &[PathBuf]) -> Result<Outcome, Error> {
    let folders = all(from);
    let _locked = locked(&folders)?;
    let shown = joined(from.iter().map(|one| one.display().to_string()), ", ");
    if folders.iter().any(|folder| SliceOf::is_in(folder)) {
        let source = Source::Recording(shown);
        return of_slices(judging, &folders, None, &Measured::default(), source);
    }
    for folder in from {
        refuse_without_recording("--from", folder, &judging.plan)?;
    }
    let rules = judging.rules()?;
    let (recordings, findings) = recordings_in(from, &shown, &judging.plan);
    let captures = Captures {
        source: Source::Recording(shown),
        findings,
        ..Captures::default()
    };
    let captures = examined(captures, &recordings, &rules, &judging.grounds.consent)?;
    let mut origins = captures.profiles.iter().map(|one| one.provenance.origin);
    let imported = origins.any(|origin| origin == ProfileOrigin::Imported);
    let usual = judging.plan.profiles(None)?;
    let others = from.iter().filter(|folder| leads_to(folder) != usual);
    name_recordings(others, imported);
    let mut outcome = judging.judged(captures, &rules);
    for finding in &mut outcome.findings {
        finding.next = with_files(std::mem::take(&mut finding.next));
    }
    Ok(outcome)
}

/// Judges slices by the rules, the locks and the plan of the archive that they were measured from.
pub(super) fn by_archive(
    opened: &Opened,
    from: &[PathBuf],
    measured: &Measured,
) -> Result<Outcome, Error> {
    let (judging, source) = (&opened.judging, Source::Slices);
    let folders = all(from);
    let _locked = locked(&folders)?;
    of_slices(judging, &folders, Some(opened), measured, source)
}

fn of_slices(
    judging: &Judging,
    folders: &[PathBuf],
    archive: Option<&Opened>,
    measured: &Measured,
    source: Source,
) -> Result<Outcome, Error> {
    let rules = judging.rules()?;
    let wanted = Wanted {
        plan: &judging.plan,
        sha256: &plan_sha256(&judging.plan)?,
        archive: archive.map(|opened| {
            (
                opened.unpacked.sha256.as_str(),
                opened.unpacked.packed.same_programs.as_slice(),
            )
        }),
        known: &measured.known,
    };
    let mut slices = read_slices(folders, wanted);
    if let Source::Recording(shown) = &source {
        slices.recordings.shown = PathBuf::from(shown);
    }
    let mut captures = Captures {
        source,
        findings: slices.findings,
        same_programs: slices.same_programs,
        parts: slices.parts,
        ..Captures::default()
    };
    let mut times = Vec::new();
    for found in slices.found {
        if times.is_empty() {
            captures.spent = measured.spent;
        }
        let gpu = found.captures.gpus.first().map(|gpu| gpu.uuid.clone());
        times.push((gpu, found.times));
        captures.add(found.captures);
    }
    // Of a GPU that is not its own no slice says anything.
    captures.sick.clear();
    for gpu in captures.parts.iter().flat_map(|part| &part.sick) {
        gpu.clone().add_to(&mut captures.sick);
    }
    // What was found of the project while it was packed belongs to no variant that is measured.
    let packed = archive
        .iter()
        .flat_map(|opened| &opened.unpacked.packed.programs.current.findings);
    let of_project = packed.filter(|finding| finding.variant.is_none());
    captures.findings.extend(of_project.cloned());
    if let Some(base) = archive.and_then(|opened| opened.unpacked.base.as_ref()) {
        slices.recordings.base = base.commit().map(str::to_owned);
    }
    slices.recordings.packed_base = archive.map(|opened| {
        let base = opened.unpacked.base.as_ref();
        base.map(|base| PackedBase {
            root: base.config().ok().map(|config| config.root.clone()),
        })
    });
    let captures = examined(
        captures, &slices.recordings, &rules, &judging.grounds.consent,
    )?;
    let outcome = judging.judged(captures, &rules);
    for (gpu, times) in times {
        // A sick GPU may take longer.
        let mut sick = outcome.sick_gpus.iter();
        if !sick.any(|sick| Some(&sick.uuid) == gpu.as_ref()) {
            let plan = &judging.plan.config;
            times.note_all(&plan.work, |name| {
                plan.variants()
                    .any(|variant| variant.id.to_string() == name)
            });
        }
    }
    Ok(outcome)
}
