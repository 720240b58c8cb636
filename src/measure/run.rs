//! Variants to fresh profiles, one after the other on the configured GPU.

use std::path::Path;
use std::time::Duration;

use super::base::BaseProject;
use super::batch::Batch;
use super::bench::Bench;
use super::retry::Retries;
use super::rounds::{Halt, Profiles, StillOpen, Subjects};
use super::subject::Subject;
use super::watch::OfBase;
use crate::build::Artifact;
use crate::config::{Config, Variant};
use crate::evidence::{disturbed, incomplete, incomplete_side, unpinned};
use crate::files::{base_folder, empty_variant_folder, variant_folder};
use crate::finding::{Error, Finding, Severity};
use crate::plan::{Side, VariantPlan};
use crate::profile::Profile;
use crate::terms::Phase;

/// What measuring gave.
#[derive(Debug, Default)]
pub struct Measured {
    /// Fresh profiles, of the variants that could be measured.
    pub profiles: Vec<Profile>,
    /// Fresh profiles of the base revision, of the variants that were measured side by side.
    pub bases: Vec<Profile>,
    /// Static profiles of the variants that were built by the compiler.
    pub compiled: Vec<Profile>,
    /// The same of the base revision.
    pub compiled_bases: Vec<Profile>,
    /// Why the others could not, and what is incomplete.
    pub findings: Vec<Finding>,
    /// Time inside nvcc, the verifying runs and ncu.
    pub tools_wall: Duration,
}

/// What is to be measured.
#[derive(Clone, Copy)]
pub struct Order<'a> {
    /// The variants.
    pub batch: Batch<'a>,
    /// The base revision, where it is measured side by side with them.
    pub base: Option<&'a BaseProject>,
    /// Profiles and captures are left in `output/<suite>/<variant>/`, those of the base in the
    /// folder `base` there.
    pub output: &'a Path,
    /// Constants of a trial (`--define`).
    pub overrides: &'a [String],
}

/// Measures variants. While `open` says so, and within the configured bound, a variant is measured
/// in more processes. Where a base cannot be measured a finding says why, and the variant is
/// measured alone.
///
/// # Errors
/// [`Error`] where the machine failed; whatever concerns one variant is a finding.
pub fn measure(order: Order<'_>, open: &mut StillOpen<'_>) -> Result<Measured, Error> {
    let Order { batch, output, .. } = order;
    let mut run = Run {
        bench: Bench::new(batch, order.overrides)?,
        git: crate::git::revision(&batch.config.root),
        order,
        measured: Measured::default(),
    };
    // A variant that fails now must not leave an earlier profile behind to be taken for this one.
    for variant in batch.variants {
        empty_variant_folder(output, &variant.id)?;
    }
    let variants = batch.variants.iter();
    let bases: Option<Vec<Result<Variant, String>>> = order
        .base
        .map(|base| variants.map(|variant| base.variant(variant)).collect());
    let (artifacts, base_artifacts) = run.build(bases.as_deref())?;
    let lock = run.bench.hold()?;
    for (index, (variant, artifact)) in batch.variants.iter().zip(artifacts).enumerate() {
        let Some(artifact) = artifact else { continue };
        if !run.verified(batch, variant, &artifact)? {
            continue;
        }
        let base = bases
            .as_ref()
            .zip(base_artifacts.as_ref())
            .and_then(|(bases, artifacts)| bases.get(index).zip(artifacts.get(index)));
        run.variant(variant, artifact, base, open)?;
    }
    drop(lock);
    Ok(run.measured)
}

/// What the variants of one run share.
struct Run<'a> {
    order: Order<'a>,
    bench: Bench<'a>,
    git: Option<String>,
    measured: Measured,
}

/// The base's version of a variant and its program, or why there is none.
type OfBaseRevision<'a> = (&'a Result<Variant, String>, &'a Result<Artifact, String>);

impl<'a> Run<'a> {
    /// Builds both sides, and keeps what the compiler made of them.
    #[expect(clippy::type_complexity, reason = "one list a side")]
    fn build(
        &mut self,
        bases: Option<&[Result<Variant, String>]>,
    ) -> Result<(Vec<Option<Artifact>>, Option<Vec<Result<Artifact, String>>>), Error> {
        let Order { batch, output, .. } = self.order;
        let started = std::time::Instant::now();
        let (artifacts, findings) = batch.build()?;
        self.measured.findings.extend(findings);
        let of_base = match self.order.base.zip(bases) {
            Some((base, bases)) => Some(base.build(bases, &OfBase(batch.watch))?),
            None => None,
        };
        self.measured.tools_wall += started.elapsed();
        let folder = |variant: &Variant| variant_folder(output, &variant.id);
        let (overrides, git) = (self.order.overrides, self.git.as_deref());
        self.measured.compiled = batch.keep_compiled(&artifacts, folder, overrides, git)?;
        if let (Some(base), Some(bases), Some(artifacts)) = (self.order.base, bases, &of_base) {
            self.measured.compiled_bases = base.keep_compiled(bases, artifacts, output)?;
        }
        Ok((artifacts, of_base))
    }

    /// Whether the numbers of a built variant are right, and compute-sanitizer finds nothing where
    /// it is asked.
    fn verified(
        &mut self,
        batch: Batch<'_>,
        variant: &Variant,
        artifact: &Artifact,
    ) -> Result<bool, Error> {
        let (right, findings) = self.checked(batch, variant, artifact)?;
        self.measured.findings.extend(findings);
        Ok(right)
    }

    fn checked(
        &mut self,
        batch: Batch<'_>,
        variant: &Variant,
        artifact: &Artifact,
    ) -> Result<(bool, Vec<Finding>), Error> {
        let one = Batch {
            variants: &[variant],
            ..batch
        };
        let artifacts = [Some(artifact.clone())];
        let (verified, mut findings) = one.verify(&artifacts, &self.bench.env)?;
        let right = verified.into_iter().flatten().next();
        self.measured.tools_wall += right.as_ref().map_or(Duration::ZERO, |right| right.wall);
        if let Some(sanitizer) = &self.bench.sanitizer {
            let (sanitized, found) =
                one.sanitize(&artifacts, &findings, sanitizer, &self.bench.env)?;
            findings.extend(found);
            let tools = sanitized.iter().flat_map(|variant| &variant.tools);
            self.measured.tools_wall += tools.map(|tool| tool.wall).sum::<Duration>();
        }
        let denied = |finding: &Finding| finding.severity == Severity::Deny;
        let clean = !findings.iter().any(denied);
        Ok((right.is_some() && clean, findings))
    }

    /// Measures one variant that was verified, beside the base where there is one.
    fn variant(
        &mut self,
        variant: &'a Variant,
        artifact: Artifact,
        of_base: Option<OfBaseRevision<'_>>,
        open: &mut StillOpen<'_>,
    ) -> Result<(), Error> {
        let watch = self.order.batch.watch;
        let folder = variant_folder(self.order.output, &variant.id);
        let config: &Config = self.order.batch.config;
        let current = Subject::new(config, variant, artifact, folder, self.git.clone());
        let base = match self.order.base.zip(of_base) {
            Some((base, of_base)) => Some((base, self.base_subject(base, of_base)?)),
            None => None,
        };
        watch.begins(variant, "profile");
        // One bound for the variant, whichever way it is measured.
        let mut retries = Retries::of(variant, watch);
        let mut subjects = Subjects {
            current,
            base: None,
        };
        let mut answer = None;
        if let Some((base, of_base)) = base {
            let why = match of_base {
                Err(why) => Some(why),
                Ok(of_base) => {
                    subjects.base = Some(of_base);
                    let plan = VariantPlan::side_by_side(variant);
                    let measured = subjects.measure(&self.bench, &plan, &mut retries, open);
                    let of_base = subjects.base.as_ref();
                    self.measured.tools_wall +=
                        of_base.map_or(Duration::ZERO, |subject| subject.tools_wall());
                    match measured {
                        Err(Halt::Side(Side::Base, finding)) => Some(finding.message),
                        other => {
                            answer = Some(other);
                            None
                        }
                    }
                }
            };
            if let Some(why) = why {
                subjects.base = None;
                self.measured.findings.push(base.unavailable(variant, &why));
            }
        }
        let answer = answer.unwrap_or_else(|| {
            let plan = VariantPlan::alone(variant);
            subjects.measure(&self.bench, &plan, &mut retries, open)
        });
        self.measured.findings.extend(retries.warnings());
        self.measured.tools_wall += subjects.current.tools_wall();
        match answer {
            Ok(profiles) => self.keep(variant, &subjects, profiles),
            Err(Halt::Side(_, finding)) => {
                watch.ended(variant, "profile", &finding.message);
                let tier = subjects.current.tier;
                let findings = self.bench.unmeasured(variant, tier, *finding);
                self.measured.findings.extend(findings);
                Ok(())
            }
            Err(Halt::Error(error)) => Err(error),
        }
    }

    /// The base's version of a variant, if its numbers are right; otherwise why it cannot serve.
    fn base_subject<'b>(
        &mut self,
        base: &'b BaseProject,
        (variant, artifact): OfBaseRevision<'b>,
    ) -> Result<Result<Subject<'b>, String>, Error> {
        let (variant, artifact) = match (variant, artifact, &base.config) {
            (Err(why), ..) | (_, Err(why), _) | (.., Err(why)) => return Ok(Err(why.clone())),
            (Ok(variant), Ok(artifact), Ok(_)) => (variant, artifact),
        };
        let Ok(config) = &base.config else {
            return Ok(Err("its configuration cannot be read".to_owned()));
        };
        let watch = OfBase(self.order.batch.watch);
        let batch = Batch {
            config,
            variants: &[],
            watch: &watch,
        };
        let (right, mut findings) = self.checked(batch, variant, artifact)?;
        if !right {
            let why = findings.pop().map(|finding| finding.message);
            return Ok(Err(why.unwrap_or_else(|| "it fails its check".to_owned())));
        }
        let folder = base_folder(self.order.output, &variant.id);
        std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        let commit = Some(base.commit.clone());
        Ok(Ok(Subject::new(
            config,
            variant,
            artifact.clone(),
            folder,
            commit,
        )))
    }

    /// Keeps the profiles of a variant, and what is to be said of them.
    fn keep(
        &mut self,
        variant: &Variant,
        subjects: &Subjects<'_>,
        profiles: Profiles,
    ) -> Result<(), Error> {
        let Profiles { current, base } = profiles;
        subjects.current.keep(&current)?;
        let mut gaps = match &base {
            Some(_) => incomplete_side(variant, &current),
            None => incomplete(variant, &current),
        };
        if base.is_none() {
            gaps.extend(disturbed(variant, &current));
        }
        gaps.extend(subjects.current.mismatches(&self.bench));
        let side = match base {
            Some(_) => ", side by side with the base",
            None => "",
        };
        let text = format!("{}{side}", words(&current, &gaps));
        self.order.batch.watch.ended(variant, "profile", &text);
        gaps.extend(unpinned(&variant.id, "measured", &current.provenance.pins));
        self.measured.findings.extend(gaps);
        if let (Some(profile), Some(subject)) = (base, &subjects.base) {
            subject.keep(&profile)?;
            self.measured.bases.push(profile);
        }
        self.measured.profiles.push(current);
        Ok(())
    }
}

/// What a fresh profile is, in a few words.
fn words(profile: &Profile, gaps: &[Finding]) -> String {
    match gaps.first() {
        None => format!(
            "{} launches in {} processes",
            profile.launch_count(Phase::Timing),
            profile.provenance.processes
        ),
        Some(gap) => gap.message.clone(),
    }
}
