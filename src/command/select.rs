//! The variants that arguments select, and whether they were built with the pinned toolchain.

use std::path::Path;

use crate::build::Artifact;
use crate::config::{Config, Pin, Recipe, Selected, Selection, Variant};
use crate::evidence::unpinned;
use crate::files::read_regular;
use crate::finding::{Error, Finding};
use crate::process;

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
            let files = config.own_files(variant)?;
            let mut files = files.iter().map(|file| config.root.join(file));
            files.try_for_each(|file| Error::if_denied(&file))?;
        }
    }
    Ok(selected)
}

/// What was asked of the machine. Where it lacks that, and no selected variant has a `main`, the next step
/// begins with what judges their code.
pub(super) fn or_nothing_runs<T>(plan: &Selected, asked: Result<T, Error>) -> Result<T, Error> {
    let has_main = |file: &String| {
        let text = read_regular(&plan.config.root.join(file));
        // That it is not there is said by the build.
        text.map_or(true, |text| text.windows(4).any(|word| word == b"main"))
    };
    let may_run = |variant: &&Variant| match &variant.recipe {
        Recipe::Command { run, .. } => !run.is_empty(),
        Recipe::Nvcc { sources, .. } => sources.iter().any(has_main),
    };
    match asked {
        Err(Error::Environment { what, next }) if !plan.variants().iter().any(may_run) => {
            let next = format!(
                "no selected variant has a `main` to run: `sparsek-gate check --static` judges its code; with a `main`: {next}"
            );
            Err(Error::environment(what, next))
        }
        asked => asked,
    }
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
