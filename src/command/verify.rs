//! `sparsek-gate verify`.

use std::path::Path;

use serde::Serialize;

use super::{Plan, answer};
use crate::cli::StageArgs;
use crate::config::VariantId;
use crate::device::Gpu;
use crate::error::Error;
use crate::measure::{build_all, gpu_env, verify_all};
use crate::report::Progress;
use crate::verdict::ExitCode;
use crate::verify::Verified;

#[derive(Serialize)]
struct Content {
    variants: Vec<Right>,
}

#[derive(Serialize)]
struct Right {
    variant: VariantId,
    #[serde(flatten)]
    verified: Verified,
}

pub(super) fn run(config: &Path, arguments: &StageArgs) -> Result<ExitCode, Error> {
    let plan = Plan::new(config, &arguments.selection, Some(&arguments.trial))?;
    let variants = plan.variants();
    let gpu = Gpu::query(plan.config.device)?;
    let pins = plan.config.toolchain.gpu_pins(&gpu);
    plan.config.toolchain.enforce(&plan.config.path, &pins)?;
    let env = gpu_env(&gpu);
    let progress = Progress::new();
    let (artifacts, mut findings) = build_all(&plan.config, &variants, &progress)?;
    let (verified, wrong) = verify_all(&plan.config, &variants, &artifacts, &env, &progress)?;
    drop(progress);
    findings.extend(wrong);
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
    answer(
        arguments.format,
        Content { variants: right },
        &findings,
        String::new,
    )
}
