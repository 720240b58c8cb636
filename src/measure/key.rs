//! What makes two measurements of a variant the same one: a serialized value, part by part, each hashed.

use std::path::Path;

use serde::Serialize;

use super::base::BaseVariant;
use super::bench::Bench;
use super::order::Order;
use super::readable::{ReadableFiles, known_bytes};
use super::resume::{BASE, FILES, Key};
use super::sides::Sides;
use super::verified::{environment, tool};
use crate::build::Artifact;
use crate::config::{Recipe, Variant};
use crate::device::{FaultWatch, Gpu};
use crate::hash::sha256_of;
use crate::plan::Side;
use crate::profiler::LibraryFile;

/// What the keys of the variants of a run are made from.
#[derive(Clone, Copy)]
pub(super) struct Keys<'r, 'a> {
    pub order: &'r Order<'a>,
    pub bench: &'r Bench<'a>,
    /// What programs of a side could read, or why that is not known.
    pub files: &'r [(Side, Result<ReadableFiles, String>)],
}

impl Keys<'_, '_> {
    /// The key of a variant that is about to be measured.
    ///
    /// # Errors
    /// In words, what of it is not known.
    pub fn of(&self, sides: &Sides<'_>) -> Result<Key, String> {
        let Some((artifact, _)) = &sides.current else {
            return Err("it was not built".to_owned());
        };
        let current = KeyedSide {
            variant: sides.variant,
            artifact,
            files: self.files_of(Side::Current),
        };
        let base = sides.base.as_ref().and_then(|base| base.as_ref().ok());
        let base = base.map(|base: &BaseVariant<'_>| KeyedSide {
            variant: &base.variant,
            artifact: &base.artifact,
            files: self.files_of(Side::Base),
        });
        KeyedMachine {
            tool: tool(),
            gpu: &self.bench.gpu,
            profiler: (&self.bench.ncu_version, self.bench.libcupti.as_ref()),
            overrides: self.bench.overrides,
            memory_errors: self.bench.faults().map(FaultWatch::counted_errors),
        }
        .key(current, base)
    }

    fn files_of(&self, side: Side) -> Result<Readable<'_>, &str> {
        if let Some(sha256) = self.order.packed_files {
            return Ok(Readable::Packed(sha256));
        }
        match self.files.iter().find(|(of, _)| *of == side) {
            Some((_, Ok(files))) => Ok(Readable::Checkout(files)),
            Some((_, Err(why))) => Err(why),
            None => Err("what it could read is not known"),
        }
    }
}

/// The files that programs could read.
#[derive(Clone, Copy)]
enum Readable<'a> {
    /// Those that were packed, by the sha256 of their list.
    Packed(&'a str),
    /// Those of a checkout.
    Checkout(&'a ReadableFiles),
}

/// The machine that measures, and what measures on it.
struct KeyedMachine<'a> {
    /// sha256 of this program; `None` where it cannot be read.
    tool: Option<&'a str>,
    gpu: &'a Gpu,
    /// The version of ncu, and libcupti.
    profiler: (&'a str, Option<&'a LibraryFile>),
    overrides: &'a [String],
    /// The number of the GPU's memory errors. One that came between the two runs is no event of either.
    memory_errors: Option<[Option<u64>; 2]>,
}

/// One side of a variant that is about to be measured.
#[derive(Clone, Copy)]
struct KeyedSide<'a> {
    variant: &'a Variant,
    artifact: &'a Artifact,
    /// Or why these are not known.
    files: Result<Readable<'a>, &'a str>,
}

impl KeyedMachine<'_> {
    fn key(&self, current: KeyedSide<'_>, base: Option<KeyedSide<'_>>) -> Result<Key, String> {
        let tool = self.tool.ok_or("this program cannot be read")?;
        // How many GPUs a process sees is no property of one.
        let gpu = Gpu {
            ordinal: 0,
            ..self.gpu.clone()
        };
        let base = base.map(|base| base.key()).transpose();
        let base = base.map_err(|why| format!("of the base: {why}"))?;
        let mut key = current.key()?;
        key.extend([
            part("the build of sparsek-gate", &tool)?,
            part("the GPU or its driver", &gpu)?,
            part("the number of the GPU's memory errors", &self.memory_errors)?,
            part("the version of ncu or libcupti", &self.profiler)?,
            part("a constant (`--define`)", &self.overrides)?,
            part(BASE, &base)?,
        ]);
        Ok(key)
    }
}

impl KeyedSide<'_> {
    fn key(&self) -> Result<Key, String> {
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
        let programs = artifact.programs.iter();
        let programs = programs.map(|(path, sha256)| (path.file_name().map(Path::new), sha256));
        let mut programs: Vec<_> = programs.collect();
        programs.sort();
        let program = (
            &artifact.sha256,
            programs,
            &artifact.compiler,
            &artifact.build_argv,
            &artifact.sources,
        );
        let files = match self.files? {
            Readable::Packed(sha256) => sha256.to_owned(),
            Readable::Checkout(files) => {
                let by_compiler = matches!(variant.recipe, Recipe::Nvcc { .. });
                match known_bytes(artifact).filter(|_| by_compiler) {
                    Some((_, program)) => {
                        files.sha256(variant, &program, artifact.sources.keys())?
                    }
                    None => files.sha256_of_all()?,
                }
            }
        };
        Ok(Key::from([
            part("its configuration", variant)?,
            part("its program", &program)?,
            part(FILES, &files)?,
            part("a variable that it gets", &environment(variant))?,
        ]))
    }
}

/// A part of a key.
fn part(name: &str, value: &impl Serialize) -> Result<(String, String), String> {
    Ok((name.to_owned(), sha256_of(value)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use crate::config::Config;
    use crate::measure::resume::difference;

    const CONFIG: &str = "[metric.duration]\ncounter = \"gpu__time_duration.sum\"\n\
        direction = \"lower\"\ntolerance = { relative_percent = 1.0 }\n\
        [suite.s.variant.v]\nsource = \"v.cu\"\nargs = [\"1\"]\n";

    /// What a key is made of.
    struct Parts {
        config: String,
        root: &'static str,
        tool: Option<&'static str>,
        gpu: Gpu,
        profiler: (&'static str, LibraryFile),
        memory_errors: Option<[Option<u64>; 2]>,
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
                profiler: ("2025.3", ("/lib/libcupti.so.13".into(), 1, 1, 1)),
                memory_errors: None,
                overrides: Vec::new(),
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
                variant,
                artifact,
                files: self.files.map(Readable::Packed),
            };
            let machine = KeyedMachine {
                tool: self.tool,
                gpu: &self.gpu,
                profiler: (self.profiler.0, Some(&self.profiler.1)),
                overrides: &self.overrides,
                memory_errors: self.memory_errors,
            };
            machine.key(side(&self.artifact), self.base.as_ref().map(side))
        }
    }

    #[test]
    fn whatever_is_another_measurement_has_another_key_which_says_what_differs() {
        type Change = fn(&mut Parts);
        const PROGRAM: &str = "its program";
        const SETTINGS: &str = "its configuration";
        const OF_GPU: &str = "the GPU or its driver";
        const PROFILER: &str = "the version of ncu or libcupti";
        let cases: [(&str, Change); 19] = [
            ("the build of sparsek-gate", |it| it.tool = Some("other")),
            ("the number of the GPU's memory errors", |it| {
                it.memory_errors = Some([Some(1), None]);
            }),
            (OF_GPU, |it| it.gpu.uuid = "GPU-2".to_owned()),
            (OF_GPU, |it| it.gpu.driver = None),
            (OF_GPU, |it| it.gpu.multiprocessors = 1),
            (PROFILER, |it| it.profiler.0 = "2025.4"),
            (PROFILER, |it| it.profiler.1.3 = 2),
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
                let sources = &mut it.artifact.sources;
                sources.insert("v.cu".to_owned(), "c".to_owned());
            }),
            (PROGRAM, |it| {
                it.artifact.programs.insert("x".into(), "c".to_owned());
            }),
            ("its base", |it| {
                it.base.as_mut().unwrap().sha256 = Some("c".to_owned());
            }),
            ("its base", |it| it.base = None),
            (FILES, |it| it.files = Ok("others")),
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
            ("of the base: git cannot say it", |it| {
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
        parts.base = None;
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
