//! The files of a project that a program could read while it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use serde::Serialize;

use crate::binary::{contains, loads_at_run_time, needs_system_alone};
use crate::build::Artifact;
use crate::config::{Unread, Variant};
use crate::disk;
use crate::files::{ends_in, if_there, most, read_regular_up_to};
use crate::git;
use crate::hash::{sha256_file, sha256_hex, sha256_of};

/// What names of sources end in.
const SOURCES: [&str; 10] = [
    "c", "cc", "cpp", "cu", "cuh", "cxx", "h", "hh", "hpp", "inl",
];

/// What identifies the content of a file.
#[derive(Serialize)]
enum Content {
    /// As the commit has it.
    Committed(git::Object),
    /// A changed file, by its sha256.
    File(String),
    /// A changed link, by its target.
    Link(OsString),
}

/// Every file that git shows, tracked or not, except those that `paths.unread` names.
pub(in crate::measure) struct ReadableFiles {
    /// By the path from the top of the repository.
    files: BTreeMap<String, Content>,
    /// The folder of the configuration, from the top.
    folder: PathBuf,
}

impl ReadableFiles {
    /// Those in the checkout that has the folder `root`.
    ///
    /// # Errors
    /// Why git cannot say it, or which file cannot be read, in words.
    pub fn of(root: &Path, unread: &Unread) -> Result<ReadableFiles, String> {
        let (top, folder) = place_of(root)?;
        let root = top.join(&folder);
        let commit = git::commit_of(&root, "HEAD").ok_or("the repository has no commit yet")?;
        let committed = git::objects_at(&root, &commit)?.into_iter();
        let mut files: BTreeMap<String, Content> = committed
            .filter(|(path, _)| !unread.contains(path))
            .map(|(path, object)| (path, Content::Committed(object)))
            .collect();
        for path in git::changed_since(&root, &commit, |path| !unread.contains(path))? {
            match content(&top.join(&path))? {
                Some(content) => files.insert(path, content),
                None => files.remove(&path),
            };
        }
        Ok(ReadableFiles { files, folder })
    }

    /// The sha256 of all of them, with their names.
    ///
    /// # Errors
    /// In words, that it cannot be made.
    pub fn sha256_of_all(&self) -> Result<String, String> {
        sha256_of(&self.files)
    }

    /// The sha256 of all files that a program could read, with their names. Sources of C, C++ and CUDA
    /// count only if the program, its arguments or its variables name them: it is assumed that only
    /// compilers read the others. So it does not depend on which other variants were built. The program's own sources, which
    /// are paths from the configuration, do not count.
    ///
    /// # Errors
    /// In words, that it cannot be made.
    pub fn sha256<'a>(
        &self,
        variant: &Variant,
        program: &[u8],
        own: impl Iterator<Item = &'a String>,
    ) -> Result<String, String> {
        let own: BTreeSet<String> = own.map(|path| path_from_top(&self.folder, path)).collect();
        let named = |path: &str| {
            let name = Path::new(path).file_name().and_then(|name| name.to_str());
            name.is_none_or(|name| {
                let mut words = words_of_runs(variant);
                contains(program, name.as_bytes()) || words.any(|word| word.contains(name))
            })
        };
        let read = self
            .files
            .iter()
            .filter(|(path, _)| !own.contains(*path) && (!is_source(path) || named(path)));
        sha256_of(&read.collect::<BTreeMap<_, _>>())
    }
}

/// The sha256 and the bytes of a program that is still what was built, and that neither loads code
/// while it runs nor needs libraries besides the system's; `None` of any other.
pub(in crate::measure) fn known_bytes(artifact: &Artifact) -> Option<(&str, Vec<u8>)> {
    let sha256 = artifact.sha256.as_deref()?;
    let program = git::real_input(Path::new(artifact.run.first()?)).ok()?;
    let program = read_regular_up_to(&program, most::BINARY).ok()?;
    let known = sha256_hex(&program) == sha256
        && loads_at_run_time(&program).is_none()
        && needs_system_alone(&program);
    known.then_some((sha256, program))
}

/// Whether a file has the name of a source of C, C++ or CUDA.
fn is_source(path: &str) -> bool {
    ends_in(Path::new(path), &SOURCES)
}

/// What identifies the content of a changed file; `None` of one that is not there.
fn content(path: &Path) -> Result<Option<Content>, String> {
    let unreadable = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    match if_there(disk::symlink_metadata(path)).map_err(unreadable)? {
        None => Ok(None),
        Some(meta) if meta.is_symlink() => {
            let target = disk::read_link(path).map_err(unreadable)?;
            Ok(Some(Content::Link(target.into_os_string())))
        }
        Some(_) => {
            let sha256 = sha256_file(path).map_err(unreadable)?;
            Ok(Some(Content::File(sha256)))
        }
    }
}

/// The top of the repository of a folder, and where the folder is from there.
pub(in crate::measure) fn place_of(folder: &Path) -> Result<(PathBuf, PathBuf), String> {
    let top = git::repository(folder)?.top;
    let from_top = disk::leads_to(folder)
        .strip_prefix(&top)
        .map(Path::to_path_buf);
    Ok((top, from_top.map_err(|error| error.to_string())?))
}

/// A path from the configuration, from the top of the repository; `folder` is the configuration's
/// from there. Where `..` follows a folder it stays: that folder is a link, and leads elsewhere than
/// the text says.
pub(in crate::measure) fn path_from_top(folder: &Path, path: &str) -> String {
    let mut parts = folder.to_path_buf();
    let mut above = true;
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if above => {
                parts.pop();
            }
            part => {
                above = false;
                parts.push(part);
            }
        }
    }
    parts.to_string_lossy().into_owned()
}

/// The arguments of every run of a variant, and the values of its variables.
pub(in crate::measure) fn words_of_runs(variant: &Variant) -> impl Iterator<Item = &String> {
    let arguments = [&variant.args, &variant.verify_args, &variant.profile_args];
    let sanitizer = variant.sanitizer_args.iter().flatten();
    let arguments = arguments.into_iter().flatten().chain(sanitizer);
    arguments.chain(variant.env.values())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    impl ReadableFiles {
        /// Of names and contents.
        pub fn with(files: &[(&str, &str)]) -> ReadableFiles {
            let files = files.iter();
            let file = |(name, content): &(&str, &str)| {
                ((*name).to_owned(), Content::File((*content).to_owned()))
            };
            ReadableFiles {
                files: files.map(file).collect(),
                folder: PathBuf::new(),
            }
        }
    }

    #[test]
    fn files_are_others_by_their_names_their_bytes_and_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let git = |arguments: &[&str]| crate::git::git_of_tests(root, arguments);
        git(&["init", "--quiet"]);
        fs::write(root.join("kept"), "").unwrap();
        git(&["add", "--all"]);
        git(&["commit", "--quiet", "--message", "base"]);
        let sha256 = || {
            let files = ReadableFiles::of(root, &Unread::default()).unwrap();
            let variant = crate::config::tests::variant("[suite.s.variant.v]\nrun = [\"x\"]\n");
            let read = files.sha256(&variant, b"", [].iter()).unwrap();
            (files.sha256_of_all().unwrap(), read)
        };
        let file = |bytes: &str| fs::write(root.join("a"), bytes).unwrap();
        let link = |target: &[u8]| symlink(OsStr::from_bytes(target), root.join("a")).unwrap();
        let ways: [&dyn Fn(); 6] = [
            &|| file("b"),
            &|| file("\\xff"),
            // Git has the same object of the file above.
            &|| link(b"b"),
            &|| link(b"\\xff"),
            &|| link(b"\xff"),
            &|| link(b"\xfe"),
        ];
        let mut known = vec![sha256()];
        for way in ways {
            way();
            known.push(sha256());
            git(&["add", "--all"]);
            git(&["commit", "--quiet", "--message", "a"]);
            known.push(sha256());
            assert_eq!(known.last(), Some(&sha256()));
            fs::remove_file(root.join("a")).unwrap();
        }
        fs::write(root.join("a\": \"b"), "").unwrap();
        known.push(sha256());
        let (all, read): (BTreeSet<_>, BTreeSet<_>) = known.iter().cloned().unzip();
        assert_eq!([all.len(), read.len()], [known.len(); 2]);
    }

    #[test]
    fn a_path_that_leads_through_a_link_is_no_file_of_its_text() {
        let folder = Path::new("project/gate");
        for (path, expected) in [
            ("kernels/a.cu", "project/gate/kernels/a.cu"),
            ("./a.cu", "project/gate/a.cu"),
            ("../../common/a.h", "common/a.h"),
            ("link/../a.h", "project/gate/link/../a.h"),
            ("/usr/include/a.h", "/usr/include/a.h"),
        ] {
            assert_eq!(path_from_top(folder, path), expected);
        }
    }
}
