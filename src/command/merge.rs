//! `sparsek-gate merge`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::answer;
use super::archive::{self, Opened};
use super::judging::{Judging, refuse_targets};
use crate::cli::{MergeArgs, Selection};
use crate::config::{Config, Variant};
use crate::finding::{Code, Error, ExitCode, Finding};
use crate::judge::{
    Judge, Origin, Outcome, PackedBase, Profiles, SameProgram, SlicePart, VariantReport,
    read_recorded,
};
use crate::measure::{Spent, Times};
use crate::report::{self, Target};
use crate::slice::{Known, Wanted, plan_sha256, read_slices};
use crate::terms::Tier;
use crate::trust::Authority;

/// What a run knows of the slices that it had measured, besides what they say.
#[derive(Default)]
pub(super) struct Measured {
    /// When the run began.
    pub started: Option<Instant>,
    /// What building took.
    pub spent: Spent,
    /// What is known of the slices in their folders.
    pub known: BTreeMap<PathBuf, Known>,
    /// What is to be said of the run besides.
    pub findings: Vec<Finding>,
}

pub(super) fn run(config: &Path, arguments: &MergeArgs) -> Result<ExitCode, Error> {
    of_run(config, arguments, &Measured::default())
}

/// Judges the slices that a run had measured.
pub(super) fn of_run(
    config: &Path,
    arguments: &MergeArgs,
    measured: &Measured,
) -> Result<ExitCode, Error> {
    let targets = report::targets(&arguments.report)?;
    let mut authority = Authority::default();
    let judged = judged(config, arguments, measured, &targets, &mut authority);
    let (mut outcome, ended) = match judged {
        Ok(outcome) => (outcome, None),
        Err(refused @ Error::Usage(_)) => return Err(refused),
        // The report must say why there is no verdict.
        Err(error) => {
            let mut outcome = Outcome::new(Origin::Measured);
            outcome.authority = authority;
            outcome.ended = Some(answer::ended(&error));
            (outcome, Some(error))
        }
    };
    let started = measured.started.filter(|_| outcome.spent.is_some());
    outcome.wall_s = started.map(|started| started.elapsed().as_secs_f64());
    let detail = arguments.verbosity.detail();
    answer::report(&outcome, ended, arguments.format, detail, &targets)
}

fn judged(
    config: &Path,
    arguments: &MergeArgs,
    measured: &Measured,
    targets: &[Target],
    authority: &mut Authority,
) -> Result<Outcome, Error> {
    let mut read: Vec<&Path> = arguments.slices.iter().map(PathBuf::as_path).collect();
    if let Some(file) = &arguments.archive {
        read.push(file);
        refuse_targets(targets, None, &read)?;
        return by_archive(file, arguments, measured, authority);
    }
    let current = Config::load(config)?;
    refuse_targets(targets, Some(&current), &read)?;
    let selection = Selection {
        names: arguments.select.clone(),
        experimental: arguments.experimental,
    };
    let judging = Judging::in_checkout(current, &arguments.trusted, None, &selection)?;
    authority.clone_from(&judging.grounds.authority);
    let wanted = Wanted {
        plan: &judging.plan,
        sha256: &plan_sha256(&judging.plan),
        archive: None,
        known: &measured.known,
    };
    let mut outcome = of_folders(&judging, arguments, wanted, None, measured)?;
    judging.complete(&mut outcome);
    account_for_all(&judging, &mut outcome);
    Ok(outcome)
}

/// Judges slices by the rules, the locks and the plan of an archive.
fn by_archive(
    file: &Path,
    arguments: &MergeArgs,
    measured: &Measured,
    authority: &mut Authority,
) -> Result<Outcome, Error> {
    let expected = arguments.archive_sha256.as_deref().unwrap_or_default();
    let opened = archive::open(file, Some(expected))?;
    let judging = &opened.judging;
    authority.clone_from(&judging.grounds.authority);
    let wanted = Wanted {
        plan: &judging.plan,
        sha256: &plan_sha256(&judging.plan),
        archive: Some((&opened.sha256, &opened.same_programs)),
        known: &measured.known,
    };
    let mut outcome = of_folders(judging, arguments, wanted, Some(&opened), measured)?;
    judging.complete(&mut outcome);
    account_for_all(judging, &mut outcome);
    Ok(outcome)
}

/// Judges slices.
fn of_folders(
    judging: &Judging,
    arguments: &MergeArgs,
    wanted: Wanted<'_>,
    archive: Option<&Opened>,
    measured: &Measured,
) -> Result<Outcome, Error> {
    let (judge, of_locks) = Judge::new(&judging.plan, judging.store())?;
    let judge = judge.of_slices();
    let Read {
        mut outcome,
        mut recorded,
        parts,
        times,
        of_recording,
    } = read(
        &judge,
        (judging, wanted, archive),
        of_locks,
        arguments,
        measured,
    )?;
    // Of a recording nothing is set aside.
    if !of_recording {
        judge.set_aside_sick(&parts, &mut recorded, &mut outcome);
    }
    outcome.findings.extend(measured.findings.iter().cloned());
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
    /// Whether they were copied from a recording.
    of_recording: bool,
}

/// Reads what slices brought.
fn read(
    judge: &Judge<'_>,
    (judging, wanted, archive): (&Judging, Wanted<'_>, Option<&Opened>),
    of_locks: Vec<Finding>,
    arguments: &MergeArgs,
    measured: &Measured,
) -> Result<Read, Error> {
    let mut slices = read_slices(&arguments.slices, wanted);
    let mut outcome = judging.outcome(match &slices.recording {
        Some(folder) => Origin::Recorded(folder.clone()),
        None => Origin::Measured,
    });
    outcome.findings.append(&mut slices.findings);
    let (before, after) = match slices.recording {
        Some(_) => (Vec::new(), of_locks),
        None => (of_locks, Vec::new()),
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
    for same in std::mem::take(&mut slices.same_programs) {
        // Only who packed the programs knows that they are equal.
        match archive.is_some() || !judging.is_change() {
            true => outcome.same_programs.push(same),
            false => outcome.findings.push(unproved(&same)),
        }
    }
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
        of_recording: slices.recording.is_some(),
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
                "run its slice again, and merge all of them",
            )
        })
        .collect();
    outcome.findings.extend(findings);
}

fn unproved(same: &SameProgram) -> Finding {
    Finding::deny(
        Code::NotMeasured,
        &same.variant,
        "the slices say that its program is the base's, and only the archive shows that",
        "merge with --archive FILE and the --archive-sha256 that the job printed which packed it",
    )
}
