//! Whether the kernels that ncu saw are those that the compiler made.

use crate::config::Variant;
use crate::finding::{Code, Finding};
use crate::metric::Role;
use crate::profile::{KernelProfile, Profile};
use ncu_report::{Launch, Recording};

/// Static metrics, and where ncu reports the same of a launch.
const TWINS: [(&str, Role); 4] = [
    ("registers", Role::RegistersPerThread),
    ("barriers", Role::Barriers),
    ("static_shared_bytes", Role::StaticSharedBytes),
    ("driver_shared_bytes", Role::DriverSharedBytes),
];

/// Where a recorded launch contradicts the static profile of its program, or the shape that the
/// configuration states; the first of each kind.
pub fn launch_mismatches(
    variant: &Variant,
    compiled: &Profile,
    recording: &Recording,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let mut compare = |launch: &Launch, what: &str, stated: f64, role: Role, next: &str| {
        let Some(found) = role.number(launch).filter(|found| *found != stated) else {
            return;
        };
        let kernel = &launch.kernel.function;
        let finding = Finding::deny(
            Code::LaunchMismatch,
            &variant.id,
            format!("{kernel} {what} {stated}, but was launched with {found} (`{role}`)"),
            next.to_owned(),
        );
        let finding = finding.kernel(kernel);
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    };
    for launch in &recording.launches {
        // A CSV lacks the mangled name.
        let same = |kernel: &&KernelProfile| match &launch.kernel.mangled {
            Some(mangled) => kernel.mangled.as_ref() == Some(mangled),
            None => kernel.name == launch.kernel.function,
        };
        let Some(kernel) = compiled.kernels.iter().find(same) else {
            continue;
        };
        for (name, role) in TWINS {
            if let Some(value) = kernel.metrics.get(name).and_then(|series| series.value) {
                let what = format!("was compiled with `{name}`");
                let next = "make the program run the code that it was built with, not code of another program or compiled at run time";
                compare(launch, &what, value, role, next);
            }
        }
        let shape = [
            (
                "`dynamic_shared_bytes`",
                variant.launch.dynamic_shared_bytes,
                Role::DynamicSharedBytes,
            ),
            (
                "`threads_per_block`",
                variant.launch.threads,
                Role::ThreadsPerBlock,
            ),
        ];
        for (key, stated, role) in shape {
            if let Some(stated) = stated {
                let next = format!("correct {key} of {} in the configuration", variant.id);
                let what = format!("is stated to have {key}");
                compare(launch, &what, f64::from(stated), role, &next);
            }
        }
    }
    findings
}
