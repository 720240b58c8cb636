//! The project at the base revision, in a worktree of its own.

use std::path::{Path, PathBuf};

use super::batch::Batch;
use super::watch::{Silent, Watch};
use crate::build::{Artifact, Witness};
use crate::config::{self, Config, Mismatch, Pins, Toolchain, Variant};
use crate::files::{base_folder, create_work_folder};
use crate::finding::{Code, Error, Finding};
use crate::git::{self, Worktree};
use crate::profile::Profile;

/// The base's version of a variant, built.
#[derive(Debug)]
pub(super) struct BaseVariant<'p> {
    pub project: &'p BaseProject,
    pub config: &'p Config,
    pub variant: Variant,
    pub artifact: Artifact,
    pub witness: Witness,
}

/// The project as it is at the base revision, in a worktree of its own.
#[derive(Debug)]
pub struct BaseProject {
    /// The commit.
    pub commit: String,
    /// Its configuration, or why there is none.
    pub(super) config: Result<Config, String>,
    _worktree: Worktree,
}

impl BaseProject {
    /// Checks a revision out beside the project that `current` configures.
    ///
    /// # Errors
    /// [`Error::Usage`] where there is no such revision; [`Error::Environment`] where git fails.
    pub fn check_out(current: &Config, revision: &str) -> Result<BaseProject, Error> {
        if git::commit_of(&current.root, revision).is_some() {
            create_work_folder(&current.work)?;
        }
        let worktree = Worktree::add(&current.root, revision, &current.work.join("worktrees"))?;
        let name = current
            .path
            .file_name()
            .map_or_else(|| PathBuf::from(config::FILE_NAME), PathBuf::from);
        let config = Config::load(&worktree.project.join(name))
            .map(|base| Config {
                // One cache of builds serves both revisions.
                work: current.work.clone(),
                device: current.device,
                // Both are measured with the versions that are pinned now. Where the base has another
                // compiler, this is reported and does not end the run.
                toolchain: Toolchain {
                    pins: Pins {
                        mismatch: Mismatch::Warn,
                        ..current.toolchain.pins.clone()
                    },
                    ..base.toolchain
                },
                ..base
            })
            .map_err(|error| error.summary());
        Ok(BaseProject {
            commit: worktree.commit.clone(),
            config,
            _worktree: worktree,
        })
    }

    /// Static profiles of the base's versions that were built.
    pub(super) fn keep_compiled(
        &self,
        built: &[Result<BaseVariant<'_>, Finding>],
        output: &Path,
    ) -> Result<Vec<Profile>, Error> {
        let Ok(config) = &self.config else {
            return Ok(Vec::new());
        };
        let built = built.iter().flatten();
        let (variants, artifacts): (Vec<&Variant>, Vec<Option<Artifact>>) = built
            .map(|base| (&base.variant, Some(base.artifact.clone())))
            .unzip();
        let batch = Batch {
            config,
            variants: &variants,
            watch: &Silent,
        };
        let folder = |variant: &Variant| base_folder(output, &variant.id);
        batch.keep_compiled(&artifacts, folder, &[], Some(&self.commit))
    }

    /// The base's version of a variant: its code and arguments, measured as the current one is; or
    /// why there is none.
    fn variant(&self, current: &Variant) -> Result<Variant, String> {
        let config = self.config.as_ref().map_err(Clone::clone)?;
        let base = config
            .variant(&current.id)
            .ok_or_else(|| "it has no such variant".to_owned())?;
        if base.args != current.args {
            return Err("its workload (`args`) differs".to_owned());
        }
        Ok(Variant {
            metrics: current.metrics.clone(),
            static_metrics: current.static_metrics.clone(),
            work: current.work,
            profile: current.profile.clone(),
            // The base is only compared with: its errors are not those of this change.
            sanitizer: Vec::new(),
            verify_always: current.verify_always,
            ..base.clone()
        })
    }

    /// The base's project and version of a variant, or why it cannot be measured beside it.
    ///
    /// # Errors
    /// Why, in words.
    pub fn side(&self, current: &Variant) -> Result<(&Config, Variant), String> {
        let config = self.config.as_ref().map_err(Clone::clone)?;
        Ok((config, self.variant(current)?))
    }

    /// Builds the base's versions of variants, in their order: each, or the finding that says why
    /// there is none.
    ///
    /// # Errors
    /// [`Error`] where the machine failed.
    pub(super) fn build(
        &self,
        current: &[&Variant],
        watch: &dyn Watch,
    ) -> Result<Vec<Result<BaseVariant<'_>, Finding>>, Error> {
        let variants: Vec<Result<Variant, String>> = current
            .iter()
            .map(|variant| self.variant(variant))
            .collect();
        let config = match &self.config {
            Ok(config) => config,
            Err(why) => {
                let unavailable = |variant: &&Variant| Err(self.unavailable(variant, why));
                return Ok(current.iter().map(unavailable).collect());
            }
        };
        let batch = Batch {
            config,
            variants: &variants.iter().flatten().collect::<Vec<_>>(),
            watch,
        };
        let (artifacts, findings) = batch.build()?;
        let why_not = |variant: &Variant| {
            let mut findings = findings.iter();
            let why = findings.find(|finding| finding.concerns(&variant.id));
            why.map_or_else(
                || "it does not build".to_owned(),
                |finding| format!("it does not build: {}", finding.message),
            )
        };
        let mut artifacts = artifacts.into_iter();
        let built = variants.into_iter().map(|variant| {
            let variant = variant?;
            match artifacts.next().flatten() {
                Some(artifact) => Ok(BaseVariant {
                    witness: Witness::of(&config.root, &artifact),
                    project: self,
                    config,
                    variant,
                    artifact,
                }),
                None => Err(why_not(&variant)),
            }
        });
        let named = built.zip(current);
        Ok(named
            .map(|(built, variant)| built.map_err(|why| self.unavailable(variant, &why)))
            .collect())
    }

    /// The finding that a variant has no base to measure side by side with.
    pub(super) fn unavailable(&self, variant: &Variant, why: &str) -> Finding {
        let commit: String = self.commit.chars().take(10).collect();
        Finding::deny(
            Code::BaseUnavailable,
            &variant.id,
            format!("the base at {commit} cannot be measured side by side: {why}"),
            "use the comparison with its stored baseline, which is made instead",
        )
    }
}
