//! Tools of the CUDA toolkit beside nvcc and ncu.

use std::path::{Path, PathBuf};

use super::find::{cuda_roots, find, path_folders};
use super::query::query;
use super::version::cached;
use crate::finding::Error;

/// A tool that was found.
#[derive(Clone, Debug)]
pub struct Tool {
    /// The program.
    pub path: PathBuf,
    /// Its version, as it prints it; empty where it names none.
    pub version: String,
}

impl Tool {
    /// Finds a tool of the toolkit: in the folder of another one of it, the PATH, `CUDA_HOME`,
    /// `CUDA_PATH`, the usual folders.
    ///
    /// # Errors
    /// [`Error::Environment`], with the places that were looked at.
    pub fn locate(name: &str, beside: Option<&Path>, work: &Path) -> Result<Tool, Error> {
        let mut folders: Vec<PathBuf> = beside
            .and_then(Path::parent)
            .map(Path::to_path_buf)
            .into_iter()
            .collect();
        folders.extend(path_folders());
        // Some versions keep a tool in a folder of its own name.
        folders.extend(
            cuda_roots()
                .iter()
                .flat_map(|root| [root.join("bin"), root.join(name)]),
        );
        let path = find(name, None, &folders).map_err(|places| Error::Environment {
            what: format!("no {name} was found; {places}"),
            next: "install it (it comes with the CUDA toolkit), or put it on the PATH".to_owned(),
        })?;
        Tool::at(path, work)
    }

    /// A tool of a known place.
    pub(super) fn at(path: PathBuf, work: &Path) -> Result<Tool, Error> {
        let program = path.display().to_string();
        let banner = cached(work, &path, || query(vec![program, "--version".to_owned()]))?;
        Ok(Tool {
            version: version(&banner).unwrap_or_default().to_owned(),
            path,
        })
    }
}

/// The version in the `--version` of a tool of the toolkit: `..., V13.0.88`, `Version 2025.3.1.0`.
pub(super) fn version(banner: &str) -> Option<&str> {
    let is_version = |word: &&str| {
        word.strip_prefix('V')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let line = |line: &'static str| {
        let rest = banner.lines().find_map(|it| it.strip_prefix(line))?;
        rest.split_whitespace().next()
    };
    banner
        .split_whitespace()
        .find(is_version)
        .or_else(|| line("Version "))
}
