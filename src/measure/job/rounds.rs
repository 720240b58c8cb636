//! Executes the measuring jobs of a variant: once, then in rounds until the verdict is clear, on the
//! highest tier that is available, and again where the machine failed.

use std::time::{Duration, Instant};

use super::retry::{Retries, disturbance};
use super::seeds::Seeds;
use super::subject::Subject;
use super::window::Window;
use crate::config::{StatedBy, Variant};
use crate::finding::{Code, Error, Finding, Stop, WarnReason};
use crate::measure::place::bench::Bench;
use crate::plan::{Job, Side, Task, VariantPlan};
use crate::profile::Profile;
use crate::profiler::{Session, in_turn};
use crate::terms::{Phase, Tier};
use crate::verdict::Stopping;

/// A variant, and its version at the base where both are measured side by side.
pub(in crate::measure) struct Subjects<'a> {
    pub current: Subject<'a>,
    pub base: Option<Subject<'a>>,
    pub seeds: Seeds,
    pub window: Window,
    /// A warning for each program that failed beside others.
    pub failed_beside: Vec<Finding>,
}

/// Rounds that took no longer may as well be done again.
const QUICK: Duration = Duration::from_millis(3500);
/// How often a program may fail beside others: a window of twelve shrinks to one in four steps.
const MOST_FAILED: usize = 4;

/// What one of several programs may fail by because it was not alone.
const BESIDE_OTHERS: [Code; 5] = [
    Code::NotStarted,
    Code::NotMeasured,
    Code::ProfilerUnsupported,
    Code::TimedOut,
    Code::ProgramFailed,
];

/// What was measured of [`Subjects`].
pub(in crate::measure) struct Profiles {
    pub current: Profile,
    pub base: Option<Profile>,
    /// Why counters that were asked for were not read.
    pub uncounted: Option<Finding>,
}

/// Why [`Subjects`] were not measured, and which side is the reason.
pub(in crate::measure) enum SideStop {
    Finding(Side, Box<Finding>),
    Error(Error),
}

impl SideStop {
    fn of(side: Side, stop: Stop) -> SideStop {
        match stop {
            Stop::Finding(finding) => SideStop::Finding(side, finding),
            Stop::Error(error) => SideStop::Error(error),
        }
    }

    fn map(self, change: impl FnOnce(Finding) -> Finding) -> SideStop {
        match self {
            SideStop::Finding(side, finding) => SideStop::Finding(side, Box::new(change(*finding))),
            error => error,
        }
    }
}

impl From<Error> for SideStop {
    fn from(error: Error) -> SideStop {
        SideStop::Error(error)
    }
}

impl<'a> Subjects<'a> {
    fn variant(&self) -> &'a Variant {
        self.current.variant
    }

    fn both(&mut self) -> impl Iterator<Item = &mut Subject<'a>> {
        self.base.iter_mut().chain([&mut self.current])
    }

    /// From now on measured as these versions of the variant say.
    pub(in crate::measure) fn are(&mut self, current: &'a Variant, of_base: &'a Variant) {
        self.current.variant = current;
        if let Some(base) = &mut self.base {
            base.variant = of_base;
        }
    }

    /// Measures on the highest tier that both sides reach, again where the machine failed.
    pub(in crate::measure) fn measure(
        &mut self,
        bench: &Bench<'_>,
        plan: &VariantPlan,
        retries: &mut Retries<'_, '_>,
        stop: &dyn Stopping,
    ) -> Result<Profiles, SideStop> {
        let variant = self.variant();
        loop {
            let answer = self.on_highest_tier(bench, plan, stop);
            let answer = answer.map_err(|stop| stop.map(|found| bench.unless_lost(found)));
            let failed = match &answer {
                Ok(Profiles { current, base, .. }) => disturbance(variant, base.as_ref(), current),
                Err(SideStop::Finding(_, found)) => Some((**found).clone()),
                Err(SideStop::Error(_)) => None,
            };
            let again = failed.map(|found| retries.again(&found)).transpose()?;
            if let Some(wait) = again.flatten() {
                self.discard()?;
                retries.wait(wait)?;
                continue;
            }
            return answer.map_err(|stop| stop.map(|found| retries.given_up(found)));
        }
    }

    fn on_highest_tier(
        &mut self,
        bench: &Bench<'_>,
        plan: &VariantPlan,
        stop: &dyn Stopping,
    ) -> Result<Profiles, SideStop> {
        let variant = self.variant();
        let mut tier = bench
            .tier(variant)
            .map_err(|denied| SideStop::Finding(Side::Current, Box::new(denied)))?;
        loop {
            self.seeds.restart();
            self.both().for_each(|side| side.restart(tier));
            match self.execute(bench, plan, stop) {
                Err(SideStop::Finding(side, found)) => match bench.below(variant, tier, &found) {
                    Some(lower) => tier = lower,
                    None => return Err(SideStop::Finding(side, found)),
                },
                answer => return answer,
            }
        }
    }

    fn execute(
        &mut self,
        bench: &Bench<'_>,
        plan: &VariantPlan,
        stop: &dyn Stopping,
    ) -> Result<Profiles, SideStop> {
        for job in plan.before_rounds() {
            let is_measured = |phase| self.current.has_phase(phase);
            if !matches!(job.task, Task::Measure(phase) if !is_measured(phase)) {
                self.capture(job, bench)?;
            }
        }
        let variant = self.variant();
        let as_it_runs = variant.profile.as_it_runs;
        let mut uncounted = None;
        // ncu prints what it counted while processes are timed, then.
        let counts_first = as_it_runs && self.base.is_some() && stop.counts_always();
        if counts_first {
            uncounted = self.counted(bench, plan)?;
        }
        let mut profiles = self.in_rounds(bench, plan, stop)?;
        let (current, base) = (&profiles.current, profiles.base.as_ref());
        if as_it_runs && !counts_first && stop.counts(variant, current, base) {
            uncounted = self.counted(bench, plan)?;
            if uncounted.is_none() {
                profiles = self.profiles(bench)?;
            }
        }
        Ok(Profiles {
            uncounted,
            ..profiles
        })
    }

    /// Takes times until the verdict is clear.
    fn in_rounds(
        &mut self,
        bench: &Bench<'_>,
        plan: &VariantPlan,
        stop: &dyn Stopping,
    ) -> Result<Profiles, SideStop> {
        if self.current.has_phase(Phase::Timing) {
            let began = Instant::now();
            let mut waiting = Vec::new();
            for (round, done) in plan.rounds.iter().zip(1..) {
                waiting.extend(round);
                let look = u32::try_from(done).is_ok_and(|done| plan.looks.contains(&done));
                if look || done == plan.rounds.len() {
                    self.capture_all(&std::mem::take(&mut waiting), bench)?;
                }
                if look && done < plan.rounds.len() {
                    let profiles = self.profiles(bench)?;
                    let base = profiles.base.as_ref();
                    let look = stop.look(self.variant(), &profiles.current, base);
                    if !(look.open || look.coarse && began.elapsed() < QUICK) {
                        return Ok(profiles);
                    }
                    if let Some(so_far) = look.so_far {
                        let text =
                            format!("{so_far} after {done} rounds, which decides nothing yet");
                        bench.note(self.variant(), "rounds", &text);
                    }
                }
            }
        }
        self.profiles(bench)
    }

    /// Reads the counters of programs that are timed as they run, or says why they cannot be read.
    fn counted(
        &mut self,
        bench: &Bench<'_>,
        plan: &VariantPlan,
    ) -> Result<Option<Finding>, SideStop> {
        let variant = self.variant();
        let counted = match bench.denied(variant) {
            None => {
                self.measures_on(Tier::Counters);
                self.count(bench, plan)
            }
            Some(denied) => Err(SideStop::Finding(Side::Current, Box::new(denied))),
        };
        match counted {
            Err(SideStop::Finding(_, found))
                if bench.below(variant, Tier::Counters, &found).is_some()
                    || variant.stated_by != StatedBy::Configuration
                        && matches!(found.code, Code::ProgramFailed | Code::TimedOut) =>
            {
                // The times are known, whatever happens under ncu.
                self.measures_on(Tier::KernelTimes);
                let message = format!("no counter was read: {}", found.message);
                let code = match found.code {
                    Code::NoPermission => Code::NoPermission,
                    _ => Code::ProfilerUnsupported,
                };
                let found = Finding {
                    code,
                    message,
                    ..*found
                };
                let accepted = variant.accepts(Tier::KernelTimes);
                let found = found.warn_for(accepted.then_some(WarnReason::TierAccepted));
                Ok(Some(found))
            }
            counted => counted.map(|()| None),
        }
    }

    fn count(&mut self, bench: &Bench<'_>, plan: &VariantPlan) -> Result<(), SideStop> {
        if let Err(Error::Environment { what, next }) = bench.profilers.ncu() {
            let code = Code::ProfilerUnsupported;
            let found = Finding::deny(code, &self.variant().id, what, next);
            return Err(SideStop::Finding(Side::Current, Box::new(found)));
        }
        for job in plan.before_rounds() {
            if job.task == Task::Measure(Phase::Counting) {
                self.capture(job, bench)?;
            }
        }
        Ok(())
    }

    fn measures_on(&mut self, tier: Tier) {
        self.both().for_each(|side| side.tier = tier);
    }

    /// Measures in the order of the jobs, whose programs start together where they can be held.
    fn capture_all(&mut self, jobs: &[&Job], bench: &Bench<'_>) -> Result<(), SideStop> {
        let mut left = jobs;
        while !left.is_empty() {
            let can_hold = |job: &&&Job| self.current.is_held(job);
            let together = left.iter().take_while(can_hold).count();
            let size = self.window.of(together);
            if size <= 1 {
                self.capture(left[0], bench)?;
                left = &left[1..];
                continue;
            }
            let mut done = 0;
            match self.capture_together(&left[..size], bench, &mut done) {
                Ok(()) => {}
                Err(SideStop::Finding(side, found)) if BESIDE_OTHERS.contains(&found.code) => {
                    let unsupported = found.code == Code::ProfilerUnsupported;
                    if self.failed_beside.len() == MOST_FAILED {
                        return Err(SideStop::Finding(side, found));
                    }
                    let then = match found.code {
                        Code::ProfilerUnsupported => self.window.closes(),
                        // One may wait for what another one has, which stands still.
                        Code::TimedOut | Code::NotMeasured => {
                            self.window = Window::one();
                            "one runs after the other"
                        }
                        _ => "fewer start together",
                    };
                    let text = format!("{then}: {}", found.message);
                    bench.note(self.variant(), "processes", &text);
                    if !unsupported {
                        // With fewer beside it, it may succeed.
                        self.window.shrinks(done);
                        let message =
                            format!("measured again, with fewer beside it: {}", found.message);
                        let again = Finding::of(Code::Retried, &self.variant().id, message);
                        self.failed_beside.push(again);
                    }
                }
                Err(stop) => return Err(stop),
            }
            left = &left[done..];
        }
        Ok(())
    }

    /// Starts the programs of some jobs together, and lets them work in turn; `done` counts those that
    /// were measured.
    fn capture_together(
        &mut self,
        jobs: &[&Job],
        bench: &Bench<'_>,
        done: &mut usize,
    ) -> Result<(), SideStop> {
        let profiler = bench.profilers.of(Tier::KernelTimes)?;
        let mut seeds = Vec::new();
        for job in jobs {
            seeds.push(self.seeds.of(job)?);
        }
        let sessions = jobs.iter().zip(seeds).filter_map(|(job, seed)| {
            Some(Session {
                in_turn: true,
                ..self.side(job.side)?.session(bench, job, seed)
            })
        });
        let sessions: Vec<Session<'_>> = sessions.collect();
        let left = in_turn(profiler, &sessions, self.window.shares_turns);
        let mut left = left.map_err(|(at, stop)| SideStop::of(jobs[at].side, stop))?;
        // What one of them did in the turns of others disturbed all of them.
        let not_held = |stop: &Stop| matches!(stop, Stop::Finding(found) if found.code == Code::ProfilerUnsupported);
        let mut ended = left.iter();
        if let Some(at) = ended.position(|one| one.as_ref().is_err_and(&not_held))
            && let Err(stop) = left.swap_remove(at)
        {
            return Err(SideStop::of(jobs[at].side, stop));
        }
        for (job, left) in jobs.iter().zip(left) {
            let of_side = |stop| SideStop::of(job.side, stop);
            let (pending, files) = left.map_err(of_side)?;
            if let Some(subject) = self.side_mut(job.side) {
                subject.take(pending, files).map_err(of_side)?;
            }
            *done += 1;
        }
        Ok(())
    }

    fn side(&self, side: Side) -> Option<&Subject<'a>> {
        match side {
            Side::Base => self.base.as_ref(),
            Side::Current => Some(&self.current),
        }
    }

    fn side_mut(&mut self, side: Side) -> Option<&mut Subject<'a>> {
        match side {
            Side::Base => self.base.as_mut(),
            Side::Current => Some(&mut self.current),
        }
    }

    fn capture(&mut self, job: &Job, bench: &Bench<'_>) -> Result<(), SideStop> {
        let side = job.side;
        let seed = self.seeds.of(job)?;
        let Some(subject) = self.side_mut(side) else {
            return Ok(());
        };
        let captured = subject.capture(bench, job, seed);
        captured.map_err(|stop| SideStop::of(side, stop))
    }

    fn profiles(&mut self, bench: &Bench<'_>) -> Result<Profiles, SideStop> {
        let base = self.base.as_mut().map(|base| base.profile(bench));
        let base = base
            .transpose()
            .map_err(|stop| SideStop::of(Side::Base, stop))?;
        let current = self.current.profile(bench);
        let current = current.map_err(|stop| SideStop::of(Side::Current, stop))?;
        Ok(Profiles {
            current,
            base,
            uncounted: None,
        })
    }

    /// Drops what was measured.
    fn discard(&mut self) -> Result<(), Error> {
        self.both().try_for_each(Subject::discard)
    }
}
