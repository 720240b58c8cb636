//! Variants to fresh profiles: build, verify, capture, normalize.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::build::{Artifact, Builder};
use crate::capture::{Capture, capture};
use crate::config::{Config, Variant};
use crate::device::Gpu;
use crate::error::Error;
use crate::files::{empty_variant_folder, variant_folder, write_atomically};
use crate::profile::{
    self, CaptureRecord, Conditions, FileHash, Profile, ProfileOrigin, Provenance, Source, derive,
};
use crate::toolchain::Ncu;
use crate::verdict::{Code, Finding, incomplete};
use crate::verify::{Verified, verify};

/// What happens while variants are measured, for whoever shows it.
pub trait Watch: Sync {
    /// A stage of a variant begins.
    fn begins(&self, variant: &Variant, stage: &str);
    /// A stage of a variant ended; `outcome` is a few words.
    fn ended(&self, variant: &Variant, stage: &str, outcome: &str);
    /// Another run of this tool measures on the GPU.
    fn waits(&self);
}

/// What measuring gave.
#[derive(Debug, Default)]
pub struct Measured {
    /// Fresh profiles, of the variants that could be measured.
    pub profiles: Vec<Profile>,
    /// Why the others could not, and what is incomplete.
    pub findings: Vec<Finding>,
    /// Time inside nvcc, the verifying runs and ncu.
    pub tools_wall: Duration,
}

/// Builds variants, with a word for each.
///
/// # Errors
/// [`Error`] where the machine failed.
pub fn build_all(
    config: &Config,
    variants: &[&Variant],
    watch: &dyn Watch,
) -> Result<(Vec<Option<Artifact>>, Vec<Finding>), Error> {
    let builder = Builder::new(config, variants)?;
    let results = builder.build_all(variants, &|variant, result| {
        let outcome = match result {
            Ok(artifact) if artifact.cached => "unchanged".to_owned(),
            Ok(_) => "built".to_owned(),
            Err(finding) => finding.message.clone(),
        };
        watch.ended(variant, "build", &outcome);
    })?;
    let mut findings = Vec::new();
    let artifacts = results
        .into_iter()
        .map(|result| result.map_err(|finding| findings.push(finding)).ok())
        .collect();
    Ok((artifacts, findings))
}

/// Runs the check of every built variant.
///
/// # Errors
/// [`Error`] where the machine failed.
pub fn verify_all(
    config: &Config,
    variants: &[&Variant],
    artifacts: &[Option<Artifact>],
    env: &BTreeMap<String, String>,
    watch: &dyn Watch,
) -> Result<(Vec<Option<Verified>>, Vec<Finding>), Error> {
    let mut findings = Vec::new();
    let mut verified = Vec::new();
    for (variant, artifact) in variants.iter().zip(artifacts) {
        let Some(artifact) = artifact else {
            verified.push(None);
            continue;
        };
        watch.begins(variant, "verify");
        match verify(config, variant, artifact, env)? {
            Ok(right) => {
                watch.ended(
                    variant,
                    "verify",
                    &format!("right, {:.1} s", right.wall.as_secs_f64()),
                );
                verified.push(Some(right));
            }
            Err(finding) => {
                watch.ended(variant, "verify", &finding.message);
                findings.push(finding);
                verified.push(None);
            }
        }
    }
    Ok((verified, findings))
}

/// Measures variants one after the other on the configured GPU. Profiles and captures are left
/// under `output/<suite>/<variant>/`.
///
/// # Errors
/// [`Error`] where the machine failed; whatever concerns one variant is a finding.
pub fn measure(
    config: &Config,
    variants: &[&Variant],
    output: &Path,
    overrides: &[String],
    watch: &dyn Watch,
) -> Result<Measured, Error> {
    let ncu = Ncu::locate(&config.toolchain, &config.work)?;
    let gpu = Gpu::query(config.device)?;
    check_counters(config, variants, &ncu)?;
    let env = gpu_env(&gpu);
    let git = crate::git::revision(&config.root);
    let mut measured = Measured::default();

    // A variant that fails now must not leave an earlier profile behind to be taken for this one.
    for variant in variants {
        empty_variant_folder(output, &variant.id)?;
    }
    let started = std::time::Instant::now();
    let (artifacts, findings) = build_all(config, variants, watch)?;
    measured.tools_wall += started.elapsed();
    measured.findings.extend(findings);

    let lock = gpu.lock(|| watch.waits())?;
    for (variant, artifact) in variants.iter().zip(&artifacts) {
        let Some(artifact) = artifact else { continue };
        let (verified, findings) = verify_all(
            config,
            &[variant],
            std::slice::from_ref(&Some(artifact.clone())),
            &env,
            watch,
        )?;
        measured.findings.extend(findings);
        let Some(Some(verified)) = verified.into_iter().next() else {
            continue;
        };
        measured.tools_wall += verified.wall;

        watch.begins(variant, "profile");
        let folder = variant_folder(output, &variant.id);
        let mut captures = Vec::new();
        for process in 0..variant.profile.processes {
            match capture(
                config,
                &ncu,
                variant,
                artifact,
                &env,
                &folder,
                &format!("capture-{}", process + 1),
            )? {
                Ok(capture) => {
                    measured.tools_wall += capture.ncu_wall;
                    captures.push(capture);
                }
                Err(finding) => {
                    watch.ended(variant, "profile", &finding.message);
                    measured.findings.push(finding);
                    captures.clear();
                    break;
                }
            }
        }
        if captures.is_empty() {
            continue;
        }
        let provenance = provenance(
            variant,
            artifact,
            &captures,
            &ncu,
            &gpu,
            git.clone(),
            overrides,
        );
        match normalize(variant, &captures, provenance) {
            Err(finding) => {
                watch.ended(variant, "profile", &finding.message);
                measured.findings.push(finding);
            }
            Ok(profile) => {
                let path = folder.join(profile::FILE_NAME);
                write_atomically(&path, profile.to_json().as_bytes())
                    .map_err(Error::io("write", &path))?;
                let gaps = incomplete(variant, &profile);
                let words = match gaps.first() {
                    None => format!("{} launches", profile.launch_count()),
                    Some(gap) => gap.message.clone(),
                };
                watch.ended(variant, "profile", &words);
                measured.findings.extend(gaps);
                measured.profiles.push(profile);
            }
        }
    }
    drop(lock);
    Ok(measured)
}

/// What makes a program see the GPU that was asked about, and no other.
pub fn gpu_env(gpu: &Gpu) -> BTreeMap<String, String> {
    BTreeMap::from([("CUDA_VISIBLE_DEVICES".to_owned(), gpu.uuid.clone())])
}

/// On chips without a table here, ncu itself says which counters there are; an unknown one ends
/// the run before any kernel does.
fn check_counters(config: &Config, variants: &[&Variant], ncu: &Ncu) -> Result<(), Error> {
    use crate::metric::{Existence, exists};
    let toolchain = &config.toolchain;
    let asked: Vec<&str> = variants
        .iter()
        .flat_map(|variant| &variant.metrics)
        .map(|metric| metric.counter.as_str())
        .filter(|counter| exists(toolchain.chip, counter) == Existence::NoTable)
        // Names of ncu's own are in no list.
        .filter(|counter| counter.contains("__") && !counter.contains(':'))
        .filter(|counter| {
            const OWN: [&str; 6] = ["launch__", "device__", "sass__", "derived__", "profiler__", "smsp__pcsamp"];
            !OWN.iter().any(|prefix| counter.starts_with(prefix))
        })
        .collect();
    if asked.is_empty() || toolchain.chip_name.is_empty() {
        return Ok(());
    }
    let known = ncu.counters(toolchain.chip_name)?;
    let base = |counter: &str| counter.split('.').next().unwrap_or_default().to_owned();
    for counter in asked {
        if !known.contains(&base(counter)) {
            let names: Vec<&str> = known.iter().map(String::as_str).collect();
            let near = crate::config::nearest(&base(counter), &names)
                .map(|name| format!(" (did you mean `{name}`?)"));
            return Err(Error::Usage(format!(
                "the chip `{}` has no counter `{counter}`{}",
                toolchain.chip_name,
                near.unwrap_or_default()
            )));
        }
    }
    Ok(())
}

fn provenance(
    variant: &Variant,
    artifact: &Artifact,
    captures: &[Capture],
    ncu: &Ncu,
    gpu: &Gpu,
    git: Option<String>,
    overrides: &[String],
) -> Provenance {
    Provenance {
        origin: ProfileOrigin::Measured,
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        created: now(),
        launches: variant.profile.launches,
        processes: variant.profile.processes,
        profiler: Some(ncu.version.clone()),
        compiler: artifact.compiler.clone(),
        driver: gpu.driver.clone(),
        gpu_uuid: Some(gpu.uuid.clone()),
        git,
        artifact_sha256: artifact.sha256.clone(),
        build_argv: artifact.build_argv.clone(),
        sources: artifact.sources.clone(),
        overrides: overrides.to_vec(),
        captures: captures
            .iter()
            .map(|capture| CaptureRecord {
                report: file_hash(&capture.report_path, &capture.report_sha256),
                csv: Some(file_hash(&capture.csv_path, &capture.csv_sha256)),
                argv: capture.argv.clone(),
            })
            .collect(),
    }
}

/// The time now, RFC 3339, UTC, in whole seconds.
pub fn now() -> String {
    let seconds = jiff::Timestamp::now().as_second();
    jiff::Timestamp::from_second(seconds)
        .map(|time| time.to_string())
        .unwrap_or_default()
}

fn file_hash(path: &Path, sha256: &str) -> FileHash {
    FileHash {
        file: path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
        sha256: sha256.to_owned(),
    }
}

/// Captures of one variant to its profile.
fn normalize(
    variant: &Variant,
    captures: &[Capture],
    provenance: Provenance,
) -> Result<Profile, Finding> {
    let sources: Vec<Source<'_>> = captures
        .iter()
        .map(|capture| Source {
            report: &capture.report,
            csv: Some(&capture.csv),
        })
        .collect();
    let derived = derive(&variant.counters(), &sources).map_err(|error| {
        Finding::deny(
            Code::CaptureUnreadable,
            &variant.id,
            error.to_string(),
            "look into the report: sparsek-gate inspect FILE".to_owned(),
        )
    })?;
    let conditions = Conditions::from(&variant.profile);
    Ok(Profile::new(variant, derived, conditions, provenance))
}
