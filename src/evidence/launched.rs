//! Whether the kernels that ncu saw are those that the compiler made.

use crate::config::Variant;
use crate::finding::{Code, Finding};
use crate::profile::{KernelProfile, Profile};
use ncu_report::{Launch, Recording};

/// Static metrics, and where ncu reports the same of a launch.
const TWINS: [(&str, &str); 4] = [
    ("registers", "launch__registers_per_thread"),
    ("barriers", "launch__barrier_count"),
    ("static_shared_bytes", "launch__shared_mem_per_block_static"),
    ("driver_shared_bytes", "launch__shared_mem_per_block_driver"),
];

/// Where a recorded launch contradicts the static profile of its program, or the shape that the
/// configuration states; the first of each kind.
pub fn launch_mismatches(
    variant: &Variant,
    compiled: &Profile,
    recording: &Recording,
) -> Vec<Finding> {
    let read = |launch: &Launch, counter: &str| launch.metrics.get(counter)?.value.number();
    let mut findings: Vec<Finding> = Vec::new();
    let mut tell = |launch: &Launch, what: &str, stated: f64, counter: &str, next: &str| {
        let Some(found) = read(launch, counter).filter(|found| *found != stated) else {
            return;
        };
        let kernel = &launch.kernel.function;
        let finding = Finding::deny(
            Code::LaunchMismatch,
            &variant.id,
            format!("{kernel} {what} {stated}, and was launched with {found} (`{counter}`)"),
            next.to_owned(),
        );
        let finding = finding.kernel(kernel);
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    };
    for launch in &recording.launches {
        // A CSV does not hold the mangled name.
        let same = |kernel: &&KernelProfile| match &launch.kernel.mangled {
            Some(mangled) => kernel.mangled.as_ref() == Some(mangled),
            None => kernel.name == launch.kernel.function,
        };
        let Some(kernel) = compiled.kernels.iter().find(same) else {
            continue;
        };
        for (name, counter) in TWINS {
            if let Some(value) = kernel.metrics.get(name).and_then(|series| series.value) {
                let what = format!("was compiled with `{name}`");
                let next = "see that the program runs the code it was built with, and not another program's or one compiled at run time";
                tell(launch, &what, value, counter, next);
            }
        }
        let shape = [
            (
                "`dynamic_shared_bytes`",
                variant.launch.dynamic_shared_bytes,
                "launch__shared_mem_per_block_dynamic",
            ),
            (
                "`threads_per_block`",
                variant.launch.threads,
                "launch__block_size",
            ),
        ];
        for (key, stated, counter) in shape {
            if let Some(stated) = stated {
                let next = format!("mend {key} of {} in the configuration", variant.id);
                let what = format!("is stated to have {key}");
                tell(launch, &what, f64::from(stated), counter, &next);
            }
        }
    }
    findings
}
