//! Executes the measuring jobs of a variant: once, then in rounds until the verdict is clear, on the
//! highest tier that is available, and again where the machine failed.

use super::retry::{Retries, disturbance};
use super::seeds::Seeds;
use super::subject::Subject;
use crate::config::Variant;
use crate::finding::{Error, Finding, Stop};
use crate::measure::place::bench::Bench;
use crate::plan::{Job, Side, Task, VariantPlan};
use crate::profile::Profile;
use crate::terms::Phase;

/// Whether a verdict on these profiles is still open, so that more processes may decide it. The second
/// profile is the base's, where base and current are measured side by side.
pub(in crate::measure) type StillOpen<'a> =
    dyn Fn(&Variant, &Profile, Option<&Profile>) -> bool + 'a;

/// A variant, and its version at the base where both are measured side by side.
pub(in crate::measure) struct Subjects<'a> {
    pub current: Subject<'a>,
    pub base: Option<Subject<'a>>,
    pub seeds: Seeds,
}

/// What was measured of [`Subjects`].
pub(in crate::measure) struct Profiles {
    pub current: Profile,
    pub base: Option<Profile>,
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

    /// Measures on the highest tier that both sides reach, again where the machine failed.
    pub(in crate::measure) fn measure(
        &mut self,
        bench: &Bench<'_>,
        plan: &VariantPlan,
        retries: &mut Retries<'_, '_>,
        open: &StillOpen<'_>,
    ) -> Result<Profiles, SideStop> {
        let variant = self.variant();
        loop {
            let answer = self.on_highest_tier(bench, plan, open);
            let answer = answer.map_err(|stop| stop.map(|found| bench.unless_lost(found)));
            let failed = match &answer {
                Ok(Profiles { current, base }) => disturbance(variant, base.as_ref(), current),
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
        open: &StillOpen<'_>,
    ) -> Result<Profiles, SideStop> {
        let variant = self.variant();
        let mut tier = bench
            .tier(variant)
            .map_err(|denied| SideStop::Finding(Side::Current, Box::new(denied)))?;
        loop {
            self.seeds.restart();
            self.current.restart(tier);
            if let Some(base) = &mut self.base {
                base.restart(tier);
            }
            match self.execute(bench, plan, open) {
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
        open: &StillOpen<'_>,
    ) -> Result<Profiles, SideStop> {
        for job in plan.before_rounds() {
            let is_measured = |phase| self.current.has_phase(phase);
            if !matches!(job.task, Task::Measure(phase) if !is_measured(phase)) {
                self.capture(job, bench)?;
            }
        }
        if self.current.has_phase(Phase::Timing) {
            for (round, done) in plan.rounds.iter().zip(1..) {
                for job in round {
                    self.capture(job, bench)?;
                }
                let look = u32::try_from(done).is_ok_and(|done| plan.looks.contains(&done));
                if look && done < plan.rounds.len() {
                    let profiles = self.profiles(bench)?;
                    let base = profiles.base.as_ref();
                    if !open(self.variant(), &profiles.current, base) {
                        return Ok(profiles);
                    }
                }
            }
        }
        self.profiles(bench)
    }

    fn capture(&mut self, job: &Job, bench: &Bench<'_>) -> Result<(), SideStop> {
        let side = job.side;
        let seed = self.seeds.of(job)?;
        let subject = match (side, &mut self.base) {
            (Side::Base, Some(base)) => base,
            (Side::Base, None) => return Ok(()),
            (Side::Current, _) => &mut self.current,
        };
        let captured = match job.task {
            Task::List => subject.list(bench, job, seed),
            _ => subject.capture(bench, job, seed),
        };
        captured.map_err(|stop| SideStop::of(side, stop))
    }

    fn profiles(&mut self, bench: &Bench<'_>) -> Result<Profiles, SideStop> {
        let base = self.base.as_mut().map(|base| base.profile(bench));
        let base = base
            .transpose()
            .map_err(|stop| SideStop::of(Side::Base, stop))?;
        let current = self.current.profile(bench);
        let current = current.map_err(|stop| SideStop::of(Side::Current, stop))?;
        let mut profiles = Profiles { current, base };
        if let Some(base) = &mut profiles.base {
            for side in [base, &mut profiles.current] {
                side.provenance.round_order = Some(VariantPlan::ORDER);
            }
        }
        Ok(profiles)
    }

    /// Drops what was measured.
    fn discard(&mut self) -> Result<(), Error> {
        if let Some(base) = &mut self.base {
            base.discard()?;
        }
        self.current.discard()
    }
}
