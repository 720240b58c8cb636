//! What a build made.

use std::collections::BTreeMap;

use crate::binary::Compiled;
use crate::finding::Finding;

/// What a build made.
#[derive(Clone, Debug)]
pub struct Artifact {
    /// The program and its fixed arguments.
    pub run: Vec<String>,
    /// Version of the compiler, where this tool called it.
    pub compiler: Option<String>,
    /// sha256 of the program, where there is one file.
    pub sha256: Option<String>,
    /// Argv of the build, without paths of this machine.
    pub build_argv: Vec<String>,
    /// Path below the configuration to sha256, of the source and each header.
    pub sources: BTreeMap<String, String>,
    /// The kernels as compiled, where this tool called the compiler.
    pub compiled: Option<Compiled>,
    /// Whether it comes from an earlier build.
    pub cached: bool,
}

/// An artifact, or the finding that says why the variant could not be built.
pub type Built = Result<Artifact, Finding>;
