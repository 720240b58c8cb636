//! The slices of sick GPUs: what they measured is set aside, or its repeat on another GPU counts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::archive::Opened;
use super::judging::Judging;
use crate::cli::MergeArgs;
use crate::evidence::{SickGpu, SymptomKind};
use crate::finding::{Code, Error, Finding, WarnReason};
use crate::judge::{
    Counts, Decision, Judge, Measurement, Origin, Outcome, PackedBase, Profiles, decide,
    read_recorded,
};
use crate::measure::set_aside_findings;
use crate::profile::Profile;
use crate::quarantine::{Entry, Quarantine};
use crate::slice::{Known, SlicePart, Slices, Wanted, read_slices};
use crate::terms::VariantId;

/// What slices are judged by.
#[derive(Clone, Copy)]
pub(super) struct Brought<'a> {
    pub judging: &'a Judging,
    pub judge: &'a Judge<'a>,
    pub wanted: Wanted<'a>,
    pub archive: Option<&'a Opened>,
}

impl<'a> Brought<'a> {
    /// The same where this is known of the slices.
    pub fn knowing<'b>(&self, known: &'b BTreeMap<PathBuf, Known>) -> Brought<'b>
    where
        'a: 'b,
    {
        Brought {
            wanted: Wanted {
                known,
                ..self.wanted
            },
            ..*self
        }
    }

    /// Reads the profiles of slices. What is found meanwhile goes to `outcome`.
    pub fn read(&self, slices: &mut Slices, outcome: &mut Outcome) -> Result<Profiles, Error> {
        slices.recordings.packed_base = self.archive.map(|opened| {
            let base = opened.base.as_ref();
            base.map(|base| PackedBase {
                commit: base.commit().unwrap_or_default().to_owned(),
                root: base.config().ok().map(|config| config.root.clone()),
            })
        });
        let plan = &self.judging.plan;
        read_recorded(&slices.recordings, plan, self.judge, outcome)
    }
}

impl Brought<'_> {
    /// What repeats in these folders show of their GPUs.
    fn repeats(&self, folders: &[PathBuf]) -> Result<Repeats, Error> {
        let mut slices = read_slices(folders, self.wanted);
        // What else is found, as that there is no repeat of the other slices, is no finding, or is
        // reported where the slices are judged.
        let unusable = std::mem::take(&mut slices.unusable);
        let mut scratch = self.judging.outcome(Origin::Measured);
        let recorded = self.read(&mut slices, &mut scratch)?;
        Ok(Repeats {
            measured: measurements(self.judge, &slices.parts, &recorded),
            unusable,
        })
    }
}

/// Repeats of slices.
#[derive(Default)]
struct Repeats {
    measured: Vec<(SlicePart, Measurement)>,
    /// Why other folders are of no use.
    unusable: Vec<(PathBuf, Finding)>,
}

impl Repeats {
    /// A GPU that was sick before is sick in a repeat, too.
    fn with_symptoms_of(mut self, firsts: &[(SlicePart, Measurement)]) -> Repeats {
        for (_, repeat) in &mut self.measured {
            let sick = firsts.iter().flat_map(|(_, first)| &first.sick);
            for gpu in sick.filter(|gpu| repeat.gpus.contains(&gpu.uuid)) {
                gpu.clone().add_to(&mut repeat.sick);
            }
        }
        self
    }
}

/// What was chosen: the folders that count, one of each slice, and what is said of the others.
pub(super) struct Chosen {
    pub folders: Vec<PathBuf>,
    /// What is known of all slices, the repeats among them.
    pub known: BTreeMap<PathBuf, Known>,
    /// GPUs whose slices were measured once more.
    pub replaced: Vec<SickGpu>,
    /// GPUs that became sick in a repeat: what they measured before does not count either.
    pub sick_since: Vec<SickGpu>,
    pub findings: Vec<Finding>,
}

/// Measures the slices of sick GPUs once more, and returns the folders of the repeats with what is known
/// of them. It is given all slices, with what each shows.
pub(super) type Again<'a> =
    dyn FnMut(&[(SlicePart, Measurement)]) -> Result<Vec<(PathBuf, Known)>, Error> + 'a;

/// Why GPUs are sick.
pub(super) fn words_of(sick: &[SickGpu]) -> String {
    let words: Vec<String> = sick.iter().map(SickGpu::words).collect();
    words.join("; ")
}

/// Chooses between slices, which were read, and their repeats, by what each itself shows. `None` where
/// there is nothing to choose.
pub(super) fn choose(
    brought: &Brought<'_>,
    (parts, recorded): (&[SlicePart], &Profiles),
    arguments: &MergeArgs,
    again: Option<&mut Again<'_>>,
) -> Result<Option<Chosen>, Error> {
    let firsts = measurements(brought.judge, parts, recorded);
    let mut chosen = Chosen {
        folders: arguments.slices.clone(),
        known: brought.wanted.known.clone(),
        replaced: Vec::new(),
        sick_since: Vec::new(),
        findings: Vec::new(),
    };
    if firsts.iter().all(|(_, first)| first.sick.is_empty()) {
        let unused = arguments.repeat.iter();
        chosen.findings = unused.map(|folder| unused_repeat(folder)).collect();
        return Ok((!chosen.findings.is_empty()).then_some(chosen));
    }
    // Only a run knows that the GPUs are those of its user.
    let work = &brought.judging.plan.config.work;
    let quarantine = again.is_some().then(|| Quarantine::of(Some(work)));
    let folders = match again {
        Some(again) => {
            let repeated = again(&firsts)?;
            let folders = repeated.iter().map(|(folder, _)| folder.clone()).collect();
            chosen.known.extend(repeated);
            folders
        }
        None => arguments.repeat.clone(),
    };
    let repeats = match folders.is_empty() {
        true => Repeats::default(),
        false => brought.knowing(&chosen.known).repeats(&folders)?,
    };
    let repeats = repeats.with_symptoms_of(&firsts);
    let mut is_said: BTreeSet<&PathBuf> = BTreeSet::new();
    for (part, first) in firsts.iter().filter(|(_, first)| !first.sick.is_empty()) {
        let mut same = repeats.measured.iter();
        let same = same.find(|(one, _)| one.place == part.place);
        if let Some((own, _)) = same {
            is_said.insert(&own.folder);
        } else {
            // Of which slice a folder was that cannot be read is not known.
            for (folder, finding) in &repeats.unusable {
                if is_said.insert(folder) && !chosen.findings.contains(finding) {
                    chosen.findings.push(finding.clone());
                }
            }
        }
        // Where every GPU is sick, each is the other's repeat as far as symptoms go.
        let alike = |(_, one): &&(SlicePart, Measurement)| {
            one.is_elsewhere(first) && !one.kinds().is_disjoint(&first.kinds())
        };
        let repeat = same.or_else(|| firsts.iter().find(alike));
        let decision = decide(first, repeat.map(|(_, measured)| measured));
        if let Some(repeat) = repeat {
            chosen.take(&decision, (part, first), repeat);
            if let Some(quarantine) = &quarantine {
                let of_run = [&part.sick, &repeat.0.sick];
                chosen
                    .findings
                    .extend(store(quarantine, &decision, part, of_run)?);
            }
        }
    }
    let unused = folders.iter().filter(|folder| !is_said.contains(folder));
    chosen
        .findings
        .extend(unused.map(|folder| unused_repeat(folder)));
    chosen.keep_aside([&firsts, &repeats.measured]);
    Ok(Some(chosen))
}

impl Chosen {
    /// Does what was decided of a slice and its repeat, or what stands for that.
    fn take(
        &mut self,
        decision: &Decision,
        (part, first): (&SlicePart, &Measurement),
        (again, repeated): &(SlicePart, Measurement),
    ) {
        match decision.counts {
            Counts::First => {}
            Counts::Repeat => {
                for folder in &mut self.folders {
                    if *folder == part.folder {
                        folder.clone_from(&again.folder);
                    }
                }
                let found = first.sick.iter();
                let found = found.map(|gpu| replaced(gpu, repeated, [part, again]));
                self.findings.extend(found);
                for gpu in &first.sick {
                    gpu.clone().add_to(&mut self.replaced);
                }
            }
            Counts::Neither => {
                let found = neither(decision, [first, repeated], [part, again]);
                self.findings.push(found);
                // Of what both show, the change or a lock may be the cause, but not of a defect.
                let own = |kind: &SymptomKind| !decision.common.contains(kind);
                let sick = repeated.sick.iter();
                let sick = sick.filter(|gpu| gpu.is_certain() || gpu.kinds().iter().any(own));
                self.sick_since.extend(sick.cloned());
            }
        }
    }

    /// A sick GPU may have measured further slices, whose folders stay and show nothing themselves: they
    /// do not count either.
    fn keep_aside(&mut self, all: [&[(SlicePart, Measurement)]; 2]) {
        let folders = &self.folders;
        let stays = |gpu: &SickGpu| {
            let mut all = all.into_iter().flatten();
            all.any(|(part, one)| folders.contains(&part.folder) && one.gpus.contains(&gpu.uuid))
        };
        let (further, gone): (Vec<SickGpu>, Vec<SickGpu>) = std::mem::take(&mut self.replaced)
            .into_iter()
            .partition(stays);
        self.sick_since.extend(further);
        self.replaced = gone;
    }
}

/// Puts GPUs into quarantine, and ends quarantines that this run began for what both GPUs show.
fn store(
    quarantine: &Quarantine,
    decision: &Decision,
    part: &SlicePart,
    of_run: [&Vec<SickGpu>; 2],
) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    for gpu in &decision.quarantined {
        if quarantine.of_gpu(&gpu.uuid).is_none() {
            let written = quarantine.put(&Entry::new(gpu, &part.folder));
            findings.extend(written.warning.map(not_stored));
        }
    }
    // Before that, runs put GPUs there for a defect alone.
    if decision.common.contains(&SymptomKind::Hardware) {
        take_back(quarantine, of_run.into_iter().flatten())?;
    }
    Ok(findings)
}

/// What each slice shows of the GPUs that measured it.
fn measurements(
    judge: &Judge<'_>,
    parts: &[SlicePart],
    recorded: &Profiles,
) -> Vec<(SlicePart, Measurement)> {
    let sick = all_sick(judge, parts, recorded, &[]);
    let parts = parts.iter().map(|part| {
        let gpus = gpus_of(part, recorded);
        let is_own = |gpu: &&SickGpu| {
            gpus.contains(&gpu.uuid) || part.sick.iter().any(|own| own.uuid == gpu.uuid)
        };
        let sick = sick.iter().filter(is_own).cloned().collect();
        (part.clone(), Measurement { gpus, sick })
    });
    parts.collect()
}

/// The GPUs that measured the variants of a slice.
fn gpus_of(part: &SlicePart, recorded: &Profiles) -> BTreeSet<String> {
    let profiles = recorded.current.iter().chain(&recorded.bases);
    let own = profiles.filter(|profile| part.own.contains(&profile.variant));
    let uuids = own.flat_map(Profile::gpu_uuids);
    uuids.map(str::to_owned).collect()
}

/// All GPUs with symptoms: in the profiles, as the slices report of their driver, and in repeats.
fn all_sick(
    judge: &Judge<'_>,
    parts: &[SlicePart],
    recorded: &Profiles,
    sick_since: &[SickGpu],
) -> Vec<SickGpu> {
    let mut all = judge.sick_gpus(recorded);
    let reported = parts.iter().flat_map(|part| part.sick.iter().cloned());
    let reported = reported.chain(sick_since.iter().cloned());
    reported.for_each(|gpu| gpu.add_to(&mut all));
    all.sort_by(|one, other| one.uuid.cmp(&other.uuid));
    all
}

/// Sets aside what sick GPUs measured, before and after the symptom, whether it passes or fails: also
/// those that became sick since, in a repeat.
pub(super) fn set_aside(
    judge: &Judge<'_>,
    parts: &[SlicePart],
    recorded: &mut Profiles,
    sick_since: &[SickGpu],
    outcome: &mut Outcome,
) {
    for gpu in all_sick(judge, parts, recorded, sick_since) {
        let measured = |part: &&SlicePart| {
            let reported = part.sick.iter().any(|own| own.uuid == gpu.uuid);
            reported || gpus_of(part, recorded).contains(&gpu.uuid)
        };
        let of_gpu: Vec<&SlicePart> = parts.iter().filter(measured).collect();
        let own = of_gpu.iter().flat_map(|part| part.own.iter().cloned());
        let variants: BTreeSet<VariantId> = own.collect();
        let folder = of_gpu.first().map(|part| part.folder.clone());
        for profiles in [&mut recorded.current, &mut recorded.bases] {
            profiles.retain(|profile| !variants.contains(&profile.variant));
        }
        let on_gpu = |profile: &Profile| profile.gpu_uuids().contains(&gpu.uuid.as_str());
        recorded.controls.retain(|control| !on_gpu(control));
        set_aside_findings(
            &mut outcome.findings,
            &gpu,
            &folder.unwrap_or_default(),
            &variants,
        );
        outcome.sick_gpus.push(gpu);
    }
}

/// Ends quarantines that the slices of this run began.
fn take_back<'a>(
    quarantine: &Quarantine,
    gpus: impl Iterator<Item = &'a SickGpu>,
) -> Result<(), Error> {
    for gpu in gpus {
        let stored = quarantine.of_gpu(&gpu.uuid).and_then(|one| one.entry.ok());
        if stored.is_some_and(|entry| entry.is_of(gpu)) {
            let why = "taken back: another GPU shows the same";
            quarantine.lift(&gpu.uuid, why, "sparsek-gate")?;
        }
    }
    Ok(())
}

fn not_stored(why: String) -> Finding {
    let next = "keep jobs from the GPU by other means, such as the queue of the machine";
    Finding::of_project(Code::GpuSick, why, next).warn_for(WarnReason::NotStored)
}

/// The warning that a repeat counts.
fn replaced(gpu: &SickGpu, repeated: &Measurement, [first, again]: [&SlicePart; 2]) -> Finding {
    let others: Vec<&str> = repeated.gpus.iter().map(String::as_str).collect();
    let (uuid, place) = (&gpu.uuid, first.place);
    Finding::of_project(
        Code::GpuSick,
        format!(
            "the GPU {uuid} ({}) is sick: {}; slice {place} was measured once more on {}, and that counts. The captures of the first are in {}, those of the repeat in {}",
            gpu.name,
            gpu.words(),
            others.join(", "),
            first.folder.display(),
            again.folder.display()
        ),
        format!(
            "have the GPU examined: nvidia-smi -i {uuid} -q; `sparsek-gate quarantine` lists the GPUs that later runs refuse"
        ),
    )
    .warn_for(WarnReason::Repeated)
}

/// The warning that nothing asks for a repeat.
fn unused_repeat(folder: &Path) -> Finding {
    unused(
        folder,
        "no slice that it repeats was measured on a sick GPU",
    )
}

/// The warning that slices of a recording have no repeats.
pub(super) fn of_recording(folder: &Path) -> Finding {
    unused(
        folder,
        "the slices are of a recording, of which nothing is measured again",
    )
}

fn unused(folder: &Path, why: &str) -> Finding {
    Finding::of_project(
        Code::GpuSick,
        format!("the repeat in {} is not used: {why}", folder.display()),
        "merge without it; a repeat counts only where the slices themselves show that a GPU is sick",
    )
    .warn_for(WarnReason::RepeatUnused)
}

/// The finding that neither a slice nor its repeat counts.
fn neither(
    decision: &Decision,
    [first, repeat]: [&Measurement; 2],
    [part, again]: [&SlicePart; 2],
) -> Finding {
    let words = |measured: &Measurement| -> String {
        let gpus = measured.sick.iter();
        let gpus: Vec<String> = gpus
            .map(|gpu| format!("{}: {}", gpu.uuid, gpu.words()))
            .collect();
        gpus.join("; ")
    };
    let (place, one, other) = (part.place, words(first), words(repeat));
    let folders = format!("{} and {}", part.folder.display(), again.folder.display());
    let (why, next) = if !repeat.is_elsewhere(first) {
        (
            format!("its repeat is not known to be from another GPU ({one})"),
            "repeat it on another GPU".to_owned(),
        )
    } else if decision.common.is_empty() {
        (
            format!("its repeat ran on a GPU that is sick, too ({one}; {other})"),
            "repeat it on a third GPU".to_owned(),
        )
    } else {
        (
            format!(
                "both GPUs show symptoms of the same kind, so the change, the driver or a lock may be the cause ({one}; {other})"
            ),
            "compare both folders; if a control deviates on every GPU, the driver or the lock is the cause: sparsek-gate baseline --lock --reason '...'".to_owned(),
        )
    };
    Finding::of_project(
        Code::GpuSick,
        format!("slice {place} is not measured: {why}. The captures are in {folders}"),
        next,
    )
}
