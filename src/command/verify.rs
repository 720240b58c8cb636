//! `sparsek-gate verify`.

use super::answer::answer;
use super::select::{load, or_nothing_runs, other_toolchain, variable};
use crate::evidence::gpu_pins;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::cli::VerifyArgs;
use crate::device::Gpu;
use crate::finding::{Error, ExitCode};
use crate::measure::{Batch, gpu_env};
use crate::report::Progress;
use crate::sanitize::SanitizedVariant;
use crate::terms::VariantId;
use crate::trust;
use crate::verify::Verified;

#[derive(Serialize)]
struct Content {
    variants: Vec<Right>,
    /// Absent where no tool was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    sanitizer: Option<SanitizerContent>,
}

#[derive(Serialize)]
struct Right {
    variant: VariantId,
    #[serde(flatten)]
    verified: Verified,
}

#[derive(Serialize)]
struct SanitizerContent {
    version: String,
    /// Every variant that was built, also those whose numbers are wrong.
    variants: Vec<SanitizedVariant>,
}

pub(super) fn run(config: &Path, arguments: &VerifyArgs) -> Result<ExitCode, Error> {
    trust::refuse_in_target(variable)?;
    let stage = &arguments.stage;
    let mut selected = load(config, &stage.selection, &stage.define)?;
    if !arguments.sanitizer.is_empty() {
        for variant in &mut selected.variants {
            let own = &mut Arc::make_mut(variant).sanitizer;
            own.clone_from(&arguments.sanitizer);
        }
    }
    let variants = selected.variants();
    let progress = Progress::default();
    let batch = Batch {
        config: &selected.config,
        variants: &variants,
        watch: &progress,
    };
    let sanitizer = batch.locate_sanitizer()?;
    let gpu = or_nothing_runs(&selected, Gpu::query(selected.config.device))?;
    let pins = gpu_pins(&selected.config.toolchain, &gpu);
    selected
        .config
        .toolchain
        .enforce(&selected.config.path, &pins)?;
    let env = gpu_env(&gpu);
    let (artifacts, mut findings) = batch.build()?;
    let (verified, wrong) = batch.verify(&artifacts, &env)?;
    findings.extend(wrong.clone());
    let sanitized = match sanitizer {
        None => None,
        Some(sanitizer) => {
            let (sanitized, found) = batch.sanitize(&artifacts, &wrong, &sanitizer, &env)?;
            findings.extend(found);
            Some(SanitizerContent {
                version: sanitizer.0.version,
                variants: sanitized,
            })
        }
    };
    drop(progress);
    findings.extend(other_toolchain(&selected, &artifacts, &pins));
    let right = variants
        .iter()
        .zip(verified)
        .filter_map(|(variant, verified)| {
            Some(Right {
                variant: variant.id.clone(),
                verified: verified?,
            })
        })
        .collect();
    let content = Content {
        variants: right,
        sanitizer: sanitized,
    };
    answer(stage.format, content, &findings, String::new)
}
