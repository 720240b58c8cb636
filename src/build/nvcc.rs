//! Builds a variant from its source by nvcc, and keeps the build under the hash of everything that
//! decided it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use rustix::fs::RenameFlags;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::artifact::Artifact;
use super::cubins::{cubins_in, without_dynamic_shared};
use super::flags::{FlagInputs, as_objects, flag_inputs, source_is_plain};
use super::inputs::{own_questions, places, questions};
use super::machine_code::count;
use super::opened::{Lists, Opened};
use super::reach::{Reach, first_bytes, is_found, is_object};
use super::run::{BUILD_TIMEOUT, left_out, run_build};
use super::witness::{Stamp, stamp};
use crate::binary::{self, BinaryError, Compiled, compiler_warnings, spills};
use crate::config::{Config, Recipe, Variant};
use crate::disk;
use crate::files::{
    create_work_folder, most, read_regular, read_regular_up_to, readable_text, write_atomically,
};
use crate::finding::{Code, Error, Finding, Stop};
use crate::git;
use crate::hash::{sha256_file, sha256_hex};
use crate::parallel;
use crate::process::{self, Invocation};
use crate::terms::{joined, nearest};
use crate::toolchain::{Nvcc, Nvdisasm, dropped_target, nvcc_flags};

/// Part of every key. It is raised when a [`Manifest`] gets another content.
const MANIFEST_VERSION: u32 = 6;

/// What is kept beside a built program.
#[derive(Serialize, Deserialize)]
struct Manifest {
    program_sha256: String,
    /// Whether it has no `main`: then the program is its machine code.
    library: bool,
    sources: BTreeMap<String, String>,
    compiled: Compiled,
}

/// What the last build of the same request opened.
#[derive(Serialize, Deserialize)]
struct Made {
    files: BTreeSet<String>,
    /// Names of files that the texts ask for.
    asked: BTreeSet<String>,
}

/// The build of one variant.
pub(super) struct NvccBuild<'a> {
    config: &'a Config,
    variant: &'a Variant,
    nvcc: &'a Nvcc,
    nvdisasm: Option<&'a Nvdisasm>,
    sources: &'a [String],
    /// All flags, without paths of this machine.
    stated: Vec<String>,
    /// What the flags name; of a build that was [accepted](NvccBuild::accept).
    named: FlagInputs,
    /// The folder of all builds.
    store: PathBuf,
    /// The folders of the toolkit.
    toolkits: Vec<PathBuf>,
    /// Hash of what decides the build, besides the content of files.
    request: String,
}

/// The program in the folder of a build, and what the compiler printed.
const PROGRAM: &str = "program";
const LOG: &str = "build.log";

/// The folders of one compilation. They are removed unless the build goes into the store.
struct Scratch {
    build: TempDir,
    /// Where nvcc leaves the cubins.
    kept: TempDir,
}

impl Scratch {
    fn in_store(store: &Path) -> Result<Scratch, Error> {
        let folder = |prefix| {
            let folder = process::scratch_in(store, prefix);
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
        let request = serde_json::json!({
            "version": MANIFEST_VERSION,
            "compiler": nvcc,
            "environment": nvcc.env(&config.root),
            "disassembler": nvdisasm.map_or("", |tool| &tool.0.version),
            "flags": &stated,
            "sources": sources,
        });
        let request = sha256_hex(&json(&request));
        Some(NvccBuild {
            config,
            variant,
            nvcc,
            nvdisasm,
            sources,
            stated,
            named: FlagInputs::default(),
            store: config.work.join("builds"),
            toolkits: nvcc.roots(),
            request,
        })
    }

    /// Builds the variant, unless the same was built before.
    pub(super) fn build(mut self) -> Result<Artifact, Stop> {
        self.accept()?;
        create_work_folder(&self.config.work)?;
        disk::create_dir_all(&self.store).map_err(Error::io("create", &self.store))?;
        if let Some(artifact) = self.cached() {
            return Ok(artifact);
        }
        // The other side may be building the same.
        let _core = parallel::core_for(self.name());
        if let Some(artifact) = self.cached() {
            return Ok(artifact);
        }
        let reach = Reach::of(&self.config.root, &self.store, self.nvcc, &self.named);
        let refused = reach.refused_include(self.sources, &self.named);
        if let Some(file) = refused.map_err(Error::io("read", &self.config.root))? {
            return Err(self.reads(&file).into());
        }
        let scratch = Scratch::in_store(&self.store)?;
        let (started, lists, library) = self.compile(&scratch, &reach)?;
        let (made, known) = self.made(lists, &disk::leads_to(scratch.kept.path()))?;
        let content = self.content_as_compiled(&made, started)?;
        let program = scratch.path(PROGRAM);
        let program_sha256 = sha256_file(&program).map_err(Error::io("read", program))?;
        let known = known && !self.named.native && self.nvcc.lists_linked();
        let key = self.key(&content, (!known).then_some(&program_sha256));
        let sources = made
            .files
            .iter()
            .filter(|file| Path::new(file).is_relative());
        let sources = sources.filter_map(|file| Some((file.clone(), content.get(file)?.clone()?)));
        let manifest = Manifest {
            compiled: self.kernels(&scratch)?,
            program_sha256,
            library,
            sources: sources.collect(),
        };
        let path = scratch.path("manifest.json");
        disk::write(&path, json(&manifest)).map_err(Error::io("write", &path))?;
        if known {
            let opened = self.opened_file();
            write_atomically(&opened, &json(&made)).map_err(Error::io("write", &opened))?;
        }
        let folder = self.store.join(key);
        self.put(scratch.build, &folder)?;
        let artifact = self.artifact_in(&folder).ok_or_else(|| {
            Error::environment(
                format!(
                    "the build of {} vanished from {}",
                    self.variant.id,
                    folder.display()
                ),
                "check that nothing else cleans that folder, and run again",
            )
        })?;
        Ok(Artifact {
            cached: false,
            ..artifact
        })
    }

    /// Learns what the flags name, if the compiler can be asked what it opens and all flags are known.
    fn accept(&mut self) -> Result<(), Finding> {
        let root = &self.config.root;
        let arch = &self.config.toolchain.arch;
        if let Some((why, next)) = dropped_target(&self.nvcc.version, arch) {
            return Err(self.failed(why, next));
        }
        if self.nvcc.is_with_clang() {
            let message = "clang as the host compiler does not list the files that it reads";
            let next = "use g++ (NVCC_CCBIN), or build with `build` and `run`";
            return Err(self.failed(message.to_owned(), next.to_owned()));
        }
        for source in self.sources {
            if !source_is_plain(source) {
                let message = format!(
                    "the path of the source `{}` is refused: nvcc passes it through a shell",
                    source.escape_debug()
                );
                return Err(self.failed(message, self.check_setting("source")));
            }
            let path = root.join(source);
            if !git::is_input_file(&path) {
                if let Some(finding) = left_out(self.config, self.variant, source) {
                    return Err(finding);
                }
                let to = disk::read_link(&path).map(|to| format!(": it is a link to `{}`; a committed one must lead to a file of the checkout", to.display()));
                let to = to.unwrap_or_default();
                let message = match disk::is_there(&path) {
                    true => format!("the source `{source}` is no file{to}"),
                    false => format!("there is no source `{source}`{to}{}", meant(root, source)),
                };
                let submodule = git::repository(root).ok().and_then(|found| {
                    let tracked = git::tracked(&found.top, ".").ok()?.into_iter();
                    let mut modules = tracked.filter_map(|(at, commit)| commit.map(|_| at));
                    modules.find(|at| path.starts_with(found.top.join(at)))
                });
                let next = match submodule {
                    Some(at) => format!(
                        "check out its submodule: git submodule update --init {at} (actions/checkout: `submodules: true`)"
                    ),
                    None => format!(
                        "{}, a path from the folder of that file and no pattern; or commit the source",
                        self.check_setting("source")
                    ),
                };
                return Err(self.failed(message, next));
            }
        }
        self.named = flag_inputs(&self.stated).map_err(|why| {
            let next = format!(
                "{}, and `toolchain.flags`; what must have the flag is built with `build` and `run`",
                self.check_setting("flags")
            );
            self.failed(why, next)
        })?;
        Ok(())
    }

    /// The artifact of the last build of the same request, if none of its files changed and none can
    /// be found in the place of another. No program is started.
    fn cached(&self) -> Option<Artifact> {
        let made: Made = serde_json::from_slice(&read_regular(&self.opened_file()).ok()?).ok()?;
        let content = self.content(&made).ok()?;
        self.artifact_in(&self.store.join(self.key(&content, None)))
    }

    /// What builds that may be equal have in common.
    fn name(&self) -> String {
        let root = &self.config.root;
        let hash = |source: &String| git::sha256_of_input(&root.join(source)).unwrap_or_default();
        let hashes = joined(self.sources.iter().map(hash), " ");
        format!("{} {hashes}", self.request)
    }

    /// The argv of the compilation, with further flags.
    fn argv(&self, scratch: &Scratch, further: &[String]) -> Vec<String> {
        let mut argv = self.nvcc.argv(&self.stated);
        argv.extend_from_slice(further);
        let kept = scratch.kept.path().display().to_string();
        argv.extend(["--keep".to_owned(), "--keep-dir".to_owned(), kept.clone()]);
        match self.named.library {
            true => {
                as_objects(&mut argv);
                argv.extend(["-odir".to_owned(), kept]);
            }
            false => argv.extend(["-o".to_owned(), scratch.path(PROGRAM).display().to_string()]),
        }
        argv.extend_from_slice(self.sources);
        argv
    }

    /// Where the list of the files of this build is kept.
    fn opened_file(&self) -> PathBuf {
        self.store
            .join(format!("{}.opened.json", &self.request[..32]))
    }

    /// Compiles; returns the time before the compiler started, the files that its tools list, and whether
    /// it is a library. One is asked for by a flag, or has no `main`: then only the linker failed.
    fn compile(&self, scratch: &Scratch, reach: &Reach<'_>) -> Result<(Stamp, Lists, bool), Stop> {
        let (program, log) = (scratch.path(PROGRAM), scratch.path(LOG));
        let mut by_hand = self.nvcc.argv(&self.stated);
        by_hand.extend(["-o", &self.variant.id.variant].map(str::to_owned));
        by_hand.extend_from_slice(self.sources);
        let opened = Opened::prepare(process::scratch()?);
        let opened = opened.map_err(Error::io("create", std::env::temp_dir()))?;
        let further = opened.flags(self.nvcc.lists_linked());
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
        disk::write(&log, "").map_err(Error::io("write", &log))?;
        let started = stamp(&log).map_err(Error::io("read", &log))?;
        let ran = run_build(self.config, self.variant, &run, &by_hand);
        let lists = opened.files(scratch.kept.path());
        // What the compiler says of a file that it may not read is not shown.
        if let Some(file) = self.refused_file(reach, lists.as_ref().ok(), &log, ran.is_err()) {
            return Err(self.reads(&file).into());
        }
        let library = self.named.library || ran.is_err() && lacks_main(&log);
        if library {
            if self.named.library {
                ran?;
            }
            let (kept, arch) = (scratch.kept.path(), &self.config.toolchain.arch);
            let cubins = cubins_in(kept, arch).map_err(Error::io("read", kept))?;
            let code: Vec<u8> = cubins.into_values().flatten().collect();
            disk::write(&program, code).map_err(Error::io("write", &program))?;
        } else {
            ran?;
        }
        if disk::is_file(&program) {
            let lists = lists.map_err(|why| {
                self.failed(why, "give the file a plain name in UTF-8".to_owned())
            })?;
            return Ok((started, lists, library));
        }
        let next = format!(
            "remove the flag of {} that keeps nvcc from linking a program",
            self.variant.id
        );
        let message = "nvcc succeeded, but it made no program".to_owned();
        Err(self.failed(message, next).into())
    }

    /// What the program was made of, and whether it is known that nothing else decides it. `kept` has what
    /// nvcc made; its path has no `..`, since GCC shortens such paths.
    fn made(&self, lists: Lists, kept: &Path) -> Result<(Made, bool), Stop> {
        let root = &self.config.root;
        // These lists also name what the tools made themselves, and removed.
        let stored = |file: &String| {
            let real = git::real_input(&root.join(file)).ok()?;
            let is_input = disk::is_file(&real) && !real.starts_with(kept);
            is_input.then(|| below(root, file))
        };
        let included = lists.included.iter().chain(self.sources);
        let included: BTreeSet<String> = included.filter_map(stored).collect();
        let define = |name: &String| format!("#define {name}\n");
        let mut own: String = self.named.macros.iter().map(define).collect();
        let mut asked = BTreeSet::new();
        for file in &included {
            let path = root.join(file);
            let real = git::real_input(&path);
            let text = real.and_then(|real| read_regular_up_to(&real, most::BINARY));
            let text = text.map_err(Error::io("read", &path))?;
            let text = String::from_utf8_lossy(&text);
            if self.of_toolkit_or_host(file) {
                asked.extend(questions(&text).names);
                continue;
            }
            let asks = own_questions(&text);
            if self.variant.immutable && (asks.open || !asks.names.is_empty()) {
                return Err(self.asks(file).into());
            }
            own.push_str(&text);
            own.push('\n');
        }
        let asks = own_questions(&own);
        asked.extend(asks.names);
        let mut files = included;
        files.extend(lists.others.iter().filter_map(stored));
        // The linker of device code takes an archive where that of host code takes another library.
        let places = self.places(&files, &asked);
        let archives = places.iter().map(|place| below(root, place));
        let other = |file: &String| file.ends_with(".a") && !self.of_toolkit_or_host(file);
        files.extend(archives.filter(other));
        for file in files.iter().filter(|file| other(file)) {
            self.holds_its_members(file)?;
        }
        Ok((Made { files, asked }, !asks.open))
    }

    /// The first file that the tools read, and may not.
    fn refused_file(
        &self,
        reach: &Reach<'_>,
        lists: Option<&Lists>,
        log: &Path,
        failed: bool,
    ) -> Option<String> {
        let path = |file: &String| self.config.root.join(file);
        let refused = |file: &&String| is_found(&path(file)) && !reach.allows(Path::new(*file));
        let listed = lists.and_then(|lists| {
            let included = lists.included.iter().find(refused);
            let mut others = lists.others.iter().filter(|file| !is_object(&path(file)));
            included.or_else(|| others.find(refused))
        });
        let in_log = || reach.refused_in_log(&readable_text(log));
        listed.cloned().or_else(|| failed.then(in_log)?)
    }

    /// The refusal of a file outside of what a compilation may read.
    fn reads(&self, file: &str) -> Finding {
        let message = format!(
            "it reads `{}`, which is neither in the checkout nor in the toolkit, the system's folders, or a folder that `flags` list",
            file.escape_debug()
        );
        let next = format!(
            "copy the file into the repository, or list its folder (`-I`, `-L`): {}",
            self.check_setting("flags")
        );
        self.failed(message, next)
    }

    /// Refuses an archive that names its members, which no list has.
    fn holds_its_members(&self, archive: &str) -> Result<(), Stop> {
        let path = self.config.root.join(archive);
        let start = git::real_input(&path).and_then(|real| first_bytes(&real));
        if &start.map_err(Error::io("read", &path))? != b"!<thin>\n" {
            return Ok(());
        }
        let message = format!("`{archive}` is a thin archive, whose members are not tracked");
        let next = "make the archive with its members in it".to_owned();
        Err(self.failed(message, next).into())
    }

    /// The refusal of an immutable variant whose file asks whether other files exist: no lock lists
    /// the files that are missing.
    fn asks(&self, file: &str) -> Finding {
        let message = format!(
            "`{file}` asks whether other files exist (`__has_include`), or for the time, so an immutable variant could change with them"
        );
        let next = "include the file, or write what the answer is".to_owned();
        self.failed(message, next)
    }

    /// The files that the tools opened, and those that they could find instead.
    fn places(&self, files: &BTreeSet<String>, asked: &BTreeSet<String>) -> BTreeSet<String> {
        let mut folders = Nvcc::folders_of_environment();
        folders.extend_from_slice(&self.named.folders);
        places(&self.config.root, files, asked, &folders)
    }

    /// Whether a file belongs to the toolkit. The project's own files do not, where it lies in the
    /// folder of a toolkit, such as `/usr`.
    fn of_toolkit(&self, file: &str) -> bool {
        let root = &self.config.root;
        let path = root.join(file);
        let around = |folder: &Path| root.starts_with(folder) && path.starts_with(root);
        let mut toolkits = self.toolkits.iter();
        toolkits.any(|toolkit| path.starts_with(toolkit) && !around(toolkit))
    }

    fn of_toolkit_or_host(&self, file: &str) -> bool {
        let host = ["/usr/include", "/usr/lib", "/lib"];
        self.of_toolkit(file) || host.iter().any(|host| Path::new(file).starts_with(host))
    }

    /// The sha256 of every file of the build, if none changed since it started: what was saved after
    /// the compiler read it must not pass for what was compiled.
    fn content_as_compiled(
        &self,
        made: &Made,
        started: Stamp,
    ) -> Result<BTreeMap<String, Option<String>>, Finding> {
        let altered = |file: String| {
            let message = format!("`{file}` changed while it was being compiled");
            self.failed(message, "run the build again".to_owned())
        };
        let content = self.content(made).map_err(altered)?;
        // Asked after the content was hashed.
        let hashed = content.iter().filter(|(_, sha256)| sha256.is_some());
        let changed = hashed.map(|(file, _)| file).find(|file| {
            let path = self.config.root.join(file);
            !stamp(&path).is_ok_and(|now| now.0 <= started.0)
        });
        match changed {
            Some(file) => Err(altered(file.clone())),
            None => Ok(content),
        }
    }

    /// Each place, with its sha256 where it was opened and the toolkit's version does not stand for
    /// it; or the first that cannot be read.
    fn content(&self, made: &Made) -> Result<BTreeMap<String, Option<String>>, String> {
        let places = self.places(&made.files, &made.asked);
        let hash = |file: String| {
            let path = self.config.root.join(&file);
            let opened = made.files.contains(&file);
            let sha256 = match opened && !self.of_toolkit(&file) {
                true => git::sha256_of_input(&path).map(Some),
                false => git::real_input(&path).map(|_| None),
            };
            match sha256 {
                Ok(sha256) => Ok((file, sha256)),
                Err(_) => Err(file),
            }
        };
        places.into_iter().map(hash).collect()
    }

    /// The key of a build. Its files are all that were opened, each with its sha256, and those that could
    /// be found instead; the version of the compiler stands for the content of its toolkit. The sha256 of
    /// the program is part of it where the rest does not decide it.
    fn key(&self, files: &BTreeMap<String, Option<String>>, program: Option<&String>) -> String {
        let key = serde_json::json!({"request": self.request, "files": files, "program": program});
        sha256_hex(&json(&key))[..32].to_owned()
    }

    /// The kernels of a build, from the compiler's log and the cubins that it kept.
    fn kernels(&self, scratch: &Scratch) -> Result<Compiled, Stop> {
        let (kept, log) = (scratch.kept.path(), scratch.path(LOG));
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
        let spills = spills(&text, arch);
        let mut found = Vec::new();
        for cubin in cubins.values() {
            let mut kernels = binary::kernels_of(cubin, arch).map_err(unreadable)?;
            kernels.retain(|name, _| spills.contains_key(name));
            let counted = count(self.nvdisasm, cubin, &mut kernels);
            counted.map_err(|why| why.stop(unreadable))?;
            found.extend(kernels);
        }
        let compiled = binary::compiled(&spills, compiler_warnings(&text), found);
        let mut compiled = compiled.map_err(unreadable)?;
        for name in without_dynamic_shared(kept).map_err(Error::io("read", kept))? {
            if let Some(kernel) = compiled.kernels.get_mut(&name) {
                kernel.no_dynamic_shared = true;
            }
        }
        Ok(compiled)
    }

    /// Moves a build to its place in the store.
    fn put(&self, build: TempDir, place: &Path) -> Result<(), Error> {
        if disk::rename(build.path(), place).is_ok() {
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
        let program = folder.join(PROGRAM);
        if sha256_file(&program).ok()? != manifest.program_sha256 {
            return None;
        }
        let mut build_argv = vec!["nvcc".to_owned()];
        build_argv.extend(self.stated.iter().cloned());
        build_argv.extend_from_slice(self.sources);
        Some(Artifact {
            run: match manifest.library {
                true => Vec::new(),
                false => vec![program.display().to_string()],
            },
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
    if disk::rename_with(build.path(), place, RenameFlags::EXCHANGE).is_ok() {
        return Ok(());
    }
    let _ = disk::remove_dir_all(place);
    disk::rename(build.path(), place).map_err(Error::io("write", place))?;
    let _ = build.keep();
    Ok(())
}

/// Whether a build failed only because its linker found no `main`.
fn lacks_main(log: &Path) -> bool {
    let text = readable_text(log);
    text.contains("undefined reference to `main'") || text.contains("undefined symbol: main")
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // Text keys and finite numbers only, so this cannot fail.
    serde_json::to_vec_pretty(value).unwrap_or_default()
}

/// A path relative to the root, with `..` resolved where it stays below the root. Behind a link `..`
/// leads to another folder than the text says, so such a path stays as it is.
fn below(root: &Path, file: &str) -> String {
    let real = disk::leads_to(root);
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
            Component::ParentDir if disk::is_link(root.join(&parts)) => {
                return path.display().to_string();
            }
            Component::ParentDir if parts.file_name().is_some() => drop(parts.pop()),
            other => parts.push(other),
        }
    }
    relative(&parts).display().to_string()
}

/// The file that was meant by a path that is none: a tracked one from the top of the repository, with that
/// name, or with a name like it.
fn meant(root: &Path, source: &str) -> String {
    if source.contains(['*', '?', '[', ' ']) {
        return ": each file is named, several as a list: `[\"a.cu\", \"b.cu\"]`".to_owned();
    }
    let tracked = git::tracked(root, ".").unwrap_or_default();
    let tracked: Vec<String> = tracked.into_keys().collect();
    if tracked.iter().any(|path| path == source) {
        return format!(": it was deleted, and git has it: git restore {source}");
    }
    let name = |path: &str| Path::new(path).file_name().map(OsStr::to_ascii_lowercase);
    let mut same = tracked.iter().filter(|path| name(path) == name(source));
    let top = git::repository(root).map(|found| found.top);
    let below = top.iter().find_map(|top| {
        let folders = root.strip_prefix(top).ok()?.components();
        disk::is_file(top.join(source)).then(|| folders.map(|_| "../").collect::<String>() + source)
    });
    let near = below.as_deref().or_else(|| same.next().map(String::as_str));
    let near = near.or_else(|| nearest(source, &tracked));
    near.map_or_else(String::new, |near| format!(", did you mean `{near}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolchain::{HostCompiler, Tool};

    /// What decides the request of a build.
    struct Parts {
        config: String,
        root: &'static str,
        nvcc: Nvcc,
        nvdisasm: Option<Nvdisasm>,
    }

    impl Parts {
        fn new() -> Parts {
            Parts {
                config: "[toolchain]\narch = \"sm_90\"\n[metric.duration]\ndirection = \"lower\"\n\
                    tolerance = '1 %'\n\
                    [suite.s.variant.v]\nsource = \"v.cu\"\n"
                    .to_owned(),
                root: "/p",
                nvcc: Nvcc {
                    path: "/toolkit/bin/nvcc".into(),
                    sha256: "a".to_owned(),
                    version: "V13.0.88".to_owned(),
                    host: HostCompiler {
                        path: PathBuf::new(),
                        version: "gcc 13".to_owned(),
                        linker: "GNU ld 2.42".to_owned(),
                    },
                },
                nvdisasm: None,
            }
        }

        /// The keys of two builds: one that opened nothing, and one of one file.
        fn keys(&self) -> [String; 2] {
            let path = Path::new(self.root).join("config.toml");
            let config = Config::parse(&path, &self.config).unwrap();
            let variant = config.variants().next().unwrap();
            let build = NvccBuild::of(&config, variant, &self.nvcc, self.nvdisasm.as_ref());
            let build = build.unwrap();
            let opened = BTreeMap::from([("v.cu".to_owned(), Some("b".to_owned()))]);
            [BTreeMap::new(), opened].map(|files| build.key(&files, None))
        }

        fn edit(&mut self, from: &str, to: &str) {
            assert_eq!(self.config.matches(from).count(), 1, "{from}");
            self.config = self.config.replace(from, to);
        }
    }

    #[test]
    fn a_build_is_kept_under_all_that_decides_it_and_nothing_else() {
        type Case = (bool, fn(&mut Parts));
        let cases: [Case; 17] = [
            (true, |it| it.nvcc.sha256 = "b".to_owned()),
            (true, |it| it.nvcc.version = "V13.0.89".to_owned()),
            (true, |it| it.nvcc.host.version = "gcc 14".to_owned()),
            (true, |it| it.nvcc.host.linker = String::new()),
            (true, |it| {
                it.nvdisasm = Some(Nvdisasm(Tool {
                    path: "/toolkit/bin/nvdisasm".into(),
                    version: "V13.0.85".to_owned(),
                }));
            }),
            (true, |it| it.edit("sm_90", "sm_80")),
            (true, |it| it.edit("sm_90\"", "sm_90\"\nflags = [\"-O2\"]")),
            (true, |it| it.edit("\"v.cu\"", "[\"v.cu\", \"w.cu\"]")),
            (true, |it| it.config += "flags = [\"-g\"]\n"),
            (true, |it| it.config += "defines = { A = 1 }\n"),
            (false, |it| it.root = "/elsewhere"),
            (false, |it| it.edit("variant.v]", "variant.w]")),
            (false, |it| it.edit("'1 %'", "'2 %'")),
            (false, |it| it.config += "args = [\"1\"]\n"),
            (false, |it| it.config += "env = { A = \"1\" }\n"),
            (false, |it| it.config += "description = \"words\"\n"),
            (false, |it| it.config += "profile = { launches = 21 }\n"),
        ];
        let before = Parts::new().keys();
        assert_ne!(before[0], before[1]);
        for (number, (is_other, change)) in cases.into_iter().enumerate() {
            let mut parts = Parts::new();
            change(&mut parts);
            let now = parts.keys();
            let found = [0, 1].map(|at| now[at] != before[at]);
            assert_eq!(found, [is_other; 2], "case {number}");
        }
    }

    #[test]
    fn a_build_is_another_one_by_each_file_and_by_its_program() {
        let parts = Parts::new();
        let config = Config::parse(Path::new("/p/config.toml"), &parts.config).unwrap();
        let variant = config.variants().next().unwrap();
        let build = NvccBuild::of(&config, variant, &parts.nvcc, None).unwrap();
        let key = |files: &[(&str, Option<&str>)], program: Option<&str>| {
            let files = files.iter();
            let files = files.map(|(name, sha256)| ((*name).to_owned(), sha256.map(str::to_owned)));
            build.key(&files.collect(), program.map(str::to_owned).as_ref())
        };
        let keys = [
            key(&[], None),
            key(&[], Some("a")),
            key(&[], Some("b")),
            key(&[("a", None)], None),
            key(&[("a", Some("a"))], None),
            key(&[("a", Some("b"))], None),
            key(&[("b", Some("a"))], None),
            key(&[("a", Some("a")), ("b", None)], None),
            key(&[("a\": \"a\", \"b", None)], None),
        ];
        let known: BTreeSet<&String> = keys.iter().collect();
        assert_eq!(known.len(), keys.len());
    }

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
