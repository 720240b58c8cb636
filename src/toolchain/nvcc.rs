//! The CUDA compiler.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::find::{
    can_start, configured, cuda_roots, find, flags_of_environment, nvidia_packages, path_folders,
    stated_environments, stated_roots, versioned, without_nvcc,
};
use super::query::{printed, query};
use super::tool::Tool;
use super::version::cached;
use crate::config::Toolchain;
use crate::disk::{self, leads_to};
use crate::finding::Error;
use crate::hash::sha256_file;
use crate::metric::capability_of_arch;
use crate::process::{absolute_parts, parts_outside};
use crate::terms::words;

/// Environment variables with folders of headers and libraries.
const SEARCHED: [&str; 4] = [
    "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH",
];

/// Environment variables that change what nvcc does.
const INFLUENCES: &[&str] = &words::<13>(
    "NVCC_PREPEND_FLAGS NVCC_APPEND_FLAGS NVCC_CCBIN CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH \
     LIBRARY_PATH COMPILER_PATH GCC_EXEC_PREFIX GCC_COMPARE_DEBUG SOURCE_DATE_EPOCH LD_RUN_PATH \
     LPATH",
);

/// Those of them that are lists of folders, or one folder.
const FOLDER_LISTS: [&str; 4] = ["LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "LPATH"];

/// Variables of nvcc's dry run with the folders that it adds.
const OWN_FOLDERS: [&str; 4] = ["TOP", "INCLUDES", "SYSTEM_INCLUDES", "LIBRARIES"];

/// An nvcc that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Nvcc {
    /// The program.
    #[serde(skip)]
    pub path: PathBuf,
    /// Its sha256.
    pub sha256: String,
    /// `V13.0.88`, as `nvcc --version` prints it.
    pub version: String,
    /// The compiler that it calls.
    #[serde(flatten)]
    pub host: HostCompiler,
}

impl Nvcc {
    /// Finds nvcc: the configuration, `CUDA_HOME`, `CUDA_PATH`, the PATH, the usual folders, the
    /// layout of NVIDIA's Python wheels in the active virtual environment.
    ///
    /// # Errors
    /// [`Error::Environment`], with the places that were looked at.
    pub fn locate(toolchain: &Toolchain, work: &Path) -> Result<Nvcc, Error> {
        let host = Nvcc::host_compiler(work)?;
        let Tool { path, version } = Nvcc::compiler(toolchain, work)?;
        Ok(Nvcc {
            sha256: sha256_file(&leads_to(&path)).map_err(Error::io("read", &path))?,
            path,
            version,
            host,
        })
    }

    /// Rejects flags that the environment adds to every compilation, since no profile and no lock
    /// records them. Flags that only select the host compiler are allowed: Conda sets them.
    fn reject_unrecorded_flags() -> Result<(), Error> {
        for (name, flag, host) in flags_of_environment() {
            match (host, flag.as_str()) {
                // It may also be a folder.
                (Some(host), _) if disk::is_dir(&host) || can_start(&host, Path::new("/")) => {}
                (Some(host), _) => return Err(Nvcc::no_host_compiler(name, &host)),
                (None, "-allow-unsupported-compiler" | "--allow-unsupported-compiler") => {}
                (None, flag) => {
                    return Err(Error::environment(
                        format!(
                            "the environment variable {name} adds `{flag}` to every compilation, which no profile and no lock records"
                        ),
                        format!(
                            "unset {name}, and put the flags into `toolchain.flags` of the configuration"
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    /// That the host compiler, which a variable of the environment may name, is none.
    fn no_host_compiler(name: &str, host: &str) -> Error {
        let value = std::env::var(name).map_or("not set".to_owned(), |value| format!("`{value}`"));
        Error::environment(
            format!(
                "nvcc needs a host compiler and `{host}` is not on the PATH; {name} is {value}"
            ),
            format!("install it (Debian: `apt-get install g++`), or correct or unset {name}"),
        )
    }

    /// nvcc alone, which compiles nothing without a host compiler.
    ///
    /// # Errors
    /// [`Error::Environment`], with the places that were looked at, or a flag of the environment.
    pub fn compiler(toolchain: &Toolchain, work: &Path) -> Result<Tool, Error> {
        Nvcc::reject_unrecorded_flags()?;
        let mut folders: Vec<PathBuf> = stated_roots().map(|root| root.join("bin")).collect();
        folders.extend(path_folders());
        folders.extend(cuda_roots().iter().map(|root| root.join("bin")));
        folders.push("/opt/cuda/bin".into());
        folders.extend(wheel_folders());
        let path = find("nvcc", configured("nvcc", &toolchain.nvcc)?, &folders).map_err(|places| {
            let stale = without_nvcc().map_or_else(String::new, |root| {
                format!("correct CUDA_HOME or CUDA_PATH, which is {} and has no bin/nvcc; or ", root.display())
            });
            let next = "install the CUDA toolkit, or `python3 -m venv ~/cuda && ~/cuda/bin/pip install 'cuda-toolkit[nvcc,nvvm,crt,cudart,cccl]==13.0.2' nvidia-cuda-nvdisasm \
                       && export CUDA_HOME=$(echo ~/cuda/lib/python3.*/site-packages/nvidia/cu13)`; or set `toolchain.nvcc`";
            Error::environment(format!("no nvcc was found; {places}"), stale + next)
        })?;
        // It looks for its headers beside the path that it is started by. A link of another name is
        // one to a program that starts it.
        let behind = Some(leads_to(&path)).filter(|real| real.file_name() == path.file_name());
        Tool::at(behind.unwrap_or(path), work)?.with_version()
    }

    /// The host compiler of nvcc.
    ///
    /// # Errors
    /// [`Error::Environment`] where it is not on the PATH.
    pub fn host_compiler(work: &Path) -> Result<HostCompiler, Error> {
        let host = std::env::var("NVCC_CCBIN").unwrap_or_else(|_| "g++".to_owned());
        let host = match host.contains('/') && disk::is_dir(leads_to(Path::new(&host))) {
            true => format!("{host}/g++"),
            false => host,
        };
        let host_path = find(
            &host,
            host.contains('/').then(|| Path::new(&host)),
            &path_folders(),
        );
        let path = host_path.map_err(|_| Nvcc::no_host_compiler("NVCC_CCBIN", &host))?;
        let ask = |flag: &str| {
            let argv = vec![path.display().to_string(), flag.to_owned()];
            // No library of the change is loaded into the linker.
            let text = query(argv, &["LD_LIBRARY_PATH"])?;
            Ok::<_, Error>(text.lines().next().unwrap_or_default().to_owned())
        };
        let lines = cached(work, &path, || {
            let linker = ask("-Wl,--version").unwrap_or_default();
            Ok(format!("{}\n{linker}", ask("--version")?))
        })?;
        let (version, linker) = lines.split_once('\n').unwrap_or((&lines, ""));
        Ok(HostCompiler {
            version: version.to_owned(),
            linker: linker.to_owned(),
            path,
        })
    }

    /// Variables for every call: those that change what nvcc does. Of lists of folders only the
    /// absolute parts count: an empty or relative one is a folder of the project, where nvcc runs.
    /// nvcc puts a folder and a colon before `LD_LIBRARY_PATH`. Where that is empty, the loader of
    /// every tool behind nvcc also looks for libraries in the project, so it is never empty. It names
    /// no folder of the repository that `project` is in: no tool loads a library of the change.
    pub fn env(&self, project: &Path) -> BTreeMap<String, String> {
        self.env_of(project, |name| std::env::var_os(name))
    }

    fn env_of(
        &self,
        project: &Path,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> BTreeMap<String, String> {
        let folders = |name: &str| absolute_parts(&variable(name)?)?.into_string().ok();
        let influences = INFLUENCES.iter().filter_map(|name| {
            let value = match FOLDER_LISTS.contains(name) {
                true => folders(name)?,
                false => variable(name)?.into_string().ok()?,
            };
            Some(((*name).to_owned(), value))
        });
        let mut env: BTreeMap<String, String> = influences.collect();
        let loader = variable("LD_LIBRARY_PATH").and_then(|list| parts_outside(&list, project));
        let loader = loader.and_then(|list| list.into_string().ok());
        let loader = loader.unwrap_or_else(|| self.root().join("lib64").display().to_string());
        env.insert("LD_LIBRARY_PATH".to_owned(), loader);
        env
    }

    /// Folders of the environment that are searched for headers and libraries.
    pub fn folders_of_environment() -> Vec<String> {
        let lists = SEARCHED.iter().filter_map(std::env::var_os);
        let folders = lists.flat_map(|list| std::env::split_paths(&list).collect::<Vec<_>>());
        let folders = folders.map(|folder| folder.display().to_string());
        // GCC's first one.
        folders.chain(["/usr/local/include".to_owned()]).collect()
    }

    /// The folders that nvcc itself adds to those that are searched, as its dry run prints them.
    /// Where a script stands for nvcc, they are not around it. Empty if it does not answer.
    pub fn own_folders(&self) -> Vec<PathBuf> {
        let words = ["--dryrun", "-x", "cu", "/dev/null", "-o", "/dev/null"];
        let mut argv = vec![self.path.display().to_string()];
        argv.extend(words.map(str::to_owned));
        let text = printed(argv, &[]).map(|printed| printed.stderr);
        let text = text.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines = text
            .lines()
            .filter_map(|line| line.strip_prefix("#$ ")?.split_once('='));
        let lists = lines.filter(|(name, _)| OWN_FOLDERS.contains(name));
        let words = lists.flat_map(|(_, list)| list.split('"'));
        let paths = words.map(|word| word.trim_start_matches("-I").trim_start_matches("-L"));
        paths
            .filter(|path| path.starts_with('/'))
            .map(PathBuf::from)
            .collect()
    }

    /// Whether the host compiler is clang.
    pub fn is_with_clang(&self) -> bool {
        self.host.version.contains("clang")
    }

    /// Whether the linker can list the files that it opens: GNU ld since 2.35.
    pub fn lists_linked(&self) -> bool {
        let version = self.host.linker.rsplit(' ').next().unwrap_or_default();
        let mut parts = version
            .split(['.', '-'])
            .map_while(|part| part.parse().ok());
        let version: (u32, u32) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        self.host.linker.starts_with("GNU ld") && version >= (2, 35)
    }

    /// The argv that compiles with [these flags](nvcc_flags), up to where the output goes and what is compiled.
    pub fn argv(&self, flags: &[String]) -> Vec<String> {
        let mut argv = vec![self.path.display().to_string()];
        argv.extend_from_slice(flags);
        argv.extend(
            self.library_folder()
                .map(|folder| format!("-L{}", folder.display())),
        );
        argv
    }

    /// The folder of the toolkit, with links resolved.
    fn root(&self) -> PathBuf {
        install_folder(&self.path)
    }

    /// The folder of the toolkit, with and without links resolved.
    pub fn roots(&self) -> Vec<PathBuf> {
        let named = self.path.parent().and_then(Path::parent);
        named
            .map(Path::to_path_buf)
            .into_iter()
            .chain([self.root()])
            .collect()
    }

    /// The wheels keep libraries in `lib`; nvcc looks in `lib64`.
    fn library_folder(&self) -> Option<PathBuf> {
        let root = self.path.parent()?.parent()?;
        let folder = root.join("lib");
        (!disk::is_there(root.join("lib64")) && disk::is_there(folder.join("libcudart_static.a")))
            .then_some(folder)
    }
}

/// The folder that a program is installed in, with links resolved: the one around its `bin`.
pub(crate) fn install_folder(program: &Path) -> PathBuf {
    let program = leads_to(program);
    let folder = program.parent().and_then(Path::parent);
    folder.map(Path::to_path_buf).unwrap_or(program)
}

/// The host compiler that nvcc calls.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HostCompiler {
    /// The program.
    #[serde(skip)]
    pub path: PathBuf,
    /// The first line of its `--version`.
    #[serde(rename = "host_compiler")]
    pub version: String,
    /// That of the linker behind it; empty where there is none.
    pub linker: String,
}

/// Why an nvcc of this version (`V13.0.88`) cannot compile for a target, and what to do; `None` where
/// nothing is known against it.
pub fn dropped_target(version: &str, arch: &str) -> Option<(String, String)> {
    let cuda: u32 = version.strip_prefix('V')?.split('.').next()?.parse().ok()?;
    (cuda >= 13 && capability_of_arch(arch)? < (7, 5)).then(|| {
        (
            format!(
                "nvcc {version} cannot compile for {arch}: CUDA 13 removed all chips before Turing (sm_75)"
            ),
            "set `toolchain.nvcc` to the nvcc of CUDA 12.9 or older; or build elsewhere, and name the program in `run` and `program`".to_owned(),
        )
    })
}

/// The part of the argv that decides the result: it names no path of this machine.
pub fn nvcc_flags(
    toolchain: &Toolchain,
    flags: &[String],
    defines: &BTreeMap<String, String>,
) -> Vec<String> {
    let arch = &toolchain.arch;
    let virtual_arch = arch.replacen("sm_", "compute_", 1);
    // `-arch=sm_90a` fails for programs: ptxas then also runs for plain sm_90.
    let mut argv = vec![
        format!("-gencode=arch={virtual_arch},code={arch}"),
        "-Xptxas".to_owned(),
        "-v".to_owned(),
    ];
    argv.extend(toolchain.flags.iter().cloned());
    argv.extend(flags.iter().cloned());
    argv.extend(defines.iter().map(|(name, value)| match value.as_str() {
        "" => format!("-D{name}"),
        value => format!("-D{name}={value}"),
    }));
    argv
}

fn wheel_folders() -> impl Iterator<Item = PathBuf> {
    let packages = stated_environments().flat_map(nvidia_packages);
    let toolkits = packages.flat_map(|nvidia| versioned(nvidia, "cu"));
    toolkits.map(|cuda| cuda.join("bin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed() -> Nvcc {
        Nvcc {
            path: "/opt/cuda/bin/nvcc".into(),
            version: String::new(),
            sha256: String::new(),
            host: HostCompiler::default(),
        }
    }

    #[test]
    fn a_target_that_cuda_13_removed_is_known_before_anything_is_compiled() {
        for (version, arch, dropped) in [
            ("V13.0.88", "sm_70", true),
            ("V14.1.2", "sm_72", true),
            ("V12.9.86", "sm_70", false),
            ("V13.0.88", "sm_75", false),
            ("V13.0.88", "sm_121a", false),
            ("", "sm_70", false),
        ] {
            let found = dropped_target(version, arch).is_some();
            assert_eq!(found, dropped, "{version} {arch}");
        }
    }

    #[test]
    fn no_list_of_folders_for_the_compiler_names_the_folder_where_it_runs() {
        let nvcc = installed();
        // gcc and the loader take an empty list, and an empty part, for the current folder.
        for (given, kept) in [("", None), ("bin:.", None), ("/a::b:/c", Some("/a:/c"))] {
            let env = nvcc.env_of(Path::new("/"), |_| Some(given.into()));
            for name in FOLDER_LISTS {
                assert_eq!(env.get(name).map(String::as_str), kept, "{name} {given:?}");
            }
            let loader = kept.unwrap_or("/opt/cuda/lib64");
            assert_eq!(env["LD_LIBRARY_PATH"], loader, "{given:?}");
        }
    }

    #[test]
    fn the_compiler_loads_no_library_of_the_repository() {
        let repository = tempfile::tempdir().unwrap();
        let project = repository.path().join("project");
        for folder in [".git", "lib", "project"] {
            std::fs::create_dir(repository.path().join(folder)).unwrap();
        }
        let nvcc = installed();
        let own = repository.path().join("lib").display().to_string();
        for (given, kept) in [
            (format!("{own}:/a"), "/a"),
            (
                format!("{}/lib/..", repository.path().display()),
                "/opt/cuda/lib64",
            ),
            (own, "/opt/cuda/lib64"),
        ] {
            let env = nvcc.env_of(&project, |_| Some(given.clone().into()));
            assert_eq!(env["LD_LIBRARY_PATH"], kept, "{given}");
        }
    }
}
