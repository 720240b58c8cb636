//! Where programs and toolkits are looked for.

use crate::disk::{self, leads_to};
use crate::finding::Error;
use crate::terms::words;
use std::path::{Path, PathBuf};

/// The path of a program, or a description of where it was looked for.
pub(crate) fn find(
    name: &str,
    configured: Option<&Path>,
    folders: &[PathBuf],
) -> Result<PathBuf, String> {
    if let Some(path) = configured {
        let path = is_program(path).then(|| path.to_path_buf());
        return path.ok_or_else(String::new);
    }
    let candidates = folders.iter().map(|folder| folder.join(name));
    if let Some(path) = candidates.clone().find(|path| is_program(path)) {
        return Ok(path);
    }
    let on_path = path_folders();
    let mut places = vec!["the PATH".to_owned()];
    for (folder, candidate) in folders.iter().zip(candidates) {
        let place = candidate.display().to_string();
        if !on_path.contains(folder) && !places.contains(&place) {
            places.push(place);
        }
    }
    let relative = ["CUDA_HOME", "CUDA_PATH"].into_iter().find(|name| {
        std::env::var_os(name).is_some_and(|it| !it.is_empty() && Path::new(&it).is_relative())
    });
    let not = relative.map(|name| format!(" (not {name}, which is a relative path)"));
    Err(format!(
        "looked at {}{}",
        places.join(", "),
        not.unwrap_or_default()
    ))
}

/// The program that a key of `[toolchain]` names.
///
/// # Errors
/// [`Error::Environment`] where it is none.
pub(crate) fn configured<'a>(
    key: &str,
    path: &'a Option<PathBuf>,
) -> Result<Option<&'a Path>, Error> {
    const NEXT: &str =
        "correct the path, or remove the key: then the PATH and the usual folders are searched";
    match path.as_deref() {
        Some(path) if !is_program(path) => {
            let path_shown = path.display();
            let start = disk::read(leads_to(path)).unwrap_or_default();
            let is_code = [&b"\x7fELF"[..], b"#!"]
                .iter()
                .any(|it| start.starts_with(it));
            let (why, next) = match is_code {
                true => ("may not be executed", format!("chmod +x {path_shown}")),
                false => ("is no program", NEXT.to_owned()),
            };
            let what = format!("`toolchain.{key}` is {path_shown}, which {why}");
            Err(Error::environment(what, next))
        }
        path => Ok(path),
    }
}

/// The same of a program of the CUDA toolkit: beside another one of it, on the PATH, in the usual
/// toolkits, and in further folders.
pub(crate) fn in_toolkit(
    name: &str,
    configured: Option<&Path>,
    beside: Option<&Path>,
    further: Vec<PathBuf>,
) -> Result<PathBuf, String> {
    let beside = beside.and_then(Path::parent).map(Path::to_path_buf);
    let mut folders: Vec<PathBuf> = beside.into_iter().chain(path_folders()).collect();
    // Some versions keep a tool in a folder of its own name.
    let roots = cuda_roots().into_iter();
    folders.extend(roots.flat_map(|root| [root.join("bin"), root.join(name)]));
    folders.extend(further);
    find(name, configured, &folders)
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    disk::metadata(leads_to(path))
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Whether a command line can start: its program is a file in this folder, or is on the PATH.
pub(crate) fn can_start(program: &str, dir: &Path) -> bool {
    match program.contains('/') {
        true => is_program(&dir.join(program)),
        false => find(program, None, &path_folders()).is_ok(),
    }
}

/// The folders of the PATH. A relative one is a folder of the project, which the change chooses.
pub(crate) fn path_folders() -> Vec<PathBuf> {
    std::env::var_os("PATH")
        .map(|path| {
            std::env::split_paths(&path)
                .filter(|folder| folder.is_absolute())
                .collect()
        })
        .unwrap_or_default()
}

/// Where CUDA toolkits are, in the order in which they are taken.
pub(crate) fn cuda_roots() -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> = stated_roots().collect();
    roots.push("/usr/local/cuda".into());
    roots.extend(versioned("/usr/local", "cuda-"));
    roots
}

/// The toolkits that the environment names.
pub(super) fn stated_roots() -> impl Iterator<Item = PathBuf> {
    ["CUDA_HOME", "CUDA_PATH"]
        .into_iter()
        .filter_map(env_folder)
}

/// A toolkit that the environment names, and that has no nvcc.
pub fn without_nvcc() -> Option<PathBuf> {
    stated_roots().find(|root| !is_program(&root.join("bin/nvcc")))
}

/// The environments of Python that are active.
pub(super) fn stated_environments() -> impl Iterator<Item = PathBuf> {
    let names = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter();
    names.filter_map(env_folder)
}

/// The folder that a variable names; a relative one does not count.
fn env_folder(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute())
}

/// Programs that a run takes from the PATH: tools, and what they start themselves.
const FROM_PATH: [&str; 14] =
    words("nvcc ncu nvdisasm cuobjdump compute-sanitizer nvidia-smi g++ gcc c++ cc as ld sh git");

/// What is there of the places where the environment lets tools be found: programs in folders of the
/// PATH, host compilers and the folders of their own tools, whole toolkits, and NVIDIA's packages of
/// Python environments. `project` is the folder where compilers run.
pub fn places_of_environment(project: &Path) -> Vec<PathBuf> {
    let folders = path_folders();
    let hosts = host_compilers();
    let (hosts_by_path, hosts): (Vec<_>, Vec<_>) =
        hosts.into_iter().partition(|host| host.contains('/'));
    let named = hosts_by_path.iter().map(|host| project.join(host));
    let names = FROM_PATH
        .into_iter()
        .chain(hosts.iter().map(String::as_str));
    let names: Vec<&str> = names.collect();
    let programs = folders
        .iter()
        .flat_map(|folder| names.iter().map(|name| folder.join(name)))
        .chain(named)
        .chain(compiler_folders());
    let prefixes = folders
        .iter()
        .filter_map(|folder| folder.parent().map(Path::to_path_buf))
        .chain(stated_environments());
    let packages = prefixes.flat_map(nvidia_packages);
    let mut places: Vec<PathBuf> = programs.chain(stated_roots()).chain(packages).collect();
    places.retain(|place| disk::is_there(place));
    places.sort();
    places.dedup();
    places
}

/// NVIDIA's packages of an environment of Python.
pub(super) fn nvidia_packages(prefix: PathBuf) -> impl Iterator<Item = PathBuf> {
    let pythons = versioned(prefix.join("lib"), "python").into_iter();
    pythons.flat_map(|python| {
        ["site-packages", "dist-packages"].map(|name| python.join(name).join("nvidia"))
    })
}

/// Beginnings of the names of libraries that this process loads, or those who measure for it.
const LOADED: [&str; 10] = words(
    "libcuda.so libnvidia-ml.so libcupti.so libgcc_s.so libc.so libm.so libdl.so libpthread.so \
     librt.so ld-linux",
);

/// Such libraries in folders of `LD_LIBRARY_PATH`. An empty or relative part counts here: the loader
/// of this process searches it, too.
pub fn libraries_of_environment() -> Vec<PathBuf> {
    let Some(list) = std::env::var_os("LD_LIBRARY_PATH").filter(|list| !list.is_empty()) else {
        return Vec::new();
    };
    let here = std::env::current_dir().unwrap_or_default();
    let folders = std::env::split_paths(&list).map(|folder| here.join(folder));
    let files = folders.flat_map(|folder| disk::read_dir(leads_to(&folder)).into_iter().flatten());
    let loaded = files.filter(|file| {
        let name = file.text();
        LOADED.iter().any(|begin| name.starts_with(begin))
    });
    loaded.map(|file| file.path).collect()
}

/// The flags that the environment adds to every compilation: the variable, the flag, and the host compiler
/// that it names.
pub(super) fn flags_of_environment() -> Vec<(&'static str, String, Option<String>)> {
    let mut flags = Vec::new();
    for name in ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"] {
        let stated = std::env::var_os(name).unwrap_or_default();
        let stated = stated.to_string_lossy();
        let mut words = stated.split_whitespace();
        while let Some(word) = words.next() {
            let (flag, value) = word.split_once('=').unzip();
            let host = match flag.unwrap_or(word) {
                "-ccbin" | "--compiler-bindir" => value.or_else(|| words.next()).or(Some("")),
                _ => None,
            };
            flags.push((name, word.to_owned(), host.map(str::to_owned)));
        }
    }
    flags
}

/// The host compilers that the environment names for nvcc: programs, by name or path, or folders.
fn host_compilers() -> Vec<String> {
    let named = std::env::var_os("NVCC_CCBIN").unwrap_or_default();
    let flags = flags_of_environment().into_iter();
    let all = flags.filter_map(|(_, _, host)| host);
    let all = all.chain([named.to_string_lossy().into_owned()]);
    all.filter(|host| !host.is_empty()).collect()
}

/// Folders where GCC looks for the programs that it starts.
fn compiler_folders() -> Vec<PathBuf> {
    let list = std::env::var_os("COMPILER_PATH").unwrap_or_default();
    let prefix = std::env::var_os("GCC_EXEC_PREFIX").map(PathBuf::from);
    // A prefix of names: only with a slash at its end it is a folder.
    let prefix = prefix.map(|prefix| match disk::is_dir(leads_to(&prefix)) {
        true => prefix,
        false => prefix.parent().unwrap_or(&prefix).to_path_buf(),
    });
    let folders = std::env::split_paths(&list).chain(prefix);
    folders.filter(|folder| folder.is_absolute()).collect()
}

/// Folders below `parent` whose names begin with `prefix`, the highest version first.
pub(crate) fn versioned(parent: impl AsRef<Path>, prefix: &str) -> Vec<PathBuf> {
    let mut found: Vec<(Vec<u64>, PathBuf)> = disk::read_dir(parent)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let name = entry.name().to_str()?;
            let version = name
                .strip_prefix(prefix)?
                .split('.')
                .map_while(|part| part.parse().ok())
                .collect();
            Some((version, entry.path))
        })
        .collect();
    found.sort();
    found.reverse();
    found.into_iter().map(|(_, path)| path).collect()
}
