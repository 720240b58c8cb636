//! What a run keeps of each variant for a run that resumes it.
//!
//! Of a variant whose measurement is complete a record is written last, beside its captures: what was
//! measured and found, the hashes of its files, and the key that says what it was. `--resume` takes the
//! variant over as a whole where the key is the same, and measures it otherwise.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::base::BaseVariant;
use super::bench::Bench;
use super::measured::Measured;
use super::order::Order;
use super::readable::{ReadableFiles, known_bytes};
use super::run_file::{MEASURED, RunFile};
use super::sides::Sides;
use super::verified::{environment, tool};
use crate::build::Artifact;
use crate::config::{Config, Recipe, Variant};
use crate::device::{FaultWatch, Gpu};
use crate::finding::{Code, Finding, Severity};
use crate::hash::{sha256_file, sha256_hex};
use crate::plan::Side;
use crate::terms::VariantId;

/// What makes two measurements of a variant the same one, by its name for people, each as sha256 of its
/// serialized value.
pub(super) type Key = BTreeMap<String, String>;

/// The part of a key with the files that a program could read.
const FILES: &str = "a file that it could read";

/// The part of a key with the other side.
const BASE: &str = "its base";

/// How the message ends of what an interrupted run found where a variant failed.
const FAILED_BEFORE: &str = " (in the interrupted run; not measured again)";

/// A variant that was taken over from an interrupted run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resumed {
    /// The variant.
    pub variant: VariantId,
    /// When the interrupted run began, RFC 3339, UTC.
    pub began: String,
}

/// What is kept of a variant.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    /// The run.
    pub run: String,
    /// The variant.
    pub variant: VariantId,
    /// `None` where it is not known what the measurement depends on.
    pub key: Option<Key>,
    /// The warnings about repetitions, one for each.
    pub retries: Vec<Finding>,
    /// `None` while it is measured.
    pub complete: Option<Complete>,
}

/// All that was measured and found of a variant.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Complete {
    pub measured: Measured,
    /// sha256 of each of its files, by the path from its folder.
    pub files: BTreeMap<PathBuf, String>,
}

impl Complete {
    /// How the variant failed, if it did.
    pub fn failure(&self, variant: &VariantId) -> Option<&Finding> {
        let mut profiles = self.measured.profiles.iter();
        let has_profile = profiles.any(|profile| profile.variant == *variant);
        // What its captures show is found in them again.
        self.measured.findings.iter().find(|one| {
            let denies = one.concerns(variant) && one.severity == Severity::Deny;
            denies && (!has_profile || one.code == Code::AlteredDuringRun)
        })
    }
}

/// What an interrupted run kept of a variant, as it was before a program of this run could write to it.
pub(super) struct Kept {
    record: Record,
    /// The file that is not what was kept, in words.
    unlike: Option<String>,
}

/// What is used of what an interrupted run kept of a variant.
#[derive(Default)]
pub(super) struct Resumption {
    /// All of it.
    pub complete: Option<Complete>,
    /// The repetitions that it had already.
    pub retries: Vec<Finding>,
    /// Why it is measured anew, where that must be said.
    pub why_not: Option<String>,
}

impl Kept {
    /// What a record says of the files in the folder of its variant.
    pub fn of(record: Record, folder: &Path) -> Kept {
        let mut files = record.complete.iter().flat_map(|complete| &complete.files);
        let unlike = files.find(|(name, sha256)| {
            let now = sha256_file(&folder.join(name)).ok();
            now.as_ref() != Some(*sha256)
        });
        let unlike = unlike
            .map(|(name, _)| format!("`{}` is not what the interrupted run wrote", name.display()));
        Kept { record, unlike }
    }

    /// What is used of it by a run that would measure what `now` is the key of.
    pub fn resumption(self, now: &Result<Key, String>) -> Resumption {
        let Record {
            variant,
            key: then,
            retries,
            complete,
            ..
        } = self.record;
        let failure = complete.as_ref().and_then(|one| one.failure(&variant));
        let then = then.ok_or("what it measured is not known");
        if let (Ok(then), Ok(now)) = (&then, now)
            && let Some(why) = difference(then, now)
        {
            let why = match failure {
                Some(failed) => format!(
                    "{why}; in the interrupted run it failed: {}",
                    failed.message
                ),
                None => why,
            };
            return Resumption {
                why_not: Some(why),
                ..Resumption::default()
            };
        }
        let why_not = match (&then, now) {
            // Also where nobody can know whether it is the same: it must not pass because it is
            // measured again.
            _ if failure.is_some() => None,
            (_, Err(why)) => Some(why.clone()),
            (Err(why), _) => Some((*why).to_owned()),
            (Ok(_), Ok(_)) => self.unlike,
        };
        Resumption {
            complete: complete.filter(|_| why_not.is_none()),
            retries,
            why_not,
        }
    }
}

/// What differs between two keys, for people; `None` where they are the same.
fn difference(then: &Key, now: &Key) -> Option<String> {
    let others = now
        .iter()
        .filter(|(name, value)| then.get(*name) != Some(value));
    // What is changed is mostly a file of the checkout, too.
    let other = others.min_by_key(|(name, _)| (*name == FILES, *name == BASE));
    other.map(|(name, _)| format!("{name} is another one now"))
}

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
            config: self.order.batch.config,
            variant: sides.variant,
            artifact,
            files: self.files_of(Side::Current),
        };
        let base = sides.base.as_ref().and_then(|base| base.as_ref().ok());
        let base = base.map(|base: &BaseVariant<'_>| KeyedSide {
            config: base.config,
            variant: &base.variant,
            artifact: &base.artifact,
            files: self.files_of(Side::Base),
        });
        KeyedMachine {
            tool: tool(),
            gpu: &self.bench.gpu,
            profiler: [&self.bench.ncu_version, &self.bench.libcupti],
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
    profiler: [&'a str; 2],
    overrides: &'a [String],
    /// The number of the GPU's memory errors. One that came between the two runs is no event of either.
    memory_errors: Option<[Option<u64>; 2]>,
}

/// One side of a variant that is about to be measured.
#[derive(Clone, Copy)]
struct KeyedSide<'a> {
    config: &'a Config,
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
        // The folder of the project may be another one, as that of the base is in every run.
        let root = self.config.root.display().to_string();
        let settings = serde_json::to_string(variant).map_err(|error| error.to_string())?;
        let settings = settings.replace(&root, ".");
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
                    Some((_, program)) => files.sha256(variant, &program, artifact.sources.keys()),
                    None => files.sha256_of_all(),
                }
            }
        };
        Ok(Key::from([
            part("its configuration", &settings)?,
            part("its program", &program)?,
            part(FILES, &files)?,
            part("a variable that it gets", &environment(variant))?,
        ]))
    }
}

/// A part of a key.
fn part(name: &str, value: &impl Serialize) -> Result<(String, String), String> {
    let text = serde_json::to_vec(value).map_err(|error| error.to_string())?;
    Ok((name.to_owned(), sha256_hex(&text)))
}

/// A finding of an interrupted run on a variant that stays failed.
pub(super) fn failed_before(finding: Finding) -> Finding {
    if finding.severity != Severity::Deny || finding.message.ends_with(FAILED_BEFORE) {
        return finding;
    }
    Finding {
        message: finding.message + FAILED_BEFORE,
        next: format!("{}; to measure it anew, run without --resume", finding.next),
        ..finding
    }
}

/// That a variant is not taken over from an interrupted run.
pub(super) fn not_resumed(variant: &VariantId, why: &str) -> Finding {
    let message = format!("all of it is measured in this run: {why}");
    Finding::deny(Code::Resumed, variant, message, MEASURED)
}

/// Which variants are taken over from an interrupted run.
pub(super) fn resumed(all: &[Resumed]) -> Option<Finding> {
    const MOST: usize = 5;
    let first = all.first()?;
    let names = all.iter().take(MOST).map(|one| one.variant.to_string());
    let mut names: Vec<String> = names.collect();
    if let Some(more @ 1..) = all.len().checked_sub(MOST) {
        names.push(format!("and {more} more"));
    }
    let message = format!(
        "the run that began at {} was interrupted, and what it measured of these variants is used: {}",
        first.began,
        names.join(", ")
    );
    let next = "nothing, if nobody could write to its files meanwhile; otherwise measure anew, without --resume";
    Some(Finding::of_project(Code::Resumed, message, next))
}

/// What becomes the record of a variant while it is measured; `None` where nobody can resume the run.
pub(super) type Recording<'a> = Option<(&'a RunFile, Record)>;

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "[metric.duration]\ncounter = \"gpu__time_duration.sum\"\n\
        direction = \"lower\"\ntolerance = { relative_percent = 1.0 }\n\
        [suite.s.variant.v]\nsource = \"v.cu\"\nargs = [\"1\"]\n";

    /// What a key is made of.
    struct Parts {
        config: String,
        root: &'static str,
        tool: Option<&'static str>,
        gpu: Gpu,
        profiler: [&'static str; 2],
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
                profiler: ["2025.3", "/lib/libcupti.so.13"],
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
                config: &config,
                variant,
                artifact,
                files: self.files.map(Readable::Packed),
            };
            let machine = KeyedMachine {
                tool: self.tool,
                gpu: &self.gpu,
                profiler: self.profiler,
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
            (PROFILER, |it| it.profiler[0] = "2025.4"),
            (PROFILER, |it| it.profiler[1] = "/lib/libcupti.so.12"),
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

    #[test]
    fn a_variant_is_taken_over_as_a_whole_or_not_at_all() {
        let variant: VariantId = "s/v".to_owned().try_into().unwrap();
        let key = |value: &str| Key::from([("its program".to_owned(), value.to_owned())]);
        let finding = |code| Finding::deny(code, &variant, "why", "next");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("capture-1.csv"), "1").unwrap();
        let used = |then: Option<Key>, now: Result<Key, String>, failed: bool, written: &str| {
            let measured = Measured {
                findings: failed
                    .then(|| finding(Code::WrongNumbers))
                    .into_iter()
                    .collect(),
                ..Measured::default()
            };
            let files = BTreeMap::from([("capture-1.csv".into(), sha256_hex(written.as_bytes()))]);
            let record = Record {
                run: String::new(),
                variant: variant.clone(),
                key: then,
                retries: vec![finding(Code::Retried)],
                complete: Some(Complete { measured, files }),
            };
            let used = Kept::of(record, folder.path()).resumption(&now);
            let retries = used.retries.len();
            (
                used.complete.is_some(),
                retries,
                used.why_not.unwrap_or_default(),
            )
        };
        let (a, b) = (|| Some(key("a")), || Ok(key("b")));
        let unknown = || Err("no git".to_owned());
        let other = "its program is another one now";
        let is = |complete, retries, why: &str| (complete, retries, why.to_owned());
        assert_eq!(used(a(), Ok(key("a")), false, "1"), is(true, 1, ""));
        assert_eq!(used(a(), b(), false, "1"), is(false, 0, other));
        let unlike = "`capture-1.csv` is not what the interrupted run wrote";
        assert_eq!(used(a(), Ok(key("a")), false, "2"), is(false, 1, unlike));
        assert_eq!(used(a(), unknown(), false, "1"), is(false, 1, "no git"));
        let lacking = "what it measured is not known";
        assert_eq!(used(None, b(), false, "1"), is(false, 1, lacking));
        // A variant that failed stays failed, unless it is known to be another one now.
        for now in [Ok(key("a")), unknown()] {
            assert_eq!(used(a(), now, true, "2"), is(true, 1, ""));
        }
        assert_eq!(used(None, b(), true, "2"), is(true, 1, ""));
        let failed = format!("{other}; in the interrupted run it failed: why");
        assert_eq!(used(a(), b(), true, "1"), is(false, 0, &failed));
    }
}
