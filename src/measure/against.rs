//! Base and head side by side: interleaved on one GPU, so that the machine cancels out.

use std::path::{Path, PathBuf};

use super::{
    Bench, Measured, StillOpen, Subject, Watch, build_all, profile_alone, verified, words,
};
use crate::build::Artifact;
use crate::config::{self, Config, Pass, Variant};
use crate::error::Error;
use crate::files::{base_folder, empty_variant_folder, variant_folder};
use crate::git::Worktree;
use crate::profile::Profile;
use crate::verdict::{Code, Finding, incomplete};

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
                ..base
            })
            .map_err(|error| error.summary());
        Ok(BaseProject {
            commit: worktree.commit.clone(),
            config,
            _worktree: worktree,
        })
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
            work: head.work,
            profile: head.profile.clone(),
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

    let lock = bench.hold()?;
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
        let head = Subject::new(config, variant, artifact, folder, git.clone());
        let base_subject = match (base_variant, base_artifact, &base.config) {
            (Ok(base_variant), Ok(artifact), Ok(base_config)) => {
                let mut of_base = Measured::default();
                if verified(
                    base_config,
                    base_variant,
                    &artifact,
                    &bench,
                    &OfBase(watch),
                    &mut of_base,
                )? {
                    measured.tools_wall += of_base.tools_wall;
                    let folder = base_folder(output, &variant.id);
                    std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
                    let commit = Some(base.commit.clone());
                    Ok(Subject::new(
                        base_config,
                        base_variant,
                        artifact,
                        folder,
                        commit,
                    ))
                } else {
                    let why = of_base.findings.pop().map(|finding| finding.message);
                    Err(why.unwrap_or_else(|| "it fails its check".to_owned()))
                }
            }
            (Err(why), _, _) | (_, _, Err(why)) => Err(why.clone()),
            (_, Err(why), _) => Err(why),
        };
        watch.begins(variant, "profile");
        let answer = match base_subject {
            Ok(base_subject) => rounds(base_subject, head, &bench, pair_open)?,
            Err(why) => {
                measured.findings.push(unavailable(variant, base, &why));
                alone(head, &bench, open)?
            }
        };
        measured.tools_wall += answer.tools_wall;
        match answer.profiles {
            Err(finding) => {
                watch.ended(variant, "profile", &finding.message);
                measured.findings.push(finding);
            }
            Ok((base_profile, profile)) => {
                let gaps = incomplete(variant, &profile);
                let side = if base_profile.is_some() {
                    ", side by side with the base"
                } else {
                    ""
                };
                let text = format!("{}{side}", words(&profile, &gaps));
                watch.ended(variant, "profile", &text);
                measured.findings.extend(gaps);
                measured.profiles.push(profile);
                measured.bases.extend(base_profile);
            }
        }
    }
    drop(lock);
    Ok(measured)
}

struct Answer {
    /// The base's, where there is one, and the head's.
    profiles: Result<(Option<Profile>, Profile), Finding>,
    tools_wall: std::time::Duration,
}

fn alone(
    mut head: Subject<'_>,
    bench: &Bench<'_>,
    open: &mut StillOpen<'_>,
) -> Result<Answer, Error> {
    let profiles = match profile_alone(&mut head, bench, open)? {
        Ok(profile) => {
            head.keep(&profile)?;
            Ok((None, profile))
        }
        Err(finding) => Err(finding),
    };
    Ok(Answer {
        profiles,
        tools_wall: head.tools_wall(),
    })
}

fn rounds(
    mut base: Subject<'_>,
    mut head: Subject<'_>,
    bench: &Bench<'_>,
    open: &mut PairStillOpen<'_>,
) -> Result<Answer, Error> {
    let profiles = match interleave(&mut base, &mut head, bench, open)? {
        Ok((of_base, of_head)) => {
            base.keep(&of_base)?;
            head.keep(&of_head)?;
            Ok((Some(of_base), of_head))
        }
        Err(finding) => Err(finding),
    };
    Ok(Answer {
        profiles,
        tools_wall: base.tools_wall() + head.tools_wall(),
    })
}

fn interleave(
    base: &mut Subject<'_>,
    head: &mut Subject<'_>,
    bench: &Bench<'_>,
    open: &mut PairStillOpen<'_>,
) -> Result<Result<(Profile, Profile), Finding>, Error> {
    let variant = head.variant;
    macro_rules! capture {
        ($subject:expr, $pass:expr) => {
            if let Err(finding) = $subject.capture(bench, $pass)? {
                return Ok(Err(finding));
            }
        };
    }
    if variant.has_pass(Pass::Counting) {
        capture!(base, Pass::Counting);
        capture!(head, Pass::Counting);
    }
    let mut round = 0;
    loop {
        if variant.has_pass(Pass::Timing) {
            capture!(base, Pass::Timing);
            capture!(head, Pass::Timing);
            capture!(head, Pass::Timing);
            capture!(base, Pass::Timing);
        }
        round += 1;
        if round < variant.profile.rounds {
            continue;
        }
        let profiles = match (base.profile(bench)?, head.profile(bench)?) {
            (Ok(base), Ok(head)) => (base, head),
            (Err(finding), _) | (_, Err(finding)) => return Ok(Err(finding)),
        };
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
                    .find(|finding| finding.variant == variant.id);
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
