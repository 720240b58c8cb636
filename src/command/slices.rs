//! `sparsek-gate check --from` with slices: the parts of one check, which other processes measured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::archive::Opened;
use super::judging::Judging;
use crate::config::Variant;
use crate::finding::{Code, Error, Finding};
use crate::judge::{
    Judge, Origin, Outcome, PackedBase, Profiles, SlicePart, VariantReport, read_recorded,
};
use crate::measure::{Spent, Times};
use crate::slice::{Known, MANIFEST_FILE, Slices, Wanted, plan_sha256, read_slices};
use crate::terms::Tier;

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
    let mut outcome = of_folders(judging, folders, None, &Measured::default())?;
    judging.complete(&mut outcome);
    account_for_all(judging, &mut outcome);
    Ok(outcome)
}

/// Judges slices by the rules, the locks and the plan of the archive that they were measured from.
pub(super) fn by_archive(
    opened: &Opened,
    folders: &[PathBuf],
    measured: &Measured,
) -> Result<Outcome, Error> {
    let mut outcome = of_folders(&opened.judging, folders, Some(opened), measured)?;
    opened.judging.complete(&mut outcome);
    account_for_all(&opened.judging, &mut outcome);
    Ok(outcome)
}

fn of_folders(
    judging: &Judging,
    folders: &[PathBuf],
    archive: Option<&Opened>,
    measured: &Measured,
) -> Result<Outcome, Error> {
    let (judge, of_locks) = Judge::new(&judging.plan, judging.store())?;
    let judge = judge.of_slices();
    let wanted = Wanted {
        plan: &judging.plan,
        sha256: &plan_sha256(&judging.plan)?,
        archive: archive.map(|opened| (opened.sha256.as_str(), opened.same_programs.as_slice())),
        known: &measured.known,
    };
    let mut slices = read_slices(folders, wanted);
    if archive.is_none() && slices.recording.is_none() {
        slices.recording = folders.first().map(|folder| folder.display().to_string());
    }
    let Read {
        mut outcome,
        mut recorded,
        parts,
        times,
    } = read(&judge, (judging, archive), of_locks, slices, measured)?;
    // Of a recording nothing is set aside.
    if archive.is_some() {
        judge.set_aside_sick(&parts, &mut recorded, &mut outcome);
    }
    for (gpu, times) in times {
        // A sick GPU may take longer.
        if !outcome
            .sick_gpus
            .iter()
            .any(|sick| Some(&sick.uuid) == gpu.as_ref())
        {
            let plan = &judging.plan.config;
            times.note(&plan.work, |name| {
                plan.variants()
                    .any(|variant| variant.id.to_string() == name)
            });
        }
    }
    judge.all(&recorded, &mut outcome);
    Ok(outcome)
}

/// What slices brought, before it is judged.
struct Read {
    outcome: Outcome,
    recorded: Profiles,
    parts: Vec<SlicePart>,
    /// What variants took, by the UUID of the GPU.
    times: Vec<(Option<String>, Times)>,
}

/// Reads what slices brought.
fn read(
    judge: &Judge<'_>,
    (judging, archive): (&Judging, Option<&Opened>),
    of_locks: Vec<Finding>,
    mut slices: Slices,
    measured: &Measured,
) -> Result<Read, Error> {
    let origin = match archive {
        None => Origin::Recorded(slices.recording.take().unwrap_or_default()),
        Some(_) => Origin::Measured,
    };
    let mut outcome = judging.outcome(origin);
    outcome.findings.append(&mut slices.findings);
    let (before, after) = match archive {
        None => (Vec::new(), of_locks),
        Some(_) => (of_locks, Vec::new()),
    };
    outcome.findings.extend(before);
    let mut spent: Option<Spent> = None;
    let mut times = Vec::new();
    for run in std::mem::take(&mut slices.runs) {
        let part = run.part;
        times.push((part.as_ref().map(|part| part.uuid.clone()), run.times));
        if let Some(part) = part {
            part.add_to(&mut outcome.gpus);
        }
        outcome.findings.extend(run.findings);
        outcome.chosen_launches.extend(run.chosen_launches);
        outcome
            .reused_verifications
            .extend(run.reused_verifications);
        outcome.resumed.extend(run.resumed);
        *spent.get_or_insert(measured.spent) += run.spent;
    }
    outcome.spent = spent;
    outcome.same_programs.append(&mut slices.same_programs);
    slices.recordings.packed_base = archive.map(|opened| {
        let base = opened.base.as_ref();
        base.map(|base| PackedBase {
            commit: base.commit().unwrap_or_default().to_owned(),
            root: base.config().ok().map(|config| config.root.clone()),
        })
    });
    let recorded = read_recorded(&slices.recordings, &judging.plan, judge, &mut outcome)?;
    outcome.findings.extend(after);
    Ok(Read {
        outcome,
        recorded,
        parts: slices.parts,
        times,
    })
}

/// Each planned variant was judged, needs no measurement, or fails the run. A finding that a slice
/// brought may be waived, and then explains nothing.
fn account_for_all(judging: &Judging, outcome: &mut Outcome) {
    let is_accounted = |variant: &&Variant| {
        let mut reports = outcome.variants.iter();
        let mut same = outcome.same_programs.iter();
        let judged =
            |report: &VariantReport| report.tier != Tier::Static || variant.accepts(Tier::Static);
        reports.any(|report| report.variant == variant.id && judged(report))
            || same.any(|same| same.variant == variant.id)
            || outcome.denies(&variant.id)
    };
    let variants = judging.plan.variants.iter();
    let missing = variants.filter(|variant| !is_accounted(variant));
    let findings: Vec<Finding> = missing
        .map(|variant| {
            Finding::deny(
                Code::NotMeasured,
                &variant.id,
                "its slice has no measurement of it",
                "run its slice again, and check all of them together",
            )
        })
        .collect();
    outcome.findings.extend(findings);
}
