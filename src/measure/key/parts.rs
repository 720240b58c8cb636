//! What makes two measurements of a variant the same one, and two verifications.

use std::ffi::OsString;
use std::path::Path;

use serde::Serialize;

use super::readable::{ReadableFiles, known_bytes};
use super::verified::is_recordable;
use crate::build::Artifact;
use crate::config::{Recipe, Variant};
use crate::device::Gpu;
use crate::hash::sha256_of;
use crate::measure::folder::{BASE, FILES, Key};
use crate::measure::place::sides::Sides;
use crate::plan::Side;
use crate::process;
use crate::profiler::LibraryFile;
use crate::sanitize::sanitized_argv;
use crate::verify::{verify_argv, verify_given};

/// The values that all keys of a run depend on.
#[derive(Clone, Copy)]
pub(in crate::measure) struct Keys<'a> {
    /// The ID of this build of the tool; `None` where it cannot be read.
    pub tool: Option<&'a str>,
    pub gpu: &'a Gpu,
    /// The version of ncu, and libcupti.
    pub profiler: (&'a str, Option<&'a LibraryFile>),
    pub overrides: &'a [String],
    /// sha256 of the list of all files of an archive, which programs could read.
    pub packed_files: Option<&'a str>,
    /// What programs of a side could read, or why that is not known.
    pub files: &'a [(Side, Result<ReadableFiles, String>)],
}

impl Keys<'_> {
    /// The key of a variant that is about to be measured. `memory_errors` are counted now: one that came
    /// between two runs is no event of either.
    ///
    /// # Errors
    /// In words, what of it is not known.
    pub fn measurement(
        &self,
        sides: &Sides<'_>,
        memory_errors: Option<[Option<u64>; 2]>,
    ) -> Result<Key, String> {
        let Some((artifact, _)) = &sides.current else {
            return Err("it was not built".to_owned());
        };
        let tool = self.tool.ok_or("this program cannot be read")?;
        // How many GPUs a process sees is no property of one.
        let gpu = Gpu {
            ordinal: 0,
            ..self.gpu.clone()
        };
        let base = sides.built_base();
        let base = base.map(|base| self.of_side(Side::Base, &base.variant, &base.artifact));
        let base = base.transpose();
        let base = base.map_err(|why| format!("of the base: {why}"))?;
        let mut key = self.of_side(Side::Current, sides.variant, artifact)?;
        key.extend([
            part("the build of sparsek-gate", &tool)?,
            part("the GPU or its driver", &gpu)?,
            part("the number of the GPU's memory errors", &memory_errors)?,
            part("the version of ncu or libcupti", &self.profiler)?,
            part("a constant (`--define`)", &self.overrides)?,
            part(BASE, &base)?,
        ]);
        Ok(key)
    }

    /// The key of a verification; `None` where it is not recorded, or where it is not certain what the
    /// program is and what it reads.
    pub fn verification(
        &self,
        side: Side,
        variant: &Variant,
        artifact: &Artifact,
    ) -> Option<String> {
        if !is_recordable(variant) || self.gpu.driver.is_none() {
            return None;
        }
        let files = self.files_of(side).ok()?;
        let (sha256, program) = known_bytes(artifact)?;
        let given = verify_given(variant, Path::new("{result}"), None);
        // With the texts `{seed}` and `{result}`.
        let arguments = |argv: Vec<String>| argv.into_iter().skip(1).collect::<Vec<_>>();
        let runs = (
            arguments(verify_argv(variant, artifact, &given)),
            arguments(sanitized_argv(variant, artifact, &given)),
            variant.verify_timeout,
            environment(variant),
        );
        // Another GPU of the same model serves.
        let gpu = Gpu {
            ordinal: 0,
            uuid: String::new(),
            ..self.gpu.clone()
        };
        let files = files.sha256(variant, &program, artifact.sources.keys());
        let built = (&variant.id, sha256, &artifact.sources, files.ok()?);
        sha256_of(&(self.tool?, gpu, built, runs)).ok()
    }

    /// The part of a measurement's key that is about one side.
    fn of_side(&self, side: Side, variant: &Variant, artifact: &Artifact) -> Result<Key, String> {
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
            &artifact.sha256, programs, &artifact.compiler, &artifact.build_argv, &artifact.sources,
        );
        Ok(Key::from([
            part("its configuration", variant)?,
            part("its program", &program)?,
            part(FILES, &self.read_by(side, variant, artifact)?)?,
            part("a variable that it gets", &environment(variant))?,
        ]))
    }

    /// The sha256 of the files that a program could read: of all where nothing excludes any.
    fn read_by(
        &self,
        side: Side,
        variant: &Variant,
        artifact: &Artifact,
    ) -> Result<String, String> {
        if let Some(packed) = self.packed_files {
            return Ok(packed.to_owned());
        }
        let files = self.files_of(side)?;
        let by_compiler = matches!(variant.recipe, Recipe::Nvcc { .. });
        match known_bytes(artifact).filter(|_| by_compiler) {
            Some((_, program)) => files.sha256(variant, &program, artifact.sources.keys()),
            None => files.sha256_of_all(),
        }
    }

    fn files_of(&self, side: Side) -> Result<&ReadableFiles, String> {
        let files = self.files.iter().find(|(of, _)| *of == side);
        let (_, files) = files.ok_or("what it could read is not known")?;
        files.as_ref().map_err(Clone::clone)
    }
}

/// The variables of a run, without those that differ in every run.
fn environment(variant: &Variant) -> Vec<(OsString, OsString)> {
    let mut env = process::inherited();
    env.remove(&OsString::from("CUDA_VISIBLE_DEVICES"));
    let own = variant.env.iter();
    env.extend(own.map(|(name, value)| (name.into(), value.into())));
    // Names need not be texts, as those of a map must be.
    env.into_iter().collect()
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
    use crate::build::Witness;
    use crate::config::Config;
    use crate::hash::sha256_hex;
    use crate::measure::folder::difference;
    use crate::measure::key::same::{different_runs, same_artifact};
    use crate::measure::place::base::{BaseProject, BaseVariant};
    use crate::measure::run::built::Pair;

    const CONFIG: &str = "[metric.duration]\ncounter = \"gpu__time_duration.sum\"\n\
        direction = \"lower\"\ntolerance = '1 %'\n\
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
        packed: Option<&'static str>,
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
                packed: None,
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

        fn config(&self) -> Config {
            let path = Path::new(self.root).join("config.toml");
            Config::parse(&path, &self.config).unwrap()
        }

        fn variant(&self) -> Variant {
            self.config().variants().next().unwrap().clone()
        }

        /// What a run resumes by.
        fn key(&self) -> Result<Key, String> {
            let variant = self.variant();
            let project = BaseProject::of_program(self.config());
            let built = |artifact: &Artifact| {
                let witness = Witness::of(Path::new(self.root), artifact);
                (artifact.clone(), witness)
            };
            let base = self.base.as_ref().map(built);
            let base = base.map(|(artifact, witness)| BaseVariant {
                project: &project,
                config: project.config().unwrap(),
                variant: variant.clone(),
                artifact,
                witness,
            });
            let sides = Sides {
                variant: &variant,
                current: Some(built(&self.artifact)),
                base: base.map(Ok),
            };
            let files = [Side::Current, Side::Base].map(|side| (side, self.files()));
            self.keys(&files).measurement(&sides, self.memory_errors)
        }

        fn keys<'a>(&'a self, files: &'a [(Side, Result<ReadableFiles, String>)]) -> Keys<'a> {
            Keys {
                tool: self.tool,
                gpu: &self.gpu,
                profiler: (self.profiler.0, Some(&self.profiler.1)),
                overrides: &self.overrides,
                packed_files: self.packed,
                files,
            }
        }

        /// What a verification is recorded by.
        fn verification(&self) -> Option<String> {
            let files = [(Side::Base, self.files())];
            let keys = self.keys(&files);
            keys.verification(Side::Base, &self.variant(), &self.artifact)
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
        ("the build of sparsek-gate", [NO, YES], |it| {
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
        (SETTINGS, [NO, NO], |it| it.edit("'1 %'", "'2 %'")),
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
            it.base.as_mut().unwrap().compiler = None;
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
        // These hide others.
        let of_base: [Case; 2] = [
            ("its base", [NO, NO], |it| it.base = None),
            ("its base", [NO, NO], |it| {
                it.base.as_mut().unwrap().sha256 = Some("c".to_owned());
            }),
        ];
        for (number, (expected, _, change)) in CASES.into_iter().chain(of_base).enumerate() {
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

    #[test]
    fn what_programs_of_an_archive_could_read_is_all_that_it_has() {
        let key = |packed, files| {
            let mut parts = Parts::new()?;
            (parts.packed, parts.files) = (Some(packed), files);
            // There is no git that says what changed.
            assert!(files.is_ok() || parts.verification().is_none());
            Some(parts.key().unwrap())
        };
        if let Some(before) = key("a", Ok("files")) {
            let of = |packed| key(packed, Err("git cannot say it")).unwrap();
            assert_eq!(difference(&before, &of("a")), None);
            let found = difference(&before, &of("b")).unwrap();
            assert!(found.starts_with(FILES), "{found}");
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
    fn an_environment_is_another_one_by_any_byte_of_a_name_and_a_value() {
        let of = |env: &str| {
            let text = format!("[suite.s.variant.v]\nrun = [\"x\"]\nenv = {{ {env} }}\n");
            sha256_of(&environment(&crate::config::tests::variant(&text))).unwrap()
        };
        let one = of("A = \"1\"");
        assert_eq!(one, of("A = '1'"));
        for other in [
            "A = '\"1\"'", "A = '1', B = ''", "A = '1\", \"B\": \"'", "a = '1'",
        ] {
            assert_ne!(one, of(other), "{other}");
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
