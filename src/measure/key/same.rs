//! Variants whose program is the same on both sides of a comparison, so that to measure them would
//! compare a program with itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::readable::{path_from_top, place_of, words_of_runs};
use crate::binary::{contains, loads_at_run_time};
use crate::build::Artifact;
use crate::config::{Config, Recipe, Unread, Variant};
use crate::disk;
use crate::git;
use crate::measure::place::base::BaseProject;
use crate::measure::run::built::{Built, CompiledSources, Pair};

/// What differs between the base and the files that are judged.
pub(in crate::measure) struct ChangedFiles {
    /// The commit of the base.
    pub base: String,
    /// Paths from the top of the repository; those of `unread` only where a variant is a command.
    files: BTreeSet<String>,
    /// The folder of the configuration, from there.
    folder: PathBuf,
    unread: Unread,
}

impl ChangedFiles {
    /// What changed since the base and concerns these variants. `config` is the configuration that the
    /// run is judged by: it names the files that no program reads.
    ///
    /// # Errors
    /// Why git cannot say it, in words.
    pub fn since(
        base: &BaseProject,
        config: &Config,
        variants: &[&Variant],
    ) -> Result<ChangedFiles, String> {
        let commit = base.commit().ok_or("the base is no revision")?;
        // What a command runs may read any file.
        let by_command = |variant: &&Variant| matches!(variant.recipe, Recipe::Command { .. });
        let any_command = variants.iter().any(by_command);
        let matters = |path: &str| any_command || !config.unread.contains(path);
        Ok(ChangedFiles {
            base: commit.to_owned(),
            files: git::changed_since(&config.root, commit, matters)?,
            folder: place_of(&config.root)?.1,
            unread: config.unread.clone(),
        })
    }

    /// Whether a variant must be measured for what changed, whatever its program becomes.
    pub fn concern(&self, variant: &Variant) -> bool {
        match &variant.recipe {
            Recipe::Nvcc { sources, .. } => {
                let mut sources = sources.iter().map(|source| self.path_from_top(source));
                sources.any(|source| self.files.contains(&source))
            }
            Recipe::Command { .. } => !self.files.is_empty(),
        }
    }

    fn path_from_top(&self, path: &str) -> String {
        path_from_top(&self.folder, path)
    }

    /// Changed files that a program may read.
    fn read(&self) -> impl Iterator<Item = &str> {
        let files = self.files.iter().map(String::as_str);
        files.filter(|file| !self.unread.contains(file))
    }
}

/// Why both sides of a variant must be measured; `None` where the program, its arguments and its
/// environment are the same on both sides, and nothing that it could read differs. `compiled` are
/// the sources of every variant that is known.
pub(in crate::measure) fn must_measure(
    built: &Built<'_>,
    pair: &Pair<'_>,
    changed: &ChangedFiles,
    compiled: &CompiledSources,
) -> Option<String> {
    if let Some(what) = different_runs(pair) {
        return Some(format!("{what} differ"));
    }
    if !same_artifact(pair) {
        return Some("its program differs".to_owned());
    }
    let first = changed.files.first()?;
    if let Recipe::Command { .. } = pair.variant.recipe {
        return Some(format!(
            "what it reads is not known for certain, and `{first}` changed"
        ));
    }
    if let (true, Some(first)) = (built.ran_build_command(), changed.read().next()) {
        return Some(format!(
            "a build command may read `{first}`, which changed, and write what it reads"
        ));
    }
    unknown_reader(pair, changed, compiled).or_else(|| may_load(pair, changed))
}

/// What of the runs of a variant differs between the sides.
pub(in crate::measure) fn different_runs(pair: &Pair<'_>) -> Option<&'static str> {
    let (now, base) = (pair.variant, pair.base_variant);
    let same = [
        ("its arguments", now.args == base.args),
        ("its arguments", now.verify_args == base.verify_args),
        ("its arguments", now.profile_args == base.profile_args),
        ("its arguments", now.sanitizer_args == base.sanitizer_args),
        ("its variables", now.env == base.env),
        (
            "its kernels",
            now.kernels == base.kernels && now.expect == base.expect,
        ),
        ("its launches", now.launch == base.launch),
    ];
    same.into_iter()
        .find_map(|(what, same)| (!same).then_some(what))
}

/// Whether the programs are the same, byte for byte, and are those that were built.
pub(in crate::measure) fn same_artifact(pair: &Pair<'_>) -> bool {
    let (now, base) = (pair.artifact, pair.base);
    let unaltered = |artifact: &Artifact| artifact.check_unaltered(&pair.variant.id).is_ok();
    let same = match pair.variant.recipe {
        Recipe::Nvcc { .. } => now.sha256.is_some() && now.sha256 == base.sha256,
        Recipe::Command { .. } => {
            now.run == base.run
                && now.sources == base.sources
                && programs(pair.root, now) == programs(pair.base_root, base)
        }
    };
    same && unaltered(now) && unaltered(base)
}

/// The files that run, by their paths in the project, and their sha256.
fn programs<'a>(root: &Path, artifact: &'a Artifact) -> BTreeMap<&'a Path, &'a str> {
    let programs = artifact.programs.iter();
    programs
        .map(|(path, sha256)| (path.strip_prefix(root).unwrap_or(path), sha256.as_str()))
        .collect()
}

/// A changed file that the program may read, because nothing else is known to.
fn unknown_reader(
    pair: &Pair<'_>,
    changed: &ChangedFiles,
    compiled: &CompiledSources,
) -> Option<String> {
    let own = compiled.get(&pair.variant.id).into_iter().flatten();
    let own: BTreeSet<String> = own
        .chain(pair.artifact.sources.keys())
        .map(|path| changed.path_from_top(path))
        .collect();
    let others: BTreeSet<String> = compiled
        .iter()
        .filter(|(id, _)| **id != pair.variant.id)
        .flat_map(|(_, sources)| sources)
        .map(|path| changed.path_from_top(path))
        .collect();
    changed.read().find_map(|file| {
        if own.contains(file) {
            Some(format!("it is made of `{file}`, which changed"))
        } else if others.contains(file) {
            None
        } else {
            Some(format!(
                "`{file}` changed, and it is not known who reads it"
            ))
        }
    })
}

/// That the program may load code while it runs, or that it, its arguments or its variables name a
/// changed file.
fn may_load(pair: &Pair<'_>, changed: &ChangedFiles) -> Option<String> {
    let first = changed.read().next()?;
    let path = pair.artifact.run.first()?;
    let Ok(program) = git::real_input(Path::new(path)).and_then(disk::read) else {
        return Some("its program cannot be read".to_owned());
    };
    if let Some(why) = loads_at_run_time(&program) {
        return Some(format!("{why}, so it may load code, and `{first}` changed"));
    }
    let mut files = changed.read();
    files.find_map(|file| {
        let name = Path::new(file).file_name()?.to_str()?;
        if contains(&program, name.as_bytes()) {
            return Some(format!("its program names `{file}`, which changed"));
        }
        let mut words = words_of_runs(pair.variant);
        let named = words.any(|word| word.contains(name));
        named.then(|| format!("its arguments or variables name `{file}`, which changed"))
    })
}
