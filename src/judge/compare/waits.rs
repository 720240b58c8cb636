//! How long the GPU waits between the kernels of two programs that were timed as they run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::metric::{Case, Comparison};
use crate::metric::{Direction, Role};
use crate::profile::Profile;
use crate::statistics::median;
use crate::verdict::{Change, Question, Verdict, in_turn};

/// By how many percentage points the part must grow for the first line to name it.
const WORTH_A_WORD_PERCENT: f64 = 0.5;

/// How long the GPU waits, from the first launch of a process to its last. It is shown, and fails nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Waits {
    /// The part of that time in which no kernel of the reference runs, in percent.
    pub reference_percent: f64,
    /// The same now.
    pub current_percent: f64,
    /// By how many nanoseconds it waits longer in a process.
    pub longer_ns: f64,
    /// Whether all of that time surely grew, and by more than the kernels did.
    pub is_why: bool,
}

/// The medians of both sides over their processes; `None` where one was not timed as it runs.
pub(in crate::judge) fn waits(case: &Case<'_>, sum: Option<&Comparison>) -> Option<Waits> {
    let mut metrics = case.variant.metrics.iter();
    let metric = metrics.find(|one| one.role() == Some(Role::Duration))?;
    let tolerance = case.tolerance(metric)?;
    let sides = [case.reference, case.current];
    let [before, now] = sides.map(Profile::spans);
    let (before, now) = (before?, now?);
    let question = Question {
        tolerance,
        direction: Direction::Lower,
        is_time: true,
        part: 1.0,
        strict: false,
    };
    let [was, is] = [&before, &now].map(|spans| {
        let all = spans.iter().map(|span| vec![span.all_ns as f64]);
        all.collect::<Vec<Vec<f64>>>()
    });
    let decision = in_turn(&was, &is, &question);
    let relative = |change: Option<Change>| match change {
        Some(Change::RelativePercent(percent)) => percent,
        _ => 0.0,
    };
    let band = |band: Option<f64>| band.unwrap_or(0.0);
    let of_kernels = sum.and_then(|sum| match sum.change {
        Some(Change::RelativePercent(percent)) => Some(percent + band(sum.band)),
        _ => None,
    });
    // What chooses how often it launches has a longer time where it chose more.
    let as_often = sides.iter().all(|side| {
        let mut kernels = side.kernels.iter();
        kernels.all(|kernel| {
            let launches = side.launches_by_process(kernel);
            launches.iter().all(|count| *count == launches[0])
        })
    });
    let [was, is] = [&before, &now].map(|spans| {
        let idle: Vec<f64> = spans.iter().map(|span| span.idle_ns as f64).collect();
        let part = spans.iter();
        let part = part.map(|span| 100.0 * span.idle_ns as f64 / span.all_ns.max(1) as f64);
        Some((median(&idle)?, median(&part.collect::<Vec<f64>>())?))
    });
    let ((idle_was, reference_percent), (idle_is, current_percent)) = (was?, is?);
    let longer_ns = idle_is - idle_was;
    Some(Waits {
        reference_percent,
        current_percent,
        longer_ns,
        is_why: decision.verdict == Verdict::Regressed
            && longer_ns > 0.0
            && as_often
            && current_percent - reference_percent > WORTH_A_WORD_PERCENT
            && of_kernels
                .is_some_and(|most| relative(decision.change) - band(decision.band) > most),
    })
}
