//! Causes in the work that is done, and where.

use super::moved::{Moved, Step};
use crate::metric::Role;

/// What does the work of the tensor cores where they do not.
const ELSEWHERE: [(&str, Role); 2] = [
    ("FMA operations of threads", Role::ThreadFfma),
    ("FMA instructions", Role::FmaInstructions),
];

pub(super) fn lost_tensor_cores(moved: &Moved<'_>) -> Option<String> {
    let used = |step: &Step| step.was > 0.0;
    let flop = moved.tensor_flop().filter(used);
    let instructions = [Role::TensorInstructionsHmma, Role::TensorInstructions]
        .iter()
        .find_map(|role| moved.get(*role))
        .filter(used);
    // Operations that another counter took over (WGMMA reads 0 as WMMA, bf16 as fp16) leave the
    // instructions; larger instructions leave the operations. Only both together are a loss.
    let seen: Vec<Step> = [flop, instructions].into_iter().flatten().collect();
    let gone = !seen.is_empty() && seen.iter().all(|step| step.is == 0.0);
    let fewer = !seen.is_empty() && seen.iter().all(|step| step.fell(0.9));
    let elsewhere: Vec<String> = ELSEWHERE
        .iter()
        .filter_map(|(name, role)| {
            let step = moved.get(*role).filter(|step| step.grew(1.01))?;
            Some(format!(", {name} {}", step.values("")))
        })
        .collect();
    if !(gone || fewer && !elsewhere.is_empty()) {
        return None;
    }
    let values = flop
        .map(|step| step.values("FLOP"))
        .or_else(|| Some(format!("{} instructions", instructions?.values(""))))?;
    let what = match gone {
        true => "tensor cores no longer used",
        false => "tensor cores used less",
    };
    Some(format!("{what}: {values}{}", elsewhere.concat()))
}

pub(super) fn less_work(moved: &Moved<'_>) -> Option<String> {
    // What the data decides varies a little.
    let fell = |step: &Step| step.fell(if step.exact { 1.0 } else { 0.99 });
    Some(format!("less work: {}", work_that(moved, fell)?))
}

pub(super) fn more_work(moved: &Moved<'_>) -> Option<String> {
    let grew = |step: &Step| step.grew(if step.exact { 1.0 } else { 1.01 });
    Some(format!("more work: {}", work_that(moved, grew)?))
}

/// Operations and stored sectors that changed in one direction.
fn work_that(moved: &Moved<'_>, changed: impl Fn(&Step) -> bool) -> Option<String> {
    let parts: Vec<String> = [
        ("operations", "FLOP", moved.flop()),
        ("sectors stored", "", moved.get(Role::GlobalStoreSectors)),
    ]
    .into_iter()
    .filter_map(|(name, unit, step)| {
        let step = step.filter(&changed)?;
        Some(format!("{name} {}{}", step.percent(), step.values(unit)))
    })
    .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}
