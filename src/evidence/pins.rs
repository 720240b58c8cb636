//! Whether tools, driver and GPU are the pinned ones.

use crate::config::{Mismatch, Pin, Toolchain};
use crate::device::Gpu;
use crate::finding::{Code, Finding, WarnReason};
use crate::profile::Profile;
use crate::terms::{Tier, VariantId};

/// What is pinned of the GPU and its driver.
pub fn gpu_pins(toolchain: &Toolchain, gpu: &Gpu) -> Vec<Pin> {
    let pins = [
        toolchain.arch_pin(&gpu.compute_capability),
        toolchain.pins.driver(gpu.driver.as_deref()),
        toolchain.pins.gpu(&gpu.name),
    ];
    pins.into_iter().flatten().collect()
}

/// The pins of the tools and the GPU that a profile names. Versions that it does not state are left
/// out: another finding reports that it was imported.
pub fn pins_of(toolchain: &Toolchain, profile: &Profile) -> Vec<Pin> {
    let (identity, provenance) = (&profile.identity, &profile.provenance);
    let compiler = provenance.compiler.as_deref();
    let cuda = compiler.and_then(|version| toolchain.pins.cuda(version));
    if identity.tier == Tier::Static {
        return cuda.into_iter().collect();
    }
    let profiler = provenance.profiler.as_deref();
    let profiler = profiler.filter(|_| identity.tier == Tier::Counters);
    let driver = provenance.driver.as_deref();
    let pins = [
        cuda,
        profiler.and_then(|version| toolchain.pins.ncu(version)),
        driver.and_then(|version| toolchain.pins.driver(Some(version))),
        toolchain.arch_pin(&identity.compute_capability),
        toolchain.pins.gpu(&identity.gpu),
    ];
    pins.into_iter().flatten().collect()
}

/// The finding that a recording was made with another toolchain than is pinned. It denies where a
/// run on that machine would have been rejected.
pub fn recorded_unpinned(toolchain: &Toolchain, profile: &Profile) -> Option<Finding> {
    let found = mismatch(&profile.variant, "recorded", &pins_of(toolchain, profile))?;
    let warns = toolchain.pins.mismatch == Mismatch::Warn;
    Some(found.warn_for(warns.then_some(WarnReason::PinsNotEnforced)))
}

/// The warning that a variant was built or measured with another toolchain than is pinned.
pub fn unpinned(variant: &VariantId, what: &str, pins: &[Pin]) -> Option<Finding> {
    let found = mismatch(variant, what, pins)?;
    Some(found.warn_for(WarnReason::PinsNotEnforced))
}

fn mismatch(variant: &VariantId, what: &str, pins: &[Pin]) -> Option<Finding> {
    let broken = Pin::broken(pins);
    (!broken.is_empty()).then(|| {
        let broken = broken.join("; ");
        let message =
            format!("{what} with another toolchain or GPU than the configuration names: {broken}");
        let next = Pin::next_step(pins);
        Finding::deny(Code::ToolchainMismatch, variant, message, next)
    })
}
