//! What a build made.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::binary::Compiled;
use crate::finding::{Code, Finding};
use crate::hash::sha256_file;
use crate::terms::VariantId;

/// What a build made.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// The program and its fixed arguments.
    #[serde(skip)]
    pub run: Vec<String>,
    /// Version of the compiler, where this tool called it.
    pub compiler: Option<String>,
    /// sha256 of the program, where the compiler made it.
    pub sha256: Option<String>,
    /// The files that run to their sha256: the program, and the files of the project that its argv
    /// names.
    #[serde(skip)]
    pub programs: BTreeMap<PathBuf, String>,
    /// Argv of the build, without paths of this machine.
    pub build_argv: Vec<String>,
    /// Path below the configuration to sha256, of the source and each header.
    pub sources: BTreeMap<String, String>,
    /// The kernels as compiled, where this tool called the compiler or read the machine code.
    pub compiled: Option<Compiled>,
    /// Whether it comes from an earlier build.
    #[serde(skip)]
    pub cached: bool,
}

impl Artifact {
    /// That the program is the one that was built. Any program of the same user may have written to
    /// its files since.
    ///
    /// # Errors
    /// The finding that says which file differs.
    pub fn check_unaltered(&self, variant: &VariantId) -> Result<(), Finding> {
        let mut files = self.programs.iter();
        let altered =
            files.find(|(path, sha256)| !sha256_file(path).is_ok_and(|now| now == **sha256));
        let Some((program, _)) = altered else {
            return Ok(());
        };
        let program = program.display();
        let message = format!("the program {program} changed after it was built");
        Err(Finding::of(Code::AlteredDuringRun, variant, message))
    }
}

/// An artifact, or the finding that says why the variant could not be built.
pub type Built = Result<Artifact, Finding>;
