//! The stages that variants go through before they are measured.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::build::{Artifact, Builder, compiled_profile};
use crate::config::{Config, Variant};
use crate::disk;
use crate::files::STATIC_PROFILE_FILE;
use crate::finding::{Error, Finding};
use crate::measure::job::seeds::fresh_seed;
use crate::measure::watch::Watch;
use crate::profile::Profile;
use crate::sanitize::{Sanitized, SanitizedVariant, SanitizerRun, sanitize};
use crate::terms::VariantId;
use crate::toolchain::Sanitizer;
use crate::verify::{Verified, missing_program, verify};

/// Variants of one project that go through the stages together.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    /// The project.
    pub config: &'a Config,
    /// The variants.
    pub variants: &'a [&'a Variant],
    /// Is informed of each stage.
    pub watch: &'a dyn Watch,
}

impl Batch<'_> {
    /// Builds the variants, and reports each to `watch`.
    ///
    /// # Errors
    /// [`Error`] where the machine failed.
    pub fn build(&self) -> Result<(Vec<Option<Artifact>>, Vec<Finding>), Error> {
        self.build_with(true)
    }

    /// The same; without the variants' own `build` commands what they make is read as it is.
    ///
    /// # Errors
    /// [`Error`] where the machine failed.
    pub(in crate::measure) fn build_with(
        &self,
        runs_commands: bool,
    ) -> Result<(Vec<Option<Artifact>>, Vec<Finding>), Error> {
        let builder = Builder::new(self.config, self.variants, runs_commands)?;
        self.watch.expects(self.variants.len());
        let begins = |variant: &Variant| self.watch.begins(variant, "build");
        let results = builder.build_all(self.variants, &begins, &|variant, result| {
            let outcome = match result {
                Ok(artifact) if artifact.cached && artifact.compiler.is_none() => {
                    "as it stands".to_owned()
                }
                Ok(artifact) if artifact.cached => "unchanged".to_owned(),
                Ok(_) => "built".to_owned(),
                Err(finding) => finding.message.clone(),
            };
            self.watch.ended(variant, "build", &outcome);
        })?;
        let mut findings = Vec::new();
        let artifacts = results
            .into_iter()
            .zip(self.variants)
            .map(|(result, variant)| {
                let artifact = result.map_err(|finding| findings.push(finding)).ok()?;
                let missing = self.missing_program(variant, &artifact);
                // What a command makes is not there yet.
                let missing = missing.filter(|_| runs_commands);
                findings.extend(missing.clone());
                missing.is_none().then_some(artifact)
            })
            .collect();
        Ok((artifacts, findings))
    }

    /// The finding that a program, or the script of Python, is not in the project: another machine may have what is
    /// elsewhere.
    fn missing_program(&self, variant: &Variant, artifact: &Artifact) -> Option<Finding> {
        let root = &self.config.root;
        let is_ours = |word: &&String| word.contains('/') && root.join(word).starts_with(root);
        let program = artifact.run.first()?;
        let script = artifact.run.get(1).filter(|word| {
            program.starts_with("python")
                && word.ends_with(".py")
                && !disk::is_there(root.join(word))
        });
        let missing = script.or(Some(program).filter(is_ours))?;
        missing_program(root, variant, missing)
    }

    /// Static profiles of what was built.
    pub fn compiled(
        &self,
        artifacts: &[Option<Artifact>],
        overrides: &[String],
        git: Option<&str>,
    ) -> Vec<Profile> {
        let toolchain = &self.config.toolchain;
        let both = self.variants.iter().zip(artifacts);
        let compiled = both.filter_map(|(variant, artifact)| {
            let (artifact, git) = (artifact.as_ref()?, git.map(str::to_owned));
            compiled_profile(toolchain, variant, artifact, overrides, git, None)
        });
        compiled.collect()
    }

    /// The same, each left in the folder of its variant.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn keep_compiled(
        &self,
        artifacts: &[Option<Artifact>],
        folder_of: impl Fn(&VariantId) -> PathBuf,
        overrides: &[String],
        git: Option<&str>,
    ) -> Result<Vec<Profile>, Error> {
        let profiles = self.compiled(artifacts, overrides, git);
        for profile in &profiles {
            let folder = folder_of(&profile.variant);
            disk::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
            profile.write(&folder.join(STATIC_PROFILE_FILE))?;
        }
        Ok(profiles)
    }

    /// Runs the check of every variant that was built.
    ///
    /// # Errors
    /// [`Error`] where the machine failed.
    pub fn verify(
        &self,
        artifacts: &[Option<Artifact>],
        env: &BTreeMap<String, String>,
    ) -> Result<(Vec<Option<Verified>>, Vec<Finding>), Error> {
        let mut findings = Vec::new();
        let mut verified = Vec::new();
        for (variant, artifact) in self.variants.iter().zip(artifacts) {
            // A library has no numbers of its own.
            let Some(artifact) = artifact.as_ref().filter(|one| !one.run.is_empty()) else {
                if artifact.is_some() {
                    let why = "not run: its source has no `main`";
                    self.watch.ended(variant, "verify", why);
                }
                verified.push(None);
                continue;
            };
            self.watch.begins(variant, "verify");
            match verify(self.config, variant, artifact, env, fresh_seed()?) {
                Ok(right) => {
                    let words = format!("correct, {:.1} s", right.wall.as_secs_f64());
                    self.watch.ended(variant, "verify", &words);
                    verified.push(Some(right));
                }
                Err(stop) => {
                    let finding = stop.finding()?;
                    self.watch.ended(variant, "verify", &finding.message);
                    findings.push(finding);
                    verified.push(None);
                }
            }
        }
        Ok((verified, findings))
    }

    /// The compute-sanitizer that any of the variants asks for.
    ///
    /// # Errors
    /// As [`Sanitizer::locate`].
    pub fn locate_sanitizer(&self) -> Result<Option<Sanitizer>, Error> {
        let asked = |variant: &&Variant| !variant.sanitizer.is_empty();
        self.variants
            .iter()
            .any(asked)
            .then(|| Sanitizer::locate(&self.config.toolchain, &self.config.work))
            .transpose()
    }

    /// Repeats the verifying run of every variant that was built under the tools of
    /// compute-sanitizer that it asks for. `plain` are the findings of the runs without; they are not
    /// reported again.
    ///
    /// # Errors
    /// [`Error`] where the machine failed.
    pub fn sanitize(
        &self,
        artifacts: &[Option<Artifact>],
        plain: &[Finding],
        sanitizer: &Sanitizer,
        env: &BTreeMap<String, String>,
    ) -> Result<(Vec<SanitizedVariant>, Vec<Finding>), Error> {
        let mut findings = Vec::new();
        let mut sanitized = Vec::new();
        for (variant, artifact) in self.variants.iter().zip(artifacts) {
            let Some(artifact) = artifact.as_ref().filter(|one| !one.run.is_empty()) else {
                continue;
            };
            let failed = plain
                .iter()
                .find(|finding| finding.concerns(&variant.id))
                .map(|finding| finding.code);
            let mut tools: Vec<Sanitized> = Vec::new();
            for &tool in &variant.sanitizer {
                if tools.iter().any(|done| done.tool == tool) {
                    continue;
                }
                self.watch.begins(variant, tool.as_str());
                let (outcome, finding) = sanitize(&SanitizerRun {
                    config: self.config,
                    variant,
                    artifact,
                    failed,
                    sanitizer,
                    tool,
                    env,
                    seed: fresh_seed()?,
                })?;
                self.watch
                    .ended(variant, tool.as_str(), &outcome.words(finding.as_ref()));
                findings.extend(finding);
                tools.push(outcome);
            }
            sanitized.push(SanitizedVariant {
                variant: variant.id.clone(),
                tools,
            });
        }
        Ok((sanitized, findings))
    }
}
