//! What a run will do, as data, before it does anything: the jobs of each variant in their order.
//!
//! `measure` executes jobs one after the other on one GPU. Nothing here names a machine, so the
//! same jobs can be executed elsewhere: a part of a plan that goes to another machine is a list of
//! [`VariantPlan`]s, since base and current of a variant must be measured on the same GPU.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

mod place;
mod share;

use crate::config::{SanitizerTool, Variant};
use crate::terms::{Phase, VariantId};
use crate::verdict::LOOKS;

pub use place::{MOST_SLICES, SlicePlace};
pub use share::shared_out;

/// Which code a job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The base revision's.
    Base,
    /// The code that is here.
    Current,
}

/// What a job does with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Runs the program with its own check of the numbers.
    Verify,
    /// Repeats the check under a tool of compute-sanitizer.
    Sanitize(SanitizerTool),
    /// Measures its kernels.
    Measure(Phase),
}

impl Task {
    /// Its name in a plan.
    pub fn as_str(self) -> &'static str {
        match self {
            Task::Verify => "verify",
            Task::Sanitize(tool) => tool.as_str(),
            Task::Measure(phase) => phase.as_str(),
        }
    }
}

/// One process on one GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Which code it runs.
    pub side: Side,
    /// What it does with it.
    pub task: Task,
    /// How the names of its files begin: `capture-1`, `counting`.
    pub stem: String,
}

impl Job {
    fn once(side: Side, task: Task) -> Job {
        Job {
            side,
            task,
            stem: task.as_str().to_owned(),
        }
    }

    /// The `process`-th of its side that takes times, from 1.
    fn timed(side: Side, process: u32) -> Job {
        Job {
            stem: format!("capture-{process}"),
            ..Job::once(side, Task::Measure(Phase::Timing))
        }
    }
}

/// The jobs of one variant, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariantPlan {
    /// The variant.
    pub variant: VariantId,
    /// Jobs that run once, before any time is measured.
    pub once: Vec<Job>,
    /// Jobs that are repeated: one process alone, or two of each side, side by side. The last rounds
    /// are left out where the verdict is clear before.
    pub rounds: Vec<Vec<Job>>,
    /// After how many rounds the verdict is looked at, ascending; the first is the least that is
    /// measured.
    pub looks: Vec<u32>,
}

impl VariantPlan {
    /// A variant beside its base, or by itself.
    pub fn of(variant: &Variant, beside_base: bool) -> VariantPlan {
        match beside_base {
            true => VariantPlan::side_by_side(variant),
            false => VariantPlan::alone(variant),
        }
    }

    /// A variant by itself: processes until the verdict is clear.
    pub fn alone(variant: &Variant) -> VariantPlan {
        let settings = &variant.profile;
        let once = |task| Job::once(Side::Current, task);
        let mut jobs = vec![once(Task::Verify)];
        jobs.extend(sanitized(variant).map(|tool| once(Task::Sanitize(tool))));
        jobs.extend(before_rounds(variant).map(once));
        let timed = variant.has_phase(Phase::Timing);
        let rounds = (1..=settings.most_processes()).filter(|_| timed);
        VariantPlan {
            variant: variant.id.clone(),
            once: jobs,
            rounds: rounds
                .map(|round| vec![Job::timed(Side::Current, round)])
                .collect(),
            looks: vec![settings.processes, settings.most_processes()],
        }
    }

    /// A variant and its version at the base, in rounds of two processes a side: base,
    /// current, current, base, then the other way round. A linear drift of the machine within a round cancels, and neither side
    /// is always the first.
    pub fn side_by_side(variant: &Variant) -> VariantPlan {
        let mut jobs = vec![Job::once(Side::Current, Task::Verify)];
        let tools = sanitized(variant);
        jobs.extend(tools.map(|tool| Job::once(Side::Current, Task::Sanitize(tool))));
        jobs.push(Job::once(Side::Base, Task::Verify));
        if let Some(task) = before_rounds(variant) {
            jobs.extend([Side::Base, Side::Current].map(|side| Job::once(side, task)));
        }
        let timed = variant.has_phase(Phase::Timing);
        let round = |round: u32| {
            let (outer, inner) = match round.is_multiple_of(2) {
                false => (Side::Base, Side::Current),
                true => (Side::Current, Side::Base),
            };
            let (first, second) = (2 * round - 1, 2 * round);
            let sides = [
                (outer, first),
                (inner, first),
                (inner, second),
                (outer, second),
            ];
            sides
                .map(|(side, process)| Job::timed(side, process))
                .into()
        };
        let looks = LOOKS.map(|(rounds, _)| rounds as u32);
        let rounds = (1..=looks[looks.len() - 1]).filter(|_| timed);
        VariantPlan {
            variant: variant.id.clone(),
            once: jobs,
            rounds: rounds.map(round).collect(),
            looks: looks.into(),
        }
    }

    /// The longest that the jobs can take: the sum of the time limits of their processes, with every
    /// round and every repetition.
    pub fn time_limit(&self, variant: &Variant) -> Duration {
        let tries = variant.profile.retries + 1;
        let limit = |job: &Job| match job.task {
            Task::Verify | Task::Sanitize(_) => variant.verify_timeout,
            Task::Measure(_) => variant.profile.timeout * tries,
        };
        let jobs = self.once.iter().chain(self.rounds.iter().flatten());
        jobs.map(limit).sum()
    }

    /// The jobs of the counting phase.
    pub fn before_rounds(&self) -> impl Iterator<Item = &Job> {
        let is_one = |job: &&Job| matches!(job.task, Task::Measure(_));
        self.once.iter().filter(is_one)
    }

    /// The fewest rounds that are measured, and the most.
    pub fn bounds(&self) -> (u32, u32) {
        let most = u32::try_from(self.rounds.len()).unwrap_or(u32::MAX);
        let least = self.looks.first().copied().unwrap_or(most);
        (least.min(most), most)
    }
}

/// The tools of compute-sanitizer that a variant asks for, each once.
fn sanitized(variant: &Variant) -> impl Iterator<Item = SanitizerTool> {
    let asked = &variant.sanitizer;
    let first = |index: usize| !asked[..index].contains(&asked[index]);
    (0..asked.len())
        .filter(move |index| first(*index))
        .map(|index| asked[index])
}

/// What is measured once.
fn before_rounds(variant: &Variant) -> Option<Task> {
    let counted = variant.has_phase(Phase::Counting);
    counted.then_some(Task::Measure(Phase::Counting))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::variant;

    #[test]
    fn side_by_side_the_sides_take_turns_in_being_first_and_last() {
        let variant = variant(
            "[metric.instructions]\ncounter = \"smsp__inst_executed.sum\"\nexact = true\n\
             [suite.s]\nkernels = \"k\"\n[suite.s.variant.v]\nrun = [\"x\"]\n",
        );
        let plan = VariantPlan::side_by_side(&variant);
        assert_eq!(plan.bounds(), (3, 10));
        assert_eq!(plan.looks, [3, 6, 10]);
        let (base, current) = (Side::Base, Side::Current);
        let jobs = |jobs: &[Job]| -> Vec<(Task, Side)> {
            jobs.iter().map(|job| (job.task, job.side)).collect()
        };
        let (verify, count) = (Task::Verify, Task::Measure(Phase::Counting));
        assert_eq!(
            jobs(&plan.once),
            [
                (verify, current),
                (verify, base),
                (count, base),
                (count, current)
            ]
        );
        let odd = [base, current, current, base];
        let even = [current, base, base, current];
        for (index, (round, sides)) in plan
            .rounds
            .iter()
            .zip([odd, even].iter().cycle())
            .enumerate()
        {
            let expected = sides.map(|side| (Task::Measure(Phase::Timing), side));
            assert_eq!(jobs(round), expected, "round {index}");
        }
    }
}
