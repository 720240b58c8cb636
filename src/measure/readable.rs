//! The files of a project that a program could read while it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::binary::{contains, loads_at_run_time, needs_system_alone};
use crate::build::Artifact;
use crate::config::{Unread, Variant};
use crate::files::{most, read_regular_up_to};
use crate::git;
use crate::hash::{sha256_file, sha256_hex};

/// What names of sources end in.
const SOURCES: [&str; 10] = [
    "c", "cc", "cpp", "cu", "cuh", "cxx", "h", "hh", "hpp", "inl",
];

/// Every file that git shows, tracked or not, except those that `paths.unread` names.
pub(super) struct ReadableFiles {
    /// What identifies its content, by the path from the top of the repository.
    files: BTreeMap<String, String>,
    /// The folder of the configuration, from the top.
    folder: PathBuf,
}

impl ReadableFiles {
    /// Those in the checkout that has the folder `root`.
    ///
    /// # Errors
    /// Why git cannot say it, or which file cannot be read, in words.
    pub fn of(root: &Path, unread: &Unread) -> Result<ReadableFiles, String> {
        let real = |path: &Path| path.canonicalize().map_err(|error| error.to_string());
        let (top, root) = (real(&git::repository(root)?.top)?, real(root)?);
        let folder = root.strip_prefix(&top).map_err(|error| error.to_string())?;
        let commit = git::commit_of(&root, "HEAD").ok_or("the repository has no commit yet")?;
        let mut files = git::objects_at(&root, &commit)?;
        files.retain(|path, _| !unread.contains(path));
        for path in git::changed_since(&root, &commit, |path| !unread.contains(path))? {
            match content(&top.join(&path))? {
                Some(content) => files.insert(path, content),
                None => files.remove(&path),
            };
        }
        Ok(ReadableFiles {
            files,
            folder: folder.to_path_buf(),
        })
    }

    /// The sha256 of all of them, with their names.
    pub fn sha256_of_all(&self) -> String {
        sha256_hex(format!("{:?}", self.files).as_bytes())
    }

    /// The sha256 of all files that a program could read, with their names. Sources of C, C++ and CUDA
    /// count only if the program, its arguments or its variables name them: it is assumed that only
    /// compilers read the others. So it does not depend on which other variants were built. The program's own sources, which
    /// are paths from the configuration, do not count.
    pub fn sha256<'a>(
        &self,
        variant: &Variant,
        program: &[u8],
        own: impl Iterator<Item = &'a String>,
    ) -> String {
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
        let listing: Vec<(&String, &String)> = read.collect();
        sha256_hex(format!("{listing:?}").as_bytes())
    }
}

/// The sha256 and the bytes of a program that is still what was built, and that neither loads code
/// while it runs nor needs libraries besides the system's; `None` of any other.
pub(super) fn known_bytes(artifact: &Artifact) -> Option<(&str, Vec<u8>)> {
    let sha256 = artifact.sha256.as_deref()?;
    let program = read_regular_up_to(Path::new(artifact.run.first()?), most::BINARY).ok()?;
    let known = sha256_hex(&program) == sha256
        && loads_at_run_time(&program).is_none()
        && needs_system_alone(&program);
    known.then_some((sha256, program))
}

/// Whether a file has the name of a source of C, C++ or CUDA.
fn is_source(path: &str) -> bool {
    let ending = Path::new(path).extension();
    ending.is_some_and(|ending| SOURCES.iter().any(|source| ending == *source))
}

/// What identifies the content of a changed file; `None` of one that is not there.
fn content(path: &Path) -> Result<Option<String>, String> {
    let unreadable = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(error)),
        Ok(meta) if meta.is_symlink() => {
            let target = path.read_link().map_err(unreadable)?;
            Ok(Some(format!("link {target:?}")))
        }
        Ok(_) => sha256_file(path).map(Some).map_err(unreadable),
    }
}

/// A path from the configuration, from the top of the repository; `folder` is the configuration's
/// from there. Where `..` follows a folder it stays: that folder is a link, and leads elsewhere than
/// the text says.
pub(super) fn path_from_top(folder: &Path, path: &str) -> String {
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
pub(super) fn words_of_runs(variant: &Variant) -> impl Iterator<Item = &String> {
    let arguments = [&variant.args, &variant.verify_args, &variant.profile_args];
    let sanitizer = variant.sanitizer_args.iter().flatten();
    let arguments = arguments.into_iter().flatten().chain(sanitizer);
    arguments.chain(variant.env.values())
}

#[cfg(test)]
mod tests {
    use super::*;

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
