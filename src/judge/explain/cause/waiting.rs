//! Causes in what warps wait for, how many there are, and how fast the clock is.

use super::moved::{Moved, Step};
use crate::judge::explain::stall::stall_words;
use crate::metric::{Role, Stall, StallUnit, block_limit, is_stall_sample};
use crate::terms::joined;

/// Most reasons to wait that are named.
const NAMED_STALLS: usize = 2;
/// Points of active time that a wait, or the number of active warps, must have moved by.
const POINTS_THAT_MATTER: f64 = 5.0;
/// The factor that a wait must have grown by.
const FACTOR_THAT_MATTERS: f64 = 1.5;

pub(super) fn barrier_waits(moved: &Moved<'_>) -> Option<String> {
    let step = moved.get(Role::BarrierStall)?;
    let waits = step.is > step.was + POINTS_THAT_MATTER && step.is > step.was * FACTOR_THAT_MATTERS;
    waits.then(|| {
        format!(
            "warps wait at barriers: {:.2} % → {:.2} % of the time they are active",
            step.was, step.is
        )
    })
}

/// What warps wait for, other than barriers where these have their own counter.
pub(super) fn stalls(moved: &Moved<'_>) -> Option<String> {
    let samples: f64 = moved
        .counters()
        .filter(|(counter, _)| is_stall_sample(counter))
        .map(|(_, step)| step.was)
        .sum();
    let mut longer: Vec<(f64, String)> = Vec::new();
    for (counter, step) in moved.counters() {
        let stall = Stall::of(counter).filter(|stall| stall.is_wait());
        let Some(stall) = stall.filter(|_| Role::of(counter) != Some(Role::BarrierStall)) else {
            continue;
        };
        let Step { was, is, .. } = step;
        let (least, change) = match stall.unit {
            StallUnit::TimePercent => (
                POINTS_THAT_MATTER,
                format!("{was:.2} % → {is:.2} % of the time"),
            ),
            StallUnit::Samples => (
                (0.05 * samples).max(1.0),
                format!("{} samples", step.values("")),
            ),
            StallUnit::CyclesPerInstruction => {
                (0.5, format!("{was:.2} → {is:.2} cycles an instruction"))
            }
            // The number of warps does not give a time.
            StallUnit::Other => continue,
        };
        if is > was + least && step.grew(FACTOR_THAT_MATTERS) {
            let text = format!("{} {change}", stall_words(stall.reason));
            longer.push(((is - was) / least, text));
        }
    }
    longer.sort_by(|a, b| b.0.total_cmp(&a.0));
    let named = longer.into_iter().take(NAMED_STALLS);
    let texts: Vec<String> = named.map(|(_, text)| text).collect();
    (!texts.is_empty()).then(|| format!("warps wait longer: {}", texts.join(", ")))
}

pub(super) fn lower_occupancy(moved: &Moved<'_>) -> Option<String> {
    let measured = [Role::WarpsActive, Role::WarpsActiveElapsed]
        .iter()
        .find_map(|role| moved.get(*role));
    // What would fit does not matter where as many warps were active.
    if measured.is_some_and(|step| step.is >= step.was) {
        return None;
    }
    let active = measured.filter(|step| step.is < step.was - POINTS_THAT_MATTER);
    let fewer = fewer_blocks(moved);
    if active.is_none() && fewer.is_none() {
        return None;
    }
    let what = match active {
        Some(_) => "fewer active warps",
        None => "room for fewer blocks",
    };
    let active =
        active.map(|step| format!("{:.2} % → {:.2} % of those possible", step.was, step.is));
    let registers = moved
        .get(Role::RegistersPerThread)
        .filter(|step| step.is > step.was)
        .map(|step| format!("registers {} → {} a thread", step.was, step.is));
    let parts = [active, fewer, registers].into_iter().flatten();
    Some(format!("{what}: {}", joined(parts, ", ")))
}

/// How many blocks fit a multiprocessor, where the tightest limit became tighter.
fn fewer_blocks(moved: &Moved<'_>) -> Option<String> {
    let fewest = |side: fn(Step) -> f64| {
        moved
            .counters()
            .filter_map(|(counter, step)| Some((block_limit(counter)?, side(step))))
            .min_by(|a, b| a.1.total_cmp(&b.1))
    };
    let ((_, was), (by, is)) = (fewest(|step| step.was)?, fewest(|step| step.is)?);
    (is < was).then(|| {
        let by = by.replace('_', " ");
        format!("{was} → {is} blocks fit a multiprocessor, bounded by {by}")
    })
}

pub(super) fn lower_clock(moved: &Moved<'_>) -> Option<String> {
    let step = moved.get(Role::Clock).filter(|step| step.fell(0.995))?;
    Some(format!(
        "lower clock: {}{:.0} MHz → {:.0} MHz",
        step.percent(),
        step.was / 1e6,
        step.is / 1e6
    ))
}
