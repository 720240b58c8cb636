//! The project at the base revision, in a worktree of its own.

use std::path::{Path, PathBuf};

use super::batch::Batch;
use super::watch::{Silent, Watch};
use crate::build::Artifact;
use crate::config::{self, Config, Mismatch, Pins, Toolchain, Variant};
use crate::files::{base_folder, create_work_folder};
use crate::finding::{Code, Error, Finding};
use crate::git::{self, Worktree};
use crate::profile::Profile;

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
    /// Checks a revision out beside the project that `head` is the configuration of.
    ///
    /// # Errors
    /// [`Error::Usage`] where there is no such revision; [`Error::Environment`] where git fails.
    pub fn check_out(head: &Config, revision: &str) -> Result<BaseProject, Error> {
        if git::commit_of(&head.root, revision).is_some() {
            create_work_folder(&head.work)?;
        }
        let worktree = Worktree::add(&head.root, revision, &head.work.join("worktrees"))?;
        let name = head
            .path
            .file_name()
            .map_or_else(|| PathBuf::from(config::FILE_NAME), PathBuf::from);
        let config = Config::load(&worktree.project.join(name))
            .map(|base| Config {
                // One cache of builds serves both revisions.
                work: head.work.clone(),
                device: head.device,
                // What is pinned now is what both are measured with. A compiler of the base's own
                // that is not so is told, and does not end the run.
                toolchain: Toolchain {
                    pins: Pins {
                        mismatch: Mismatch::Warn,
                        ..head.toolchain.pins.clone()
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
        variants: &[Result<Variant, String>],
        artifacts: &[Result<Artifact, String>],
        output: &Path,
    ) -> Result<Vec<Profile>, Error> {
        let Ok(config) = &self.config else {
            return Ok(Vec::new());
        };
        let built = variants.iter().zip(artifacts);
        let (variants, artifacts): (Vec<&Variant>, Vec<Option<Artifact>>) = built
            .filter_map(|(variant, artifact)| Some((variant.as_ref().ok()?, artifact.clone().ok())))
            .unzip();
        let batch = Batch {
            config,
            variants: &variants,
            watch: &Silent,
        };
        let folder = |variant: &Variant| base_folder(output, &variant.id);
        batch.keep_compiled(&artifacts, folder, &[], Some(&self.commit))
    }

    /// The base's version of a variant: its code and arguments, measured as the head's is.
    pub(super) fn variant(&self, head: &Variant) -> Result<Variant, String> {
        let config = self.config.as_ref().map_err(Clone::clone)?;
        let base = config
            .variant(&head.id)
            .ok_or_else(|| "it does not hold this variant".to_owned())?;
        if base.args != head.args {
            return Err("its workload is another".to_owned());
        }
        Ok(Variant {
            metrics: head.metrics.clone(),
            static_metrics: head.static_metrics.clone(),
            work: head.work,
            profile: head.profile.clone(),
            // The base is there to be compared with: what it does wrong is not this change's.
            sanitizer: Vec::new(),
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

    /// The base's artifacts, or why there is none, in the order of the variants.
    pub(super) fn build(
        &self,
        variants: &[Result<Variant, String>],
        watch: &dyn Watch,
    ) -> Result<Vec<Result<Artifact, String>>, Error> {
        let Ok(config) = &self.config else {
            return Ok(variants.iter().map(|_| Err(String::new())).collect());
        };
        let there: Vec<&Variant> = variants.iter().flatten().collect();
        let batch = Batch {
            config,
            variants: &there,
            watch,
        };
        let (artifacts, findings) = batch.build()?;
        let mut artifacts = artifacts.into_iter();
        let why_not = |variant: &Variant| {
            let mut findings = findings.iter();
            let why = findings.find(|finding| finding.concerns(&variant.id));
            why.map_or_else(
                || "it does not build".to_owned(),
                |finding| format!("it does not build: {}", finding.message),
            )
        };
        let built = variants.iter().map(|variant| {
            let variant = variant.as_ref().map_err(Clone::clone)?;
            artifacts.next().flatten().ok_or_else(|| why_not(variant))
        });
        Ok(built.collect())
    }

    /// The finding that a variant has no base to be measured beside.
    pub(super) fn unavailable(&self, variant: &Variant, why: &str) -> Finding {
        let commit: String = self.commit.chars().take(10).collect();
        Finding::deny(
            Code::BaseUnavailable,
            &variant.id,
            format!("there is no base to measure beside it at {commit}: {why}"),
            "it is judged against its stored baseline instead",
        )
    }
}
