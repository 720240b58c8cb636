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

/// The part of a key with the GPU.
const GPU: &str = "the GPU or its driver";

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

/// The machine that measures, and what measures on it.
pub(super) struct KeyedMachine<'a> {
    /// sha256 of this program; `None` where it cannot be read.
    tool: Option<&'a str>,
    gpu: &'a Gpu,
    ncu_version: &'a str,
    libcupti: &'a str,
    overrides: &'a [String],
    /// The number of the GPU's memory errors. One that came between the two runs is no event of either.
    memory_errors: String,
}

impl<'a> KeyedMachine<'a> {
    /// That of a run.
    pub fn of(bench: &'a Bench<'_>) -> KeyedMachine<'a> {
        KeyedMachine {
            tool: tool(),
            gpu: &bench.gpu,
            ncu_version: &bench.ncu_version,
            libcupti: &bench.libcupti,
            overrides: bench.overrides,
            memory_errors: format!("{:?}", bench.faults().map(FaultWatch::counted_errors)),
        }
    }
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
    machine: KeyedMachine<'_>,
    current: KeyedSide<'_>,
    base: Option<KeyedSide<'_>>,
) -> Result<Key, String> {
    let tool = machine.tool.ok_or("this program cannot be read")?;
    // How many GPUs a process sees is no property of one.
    let gpu = Gpu {
        ordinal: 0,
        ..machine.gpu.clone()
    };
    let of_run = [
        (
            "the number of the GPU's memory errors",
            machine.memory_errors,
        ),
        ("the build of sparsek-gate", tool.to_owned()),
        (GPU, format!("{gpu:?}")),
        ("the version of ncu", machine.ncu_version.to_owned()),
        ("libcupti", machine.libcupti.to_owned()),
        (
            "a constant (`--define`)",
            format!("{:?}", machine.overrides),
        ),
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

/// What the driver reported of the GPU while an interrupted run measured what it noted.
pub(super) fn faults_in<'e>(
    entries: impl Iterator<Item = &'e VariantEntry>,
    bench: &Bench<'_>,
) -> Faults {
    let sides = entries.flat_map(|entry| [Some(&entry.current), entry.base.as_ref()]);
    let captures = sides.flatten().flat_map(|side| &side.captures);
    let on_gpu =
        captures.filter(|one| one.record.gpu_uuid.as_deref() == Some(bench.gpu.uuid.as_str()));
    let states = on_gpu.filter_map(|one| one.record.device.as_ref());
    states
        .map(State::faults)
        .fold(Faults::default(), Faults::and)
}

/// The parts of a key that are those of the machine, and not of what is measured.
const OF_MACHINE: [&str; 4] = [
    "the number of the GPU's memory errors",
    GPU,
    "the version of ncu",
    "libcupti",
];

/// The same of what is measured alone, whatever the machine is.
pub(super) fn difference_of_subject(earlier: &Key, now: &Key) -> Option<String> {
    let subject = |key: &Key| -> Key {
        let mut key = key.clone();
        key.retain(|name, _| !OF_MACHINE.contains(&name.as_str()));
        key
    };
    difference(&subject(earlier), &subject(now))
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

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "[metric.duration]\ncounter = \"gpu__time_duration.sum\"\n\
        direction = \"lower\"\ntolerance = { relative_percent = 1.0 }\n\
        [suite.s.variant.v]\nsource = \"v.cu\"\nargs = [\"1\"]\n";

    /// What a key is made of.
    #[derive(Clone)]
    struct Parts {
        config: String,
        root: &'static str,
        tool: Option<&'static str>,
        gpu: Gpu,
        ncu: &'static str,
        libcupti: &'static str,
        memory_errors: &'static str,
        overrides: Vec<String>,
        artifact: Artifact,
        files: Result<&'static str, &'static str>,
        /// The program of the base, where there is one.
        base: Option<Artifact>,
    }

    impl Parts {
        fn new() -> Parts {
            let artifact = Artifact {
                run: vec!["/store/program".to_owned()],
                compiler: Some("13.0".to_owned()),
                sha256: Some("a".to_owned()),
                programs: BTreeMap::from([("/store/program".into(), "a".to_owned())]),
                build_argv: vec!["nvcc".to_owned()],
                sources: BTreeMap::from([("v.cu".to_owned(), "b".to_owned())]),
                compiled: None,
                cached: false,
            };
            Parts {
                config: CONFIG.to_owned(),
                root: "/p",
                tool: Some("tool"),
                gpu: Gpu {
                    ordinal: 1,
                    uuid: "GPU-1".to_owned(),
                    driver: Some("580.1".to_owned()),
                    ..Gpu::default()
                },
                ncu: "2025.3",
                libcupti: "/lib/libcupti.so.13",
                overrides: Vec::new(),
                memory_errors: "0",
                base: Some(artifact.clone()),
                artifact,
                files: Ok("files"),
            }
        }

        fn key(&self) -> Result<Key, String> {
            let path = Path::new(self.root).join("config.toml");
            let config = Config::parse(&path, &self.config).unwrap();
            let variant = config.variants().next().unwrap();
            let side = |artifact| KeyedSide {
                config: &config,
                variant,
                artifact,
                files: self.files.map(Readable::Packed),
            };
            let machine = KeyedMachine {
                tool: self.tool,
                gpu: &self.gpu,
                ncu_version: self.ncu,
                libcupti: self.libcupti,
                overrides: &self.overrides,
                memory_errors: self.memory_errors.to_owned(),
            };
            key(machine, side(&self.artifact), self.base.as_ref().map(side))
        }
    }

    #[test]
    fn whatever_is_another_measurement_has_another_key_which_says_what_differs() {
        type Change = fn(&mut Parts);
        const PROGRAM: &str = "its program";
        const SETTINGS: &str = "its configuration";
        let cases: [(&str, Change); 19] = [
            ("the build of sparsek-gate", |it| it.tool = Some("other")),
            ("the number of the GPU's memory errors", |it| {
                it.memory_errors = "1"
            }),
            ("the GPU or its driver", |it| {
                it.gpu.uuid = "GPU-2".to_owned()
            }),
            ("the GPU or its driver", |it| it.gpu.driver = None),
            ("the GPU or its driver", |it| it.gpu.multiprocessors = 1),
            ("the version of ncu", |it| it.ncu = "2025.4"),
            ("libcupti", |it| it.libcupti = "/lib/libcupti.so.12"),
            ("a constant (`--define`)", |it| {
                it.overrides = vec!["A=1".to_owned()];
            }),
            ("a variable that it gets", |it| {
                it.config += "env = { A = \"1\" }\n"
            }),
            (SETTINGS, |it| {
                it.config = it.config.replace("[\"1\"]", "[\"2\"]")
            }),
            (SETTINGS, |it| {
                it.config = it.config.replace("duration.sum", "duration.max");
            }),
            (PROGRAM, |it| it.artifact.sha256 = Some("c".to_owned())),
            (PROGRAM, |it| it.artifact.compiler = Some("13.1".to_owned())),
            (PROGRAM, |it| it.artifact.build_argv.push("-g".to_owned())),
            (PROGRAM, |it| {
                it.artifact
                    .sources
                    .insert("v.cu".to_owned(), "c".to_owned());
            }),
            (PROGRAM, |it| {
                it.artifact.programs.insert("x".into(), "c".to_owned());
            }),
            ("its program (base)", |it| {
                it.base.as_mut().unwrap().sha256 = Some("c".to_owned());
            }),
            (FILES, |it| it.files = Ok("others")),
            ("one of the two runs measured it alone", |it| it.base = None),
        ];
        let before = Parts::new().key().unwrap();
        for (number, (expected, change)) in cases.into_iter().enumerate() {
            let mut parts = Parts::new();
            change(&mut parts);
            let found = difference(&before, &parts.key().unwrap());
            let found = found.unwrap_or_else(|| panic!("case {number}: {expected}"));
            assert!(found.starts_with(expected), "{number}: {found}");
        }
        // The same program in another folder, on the same GPU with another number.
        let mut parts = Parts::new();
        parts.gpu.ordinal = 0;
        parts.root = "/elsewhere";
        assert_eq!(difference(&before, &parts.key().unwrap()), None);
    }

    #[test]
    fn what_is_not_known_has_no_key() {
        type Change = fn(&mut Parts);
        let command =
            |more: &str| CONFIG.replace("source = \"v.cu\"", &format!("run = [\"x\"]{more}"));
        let cases: [(&str, Change); 3] = [
            ("this program cannot be read", |it| it.tool = None),
            ("git cannot say it", |it| {
                it.files = Err("git cannot say it")
            }),
            ("no file of its program is named (`inputs`)", |it| {
                it.artifact.sha256 = None;
            }),
        ];
        for (why, change) in cases {
            let mut parts = Parts::new();
            change(&mut parts);
            assert_eq!(parts.key().unwrap_err(), why);
        }
        let mut parts = Parts::new();
        parts.config = command("\nbuild = [\"make\"]");
        let why = "what its `build` command makes is not named (`program`)";
        assert_eq!(parts.key().unwrap_err(), why);
        parts.config = command("");
        assert!(parts.key().is_ok());
        parts.artifact.sources.clear();
        parts.artifact.programs.clear();
        let why = "no file of its program is named (`inputs`)";
        assert_eq!(parts.key().unwrap_err(), why);
    }
}
