//! Sets aside what a sick GPU measured.

use std::collections::BTreeSet;
use std::path::Path;

use super::measured::Measured;
use crate::evidence::{SickGpu, SymptomKind};
use crate::finding::{Code, Finding};
use crate::profile::Profile;
use crate::terms::VariantId;

impl Measured {
    /// Sets aside all that a GPU measured in this run, whether it passes or fails: neither counts. The
    /// captures in `folder` stay.
    pub fn set_aside(&mut self, sick: &SickGpu, folder: &Path) {
        let of_gpu = |profile: &Profile| profile.gpu_uuids().contains(&sick.uuid.as_str());
        let found = self.findings.iter().filter(|one| of_a_process(one.code));
        let mut variants: BTreeSet<VariantId> =
            found.filter_map(|one| one.variant.clone()).collect();
        let measured = self.profiles.iter().chain(&self.bases);
        variants.extend(
            measured
                .filter(|one| of_gpu(one))
                .map(|one| one.variant.clone()),
        );
        variants.extend(self.not_begun.iter().cloned());
        self.profiles.retain(|one| !variants.contains(&one.variant));
        self.bases.retain(|one| !variants.contains(&one.variant));
        self.schedules.retain(|(one, _)| !variants.contains(one));
        let concerned =
            |one: &Finding| one.variant.as_ref().is_some_and(|id| variants.contains(id));
        self.gaps.retain(|gap| !concerned(gap));
        set_aside_findings(&mut self.findings, sick, folder, &variants);
    }
}

/// Puts findings on a sick GPU, and on each variant that it measured, in the place of what was found
/// about these while they ran on it. The captures are in `folder`.
pub fn set_aside_findings(
    findings: &mut Vec<Finding>,
    sick: &SickGpu,
    folder: &Path,
    variants: &BTreeSet<VariantId>,
) {
    let concerned = |one: &Finding| one.variant.as_ref().is_some_and(|id| variants.contains(id));
    let said = |one: &Finding| one.code == Code::GpuSick && one.message.contains(&sick.uuid);
    let (aside, kept): (Vec<Finding>, Vec<Finding>) = std::mem::take(findings)
        .into_iter()
        .partition(|one| concerned(one) && of_a_process(one.code) || said(one) && one.denies());
    *findings = kept;
    findings.push(finding_of(sick, folder));
    for variant in variants {
        let of_variant = aside.iter().filter(|one| one.concerns(variant));
        let found: Vec<String> = of_variant
            .map(|one| format!("{}: {}", one.code.as_str(), one.message))
            .collect();
        let finding = Finding::deny(
            Code::NotMeasured,
            variant,
            format!(
                "what the GPU {} measured of it is set aside: the GPU is sick",
                sick.uuid
            ),
            next(sick),
        );
        findings.push(finding.detail(found.join("\n")));
    }
}

/// The finding that a GPU is sick. Its captures are in `folder`.
fn finding_of(sick: &SickGpu, folder: &Path) -> Finding {
    let SickGpu { uuid, name, .. } = sick;
    let words = sick.words();
    let aside = "all that it measured in this run is set aside";
    // A GPU that has only a repeat has its folder in another finding.
    let kept = match folder.as_os_str().is_empty() {
        true => String::new(),
        false => format!(", and its captures are in {}", folder.display()),
    };
    let message = match sick.is_certain() {
        true => format!("the GPU {uuid} ({name}) is sick: {words}; {aside}{kept}"),
        false => format!(
            "the GPU {uuid} ({name}) may be sick: {words}. Only another GPU shows whether this one, the change or a lock is the cause; {aside}{kept}"
        ),
    };
    Finding::of_project(Code::GpuSick, message, next(sick))
}

fn next(sick: &SickGpu) -> String {
    let kinds = sick.kinds();
    let uuid = &sick.uuid;
    if sick.is_certain() {
        format!(
            "measure on another GPU; have this one examined (nvidia-smi -i {uuid} -q -d ECC,ROW_REMAPPER; dmesg | grep Xid), and once it is repaired: sparsek-gate quarantine --lift {uuid} --reason '...'"
        )
    } else if kinds.contains(&SymptomKind::Control) {
        "measure on another GPU; if the control reads the same there, the driver or the lock is the cause: sparsek-gate baseline --lock --reason '...'".to_owned()
    } else {
        format!(
            "see nvidia-smi -i {uuid} -q -d PERFORMANCE,TEMPERATURE,POWER; let the GPU cool, or measure on another one"
        )
    }
}

/// Whether findings of a code come from processes that ran on the GPU, so that a sick one may be their
/// cause. Findings stay if files changed, or if the driver no longer shows the GPU.
fn of_a_process(code: Code) -> bool {
    matches!(
        code,
        Code::NotMeasured
            | Code::Implausible
            | Code::ClockChanged
            | Code::GpuShared
            | Code::NoKernelsProfiled
            | Code::KernelMissing
            | Code::WrongNumbers
            | Code::Sanitizer
            | Code::ResultUnreadable
            | Code::ProgramFailed
            | Code::Crashed
            | Code::TimedOut
            | Code::ProfilerFailed
            | Code::Retried
            | Code::LaunchMismatch
            | Code::CodeVaries
            | Code::TuningMeasured
            | Code::CaptureUnreadable
            | Code::ReadersDisagree
            | Code::NumbersUnchecked
            | Code::OtherLaunches
            | Code::BaseUnavailable
    )
}
