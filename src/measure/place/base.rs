//! What the variants are measured beside: the project at the base revision, in a worktree of its
//! own, or another program.

use std::path::{Path, PathBuf};

use super::batch::Batch;
use super::prebuilt::PrebuiltSide;
use crate::build::{Artifact, Witness};
use crate::config::{self, Config, Mismatch, Pins, Toolchain, Variant};
use crate::disk;
use crate::files::{base_folder, create_work_folder};
use crate::finding::{Code, Error, Finding, Note};
use crate::git::{self, Worktree, short};
use crate::measure::watch::{Silent, Watch};
use crate::profile::Profile;

/// The base's version of a variant, built.
#[derive(Debug)]
pub(in crate::measure) struct BaseVariant<'p> {
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
    /// The commit; `None` of another program: nothing else can be compared with it, so without it nothing
    /// is judged.
    commit: Option<String>,
    /// Where the commit is checked out; `None` where its files were packed on another machine.
    worktree: Option<Worktree>,
    /// Its configuration, or why there is none.
    pub(in crate::measure) config: Result<Config, String>,
}

/// The base's configuration, to be measured beside the current one.
fn beside(base: Config, current: &Config) -> Config {
    Config {
        // One cache of builds serves both revisions.
        work: current.work.clone(),
        checkout: current.checkout.clone(),
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
    }
}

impl BaseProject {
    /// Checks a commit out beside the project that `current` configures.
    ///
    /// # Errors
    /// [`Error::Environment`] where git fails.
    pub fn check_out(current: &Config, commit: &str) -> Result<BaseProject, Error> {
        create_work_folder(&current.work)?;
        let places = current.work.join("worktrees");
        let worktree = Worktree::of_commit(&current.root, commit, &places)?;
        let name = current
            .path
            .file_name()
            .map_or_else(|| PathBuf::from(config::FILE_NAME), PathBuf::from);
        let path = worktree.project.join(name);
        let base_files = git::objects_at(&current.root, commit).unwrap_or_default();
        let top = git::repository(&current.checkout).map(|found| found.top);
        let is_gone = |file: &str| {
            top.as_ref()
                .is_ok_and(|top| !disk::is_there(top.join(file)))
        };
        let mut others = base_files
            .into_keys()
            .filter(|other| Path::new(other).file_name() == path.file_name() && is_gone(other));
        let config = match (disk::is_there(&path), others.next()) {
            (true, _) => Config::load(&path).map_err(|error| error.summary()),
            (false, Some(moved)) => Err(format!(
                "its configuration is `{moved}`, which was moved since"
            )),
            // A revision from before the gate has no variant.
            (false, None) => Ok(Config {
                root: worktree.project.clone(),
                path,
                suites: Vec::new(),
                ..current.clone()
            }),
        };
        Ok(BaseProject {
            commit: Some(worktree.commit.clone()),
            worktree: Some(worktree),
            config: config.map(|base| beside(base, current)),
        })
    }

    /// A revision that was packed on another machine, with its configuration or why there is none.
    pub fn packed(commit: String, config: Result<Config, String>, current: &Config) -> BaseProject {
        BaseProject {
            commit: Some(commit),
            worktree: None,
            config: config.map(|base| beside(base, current)),
        }
    }

    /// Its configuration, or why there is none.
    ///
    /// # Errors
    /// Why, in words.
    pub fn config(&self) -> Result<&Config, &str> {
        self.config.as_ref().map_err(String::as_str)
    }

    /// The top of its checkout, where it has one.
    pub fn checkout(&self) -> Option<&Path> {
        self.worktree.as_ref().map(|it| &*it.folder)
    }

    /// Another program, as the variant of the same name in its configuration.
    pub fn of_program(config: Config) -> BaseProject {
        BaseProject {
            commit: None,
            worktree: None,
            config: Ok(config),
        }
    }

    /// The commit; `None` of another program.
    pub fn commit(&self) -> Option<&str> {
        self.commit.as_deref()
    }

    /// Whether a variant is left out if it cannot be measured beside this base. Beside the base of
    /// a check it is then measured alone, and compared with its baseline.
    pub(in crate::measure) fn is_required(&self) -> bool {
        self.commit.is_none()
    }

    /// Static profiles of the base's versions that were built.
    pub(in crate::measure) fn keep_compiled(
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
        batch.keep_compiled(&artifacts, |id| base_folder(output, id), &[], self.commit())
    }

    /// The base's version of a variant: its code and arguments, measured as the current one is; or
    /// why there is none.
    fn variant(config: &Config, current: &Variant) -> Result<Variant, String> {
        let base = config.variant(&current.id);
        let base = base.ok_or("it has no such variant")?;
        if base.args != current.args {
            return Err("its workload (`args`) differs".to_owned());
        }
        Ok(Variant {
            metrics: current.metrics.clone(),
            explained_on: current.explained_on,
            static_metrics: current.static_metrics.clone(),
            loaded_code: current.loaded_code,
            work: current.work,
            profile: current.profile.clone(),
            // The base is only compared with: its errors are not those of this change.
            sanitizer: Vec::new(),
            ..base.clone()
        })
    }

    /// Builds the base's versions of variants, in their order: each, or the finding that says why
    /// there is none.
    ///
    /// # Errors
    /// [`Error`] where the machine failed.
    pub(in crate::measure) fn build(
        &self,
        current: &[&Variant],
        prebuilt: Option<&PrebuiltSide>,
        watch: &dyn Watch,
    ) -> Result<Vec<Result<BaseVariant<'_>, Finding>>, Error> {
        let config = match &self.config {
            Ok(config) => config,
            Err(why) => {
                let unavailable = |variant: &&Variant| Err(self.unavailable(variant, why));
                return Ok(current.iter().map(unavailable).collect());
            }
        };
        let variants = current.iter().map(|one| BaseProject::variant(config, one));
        let variants: Vec<Result<Variant, String>> = variants.collect();
        let there: Vec<&Variant> = variants.iter().flatten().collect();
        let (artifacts, findings) = match prebuilt {
            Some(prebuilt) => prebuilt.of(&there),
            None => Batch {
                config,
                variants: &there,
                watch,
            }
            .build()?,
        };
        let why_not = |variant: &Variant| {
            let mut findings = findings.iter();
            let found = findings.find(|finding| finding.concerns(&variant.id));
            match (found, prebuilt) {
                (Some(found), Some(_)) => found.clone(),
                (Some(found), None) if self.is_required() => found.clone().in_base(),
                (Some(found), None) => self
                    .unavailable(variant, &format!("it does not build: {}", found.message))
                    .detail(found.detail.clone().unwrap_or_default()),
                (None, Some(_)) => self.unavailable(variant, "it was not packed"),
                (None, None) => self.unavailable(variant, "it does not build"),
            }
        };
        let mut artifacts = artifacts.into_iter();
        let built = variants.into_iter().zip(current).map(|(variant, current)| {
            let variant = variant.map_err(|why| self.unavailable(current, &why))?;
            let artifact = artifacts.next().flatten();
            let artifact = artifact.ok_or_else(|| why_not(&variant))?;
            Ok(BaseVariant {
                witness: Witness::of(&config.root, &artifact),
                project: self,
                config,
                variant,
                artifact,
            })
        });
        Ok(built.collect())
    }

    /// What to report of a base that was not measured because of a finding.
    pub(in crate::measure) fn lacking(&self, variant: &Variant, found: Finding) -> Finding {
        match self.is_required() {
            true => found.in_base(),
            false => self.unavailable(variant, &found.message),
        }
    }

    /// The finding that a variant has no base to measure side by side with.
    pub(in crate::measure) fn unavailable(&self, variant: &Variant, why: &str) -> Finding {
        let at = short(self.commit().unwrap_or_default());
        if let Ok(base) = &self.config
            && base.variant(&variant.id).is_none()
        {
            let file = base.path.strip_prefix(&base.root).ok();
            let (lacks, next) = match file.filter(|_| base.suites.is_empty()) {
                Some(file) => (
                    format!("`{}`", file.display()),
                    "nothing, if the gate begins with this change; else name a revision that has it",
                ),
                None => (
                    "such variant".to_owned(),
                    "nothing, unless the variant has another name there",
                ),
            };
            let message = format!("the base at {at} has no {lacks}");
            let finding = Finding::deny(Code::BaseUnavailable, &variant.id, message, next);
            return finding.with(Note::New);
        }
        Finding::deny(
            Code::BaseUnavailable,
            &variant.id,
            format!("the base at {at} cannot be measured side by side: {why}"),
            "remove the cause, or rely on its stored baseline, which is used where there is one",
        )
    }
}
