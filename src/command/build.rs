//! `sparsek-gate build`.

use super::answer::{answer, named};
use super::select::{load, other_toolchain, variable};
use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use crate::binary::{CompiledKernel, CompilerWarning};
use crate::build::Artifact;
use crate::cli::StageArgs;
use crate::config::{Recipe, Selected};
use crate::files::{clear_compiled, most, read_text_up_to, variant_folder};
use crate::finding::{Error, ExitCode};
use crate::measure::Batch;
use crate::report::{Progress, code_table};
use crate::terms::VariantId;
use crate::trust;

#[derive(Serialize)]
struct Built {
    variant: VariantId,
    cached: bool,
    program: Vec<String>,
    sha256: Option<String>,
    build: Vec<String>,
    kernels: std::collections::BTreeMap<String, CompiledKernel>,
    warnings: Vec<CompilerWarning>,
}

pub(super) fn run(config: &Path, arguments: &StageArgs) -> Result<ExitCode, Error> {
    trust::refuse_in_target(variable)?;
    let selected = load(config, &arguments.selection, &arguments.define)?;
    let variants = selected.variants();
    let progress = Progress::default();
    let batch = Batch {
        config: &selected.config,
        variants: &variants,
        watch: &progress,
    };
    let (artifacts, mut findings) = batch.build()?;
    findings.extend(other_toolchain(&selected, &artifacts, &[]));
    let (made, git) = (
        &selected.overrides,
        crate::git::revision(&selected.config.root),
    );
    let git = git.as_deref();
    // A trial is not stored in the place of the profile of the unchanged code.
    let compiled = if made.is_empty() {
        let folder = selected.profiles(None)?;
        // What was loaded while a program ran is not made again by a build.
        for variant in variants.iter().filter(|variant| !variant.loaded_code) {
            clear_compiled(&folder, &variant.id)?;
        }
        batch.keep_compiled(&artifacts, |id| variant_folder(&folder, id), &[], git)?
    } else {
        batch.compiled(&artifacts, made, git)
    };
    let unread = unread(&selected, &artifacts);
    let built: Vec<Built> = variants
        .iter()
        .zip(artifacts)
        .filter_map(|(variant, artifact)| {
            let artifact = artifact?;
            let compiled = artifact.compiled.unwrap_or_default();
            Some(Built {
                variant: variant.id.clone(),
                cached: artifact.cached,
                program: artifact.run,
                sha256: artifact.sha256,
                build: artifact.build_argv,
                kernels: compiled.kernels,
                warnings: compiled.warnings,
            })
        })
        .collect();
    answer(
        arguments.format,
        named("variants", &built),
        &findings,
        || {
            let mut text = code_table(&compiled);
            text.push_str(&unread);
            if !made.is_empty() {
                text.push_str(
                    "a build with `-D` is not locked: put a constant that stays into `defines`\n",
                );
            }
            text
        },
    )
}

/// A line for each constant of `defines` and `--define` that no source or header of the project names.
/// Headers from elsewhere may, as `<assert.h>` names `NDEBUG`.
fn unread(selected: &Selected, artifacts: &[Option<Artifact>]) -> String {
    let built: Vec<&Artifact> = artifacts.iter().flatten().collect();
    let sources = built.iter().flat_map(|artifact| artifact.sources.keys());
    let texts = sources
        .filter_map(|path| read_text_up_to(&selected.config.root.join(path), most::BINARY).ok());
    let texts: Vec<String> = texts.collect();
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let variants = selected.variants.iter();
    let names: BTreeSet<&str> = variants
        .filter_map(|variant| match &variant.recipe {
            Recipe::Nvcc { defines, .. } => Some(defines.keys()),
            Recipe::Command { .. } => None,
        })
        .flatten()
        .filter_map(|name| name.split('(').next())
        .collect();
    let unread = names.into_iter().filter(|name| {
        let mut words = texts.iter().flat_map(|text| text.split(|c| !is_part(c)));
        !built.is_empty() && !words.any(|word| word == *name)
    });
    unread
        .map(|name| format!("no file of this project names `{name}`: check the name, unless a header from elsewhere has it\n"))
        .collect()
}
