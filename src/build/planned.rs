//! What a build would take, without building.

use serde::Serialize;

use super::artifact::Artifact;
use super::nvcc::NvccBuild;
use crate::config::{Config, Recipe, Variant};
use crate::toolchain::{Nvcc, Nvdisasm, nvcc_flags};

/// Stands for the path of a program that is not built yet: it contains the hash of all that goes in.
pub const UNBUILT: &str = "{program}";

/// Whether a variant would be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BuildState {
    /// The configuration names no build.
    Nothing,
    /// An earlier build is reused.
    Reused,
    /// It is built.
    Built,
    /// Not known: no version of the compiler is remembered, and a dry run does not ask it.
    Unknown,
}

/// What building a variant would take.
#[derive(Clone, Debug)]
pub struct PlannedBuild {
    /// Whether it would be built.
    pub state: BuildState,
    /// The argv of the build; empty where there is none.
    pub argv: Vec<String>,
    /// What would run: the program and its fixed arguments.
    pub artifact: Artifact,
}

/// What building a variant would take. Reads files and starts no program, as long as
/// [`crate::process::start_nothing`] was called.
pub fn planned_build(config: &Config, variant: &Variant) -> PlannedBuild {
    let (sources, flags, defines) = match &variant.recipe {
        Recipe::Command { build, run, .. } => {
            let state = match build {
                Some(_) => BuildState::Built,
                None => BuildState::Nothing,
            };
            return PlannedBuild {
                state,
                argv: build.clone().unwrap_or_default(),
                artifact: unbuilt(run.clone()),
            };
        }
        Recipe::Nvcc {
            sources,
            flags,
            defines,
        } => (sources, flags, defines),
    };
    let nvcc = Nvcc::locate(&config.toolchain, &config.work).ok();
    let mut argv = match &nvcc {
        Some(nvcc) => nvcc.argv(&config.toolchain, flags, defines),
        None => {
            let mut argv = vec!["nvcc".to_owned()];
            argv.extend(nvcc_flags(&config.toolchain, flags, defines));
            argv
        }
    };
    argv.extend(["-o", UNBUILT].map(str::to_owned));
    argv.extend_from_slice(sources);
    let cached = nvcc.as_ref().and_then(|nvcc| {
        let nvdisasm = Nvdisasm::locate(&nvcc.root(), &config.work);
        NvccBuild::of(config, variant, nvcc, nvdisasm.as_ref())?.cached()
    });
    let state = match (&nvcc, &cached) {
        (None, _) => BuildState::Unknown,
        (Some(_), None) => BuildState::Built,
        (Some(_), Some(_)) => BuildState::Reused,
    };
    PlannedBuild {
        state,
        argv,
        artifact: cached.unwrap_or_else(|| unbuilt(vec![UNBUILT.to_owned()])),
    }
}

/// A program of which only the command is known.
fn unbuilt(run: Vec<String>) -> Artifact {
    Artifact {
        run,
        compiler: None,
        sha256: None,
        programs: Default::default(),
        build_argv: Vec::new(),
        sources: Default::default(),
        compiled: None,
        cached: false,
    }
}
