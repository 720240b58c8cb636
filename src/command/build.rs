//! `sparsek-gate build`.

use std::path::Path;

use serde::Serialize;

use super::{Plan, answer};
use crate::cli::StageArgs;
use crate::config::VariantId;
use crate::error::Error;
use crate::measure::build_all;
use crate::report::Progress;
use crate::toolchain::KernelResources;
use crate::verdict::ExitCode;

#[derive(Serialize)]
struct Content {
    variants: Vec<Built>,
}

#[derive(Serialize)]
struct Built {
    variant: VariantId,
    cached: bool,
    program: Vec<String>,
    sha256: Option<String>,
    build: Vec<String>,
    kernels: std::collections::BTreeMap<String, KernelResources>,
}

pub(super) fn run(config: &Path, arguments: &StageArgs) -> Result<ExitCode, Error> {
    let plan = Plan::new(config, &arguments.selection, Some(&arguments.trial))?;
    let variants = plan.variants();
    let progress = Progress::new();
    let (artifacts, mut findings) = build_all(&plan.config, &variants, &progress)?;
    drop(progress);
    findings.extend(plan.unpinned(&artifacts, &[]));
    let built = variants
        .iter()
        .zip(artifacts)
        .filter_map(|(variant, artifact)| {
            let artifact = artifact?;
            Some(Built {
                variant: variant.id.clone(),
                cached: artifact.cached,
                program: artifact.run,
                sha256: artifact.sha256,
                build: artifact.build_argv,
                kernels: artifact.resources,
            })
        })
        .collect();
    answer(
        arguments.format,
        Content { variants: built },
        &findings,
        String::new,
    )
}
