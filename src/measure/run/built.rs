//! Builds the variants of a run, and measures what was built.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::in_turn::Run;
use crate::build::{Artifact, Witness};
use crate::config::{Recipe, Variant};
use crate::disk;
use crate::files::{clear_measured, keep_earlier, set_aside, settle, variant_folder};
use crate::finding::{Code, Error, Finding};
use crate::measure::captures::Captures;
use crate::measure::cost::{Spent, Times};
use crate::measure::folder::{Kept, RunFile, not_resumed};
use crate::measure::job::subject::altered;
use crate::measure::key::readable::ReadableFiles;
use crate::measure::key::verified::{Records, is_recordable};
use crate::measure::place::base::{BaseProject, BaseVariant};
use crate::measure::place::bench::Bench;
use crate::measure::place::order::Order;
use crate::measure::place::prebuilt::{Prebuilt, PrebuiltSide};
use crate::measure::place::sides::Sides;
use crate::measure::seal::Seal;
use crate::measure::watch::OfBase;
use crate::parallel;
use crate::plan::{Side, VariantPlan};
use crate::terms::VariantId;
use crate::verdict::Stopping;
use std::path::PathBuf;

/// Builds variants, and their versions at the base where there is one. This needs no GPU.
///
/// # Errors
/// [`Error`] where the machine failed; what concerns one variant is a finding.
pub(in crate::measure) fn build(order: Order<'_>) -> Result<Built<'_>, Error> {
    let (batch, output) = (order.batch, order.place.output);
    let mut measured = Captures {
        folder: output.to_path_buf(),
        ..Captures::default()
    };
    if let Some(run_file) = order.place.run_file {
        measured.findings.extend(run_file.begin(batch.watch)?);
    }
    let mut seal = Seal::default();
    seal.add(rules(
        &batch.config.path, &batch.config.root, &batch.config.baselines,
    ));
    // Before the first program of the change runs: a build command is one.
    let records = Records::of(&batch.config.work);
    seal.add([records.path()]);
    // Otherwise the earlier profile of a variant that fails now would be taken for this run's. Where
    // this run is killed it is still there.
    // What an interrupted run kept is read now, too: before a program could write to it.
    let mut earlier = BTreeMap::new();
    for variant in batch.variants {
        let id = &variant.id;
        let kept = order.place.run_file.map(|run_file| run_file.kept(id));
        match kept.unwrap_or(Ok(None)) {
            Ok(Some(kept)) => {
                keep_earlier(output, id)?;
                earlier.insert(id.clone(), kept);
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
    let mut built = Built {
        // Where two programs are compared, no commit says which is which.
        git: match (order.place.packed, order.base) {
            (Some(packed), _) => packed.programs.git.clone(),
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
    // The programs of the change could write there, where those of the base read.
    let base = order.base.filter(|base| base.commit().is_some());
    let checkout = base.and_then(|base| base.checkout().or(Some(&base.config().ok()?.root)));
    if let Some(checkout) = checkout {
        built.seal.add_checkout(checkout);
    }
    built.files = built.readable_files();
    Ok(built)
}

/// Variants that are built, and not measured yet.
pub(in crate::measure) struct Built<'a> {
    order: Order<'a>,
    git: Option<String>,
    measured: Captures,
    /// What no program may change until the end: rules, baselines, and what was measured.
    seal: Seal,
    records: Records,
    /// Those to measure, in their order.
    sides: Vec<Sides<'a>>,
    /// What programs of a side could read, where that matters, or why that is not known.
    files: Vec<(Side, Result<ReadableFiles, String>)>,
    /// What an interrupted run kept.
    earlier: BTreeMap<VariantId, Kept>,
}

/// The sources that compilers opened, by variant: paths from the folder of the configuration.
pub(in crate::measure) type CompiledSources = BTreeMap<VariantId, BTreeSet<String>>;

/// A variant that was built on both sides.
#[derive(Clone, Copy)]
pub(in crate::measure) struct Pair<'a> {
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
            let base = sides.built_base()?;
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
        let is_new =
            |path: &&String| project.is_some_and(|base| !disk::is_there(base.root.join(path)));
        let sides = self.sides.iter().filter(by_compiler);
        sides
            .map(|sides| {
                let base = sides.built_base().into_iter();
                let base = base.flat_map(|base| base.artifact.sources.keys());
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
            let base = sides.built_base()?;
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

    /// Whether a variant was built by a command of its own, on either side.
    pub fn ran_build_command(&self) -> bool {
        self.sides.iter().any(|sides| {
            let base = sides.built_base().map(|base| &base.variant);
            has_build_command(sides.variant) || base.is_some_and(has_build_command)
        })
    }

    /// Whether verifications may be reused or recorded.
    fn uses_records(&self) -> bool {
        let (records, overrides) = (self.order.place.records, self.order.overrides);
        // A build command may write what other programs read.
        let unknown = !overrides.is_empty() || self.ran_build_command();
        let mut variants = self.order.batch.variants.iter();
        let recordable = variants.any(|variant| is_recordable(variant));
        !unknown && recordable && (records.reads || records.writes)
    }

    /// What programs of each side could read.
    fn readable_files(&self) -> Vec<(Side, Result<ReadableFiles, String>)> {
        let is_kept = self.order.place.run_file.is_some() && self.order.place.packed.is_none();
        if !is_kept && !self.uses_records() {
            return Vec::new();
        }
        let config = self.order.batch.config;
        let base = self.sides.iter().find_map(Sides::built_base);
        let base_root = base.map(|base| &base.config.root);
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
                clear_measured(self.order.place.output, variant)?;
            }
            settle(self.order.place.output, variant)?;
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
    pub fn unmeasured(mut self) -> Captures {
        let root = &self.order.batch.config.root;
        if let Some(altered) = altered(None, &self.seal, root) {
            self.measured.findings.push(altered);
        }
        self.measured
    }

    /// Measures what is left, on this machine.
    ///
    /// # Errors
    /// [`Error`] where the machine failed; what concerns one variant is a finding.
    pub fn measure(self, bench: Bench<'a>, stop: &dyn Stopping) -> Result<Captures, Error> {
        let batch = self.order.batch;
        let commands_ran = self.ran_build_command();
        let uses_records = self.uses_records();
        let earlier = self.earlier;
        let mut run = Run {
            uses_records,
            order: self.order,
            bench,
            git: self.git,
            measured: self.measured,
            seal: self.seal,
            records: self.records,
            files: self.files,
            cost: Spent::default(),
            sick: None,
        };
        let plans: Vec<VariantPlan> = self.sides.iter().map(Sides::plan).collect();
        if let Some(text) = Times::of(&batch.config.work).expected(&plans) {
            batch.watch.notes(&text);
        }
        let lock = run.turn(commands_ran)?;
        let before = self.order.place.run_file.and_then(RunFile::sick);
        let before = before.filter(|sick| sick.uuid == run.bench.gpu.uuid);
        run.sick = run.bench.sick().or_else(|| before.cloned());
        if let Err(error) = run.all_in_turn(self.sides, earlier, stop) {
            // Still with the lock: the next run must not get the GPU before it is refused.
            run.ended_early();
            return Err(error);
        }
        // Still with the lock: the next run on this GPU reads what this one records.
        let measured = run.finish();
        drop(lock);
        Ok(measured)
    }

    /// Builds both sides, and keeps what the compiler made of them.
    fn both_sides(&mut self) -> Result<Vec<Sides<'a>>, Error> {
        let (batch, output) = (self.order.batch, self.order.place.output);
        let started = std::time::Instant::now();
        let (of_base, packed) = (self.order.base, self.order.place.packed);
        let base = || {
            let prebuilt = packed.map(|packed| &packed.programs.base);
            let build =
                |base: &'a BaseProject| base.build(batch.variants, prebuilt, &OfBase(batch.watch));
            of_base.map_or(Ok(Vec::new()), build)
        };
        let current = || match packed {
            Some(packed) => Ok(packed.programs.current.of(batch.variants)),
            None => batch.build(),
        };
        // The base first where a build command of the change could write to the base's sources.
        let of_base_commands = |base: &BaseProject| {
            base.config()
                .is_ok_and(|config| config.variants().any(has_build_command))
        };
        let commands = of_base.is_some_and(of_base_commands)
            || batch.variants.iter().copied().any(has_build_command);
        let at_once = of_base.is_some() && !commands;
        let (bases, current) = parallel::both(at_once, base, current);
        let (bases, (artifacts, findings)) = (bases?, current?);
        self.measured.findings.extend(findings);
        self.measured.spent.build_s += started.elapsed().as_secs_f64();
        let (overrides, git) = (self.order.overrides, self.git.as_deref());
        self.measured.compiled =
            batch.keep_compiled(&artifacts, |id| variant_folder(output, id), overrides, git)?;
        if let Some(base) = self.order.base {
            self.measured.compiled_bases = base.keep_compiled(&bases, output)?;
        }
        // Of all variants before the first program runs: one could write to the files of another.
        let mut bases = bases.into_iter();
        let sides = batch.variants.iter().zip(artifacts);
        let sides: Vec<Sides<'a>> = sides
            .map(|(variant, artifact)| Sides {
                variant,
                current: artifact.map(|artifact| {
                    let witness = Witness::of(&batch.config.root, &artifact);
                    (artifact, witness)
                }),
                base: bases.next(),
            })
            .collect();
        let mut that_run = Vec::new();
        for mut sides in sides {
            let current = sides.current.as_ref();
            if current.is_some_and(|(artifact, _)| artifact.run.is_empty()) {
                // Of a library only the code is judged.
                settle(output, &sides.variant.id)?;
                let base = sides.built_base();
                // Its code says nothing of how fast it was.
                if base.is_some_and(|base| !base.artifact.run.is_empty()) {
                    let message = "nothing of it runs, and its base does";
                    let next = "give it a `main` or a `run` again";
                    let (code, id) = (Code::NotMeasured, &sides.variant.id);
                    let finding = Finding::deny(code, id, message, next);
                    self.measured.findings.push(finding);
                }
                self.measured
                    .findings
                    .extend(sides.base.and_then(Result::err));
                continue;
            }
            let is_library = |base: &BaseVariant<'_>| base.artifact.run.is_empty();
            if let Some(base) = of_base.filter(|_| sides.built_base().is_some_and(is_library)) {
                let why = base.unavailable(sides.variant, "it has no program");
                sides.base = Some(Err(why));
            }
            that_run.push(sides);
        }
        Ok(that_run)
    }
}

fn has_build_command(variant: &Variant) -> bool {
    matches!(variant.recipe, Recipe::Command { build: Some(_), .. })
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
