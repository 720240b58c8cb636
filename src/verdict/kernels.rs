//! Which kernel of a profile is which kernel of a baseline.

use super::compare::Mode;
use super::finding::{Code, Finding};
use super::rule::Pair;
use crate::config::Variant;
use crate::profile::{KernelProfile, Profile, Rung};

/// Pairs kernels by code, grid and block; what is left is told apart and named. A kernel that is
/// launched in another shape, or has another name, is compared all the same: the change may hide a
/// regression. Against the base such a change is what is being judged, and only told.
pub(super) fn match_kernels<'a>(
    variant: &Variant,
    baseline: &'a Profile,
    current: &'a Profile,
    mode: Mode,
) -> (Vec<Pair<'a>>, Vec<Finding>) {
    let mut pairs = Vec::new();
    let mut gone = Vec::new();
    let mut left: Vec<&KernelProfile> = current.kernels.iter().collect();
    let shape = |kernel: &KernelProfile| (kernel.grid, kernel.block);
    let mut take = |wanted: &dyn Fn(&KernelProfile) -> bool| {
        let at = left.iter().position(|kernel| wanted(kernel))?;
        Some(left.remove(at))
    };
    for locked in &baseline.kernels {
        match take(&|now| now.identity() == locked.identity() && shape(now) == shape(locked)) {
            Some(now) => pairs.push(Pair {
                reference: locked,
                current: now,
            }),
            None => gone.push(locked),
        }
    }
    let only = match current.identity.rung {
        Rung::Static => " --static",
        _ => "",
    };
    let relock = match mode {
        Mode::Stored => format!(
            "if that is meant, lock it: sparsek-gate baseline --lock{only} --reason '...' {}",
            variant.id
        ),
        Mode::Against => format!(
            "the base has nothing to hold it against: lock it in this change, and check it against that: sparsek-gate check{only} {}",
            variant.id
        ),
    };
    let mut findings = Vec::new();
    let mut say = |code, kernel: &KernelProfile, message: String| {
        let finding =
            Finding::deny(code, &variant.id, message, relock.clone()).kernel(&kernel.name);
        let compared = matches!(code, Code::LaunchChanged | Code::KernelRenamed);
        findings.push(if compared && mode == Mode::Against {
            finding.warn()
        } else {
            finding
        });
    };
    let reference = mode.reference();
    let mut missing = Vec::new();
    for locked in gone {
        if let Some(now) = take(&|now| now.identity() == locked.identity()) {
            pairs.push(Pair {
                reference: locked,
                current: now,
            });
            say(
                Code::LaunchChanged,
                now,
                format!(
                    "`{}` is launched with grid {} and block {}, the {reference} with grid {} and block {}",
                    now.name,
                    dimensions(now.grid),
                    dimensions(now.block),
                    dimensions(locked.grid),
                    dimensions(locked.block)
                ),
            );
        } else if let Some(now) = take(&|now| {
            shape(now) == shape(locked)
                && !baseline
                    .kernels
                    .iter()
                    .any(|other| other.identity() == now.identity())
        }) {
            pairs.push(Pair {
                reference: locked,
                current: now,
            });
            say(
                Code::KernelRenamed,
                now,
                format!(
                    "`{}` of the {reference} is gone, and `{}` {}",
                    baseline.label(locked),
                    current.label(now),
                    if now.code.is_some() {
                        "is new"
                    } else {
                        "is launched with the same grid and block"
                    }
                ),
            );
        } else {
            missing.push(locked);
        }
    }
    for locked in missing {
        say(
            Code::KernelGone,
            locked,
            format!(
                "`{}` of the {reference} was not measured",
                baseline.label(locked)
            ),
        );
    }
    for now in left {
        say(
            Code::KernelNew,
            now,
            format!("`{}` is not in the {reference}", current.label(now)),
        );
    }
    (pairs, findings)
}

fn dimensions([x, y, z]: [u64; 3]) -> String {
    format!("({x}, {y}, {z})")
}
