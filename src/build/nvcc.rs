//! Builds a variant from its source by nvcc, and keeps the build under the hash of everything that
//! decided it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::artifact::Artifact;
use super::cubins::cubins_in;
use super::run::{BUILD_TIMEOUT, run_build};
use super::{depfile, inputs};
use crate::binary::{self, BinaryError, Census, Compiled, compiler_warnings, resource_report};
use crate::config::{Config, Recipe, Variant};
use crate::files::{create_work_folder, write_atomically};
use crate::finding::{Code, Error, Finding, Stop};
use crate::hash::{sha256_file, sha256_hex};
use crate::process::{self, Invocation};
use crate::toolchain::{Nvcc, Nvdisasm, nvcc_flags};

/// Part of every key. It is raised when a [`Manifest`] gets another content.
const MANIFEST_VERSION: u32 = 2;

/// What is kept beside a built program.
#[derive(Serialize, Deserialize)]
struct Manifest {
    program_sha256: String,
    sources: BTreeMap<String, String>,
    compiled: Compiled,
}

/// The build of one variant.
pub(super) struct NvccBuild<'a> {
    config: &'a Config,
    variant: &'a Variant,
    nvcc: &'a Nvcc,
    nvdisasm: Option<&'a Nvdisasm>,
    source: &'a str,
    flags: &'a [String],
    defines: &'a BTreeMap<String, String>,
    /// All flags, without paths of this machine.
    stated: Vec<String>,
    /// The folder of all builds.
    store: PathBuf,
    /// Hash of what decides the result, besides the content of files.
    base_key: String,
}

/// When the content of a file last changed, or its name or mode: what `touch` cannot set back.
type ChangeTime = (i64, i64);

/// The folders of one compilation. They are removed unless the build goes into the store.
struct Scratch {
    build: TempDir,
    /// Where nvcc leaves the cubins.
    kept: TempDir,
}

impl Scratch {
    fn in_store(store: &Path) -> Result<Scratch, Error> {
        let folder = |prefix| {
            let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(store);
            folder.map_err(Error::io("create", store))
        };
        Ok(Scratch {
            build: folder(".building-")?,
            kept: folder(".keeping-")?,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.build.path().join(name)
    }

    fn program(&self) -> PathBuf {
        self.path("program")
    }

    fn depfile(&self) -> PathBuf {
        self.path("headers.d")
    }

    fn log(&self) -> PathBuf {
        self.path("build.log")
    }
}

impl<'a> NvccBuild<'a> {
    /// The build of a variant; `None` where nvcc does not build it.
    pub(super) fn of(
        config: &'a Config,
        variant: &'a Variant,
        nvcc: &'a Nvcc,
        nvdisasm: Option<&'a Nvdisasm>,
    ) -> Option<NvccBuild<'a>> {
        let Recipe::Nvcc {
            source,
            flags,
            defines,
        } = &variant.recipe
        else {
            return None;
        };
        let stated = nvcc_flags(&config.toolchain, flags, defines);
        let disassembler = nvdisasm.map_or("", |tool| &tool.version);
        let text = format!(
            "{MANIFEST_VERSION}\n{}{disassembler}\n{stated:?}\n{source}",
            nvcc.fingerprint()
        );
        Some(NvccBuild {
            config,
            variant,
            nvcc,
            nvdisasm,
            source,
            flags,
            defines,
            stated,
            store: config.work.join("builds"),
            base_key: sha256_hex(text.as_bytes()),
        })
    }

    /// Builds the variant, unless the same was built before.
    pub(super) fn build(&self) -> Result<Artifact, Stop> {
        if !self.config.root.join(self.source).is_file() {
            let message = format!("the source `{}` does not exist", self.source);
            return Err(self.failed(message, self.check_setting("source")).into());
        }
        let named = inputs::named_by_flags(&self.config.root, &self.stated)
            .map_err(|why| self.failed(why, self.check_setting("flags")))?;
        create_work_folder(&self.config.work)?;
        fs::create_dir_all(&self.store).map_err(Error::io("create", &self.store))?;
        if let Some(artifact) = self.cached() {
            return Ok(artifact);
        }
        let scratch = Scratch::in_store(&self.store)?;
        let started = self.compile(&scratch)?;
        let files = self.files(&scratch.depfile(), named)?;
        let key = self.key_of_unchanged(&files, started)?;
        let manifest = Manifest {
            compiled: self.kernels(&scratch)?,
            program_sha256: hash_of(&scratch.program())?,
            sources: self.sources(&files)?,
        };
        let path = scratch.path("manifest.json");
        fs::write(&path, json(&manifest)).map_err(Error::io("write", &path))?;
        let headers = self.headers_file();
        write_atomically(&headers, &json(&files)).map_err(Error::io("write", &headers))?;
        let folder = self.store.join(key);
        self.put(scratch.build, &folder)?;
        let artifact = self
            .artifact_in(&folder)
            .ok_or_else(|| Error::Environment {
                what: format!(
                    "the build of {} vanished from {}",
                    self.variant.id,
                    folder.display()
                ),
                next: "check that nothing else cleans that folder, and run again".to_owned(),
            })?;
        Ok(Artifact {
            cached: false,
            ..artifact
        })
    }

    /// The artifact of an earlier build of the same, where there is one.
    pub(super) fn cached(&self) -> Option<Artifact> {
        let headers = fs::read(self.headers_file()).ok()?;
        let files: Vec<String> = serde_json::from_slice(&headers).ok()?;
        self.artifact_in(&self.store.join(self.key(&files)?))
    }

    /// Where the list of the headers of this build is kept.
    fn headers_file(&self) -> PathBuf {
        self.store
            .join(format!("{}.headers.json", &self.base_key[..32]))
    }

    /// Compiles, and returns the time before the compiler started.
    fn compile(&self, scratch: &Scratch) -> Result<ChangeTime, Stop> {
        let (program, depfile, log) = (scratch.program(), scratch.depfile(), scratch.log());
        let mut argv = self
            .nvcc
            .argv(&self.config.toolchain, self.flags, self.defines);
        let mut by_hand = argv.clone();
        by_hand.extend(["-o", &self.variant.id.variant, self.source].map(str::to_owned));
        argv.extend(Nvcc::output(&program, &depfile, scratch.kept.path()));
        argv.push(self.source.to_owned());
        let run = Invocation {
            argv,
            dir: self.config.root.clone(),
            env: Nvcc::environment(),
            timeout: BUILD_TIMEOUT,
            stdout: log.clone(),
            stderr: log.clone(),
        };
        // Written now, by the same clock that stamps the sources.
        fs::write(&log, "").map_err(Error::io("write", &log))?;
        let started = changed_at(&log).map_err(Error::io("read", &log))?;
        run_build(self.variant, &run, &by_hand)?;
        if program.is_file() && depfile.is_file() {
            return Ok(started);
        }
        let next = format!(
            "remove the flag of {} that keeps nvcc from linking a program",
            self.variant.id
        );
        let message = "nvcc succeeded, but it made no program".to_owned();
        Err(self.failed(message, next).into())
    }

    /// Every file that the program was made of, besides those of the toolkit and the system.
    fn files(&self, depfile: &Path, named: Vec<String>) -> Result<Vec<String>, Error> {
        let root = &self.config.root;
        let text = fs::read_to_string(depfile).map_err(Error::io("read", depfile))?;
        let mut files = depfile::prerequisites(&text);
        files.push(self.source.to_owned());
        files.extend(named);
        let toolkit = self.nvcc.root();
        let own = files
            .iter()
            .filter(|file| !inputs::of_toolkit_or_host(&root.join(file), &toolkit));
        let own: BTreeSet<String> = own.map(|file| below(root, file)).collect();
        Ok(own.into_iter().collect())
    }

    /// The key of the build, if none of its files changed since it started.
    fn key_of_unchanged(&self, files: &[String], started: ChangeTime) -> Result<String, Finding> {
        let key = self.key(files);
        // Asked after the content was hashed: what was saved after the compiler read it must not
        // pass for what was compiled.
        let changed = files.iter().find(|file| {
            let path = self.config.root.join(file);
            !changed_at(&path).is_ok_and(|time| time <= started)
        });
        key.filter(|_| changed.is_none()).ok_or_else(|| {
            let file = changed.map_or(self.source, String::as_str);
            let message = format!("`{file}` changed while it was being compiled");
            self.failed(message, "run the build again".to_owned())
        })
    }

    /// The key of a build from the content of all its files, and the names of those that could be
    /// found in their place; `None` where one cannot be read.
    fn key(&self, files: &[String]) -> Option<String> {
        let root = &self.config.root;
        let rivals = inputs::rivals(root, &self.stated, files);
        let mut text = format!("{}\n{rivals:?}", self.base_key);
        for file in files {
            text.push_str(&format!("\n{file} {}", sha256_file(&root.join(file)).ok()?));
        }
        Some(sha256_hex(text.as_bytes())[..32].to_owned())
    }

    /// The kernels of a build, from the compiler's log and the cubins that it kept.
    fn kernels(&self, scratch: &Scratch) -> Result<Compiled, Stop> {
        let (kept, log) = (scratch.kept.path(), scratch.log());
        let text = fs::read(&log).map_err(Error::io("read", &log))?;
        let text = String::from_utf8_lossy(&text);
        let arch = &self.config.toolchain.arch;
        let unreadable = |error: BinaryError| {
            let next = format!(
                "check that `{}` builds for {arch}, and install nvcc and nvdisasm of one toolkit",
                self.variant.id
            );
            let message = format!("the kernels of the build cannot be read: {error}");
            self.failed(message, next).detail(text.as_ref())
        };
        let cubins = cubins_in(kept, arch).map_err(Error::io("read", kept))?;
        let census = self.census(&cubins, unreadable)?;
        let (resources, warnings) = (resource_report(&text, arch), compiler_warnings(&text));
        let compiled = binary::compiled(&resources, warnings, &cubins, census.as_ref());
        Ok(compiled.map_err(unreadable)?)
    }

    /// The instructions of the kernels; `None` where there is no disassembler, or none that reads
    /// this code: some versions crash on code that is not linked yet.
    fn census(
        &self,
        cubins: &[PathBuf],
        unreadable: impl Fn(BinaryError) -> Finding,
    ) -> Result<Option<Census>, Stop> {
        let Some(nvdisasm) = self.nvdisasm else {
            return Ok(None);
        };
        let mut census = Census::new();
        for cubin in cubins {
            let json = match nvdisasm.disassemble(cubin) {
                Ok(json) => json,
                Err(Error::Environment { .. }) if !process::interrupted() => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            census.extend(binary::census(json.as_bytes()).map_err(&unreadable)?);
        }
        Ok(Some(census))
    }

    /// The hashes of the project's own files. Others are part of the key, but not of the sources.
    fn sources(&self, files: &[String]) -> Result<BTreeMap<String, String>, Error> {
        let own = files.iter().filter(|file| !Path::new(file).is_absolute());
        own.map(|file| Ok((file.clone(), hash_of(&self.config.root.join(file))?)))
            .collect()
    }

    /// Moves a build to its place in the store.
    fn put(&self, build: TempDir, place: &Path) -> Result<(), Error> {
        if fs::rename(build.path(), place).is_ok() {
            // Moved: nothing is left to clear.
            let _ = build.keep();
            return Ok(());
        }
        // Another process made the same build meanwhile, and may be running it.
        if self.artifact_in(place).is_some() {
            return Ok(());
        }
        replace_damaged(build, place)
    }

    fn failed(&self, message: String, next: String) -> Finding {
        Finding::deny(Code::BuildFailed, &self.variant.id, message, next)
    }

    fn check_setting(&self, name: &str) -> String {
        let (variant, config) = (&self.variant.id, self.config.path.display());
        format!("check `{name}` of {variant} in {config}")
    }

    /// The artifact in a folder of the store, if it is whole.
    fn artifact_in(&self, folder: &Path) -> Option<Artifact> {
        let manifest = fs::read(folder.join("manifest.json")).ok()?;
        let manifest: Manifest = serde_json::from_slice(&manifest).ok()?;
        let program = folder.join("program");
        if sha256_file(&program).ok()? != manifest.program_sha256 {
            return None;
        }
        let mut build_argv = vec!["nvcc".to_owned()];
        build_argv.extend(self.stated.iter().cloned());
        build_argv.push(self.source.to_owned());
        Some(Artifact {
            run: vec![program.display().to_string()],
            compiler: Some(self.nvcc.version.clone()),
            sha256: Some(manifest.program_sha256),
            started: BTreeMap::new(),
            build_argv,
            sources: manifest.sources,
            compiled: Some(manifest.compiled),
            cached: true,
        })
    }
}

/// Replaces a damaged build, in one step where the filesystem can: a reader finds one of the two.
fn replace_damaged(build: TempDir, place: &Path) -> Result<(), Error> {
    if renameat_with(CWD, build.path(), CWD, place, RenameFlags::EXCHANGE).is_ok() {
        return Ok(());
    }
    let _ = fs::remove_dir_all(place);
    fs::rename(build.path(), place).map_err(Error::io("write", place))?;
    let _ = build.keep();
    Ok(())
}

fn changed_at(path: &Path) -> io::Result<ChangeTime> {
    use std::os::unix::fs::MetadataExt;
    let meta = fs::metadata(path)?;
    Ok((meta.ctime(), meta.ctime_nsec()))
}

fn hash_of(path: &Path) -> Result<String, Error> {
    sha256_file(path).map_err(Error::io("read", path))
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // Text keys and finite numbers only, so this cannot fail.
    serde_json::to_vec_pretty(value).unwrap_or_default()
}

/// A path relative to the root, with `..` resolved where it stays below the root.
fn below(root: &Path, file: &str) -> String {
    let mut parts: Vec<std::ffi::OsString> = Vec::new();
    let path = Path::new(file);
    let path = path.strip_prefix(root).unwrap_or(path);
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if parts.last().is_some_and(|last| last != "..") => {
                parts.pop();
            }
            other => parts.push(other.as_os_str().to_owned()),
        }
    }
    parts.iter().collect::<PathBuf>().display().to_string()
}
