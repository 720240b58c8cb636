//! Whether the kernels that were launched are those that the compiler made, launched as stated.

use crate::binary::LaunchShape;
use crate::config::Variant;
use crate::finding::{Code, Finding, WarnReason};
use crate::metric::Role;
use crate::profile::{KernelProfile, Profile};
use ncu_report::Recording;

/// The keys of the configuration that state a launch, and the static metrics of the same names.
const BYTES: &str = "dynamic_shared_bytes";
const THREADS: &str = "threads_per_block";

/// Static metrics, and where ncu reports the same of a launch.
const TWINS: [(&str, Role); 4] = [
    ("registers", Role::RegistersPerThread),
    ("barriers", Role::Barriers),
    ("static_shared_bytes", Role::StaticSharedBytes),
    ("driver_shared_bytes", Role::DriverSharedBytes),
];

/// Where a recorded launch contradicts the static profile of its program; the first of each kind.
pub fn launch_mismatches<'r>(
    variant: &Variant,
    compiled: &Profile,
    recordings: impl IntoIterator<Item = &'r Recording>,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for launch in recordings.into_iter().flat_map(|one| &one.launches) {
        let function = &launch.kernel.function;
        // A CSV lacks the mangled name.
        let same = |kernel: &&KernelProfile| match &launch.kernel.mangled {
            Some(mangled) => kernel.mangled.as_ref() == Some(mangled),
            None => kernel.name == *function,
        };
        let Some(kernel) = compiled.kernels.iter().find(same) else {
            continue;
        };
        for (name, role) in TWINS {
            let compiled = kernel.metrics.get(name).and_then(|series| series.value);
            let differing = compiled
                .zip(role.number(launch))
                .filter(|(compiled, found)| compiled != found);
            let Some((compiled, found)) = differing else {
                continue;
            };
            let message = format!(
                "{function} was compiled with `{name}` {compiled}, but was launched with {found} (`{role}`)"
            );
            let finding = Finding::of(Code::LaunchMismatch, &variant.id, message).kernel(function);
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
    }
    findings
}

/// Where the launches of a profile have another number than the configuration states. The launches are
/// what is judged, so this only warns: a statement is for checks that see no launch.
pub fn launched_otherwise(variant: &Variant, profile: &Profile) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for kernel in &profile.kernels {
        for seen in kernel.launch_shapes() {
            for (name, stated, launched) in stated_and(variant, seen) {
                let what = format!(
                    "{} is stated to have `{name}` {stated}, but was launched with {launched}: the launch counts",
                    kernel.name
                );
                let finding = unlike_stated(variant, what).kernel(&kernel.name);
                if !findings.contains(&finding) {
                    findings.push(finding);
                }
            }
        }
    }
    findings
}

/// Where the static baseline of a variant, whose launches were seen when it was locked or stated then,
/// has another number than the configuration states now.
pub fn stated_otherwise(variant: &Variant, locked: &Profile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for kernel in &locked.kernels {
        let value = |name| super::static_value(kernel, name).map(|value| value as u32);
        let seen = LaunchShape {
            dynamic_shared_bytes: value(BYTES),
            threads: value(THREADS),
        };
        for (name, stated, locked) in stated_and(variant, seen) {
            let what = format!(
                "{} is stated to have `{name}` {stated}, and its baseline has {locked}: no launch shows it, so the one with the lower occupancy counts",
                kernel.name
            );
            findings.push(unlike_stated(variant, what).kernel(&kernel.name));
        }
    }
    findings
}

/// Where the launch bounds of a kernel allow fewer threads than the configuration states.
pub(super) fn beyond_bounds(variant: &Variant, compiled: &Profile) -> Vec<Finding> {
    let stated = variant.launch.threads.unwrap_or(0);
    let beyond = compiled.kernels.iter().filter_map(|kernel| {
        let name = &kernel.name;
        let most = super::static_value(kernel, "max_threads_per_block")?;
        let what = format!(
            "{name} is stated to have `{THREADS}` {stated}, but its launch bounds allow {most}"
        );
        (f64::from(stated) > most).then(|| unlike_stated(variant, what).kernel(name))
    });
    beyond.collect()
}

/// What the configuration states, and what is, where that is another number.
fn stated_and(
    variant: &Variant,
    seen: LaunchShape,
) -> impl Iterator<Item = (&'static str, u32, u32)> {
    let stated = variant.launch;
    let numbers = [
        (
            BYTES, stated.dynamic_shared_bytes, seen.dynamic_shared_bytes,
        ),
        (THREADS, stated.threads, seen.threads),
    ];
    let both = numbers
        .into_iter()
        .filter_map(|(name, stated, seen)| Some((name, stated?, seen?)));
    both.filter(|(_, stated, seen)| stated != seen)
}

fn unlike_stated(variant: &Variant, message: String) -> Finding {
    Finding::of(Code::LaunchMismatch, &variant.id, message).warn_for(WarnReason::LaunchesCount)
}
