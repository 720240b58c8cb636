//! What decides the result of a compilation, besides the files that the compiler lists.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders of the host's own headers and libraries. The host compiler's version stands for them.
const HOST: [&str; 5] = [
    "/usr/include",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/lib",
];

/// Endings of files that are compiled, or contain code that goes into a program.
const SOURCES: [&str; 9] = [
    "cu", "c", "cc", "cpp", "cxx", "ptx", "cubin", "fatbin", "ii",
];

/// Endings of headers. `__has_include` may look for one that the compiler does not list.
const HEADERS: [&str; 10] = [
    "h", "hh", "hpp", "hxx", "cuh", "inl", "inc", "ipp", "tpp", "def",
];

/// Whether a file belongs to the toolkit or to the host.
pub(super) fn of_toolkit_or_host(file: &Path, toolkit: &Path) -> bool {
    file.canonicalize().is_ok_and(|file| {
        file.starts_with(toolkit) || HOST.iter().any(|folder| file.starts_with(folder))
    })
}

/// Objects and libraries of the project that flags name.
///
/// # Errors
/// The flag that adds inputs which are not tracked, and why.
pub(super) fn named_by_flags(root: &Path, flags: &[String]) -> Result<Vec<String>, String> {
    // A link on the way to the project must not put its files outside of it.
    let real = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
    let mut files = Vec::new();
    for (index, flag) in flags.iter().enumerate() {
        if flag.starts_with("-optf") || flag.starts_with("--options-file") {
            return Err(format!(
                "`{flag}` reads flags from a file, whose content is not tracked: write them in `flags`"
            ));
        }
        let before = index.checked_sub(1).map_or("", |index| &flags[index]);
        if !flag.starts_with('-') && root.join(flag).is_file() {
            // The compiler lists what it includes by itself.
            if matches!(before, "-include" | "--pre-include") {
                continue;
            }
            let ending = Path::new(flag).extension().and_then(OsStr::to_str);
            if ending.is_some_and(|ending| SOURCES.contains(&ending)) {
                return Err(format!(
                    "the flag `{flag}` is a second source, and the compiler lists the headers of one only: include it in `source`, or build with `build` and `run`"
                ));
            }
            files.push(flag.clone());
        }
        if let Some(folder) = folder_of("-L", "--library-path", flag, before) {
            let place = root.join(folder);
            if !place
                .canonicalize()
                .is_ok_and(|place| place.starts_with(&real))
            {
                continue;
            }
            let entries = fs::read_dir(&place).into_iter().flatten().flatten();
            files.extend(
                entries
                    .map(|entry| Path::new(folder).join(entry.file_name()))
                    .filter(|path| {
                        let name = path.to_string_lossy();
                        (name.ends_with(".a") || name.contains(".so")) && root.join(path).is_file()
                    })
                    .map(|path| path.display().to_string()),
            );
        }
    }
    Ok(files)
}

/// The folder that a flag, or a flag and the one before it, names.
fn folder_of<'f>(short: &str, long: &str, flag: &'f str, before: &str) -> Option<&'f str> {
    if before == short || before == long {
        return Some(flag);
    }
    let rest = flag.strip_prefix(short).filter(|rest| !rest.is_empty());
    let rest = rest.or_else(|| flag.strip_prefix(long)?.strip_prefix('='));
    rest.map(|rest| rest.trim_start_matches('='))
}

/// Paths that the compiler may find instead of one of the files, and headers that `__has_include`
/// may look for. It looks beside a file of the project, in the folders above it, and where flags
/// say. If one of them appears or disappears, another program may be built.
pub(super) fn rivals(root: &Path, flags: &[String], files: &[String]) -> BTreeSet<String> {
    let mut folders: BTreeSet<PathBuf> = BTreeSet::new();
    for file in files
        .iter()
        .map(Path::new)
        .filter(|file| !file.is_absolute())
    {
        folders.extend(file.ancestors().skip(1).map(Path::to_path_buf));
    }
    const SEARCH: [(&str, &str); 3] = [
        ("-I", "--include-path"),
        ("-isystem", "--system-include"),
        ("-iquote", "-iquote"),
    ];
    for (index, flag) in flags.iter().enumerate() {
        let before = index.checked_sub(1).map_or("", |index| &flags[index]);
        let named = SEARCH
            .iter()
            .filter_map(|(short, long)| folder_of(short, long, flag, before));
        folders.extend(named.map(PathBuf::from));
    }
    // A new library in a searched folder may be linked instead of another.
    let mut found: BTreeSet<String> = named_by_flags(root, flags)
        .unwrap_or_default()
        .into_iter()
        .collect();
    for folder in &folders {
        let entries = fs::read_dir(root.join(folder))
            .into_iter()
            .flatten()
            .flatten();
        let headers = entries
            .map(|entry| folder.join(entry.file_name()))
            .filter(|path| {
                let ending = path.extension().and_then(OsStr::to_str);
                ending.is_some_and(|ending| HEADERS.contains(&ending))
            });
        found.extend(headers.map(|path| path.display().to_string()));
        for file in files {
            // `#include "common/tile.cuh"` may find any file whose path ends so.
            let mut tail = PathBuf::new();
            for part in Path::new(file).components().rev() {
                tail = if tail.as_os_str().is_empty() {
                    PathBuf::from(part.as_os_str())
                } else {
                    Path::new(part.as_os_str()).join(&tail)
                };
                let place = folder.join(&tail);
                if tail.is_relative() && root.join(&place).exists() {
                    found.insert(place.display().to_string());
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_comes_or_goes_changes_the_rivals_and_a_file_beside_them_does_not() {
        let project = tempfile::tempdir().unwrap();
        let root = project.path();
        let write = |path: &str| {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), "").unwrap();
        };
        for path in [
            "kernels/a.cu",
            "include/part/tile.cuh",
            "target/a.cu",
            "target/tile.cuh",
        ] {
            write(path);
        }
        let files = [
            "kernels/a.cu".to_owned(),
            "include/part/tile.cuh".to_owned(),
        ];
        let flags = ["-Iinclude".to_owned()];
        let now = || rivals(root, &flags, &files);
        let before = now();
        write("kernels/report.md");
        write("target/part/tile.cuh");
        assert_eq!(now(), before);
        write("kernels/part/tile.cuh");
        let hidden = now();
        assert!(hidden.contains("kernels/part/tile.cuh"), "{hidden:?}");
        write("include/asked_for.cuh");
        assert!(now().contains("include/asked_for.cuh"));
    }

    #[test]
    fn searched_folders_outside_of_the_project_count_too() {
        let (project, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let header = outside.path().join("tile.cuh");
        fs::write(&header, "").unwrap();
        for flags in [
            vec![format!("-I{}", outside.path().display())],
            vec!["-isystem".to_owned(), outside.path().display().to_string()],
            vec![format!("--include-path={}", outside.path().display())],
        ] {
            let found = rivals(project.path(), &flags, &[]);
            assert!(found.contains(&header.display().to_string()), "{flags:?}");
        }
    }

    #[test]
    fn inputs_from_flags_are_listed_or_rejected() {
        let project = tempfile::tempdir().unwrap();
        let link = project.path().join("link");
        std::os::unix::fs::symlink(project.path(), &link).unwrap();
        let root = link;
        for path in [
            "lib/libpart.a",
            "lib/notes.txt",
            "part.o",
            "part.cu",
            "common.h",
        ] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), "").unwrap();
        }
        let named = |flags: &[&str]| {
            let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
            named_by_flags(&root, &flags)
        };
        assert_eq!(named(&["-Llib", "-lpart"]).unwrap(), ["lib/libpart.a"]);
        assert_eq!(named(&["part.o"]).unwrap(), ["part.o"]);
        assert!(
            named(&["-O3", "-include", "common.h", "-Xcompiler", "-O2"])
                .unwrap()
                .is_empty()
        );
        assert!(named(&["part.cu"]).unwrap_err().contains("second source"));
        assert!(named(&["-optf", "flags.txt"]).is_err());
        assert!(named(&["--options-file=flags.txt"]).is_err());
    }
}
