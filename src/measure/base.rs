//! What the variants are measured beside: the project at the base revision, in a worktree of its
//! own, or another program.

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

/// The other side of every comparison: the project as it is at the base revision, or another
/// program.
#[derive(Debug)]
pub struct BaseProject {
    source: BaseSource,
    /// Its configuration, or why there is none.
    pub(super) config: Result<Config, String>,
}

/// Where a base comes from.
#[derive(Debug)]
enum BaseSource {
    /// A commit, checked out in a worktree of its own.
    Revision { commit: String, _worktree: Worktree },
    /// Another program. Nothing else can be compared with, so without it nothing is judged.
    Program,
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
            source: BaseSource::Revision {
                commit: worktree.commit.clone(),
                _worktree: worktree,
            },
            config,
        })
    }

    /// Another program, as the variant of the same name in its configuration.
    pub fn of_program(config: Config) -> BaseProject {
        BaseProject {
            source: BaseSource::Program,
            config: Ok(config),
        }
    }

    /// The commit; `None` of another program.
    pub fn commit(&self) -> Option<&str> {
        match &self.source {
            BaseSource::Revision { commit, .. } => Some(commit),
            BaseSource::Program => None,
        }
    }

    /// Whether a variant that cannot be measured beside it is not measured at all. Beside a revision
    /// it is measured alone, and compared with its baseline.
    pub(super) fn is_required(&self) -> bool {
        matches!(self.source, BaseSource::Program)
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
        batch.keep_compiled(&artifacts, folder, &[], self.commit())
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
            loaded_code: current.loaded_code,
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
            let found = findings.find(|finding| finding.concerns(&variant.id));
            match found {
                Some(found) if self.is_required() => found.clone().in_base(),
                Some(found) => {
                    let why = format!("it does not build: {}", found.message);
                    self.unavailable(variant, &why)
                }
                None => self.unavailable(variant, "it does not build"),
            }
        };
        let mut artifacts = artifacts.into_iter();
        let built = variants.into_iter().zip(current);
        Ok(built
            .map(|(variant, current)| {
                let variant = variant.map_err(|why| self.unavailable(current, &why))?;
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
            })
            .collect())
    }

    /// What to report of a base that was not measured because of a finding.
    pub(super) fn lacking(&self, variant: &Variant, found: Finding) -> Finding {
        if self.is_required() {
            found.in_base()
        } else {
            self.unavailable(variant, &found.message)
        }
    }

    /// The finding that a variant has no base to measure side by side with.
    pub(super) fn unavailable(&self, variant: &Variant, why: &str) -> Finding {
        let commit = self.commit().unwrap_or_default().chars().take(10);
        let at = commit.collect::<String>();
        Finding::deny(
            Code::BaseUnavailable,
            &variant.id,
            format!("the base at {at} cannot be measured side by side: {why}"),
            "use the comparison with its stored baseline, which is made instead",
        )
    }
}
