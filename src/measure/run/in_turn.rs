//! Measures variants one after the other on the configured GPU, into fresh profiles.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use crate::build::{Artifact, Witness};
use crate::config::{StatedBy, Variant, Verification};
use crate::device::FaultWatch;
use crate::disk;
use crate::evidence::{Examined, Purpose, SickGpu, When, disturbed, incomplete, incomplete_side};
use crate::files::{
    STATIC_PROFILE_FILE, base_folder, clear_measured, has_room, settle, variant_folder,
};
use crate::finding::{Code, Error, Finding, Stop};
use crate::measure::captures::{Captures, Resumed};
use crate::measure::cost::{Spent, Times};
use crate::measure::folder::{
    Complete, Done, Kept, Recording, RunFile, VariantRecord, failed_before, not_resumed, resumed,
};
use crate::measure::job::retry::Retries;
use crate::measure::job::rounds::{Profiles, SideStop, Subjects};
use crate::measure::job::seeds::Seeds;
use crate::measure::job::subject::{Subject, altered};
use crate::measure::job::window::Window;
use crate::measure::key::parts::Keys;
use crate::measure::key::readable::ReadableFiles;
use crate::measure::key::verified::{Records, ReusedVerification, VerificationRecord, tool};
use crate::measure::place::base::{BaseProject, BaseVariant};
use crate::measure::place::batch::Batch;
use crate::measure::place::bench::Bench;
use crate::measure::place::order::Order;
use crate::measure::place::sides::Sides;
use crate::measure::seal::Seal;
use crate::measure::watch::OfBase;
use crate::plan::{Side, VariantPlan};
use crate::process::interrupted_soon;
use crate::profile::Profile;
use crate::terms::{Phase, Tier, VariantId, counted};
use crate::verdict::Stopping;
use crate::verify::missing_program;

/// A variant as it is timed as its program runs.
struct Timed {
    /// Beside its version at the base.
    beside: Variant,
    of_base: Option<Variant>,
    /// By itself, to be compared with stored values.
    alone: Variant,
}

/// What the variants of one run share.
pub(in crate::measure) struct Run<'a> {
    pub order: Order<'a>,
    pub bench: Bench<'a>,
    pub git: Option<String>,
    pub measured: Captures,
    /// What no program may change until the end: rules, baselines, and what was measured.
    pub seal: Seal,
    pub records: Records,
    /// What programs of a side could read, where that matters, or why that is not known.
    pub files: Vec<(Side, Result<ReadableFiles, String>)>,
    /// Whether verifications may be reused or recorded.
    pub uses_records: bool,
    /// The cost of the variant that is being measured.
    pub cost: Spent,
    /// The GPU, once its driver has reported a defect.
    pub sick: Option<SickGpu>,
}

impl<'a> Run<'a> {
    /// Waits for the GPU, and takes the records of verifications as they are then: the run before may
    /// have added to them. No program of this run is running, and a build command that changed them is
    /// still found at the end.
    pub fn turn(&mut self, commands_ran: bool) -> Result<File, Error> {
        let by_command = commands_ran && !self.seal.broken().is_empty();
        let keep = self.order.place.run_file.map(RunFile::sick_file);
        let lock = self.bench.lock(keep)?;
        if !by_command {
            self.records.read_again();
            self.seal.renew(&self.records.path());
        }
        Ok(lock)
    }

    /// Whether the numbers of a built variant are correct, and compute-sanitizer, where the variant
    /// asks for it, finds nothing; and what was found.
    fn checked(
        &mut self,
        batch: Batch<'_>,
        variant: &Variant,
        artifact: &Artifact,
        side: Side,
    ) -> Result<(bool, Vec<Finding>), Error> {
        if variant.verification != Verification::OwnRun {
            // Its first run is under a profiler, whose messages are about the profiler.
            let missing = artifact
                .run
                .first()
                .and_then(|program| missing_program(&batch.config.root, variant, program));
            if missing.is_some() || variant.verification == Verification::None {
                return Ok((missing.is_none(), missing.into_iter().collect()));
            }
        }
        let key = match self.uses_records {
            true => self.keys().verification(side, variant, artifact),
            false => None,
        };
        let sanitizer = self.bench.sanitizer.as_ref();
        let version = sanitizer.map(|sanitizer| sanitizer.0.version.as_str());
        let record = VerificationRecord::of(variant, &self.bench.gpu, version);
        if let Some(key) = &key
            && self.reuses(batch, variant, side, key, &record)
        {
            return Ok((true, Vec::new()));
        }
        let one = Batch {
            variants: &[variant],
            ..batch
        };
        let artifacts = [Some(artifact.clone())];
        let (verified, mut findings) = one.verify(&artifacts, &self.bench.env)?;
        let right = verified.into_iter().flatten().next();
        self.cost.verified += 1;
        self.cost.verify_s += right.as_ref().map_or(0.0, |right| right.wall.as_secs_f64());
        if let Some(sanitizer) = &self.bench.sanitizer {
            let (sanitized, found) =
                one.sanitize(&artifacts, &findings, sanitizer, &self.bench.env)?;
            findings.extend(found);
            let tools = sanitized.iter().flat_map(|variant| &variant.tools);
            self.cost.verify_s += tools.map(|tool| tool.wall.as_secs_f64()).sum::<f64>();
        }
        let clean = !findings.iter().any(Finding::denies);
        // A warning would not be reported again.
        if let (Some(key), Some(_), []) = (key, &right, findings.as_slice()) {
            self.records.add(&variant.id, key, record);
        }
        Ok((right.is_some() && clean, findings))
    }

    fn keys(&self) -> Keys<'_> {
        Keys {
            tool: tool(),
            gpu: &self.bench.gpu,
            profiler: (&self.bench.ncu_version, self.bench.libcupti.as_ref()),
            overrides: self.bench.overrides,
            packed_files: self.order.place.packed.map(|packed| packed.files.as_str()),
            files: &self.files,
        }
    }

    /// Whether a record stands in for verifying a variant.
    fn reuses(
        &mut self,
        batch: Batch<'_>,
        variant: &Variant,
        side: Side,
        key: &str,
        now: &VerificationRecord,
    ) -> bool {
        let reads = self.order.place.records.reads;
        let record = self.records.covering(key, now).filter(|_| reads).cloned();
        let Some(record) = record else {
            return false;
        };
        batch.watch.ended(variant, "verify", &record.words());
        self.measured.reused.push(ReusedVerification {
            variant: variant.id.clone(),
            of_base: side == Side::Base,
            record,
        });
        true
    }

    /// Sets aside what the GPU measured if its driver reported a defect: that has no other cause.
    fn set_aside(&mut self) {
        // The driver may report what the last program met only now.
        let sick = self.bench.sick().or(self.sick.take());
        if let (Some(sick), Some(run_file)) = (&sick, self.order.place.run_file) {
            run_file.sick_file().keep(sick);
        }
        if sick.is_some() {
            let removed = self.bench.counted.discard();
            removed.iter().for_each(|path| self.seal.renew(path));
        }
        let sick = sick.into_iter().collect();
        self.measured.set_aside(sick);
    }

    /// The same where the run ends with an error or an interrupt: a memory error and a lost GPU remove
    /// nothing before.
    pub fn ended_early(&mut self) {
        self.set_aside();
        for sick in &self.measured.sick {
            let text = format!("the GPU {} is sick: {}", sick.uuid, sick.words());
            self.order.batch.watch.notes(&text);
        }
    }

    /// Looks for what changed that must not, and records what was verified if nothing did.
    pub fn finish(mut self) -> Captures {
        let root = &self.order.batch.config.root;
        self.set_aside();
        let altered = altered(None, &self.seal, root);
        let gpu = &self.bench.gpu.uuid;
        let findings = &mut self.measured.findings;
        let deaf = self.bench.faults().and_then(FaultWatch::deaf);
        let deaf = deaf.filter(|_| self.measured.sick.is_empty());
        findings.extend(deaf.map(|why| unheard(gpu, why)));
        findings.extend(resumed(&self.measured.resumed));
        if let Some(altered) = altered {
            self.measured.findings.push(altered);
        } else if self.order.place.records.writes && self.measured.sick.is_empty() {
            let findings = &self.measured.findings;
            self.records.write(|variant| {
                let mut findings = findings.iter();
                !findings.any(|one| one.concerns(variant) && one.denies())
            });
        }
        if let (Some(run_file), []) = (self.order.place.run_file, self.measured.sick.as_slice()) {
            run_file.whole();
        }
        self.measured
    }

    /// Measures the variants, one after the other, or takes them over from an interrupted run.
    pub fn all_in_turn(
        &mut self,
        sides: Vec<Sides<'a>>,
        mut earlier: BTreeMap<VariantId, Kept>,
        stop: &dyn Stopping,
    ) -> Result<(), Error> {
        let (batch, output) = (self.order.batch, self.order.place.output);
        batch.watch.expects(sides.len());
        for sides in sides {
            let id = sides.variant.id.clone();
            let kept = earlier.remove(&id);
            let all = std::mem::take(&mut self.measured);
            let turn = if self.sick.is_some() {
                // What it would measure does not count either. What an interrupted run left stays.
                let not_begun = sides.current.is_some().then(|| id.clone());
                self.measured.not_begun.extend(not_begun);
                Ok((None, BTreeMap::new()))
            } else {
                self.in_turn(sides, kept, stop)
            };
            let own = std::mem::replace(&mut self.measured, all);
            let has_profile = own.profiles.iter().any(|profile| profile.variant == id);
            let (recording, files) = match turn {
                Ok(turn) => turn,
                Err(error) => {
                    self.measured.add(own);
                    return Err(error);
                }
            };
            let cost = std::mem::take(&mut self.cost);
            self.measured.spent += cost;
            if !has_profile {
                has_room(&variant_folder(output, &id))?;
            }
            settle(output, &id)?;
            // Only now, because settling removes what an earlier run left.
            if has_profile {
                self.seal.add([variant_folder(output, &id)]);
                Times::note(&batch.config.work, &id, cost);
            }
            for (path, sha256) in files {
                let path = variant_folder(output, &id).join(path);
                self.seal.add_known(path, sha256);
            }
            // What the build made of it is written again.
            let own = self.complete(recording, own)?;
            self.measured.add(own);
        }
        Ok(())
    }

    /// Keeps all that was measured and found of a variant, for a run that resumes this one. That it
    /// failed is kept, too: what is only measured again could pass then.
    fn complete(
        &mut self,
        recording: Option<VariantRecord>,
        mut own: Captures,
    ) -> Result<Captures, Error> {
        // On a sick GPU nothing says that the variant is what failed.
        let recording = recording.filter(|_| self.sick.is_none());
        let (Some(run_file), Some(mut record)) = (self.order.place.run_file, recording) else {
            return Ok(own);
        };
        let findings = std::mem::take(&mut own.findings).into_iter();
        let (of_this_run, findings) = findings.partition(|one| one.code == Code::Resumed);
        own.findings = findings;
        let folder = variant_folder(self.order.place.output, &record.variant);
        let mut files = self.seal.below(&folder);
        if files.is_empty() {
            // What a failed variant leaves may still change.
            let mut left = Seal::default();
            left.add([folder.clone()]);
            files = left.below(&folder);
        }
        let done = Done::of(&mut own, files);
        if done.failure(&record.variant).is_some() && interrupted_soon() {
            return Err(Error::Interrupted);
        }
        for (name, sha256) in &done.profiles {
            self.seal.add_known(folder.join(name), sha256.clone());
        }
        record.done = Some(done);
        self.seal.add([run_file.keep(&record)?]);
        own.findings.extend::<Vec<Finding>>(of_this_run);
        Ok(own)
    }

    /// Verifies a variant, and measures it, or takes it over from an interrupted run.
    fn in_turn(
        &mut self,
        sides: Sides<'a>,
        kept: Option<Kept>,
        stop: &dyn Stopping,
    ) -> Result<Turn, Error> {
        let (batch, output) = (self.order.batch, self.order.place.output);
        let id = &sides.variant.id;
        let had_any = kept.is_some();
        let folders = [variant_folder(output, id), base_folder(output, id)];
        self.bench.counted.add(folders);
        if sides.current.is_none() {
            if had_any {
                clear_measured(output, id)?;
            }
            return Ok((None, BTreeMap::new()));
        };
        let mut recording: Recording<'_> = None;
        if let Some(run_file) = self.order.place.run_file {
            let memory_errors = self.bench.faults().map(FaultWatch::counted_errors);
            let key = self.keys().measurement(&sides, memory_errors);
            let resumption = kept.map(|kept| kept.resumption(&key)).unwrap_or_default();
            if let Some(complete) = resumption.complete {
                let record = VariantRecord {
                    key: resumption.key,
                    retries: resumption.retries,
                    ..run_file.record(id)
                };
                return self.take_over(sides.variant, record, complete);
            }
            let why_not = resumption.why_not.map(|why| not_resumed(id, &why));
            self.measured.findings.extend(why_not);
            let record = VariantRecord {
                key: key.ok(),
                retries: resumption.retries,
                ..run_file.record(id)
            };
            if had_any {
                run_file.keep(&record)?;
                clear_measured(output, id)?;
            }
            recording = Some((run_file, record));
        }
        let variant = sides.variant;
        if let Some((artifact, witness)) = sides.current {
            let (correct, findings) = self.checked(batch, variant, &artifact, Side::Current)?;
            self.measured.findings.extend(findings);
            if correct {
                let built = (artifact, sides.base);
                self.variant(variant, built, &witness, &mut recording, stop)?;
            } else {
                self.measured.findings.extend(witness.changes(variant));
            }
        }
        self.sick = self.bench.sick();
        if let (Some(sick), Some((run_file, _))) = (&self.sick, &recording) {
            run_file.sick_file().keep(sick);
        }
        Ok((recording.map(|(_, record)| record), BTreeMap::new()))
    }

    /// Takes over what an interrupted run measured and found of a variant.
    fn take_over(
        &mut self,
        variant: &Variant,
        record: VariantRecord,
        complete: Complete,
    ) -> Result<Turn, Error> {
        let (batch, output) = (self.order.batch, self.order.place.output);
        let (mut measured, mut files) = (complete.measured, complete.files);
        let is_failed = complete.failure.is_some();
        if is_failed {
            measured.findings = measured.findings.into_iter().map(failed_before).collect();
            files.clear();
        }
        let mut denied = measured.findings.iter().filter(|one| one.denies());
        let text = match denied.next().filter(|_| is_failed) {
            Some(failed) => &failed.message,
            None => "taken over from the interrupted run",
        };
        batch.watch.ended(variant, "profile", text);
        let sides = [
            (variant_folder(output, &variant.id), &measured.compiled),
            (base_folder(output, &variant.id), &measured.compiled_bases),
        ];
        for (folder, profiles) in sides {
            for profile in profiles {
                profile.write(&folder.join(STATIC_PROFILE_FILE))?;
            }
        }
        let began = self.order.place.run_file.and_then(RunFile::interrupted);
        measured.resumed.push(Resumed {
            variant: variant.id.clone(),
            began: began.unwrap_or_default().to_owned(),
        });
        self.measured = measured;
        Ok((Some(record), files))
    }

    /// Measures one variant that was verified, side by side with the base where there is one.
    fn variant(
        &mut self,
        variant: &Variant,
        (artifact, base): (Artifact, Option<Result<BaseVariant<'a>, Finding>>),
        witness: &Witness,
        recording: &mut Recording<'_>,
        stop: &dyn Stopping,
    ) -> Result<(), Error> {
        let batch = self.order.batch;
        let base = base.map(|base| self.verified_base(variant, base));
        let base = match base.transpose() {
            Ok(base) => base,
            Err(stop) => {
                self.measured.findings.push(stop.finding()?);
                if self.order.base.is_some_and(BaseProject::is_required) {
                    return Ok(());
                }
                None
            }
        };
        batch.watch.begins(variant, "profile");
        let timed = self.timed(variant, base.as_ref());
        let mut subjects = self.subjects(variant, artifact, base.as_ref())?;
        let forms = (variant, timed.as_ref());
        let answer = self.beside_or_alone(&mut subjects, base.as_ref(), forms, recording, stop)?;
        let variant = subjects.current.variant;
        // After the last process of both sides.
        let of_base = base.as_ref().and_then(|base| base.witness.changes(variant));
        let of_base = of_base.map(Finding::in_base);
        let changes: Vec<Finding> = witness
            .changes(variant)
            .into_iter()
            .chain(of_base)
            .collect();
        let answer = match (changes.first(), answer) {
            (Some(changed), Ok(_)) => {
                batch.watch.ended(variant, "profile", &changed.message);
                self.measured.findings.extend(changes);
                return Ok(());
            }
            (_, answer) => answer,
        };
        self.measured.findings.extend(changes);
        match answer {
            Ok(profiles) => self.keep(variant, &mut subjects, profiles),
            Err(SideStop::Finding(side, finding)) => {
                self.not_measured(variant, subjects.current.tier, side, *finding);
                Ok(())
            }
            Err(SideStop::Error(error)) => Err(error),
        }
    }

    /// A variant, and its version at the base, timed as their programs run; `None` where there is no CUPTI,
    /// or one of them needs ncu for its times.
    fn timed(&self, variant: &Variant, base: Option<&BaseVariant<'_>>) -> Option<Timed> {
        let is_gated = variant.stated_by == StatedBy::Configuration;
        if !is_gated || self.bench.libcupti.is_none() {
            return None;
        }
        let of_base = match base {
            Some(base) => Some(base.variant.timed_as_it_runs(true)?),
            None => None,
        };
        Some(Timed {
            beside: variant.timed_as_it_runs(base.is_some())?,
            alone: variant.timed_as_it_runs(false)?,
            of_base,
        })
    }

    /// A variant about to be measured, and its version at the base.
    fn subjects<'s>(
        &self,
        variant: &'s Variant,
        artifact: Artifact,
        base: Option<&'s BaseVariant<'_>>,
    ) -> Result<Subjects<'s>, Error>
    where
        'a: 's,
    {
        let (batch, output) = (self.order.batch, self.order.place.output);
        let folder = variant_folder(output, &variant.id);
        let reused = self.measured.reused.iter();
        let mut reused = reused.filter(|one| one.variant == variant.id && !one.of_base);
        let mut current = Subject::new(batch.config, variant, artifact, folder, self.git.clone());
        current.verified_before = reused.next().map(|one| one.record.verified.clone());
        Ok(Subjects {
            current,
            base: base.map(|base| base_subject(base, output)).transpose()?,
            seeds: Seeds::default(),
            window: match variant.stated_by {
                StatedBy::Configuration => Window::one(),
                StatedBy::Compare | StatedBy::Init => Window::new(),
            },
            failed_beside: Vec::new(),
        })
    }

    /// Measures a variant beside the base where there is one, and alone where that fails, though the base is
    /// not required. It is timed as it runs where that is given, and by ncu where its launches are not
    /// recorded.
    fn beside_or_alone<'s>(
        &mut self,
        subjects: &mut Subjects<'s>,
        base: Option<&'s BaseVariant<'_>>,
        (by_ncu, mut timed): (&'s Variant, Option<&'s Timed>),
        recording: &mut Recording<'_>,
        stop: &dyn Stopping,
    ) -> Result<Result<Profiles, SideStop>, Error> {
        // One limit of retries for the variant, side by side and alone together.
        let mut retries = Retries::of(by_ncu, self.order.batch.watch, recording);
        let answer = loop {
            let beside = base.filter(|_| subjects.base.is_some());
            let of_base = timed.and_then(|timed| timed.of_base.as_ref());
            match (timed, beside) {
                (Some(timed), Some(base)) => {
                    subjects.are(&timed.beside, of_base.unwrap_or(&base.variant));
                }
                (Some(timed), None) => subjects.current.variant = &timed.alone,
                (None, Some(base)) => subjects.are(by_ncu, &base.variant),
                (None, None) => subjects.current.variant = by_ncu,
            }
            let variant = subjects.current.variant;
            let plan = VariantPlan::of(variant, beside.is_some());
            let answer = subjects.measure(&self.bench, &plan, &mut retries, stop);
            let Err(SideStop::Finding(side, found)) = &answer else {
                break answer;
            };
            // Of these CUPTI may have recorded nothing, and ncu can measure it.
            let unrecorded = [Code::ProfilerUnsupported, Code::KernelMissing];
            if timed.is_some() && unrecorded.contains(&found.code) {
                let text = format!("ncu measures the duration: {}", found.message);
                self.bench.note(variant, "times", &text);
                timed = None;
            } else if let (Side::Base, Some(base)) = (side, beside)
                && !base.project.is_required()
            {
                let unavailable = base.project.unavailable(variant, &found.message);
                self.measured.findings.push(unavailable);
                self.not_excused(found);
                self.cost += subjects
                    .base
                    .take()
                    .map_or_else(Spent::default, |base| base.cost);
            } else {
                break answer;
            }
        };
        self.measured.findings.extend(retries.warnings);
        self.measured.findings.append(&mut subjects.failed_beside);
        for subject in subjects.base.iter().chain([&subjects.current]) {
            self.cost += subject.cost;
        }
        Ok(answer)
    }

    /// Reports why a variant was not measured, and on which side.
    fn not_measured(&mut self, variant: &Variant, tier: Tier, side: Side, finding: Finding) {
        let finding = match side {
            Side::Base => finding.in_base(),
            Side::Current => finding,
        };
        let watch = self.order.batch.watch;
        watch.ended(variant, "profile", &finding.message);
        let findings = self.bench.unmeasured(variant, tier, finding);
        self.measured.findings.extend(findings);
    }

    /// A base that cannot be measured only warns, unless somebody wrote to its program: that must not
    /// be a way to be judged without it.
    fn not_excused(&mut self, finding: &Finding) {
        if finding.code == Code::AlteredDuringRun {
            self.measured.findings.push(finding.clone());
        }
    }

    /// The base's version of a variant, if it was built and its numbers are correct.
    fn verified_base(
        &mut self,
        variant: &Variant,
        base: Result<BaseVariant<'a>, Finding>,
    ) -> Result<BaseVariant<'a>, Stop> {
        let base = base?;
        let batch = Batch {
            config: base.config,
            variants: &[],
            watch: &OfBase(self.order.batch.watch),
        };
        let (correct, mut findings) =
            self.checked(batch, &base.variant, &base.artifact, Side::Base)?;
        if correct {
            return Ok(base);
        }
        findings
            .iter()
            .for_each(|finding| self.not_excused(finding));
        let lacking = match findings.pop() {
            Some(found) => base.project.lacking(variant, found),
            None => base.project.unavailable(variant, "it fails its check"),
        };
        Err(lacking.into())
    }

    /// Keeps the profiles of a variant, with the findings about them.
    fn keep(
        &mut self,
        variant: &Variant,
        subjects: &mut Subjects<'_>,
        profiles: Profiles,
    ) -> Result<(), Error> {
        let Profiles {
            current,
            base,
            uncounted,
        } = profiles;
        subjects.current.keep(&current)?;
        let mut gaps = match &base {
            Some(_) => incomplete_side(variant, &current),
            None => incomplete(variant, &current),
        };
        if base.is_none() {
            gaps.extend(disturbed(variant, &current, Purpose::Baseline));
        }
        let mut findings = subjects.current.mismatches(&self.bench);
        // That the counters are denied is seen by the profile.
        let is_seen = |found: &Finding| {
            found.code == Code::NoPermission && variant.stated_by == StatedBy::Configuration
        };
        findings.extend(uncounted.filter(|found| !is_seen(found)));
        findings.extend(subjects.current.altered());
        if let Some(subject) = &mut subjects.base {
            findings.extend(subject.altered());
        }
        let side = match base {
            Some(_) => ", side by side with the base",
            None => "",
        };
        // `init` asks for more launches than most programs make.
        let expected =
            |gap: &&Finding| variant.stated_by == StatedBy::Init && gap.code == Code::NotMeasured;
        let first = gaps.iter().find(|gap| !expected(gap));
        let first = first.or(findings.first());
        let text = format!("{}{side}", words(&current, first));
        self.order.batch.watch.ended(variant, "profile", &text);
        let examined = Examined {
            variant,
            current: &current,
            references: Vec::new(),
        };
        examined.findings(When::Measured, &mut gaps);
        self.measured.findings.extend(findings);
        self.measured.gaps.extend(gaps);
        let compiled = self.keep_static(&subjects.current, &current, |finding| finding)?;
        self.measured.compiled.extend(compiled);
        if let (Some(profile), Some(subject)) = (base, &subjects.base) {
            subject.keep(&profile)?;
            let compiled = self.keep_static(subject, &profile, Finding::in_base)?;
            self.measured.compiled_bases.extend(compiled);
            self.measured.bases.push(profile);
        }
        self.measured.profiles.push(current);
        Ok(())
    }

    /// The static profile of a side that was measured: of what it loaded while it ran, where the variant
    /// asks for it. That this is not known is a finding, and the measured profile stays.
    fn keep_static(
        &mut self,
        subject: &Subject<'_>,
        profile: &Profile,
        of_side: fn(Finding) -> Finding,
    ) -> Result<Option<Profile>, Error> {
        let launched = subject.keep_static(&self.bench, None, profile)?;
        // Both have the same file.
        match subject.keep_loaded_code(&self.bench, profile) {
            Ok(loaded) => Ok(loaded.or(launched)),
            Err(stop) => {
                let found = of_side(stop.finding()?);
                self.measured.findings.push(found);
                Ok(launched)
            }
        }
    }
}

/// What became of a variant when it was its turn: what is to be kept of it; of one that was taken over
/// from an interrupted run also the hashes of its files.
type Turn = (Option<VariantRecord>, BTreeMap<String, String>);

/// The warning that the driver stopped reporting Xid errors.
fn unheard(gpu: &str, why: &str) -> Finding {
    Finding::of_project(
        Code::GpuUnwatched,
        format!(
            "the driver stopped reporting errors of the GPU {gpu} (Xid) before the end of the run: {why}. Whether there were more is not known"
        ),
        "look for `Xid` in the kernel's log (dmesg), and measure again",
    )
}

/// The base's version of a variant, about to be measured.
fn base_subject<'b>(base: &'b BaseVariant<'_>, output: &Path) -> Result<Subject<'b>, Error> {
    let (variant, artifact) = (&base.variant, base.artifact.clone());
    let folder = base_folder(output, &variant.id);
    disk::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
    let commit = base.project.commit().map(str::to_owned);
    Ok(Subject::new(base.config, variant, artifact, folder, commit))
}

/// A short description of a fresh profile.
fn words(profile: &Profile, gap: Option<&Finding>) -> String {
    match gap {
        None => format!(
            "{} launches in {}",
            profile.launch_count(Phase::Timing),
            counted(
                profile.provenance.processes as usize, "process", "processes"
            )
        ),
        Some(gap) => gap.message.clone(),
    }
}
