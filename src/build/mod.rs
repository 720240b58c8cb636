//! Variant to artifact: a content-addressed cache of builds.
//!
//! A key covers the compiler, the host compiler, every flag, the source, and every header that
//! the last build included. The list of headers is kept per source and flags; it can only be
//! stale if one of the files in it changed, and then the key changes too.

mod argv;
mod depfile;
mod inputs;
pub mod place;
mod static_profile;

pub(crate) use argv::{filled_argv, program_argv};
pub use static_profile::compiled_profile;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};

use crate::binary::{self, BinaryError, Census, Compiled, compiler_warnings, resource_report};
use crate::config::{Config, Recipe, Toolchain, Variant};
use crate::files::{create_work_folder, write_atomically};
use crate::finding::{Code, Error, Finding};
use crate::hash::{sha256_file, sha256_hex};
use crate::process::{self, Ending, Invocation};
use crate::toolchain::{Nvcc, Nvdisasm, nvcc_flags};

/// Longest a build may take.
const BUILD_TIMEOUT: Duration = Duration::from_secs(3600);

/// Raised where what is read of a build, and kept beside it, becomes another.
const READ_AS: u32 = 2;

/// What a build made.
#[derive(Clone, Debug)]
pub struct Artifact {
    /// The program and its fixed arguments.
    pub run: Vec<String>,
    /// Version of the compiler, where this tool called it.
    pub compiler: Option<String>,
    /// sha256 of the program, where there is one file.
    pub sha256: Option<String>,
    /// Argv of the build, without paths of this machine.
    pub build_argv: Vec<String>,
    /// Path below the configuration to sha256, of the source and each header.
    pub sources: BTreeMap<String, String>,
    /// The kernels as compiled, where this tool called the compiler.
    pub compiled: Option<Compiled>,
    /// Whether an earlier build served.
    pub cached: bool,
}

/// An artifact, or why there is none.
pub type Built = Result<Artifact, Finding>;

/// What is kept beside a built program.
#[derive(Serialize, Deserialize)]
struct Manifest {
    program_sha256: String,
    sources: BTreeMap<String, String>,
    compiled: Compiled,
}

/// Builds variants.
#[derive(Debug)]
pub struct Builder<'a> {
    config: &'a Config,
    /// Looked for only if a variant needs it.
    nvcc: Option<Nvcc>,
    nvdisasm: Option<Nvdisasm>,
}

impl<'a> Builder<'a> {
    /// A builder for these variants. nvcc is looked for only if one of them needs it.
    ///
    /// # Errors
    /// [`Error::Environment`] where nvcc is needed and missing, or not as pinned.
    pub fn new(config: &'a Config, variants: &[&Variant]) -> Result<Self, Error> {
        let needed = variants.iter().any(|variant| variant.needs_nvcc());
        let nvcc = needed
            .then(|| Nvcc::locate(&config.toolchain, &config.work))
            .transpose()?;
        if let Some(nvcc) = &nvcc {
            let pin = config.toolchain.pins.cuda(&nvcc.version);
            config.toolchain.enforce(&config.path, pin.as_slice())?;
        }
        let nvdisasm = nvcc
            .as_ref()
            .and_then(|nvcc| Nvdisasm::locate(&nvcc.root(), &config.work));
        Ok(Builder {
            config,
            nvcc,
            nvdisasm,
        })
    }

    /// Builds all of them, as many at a time as there are processors, in the order given.
    /// `done` hears of each as it ends.
    ///
    /// # Errors
    /// [`Error`] where the machine failed; a variant that does not build is a finding.
    pub fn build_all(
        &self,
        variants: &[&Variant],
        done: &(dyn Fn(&Variant, &Built) + Sync),
    ) -> Result<Vec<Built>, Error> {
        let workers = std::thread::available_parallelism()
            .map_or(1, usize::from)
            .min(variants.len());
        let next = AtomicUsize::new(0);
        let results: Mutex<Vec<Option<Result<Built, Error>>>> =
            Mutex::new(variants.iter().map(|_| None).collect());
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    while let Some((index, variant)) = {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        variants.get(index).map(|variant| (index, *variant))
                    } {
                        let result = self.build(variant);
                        if let Ok(result) = &result {
                            done(variant, result);
                        }
                        if let Ok(mut results) = results.lock() {
                            results[index] = Some(result);
                        }
                    }
                });
            }
        });
        let results = results
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        results
            .into_iter()
            .map(|result| result.unwrap_or(Err(Error::Interrupted)))
            .collect()
    }

    fn build(&self, variant: &Variant) -> Result<Built, Error> {
        match (&variant.recipe, &self.nvcc) {
            (
                Recipe::Nvcc {
                    source,
                    flags,
                    defines,
                },
                Some(nvcc),
            ) => self.build_nvcc(variant, nvcc, source, flags, defines),
            (Recipe::Nvcc { .. }, None) => {
                Err(Error::Usage(format!("{} was not planned for", variant.id)))
            }
            (Recipe::Command { build, run, inputs }, _) => {
                self.build_command(variant, build.as_deref(), run, inputs)
            }
        }
    }

    fn build_nvcc(
        &self,
        variant: &Variant,
        nvcc: &Nvcc,
        source: &str,
        flags: &[String],
        defines: &BTreeMap<String, String>,
    ) -> Result<Built, Error> {
        let root = &self.config.root;
        let toolchain = &self.config.toolchain;
        if !root.join(source).is_file() {
            return Ok(Err(Finding::deny(
                Code::BuildFailed,
                &variant.id,
                format!("the source `{source}` does not exist"),
                format!(
                    "check `source` of {} in {}",
                    variant.id,
                    self.config.path.display()
                ),
            )));
        }
        let stated = nvcc_flags(toolchain, flags, defines);
        let named = match inputs::named_by_flags(root, &stated) {
            Ok(named) => named,
            Err(why) => {
                return Ok(Err(Finding::deny(
                    Code::BuildFailed,
                    &variant.id,
                    why,
                    format!(
                        "change `flags` of {} in {}",
                        variant.id,
                        self.config.path.display()
                    ),
                )));
            }
        };
        create_work_folder(&self.config.work)?;
        let store = self.config.work.join("builds");
        fs::create_dir_all(&store).map_err(Error::io("create", &store))?;
        if let Some(artifact) = self.known(nvcc, source, flags, defines) {
            return Ok(Ok(artifact));
        }
        let base = self.base_key(nvcc, &stated, source);
        let headers_file = headers_file(&store, &base);

        let scratch = tempfile::Builder::new()
            .prefix(".building-")
            .tempdir_in(&store)
            .map_err(Error::io("create", &store))?;
        let depfile = scratch.path().join("headers.d");
        let program = scratch.path().join("program");
        let log = scratch.path().join("build.log");
        let kept = tempfile::Builder::new()
            .prefix(".keeping-")
            .tempdir_in(&store)
            .map_err(Error::io("create", &store))?;
        let mut argv = nvcc.argv(toolchain, flags, defines);
        let mut by_hand = argv.clone();
        by_hand.extend(["-o", &variant.id.variant, source].map(str::to_owned));
        argv.extend(Nvcc::output(&program, &depfile, kept.path()));
        argv.push(source.to_owned());
        let run = Invocation {
            argv,
            dir: root.clone(),
            env: BTreeMap::new(),
            timeout: BUILD_TIMEOUT,
            stdout: log.clone(),
            stderr: log.clone(),
        };
        // Written now, by the same clock that stamps the sources.
        fs::write(&log, "").map_err(Error::io("write", &log))?;
        let start = changed_at(&log).map_err(Error::io("read", &log))?;
        if let Err(finding) = run_build(variant, &run, &by_hand)? {
            return Ok(Err(finding));
        }
        if !program.is_file() || !depfile.is_file() {
            return Ok(Err(Finding::deny(
                Code::BuildFailed,
                &variant.id,
                "nvcc succeeded, and made no program".to_owned(),
                format!(
                    "see that none of the flags of {} keeps it from linking one",
                    variant.id
                ),
            )));
        }
        let mut files = depfile::prerequisites(
            &fs::read_to_string(&depfile).map_err(Error::io("read", &depfile))?,
        );
        files.push(source.to_owned());
        files.extend(named);
        let toolkit = nvcc.root();
        let mut files: Vec<String> = files
            .iter()
            .filter(|file| !inputs::is_machines(&root.join(file), &toolkit))
            .map(|file| below(root, file))
            .collect();
        files.sort();
        files.dedup();
        let rivals = inputs::rivals(root, &stated, &files);
        let key = build_key(root, &base, &files, &rivals);
        // Asked after the content was hashed: what was saved after the compiler read it must not
        // pass for what was compiled.
        let moved = files
            .iter()
            .find(|file| !changed_at(&root.join(file)).is_ok_and(|time| time <= start));
        let (Some(key), None) = (key, moved) else {
            return Ok(Err(Finding::deny(
                Code::BuildFailed,
                &variant.id,
                format!(
                    "`{}` changed while it was being compiled",
                    moved.map_or(source, String::as_str)
                ),
                "run the build again",
            )));
        };
        let text =
            String::from_utf8_lossy(&fs::read(&log).map_err(Error::io("read", &log))?).into_owned();
        let compiled = match self.look_into(&text, kept.path())? {
            Ok(compiled) => compiled,
            Err(error) => {
                return Ok(Err(Finding::deny(
                    Code::BuildFailed,
                    &variant.id,
                    format!("what was built cannot be looked into: {error}"),
                    format!(
                        "see that `{}` builds for {}, and that nvcc and nvdisasm belong together",
                        variant.id, toolchain.arch
                    ),
                )
                .detail(text)));
            }
        };
        let manifest = Manifest {
            program_sha256: sha256_file(&program).map_err(Error::io("read", &program))?,
            // Files outside the project are part of the key; only the project's own are its sources.
            sources: files
                .iter()
                .filter(|file| !Path::new(file).is_absolute())
                .map(|file| {
                    Ok((
                        file.clone(),
                        sha256_file(&root.join(file))
                            .map_err(Error::io("read", root.join(file)))?,
                    ))
                })
                .collect::<Result<_, Error>>()?,
            compiled,
        };
        let manifest_path = scratch.path().join("manifest.json");
        fs::write(&manifest_path, json(&manifest)).map_err(Error::io("write", &manifest_path))?;
        write_atomically(&headers_file, &json(&files))
            .map_err(Error::io("write", &headers_file))?;
        let place = store.join(&key);
        if fs::rename(scratch.path(), &place).is_ok() {
            // Moved: nothing is left to clear.
            let _ = scratch.keep();
        } else if let Some(artifact) = self.cached(nvcc, &place, &stated, source) {
            // Another process made the same build meanwhile, and may be running it.
            return Ok(Ok(Artifact {
                cached: false,
                ..artifact
            }));
        } else {
            take_place(scratch, &place)?;
        }
        let artifact =
            self.cached(nvcc, &place, &stated, source)
                .ok_or_else(|| Error::Environment {
                    what: format!(
                        "the build of {} vanished from {}",
                        variant.id,
                        place.display()
                    ),
                    next: "check that nothing else cleans that folder, and run again".to_owned(),
                })?;
        Ok(Ok(Artifact {
            cached: false,
            ..artifact
        }))
    }

    /// The artifact of an earlier build of the same, if there is one.
    fn known(
        &self,
        nvcc: &Nvcc,
        source: &str,
        flags: &[String],
        defines: &BTreeMap<String, String>,
    ) -> Option<Artifact> {
        let store = self.config.work.join("builds");
        let stated = nvcc_flags(&self.config.toolchain, flags, defines);
        let base = self.base_key(nvcc, &stated, source);
        let headers = fs::read(headers_file(&store, &base)).ok()?;
        let files: Vec<String> = serde_json::from_slice(&headers).ok()?;
        let rivals = inputs::rivals(&self.config.root, &stated, &files);
        let key = build_key(&self.config.root, &base, &files, &rivals)?;
        self.cached(nvcc, &store.join(key), &stated, source)
    }

    /// What decides what comes out, besides the content of files.
    fn base_key(&self, nvcc: &Nvcc, stated: &[String], source: &str) -> String {
        let disassembler = self.nvdisasm.as_ref().map_or("", |tool| &tool.version);
        let text = format!(
            "{READ_AS}\n{}{disassembler}\n{stated:?}\n{source}",
            nvcc.fingerprint()
        );
        sha256_hex(text.as_bytes())
    }

    /// The kernels of a build from the compiler's log and the folder of what it kept.
    fn look_into(&self, log: &str, kept: &Path) -> Result<Result<Compiled, BinaryError>, Error> {
        let arch = &self.config.toolchain.arch;
        let cubins = cubins_in(kept, arch).map_err(Error::io("read", kept))?;
        let census = match self.census(&cubins)? {
            Ok(census) => census,
            Err(error) => return Ok(Err(error)),
        };
        Ok(binary::compiled(
            &resource_report(log, arch),
            compiler_warnings(log),
            &cubins,
            census.as_ref(),
        ))
    }

    /// The instructions of the kernels; `None` where there is no disassembler, or none that reads
    /// this code: some versions crash on code that is not linked yet.
    fn census(&self, cubins: &[PathBuf]) -> Result<Result<Option<Census>, BinaryError>, Error> {
        let Some(nvdisasm) = &self.nvdisasm else {
            return Ok(Ok(None));
        };
        let mut census = Census::new();
        for cubin in cubins {
            let json = match nvdisasm.disassemble(cubin) {
                Ok(json) => json,
                Err(Error::Environment { .. }) if !process::interrupted() => return Ok(Ok(None)),
                Err(error) => return Err(error),
            };
            match binary::census(json.as_bytes()) {
                Ok(counted) => census.extend(counted),
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(Some(census)))
    }

    /// The artifact in a folder of the cache, if it is whole.
    fn cached(
        &self,
        nvcc: &Nvcc,
        place: &Path,
        stated: &[String],
        source: &str,
    ) -> Option<Artifact> {
        let manifest: Manifest =
            serde_json::from_slice(&fs::read(place.join("manifest.json")).ok()?).ok()?;
        let program = place.join("program");
        if sha256_file(&program).ok()? != manifest.program_sha256 {
            return None;
        }
        let mut build_argv = vec!["nvcc".to_owned()];
        build_argv.extend(stated.iter().cloned());
        build_argv.push(source.to_owned());
        Some(Artifact {
            run: vec![program.display().to_string()],
            compiler: Some(nvcc.version.clone()),
            sha256: Some(manifest.program_sha256),
            build_argv,
            sources: manifest.sources,
            compiled: Some(manifest.compiled),
            cached: true,
        })
    }

    fn build_command(
        &self,
        variant: &Variant,
        build: Option<&[String]>,
        run: &[String],
        inputs: &[String],
    ) -> Result<Built, Error> {
        let root = &self.config.root;
        create_work_folder(&self.config.work)?;
        if let Some(argv) = build {
            let folder = self.config.work.join("builds");
            fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
            let log = folder.join(format!("{}.{}.log", variant.id.suite, variant.id.variant));
            let invocation = Invocation {
                argv: argv.to_vec(),
                dir: root.clone(),
                env: variant.env.clone(),
                timeout: BUILD_TIMEOUT,
                stdout: log.clone(),
                stderr: log,
            };
            if let Err(finding) = run_build(variant, &invocation, argv)? {
                return Ok(Err(finding));
            }
        }
        let mut sources = BTreeMap::new();
        for input in inputs {
            match sha256_file(&root.join(input)) {
                Ok(hash) => {
                    sources.insert(input.clone(), hash);
                }
                Err(error) => {
                    return Ok(Err(Finding::deny(
                        Code::BuildFailed,
                        &variant.id,
                        format!("the input `{input}` cannot be read: {error}"),
                        format!(
                            "check `inputs` of {} in {}",
                            variant.id,
                            self.config.path.display()
                        ),
                    )));
                }
            }
        }
        Ok(Ok(Artifact {
            run: run.to_vec(),
            compiler: None,
            sha256: None,
            build_argv: build.map(<[String]>::to_vec).unwrap_or_default(),
            sources,
            compiled: None,
            cached: build.is_none(),
        }))
    }
}

/// The program of a variant as it is now, where it was built before; nothing is built.
pub fn built_program(config: &Config, nvcc: &Nvcc, variant: &Variant) -> Option<PathBuf> {
    let Recipe::Nvcc {
        source,
        flags,
        defines,
    } = &variant.recipe
    else {
        return None;
    };
    let builder = Builder {
        config,
        nvcc: None,
        nvdisasm: Nvdisasm::locate(&nvcc.root(), &config.work),
    };
    let artifact = builder.known(nvcc, source, flags, defines)?;
    artifact.run.first().map(PathBuf::from)
}

/// Where the list of the headers of a build is kept.
fn headers_file(store: &Path, base: &str) -> PathBuf {
    store.join(format!("{}.headers.json", &base[..32]))
}

/// The cubins that nvcc kept, for the target where it built for several. Where the kernels were
/// linked in a step of their own, what was linked is what runs.
fn cubins_in(folder: &Path, arch: &str) -> std::io::Result<Vec<PathBuf>> {
    let mut cubins = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "cubin") {
            cubins.push(path);
        }
    }
    let stem = |path: &Path| {
        let stem = path.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    };
    // Built for several targets, they are named after the virtual one.
    let target = format!(".{}", arch.replacen("sm_", "compute_", 1));
    if cubins.iter().any(|path| stem(path).ends_with(&target)) {
        cubins.retain(|path| stem(path).ends_with(&target));
    }
    cubins.sort();
    let linked = |path: &Path| stem(path).trim_end_matches(&target).ends_with("_dlink");
    let mut with_kernels = Vec::new();
    for path in cubins {
        let holds = binary::holds_kernels(&fs::read(&path)?);
        if holds {
            with_kernels.push(path);
        }
    }
    if with_kernels.iter().any(|path| linked(path)) {
        with_kernels.retain(|path| linked(path));
    }
    Ok(with_kernels)
}

/// Puts a build where a damaged one lies, in one step where the filesystem can: whoever looks there
/// meanwhile finds one of the two.
fn take_place(scratch: tempfile::TempDir, place: &Path) -> Result<(), Error> {
    if renameat_with(CWD, scratch.path(), CWD, place, RenameFlags::EXCHANGE).is_ok() {
        return Ok(());
    }
    let _ = fs::remove_dir_all(place);
    fs::rename(scratch.path(), place).map_err(Error::io("write", place))?;
    let _ = scratch.keep();
    Ok(())
}

/// Runs a build. `by_hand` is the command that people can run to see the same.
fn run_build(
    variant: &Variant,
    run: &Invocation,
    by_hand: &[String],
) -> Result<Result<(), Finding>, Error> {
    let line = process::shell_line(by_hand);
    let finished = match run.run() {
        Ok(finished) => finished,
        Err(error) => {
            return Ok(Err(Finding::deny(
                Code::BuildFailed,
                &variant.id,
                format!("the build could not be started: {error}"),
                format!("run it by hand: {line}"),
            )));
        }
    };
    match finished.ending {
        Ending::Exited(0) => Ok(Ok(())),
        Ending::Interrupted => Err(Error::Interrupted),
        ending => {
            let log = fs::read(&run.stdout).unwrap_or_default();
            Ok(Err(Finding::deny(
                Code::BuildFailed,
                &variant.id,
                format!("the build ended with {ending}"),
                format!("mend the source, or run it by hand: {line}"),
            )
            .detail(String::from_utf8_lossy(&log))))
        }
    }
}

/// When the content of a file last changed, or its name or mode: what `touch` cannot set back.
fn changed_at(path: &Path) -> std::io::Result<(i64, i64)> {
    use std::os::unix::fs::MetadataExt;
    let meta = fs::metadata(path)?;
    Ok((meta.ctime(), meta.ctime_nsec()))
}

/// The key of a build from the content of all its files, and the names of those that could be found
/// in their place; `None` where one cannot be read.
fn build_key(
    root: &Path,
    base: &str,
    files: &[String],
    rivals: &BTreeSet<String>,
) -> Option<String> {
    let mut text = format!("{base}\n{rivals:?}");
    for file in files {
        text.push_str(&format!("\n{file} {}", sha256_file(&root.join(file)).ok()?));
    }
    Some(sha256_hex(text.as_bytes())[..32].to_owned())
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // Text keys and finite numbers only, so this cannot fail.
    serde_json::to_vec_pretty(value).unwrap_or_default()
}

/// A path as seen from the root, with `..` resolved where it stays below the root.
fn below(root: &Path, file: &str) -> String {
    let mut parts: Vec<std::ffi::OsString> = Vec::new();
    let path = Path::new(file);
    let path = path.strip_prefix(root).unwrap_or(path);
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir if parts.last().is_some_and(|last| last != "..") => {
                parts.pop();
            }
            other => parts.push(other.as_os_str().to_owned()),
        }
    }
    parts.iter().collect::<PathBuf>().display().to_string()
}

/// A variant's flags as its lock names them: no path of a machine, no version of a compiler.
pub fn stated_flags(toolchain: &Toolchain, variant: &Variant) -> Vec<String> {
    match &variant.recipe {
        Recipe::Nvcc { flags, defines, .. } => nvcc_flags(toolchain, flags, defines),
        Recipe::Command { build, run, .. } => build.iter().flatten().chain(run).cloned().collect(),
    }
}
