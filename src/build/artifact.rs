//! What a build made.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::binary::Compiled;
use crate::finding::{Code, Finding};
use crate::hash::sha256_file;
use crate::terms::VariantId;

/// What a build made.
#[derive(Clone, Debug)]
pub struct Artifact {
    /// The program and its fixed arguments.
    pub run: Vec<String>,
    /// Version of the compiler, where this tool called it.
    pub compiler: Option<String>,
    /// sha256 of the program, where there is one file.
    pub sha256: Option<String>,
    /// sha256 of the files of the project that the argv names, after a build command.
    pub started: BTreeMap<PathBuf, String>,
    /// Argv of the build, without paths of this machine.
    pub build_argv: Vec<String>,
    /// Path below the configuration to sha256, of the source and each header.
    pub sources: BTreeMap<String, String>,
    /// The kernels as compiled, where this tool called the compiler.
    pub compiled: Option<Compiled>,
    /// Whether it comes from an earlier build.
    pub cached: bool,
}

impl Artifact {
    /// That the program is the one that was built: the file that the compiler made, or the files of
    /// the project that the argv names. Any program of the same user may have written to them since.
    ///
    /// # Errors
    /// The finding that says which file differs.
    pub fn check_unaltered(&self, variant: &VariantId) -> Result<(), Finding> {
        let compiled = self.sha256.as_ref().zip(self.run.first());
        let compiled = compiled.map(|(sha256, program)| (Path::new(program), sha256));
        let named = self
            .started
            .iter()
            .map(|(path, sha256)| (path.as_path(), sha256));
        let mut files = compiled.into_iter().chain(named);
        let altered =
            files.find(|(path, sha256)| !sha256_file(path).is_ok_and(|now| now == **sha256));
        let Some((program, _)) = altered else {
            return Ok(());
        };
        Err(Finding::deny(
            Code::AlteredDuringRun,
            variant,
            format!(
                "the program {} changed after it was built",
                program.display()
            ),
            "find out which program writes there, and run again".to_owned(),
        ))
    }
}

/// An artifact, or the finding that says why the variant could not be built.
pub type Built = Result<Artifact, Finding>;
