//! `sparsek-gate verify`.

use crate::evidence::gpu_pins;
use std::path::Path;

use serde::Serialize;

use super::{Plan, answer};
use crate::cli::VerifyArgs;
use crate::device::Gpu;
use crate::finding::{Error, ExitCode};
use crate::measure::{build_all, gpu_env, locate_sanitizer, sanitize_all, verify_all};
use crate::report::Progress;
use crate::sanitize::SanitizedVariant;
use crate::terms::VariantId;
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
    let stage = &arguments.stage;
    let mut plan = Plan::new(config, &stage.selection, Some(&stage.trial))?;
    if !arguments.sanitizer.is_empty() {
        for variant in &mut plan.variants {
            variant.sanitizer.clone_from(&arguments.sanitizer);
        }
    }
    let variants = plan.variants();
    let sanitizer = locate_sanitizer(&plan.config, &variants)?;
    let gpu = Gpu::query(plan.config.device)?;
    let pins = gpu_pins(&plan.config.toolchain, &gpu);
    plan.config.toolchain.enforce(&plan.config.path, &pins)?;
    let env = gpu_env(&gpu);
    let progress = Progress::new();
    let (artifacts, mut findings) = build_all(&plan.config, &variants, &progress)?;
    let (verified, wrong) = verify_all(&plan.config, &variants, &artifacts, &env, &progress)?;
    findings.extend(wrong.clone());
    let sanitized = match sanitizer {
        None => None,
        Some(sanitizer) => {
            let (sanitized, found) = sanitize_all(
                &plan.config,
                &variants,
                &artifacts,
                &wrong,
                &sanitizer,
                &env,
                &progress,
            )?;
            findings.extend(found);
            Some(SanitizerContent {
                version: sanitizer.version,
                variants: sanitized,
            })
        }
    };
    drop(progress);
    findings.extend(plan.unpinned(&artifacts, &pins));
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
