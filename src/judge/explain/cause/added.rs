//! How much longer each cause alone can make a kernel at most, as a part of its time before.
//!
//! Of what is counted, two bounds apply: the time cannot grow more than the count, and each count costs
//! a cycle of one multiprocessor. What a unit of the memory moves costs time as far as the unit is in use.

use super::CauseKind;
use super::moved::{Moved, Step};
use crate::metric::{Role, Stall, StallUnit, is_stall_sample};

/// Sectors of 32 bytes that a warp takes in an access to local memory.
const LOCAL_SECTORS: f64 = 4.0;
/// Use of a unit, in percent of its peak, from which on all of the time goes by it: few kernels reach
/// more, as the latency counts too.
const IN_FULL_USE: f64 = 60.0;
/// The units that bound a kernel.
const UNITS: [Role; 4] = [
    Role::DramThroughput,
    Role::L2Throughput,
    Role::TensorActive,
    Role::SmThroughput,
];

/// `None` where it is not known, or not a number: growth from nothing.
pub(super) fn added(kind: CauseKind, moved: &Moved<'_>, slowdown: f64) -> Option<f64> {
    let counted = |role, cycles_each| counted(moved, role, cycles_each);
    // The part of the time that warps wait, now and before.
    let waits = |step: Step| (step.is * slowdown - step.was) / 100.0;
    let added = match kind {
        CauseKind::RegisterSpills => {
            let accesses = [Role::LocalLoads, Role::LocalStores].into_iter();
            let accesses = accesses.filter_map(|role| counted(role, LOCAL_SECTORS));
            accesses.map(|added| added.max(0.0)).sum()
        }
        // The instructions that replace those of the tensor cores.
        CauseKind::LostTensorCores => most([
            counted(Role::Instructions, 1.0),
            counted(Role::FmaInstructions, 1.0),
        ])?,
        CauseKind::MoreWork => {
            let flop = moved.flop().filter(|step| step.is > step.was);
            most([flop.map(more), counted(Role::GlobalStoreSectors, 1.0)])?
        }
        CauseKind::BankConflicts => counted(Role::BankConflicts, 1.0)?,
        CauseKind::Uncoalesced => counted(Role::GlobalLoadSectors, 1.0)?,
        CauseKind::MoreInstructions => counted(Role::Instructions, 1.0)?,
        CauseKind::BarrierWaits => waits(moved.get(Role::BarrierStall)?),
        CauseKind::Stalls => {
            let samples = moved.sum(|counter| is_stall_sample(counter).then_some(1.0));
            most(moved.counters().map(|(counter, step)| {
                let stall = Stall::of(counter).filter(|stall| stall.is_wait())?;
                match stall.unit {
                    _ if Role::of(counter) == Some(Role::BarrierStall) => None,
                    StallUnit::TimePercent => Some(waits(step)),
                    StallUnit::Samples => Some((step.is - step.was) / samples?.was),
                    StallUnit::CyclesPerInstruction | StallUnit::Other => None,
                }
            }))?
        }
        // As far as no unit is busy: where one is, more warps would wait for it.
        CauseKind::LowerOccupancy => {
            let warps = [Role::WarpsActive, Role::WarpsActiveElapsed];
            let warps = warps.iter().find_map(|role| moved.get(*role))?;
            let busiest = most(UNITS.map(|unit| Some(moved.get(unit)?.is)));
            (warps.was / warps.is - 1.0) * (1.0 - busiest.unwrap_or(0.0) / 100.0).max(0.0)
        }
        CauseKind::MoreDramTraffic => {
            let bytes = [Role::DramBytesRead, Role::DramBytesWritten];
            traffic(moved, &bytes, Role::DramThroughput)?
        }
        CauseKind::MoreL2Traffic => {
            let all = [
                Role::L2Bytes,
                Role::L2Sectors,
                Role::L2SectorsRead,
                Role::L2SectorsWritten,
            ];
            traffic(moved, &all, Role::L2Throughput)?
        }
        CauseKind::LowerClock => {
            let clock = moved.get(Role::Clock)?;
            clock.was / clock.is - 1.0
        }
        CauseKind::LessWork | CauseKind::OtherCode => return None,
    };
    Some(added).filter(|added| added.is_finite())
}

/// Of a count with so many cycles each.
fn counted(moved: &Moved<'_>, role: Role, cycles_each: f64) -> Option<f64> {
    let step = moved.get(role)?;
    // Where cycles are not measured, each instruction stands for one.
    let cycles = [Role::SmCycles, Role::Instructions];
    let cycles = cycles.iter().find_map(|role| moved.get(*role))?.was;
    let costs = (step.is - step.was) * cycles_each / cycles;
    Some(if step.was > 0.0 {
        costs.min(more(step))
    } else {
        costs
    })
}

/// Of what a unit moves.
fn traffic(moved: &Moved<'_>, roles: &[Role], unit: Role) -> Option<f64> {
    let usage = moved.get(unit)?;
    let is_one = |counter: &str| Role::of(counter).is_some_and(|role| roles.contains(&role));
    let all = moved.sum(|counter| is_one(counter).then_some(1.0))?;
    Some(more(all) * (usage.was.max(usage.is) / IN_FULL_USE).min(1.0))
}

fn more(step: Step) -> f64 {
    step.is / step.was - 1.0
}

fn most(parts: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    parts.into_iter().flatten().max_by(f64::total_cmp)
}
