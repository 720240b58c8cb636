//! The profile of the static tier: what the compiler made of a variant.

use std::collections::BTreeMap;

use super::artifact::Artifact;
use crate::binary::{Compiled, LaunchShape};
use crate::config::{Toolchain, Variant};
use crate::profile::{
    Code, Conditions, Identity, KernelProfile, MetricIdentity, Profile, Provenance, Series,
};
use crate::terms::Tier;
use ncu_report::base_name;

/// The static profile of a built variant; `None` where this tool neither called its compiler nor
/// read its machine code.
/// Values that are not known are left out. What launches of the program were seen to have (`measured`)
/// counts before what the configuration states of them.
pub fn compiled_profile(
    toolchain: &Toolchain,
    variant: &Variant,
    artifact: &Artifact,
    overrides: &[String],
    git: Option<String>,
    measured: Option<&Profile>,
) -> Option<Profile> {
    let compiled = artifact.compiled.as_ref()?;
    let kernels = kernels(toolchain, variant, compiled, measured);
    let compiler = artifact.compiler.as_ref();
    let compiler = compiler.or(compiled.stated_compiler.as_ref());
    let mut metrics = BTreeMap::new();
    for metric in crate::binary::STATIC_METRICS {
        let known = |kernel: &KernelProfile| kernel.metrics.contains_key(metric.name);
        if kernels.iter().any(known) {
            metrics.insert(metric.name.to_owned(), MetricIdentity::of_static(metric));
        }
    }
    let selects_none = kernels.is_empty();
    Some(Profile {
        schema: Profile::SCHEMA,
        variant: variant.id.clone(),
        identity: Identity {
            workload: Vec::new(),
            gpu: toolchain.arch.clone(),
            compute_capability: toolchain.compute_capability(),
            compiler: compiler.cloned(),
            conditions: Conditions::default(),
            tier: Tier::Static,
            metrics,
        },
        kernels,
        provenance: Provenance {
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            created: crate::profile::now(),
            compiler: artifact.compiler.clone(),
            pins: artifact
                .compiler
                .as_deref()
                .and_then(|version| toolchain.pins.cuda(version))
                .into_iter()
                .collect(),
            git,
            library: artifact.run.is_empty(),
            artifact_sha256: artifact.sha256.clone(),
            build_argv: artifact.build_argv.clone(),
            sources: artifact.sources.clone(),
            overrides: overrides.to_vec(),
            warnings: compiled.warnings.clone(),
            unselected: match selects_none {
                true => compiled
                    .kernels
                    .keys()
                    .map(|name| base_name(name))
                    .take(20)
                    .collect(),
                false => Vec::new(),
            },
            ..Provenance::default()
        },
    })
}

/// The kernels that match the variant's filter, which ncu applies to the function's own name.
fn kernels(
    toolchain: &Toolchain,
    variant: &Variant,
    compiled: &Compiled,
    measured: Option<&Profile>,
) -> Vec<KernelProfile> {
    let filter = variant.kernel_filter();
    let mut kernels = Vec::new();
    for (mangled, kernel) in &compiled.kernels {
        let name = base_name(mangled);
        if !filter.matches(&name) {
            continue;
        }
        let mut profile = KernelProfile {
            name,
            mangled: Some(mangled.clone()),
            code: Some(Code {
                text_sha256: kernel.text_sha256.clone(),
                opcodes: kernel.opcodes.clone(),
            }),
            ..KernelProfile::default()
        };
        let launched = measured.map_or_else(Vec::new, |measured| launched(measured, &profile));
        let metrics = kernel.metrics(&toolchain.arch, variant.launch, &launched);
        let known = metrics
            .into_iter()
            .filter_map(|(metric, value)| Some((metric.name.to_owned(), Series::of_one(value?))));
        profile.metrics.extend(known);
        kernels.push(profile);
    }
    kernels
}

/// What the launches of a compiled kernel were seen to have.
pub fn launched(measured: &Profile, compiled: &KernelProfile) -> Vec<LaunchShape> {
    let kernels = measured.kernels.iter();
    kernels
        .filter(|kernel| kernel.identity() == compiled.identity())
        .flat_map(KernelProfile::launch_shapes)
        .collect()
}
