//! Sets aside what a sick GPU measured.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::measured::Measured;
use crate::evidence::{SickGpu, SymptomKind};
use crate::files::{PROFILE_FILE, base_folder, variant_folder, write_atomically};
use crate::finding::{Code, Finding};
use crate::hash::sha256_hex;
use crate::profile::Profile;
use crate::terms::VariantId;

impl Measured {
    /// Sets aside all that a GPU measured in this run, whether it passes or fails: neither counts. The
    /// captures in `folder` stay. Returns the profiles that now show why they do not count.
    pub fn set_aside(&mut self, sick: &SickGpu, folder: &Path) -> Vec<PathBuf> {
        let marked = self.mark(sick, folder);
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
        marked
    }

    /// Writes into the profiles of a sick GPU below `folder` what its driver reported in the run. Otherwise
    /// only the quarantine would keep what was measured before the error from being locked, and another
    /// machine may not have it.
    fn mark(&mut self, sick: &SickGpu, folder: &Path) -> Vec<PathBuf> {
        let own = |profile: &Profile| variant_folder(folder, &profile.variant);
        let of_base = |profile: &Profile| base_folder(folder, &profile.variant);
        let profiles = self.profiles.iter_mut().map(|one| (own(one), one));
        let bases = self.bases.iter_mut().map(|one| (of_base(one), one));
        let faults = sick.faults();
        let mut marked = Vec::new();
        for (folder, profile) in profiles.chain(bases) {
            if !profile.add_faults(&sick.uuid, &faults) {
                continue;
            }
            let (path, text) = (folder.join(PROFILE_FILE), profile.to_json());
            if write_atomically(&path, text.as_bytes()).is_err() {
                // Better none than one that does not show it.
                let _ = std::fs::remove_file(&path);
            } else if let Some(sha256) = self.sealed.get_mut(&path) {
                *sha256 = sha256_hex(text.as_bytes());
            }
            marked.push(path);
        }
        marked
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Symptom;

    #[test]
    fn every_profile_of_a_sick_gpu_shows_the_errors_of_the_run_and_those_of_other_gpus_do_not() {
        let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("ci/recordings/h200");
        let id = |variant: &str| VariantId {
            suite: "bsr_gemm".to_owned(),
            variant: variant.to_owned(),
        };
        let profile = |variant: &str| Profile::recorded(&recorded, &id(variant)).unwrap().unwrap();
        let (mut first, base) = (profile("baseline"), profile("baseline"));
        let uuid = first.gpu_uuids()[0].to_owned();
        let device = &mut first.provenance.captures[0].device;
        device.get_or_insert_default().uncorrected_errors = 1;
        let mut other = profile("cp_async");
        for capture in &mut other.provenance.captures {
            capture.gpu_uuid = Some("GPU-1".to_owned());
        }
        let folder = tempfile::tempdir().unwrap();
        let own = |id: &VariantId| variant_folder(folder.path(), id).join(PROFILE_FILE);
        let of_base = base_folder(folder.path(), &base.variant).join(PROFILE_FILE);
        let paths = [own(&first.variant), of_base, own(&other.variant)];
        let mut measured = Measured::default();
        for (path, profile) in paths.iter().zip([&first, &base, &other]) {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = profile.to_json();
            std::fs::write(path, &text).unwrap();
            let sha256 = sha256_hex(text.as_bytes());
            measured.sealed.insert(path.clone(), sha256);
        }
        measured.profiles = vec![first, other.clone()];
        measured.bases = vec![base];
        let sick = SickGpu {
            uuid,
            name: "NVIDIA H200".to_owned(),
            symptoms: vec![
                Symptom::Xid { xid: 48 },
                Symptom::UncorrectedErrors { errors: 3 },
            ],
        };
        let marked = measured.set_aside(&sick, folder.path());
        assert_eq!(marked, paths[..2]);
        assert_eq!((measured.profiles.len(), measured.bases.len()), (1, 0));
        let read = paths.each_ref().map(|path| {
            let bytes = std::fs::read(path).unwrap();
            assert_eq!(measured.sealed[path], sha256_hex(&bytes));
            Profile::parse(&bytes).unwrap()
        });
        assert_eq!(read[2], other);
        // What a capture shows already is not counted twice.
        for (profile, lacking) in read[..2].iter().zip([2, 3]) {
            let captures = &profile.provenance.captures;
            let last = captures.last().unwrap().device.as_ref().unwrap();
            assert!(last.xids.contains(&48));
            assert_eq!(last.uncorrected_errors, lacking);
        }
        // A GPU that the driver lost has no errors to show.
        let lost = SickGpu {
            uuid: "GPU-1".to_owned(),
            symptoms: vec![Symptom::Lost {
                cause: "GPU is lost".to_owned(),
            }],
            ..sick
        };
        assert!(measured.set_aside(&lost, folder.path()).is_empty());
        assert_eq!(measured.profiles, []);
    }
}
