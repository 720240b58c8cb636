//! Builds the variants of a project, several at a time.

use std::collections::BTreeSet;

use super::artifact::{Artifact, Built};
use super::commands::Commands;
use super::flags::flag_inputs;
use super::nvcc::NvccBuild;
use crate::config::{Config, Recipe, Toolchain, Variant};
use crate::finding::{Error, Finding, Stop};
use crate::parallel;
use crate::toolchain::{Nvcc, Nvdisasm, nvcc_flags};

/// Builds variants.
#[derive(Debug)]
pub struct Builder<'a> {
    pub(super) config: &'a Config,
    /// Looked for only if a variant needs it.
    nvcc: Option<Nvcc>,
    pub(super) nvdisasm: Option<Nvdisasm>,
    /// Those that were run, for any variant.
    pub(super) commands: Commands,
    pub(super) runs_commands: bool,
}

impl<'a> Builder<'a> {
    /// A builder for these variants. nvcc is looked for only if one of them needs it. Without
    /// `runs_commands`, no `build` command of a variant is run: what such a command makes is read as it is.
    ///
    /// # Errors
    /// [`Error::Environment`] where nvcc is needed and missing, or differs from the pinned version.
    pub fn new(
        config: &'a Config,
        variants: &[&Variant],
        runs_commands: bool,
    ) -> Result<Self, Error> {
        let needed = variants.iter().any(|variant| variant.needs_nvcc());
        let nvcc = needed
            .then(|| Nvcc::locate(&config.toolchain, &config.work))
            .transpose()?;
        if let Some(nvcc) = &nvcc {
            let pin = config.toolchain.pins.cuda(&nvcc.version);
            config.toolchain.enforce(&config.path, pin.as_slice())?;
        }
        let work = config.work.to_string_lossy();
        if needed && work.contains('$') {
            return Err(Error::environment(
                format!("nvcc reads the `$` in {work} as the beginning of a variable"),
                "move the project to a folder without one, or name such a folder in `paths.work`",
            ));
        }
        let reads = needed || variants.iter().any(|variant| variant.from_machine_code());
        let nvdisasm = reads.then(|| Nvdisasm::locate(&config.toolchain, &config.work));
        Ok(Builder {
            config,
            nvcc,
            nvdisasm: nvdisasm.and_then(Result::ok),
            commands: Commands::default(),
            runs_commands,
        })
    }

    /// Builds all of them, as many at a time as there are processors, in the order given.
    /// `begins` and `done` are called for each as it begins and ends.
    ///
    /// # Errors
    /// [`Error`] where the machine failed; a variant that does not build is a finding.
    pub fn build_all(
        &self,
        variants: &[&Variant],
        begins: &(dyn Fn(&Variant) + Sync),
        done: &(dyn Fn(&Variant, Result<&Artifact, &Finding>) + Sync),
    ) -> Result<Vec<Built>, Error> {
        let results = parallel::map(variants, |variant| {
            begins(variant);
            let result = self.build(variant);
            match &result {
                Ok(artifact) => done(variant, Ok(artifact)),
                Err(Stop::Finding(finding)) => done(variant, Err(finding)),
                Err(Stop::Error(_)) => {}
            }
            result
        });
        let mut built = Vec::new();
        for result in results {
            built.push(match result {
                Ok(artifact) => Ok(artifact),
                Err(stop) => Err(stop.finding()?),
            });
        }
        Ok(built)
    }

    pub(super) fn by_nvcc(&self, variant: &Variant) -> Result<Artifact, Stop> {
        let nvcc = self.nvcc.as_ref();
        nvcc.and_then(|nvcc| NvccBuild::of(self.config, variant, nvcc, self.nvdisasm.as_ref()))
            .ok_or_else(|| Error::Usage(format!("this builder was not made for {}", variant.id)))?
            .build()
    }
}

/// The files and folders that flags of the builds of a project name.
pub fn paths_of_flags(config: &Config) -> BTreeSet<String> {
    let of_variants = config
        .variants()
        .filter_map(|variant| match &variant.recipe {
            Recipe::Nvcc { flags, .. } => Some(flags),
            Recipe::Command { .. } => None,
        });
    let all = of_variants.chain([&config.toolchain.flags]);
    // Flags that are not accepted build nothing.
    let named = all.filter_map(|flags| flag_inputs(flags).ok());
    named
        .flat_map(|named| [named.folders, named.headers, named.objects].concat())
        .collect()
}

/// A variant's flags as its lock records them: no path of a machine, no version of a compiler.
pub fn stated_flags(toolchain: &Toolchain, variant: &Variant) -> Vec<String> {
    match &variant.recipe {
        Recipe::Nvcc { flags, defines, .. } => nvcc_flags(toolchain, flags, defines),
        Recipe::Command { build, run, .. } => build.iter().flatten().chain(run).cloned().collect(),
    }
}
