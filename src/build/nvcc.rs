//! Builds a variant from its source by nvcc, and keeps the build under the hash of everything that
//! decided it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::artifact::Artifact;
use super::cubins::cubins_in;
use super::flags::{FlagInputs, flag_inputs, source_is_plain};
use super::opened::Opened;
use super::run::{BUILD_TIMEOUT, run_build};
use super::texts::{Texts, preprocessor_calls, printed_variable, texts_in};
use super::{depfile, inputs};
use crate::binary::{self, BinaryError, Census, Compiled, compiler_warnings, resource_report};
use crate::config::{Config, Recipe, Variant};
use crate::files::{
    create_work_folder, most, read_regular, read_regular_up_to, read_text_up_to, write_atomically,
};
use crate::finding::{Code, Error, Finding, Stop};
use crate::hash::{sha256_file, sha256_hex};
use crate::process::{self, Ending, Invocation, Query};
use crate::toolchain::{Nvcc, Nvdisasm, dropped_target, nvcc_flags};

/// Part of every key. It is raised when a [`Manifest`] gets another content.
const MANIFEST_VERSION: u32 = 4;

/// Longest that the preprocessor may take for one text.
const PREPROCESSOR_TIMEOUT: Duration = Duration::from_secs(600);

/// What is kept beside a built program.
#[derive(Serialize, Deserialize)]
struct Manifest {
    program_sha256: String,
    sources: BTreeMap<String, String>,
    compiled: Compiled,
}

/// What the last build of the same source and flags was made of.
#[derive(Serialize, Deserialize)]
struct Made {
    /// Every file besides those of the toolkit and the host.
    files: Vec<String>,
    /// Ends of the paths of the others.
    asked: Vec<String>,
    /// sha256 of the preprocessed texts.
    texts: String,
}

/// The build of one variant.
pub(super) struct NvccBuild<'a> {
    config: &'a Config,
    variant: &'a Variant,
    nvcc: &'a Nvcc,
    nvdisasm: Option<&'a Nvdisasm>,
    sources: &'a [String],
    flags: &'a [String],
    defines: &'a BTreeMap<String, String>,
    /// All flags, without paths of this machine.
    stated: Vec<String>,
    /// What the flags name; or which of them is refused, and why.
    named: Result<FlagInputs, String>,
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
            sources,
            flags,
            defines,
        } = &variant.recipe
        else {
            return None;
        };
        let stated = nvcc_flags(&config.toolchain, flags, defines);
        let disassembler = nvdisasm.map_or("", |tool| &tool.version);
        let named = flag_inputs(&stated).map(|mut named| {
            named.libraries.extend(Nvcc::library_folders());
            named
        });
        let native = named.as_ref().is_ok_and(|named| named.native);
        let text = format!(
            "{MANIFEST_VERSION}\n{}{disassembler}\n{}\n{stated:?}\n{sources:?}",
            nvcc.fingerprint(),
            if native { processor() } else { String::new() }
        );
        Some(NvccBuild {
            config,
            variant,
            nvcc,
            nvdisasm,
            sources,
            flags,
            defines,
            stated,
            named,
            store: config.work.join("builds"),
            base_key: sha256_hex(text.as_bytes()),
        })
    }

    /// Builds the variant, unless the same was built before.
    pub(super) fn build(&self) -> Result<Artifact, Stop> {
        let (named, linked) = self.accepted()?;
        create_work_folder(&self.config.work)?;
        fs::create_dir_all(&self.store).map_err(Error::io("create", &self.store))?;
        if let Some(artifact) = self.cached() {
            return Ok(artifact);
        }
        let scratch = Scratch::in_store(&self.store)?;
        let (started, opened) = self.compile(&scratch)?;
        let made = self.made(&scratch, linked, opened)?;
        let content = self.content_as_compiled(&made.files, started)?;
        let key = self.key(named, &made, &content);
        if self.variant.immutable {
            self.asks_for_no_file(&made.files)?;
        }
        let manifest = Manifest {
            compiled: self.kernels(&scratch)?,
            program_sha256: hash_of(&scratch.program())?,
            sources: own(content),
        };
        let path = scratch.path("manifest.json");
        fs::write(&path, json(&manifest)).map_err(Error::io("write", &path))?;
        let headers = self.headers_file();
        write_atomically(&headers, &json(&made)).map_err(Error::io("write", &headers))?;
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

    /// What the flags name, and what is linked besides the source, if all flags are known.
    fn accepted(&self) -> Result<(&FlagInputs, Vec<String>), Finding> {
        let root = &self.config.root;
        let arch = &self.config.toolchain.arch;
        if let Some((why, next)) = dropped_target(&self.nvcc.version, arch) {
            return Err(self.failed(why, next));
        }
        for source in self.sources {
            if !source_is_plain(source) {
                let message = format!(
                    "the path of the source `{}` is refused: nvcc passes it through a shell",
                    source.escape_debug()
                );
                return Err(self.failed(message, self.check_setting("source")));
            }
            if !root.join(source).is_file() {
                let message = format!("the source `{source}` does not exist");
                return Err(self.failed(message, self.check_setting("source")));
            }
        }
        let named = self.named.as_ref().map_err(Clone::clone);
        let linked = named.and_then(|named| Ok((named, inputs::linked(root, named)?)));
        linked.map_err(|why| {
            let next = format!(
                "{}, and `toolchain.flags`; what must have the flag is built with `build` and `run`",
                self.check_setting("flags")
            );
            self.failed(why, next)
        })
    }

    /// The artifact of an earlier build of the same, where there is one. The preprocessor is asked
    /// again for all texts.
    pub(super) fn cached(&self) -> Option<Artifact> {
        let made = self.last_made()?;
        // Cheaper than the preprocessor, and enough where a file changed.
        self.artifact_of(&made)?;
        let texts = self.preprocess()?;
        self.artifact_of(&Made {
            texts: texts.sha256,
            ..made
        })
    }

    /// The artifact of the last build, if none of its files changed. No program is started, so a
    /// file that was missing then and is there now is not noticed.
    pub(super) fn remembered(&self) -> Option<Artifact> {
        self.artifact_of(&self.last_made()?)
    }

    fn last_made(&self) -> Option<Made> {
        serde_json::from_slice(&read_regular(&self.headers_file()).ok()?).ok()
    }

    fn artifact_of(&self, made: &Made) -> Option<Artifact> {
        let named = self.named.as_ref().ok()?;
        let content = self.content(&made.files).ok()?;
        self.artifact_in(&self.store.join(self.key(named, made, &content)))
    }

    /// The preprocessed texts of the source as it is now; `None` where one cannot be made.
    fn preprocess(&self) -> Option<Texts> {
        let root = &self.config.root;
        let scratch = Scratch::in_store(&self.store).ok()?;
        let mut argv = self.argv(&scratch, &[]);
        argv.push("--dryrun".to_owned());
        let printed = self.ask(argv, self.nvcc.env(&self.config.root))?;
        let printed = String::from_utf8_lossy(&printed.stderr).into_owned();
        let mut env = self.nvcc.env(&self.config.root);
        env.extend(printed_variable(&printed, "PATH").map(|path| ("PATH".to_owned(), path)));
        for (mut argv, name) in preprocessor_calls(&printed) {
            let text = scratch.path(&name);
            argv.extend(["-o".to_owned(), text.display().to_string()]);
            self.ask(argv, env.clone())?;
        }
        texts_in(scratch.build.path(), root).ok()?
    }

    fn ask(&self, argv: Vec<String>, env: BTreeMap<String, String>) -> Option<process::Printed> {
        let query = Query {
            argv,
            dir: &self.config.root,
            env,
            without: &[],
            input: Vec::new(),
            timeout: PREPROCESSOR_TIMEOUT,
            interruptible: true,
        };
        let printed = query.run().ok()?;
        (printed.ending == Ending::Exited(0)).then_some(printed)
    }

    /// The argv of the compilation, with further flags.
    fn argv(&self, scratch: &Scratch, further: &[String]) -> Vec<String> {
        let toolchain = &self.config.toolchain;
        let mut argv = self.nvcc.argv(toolchain, self.flags, self.defines);
        argv.extend_from_slice(further);
        let (program, depfile) = (scratch.program(), scratch.depfile());
        argv.extend(Nvcc::output(&program, &depfile, scratch.kept.path()));
        argv.extend_from_slice(self.sources);
        argv
    }

    /// Where the list of the headers of this build is kept.
    fn headers_file(&self) -> PathBuf {
        self.store
            .join(format!("{}.headers.json", &self.base_key[..32]))
    }

    /// Compiles; returns the time before the compiler started, and the files that its tools list.
    fn compile(&self, scratch: &Scratch) -> Result<(ChangeTime, Vec<String>), Stop> {
        let (program, depfile, log) = (scratch.program(), scratch.depfile(), scratch.log());
        let toolchain = &self.config.toolchain;
        let mut by_hand = self.nvcc.argv(toolchain, self.flags, self.defines);
        by_hand.extend(["-o", &self.variant.id.variant].map(str::to_owned));
        by_hand.extend_from_slice(self.sources);
        let opened = Opened::prepare().map_err(Error::io("create", std::env::temp_dir()))?;
        let further = match self.nvcc.lists_assembled() {
            true => opened.assembler_flags().to_vec(),
            false => Vec::new(),
        };
        let mut env = self.nvcc.env(&self.config.root);
        let headers = opened.headers().display().to_string();
        env.insert("SUNPRO_DEPENDENCIES".to_owned(), headers);
        let run = Invocation {
            argv: self.argv(scratch, &further),
            dir: self.config.root.clone(),
            env,
            timeout: BUILD_TIMEOUT,
            stdout: log.clone(),
            stderr: log.clone(),
        };
        // Written now, by the same clock that stamps the sources.
        fs::write(&log, "").map_err(Error::io("write", &log))?;
        let started = changed_at(&log).map_err(Error::io("read", &log))?;
        run_build(self.variant, &run, &by_hand)?;
        if program.is_file() && depfile.is_file() {
            let files = opened.files(scratch.kept.path()).map_err(|why| {
                self.failed(why, "give the file a plain name in UTF-8".to_owned())
            })?;
            return Ok((started, files));
        }
        let next = format!(
            "remove the flag of {} that keeps nvcc from linking a program",
            self.variant.id
        );
        let message = "nvcc succeeded, but it made no program".to_owned();
        Err(self.failed(message, next).into())
    }

    /// What the program was made of.
    fn made(
        &self,
        scratch: &Scratch,
        linked: Vec<String>,
        opened: Vec<String>,
    ) -> Result<Made, Stop> {
        let root = &self.config.root;
        let kept = scratch.kept.path();
        let texts = texts_in(kept, root).map_err(Error::io("read", kept))?;
        let texts = texts.ok_or_else(|| {
            let message = format!(
                "nvcc kept no preprocessed text of `{}`",
                self.sources.join("`, `")
            );
            self.failed(message, "name a CUDA source (`.cu`)".to_owned())
        })?;
        if texts.includes_binaries && !self.nvcc.lists_assembled() {
            let message = "the source contains `incbin`, and this host compiler does not list the files that its assembler reads".to_owned();
            let next = "use g++ as the host compiler, or build with `build` and `run`".to_owned();
            return Err(self.failed(message, next).into());
        }
        let depfile = scratch.depfile();
        let text = read_text_up_to(&depfile, most::TEXT).map_err(Error::io("read", &depfile))?;
        let mut files = depfile::prerequisites(&text);
        files.extend_from_slice(self.sources);
        files.extend(linked);
        // These lists also name what the tools made themselves, and removed.
        let stored = |file: &Path| {
            let path = root.join(file);
            path.is_file() && !path.starts_with(&self.store)
        };
        let listed = opened.into_iter().chain(texts.files);
        files.extend(listed.filter(|file| stored(Path::new(file))));
        let toolkits = self.nvcc.roots();
        let (other, own): (BTreeSet<String>, BTreeSet<String>) = files
            .iter()
            .map(|file| below(root, file))
            .partition(|file| inputs::of_toolkit_or_host(root, Path::new(file), &toolkits));
        Ok(Made {
            files: own.into_iter().collect(),
            asked: other
                .iter()
                .flat_map(|file| ends(file))
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect(),
            texts: texts.sha256,
        })
    }

    /// Refuses an immutable variant whose files ask whether other files exist: no lock lists the
    /// files that are missing.
    fn asks_for_no_file(&self, files: &[String]) -> Result<(), Stop> {
        for file in files.iter().filter(|file| !Path::new(file).is_absolute()) {
            let path = self.config.root.join(file);
            let text = read_regular_up_to(&path, most::BINARY);
            let text = text.map_err(Error::io("read", &path))?;
            if inputs::asks_for_files(&String::from_utf8_lossy(&text)) {
                let message = format!(
                    "`{file}` asks whether other files exist (`__has_include`), so an immutable variant could change with them"
                );
                let next = "include the file, or write what the answer is".to_owned();
                return Err(self.failed(message, next).into());
            }
        }
        Ok(())
    }

    /// The sha256 of every file of the build, if none changed since it started: what was saved after
    /// the compiler read it must not pass for what was compiled.
    fn content_as_compiled(
        &self,
        files: &[String],
        started: ChangeTime,
    ) -> Result<BTreeMap<String, String>, Finding> {
        let content = self.content(files);
        // Asked after the content was hashed.
        let changed = files.iter().find(|file| {
            let path = self.config.root.join(file);
            !changed_at(&path).is_ok_and(|time| time <= started)
        });
        match (changed, content) {
            (None, Ok(content)) => Ok(content),
            (Some(file), _) | (None, Err(file)) => {
                let message = format!("`{file}` changed while it was being compiled");
                Err(self.failed(message, "run the build again".to_owned()))
            }
        }
    }

    /// The sha256 of each file, or the first that cannot be read.
    fn content<'f>(&self, files: &'f [String]) -> Result<BTreeMap<String, String>, &'f String> {
        let hash = |file: &'f String| {
            let hash = sha256_file(&self.config.root.join(file));
            Ok((file.clone(), hash.map_err(|_| file)?))
        };
        files.iter().map(hash).collect()
    }

    /// The key of a build from its texts, the content of all its files, and the names of those
    /// that could be found in their place.
    fn key(&self, named: &FlagInputs, made: &Made, content: &BTreeMap<String, String>) -> String {
        let rivals = inputs::rivals(&self.config.root, named, &made.files, &made.asked);
        let mut text = format!("{}\n{}\n{rivals:?}", self.base_key, made.texts);
        for (file, sha256) in content {
            text.push_str(&format!("\n{file} {sha256}"));
        }
        sha256_hex(text.as_bytes())[..32].to_owned()
    }

    /// The kernels of a build, from the compiler's log and the cubins that it kept.
    fn kernels(&self, scratch: &Scratch) -> Result<Compiled, Stop> {
        let (kept, log) = (scratch.kept.path(), scratch.log());
        let text = read_regular(&log).map_err(Error::io("read", &log))?;
        let text = String::from_utf8_lossy(&text);
        let arch = &self.config.toolchain.arch;
        let unreadable = |error: BinaryError| {
            let next = match error {
                BinaryError::Ambiguous(_) => {
                    "give each kernel of the sources a name or a namespace of its own".to_owned()
                }
                _ => format!(
                    "check that `{}` builds for {arch}, and install nvcc and nvdisasm of one toolkit",
                    self.variant.id
                ),
            };
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
        let manifest = read_regular(&folder.join("manifest.json")).ok()?;
        let manifest: Manifest = serde_json::from_slice(&manifest).ok()?;
        let program = folder.join("program");
        if sha256_file(&program).ok()? != manifest.program_sha256 {
            return None;
        }
        let mut build_argv = vec!["nvcc".to_owned()];
        build_argv.extend(self.stated.iter().cloned());
        build_argv.extend_from_slice(self.sources);
        Some(Artifact {
            run: vec![program.display().to_string()],
            compiler: Some(self.nvcc.version.clone()),
            sha256: Some(manifest.program_sha256.clone()),
            programs: BTreeMap::from([(program, manifest.program_sha256)]),
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

/// The project's own files. Others are part of the key, but not of the sources.
fn own(mut content: BTreeMap<String, String>) -> BTreeMap<String, String> {
    content.retain(|file, _| Path::new(file).is_relative());
    content
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

/// The last names of a path: what a source may write to include it.
fn ends(file: &str) -> Vec<String> {
    const MOST: usize = 4;
    let parts: Vec<&str> = file.split('/').filter(|part| !part.is_empty()).collect();
    let most = MOST.min(parts.len());
    (1..=most)
        .map(|count| parts[parts.len() - count..].join("/"))
        .collect()
}

/// The processor that `-march=native` stands for.
fn processor() -> String {
    const NAMES: [&str; 4] = ["model name", "flags", "Features", "CPU part"];
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let lines = NAMES
        .iter()
        .filter_map(|name| text.lines().find(|line| line.starts_with(name)));
    lines.collect::<Vec<_>>().join("\n")
}

/// A path relative to the root, with `..` resolved where it stays below the root. Behind a link `..`
/// leads to another folder than the text says, so such a path stays as it is.
fn below(root: &Path, file: &str) -> String {
    let real = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
    let relative = |path: &Path| {
        let below = path
            .strip_prefix(root)
            .or_else(|_| path.strip_prefix(&real));
        below.unwrap_or(path).to_path_buf()
    };
    let path = relative(Path::new(file));
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if root.join(&parts).is_symlink() => {
                return path.display().to_string();
            }
            Component::ParentDir if parts.file_name().is_some() => drop(parts.pop()),
            other => parts.push(other),
        }
    }
    relative(&parts).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::below;

    #[test]
    fn a_path_is_resolved_by_its_text_unless_a_link_leads_elsewhere() {
        let project = tempfile::tempdir().unwrap();
        let root = project.path();
        std::fs::create_dir_all(root.join("kernels/sub")).unwrap();
        std::os::unix::fs::symlink("..", root.join("kernels/link")).unwrap();
        let whole = root.display().to_string();
        for (file, expected) in [
            ("./kernels/../common/a.h".to_owned(), "common/a.h"),
            ("kernels/sub/../a.h".to_owned(), "kernels/a.h"),
            ("kernels/link/../a.h".to_owned(), "kernels/link/../a.h"),
            (
                format!("{whole}/kernels/link/../a.h"),
                "kernels/link/../a.h",
            ),
            ("../a.h".to_owned(), "../a.h"),
            (format!("{whole}/kernels/a.h"), "kernels/a.h"),
            (format!("/nowhere/..{whole}/a.h"), "a.h"),
            ("/usr/lib/../include/a.h".to_owned(), "/usr/include/a.h"),
        ] {
            assert_eq!(below(root, &file), expected);
        }
    }
}
