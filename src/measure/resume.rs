//! Going on with a variant where an interrupted run measured it: what makes it the same measurement,
//! and which of its captures are taken over.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::base::BaseVariant;
use super::bench::Bench;
use super::journal::{Resumed, TakenCapture, VariantEntry, read_captures};
use super::program_key::known_bytes;
use super::readable::ReadableFiles;
use super::rounds::Subjects;
use super::verified::{environment, tool};
use crate::build::Artifact;
use crate::config::{Config, Recipe, Variant};
use crate::device::{FaultWatch, Faults, Gpu, State};
use crate::finding::Error;
use crate::hash::sha256_hex;
use crate::plan::{Job, Side, Task, VariantPlan};
use crate::terms::Phase;

/// What makes two measurements of a variant the same one, by its name for people, each as sha256.
pub(super) type Key = BTreeMap<String, String>;

/// The part of a key with how often a quarantine of the GPU was lifted.
const LIFTED: &str = "the history of the GPU's quarantine";

/// The part of a key with the files that a program could read.
const FILES: &str = "a file that it could read";

/// The files that programs could read.
#[derive(Clone, Copy)]
pub(super) enum Readable<'a> {
    /// Those that were packed, by the sha256 of their list.
    Packed(&'a str),
    /// Those of a checkout.
    Checkout(&'a ReadableFiles),
}

/// One side of a variant that is about to be measured.
#[derive(Clone, Copy)]
pub(super) struct KeyedSide<'a> {
    pub config: &'a Config,
    pub variant: &'a Variant,
    pub artifact: &'a Artifact,
    /// Or why these are not known.
    pub files: Result<Readable<'a>, &'a str>,
}

impl<'a> KeyedSide<'a> {
    /// That of the base.
    pub fn of_base(
        base: &'a BaseVariant<'_>,
        files: Result<Readable<'a>, &'a str>,
    ) -> KeyedSide<'a> {
        KeyedSide {
            config: base.config,
            variant: &base.variant,
            artifact: &base.artifact,
            files,
        }
    }

    /// The parts of the key, by their names for people.
    fn parts(&self) -> Result<[(&'static str, String); 4], String> {
        let (variant, artifact) = (self.variant, self.artifact);
        let is_known = match &variant.recipe {
            Recipe::Nvcc { .. } => artifact.sha256.is_some(),
            Recipe::Command {
                build: Some(_),
                code,
                ..
            } if code.is_empty() => {
                return Err("what its `build` command makes is not named (`program`)".to_owned());
            }
            Recipe::Command { .. } => !artifact.sources.is_empty() || !artifact.programs.is_empty(),
        };
        if !is_known {
            return Err("no file of its program is named (`inputs`)".to_owned());
        }
        // The folder of the project may be another one, as that of the base is in every run.
        let root = self.config.root.display().to_string();
        let settings = format!("{variant:?}").replace(&root, ".");
        let programs = artifact.programs.iter();
        let programs = programs.map(|(path, sha256)| (path.file_name(), sha256));
        let mut programs: Vec<_> = programs.collect();
        programs.sort();
        let Artifact {
            sha256,
            compiler,
            build_argv,
            sources,
            ..
        } = artifact;
        let program = format!("{sha256:?} {programs:?} {compiler:?} {build_argv:?} {sources:?}");
        let files = match self.files? {
            Readable::Packed(sha256) => sha256.to_owned(),
            Readable::Checkout(files) => {
                let by_compiler = matches!(variant.recipe, Recipe::Nvcc { .. });
                match known_bytes(artifact).filter(|_| by_compiler) {
                    Some((_, program)) => files.sha256(variant, &program, sources.keys()),
                    None => files.sha256_of_all(),
                }
            }
        };
        Ok([
            ("its configuration", settings),
            ("its program", program),
            (FILES, files),
            (
                "a variable that it gets",
                format!("{:?}", environment(variant)),
            ),
        ])
    }
}

/// The key of a variant, side by side with a base where there is one.
///
/// # Errors
/// In words, what of it is not known.
pub(super) fn key(
    bench: &Bench<'_>,
    current: KeyedSide<'_>,
    base: Option<KeyedSide<'_>>,
) -> Result<Key, String> {
    let tool = tool().ok_or("this program cannot be read")?;
    // How many GPUs a process sees is no property of one.
    let gpu = Gpu {
        ordinal: 0,
        ..bench.gpu.clone()
    };
    let of_run = [
        (LIFTED, lifted(bench)?),
        // One that came between the two runs is no event of either.
        (
            "the number of the GPU's memory errors",
            format!("{:?}", bench.faults().map(FaultWatch::counted_errors)),
        ),
        ("the build of sparsek-gate", tool.to_owned()),
        ("the GPU or its driver", format!("{gpu:?}")),
        ("the version of ncu", bench.ncu_version.clone()),
        ("a constant (`--define`)", format!("{:?}", bench.overrides)),
    ];
    let mut key: Key = of_run
        .into_iter()
        .chain(current.parts()?)
        .map(|(name, value)| (name.to_owned(), sha256_hex(value.as_bytes())))
        .collect();
    if let Some(base) = base {
        let parts = base.parts().map_err(|why| format!("of the base: {why}"))?;
        key.extend(
            parts.map(|(name, value)| (format!("{name} (base)"), sha256_hex(value.as_bytes()))),
        );
    }
    Ok(key)
}

fn lifted(bench: &Bench<'_>) -> Result<String, String> {
    let lines = bench.quarantine.history(&bench.gpu.uuid)?;
    Ok(format!("{lines:?}"))
}

/// What the driver reported of the GPU while an interrupted run measured what it noted, unless a
/// quarantine was lifted since.
pub(super) fn faults_in<'e>(
    entries: impl Iterator<Item = &'e VariantEntry>,
    bench: &Bench<'_>,
) -> Faults {
    let now = lifted(bench).map(|lifted| sha256_hex(lifted.as_bytes()));
    let is_old = |entry: &&VariantEntry| {
        let then = entry.key.get(LIFTED);
        now.as_ref().is_ok_and(|now| then != Some(now))
    };
    let sides = entries
        .filter(|entry| !is_old(entry))
        .flat_map(|entry| [Some(&entry.current), entry.base.as_ref()]);
    let captures = sides.flatten().flat_map(|side| &side.captures);
    let on_gpu =
        captures.filter(|one| one.record.gpu_uuid.as_deref() == Some(bench.gpu.uuid.as_str()));
    let states = on_gpu.filter_map(|one| one.record.device.as_ref());
    states
        .map(State::faults)
        .fold(Faults::default(), Faults::and)
}

/// What differs between two keys, for people; `None` where they are the same.
pub(super) fn difference(earlier: &Key, now: &Key) -> Option<String> {
    let sides = |key: &Key| key.keys().cloned().collect::<BTreeSet<String>>();
    if sides(earlier) != sides(now) {
        return Some("one of the two runs measured it alone, and one beside the base".to_owned());
    }
    let parts = now.iter();
    let others = parts.filter(|(name, value)| earlier.get(*name) != Some(value));
    // What is changed is mostly a file of the checkout, too.
    let other = others.min_by_key(|(name, _)| name.starts_with(FILES));
    other.map(|(name, _)| format!("{name} is another one now"))
}

impl Subjects<'_> {
    /// Takes over what an interrupted run measured, as a whole.
    ///
    /// # Errors
    /// In words, why not; an error where the machine failed.
    pub(super) fn go_on_with(
        &mut self,
        earlier: VariantEntry,
        plan: &VariantPlan,
        output: &Path,
        gpu_uuid: &str,
        began: &str,
    ) -> Result<Result<Resumed, String>, Error> {
        let taken = match self.captures_of(&earlier, plan, output, gpu_uuid) {
            Ok(taken) => taken,
            Err(why) => return Ok(Err(why)),
        };
        let has = |side: Side| {
            let taken = &taken;
            move |stem: &str| taken.contains_key(&(side, stem.to_owned()))
        };
        self.current.clear_but(has(Side::Current))?;
        self.current.take_over_list(earlier.current.listed.clone());
        if let Some(base) = &mut self.base {
            base.clear_but(has(Side::Base))?;
            base.take_over_list(earlier.base.as_ref().and_then(|base| base.listed.clone()));
        }
        let resumed = Resumed {
            variant: earlier.variant.clone(),
            rounds: earlier.rounds,
            processes: u32::try_from(taken.len()).unwrap_or(u32::MAX),
            began: began.to_owned(),
        };
        self.noted.go_on_with(earlier, taken);
        Ok(Ok(resumed))
    }

    /// The captures of an entry, which must be those of whole rounds.
    fn captures_of(
        &self,
        entry: &VariantEntry,
        plan: &VariantPlan,
        output: &Path,
        gpu_uuid: &str,
    ) -> Result<BTreeMap<(Side, String), TakenCapture>, String> {
        if entry.base.is_some() != self.base.is_some() {
            return Err(
                "one of the two runs measured it alone, and one beside the base".to_owned(),
            );
        }
        let taken = read_captures(output, entry, gpu_uuid)?;
        if taken.is_empty() && entry.rounds == 0 {
            return Ok(taken);
        }
        let rounds = plan.rounds.iter().chain(&plan.in_place);
        let rounds = rounds.take(entry.rounds as usize).flatten();
        let has_phase = |phase: Phase| self.current.has_phase_on(entry.tier, phase);
        let of_job = |job: &Job| match job.task {
            Task::Measure(phase) if has_phase(phase) => Some(((job.side, job.stem.clone()), phase)),
            _ => None,
        };
        let expected = plan.before_rounds().chain(rounds).filter_map(of_job);
        let found = taken
            .iter()
            .map(|(of, taken)| (of.clone(), taken.capture.phase));
        let is_whole = found.collect::<BTreeMap<_, _>>() == expected.collect();
        match is_whole {
            true => Ok(taken),
            false => Err("its journal has other processes than those of whole rounds".to_owned()),
        }
    }
}
