//! The variants that arguments select, and whether they were built with the pinned toolchain.

use std::path::Path;

use crate::build::Artifact;
use crate::config::{Config, Pin, Recipe, Selected, Selection, Variant};
use crate::evidence::unpinned;
use crate::files::read_regular;
use crate::finding::{Error, Finding};
use crate::measure::{Batch, Silent};
use crate::process;
use crate::terms::first;

/// The variants that the arguments select.
pub(super) fn select(
    config: Config,
    selection: &Selection,
    define: &[String],
) -> Result<Selected, Error> {
    let selected = Selected::new(config, selection, define)?;
    let config = &selected.config;
    for variant in &selected.variants {
        // A command may make files that match. A merge of the checkout may lack some, see
        // `trust::refuse_untracked`.
        let has_command = matches!(&variant.recipe, Recipe::Command { build: Some(_), .. });
        if !has_command && config.root == config.checkout {
            config.own_files(variant)?;
        }
    }
    Ok(selected)
}

/// What was asked of the machine; where it lacks that, and nothing of the selected variants runs, that.
pub(super) fn or_nothing_runs<T>(plan: &Selected, asked: Result<T, Error>) -> Result<T, Error> {
    let (config, variants) = (&plan.config, plan.variants());
    let has_main = |file: &String| {
        let text = read_regular(&config.root.join(file));
        text.is_ok_and(|text| text.windows(4).any(|word| word == b"main"))
    };
    let may_run = |variant: &&Variant| match &variant.recipe {
        Recipe::Command { run, .. } => !run.is_empty(),
        Recipe::Nvcc { sources, .. } => sources.iter().any(has_main),
    };
    if !matches!(asked, Err(Error::Environment { .. })) || variants.iter().any(may_run) {
        return asked;
    }
    // A header may have the `main`.
    let batch = Batch {
        config,
        variants: &variants,
        watch: &Silent,
    };
    let built = batch.build_without_commands().unwrap_or_default().0;
    if built.iter().flatten().any(|one| !one.run.is_empty()) {
        return asked;
    }
    Err(Error::Usage(format!(
        "nothing of {} runs: it is machine code without a `main`, which is not measured\n  next: sparsek-gate check --static",
        first(variants.iter().map(|one| one.id.to_string()), 5)
    )))
}

/// A variable of the environment. One that is no text is set, too.
pub(super) fn variable(name: &str) -> Option<String> {
    let value = std::env::var_os(name)?;
    Some(value.to_string_lossy().into_owned())
}

/// The same with the configuration at a path. From then on programs get the variables that it names.
pub(super) fn load(
    config: &Path,
    selection: &Selection,
    define: &[String],
) -> Result<Selected, Error> {
    let selected = select(Config::load(config)?, selection, define)?;
    process::pass(&selected.config.env_pass);
    Ok(selected)
}

/// Findings on variants that were built, or run, with another toolchain than is pinned.
pub(super) fn other_toolchain(
    selected: &Selected,
    artifacts: &[Option<Artifact>],
    machine: &[Pin],
) -> Vec<Finding> {
    let pins_of = |artifact: &Artifact| {
        let compiler = artifact.compiler.as_deref();
        let pins = &selected.config.toolchain.pins;
        let cuda = compiler.and_then(|version| pins.cuda(version));
        machine.iter().cloned().chain(cuda).collect::<Vec<_>>()
    };
    let what = if machine.is_empty() { "built" } else { "run" };
    let built = selected.variants.iter().zip(artifacts);
    built
        .filter_map(|(variant, artifact)| unpinned(&variant.id, what, &pins_of(artifact.as_ref()?)))
        .collect()
}
