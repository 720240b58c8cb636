//! Symptoms of a sick GPU: what shows that its measurements cannot be trusted, and that no result of a
//! change can be.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Variant;
use crate::device::{Faults, Slowdown, State};
use crate::finding::{Code, Finding};
use crate::profile::Profile;
use crate::terms::{VariantId, counted, joined};
use crate::verdict::Change;

/// Xid errors that a defect of the hardware causes, with what they mean. Those that a program or the
/// driver can cause alone (13, 31, 43, 45, 69, 109, 119, …) are not among them, nor are 63 and 92: they
/// report errors that were corrected. See NVIDIA's catalogue,
/// <https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html>.
const HARDWARE_XIDS: [(u32, &str); 7] = [
    (48, "a memory error that could not be corrected"),
    (64, "a defective row of memory could not be replaced"),
    (74, "an error of NVLink"),
    (79, "the GPU has fallen off the bus"),
    (94, "a contained memory error that could not be corrected"),
    (
        95,
        "an uncontained memory error that could not be corrected",
    ),
    (140, "a memory error that was not recovered"),
];

/// Fewest captures of a profile that all must be throttled: a moment of heat is no symptom.
const FEWEST_THROTTLED: usize = 2;

/// What shows that the measurements of a GPU cannot be trusted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum Symptom {
    /// The driver reported an error that only the hardware causes.
    Xid {
        /// Its number.
        xid: u32,
    },
    /// Memory errors that could not be corrected.
    UncorrectedErrors {
        /// How many, during the run.
        errors: u64,
    },
    /// The driver no longer shows the GPU.
    Lost {
        /// The answer of the driver.
        cause: String,
    },
    /// Heat or the power supply lowered its clock in every capture of a variant, after all retries.
    Throttling {
        /// The variant.
        variant: VariantId,
        /// Why.
        reasons: BTreeSet<Slowdown>,
    },
    /// An immutable variant with the locked program does not read as it was locked.
    Control {
        /// The variant.
        variant: VariantId,
        /// Its kernel.
        kernel: String,
        /// How far its duration is from the locked one.
        change: Change,
    },
}

impl Symptom {
    /// Whether the GPU alone can be its cause. A kernel of the change may heat the GPU, and a lock may
    /// be of another driver: of these, only a measurement on another GPU shows the cause.
    pub fn is_certain(&self) -> bool {
        !matches!(self, Symptom::Throttling { .. } | Symptom::Control { .. })
    }

    /// In words.
    pub fn words(&self) -> String {
        match self {
            Symptom::Xid { xid } => match meaning(*xid) {
                Some(meaning) => format!("Xid {xid} ({meaning})"),
                None => format!("Xid {xid}"),
            },
            Symptom::UncorrectedErrors { errors } => {
                let errors = counted(*errors as usize, "memory error", "memory errors");
                format!("{errors} could not be corrected")
            }
            Symptom::Lost { cause } => format!("the driver lost it ({cause})"),
            Symptom::Throttling { variant, reasons } => {
                let reasons = joined(reasons.iter().map(|one| one.as_str()), ", ");
                format!("its clock was lowered in every capture of {variant} ({reasons})")
            }
            Symptom::Control {
                variant,
                kernel,
                change,
            } => format!(
                "the immutable variant {variant} reads {} in the duration of {kernel} against its lock",
                change.display(Some("ns"))
            ),
        }
    }
}

fn meaning(xid: u32) -> Option<&'static str> {
    let mut known = HARDWARE_XIDS.iter();
    known.find(|(one, _)| *one == xid).map(|(_, what)| *what)
}

/// A GPU with symptoms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SickGpu {
    /// UUID of the GPU.
    pub uuid: String,
    /// Its model.
    pub name: String,
    /// What shows it, at least one.
    pub symptoms: Vec<Symptom>,
}

impl SickGpu {
    /// Adds a GPU to others: of one that is among them, its further symptoms.
    pub fn add_to(self, gpus: &mut Vec<SickGpu>) {
        match gpus.iter_mut().find(|gpu| gpu.uuid == self.uuid) {
            None => gpus.push(self),
            Some(gpu) => {
                for symptom in self.symptoms {
                    if !gpu.symptoms.contains(&symptom) {
                        gpu.symptoms.push(symptom);
                    }
                }
            }
        }
    }

    /// Whether the GPU alone can be the cause.
    pub fn is_certain(&self) -> bool {
        self.symptoms.iter().any(Symptom::is_certain)
    }

    /// What shows it, in words.
    pub fn words(&self) -> String {
        joined(self.symptoms.iter().map(Symptom::words), "; ")
    }

    /// Whether any of a profile was measured on it.
    pub fn measured(&self, profile: &Profile) -> bool {
        profile.gpu_uuids().contains(&self.uuid.as_str())
    }
}

/// What a sick GPU measured in a run, so that it does not count.
#[derive(Clone, Debug)]
pub struct SetAside {
    /// The GPU.
    pub gpu: SickGpu,
    /// The folder of its captures.
    pub folder: PathBuf,
    /// The variants.
    pub variants: BTreeSet<VariantId>,
}

impl SetAside {
    fn finding(&self) -> Finding {
        let SickGpu { uuid, name, .. } = &self.gpu;
        let (words, folder) = (self.gpu.words(), self.folder.display());
        let aside = format!(
            "all that it measured in this run is set aside, and its captures are in {folder}"
        );
        let message = match self.gpu.is_certain() {
            true => format!("the GPU {uuid} ({name}) is sick: {words}; {aside}"),
            false => format!(
                "the GPU {uuid} ({name}) may be sick: {words}. Only another GPU shows whether this one, the change or a lock is the cause; {aside}"
            ),
        };
        Finding::of_project(Code::GpuSick, message, Code::GpuSick.next_step_of(None))
    }
}

/// Reports all sick GPUs of a run, and each variant that they measured, in the place of what was found about
/// these variants while they ran there.
pub fn set_aside(findings: &mut Vec<Finding>, all: &[SetAside]) {
    if all.is_empty() {
        return;
    }
    let variants: BTreeSet<&VariantId> = all.iter().flat_map(|one| &one.variants).collect();
    let concerned = |one: &Finding| one.variant.as_ref().is_some_and(|id| variants.contains(id));
    let is_reported = |one: &Finding| one.code == Code::GpuSick && one.variant.is_none();
    let (found, kept): (Vec<Finding>, Vec<Finding>) = std::mem::take(findings)
        .into_iter()
        .partition(|one| concerned(one) && of_a_process(one.code) || is_reported(one));
    *findings = kept;
    findings.extend(all.iter().map(SetAside::finding));
    for variant in variants {
        let mut of_it = all.iter().filter(|one| one.variants.contains(variant));
        let Some(SetAside { gpu, .. }) = of_it.next() else {
            continue;
        };
        let found = found.iter().filter(|one| one.concerns(variant));
        let found = found.map(|one| format!("{}: {}", one.code.as_str(), one.message));
        let message = format!(
            "what the GPU {} measured of it is set aside: the GPU is sick",
            gpu.uuid
        );
        let next = Code::GpuSick.next_step_of(None);
        let finding = Finding::deny(Code::NotMeasured, variant, message, next);
        findings.push(finding.detail(joined(found, "\n")));
    }
}

/// Whether findings of a code come from processes that ran on the GPU, so that a sick one may be their
/// cause. Findings stay if files changed, or if the driver no longer shows the GPU.
pub fn of_a_process(code: Code) -> bool {
    matches!(
        code,
        Code::NotMeasured
            | Code::ProfileMissing
            | Code::Implausible
            | Code::ClockChanged
            | Code::GpuShared
            | Code::KernelMissing
            | Code::WrongNumbers
            | Code::Sanitizer
            | Code::ProgramFailed
            | Code::TimedOut
            | Code::ProfilerFailed
            | Code::Retried
            | Code::LaunchMismatch
            | Code::CodeVaries
            | Code::CaptureUnreadable
            | Code::ReadersDisagree
            | Code::NumbersUnchecked
            | Code::OtherLaunches
            | Code::BaseUnavailable
    )
}
/// What the driver reported of a GPU, as symptoms.
pub fn symptoms_of(faults: &Faults) -> Vec<Symptom> {
    let hardware = faults.xids.iter().filter(|xid| meaning(**xid).is_some());
    let xids = hardware.map(|xid| Symptom::Xid { xid: *xid });
    let errors = faults.uncorrected_errors;
    let errors = (errors > 0).then_some(Symptom::UncorrectedErrors { errors });
    xids.chain(errors).collect()
}

/// The symptoms in the captures of a variant, by the UUID of the GPU: of one profile, or of both sides.
pub fn symptoms_in(variant: &Variant, sides: &[&Profile]) -> BTreeMap<String, Vec<Symptom>> {
    let captures = sides.iter().flat_map(|side| &side.provenance.captures);
    let mut states: BTreeMap<&str, Vec<Option<&State>>> = BTreeMap::new();
    for capture in captures {
        if let Some(uuid) = capture.gpu_uuid.as_deref() {
            let of_gpu = states.entry(uuid).or_default();
            of_gpu.push(capture.device.as_ref());
        }
    }
    let found = states.into_iter().map(|(uuid, states)| {
        let faults = states.iter().flatten().map(|state| state.faults.clone());
        let together = faults.fold(Faults::default(), Faults::and);
        let mut symptoms = symptoms_of(&together);
        symptoms.extend(throttling(variant, &states));
        (uuid.to_owned(), symptoms)
    });
    found.filter(|(_, symptoms)| !symptoms.is_empty()).collect()
}

/// That every capture of a variant on a GPU was throttled by a fault of the machine. The captures are
/// those of the last try: earlier ones are discarded.
fn throttling(variant: &Variant, states: &[Option<&State>]) -> Option<Symptom> {
    let faults = |state: &State| -> BTreeSet<Slowdown> {
        let reasons = state.slowdowns().into_iter();
        reasons.filter(|reason| reason.is_fault()).collect()
    };
    let each: Vec<BTreeSet<Slowdown>> = states
        .iter()
        .map(|state| state.map(faults).unwrap_or_default())
        .collect();
    let all = each.len() >= FEWEST_THROTTLED && each.iter().all(|reasons| !reasons.is_empty());
    all.then(|| Symptom::Throttling {
        variant: variant.id.clone(),
        reasons: each.into_iter().flatten().collect(),
    })
}

/// The finding that the driver reported faults of the hardware while these were captured.
pub(super) fn faulty(variant: &VariantId, captures: &[(String, &State)]) -> Option<Finding> {
    let faulty = captures.iter().filter_map(|(name, state)| {
        let symptoms = symptoms_of(&state.faults);
        let words = joined(symptoms.iter().map(Symptom::words), ", ");
        (!symptoms.is_empty()).then(|| format!("{words} during {name}"))
    });
    let faulty: Vec<String> = faulty.collect();
    (!faulty.is_empty()).then(|| {
        let faulty = faulty.join("; ");
        let message = format!("the GPU reported a defect: {faulty}, or later in that run");
        Finding::of(Code::GpuSick, variant, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(xids: &[u32], uncorrected_errors: u64) -> Faults {
        Faults {
            xids: xids.iter().copied().collect(),
            uncorrected_errors,
        }
    }

    #[test]
    fn what_a_program_can_cause_is_no_symptom() {
        let by_programs = [
            8, 11, 12, 13, 31, 32, 43, 44, 45, 61, 62, 63, 66, 67, 68, 69, 92, 109, 119, 120,
        ];
        assert_eq!(symptoms_of(&faults(&by_programs, 0)), []);
        for (xid, _) in HARDWARE_XIDS {
            let found = symptoms_of(&faults(&[xid, 45], 0));
            assert_eq!(found, [Symptom::Xid { xid }]);
            assert!(found[0].is_certain());
        }
        let errors = Symptom::UncorrectedErrors { errors: 3 };
        assert_eq!(symptoms_of(&faults(&[], 3)), [errors]);
    }

    #[test]
    fn throttling_is_a_symptom_only_where_every_capture_shows_a_fault() {
        let variant = &crate::config::tests::variant("[suite.s.variant.v]\nrun = [\"v\"]\n");
        let state = |reasons: &[Slowdown]| State {
            slowdown_readings: reasons.iter().map(|reason| (*reason, 5)).collect(),
            ..State::default()
        };
        let hot = state(&[Slowdown::HwThermal]);
        let capped = state(&[Slowdown::SwPowerCap]);
        let both = state(&[Slowdown::SwPowerCap, Slowdown::PowerBrake]);
        let quiet = state(&[]);
        for (states, expected) in [
            (vec![Some(&hot), Some(&hot)], true),
            (vec![Some(&hot), Some(&both), Some(&hot)], true),
            (vec![Some(&hot)], false),
            (vec![Some(&hot), Some(&quiet)], false),
            (vec![Some(&hot), None], false),
            // The power limit is a setting, and a kernel reaches it by its own work.
            (vec![Some(&capped), Some(&capped)], false),
            (vec![Some(&hot), Some(&capped)], false),
            (vec![], false),
        ] {
            let found = throttling(variant, &states);
            assert_eq!(found.is_some(), expected, "{states:?}");
        }
        let Some(found) = throttling(variant, &[Some(&hot), Some(&both)]) else {
            panic!("no symptom");
        };
        assert!(!found.is_certain());
        assert_eq!(
            found.words(),
            "its clock was lowered in every capture of s/v (hw-thermal, power-brake)"
        );
    }
}
