//! Tools of the CUDA toolkit beside nvcc and ncu.

use std::path::{Path, PathBuf};

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
    /// A tool of a known place.
    pub(crate) fn at(path: PathBuf, work: &Path) -> Result<Tool, Error> {
        let program = path.display().to_string();
        let banner = cached(work, &path, || {
            query(vec![program, "--version".to_owned()], &[])
        })?;
        Ok(Tool {
            version: version(&banner).unwrap_or_default().to_owned(),
            path,
        })
    }

    /// The tool, if it names a version.
    pub(crate) fn with_version(self) -> Result<Tool, Error> {
        if !self.version.is_empty() {
            return Ok(self);
        }
        Err(Error::environment(
            format!("`{} --version` names no version", self.path.display()),
            "name the tool itself (in `[toolchain]`, or by `--nvcc`), or check the installation",
        ))
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
