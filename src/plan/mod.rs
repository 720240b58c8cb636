//! What a run will do, as data, before it does anything: the jobs of each variant in their order.
//!
//! `measure` executes jobs one after the other on one GPU. Nothing here names a machine, so the
//! same jobs can be executed elsewhere: a part of a plan that goes to another machine is a list of
//! [`VariantPlan`]s, since base and current of a variant must be measured on the same GPU.

use schemars::JsonSchema;
use serde::Serialize;

use crate::config::{SanitizerTool, Variant};
use crate::terms::{Phase, VariantId};

/// Which code a job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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
    /// The variant.
    pub variant: VariantId,
    /// Which code it runs.
    pub side: Side,
    /// What it does with it.
    pub task: Task,
    /// The round it belongs to, from 1; `None` for a job that runs once.
    pub round: Option<u32>,
}

/// The jobs of one variant, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariantPlan {
    /// The variant.
    pub variant: VariantId,
    /// Jobs that run once, before any time is measured.
    pub once: Vec<Job>,
    /// Jobs that are repeated: one process alone, or base, current, current, base side by side. The
    /// last rounds are left out where the verdict is clear before.
    pub rounds: Vec<Vec<Job>>,
    /// After how many rounds the verdict is looked at, ascending; the first is the least that is
    /// measured.
    pub looks: Vec<u32>,
}

impl VariantPlan {
    /// A variant by itself: processes until the verdict is clear.
    pub fn alone(variant: &Variant) -> VariantPlan {
        let settings = &variant.profile;
        let job = |task, round| Job {
            variant: variant.id.clone(),
            side: Side::Current,
            task,
            round,
        };
        let mut once = vec![job(Task::Verify, None)];
        once.extend(sanitized(variant).map(|tool| job(Task::Sanitize(tool), None)));
        once.extend(counted(variant).then(|| job(Task::Measure(Phase::Counting), None)));
        let timed = variant.has_phase(Phase::Timing);
        let rounds = (1..=settings.max_processes)
            .filter(|_| timed)
            .map(|round| vec![job(Task::Measure(Phase::Timing), Some(round))]);
        VariantPlan {
            variant: variant.id.clone(),
            once,
            rounds: rounds.collect(),
            looks: settings.process_looks(),
        }
    }

    /// A variant and its version at the base, in rounds of base, current, current, base: a linear
    /// drift of the machine within a round cancels.
    pub fn side_by_side(variant: &Variant) -> VariantPlan {
        let settings = &variant.profile;
        let job = |side, task, round| Job {
            variant: variant.id.clone(),
            side,
            task,
            round,
        };
        let mut once = vec![job(Side::Current, Task::Verify, None)];
        let tools = sanitized(variant);
        once.extend(tools.map(|tool| job(Side::Current, Task::Sanitize(tool), None)));
        once.push(job(Side::Base, Task::Verify, None));
        if counted(variant) {
            for side in [Side::Base, Side::Current] {
                once.push(job(side, Task::Measure(Phase::Counting), None));
            }
        }
        let timed = variant.has_phase(Phase::Timing);
        let rounds = (1..=settings.max_rounds).map(|round| {
            [Side::Base, Side::Current, Side::Current, Side::Base]
                .into_iter()
                .filter(|_| timed)
                .map(|side| job(side, Task::Measure(Phase::Timing), Some(round)))
                .collect()
        });
        VariantPlan {
            variant: variant.id.clone(),
            once,
            rounds: rounds.collect(),
            looks: settings.round_looks(),
        }
    }

    /// The sides of the one-time jobs of a phase, in their order.
    pub fn counting_sides(&self) -> impl Iterator<Item = Side> {
        let counting = Task::Measure(Phase::Counting);
        let jobs = self.once.iter().filter(move |job| job.task == counting);
        jobs.map(|job| job.side)
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

/// Whether anything is counted, in a process of its own.
fn counted(variant: &Variant) -> bool {
    variant.profile.hotspots || variant.has_phase(Phase::Counting)
}
