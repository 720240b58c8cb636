//! What decides the result of a compilation, besides the files that the compiler lists.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::flags::FlagInputs;
use crate::files::open_regular;

/// Folders of the host's own headers and libraries. The host compiler's version stands for them.
const HOST: [&str; 5] = [
    "/usr/include",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/lib",
];

/// Endings of headers. `__has_include` may look for one that the compiler does not list.
const HEADERS: [&str; 10] = [
    "h", "hh", "hpp", "hxx", "cuh", "inl", "inc", "ipp", "tpp", "def",
];

/// Libraries that nvcc and the host compiler link by themselves.
const IMPLIED: [&str; 11] = [
    "cudadevrt",
    "cudart",
    "cudart_static",
    "rt",
    "pthread",
    "dl",
    "stdc++",
    "m",
    "c",
    "gcc",
    "gcc_s",
];

/// Whether a file belongs to the toolkit or to the host. A link from the project to there belongs
/// to the project: it may lead elsewhere tomorrow. So do the project's files where it lies in the
/// folder of a toolkit, such as `/usr`.
pub(super) fn of_toolkit_or_host(root: &Path, file: &Path, toolkits: &[PathBuf]) -> bool {
    let path = root.join(file);
    let real_root = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
    let has = |folder: &Path, path: &Path| {
        let around = [root, &real_root]
            .into_iter()
            .any(|root| root.starts_with(folder) && path.starts_with(root));
        path.starts_with(folder) && !around
    };
    // The text of a path with `..` does not say where it leads.
    let goes_up = path.components().any(|part| part == Component::ParentDir);
    if !goes_up && toolkits.iter().any(|toolkit| has(toolkit, &path)) {
        return true;
    }
    let Ok(real) = path.canonicalize() else {
        return false;
    };
    let outside = toolkits.iter().any(|toolkit| has(toolkit, &real))
        || HOST.iter().any(|folder| has(Path::new(folder), &real));
    outside && (!path.starts_with(root) || is_below(root, &real))
}

/// Whether a path without links is below the root.
fn is_below(root: &Path, real: &Path) -> bool {
    let root = root.canonicalize();
    root.is_ok_and(|root| real.starts_with(root))
}

/// Objects and libraries that flags name.
///
/// # Errors
/// The file whose own inputs are not tracked, or the folder of the project whose libraries would be
/// loaded when the program starts, and why.
pub(super) fn linked(root: &Path, flags: &FlagInputs) -> Result<Vec<String>, String> {
    for folder in &flags.at_start {
        let real = Path::new(folder).canonicalize();
        if real.is_ok_and(|real| is_below(root, &real)) {
            return Err(format!(
                "the folder `{folder}` of the linker's `-rpath` is part of the project, and libraries that are loaded from there are not tracked"
            ));
        }
    }
    let mut files = flags.objects.clone();
    for folder in &flags.libraries {
        let place = root.join(folder);
        let Ok(real) = place.canonicalize() else {
            continue;
        };
        let own = is_below(root, &real);
        let system = HOST.iter().any(|host| real.starts_with(host));
        let entries = fs::read_dir(&place).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let libraries = names.filter(|name| {
            let library = name.ends_with(".a") || name.contains(".so");
            library && (own || (!system && is_linked(name, &flags.names)))
        });
        let paths = libraries.map(|name| Path::new(folder).join(name));
        let paths = paths.filter(|path| root.join(path).is_file());
        files.extend(paths.map(|path| path.display().to_string()));
    }
    for file in &files {
        if !holds_code(&root.join(file)) {
            return Err(format!(
                "`{file}` names other files, as a linker script or a thin archive does, or it is no object, and what it names is not tracked"
            ));
        }
    }
    Ok(files)
}

/// Whether a library is one of those that are linked.
fn is_linked(file: &str, names: &[String]) -> bool {
    let Some(name) = file.strip_prefix("lib") else {
        return false;
    };
    let name = name
        .split_once(".so")
        .map_or_else(|| name.trim_end_matches(".a"), |(name, _)| name);
    IMPLIED.contains(&name) || names.iter().any(|linked| linked == name)
}

/// Whether a file is an object, a shared library, or an archive that contains its members; one
/// that is missing is reported by the compiler.
fn holds_code(path: &Path) -> bool {
    let mut start = Vec::new();
    let Ok(file) = open_regular(path) else {
        return true;
    };
    let read = io::Read::read_to_end(&mut io::Read::take(file, 8), &mut start);
    read.is_ok() && (start.starts_with(b"\x7fELF") || start == b"!<arch>\n")
}

/// Whether a source asks the preprocessor if files exist.
pub(super) fn asks_for_files(text: &str) -> bool {
    let spliced = text.replace("\\\r\n", "").replace("\\\n", "");
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut names = spliced.split(|c| !is_name(c));
    // Parts of the names too: a macro may put them together.
    names.any(|name| name.contains("has_inc") || name.contains("has_emb") || name == "__has_")
}

/// Paths that the compiler may find instead of one of the files, and headers that `__has_include`
/// may look for. It looks beside a file of the project, in the folders above it, and where flags
/// say. If one of them appears or disappears, another program may be built. `asked` are names of
/// headers of the toolkit and the host.
pub(super) fn rivals(
    root: &Path,
    flags: &FlagInputs,
    files: &[String],
    asked: &[String],
) -> BTreeSet<String> {
    let mut folders: BTreeSet<PathBuf> = BTreeSet::new();
    for file in files
        .iter()
        .map(Path::new)
        .filter(|file| !file.is_absolute())
    {
        folders.extend(file.ancestors().skip(1).map(Path::to_path_buf));
    }
    folders.extend(flags.headers.iter().map(PathBuf::from));
    // A new library in a searched folder may be linked instead of another.
    let mut found: BTreeSet<String> = linked(root, flags)
        .unwrap_or_default()
        .into_iter()
        .collect();
    // nvcc compiles a part of the program with the root among the folders that are searched.
    let searched = flags.headers.iter().map(String::as_str).chain([""]);
    for folder in searched {
        let places = asked.iter().map(|name| Path::new(folder).join(name));
        let places = places.filter(|place| root.join(place).exists());
        found.extend(places.map(|place| place.display().to_string()));
    }
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
    use super::super::flags::flag_inputs;
    use super::*;

    fn of(flags: &[&str]) -> FlagInputs {
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        flag_inputs(&flags).unwrap()
    }

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
        let flags = of(&["-Iinclude"]);
        let now = || rivals(root, &flags, &files, &["crt/host.h".to_owned()]);
        let before = now();
        write("kernels/report.md");
        write("target/part/tile.cuh");
        assert_eq!(now(), before);
        write("kernels/part/tile.cuh");
        let hidden = now();
        assert!(hidden.contains("kernels/part/tile.cuh"), "{hidden:?}");
        write("include/asked_for.cuh");
        assert!(now().contains("include/asked_for.cuh"));
        // A header of the toolkit's name, where the host's part of the program is compiled.
        for shadow in ["crt/host.h", "include/crt/host.h"] {
            write(shadow);
            assert!(now().contains(shadow), "{shadow}");
        }
    }

    #[test]
    fn searched_folders_outside_of_the_project_count_too() {
        let (project, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let header = outside.path().join("tile.cuh");
        fs::write(&header, "").unwrap();
        let folder = outside.path().display();
        for flags in [
            vec![format!("-I{folder}")],
            vec!["-isystem".to_owned(), folder.to_string()],
            vec![format!("--include-path=other,{folder}")],
        ] {
            let flags = flag_inputs(&flags).unwrap();
            let found = rivals(project.path(), &flags, &[], &[]);
            assert!(found.contains(&header.display().to_string()), "{flags:?}");
        }
    }

    #[test]
    fn what_is_linked_is_listed_and_what_names_other_files_is_refused() {
        let (project, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let link = project.path().join("link");
        std::os::unix::fs::symlink(project.path(), &link).unwrap();
        let root = link;
        fs::create_dir(root.join("lib")).unwrap();
        for path in ["lib/libpart.a", "lib/notes.txt", "part.o"] {
            fs::write(root.join(path), "!<arch>\n").unwrap();
        }
        for name in ["libpart.a", "libother.a", "libm.so.6"] {
            fs::write(outside.path().join(name), "\x7fELF...").unwrap();
        }
        let linked = |flags: &[&str]| linked(&root, &of(flags));
        assert_eq!(linked(&["-Llib", "-lpart"]).unwrap(), ["lib/libpart.a"]);
        assert_eq!(linked(&["part.o"]).unwrap(), ["part.o"]);
        assert!(linked(&["-O3", "-include", "common.h"]).unwrap().is_empty());
        let mut found = linked(&[&format!("-L{}", outside.path().display()), "-lpart"]).unwrap();
        found.sort();
        let path = |name: &str| outside.path().join(name).display().to_string();
        assert_eq!(found, [path("libm.so.6"), path("libpart.a")]);
        for script in ["INPUT(slow.o)", "!<thin>\n", ""] {
            fs::write(root.join("lib/libpart.a"), script).unwrap();
            assert!(linked(&["-Llib"]).is_err(), "{script:?}");
        }
    }

    #[test]
    fn no_library_of_the_project_is_loaded_when_the_program_starts() {
        let flags = of(&["-Xlinker", "-rpath=/usr/lib"]);
        assert!(linked(Path::new("/usr"), &flags).is_err());
        assert!(linked(tempfile::tempdir().unwrap().path(), &flags).is_ok());
    }

    #[test]
    fn a_source_that_asks_for_files_is_known() {
        for asks in [
            "#if __has_include(\"slow.cu\")",
            "#if __has_\\\ninclude(\"slow.cu\")",
            "#define ASK __has_include_next",
            "#if __has_embed(\"x\")",
            "#if CAT(__has_, include)(\"slow.cu\")",
        ] {
            assert!(asks_for_files(asks), "{asks}");
        }
        assert!(!asks_for_files(
            "#if __has_builtin(x) || __has_cpp_attribute(y)"
        ));
    }

    #[test]
    fn a_link_from_the_project_to_the_host_belongs_to_the_project() {
        let project = tempfile::tempdir().unwrap();
        let root = project.path();
        std::os::unix::fs::symlink("/usr/include/stdio.h", root.join("a.h")).unwrap();
        let is = |file: &str| of_toolkit_or_host(root, Path::new(file), &[root.join("cuda")]);
        assert!(!is("a.h"));
        assert!(!is("missing.h"));
        assert!(is("/usr/include/stdio.h"));
        assert!(is("cuda/include/cuda.h"));
        fs::write(root.join("b.h"), "").unwrap();
        // `/usr/bin/nvcc`, and a project in `/usr/src`.
        let around = root.parent().unwrap().to_path_buf();
        let is = |file: &Path| of_toolkit_or_host(root, file, std::slice::from_ref(&around));
        assert!(!is(Path::new("b.h")));
        assert!(!is(&root.join("b.h")));
        assert!(is(&around.join("include/cuda.h")));
        let round_about = root.join("cuda/../b.h");
        fs::create_dir(root.join("cuda")).unwrap();
        assert!(!of_toolkit_or_host(
            root,
            &round_about,
            &[root.join("cuda")]
        ));
    }
}
