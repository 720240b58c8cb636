//! Measures variants one after the other on the configured GPU, into fresh profiles.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::base::{BaseProject, BaseVariant};
use super::batch::Batch;
use super::bench::Bench;
use super::cost::{Cost, Costs, Spent};
use super::journal::{Journal, MEASURED, Resumed, VariantEntry};
use super::noted::Noted;
use super::prebuilt::{Prebuilt, PrebuiltSide};
use super::readable::ReadableFiles;
use super::resume::{Key, KeyedMachine, KeyedSide, Readable, difference, faults_in, key};
use super::retry::Retries;
use super::rounds::{Profiles, SideStop, StillOpen, Subjects};
use super::seal::Seal;
use super::seeds::Seeds;
use super::subject::{Subject, altered};
use super::verified::{
    RecordUse, Records, ReusedVerification, VerificationRecord, is_recordable, key_of,
};
use super::watch::OfBase;
use crate::build::{Artifact, Witness};
use crate::config::{Recipe, StatedBy, Variant, Verification};
use crate::device::{Gpu, GpuLock};
use crate::evidence::{
    Purpose, SickGpu, disturbed, incomplete, incomplete_side, interleaved_launches,
    launched_otherwise, tuning_varies, unpinned,
};
use crate::files::{
    base_folder, clear_measured, has_room, set_aside, set_aside_to_resume, settle, variant_folder,
};
use crate::finding::{Code, Error, Finding, Severity, Stop, WarnReason};
use crate::plan::{Side, VariantPlan};
use crate::process::interrupted_soon;
use crate::profile::{OnGpus, Profile};
use crate::quarantine::Entry;
use crate::terms::{Phase, Tier, VariantId};
use crate::toolchain::can_start;
use crate::verdict::{ProcessCost, Schedule};

/// What was measured.
#[derive(Debug, Default)]
pub struct Measured {
    /// Fresh profiles, of the variants that could be measured.
    pub profiles: Vec<Profile>,
    /// Fresh profiles of the base revision, of the variants that were measured side by side.
    pub bases: Vec<Profile>,
    /// Static profiles of the variants that were built by the compiler.
    pub compiled: Vec<Profile>,
    /// The same of the base revision.
    pub compiled_bases: Vec<Profile>,
    /// Why the others could not be measured, and what else happened.
    pub findings: Vec<Finding>,
    /// What the profiles lack. Who compares them finds it again, and reports it in more detail.
    pub gaps: Vec<Finding>,
    /// Verifications of earlier runs that were not repeated.
    pub reused: Vec<ReusedVerification>,
    /// Time inside the programs that were started.
    pub spent: Spent,
    /// What was taken over of an interrupted run.
    pub resumed: Vec<Resumed>,
    /// How many launches were chosen for variants that were measured side by side.
    pub schedules: Vec<(VariantId, Schedule)>,
    /// The files that no program may change once they are written, with their hashes.
    pub sealed: BTreeMap<PathBuf, String>,
    /// The GPU, where its driver reported a defect: all that it measured is set aside then.
    pub sick: Vec<SickGpu>,
    /// Variants that were not begun, because the GPU was sick before.
    pub not_begun: Vec<VariantId>,
}

/// How many launches a process of a variant makes side by side, by what a process costs; `None` for
/// the configured number.
pub type Choose<'a> = dyn Fn(&Variant, &Gpu, ProcessCost) -> Option<Schedule> + 'a;

/// An order to measure variants.
#[derive(Clone, Copy)]
pub struct Order<'a> {
    /// The variants.
    pub batch: Batch<'a>,
    /// The base revision, where it is measured side by side with them.
    pub base: Option<&'a BaseProject>,
    /// Profiles and captures are left in `output/<suite>/<variant>/`, those of the base in the
    /// folder `base` there.
    pub output: &'a Path,
    /// Constants of a trial (`--define`).
    pub overrides: &'a [String],
    /// What is done with records of verifications.
    pub records: RecordUse,
    /// What another machine built, where nothing is built here.
    pub prebuilt: Option<&'a Prebuilt>,
    /// sha256 of the list of all files that came with it.
    pub packed_files: Option<&'a str>,
    /// Where it is noted what is measured, for another run to go on with.
    pub journal: Option<&'a Journal>,
}

/// Measures variants. While `open` says so, and within the configured bound, a variant is measured
/// in more processes. Where a base cannot be measured a finding says why, and the variant is
/// measured alone.
///
/// # Errors
/// [`Error`] where the machine failed; what concerns one variant is a finding.
pub fn measure(order: Order<'_>, open: &mut StillOpen<'_>) -> Result<Measured, Error> {
    // What the machine lacks is reported before anything is built.
    let bench = Bench::new(order.batch, order.overrides, order.prebuilt)?;
    build(order)?.measure(bench, &|_, _, _| None, open)
}

/// Builds variants, and their versions at the base where there is one. This needs no GPU.
///
/// # Errors
/// [`Error`] where the machine failed; what concerns one variant is a finding.
pub fn build(order: Order<'_>) -> Result<Built<'_>, Error> {
    let Order { batch, output, .. } = order;
    let mut measured = Measured::default();
    if let Some(journal) = order.journal {
        let begun = journal.begin()?;
        measured.findings.extend(begun.unusable);
        if let Some(began) = begun.dropped {
            batch.watch.notes(&format!(
                "the run that began at {began} was interrupted; with --resume this one would go on with it"
            ));
        }
    }
    let mut seal = Seal::default();
    seal.add(rules(
        &batch.config.path,
        &batch.config.root,
        &batch.config.baselines,
    ));
    // Before the first program of the change runs: a build command is one.
    let records = Records::of(&batch.config.work);
    seal.add([records.path()]);
    // Otherwise the earlier profile of a variant that fails now would be taken for this run's. Where
    // this run is killed it is still there.
    // What an interrupted run noted is read now, too: before a program could write to it.
    let mut earlier = BTreeMap::new();
    for variant in batch.variants {
        let id = &variant.id;
        let noted = order.journal.map(|journal| journal.earlier(id));
        match noted.unwrap_or(Ok(None)) {
            Ok(Some(entry)) => {
                set_aside_to_resume(output, id)?;
                earlier.insert(id.clone(), entry);
            }
            Ok(None) => {
                set_aside(output, id)?;
            }
            Err(why) => {
                set_aside(output, id)?;
                measured.findings.push(not_resumed(id, &why));
            }
        }
    }
    // Their latest profiles are then those of this GPU.
    let ids: Vec<&VariantId> = batch.variants.iter().map(|variant| &variant.id).collect();
    OnGpus::forget(output, &ids)?;
    let mut built = Built {
        // Where two programs are compared, no commit says which is which.
        git: match (order.prebuilt, order.base) {
            (Some(prebuilt), _) => prebuilt.git.clone(),
            (None, Some(base)) if base.commit().is_none() => None,
            _ => crate::git::revision(&batch.config.root),
        },
        order,
        measured,
        seal,
        records,
        sides: Vec::new(),
        files: Vec::new(),
        earlier,
    };
    built.sides = built.both_sides()?;
    built.files = built.readable_files();
    Ok(built)
}

/// Variants that are built, and not measured yet.
pub struct Built<'a> {
    order: Order<'a>,
    git: Option<String>,
    measured: Measured,
    /// What no program may change until the end: rules, baselines, and what was measured.
    seal: Seal,
    records: Records,
    /// Those to measure, in their order.
    sides: Vec<Sides<'a>>,
    /// What programs of a side could read, where that matters, or why that is not known.
    files: Vec<(Side, Result<ReadableFiles, String>)>,
    /// What an interrupted run noted.
    earlier: BTreeMap<VariantId, VariantEntry>,
}

/// A variant, and its version at the base where there is one.
struct Sides<'a> {
    variant: &'a Variant,
    /// `None` where it could not be built.
    current: Option<(Artifact, Witness)>,
    base: Option<Result<BaseVariant<'a>, Finding>>,
}

impl Sides<'_> {
    /// The variant with as many launches as are chosen where it is measured side by side; the base's
    /// gets as many.
    fn choose(
        &mut self,
        gpu: &Gpu,
        costs: &Costs,
        choose: &Choose<'_>,
    ) -> Option<(Variant, Schedule)> {
        let Some(Ok(_)) = &self.base else {
            return None;
        };
        let schedule = choose(self.variant, gpu, costs.process(&self.variant.id))?;
        Some((self.with(schedule), schedule))
    }

    /// Whether a schedule is one that may be chosen for it.
    fn may_choose(&self, schedule: &Schedule) -> bool {
        let settings = &self.variant.profile;
        (settings.launches..=settings.max_launches).contains(&schedule.launches)
    }

    /// The variant with so many launches; the base's gets as many.
    fn with(&mut self, schedule: Schedule) -> Variant {
        if let Some(Ok(base)) = &mut self.base {
            base.variant.profile.launches = schedule.launches;
        }
        let mut chosen = self.variant.clone();
        chosen.profile.launches = schedule.launches;
        chosen
    }

    /// The jobs that measure it.
    fn plan(&self) -> VariantPlan {
        match self.base {
            Some(Ok(_)) => VariantPlan::side_by_side(self.variant),
            _ => VariantPlan::alone(self.variant),
        }
    }
}

/// The sources that compilers opened, by variant: paths from the folder of the configuration.
pub type CompiledSources = BTreeMap<VariantId, BTreeSet<String>>;

/// A variant that was built on both sides.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    /// The variant.
    pub variant: &'a Variant,
    /// The folder of its project.
    pub root: &'a Path,
    /// What was built of it.
    pub artifact: &'a Artifact,
    /// Its version at the base.
    pub base_variant: &'a Variant,
    /// The folder of the base's project.
    pub base_root: &'a Path,
    /// What was built of that.
    pub base: &'a Artifact,
}

impl<'a> Built<'a> {
    /// The variants that were built on both sides.
    pub fn pairs(&self) -> impl Iterator<Item = Pair<'_>> {
        let root = &self.order.batch.config.root;
        self.sides.iter().filter_map(move |sides| {
            let (artifact, _) = sides.current.as_ref()?;
            let base = sides.base.as_ref()?.as_ref().ok()?;
            Some(Pair {
                variant: sides.variant,
                root,
                artifact,
                base_variant: &base.variant,
                base_root: &base.config.root,
                base: &base.artifact,
            })
        })
    }

    /// The sources that the compiler opened for each variant at the base, and now those that the base
    /// lacks. That only the change compiles a file of the base says nothing about who else reads it.
    pub fn compiled_sources(&self) -> CompiledSources {
        let by_compiler = |sides: &&Sides<'a>| matches!(sides.variant.recipe, Recipe::Nvcc { .. });
        let project = self.order.base.and_then(|base| base.config.as_ref().ok());
        let is_new = |path: &&String| {
            project.is_some_and(|base| base.root.join(path).symlink_metadata().is_err())
        };
        let sides = self.sides.iter().filter(by_compiler);
        sides
            .map(|sides| {
                let base = sides.base.as_ref().and_then(|base| base.as_ref().ok());
                let base = base
                    .into_iter()
                    .flat_map(|base| base.artifact.sources.keys());
                let current = sides.current.iter();
                let current = current.flat_map(|(artifact, _)| artifact.sources.keys());
                let sources = base.chain(current.filter(is_new));
                (sides.variant.id.clone(), sources.cloned().collect())
            })
            .collect()
    }

    /// What was built, to be packed.
    pub fn programs(&self) -> Prebuilt {
        let id = |sides: &Sides<'_>| sides.variant.id.clone();
        let current = self.sides.iter().filter_map(|sides| {
            let (artifact, _) = sides.current.as_ref()?;
            Some((id(sides), artifact.clone()))
        });
        let base = self.sides.iter().filter_map(|sides| {
            let base = sides.base.as_ref()?.as_ref().ok()?;
            Some((id(sides), base.artifact.clone()))
        });
        let of_base = self.sides.iter().filter_map(|sides| {
            let base = sides.base.as_ref()?.as_ref();
            base.err().cloned()
        });
        Prebuilt {
            current: PrebuiltSide {
                artifacts: current.collect(),
                findings: self.measured.findings.clone(),
            },
            base: PrebuiltSide {
                artifacts: base.collect(),
                findings: of_base.collect(),
            },
            git: self.git.clone(),
        }
    }

    /// Whether a variant of a suite can be measured only without a base.
    pub fn lacks_base(&self, suite: &str) -> bool {
        let mut sides = self.sides.iter();
        sides.any(|sides| {
            let alone = !matches!(sides.base, Some(Ok(_)));
            sides.variant.id.suite == suite && sides.current.is_some() && alone
        })
    }

    /// Whether a variant was built by a command of its own, on either side.
    pub fn ran_build_command(&self) -> bool {
        let builds =
            |variant: &Variant| matches!(variant.recipe, Recipe::Command { build: Some(_), .. });
        self.sides.iter().any(|sides| {
            let base = sides.base.as_ref().and_then(|base| base.as_ref().ok());
            builds(sides.variant) || base.is_some_and(|base| builds(&base.variant))
        })
    }

    /// Whether verifications may be reused or recorded.
    fn uses_records(&self) -> bool {
        let Order {
            records, overrides, ..
        } = self.order;
        // A build command may write what other programs read.
        let unknown = !overrides.is_empty() || self.ran_build_command();
        let mut variants = self.order.batch.variants.iter();
        let recordable = variants.any(|variant| is_recordable(variant));
        !unknown && recordable && (records.reads || records.writes)
    }

    /// What programs of each side could read.
    fn readable_files(&self) -> Vec<(Side, Result<ReadableFiles, String>)> {
        let is_noted = self.order.journal.is_some() && self.order.packed_files.is_none();
        if !is_noted && !self.uses_records() {
            return Vec::new();
        }
        let config = self.order.batch.config;
        let bases = self.sides.iter().filter_map(|sides| sides.base.as_ref());
        let base_root = bases.flatten().next().map(|base| &base.config.root);
        let roots = [(Side::Current, Some(&config.root)), (Side::Base, base_root)];
        let files = roots.into_iter().filter_map(|(side, root)| {
            let files = ReadableFiles::of(root?, &config.unread);
            Some((side, files))
        });
        files.collect()
    }

    /// Measures neither side of these.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn leave_out(&mut self, variants: &[VariantId]) -> Result<(), Error> {
        for variant in variants {
            if self.earlier.remove(variant).is_some() {
                clear_measured(self.order.output, variant)?;
            }
            settle(self.order.output, variant)?;
        }
        self.sides
            .retain(|sides| !variants.contains(&sides.variant.id));
        Ok(())
    }

    /// Whether no variant is left to measure.
    pub fn is_empty(&self) -> bool {
        self.sides.is_empty()
    }

    /// What is known where nothing is left to measure.
    pub fn unmeasured(mut self) -> Measured {
        let root = &self.order.batch.config.root;
        if let Some(altered) = altered(None, &self.seal, root) {
            self.measured.findings.push(altered);
        }
        self.measured
    }

    /// Measures what is left, on this machine.
    ///
    /// # Errors
    /// As [`measure`].
    pub fn measure(
        self,
        bench: Bench<'a>,
        choose: &Choose<'_>,
        open: &mut StillOpen<'_>,
    ) -> Result<Measured, Error> {
        let Order { batch, output, .. } = self.order;
        let commands_ran = self.ran_build_command();
        let uses_records = self.uses_records();
        let mut earlier = self.earlier;
        let mut run = Run {
            uses_records,
            order: self.order,
            bench,
            git: self.git,
            measured: self.measured,
            seal: self.seal,
            records: self.records,
            files: self.files,
            cost: Cost::default(),
            sick: None,
        };
        let mut costs = Costs::of(&batch.config.work);
        let plans: Vec<VariantPlan> = self.sides.iter().map(Sides::plan).collect();
        if let Some(text) = costs.expected(&plans) {
            batch.watch.notes(&text);
        }
        let lock = run.turn(commands_ran)?;
        let noted = faults_in(earlier.values(), &run.bench);
        run.bench.remember(noted);
        run.sick = run.bench.sick();
        batch.watch.expects(plans.len());
        for (at, mut sides) in self.sides.into_iter().enumerate() {
            let left = |from: usize| costs.left(plans.get(from..).unwrap_or_default());
            batch.watch.left(left(at), left(at + 1));
            let id = sides.variant.id.clone();
            let noted = earlier.remove(&id);
            if run.sick.is_some() {
                // What it would measure does not count either. What an interrupted run left stays.
                let not_begun = sides.current.is_some().then(|| id.clone());
                run.measured.not_begun.extend(not_begun);
            } else {
                let chosen = sides.choose(&run.bench.gpu, &costs, choose);
                run.in_turn(sides, chosen, noted, open)?;
            }
            let cost = std::mem::take(&mut run.cost);
            run.measured.spent.add(cost);
            let mut profiles = run.measured.profiles.iter();
            let kept = profiles.any(|profile| profile.variant == id);
            if !kept {
                has_room(output, &id)?;
            }
            settle(output, &id)?;
            // Only now, because settling removes what an earlier run left.
            if kept {
                run.seal.add([variant_folder(output, &id)]);
                costs.note(&id, cost);
            }
        }
        // Still with the lock: the next run on this GPU reads what this one records.
        let measured = run.finish();
        drop(lock);
        Ok(measured)
    }

    /// Builds both sides, and keeps what the compiler made of them.
    fn both_sides(&mut self) -> Result<Vec<Sides<'a>>, Error> {
        let Order { batch, output, .. } = self.order;
        let started = std::time::Instant::now();
        // The base first: a build command of the change could write to the base's sources.
        let bases = match self.order.base {
            Some(base) => {
                let prebuilt = self.order.prebuilt.map(|prebuilt| &prebuilt.base);
                base.build(batch.variants, prebuilt, &OfBase(batch.watch))?
            }
            None => Vec::new(),
        };
        let (artifacts, findings) = match self.order.prebuilt {
            Some(prebuilt) => prebuilt.current.of(batch.variants),
            None => batch.build()?,
        };
        self.measured.findings.extend(findings);
        self.measured.spent.build_s += started.elapsed().as_secs_f64();
        let folder = |variant: &Variant| variant_folder(output, &variant.id);
        let (overrides, git) = (self.order.overrides, self.git.as_deref());
        self.measured.compiled = batch.keep_compiled(&artifacts, folder, overrides, git)?;
        if let Some(base) = self.order.base {
            self.measured.compiled_bases = base.keep_compiled(&bases, output)?;
        }
        // Of all variants before the first program runs: one could write to the files of another.
        let mut bases = bases.into_iter();
        let sides = batch.variants.iter().zip(artifacts);
        Ok(sides
            .map(|(variant, artifact)| Sides {
                variant,
                current: artifact.map(|artifact| {
                    let witness = Witness::of(&batch.config.root, &artifact);
                    (artifact, witness)
                }),
                base: bases.next(),
            })
            .collect())
    }
}

/// What the variants of one run share.
struct Run<'a> {
    order: Order<'a>,
    bench: Bench<'a>,
    git: Option<String>,
    measured: Measured,
    /// What no program may change until the end: rules, baselines, and what was measured.
    seal: Seal,
    records: Records,
    /// What programs of a side could read, where that matters, or why that is not known.
    files: Vec<(Side, Result<ReadableFiles, String>)>,
    /// Whether verifications may be reused or recorded.
    uses_records: bool,
    /// What the variant took that is measured now.
    cost: Cost,
    /// The GPU, from when on its driver reported a defect.
    sick: Option<SickGpu>,
}

/// The files by which this run and the next ones judge, and which git obeys.
fn rules(config: &Path, root: &Path, baselines: &Path) -> Vec<PathBuf> {
    let mut rules = vec![config.to_path_buf(), baselines.to_path_buf()];
    // The project may be in a folder of its repository, or in a worktree beside it.
    if let Ok(repository) = crate::git::repository(root) {
        rules.push(repository.history.join("HEAD"));
        let shared = ["config", "hooks", "info"];
        rules.extend(shared.map(|name| repository.common.join(name)));
    }
    rules
}

impl<'a> Run<'a> {
    /// Waits for the GPU, and takes the records of verifications as they are then: the run before may
    /// have added to them. No program of this run is running, and a build command that changed them is
    /// still found at the end.
    fn turn(&mut self, commands_ran: bool) -> Result<GpuLock, Error> {
        let by_command = commands_ran && !self.seal.broken().is_empty();
        let lock = self.bench.lock(self.order.output)?;
        if !by_command {
            self.records.read_again();
            self.seal.renew(&self.records.path());
        }
        Ok(lock)
    }

    /// Whether the numbers of a built variant are correct, and compute-sanitizer, where the variant
    /// asks for it, finds nothing.
    fn verified(
        &mut self,
        batch: Batch<'_>,
        variant: &Variant,
        artifact: &Artifact,
    ) -> Result<bool, Error> {
        let (correct, findings) = self.checked(batch, variant, artifact, Side::Current)?;
        self.measured.findings.extend(findings);
        Ok(correct)
    }

    fn checked(
        &mut self,
        batch: Batch<'_>,
        variant: &Variant,
        artifact: &Artifact,
        side: Side,
    ) -> Result<(bool, Vec<Finding>), Error> {
        if variant.verification != Verification::OwnRun {
            // Its first run is under a profiler, whose messages are about the profiler.
            let missing = missing_program(batch, variant, artifact);
            if missing.is_some() || variant.verification == Verification::None {
                return Ok((missing.is_none(), missing.into_iter().collect()));
            }
        }
        let files = self.files.iter().find(|(of, _)| *of == side);
        let files = files.filter(|_| self.uses_records);
        let files = files.and_then(|(_, files)| files.as_ref().ok());
        let key = files.and_then(|files| key_of(variant, artifact, &self.bench.gpu, files));
        let sanitizer = self.bench.sanitizer.as_ref();
        let version = sanitizer.map(|sanitizer| sanitizer.version.as_str());
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
        self.cost.verify += right.as_ref().map_or(Duration::ZERO, |right| right.wall);
        if let Some(sanitizer) = &self.bench.sanitizer {
            let (sanitized, found) =
                one.sanitize(&artifacts, &findings, sanitizer, &self.bench.env)?;
            findings.extend(found);
            let tools = sanitized.iter().flat_map(|variant| &variant.tools);
            self.cost.verify += tools.map(|tool| tool.wall).sum::<Duration>();
        }
        let denied = |finding: &Finding| finding.severity == Severity::Deny;
        let clean = !findings.iter().any(denied);
        // A warning would not be reported again.
        if let (Some(key), Some(_), []) = (key, &right, findings.as_slice()) {
            self.records.add(&variant.id, key, record);
        }
        Ok((right.is_some() && clean, findings))
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
        let reads = self.order.records.reads && !variant.verify_always;
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

    /// What programs of a side could read, or why that is not known.
    fn readable(&self, side: Side) -> Result<Readable<'_>, &str> {
        if let Some(sha256) = self.order.packed_files {
            return Ok(Readable::Packed(sha256));
        }
        let files = self.files.iter().find(|(of, _)| *of == side);
        match files {
            Some((_, Ok(files))) => Ok(Readable::Checkout(files)),
            Some((_, Err(why))) => Err(why),
            None => Err("what it could read is not known"),
        }
    }

    /// The key of a variant that is about to be measured; an error says why it has none.
    fn key(&self, sides: &Sides<'_>, variant: &Variant) -> Result<Key, String> {
        let Some((artifact, _)) = &sides.current else {
            return Err("it was not built".to_owned());
        };
        let current = KeyedSide {
            config: self.order.batch.config,
            variant,
            artifact,
            files: self.readable(Side::Current),
        };
        let base = sides.base.as_ref().and_then(|base| base.as_ref().ok());
        let base = base.map(|base| KeyedSide::of_base(base, self.readable(Side::Base)));
        key(KeyedMachine::of(&self.bench), current, base)
    }

    /// How a variant is measured, and what an interrupted run noted of it, if that is the same
    /// measurement.
    fn before(
        &mut self,
        sides: &mut Sides<'_>,
        chosen: Option<(Variant, Schedule)>,
        earlier: Option<VariantEntry>,
    ) -> Result<(Option<(Variant, Schedule)>, Before), Error> {
        let id = &sides.variant.id;
        let (Some(journal), Some(_)) = (self.order.journal, &sides.current) else {
            return Ok((chosen, Before::default()));
        };
        let had_any = earlier.is_some();
        if let Some(mut earlier) = earlier {
            let again = earlier.schedule.filter(|one| sides.may_choose(one));
            let again = again.filter(|_| chosen.is_some());
            let again = again.map(|schedule| (sides.with(schedule), schedule));
            let again = again.or_else(|| chosen.clone());
            let variant = again.as_ref().map_or(sides.variant, |(variant, _)| variant);
            let now = self.key(sides, variant);
            let failed = std::mem::take(&mut earlier.failed);
            let other = now.as_ref().map(|now| match earlier.key.is_empty() {
                true => None,
                false => difference(&earlier.key, now),
            });
            match other {
                // Also where nobody can know whether it is the same: then it must not pass unseen.
                Ok(None) | Err(_) if !failed.is_empty() => {
                    let (key, earlier) = (now.ok(), None);
                    let before = Before {
                        key,
                        earlier,
                        failed,
                    };
                    return Ok((again, before));
                }
                Ok(None) => {
                    let before = Before {
                        key: now.ok(),
                        earlier: Some(earlier),
                        failed,
                    };
                    return Ok((again, before));
                }
                Ok(Some(why)) => {
                    let why = with_failure(&why, &failed);
                    self.measured.findings.push(not_resumed(id, &why));
                }
                Err(why) => self.measured.findings.push(not_resumed(id, why)),
            }
            clear_measured(self.order.output, id)?;
        }
        // Also where others were chosen for a moment.
        let chosen = chosen.map(|(_, schedule)| (sides.with(schedule), schedule));
        let variant = chosen
            .as_ref()
            .map_or(sides.variant, |(variant, _)| variant);
        let key = self.key(sides, variant);
        if let (Err(why), false, Some(_)) = (&key, had_any, journal.interrupted()) {
            self.measured.findings.push(not_resumed(id, why));
        }
        let before = Before {
            key: key.ok(),
            ..Before::default()
        };
        Ok((chosen, before))
    }

    /// What is noted of a variant if it fails from now on.
    fn failure(
        &self,
        variant: &Variant,
        before: &Before,
        schedule: Option<Schedule>,
    ) -> Option<Failure> {
        let key = before.key.clone().unwrap_or_default();
        let entry = self.order.journal?.entry(variant, key, schedule);
        let found = self.measured.findings.len();
        Some(Failure { entry, found })
    }

    /// Notes that a variant failed, so that a run that goes on with this one says so, too: what is only
    /// measured again could pass then.
    fn note_failed(&self, variant: &Variant, failure: Option<Failure>) -> Result<(), Error> {
        let (Some(journal), Some(Failure { mut entry, found })) = (self.order.journal, failure)
        else {
            return Ok(());
        };
        let mut profiles = self.measured.profiles.iter();
        let is_kept = profiles.any(|profile| profile.variant == variant.id);
        // What its captures show is found in them again.
        let is_failure = |one: &Finding| {
            let denies = one.concerns(&variant.id) && one.severity == Severity::Deny;
            denies && (!is_kept || one.code == Code::AlteredDuringRun)
        };
        let found = self.measured.findings.get(found..).unwrap_or_default();
        if found.iter().any(is_failure) {
            if interrupted_soon() {
                return Err(Error::Interrupted);
            }
            let of_it = found.iter().filter(|one| one.concerns(&variant.id));
            entry.failed = of_it.cloned().collect();
            journal.note_failed(&entry)?;
        }
        Ok(())
    }

    /// Lets a variant stay failed that failed in the interrupted run.
    fn keep_failed(&mut self, variant: &Variant, failed: Vec<Finding>) {
        let denies = failed.iter().filter(|one| one.severity == Severity::Deny);
        for finding in denies {
            let text = format!("{} (in the interrupted run)", finding.message);
            self.order.batch.watch.ended(variant, "profile", &text);
        }
        self.measured
            .findings
            .extend(failed.into_iter().map(failed_before));
    }

    /// Sets aside what the GPU measured, and keeps later runs from it. A defect that the driver reports
    /// has no other cause.
    fn quarantine(&mut self, sick: SickGpu) {
        let output = self.order.output;
        let entry = Entry::new(&sick, output);
        let written = self.bench.quarantine.put(&entry);
        self.measured.set_aside(&sick, output);
        self.measured.findings.extend(written.warning.map(|why| {
            let next = format!("keep jobs from the GPU by other means: CUDA_VISIBLE_DEVICES, or the queue of the machine; its UUID is {}", sick.uuid);
            Finding::of_project(Code::GpuSick, why, next).warn_for(WarnReason::NotStored)
        }));
        self.measured.sick.push(sick);
    }

    /// Looks for what changed that must not, and records what was verified if nothing did.
    fn finish(mut self) -> Measured {
        // The driver may report what the last program met only now.
        if let Some(sick) = self.bench.sick().or(self.sick.take()) {
            self.quarantine(sick);
        }
        let root = &self.order.batch.config.root;
        self.measured
            .findings
            .extend(resumed(&self.measured.resumed));
        if let Some(altered) = altered(None, &self.seal, root) {
            self.measured.findings.push(altered);
        } else if self.order.records.writes && self.measured.sick.is_empty() {
            let findings = &self.measured.findings;
            self.records.write(|variant| {
                let mut findings = findings.iter();
                !findings.any(|one| one.concerns(variant) && one.severity == Severity::Deny)
            });
        }
        self.measured.sealed = self.seal.into_content();
        self.measured
    }

    /// Verifies a variant, and measures it: from the beginning, or where an interrupted run was.
    fn in_turn(
        &mut self,
        mut sides: Sides<'a>,
        chosen: Option<(Variant, Schedule)>,
        noted: Option<VariantEntry>,
        open: &mut StillOpen<'_>,
    ) -> Result<(), Error> {
        let Order { batch, output, .. } = self.order;
        let had_any = noted.is_some();
        let (chosen, mut before) = self.before(&mut sides, chosen, noted)?;
        let variant = chosen
            .as_ref()
            .map_or(sides.variant, |(variant, _)| variant);
        let schedule = chosen.as_ref().map(|(_, schedule)| *schedule);
        let failure = self.failure(variant, &before, schedule);
        let mut is_measured = false;
        if !before.failed.is_empty() {
            is_measured = true;
            self.keep_failed(variant, std::mem::take(&mut before.failed));
        } else if let Some((artifact, witness)) = sides.current {
            if self.verified(batch, variant, &artifact)? {
                is_measured = true;
                let built = (artifact, sides.base);
                self.variant(variant, built, &witness, before, schedule, open)?;
                let schedule = schedule.map(|schedule| (variant.id.clone(), schedule));
                self.measured.schedules.extend(schedule);
            } else {
                self.measured.findings.extend(witness.changes(variant));
            }
        }
        // On a sick GPU nothing says that the variant is what failed.
        self.sick = self.bench.sick();
        if self.sick.is_none() {
            self.note_failed(variant, failure)?;
        }
        if had_any && !is_measured {
            clear_measured(output, &variant.id)?;
        }
        Ok(())
    }

    /// Measures one variant that was verified, side by side with the base where there is one.
    fn variant(
        &mut self,
        variant: &Variant,
        (artifact, base): (Artifact, Option<Result<BaseVariant<'a>, Finding>>),
        witness: &Witness,
        before: Before,
        schedule: Option<Schedule>,
        open: &mut StillOpen<'_>,
    ) -> Result<(), Error> {
        let Order { batch, output, .. } = self.order;
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
        let folder = variant_folder(output, &variant.id);
        let reused = self.measured.reused.iter();
        let mut reused = reused.filter(|one| one.variant == variant.id && !one.of_base);
        let mut current = Subject::new(batch.config, variant, artifact, folder, self.git.clone());
        current.verified_before = reused.next().map(|one| one.record.verified.clone());
        let mut subjects = Subjects {
            current,
            base: base
                .as_ref()
                .map(|base| base_subject(base, output))
                .transpose()?,
            seeds: Seeds::fresh(),
            noted: Noted::new(self.order.journal.zip(before.key).map(|(journal, key)| {
                let entry = journal.entry(variant, key, schedule);
                (journal, entry)
            })),
        };
        // One limit of retries for the variant, side by side and alone together.
        let mut retries = Retries::of(variant, batch.watch);
        let plan = match subjects.base {
            Some(_) => VariantPlan::side_by_side(variant),
            None => VariantPlan::alone(variant),
        };
        if let Some(earlier) = before.earlier {
            let repeated = earlier.retries.clone();
            if self.goes_on(&mut subjects, earlier, &plan)? {
                retries = retries.after(repeated);
            }
        }
        let mut answer = subjects.measure(&self.bench, &plan, &mut retries, open);
        self.add_cost(subjects.base.as_ref());
        if let (Err(SideStop::Finding(Side::Base, finding)), Some(base)) = (&answer, &base)
            && !base.project.is_required()
        {
            let unavailable = base.project.unavailable(variant, &finding.message);
            self.measured.findings.push(unavailable);
            self.not_excused(finding);
            subjects.base = None;
            // A run that goes on would try with the base again.
            subjects.noted.close()?;
            let plan = VariantPlan::alone(variant);
            answer = subjects.measure(&self.bench, &plan, &mut retries, open);
        }
        self.measured.findings.extend(retries.warnings());
        self.add_cost(Some(&subjects.current));
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

    /// Takes over what an interrupted run measured of a variant, if all of it is there and is what
    /// that run wrote.
    fn goes_on(
        &mut self,
        subjects: &mut Subjects<'_>,
        earlier: VariantEntry,
        plan: &VariantPlan,
    ) -> Result<bool, Error> {
        let output = self.order.output;
        let began = self.order.journal.and_then(Journal::interrupted);
        let id = earlier.variant.clone();
        let uuid = &self.bench.gpu.uuid;
        match subjects.go_on_with(earlier, plan, output, uuid, began.unwrap_or_default())? {
            Ok(resumed) => {
                self.measured.resumed.push(resumed);
                Ok(true)
            }
            Err(why) => {
                self.measured.findings.push(not_resumed(&id, &why));
                clear_measured(output, &id)?;
                Ok(false)
            }
        }
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

    /// Counts what profiling a side took.
    fn add_cost(&mut self, subject: Option<&Subject<'_>>) {
        let cost = subject.map(Subject::cost).unwrap_or_default();
        self.cost.profile += cost.profile;
        self.cost.profiled += cost.profiled;
        self.cost.start += cost.start;
        self.cost.timing += cost.timing;
        self.cost.timed += cost.timed;
        self.cost.launches = cost.launches;
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
        let Profiles { current, base } = profiles;
        let mut resumed = self.measured.resumed.iter();
        if resumed.any(|one| one.variant == variant.id) {
            for side in [Some(&subjects.current), subjects.base.as_ref()] {
                side.map(Subject::clear_unused).transpose()?;
            }
        }
        subjects.current.keep(&current)?;
        let mut gaps = match &base {
            Some(_) => incomplete_side(variant, &current),
            None => incomplete(variant, &current),
        };
        if base.is_none() {
            gaps.extend(disturbed(variant, &current, Purpose::Baseline));
        }
        let mut findings = subjects.current.mismatches(&self.bench);
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
        gaps.extend(unpinned(&variant.id, "measured", &current.provenance.pins));
        gaps.extend(interleaved_launches(variant, &current));
        gaps.extend(tuning_varies(variant, &current));
        gaps.extend(launched_otherwise(variant, &current));
        self.measured.findings.extend(findings);
        self.measured.gaps.extend(gaps);
        if let Some(launched) = subjects.current.keep_launched(&self.bench, &current)? {
            replace(&mut self.measured.compiled, launched);
        }
        let loaded = self.loaded(&subjects.current, &current, |finding| finding)?;
        self.measured.compiled.extend(loaded);
        if let (Some(profile), Some(subject)) = (base, &subjects.base) {
            subject.keep(&profile)?;
            if let Some(launched) = subject.keep_launched(&self.bench, &profile)? {
                replace(&mut self.measured.compiled_bases, launched);
            }
            let loaded = self.loaded(subject, &profile, Finding::in_base)?;
            self.measured.compiled_bases.extend(loaded);
            self.measured.bases.push(profile);
        }
        self.measured.profiles.push(current);
        Ok(())
    }

    /// The static profile of what a side loaded while it ran. That it is not known is a finding, and
    /// the measured profile stays.
    fn loaded(
        &mut self,
        subject: &Subject<'_>,
        profile: &Profile,
        of_side: fn(Finding) -> Finding,
    ) -> Result<Option<Profile>, Error> {
        match subject.keep_loaded_code(&self.bench, profile) {
            Ok(loaded) => Ok(loaded),
            Err(stop) => {
                let found = of_side(stop.finding()?);
                self.measured.findings.push(found);
                Ok(None)
            }
        }
    }
}

/// What is known of a variant before it is measured.
#[derive(Default)]
struct Before {
    /// What makes it the same measurement; `None` where nothing is noted.
    key: Option<Key>,
    /// What an interrupted run noted of the same.
    earlier: Option<VariantEntry>,
    /// What that run found where it failed.
    failed: Vec<Finding>,
}

/// What the journal gets of a variant if it fails.
struct Failure {
    /// Without the findings.
    entry: VariantEntry,
    /// How many findings there were before it.
    found: usize,
}

/// How the message ends of what an interrupted run found where a variant failed.
const FAILED_BEFORE: &str = " (in the interrupted run; not measured again)";

/// A finding of an interrupted run on a variant that stays failed.
fn failed_before(finding: Finding) -> Finding {
    if finding.severity != Severity::Deny || finding.message.ends_with(FAILED_BEFORE) {
        return finding;
    }
    Finding {
        message: finding.message + FAILED_BEFORE,
        next: format!("{}; to measure it anew, run without --resume", finding.next),
        ..finding
    }
}

/// Why it is measured anew, and how it failed before, if it did.
fn with_failure(why: &str, failed: &[Finding]) -> String {
    let first = failed.iter().find(|one| one.severity == Severity::Deny);
    match first {
        Some(first) => format!("{why}; in the interrupted run it failed: {}", first.message),
        None => why.to_owned(),
    }
}

/// That a variant does not go on where an interrupted run measured it.
fn not_resumed(variant: &VariantId, why: &str) -> Finding {
    Finding::deny(
        Code::NotResumed,
        variant,
        format!("all of it is measured in this run: {why}"),
        MEASURED,
    )
}

/// Which variants go on with what an interrupted run measured.
fn resumed(all: &[Resumed]) -> Option<Finding> {
    const MOST: usize = 5;
    let first = all.first()?;
    let one = |one: &Resumed| match one.rounds {
        1 => format!("{} (1 round)", one.variant),
        rounds => format!("{} ({rounds} rounds)", one.variant),
    };
    let mut names: Vec<String> = all.iter().take(MOST).map(one).collect();
    if let Some(more @ 1..) = all.len().checked_sub(MOST) {
        names.push(format!("and {more} more"));
    }
    let message = format!(
        "the run that began at {} was interrupted, and what it measured in whole rounds is used: {}",
        first.began,
        names.join(", ")
    );
    let next = "nothing, if nobody could write to its files meanwhile; otherwise measure anew, without --resume";
    Some(Finding::of_project(Code::Resumed, message, next))
}

/// Puts a profile in the place of that of the same variant.
fn replace(profiles: &mut Vec<Profile>, profile: Profile) {
    profiles.retain(|other| other.variant != profile.variant);
    profiles.push(profile);
}

/// The finding that a program cannot be started, because there is none.
fn missing_program(batch: Batch<'_>, variant: &Variant, artifact: &Artifact) -> Option<Finding> {
    let (root, program) = (&batch.config.root, artifact.run.first()?);
    if can_start(program, root) {
        return None;
    }
    let (what, next) = match (root.join(program).is_file(), program.contains('/')) {
        (true, true) => (
            format!("the file `{program}` is not executable"),
            format!(
                "make it executable (chmod +x {program}), or name what runs it, such as python3"
            ),
        ),
        (true, false) => (
            format!("there is no program `{program}` on the PATH"),
            format!("write ./{program}: a name without a slash is looked up on the PATH"),
        ),
        (false, _) => (
            format!("there is no program `{program}`"),
            format!(
                "correct its name, or build it; programs run in {}",
                root.display()
            ),
        ),
    };
    Some(Finding::deny(Code::NotStarted, &variant.id, what, next))
}

/// The base's version of a variant, about to be measured.
fn base_subject<'b>(base: &'b BaseVariant<'_>, output: &Path) -> Result<Subject<'b>, Error> {
    let (variant, artifact) = (&base.variant, base.artifact.clone());
    let folder = base_folder(output, &variant.id);
    std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
    let commit = base.project.commit().map(str::to_owned);
    Ok(Subject::new(base.config, variant, artifact, folder, commit))
}

/// A short description of a fresh profile.
fn words(profile: &Profile, gap: Option<&Finding>) -> String {
    match gap {
        None => format!(
            "{} launches in {} process{}",
            profile.launch_count(Phase::Timing),
            profile.provenance.processes,
            if profile.provenance.processes == 1 {
                ""
            } else {
                "es"
            }
        ),
        Some(gap) => gap.message.clone(),
    }
}
