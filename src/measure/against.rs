//! Base and head side by side: interleaved on one GPU, so that the machine cancels out.

use std::path::{Path, PathBuf};

use super::{
    Bench, Measured, Retries, StillOpen, Subject, Watch, build_all, disturbance, keep_compiled,
    profile_alone, verified, words,
};
use crate::build::Artifact;
use crate::config::{self, Config, Mismatch, Pins, Toolchain, Variant};
use crate::evidence::{below_counters, incomplete, incomplete_side, unpinned};
use crate::files::{
    base_folder, clear_compiled, create_work_folder, empty_variant_folder, variant_folder,
};
use crate::finding::{Code, Error, Finding};
use crate::git::{self, Worktree};
use crate::profile::Profile;
use crate::terms::Phase;

/// The project as it is at the base revision, in a worktree of its own.
#[derive(Debug)]
pub struct BaseProject {
    /// The commit.
    pub commit: String,
    /// Its configuration, or why there is none.
    config: Result<Config, String>,
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
    fn keep_compiled(
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
        keep_compiled(
            config,
            &variants,
            &artifacts,
            |variant| base_folder(output, &variant.id),
            &[],
            Some(&self.commit),
        )
    }

    /// The base's version of a variant: its code and arguments, measured as the head's is.
    fn variant(&self, head: &Variant) -> Result<Variant, String> {
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
}

/// Tells of the base's stages as such.
struct OfBase<'a>(&'a dyn Watch);

impl OfBase<'_> {
    fn name(stage: &str) -> String {
        format!("base {stage}")
    }
}

impl Watch for OfBase<'_> {
    fn begins(&self, variant: &Variant, stage: &str) {
        self.0.begins(variant, &Self::name(stage));
    }

    fn ended(&self, variant: &Variant, stage: &str, outcome: &str) {
        self.0.ended(variant, &Self::name(stage), outcome);
    }

    fn waits(&self) {
        self.0.waits();
    }

    fn warns(&self, obstacle: &str) {
        self.0.warns(obstacle);
    }
}

/// Whether the answer that a base and a head profile give is still open.
pub type PairStillOpen<'a> = dyn FnMut(&Variant, &Profile, &Profile) -> bool + 'a;

/// Measures variants and their versions at the base, in rounds of base, head, head, base. Where a
/// base cannot be measured a finding says why, and the head is measured alone. Profiles of the
/// base are left in the folder `base` beside the head's.
///
/// # Errors
/// [`Error`] where the machine failed; whatever concerns one variant is a finding.
pub fn measure_against(
    config: &Config,
    base: &BaseProject,
    variants: &[&Variant],
    output: &Path,
    watch: &dyn Watch,
    open: &mut StillOpen<'_>,
    pair_open: &mut PairStillOpen<'_>,
) -> Result<Measured, Error> {
    let bench = Bench::new(config, variants, &[], watch)?;
    let git = crate::git::revision(&config.root);
    let mut measured = Measured::default();
    for variant in variants {
        empty_variant_folder(output, &variant.id)?;
    }
    let started = std::time::Instant::now();
    let (artifacts, findings) = build_all(config, variants, watch)?;
    measured.findings.extend(findings);
    let bases: Vec<Result<Variant, String>> = variants
        .iter()
        .map(|variant| base.variant(variant))
        .collect();
    let base_artifacts = build_bases(base, &bases, &OfBase(watch))?;
    measured.tools_wall += started.elapsed();
    measured.compiled = keep_compiled(
        config,
        variants,
        &artifacts,
        |variant| variant_folder(output, &variant.id),
        &[],
        git.as_deref(),
    )?;
    measured.compiled_bases = base.keep_compiled(&bases, &base_artifacts, output)?;

    let lock = bench.hold()?;
    let run = Run {
        bench: &bench,
        base,
        output,
        git,
        watch,
    };
    for (((variant, artifact), base_variant), base_artifact) in variants
        .iter()
        .zip(artifacts)
        .zip(&bases)
        .zip(base_artifacts)
    {
        let Some(artifact) = artifact else { continue };
        if !verified(config, variant, &artifact, &bench, watch, &mut measured)? {
            continue;
        }
        let folder = variant_folder(output, &variant.id);
        let mut head = Subject::new(config, variant, artifact, folder, run.git.clone());
        let base_subject = match (base_variant, base_artifact) {
            (Ok(base_variant), Ok(artifact)) => {
                run.subject(base_variant, artifact, &mut measured)?
            }
            (Err(why), _) => Err(why.clone()),
            (_, Err(why)) => Err(why),
        };
        watch.begins(variant, "profile");
        // One bound holds for the variant, whichever way it is measured.
        let mut retries = Retries::of(variant, watch);
        let pair = match base_subject {
            Ok(mut base_subject) => {
                let pair = measure_pair(
                    &mut base_subject,
                    &mut head,
                    &bench,
                    &mut retries,
                    pair_open,
                )?;
                measured.tools_wall += base_subject.tools_wall();
                pair.map(|(of_base, of_head)| (base_subject, of_base, of_head))
            }
            Err(why) => Err(Unpaired::Base(why)),
        };
        let answer = match pair {
            Ok((base_subject, of_base, of_head)) => {
                base_subject.keep(&of_base)?;
                measured.bases.push(of_base);
                Ok(of_head)
            }
            Err(Unpaired::Base(why)) => {
                measured.findings.push(unavailable(variant, base, &why));
                profile_alone(&mut head, &bench, &mut retries, open)?
            }
            Err(Unpaired::Head(finding)) => Err(finding),
        };
        measured.findings.extend(retries.told());
        measured.tools_wall += head.tools_wall();
        match answer {
            Err(finding) => {
                watch.ended(variant, "profile", &finding.message);
                let told = bench.told(variant, head.tier, finding);
                measured.findings.extend(told);
            }
            Ok(profile) => {
                head.keep(&profile)?;
                let paired = measured.bases.iter().any(|base| base.variant == variant.id);
                let mut gaps = if paired {
                    incomplete_side(variant, &profile)
                } else {
                    incomplete(variant, &profile)
                };
                gaps.extend(head.mismatches(&bench));
                let tier = below_counters(variant, &profile);
                let side = if paired {
                    ", side by side with the base"
                } else {
                    ""
                };
                let text = format!("{}{side}", words(&profile, &gaps));
                watch.ended(variant, "profile", &text);
                measured.findings.extend(gaps.into_iter().chain(tier));
                let pins = &profile.provenance.pins;
                measured
                    .findings
                    .extend(unpinned(&variant.id, "measured", pins));
                measured.profiles.push(profile);
            }
        }
    }
    drop(lock);
    Ok(measured)
}

/// Builds variants and their versions at the base, and measures nothing: what a machine without a
/// GPU can say. Where a base cannot be built a finding says why.
///
/// # Errors
/// [`Error`] where the machine failed; whatever concerns one variant is a finding.
pub fn compile_against(
    config: &Config,
    base: Option<&BaseProject>,
    variants: &[&Variant],
    output: &Path,
    watch: &dyn Watch,
) -> Result<Measured, Error> {
    let git = crate::git::revision(&config.root);
    let mut measured = Measured::default();
    let (artifacts, findings) = build_all(config, variants, watch)?;
    measured.findings.extend(findings);
    for variant in variants {
        clear_compiled(output, &variant.id)?;
    }
    measured.compiled = keep_compiled(
        config,
        variants,
        &artifacts,
        |variant| variant_folder(output, &variant.id),
        &[],
        git.as_deref(),
    )?;
    let Some(base) = base else {
        return Ok(measured);
    };
    let bases: Vec<Result<Variant, String>> = variants
        .iter()
        .map(|variant| base.variant(variant))
        .collect();
    let base_artifacts = build_bases(base, &bases, &OfBase(watch))?;
    measured.compiled_bases = base.keep_compiled(&bases, &base_artifacts, output)?;
    for ((variant, of_base), artifact) in variants.iter().zip(&bases).zip(base_artifacts) {
        if let Some(why) = of_base.as_ref().err().cloned().or(artifact.err()) {
            measured.findings.push(unavailable(variant, base, &why));
        }
    }
    Ok(measured)
}

/// What the variants of one run share.
struct Run<'a> {
    bench: &'a Bench<'a>,
    base: &'a BaseProject,
    output: &'a Path,
    git: Option<String>,
    watch: &'a dyn Watch,
}

impl<'a> Run<'a> {
    /// The base's version of a variant, if its numbers are right; otherwise why it cannot serve.
    fn subject(
        &self,
        variant: &'a Variant,
        artifact: Artifact,
        measured: &mut Measured,
    ) -> Result<Result<Subject<'a>, String>, Error> {
        let config = match &self.base.config {
            Ok(config) => config,
            Err(why) => return Ok(Err(why.clone())),
        };
        let mut of_base = Measured::default();
        let watch = OfBase(self.watch);
        let right = verified(config, variant, &artifact, self.bench, &watch, &mut of_base)?;
        measured.tools_wall += of_base.tools_wall;
        if !right {
            let why = of_base.findings.pop().map(|finding| finding.message);
            return Ok(Err(why.unwrap_or_else(|| "it fails its check".to_owned())));
        }
        let folder = base_folder(self.output, &variant.id);
        std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        let commit = Some(self.base.commit.clone());
        Ok(Ok(Subject::new(config, variant, artifact, folder, commit)))
    }
}

/// Which side could not be measured.
enum Stopped {
    Base(Finding),
    Head(Finding),
}

/// Which side keeps the two from being compared, and why.
enum Unpaired {
    Base(String),
    Head(Finding),
}

impl Stopped {
    fn map(self, change: impl FnOnce(Finding) -> Finding) -> Stopped {
        match self {
            Stopped::Base(finding) => Stopped::Base(change(finding)),
            Stopped::Head(finding) => Stopped::Head(change(finding)),
        }
    }

    fn finding(&self) -> &Finding {
        let (Stopped::Base(finding) | Stopped::Head(finding)) = self;
        finding
    }

    fn into_words(self) -> Unpaired {
        match self {
            Stopped::Base(finding) => Unpaired::Base(finding.message),
            Stopped::Head(finding) => Unpaired::Head(finding),
        }
    }
}

/// Measures base and head on the highest tier that both can reach, both again where the machine
/// failed.
fn measure_pair(
    base: &mut Subject<'_>,
    head: &mut Subject<'_>,
    bench: &Bench<'_>,
    retries: &mut Retries<'_>,
    open: &mut PairStillOpen<'_>,
) -> Result<Result<(Profile, Profile), Unpaired>, Error> {
    let variant = head.variant;
    loop {
        let answer = measure_pair_once(base, head, bench, open)?;
        let answer = answer.map_err(|stopped| stopped.map(|found| bench.unless_lost(found)));
        let failed = match &answer {
            Ok((of_base, of_head)) => {
                disturbance(&variant.id, &[("base", of_base), ("head", of_head)])
            }
            Err(stopped) => Some(stopped.finding().clone()),
        };
        if let Some(found) = failed
            && retries.again(&found)?
        {
            base.discard()?;
            head.discard()?;
            continue;
        }
        let given_up = |stopped: Stopped| stopped.map(|found| retries.given_up(found)).into_words();
        return Ok(answer.map_err(given_up));
    }
}

fn measure_pair_once(
    base: &mut Subject<'_>,
    head: &mut Subject<'_>,
    bench: &Bench<'_>,
    open: &mut PairStillOpen<'_>,
) -> Result<Result<(Profile, Profile), Stopped>, Error> {
    let mut tier = match bench.tier(head.variant) {
        Ok(tier) => tier,
        Err(denied) => return Ok(Err(Stopped::Head(denied))),
    };
    loop {
        base.restart(tier);
        head.restart(tier);
        let stopped = match interleave(base, head, bench, open)? {
            Ok(pair) => return Ok(Ok(pair)),
            Err(stopped) => stopped,
        };
        match bench.below(head.variant, tier, stopped.finding()) {
            Some(lower) => tier = lower,
            None => return Ok(Err(stopped)),
        }
    }
}

fn interleave(
    base: &mut Subject<'_>,
    head: &mut Subject<'_>,
    bench: &Bench<'_>,
    open: &mut PairStillOpen<'_>,
) -> Result<Result<(Profile, Profile), Stopped>, Error> {
    let variant = head.variant;
    macro_rules! proceed {
        ($step:expr, $stopped:expr) => {
            match $step? {
                Ok(done) => done,
                Err(finding) => return Ok(Err($stopped(finding))),
            }
        };
    }
    if head.has_phase(Phase::Counting) {
        proceed!(base.capture(bench, Phase::Counting), Stopped::Base);
        proceed!(head.capture(bench, Phase::Counting), Stopped::Head);
    }
    let mut round = 0;
    loop {
        if head.has_phase(Phase::Timing) {
            proceed!(base.capture(bench, Phase::Timing), Stopped::Base);
            proceed!(head.capture(bench, Phase::Timing), Stopped::Head);
            proceed!(head.capture(bench, Phase::Timing), Stopped::Head);
            proceed!(base.capture(bench, Phase::Timing), Stopped::Base);
        }
        round += 1;
        if round < variant.profile.rounds {
            continue;
        }
        let profiles = (
            proceed!(base.profile(bench), Stopped::Base),
            proceed!(head.profile(bench), Stopped::Head),
        );
        if round >= variant.profile.max_rounds || !open(variant, &profiles.0, &profiles.1) {
            return Ok(Ok(profiles));
        }
    }
}

/// The base's artifacts, or why there is none, in the order of the variants.
fn build_bases(
    base: &BaseProject,
    variants: &[Result<Variant, String>],
    watch: &dyn Watch,
) -> Result<Vec<Result<Artifact, String>>, Error> {
    let Ok(config) = &base.config else {
        return Ok(variants.iter().map(|_| Err(String::new())).collect());
    };
    let there: Vec<&Variant> = variants.iter().flatten().collect();
    let (artifacts, findings) = build_all(config, &there, watch)?;
    let mut artifacts = artifacts.into_iter();
    Ok(variants
        .iter()
        .map(|variant| {
            let variant = variant.as_ref().map_err(Clone::clone)?;
            artifacts.next().flatten().ok_or_else(|| {
                let why = findings
                    .iter()
                    .find(|finding| finding.concerns(&variant.id));
                why.map_or_else(
                    || "it does not build".to_owned(),
                    |finding| format!("it does not build: {}", finding.message),
                )
            })
        })
        .collect())
}

fn unavailable(variant: &Variant, base: &BaseProject, why: &str) -> Finding {
    let commit: String = base.commit.chars().take(10).collect();
    Finding::deny(
        Code::BaseUnavailable,
        &variant.id,
        format!("there is no base to measure beside it at {commit}: {why}"),
        "it is judged against its stored baseline instead".to_owned(),
    )
    .warn()
}
