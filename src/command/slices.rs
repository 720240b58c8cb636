//! `sparsek-gate check --from` with slices: the parts of one check, which other processes measured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::archive::Opened;
use super::judging::Judging;
use crate::finding::Error;
use crate::judge::{Outcome, PackedBase, examined};
use crate::measure::{Captures, Source, Spent};
use crate::slice::{Known, MANIFEST_FILE, Wanted, plan_sha256, read_slices};

/// What a run knows of the slices that it had measured, besides what they say.
#[derive(Default)]
pub(super) struct Measured {
    /// What building took.
    pub spent: Spent,
    /// What is known of the slices in their folders.
    pub known: BTreeMap<PathBuf, Known>,
}

/// The folders of slices that `--from` names: those with a manifest, and the folders in those in which
/// any has one. `None` where it names a recording.
pub(super) fn folders(from: &[PathBuf]) -> Option<Vec<PathBuf>> {
    let has_manifest = |folder: &Path| folder.join(MANIFEST_FILE).symlink_metadata().is_ok();
    let within = |folder: &Path| -> Vec<PathBuf> {
        let entries = folder.read_dir().into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let mut folders: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
        folders.sort();
        folders
    };
    let mut is_of_slices = from.len() > 1;
    let mut all = Vec::new();
    for folder in from {
        let parts = within(folder);
        let is_slice = has_manifest(folder);
        let is_of_parts = !is_slice && parts.iter().any(|part| has_manifest(part));
        is_of_slices |= is_slice || is_of_parts;
        match is_of_parts {
            true => all.extend(parts),
            false => all.push(folder.clone()),
        }
    }
    is_of_slices.then_some(all)
}

/// Judges slices that were copied from a recording.
pub(super) fn of_recording(judging: &Judging, folders: &[PathBuf]) -> Result<Outcome, Error> {
    of_folders(judging, folders, None, &Measured::default())
}

/// Judges slices by the rules, the locks and the plan of the archive that they were measured from.
pub(super) fn by_archive(
    opened: &Opened,
    folders: &[PathBuf],
    measured: &Measured,
) -> Result<Outcome, Error> {
    of_folders(&opened.judging, folders, Some(opened), measured)
}

fn of_folders(
    judging: &Judging,
    folders: &[PathBuf],
    archive: Option<&Opened>,
    measured: &Measured,
) -> Result<Outcome, Error> {
    let rules = judging.rules()?;
    let wanted = Wanted {
        plan: &judging.plan,
        sha256: &plan_sha256(&judging.plan)?,
        archive: archive.map(|opened| (opened.sha256.as_str(), opened.same_programs.as_slice())),
        known: &measured.known,
    };
    let mut slices = read_slices(folders, wanted);
    let source = match archive {
        Some(_) => Source::Slices,
        None => {
            let first = folders.first().map(|folder| folder.display().to_string());
            Source::Recording(slices.recording.take().or(first).unwrap_or_default())
        }
    };
    let mut captures = Captures {
        source,
        findings: slices.findings,
        same_programs: slices.same_programs,
        parts: slices.parts,
        ..Captures::default()
    };
    let mut times = Vec::new();
    for run in slices.runs {
        if times.is_empty() {
            captures.spent = measured.spent;
        }
        let part = run.part;
        times.push((part.as_ref().map(|part| part.uuid.clone()), run.times));
        if let Some(part) = part {
            part.add_to(&mut captures.gpus);
        }
        captures.findings.extend(run.findings);
        captures.chosen_launches.extend(run.chosen_launches);
        captures.reused.extend(run.reused_verifications);
        captures.resumed.extend(run.resumed);
        captures.spent += run.spent;
    }
    slices.recordings.packed_base = archive.map(|opened| {
        let base = opened.base.as_ref();
        base.map(|base| PackedBase {
            commit: base.commit().unwrap_or_default().to_owned(),
            root: base.config().ok().map(|config| config.root.clone()),
        })
    });
    let captures = examined(captures, &slices.recordings, &rules)?;
    let outcome = judging.judged(captures, &rules);
    for (gpu, times) in times {
        // A sick GPU may take longer.
        let mut sick = outcome.sick_gpus.iter();
        if !sick.any(|sick| Some(&sick.uuid) == gpu.as_ref()) {
            let plan = &judging.plan.config;
            times.note(&plan.work, |name| {
                plan.variants()
                    .any(|variant| variant.id.to_string() == name)
            });
        }
    }
    Ok(outcome)
}
