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
    use std::fs;
    use std::sync::OnceLock;

    use proptest::prelude::*;
    use tempfile::TempDir;

    use crate::binary::c_program;
    use crate::config::Config;
    use crate::hash::sha256_hex;
    use crate::measure::built::Pair;
    use crate::measure::resume::difference;
    use crate::measure::same::{different_runs, same_artifact};
    use crate::measure::verified::key_of;

    const CONFIG: &str = "[metric.duration]\ncounter = \"gpu__time_duration.sum\"\n\
        direction = \"lower\"\ntolerance = { relative_percent = 1.0 }\n\
        [suite.s.variant.v]\nsource = \"v.cu\"\nargs = [\"1\"]\nverify_args = [\"2\"]\n\
        profile_args = [\"{result}\"]\n";

    /// What keys are made of.
    struct Parts {
        config: String,
        root: &'static str,
        tool: Option<&'static str>,
        gpu: Gpu,
        profiler: (&'static str, LibraryFile),
        memory_errors: Option<[Option<u64>; 2]>,
        overrides: Vec<String>,
        artifact: Artifact,
        /// The content of a file that the program could read.
        files: Result<&'static str, &'static str>,
        /// That of a source that the program does not name.
        source: &'static str,
        /// The program of the base, where there is one.
        base: Option<Artifact>,
        folder: TempDir,
    }

    impl Parts {
        /// `None` where there is no compiler.
        fn new() -> Option<Parts> {
            let mut parts = Parts {
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
                artifact: Artifact {
                    run: Vec::new(),
                    compiler: Some("13.0".to_owned()),
                    sha256: None,
                    programs: BTreeMap::new(),
                    build_argv: vec!["nvcc".to_owned()],
                    sources: BTreeMap::from([("v.cu".to_owned(), "b".to_owned())]),
                    compiled: None,
                    cached: false,
                },
                files: Ok("files"),
                source: "source",
                base: None,
                folder: tempfile::tempdir().unwrap(),
            };
            parts.build(0)?;
            parts.base = Some(parts.artifact.clone());
            Some(parts)
        }

        /// Makes it another program.
        fn build(&mut self, number: u8) -> Option<()> {
            static PROGRAMS: OnceLock<Option<[Vec<u8>; 2]>> = OnceLock::new();
            let compiled = || {
                let of = |number| format!("int main(void) {{ return {number}; }}");
                Some([c_program(&of(0), &[])?, c_program(&of(1), &[])?])
            };
            let program = &PROGRAMS.get_or_init(compiled).as_ref()?[usize::from(number)];
            self.artifact.programs.clear();
            let path = self.has_file(&format!("program-{number}"), program);
            self.artifact.run = vec![path];
            self.artifact.sha256 = Some(sha256_hex(program));
            Some(())
        }

        /// Adds a file that runs.
        fn has_file(&mut self, name: &str, bytes: &[u8]) -> String {
            let path = self.folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            let shown = path.display().to_string();
            self.artifact.programs.insert(path, sha256_hex(bytes));
            shown
        }

        fn edit(&mut self, from: &str, to: &str) {
            assert_eq!(self.config.matches(from).count(), 1, "{from}");
            self.config = self.config.replace(from, to);
        }

        fn files(&self) -> Result<ReadableFiles, String> {
            let files = [("weights.txt", self.files?), ("other.cu", self.source)];
            Ok(ReadableFiles::with(&files))
        }

        fn variant(&self) -> Variant {
            let path = Path::new(self.root).join("config.toml");
            let config = Config::parse(&path, &self.config).unwrap();
            config.variants().next().unwrap().clone()
        }

        /// What a run resumes by.
        fn key(&self) -> Result<Key, String> {
            let (variant, files) = (self.variant(), self.files());
            let side = |artifact| KeyedSide {
                variant: &variant,
                artifact,
                files: files
                    .as_ref()
                    .map(Readable::Checkout)
                    .map_err(String::as_str),
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

        /// What a verification is recorded by.
        fn verification(&self) -> Option<String> {
            let files = self.files().ok()?;
            key_of(&self.variant(), &self.artifact, &self.gpu, &files)
        }

        fn is_program_of(&self, base: &Parts) -> bool {
            let pair = Pair {
                variant: &self.variant(),
                root: Path::new(self.root),
                artifact: &self.artifact,
                base_variant: &base.variant(),
                base_root: Path::new(base.root),
                base: &base.artifact,
            };
            different_runs(&pair).is_none() && same_artifact(&pair)
        }
    }

    /// A change, what a run that resumes says of it (nothing where it goes on), and whether it makes
    /// another program (besides the files that changed, see `tests/same_program.rs`) and another
    /// verification.
    type Case = (&'static str, [bool; 2], fn(&mut Parts));

    const NO: bool = false;
    const YES: bool = true;
    const PROGRAM: &str = "its program";
    const SETTINGS: &str = "its configuration";
    const OF_GPU: &str = "the GPU or its driver";
    const PROFILER: &str = "the version of ncu or libcupti";

    const CASES: [Case; 38] = [
        ("", [NO, NO], |it| it.root = "/elsewhere"),
        ("", [NO, NO], |it| it.gpu.ordinal = 0),
        ("", [NO, NO], |it| it.source = "others"),
        ("", [NO, NO], |it| it.config += "# Why.\n"),
        ("the build of sparsek-gate", [NO, NO], |it| {
            it.tool = Some("other")
        }),
        ("the number of the GPU's memory errors", [NO, NO], |it| {
            it.memory_errors = Some([Some(1), None]);
        }),
        (OF_GPU, [NO, NO], |it| it.gpu.uuid = "GPU-2".to_owned()),
        (OF_GPU, [NO, YES], |it| it.gpu.driver = None),
        (OF_GPU, [NO, YES], |it| it.gpu.multiprocessors = 1),
        (OF_GPU, [NO, YES], |it| it.gpu.name = "H200".to_owned()),
        (PROFILER, [NO, NO], |it| it.profiler.0 = "2025.4"),
        (PROFILER, [NO, NO], |it| it.profiler.1.0 = "/other".into()),
        (PROFILER, [NO, NO], |it| it.profiler.1.3 = 2),
        ("a constant (`--define`)", [NO, NO], |it| {
            it.overrides = vec!["A=1".to_owned()];
        }),
        ("a variable that it gets", [YES, YES], |it| {
            it.config += "env = { A = \"1\" }\n"
        }),
        (SETTINGS, [YES, YES], |it| it.edit("[\"1\"]", "[\"one\"]")),
        (SETTINGS, [YES, YES], |it| it.edit("[\"2\"]", "[\"two\"]")),
        (SETTINGS, [YES, NO], |it| {
            it.edit("\"{result}\"", "\"{result}\", \"4\"")
        }),
        (SETTINGS, [YES, YES], |it| {
            it.config += "sanitizer_args = [\"5\"]\n"
        }),
        (SETTINGS, [YES, NO], |it| it.config += "kernels = \"k\"\n"),
        (SETTINGS, [YES, NO], |it| it.config += "expect = [\"k\"]\n"),
        (SETTINGS, [YES, NO], |it| {
            it.config += "dynamic_shared_bytes = 1024\n"
        }),
        (SETTINGS, [NO, YES], |it| {
            it.config += "verify.timeout_s = 9\n"
        }),
        (SETTINGS, [NO, NO], |it| {
            it.config += "verify.sanitizer = [\"memcheck\"]\n"
        }),
        (SETTINGS, [NO, NO], |it| {
            it.config += "profile = { launches = 21 }\n"
        }),
        (SETTINGS, [NO, NO], |it| {
            it.config += "description = \"words\"\n"
        }),
        (SETTINGS, [NO, NO], |it| {
            it.config += "defines = { A = 1 }\n"
        }),
        (SETTINGS, [NO, YES], |it| {
            it.edit("variant.v]", "variant.w]")
        }),
        (SETTINGS, [NO, NO], |it| it.edit("1.0", "2.0")),
        (SETTINGS, [NO, NO], |it| {
            it.edit("duration.sum", "duration.max");
        }),
        (PROGRAM, [YES, YES], |it| it.build(1).unwrap()),
        (PROGRAM, [NO, NO], |it| {
            it.artifact.compiler = Some("13.1".to_owned());
        }),
        (PROGRAM, [NO, NO], |it| {
            it.artifact.build_argv.push("-g".to_owned());
        }),
        (PROGRAM, [NO, YES], |it| {
            let sources = &mut it.artifact.sources;
            sources.insert("v.cu".to_owned(), "c".to_owned());
        }),
        (PROGRAM, [NO, NO], |it| {
            it.has_file("more", b"c");
        }),
        ("its base", [NO, NO], |it| {
            it.base.as_mut().unwrap().sha256 = Some("c".to_owned());
        }),
        ("its base", [NO, NO], |it| {
            it.base.as_mut().unwrap().sources.clear();
        }),
        (FILES, [NO, YES], |it| it.files = Ok("others")),
    ];

    #[test]
    fn whatever_is_another_measurement_has_another_key_which_says_what_differs() {
        let Some(before) = Parts::new().map(|parts| parts.key().unwrap()) else {
            return;
        };
        let without_base: Case = ("its base", [NO, NO], |it| it.base = None);
        for (number, (expected, _, change)) in CASES.into_iter().chain([without_base]).enumerate() {
            let mut parts = Parts::new().unwrap();
            change(&mut parts);
            let found = difference(&before, &parts.key().unwrap()).unwrap_or_default();
            let is_expected =
                found.starts_with(expected) && found.is_empty() == expected.is_empty();
            assert!(is_expected, "case {number}: {expected}: {found}");
        }
    }

    #[test]
    fn each_question_depends_on_its_parts_and_on_no_others() {
        let Some(before) = Parts::new() else {
            return;
        };
        assert!(before.is_program_of(&before) && before.verification().is_some());
        for (number, (name, expected, change)) in CASES.into_iter().enumerate() {
            let mut parts = Parts::new().unwrap();
            change(&mut parts);
            let is_other = [
                !parts.is_program_of(&before),
                parts.verification() != before.verification(),
            ];
            assert_eq!(is_other, expected, "case {number}: {name}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            cases: 200,
            ..ProptestConfig::default()
        })]

        /// No change takes another one back, and none hides another one.
        #[test]
        fn two_keys_are_the_same_where_nothing_differs_that_they_depend_on(
            changed in prop::collection::vec(any::<bool>(), CASES.len()),
            differing in prop::collection::btree_set(0..CASES.len(), 0..3),
        ) {
            let made = |is_other: &dyn Fn(usize) -> bool| {
                let mut parts = Parts::new()?;
                let cases = CASES.into_iter().enumerate();
                cases
                    .filter(|(number, _)| changed[*number] != is_other(*number))
                    .for_each(|(_, (_, _, change))| change(&mut parts));
                Some(parts)
            };
            let Some(one) = made(&|_| false) else {
                return Ok(());
            };
            let other = made(&|number| differing.contains(&number)).unwrap();
            let same = |matters: &dyn Fn(&Case) -> bool| {
                !differing.iter().any(|number| matters(&CASES[*number]))
            };
            prop_assert_eq!(one.key() == other.key(), same(&|case| !case.0.is_empty()));
            prop_assert_eq!(other.is_program_of(&one), same(&|case| case.1[0]));
            if let (Some(one), Some(other)) = (one.verification(), other.verification()) {
                prop_assert_eq!(one == other, same(&|case| case.1[1]));
            }
        }
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
        let Some(mut parts) = Parts::new() else {
            return;
        };
        for (why, change) in cases {
            let mut parts = Parts::new().unwrap();
            change(&mut parts);
            assert_eq!(parts.key().unwrap_err(), why);
        }
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
