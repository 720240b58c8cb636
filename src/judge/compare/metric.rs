//! One metric of one kernel, judged: which samples are compared, and how the decision is shown.
//! The rule is in [`crate::verdict`].

use crate::terms::Phase;
use crate::verdict::{Change, Decision, Question, Verdict, against_stored, in_turn};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mode::Mode;
use crate::config::{Metric, Variant};
use crate::evidence::{tier_gap_accepted, why_not_measured};
use crate::finding::{Finding, Values};
use crate::metric::{Direction, Level, Role, Tolerance, display_value, display_values};
use crate::profile::{KernelProfile, Profile};
use crate::statistics::{Samples, mean, median};

/// What the samples of one side come to, in the metric's unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// The value that is judged: the median of the processes that are compared with a baseline, else the
    /// mean of the machines.
    pub value: f64,
    /// Launches, of all processes.
    pub launches: usize,
    /// Processes, of all machines.
    pub processes: usize,
    /// GPUs.
    pub machines: usize,
    /// Standard deviation of a launch within its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    /// Standard deviation of a process within its machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<f64>,
    /// Largest distance of a machine from their centre.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
}

impl Summary {
    /// Of a value that was not sampled.
    pub fn of_one(value: f64) -> Summary {
        Summary {
            value,
            ..Summary::default()
        }
    }
}

impl From<&Samples> for Summary {
    fn from(samples: &Samples) -> Summary {
        let noise = samples.noise();
        Summary {
            value: samples.value(),
            launches: samples.machines().iter().flatten().map(Vec::len).sum(),
            processes: samples.machines().iter().map(Vec::len).sum(),
            machines: samples.machines().len(),
            within: noise.within,
            between: noise.between,
            spread: noise.machines,
        }
    }
}

/// The samples that a verdict came from: one list a process, one entry a launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judged {
    /// Of the reference.
    pub reference: Vec<Vec<f64>>,
    /// Of the current profile.
    pub current: Vec<Vec<f64>>,
}

/// One metric of one kernel, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The kernel's function name.
    pub kernel: String,
    /// Blocks in x, y, z.
    pub grid: [u64; 3],
    /// Threads a block in x, y, z.
    pub block: [u64; 3],
    /// The metric's alias.
    pub metric: String,
    /// The counter behind it.
    pub counter: String,
    /// Its unit.
    pub unit: Option<String>,
    /// Which way it gets better.
    pub direction: Direction,
    /// Whether a regression fails the gate.
    pub level: Level,
    /// The same for the same work.
    pub exact: bool,
    /// Only to have none left is a regression.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never_zero: bool,
    /// How much worse is still no regression, as configured.
    pub tolerance: Tolerance,
    /// The locked samples, or those of the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Summary>,
    /// The current samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Summary>,
    /// The samples, of a metric that is judged by its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<Judged>,
    /// Current against reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// Half of the width of the interval around the change, in the terms of the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub band: Option<f64>,
    /// The change beyond which it would have been a regression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// The judgement; a metric that is only recorded has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// More samples may decide what is inconclusive.
    pub open: bool,
    /// Why.
    pub why: String,
}

/// How the reason of a comparison begins whose value is outside of a limit of the configuration.
pub(super) const LIMITS: [&str; 2] = ["below its limit of ", "above its limit of "];

/// A kernel as it was launched: its name, grid and block.
pub(crate) type Launched = (String, [u64; 3], [u64; 3]);

impl Comparison {
    /// Whether a limit of the configuration decides.
    pub fn exceeds_limit(&self) -> bool {
        LIMITS.iter().any(|begin| self.why.starts_with(begin))
    }

    /// Which kernel it is about.
    pub(crate) fn launched(&self) -> Launched {
        (self.kernel.clone(), self.grid, self.block)
    }

    /// What its counter measures; `None` of a counter that only the configuration knows.
    pub fn role(&self) -> Option<Role> {
        Role::of(&self.counter)
    }

    /// Of the values of both sides, before they are judged.
    pub(crate) fn new(
        metric: &Metric,
        kernel: &str,
        pair: Pair<'_>,
        reference: Option<Summary>,
        current: Option<Summary>,
    ) -> Comparison {
        Comparison {
            kernel: kernel.to_owned(),
            grid: pair.current.grid,
            block: pair.current.block,
            metric: metric.alias.clone(),
            counter: metric.counter.clone(),
            unit: None,
            direction: metric.direction,
            level: metric.level,
            exact: metric.exact,
            never_zero: false,
            tolerance: Tolerance::Absolute(0.0),
            reference,
            current,
            samples: None,
            change: None,
            band: None,
            threshold: None,
            verdict: None,
            open: false,
            why: String::new(),
        }
    }

    /// The change with its noise band, `+0.03 % ±0.20 %`, where it has one.
    pub fn interval(&self) -> Option<String> {
        let (change, unit) = (self.change?, self.unit.as_deref());
        let band = self.band.filter(|band| *band > 0.0);
        let band = band.map(|band| format!(" ±{}", change.with(band).magnitude(unit)));
        Some(change.display(unit) + &band.unwrap_or_default())
    }

    /// Whether it is of the time that a launch took.
    pub(crate) fn is_duration(&self) -> bool {
        self.role() == Some(Role::Duration)
    }

    /// The values of both sides, for people: where they differ they read differently.
    pub(crate) fn shown(&self) -> [Option<String>; 2] {
        let unit = self.unit.as_deref();
        let one = |side: Option<Summary>| side.map(|side| display_value(side.value, unit));
        match (self.reference, self.current) {
            (Some(was), Some(is)) => {
                <[_; 2]>::from(display_values(was.value, is.value, unit)).map(Some)
            }
            (was, is) => [one(was), one(is)],
        }
    }

    /// The finding with what it belongs to; it only warns where the metric's level says so.
    pub(crate) fn finding(&self, finding: Finding) -> Finding {
        let unit = self.unit.as_deref();
        let [from, to] = self.shown();
        let limit = match (self.exact, self.never_zero) {
            (true, _) => None,
            (_, true) => Some("never to none".to_owned()),
            _ => Some(self.tolerance.display(unit)),
        };
        let values = Values {
            from,
            to,
            change: self.change.map(|change| change.display(unit)),
            limit: finding.values.limit.clone().or(limit),
            ..Values::default()
        };
        Finding {
            values: Box::new(values),
            ..finding
        }
        .kernel(&self.kernel)
        .launched(self.grid, self.block, true)
        .metric(&self.metric)
        .warn_for(self.level.warn_reason())
    }
}

/// Which profile lacks a value that could be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    Reference,
    Current,
    /// Each has one, in a unit of its own.
    Unit,
}

/// The kernel of both profiles that a comparison is about.
#[derive(Clone, Copy)]
pub(crate) struct Pair<'a> {
    pub reference: &'a KernelProfile,
    pub current: &'a KernelProfile,
}

/// A current profile of a variant and what it is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The variant, with its metrics.
    pub variant: &'a Variant,
    /// How it is compared.
    pub(crate) mode: Mode,
    /// What it is compared with.
    pub reference: &'a Profile,
    /// The current profile.
    pub current: &'a Profile,
}

impl<'a> Case<'a> {
    /// Of a variant.
    pub fn new(
        variant: &'a Variant,
        mode: Mode,
        reference: &'a Profile,
        current: &'a Profile,
    ) -> Case<'a> {
        Case {
            variant,
            mode,
            reference,
            current,
        }
    }

    /// What a metric may be worse by; without a tolerance it is not judged.
    pub(crate) fn tolerance(&self, metric: &Metric) -> Option<Tolerance> {
        match self.mode {
            Mode::Stored => metric.tolerance.stored,
            Mode::Against | Mode::Programs => metric.tolerance.against,
            Mode::New => None,
        }
    }

    /// What a regression of a metric does here.
    fn level(&self, metric: &Metric) -> Level {
        match self.tolerance(metric) {
            None if !metric.exact => Level::Record,
            _ => metric.level,
        }
    }

    /// What is compared of one metric of a pair of kernels.
    pub(crate) fn quantity(&self, pair: Pair<'a>, metric: &'a Metric) -> Quantity<'a> {
        Quantity {
            case: *self,
            pair,
            metric,
            part: 1.0,
        }
    }
}

/// One metric of a pair of kernels.
#[derive(Clone, Copy)]
pub(crate) struct Quantity<'a> {
    pub case: Case<'a>,
    pub pair: Pair<'a>,
    pub metric: &'a Metric,
    /// What part of a judged total it is, from 0 to 1; 1 of what is no part of one.
    pub part: f64,
}

impl Quantity<'_> {
    /// The judged comparison, and which side has no value for it.
    pub fn judge(&self) -> (Comparison, Option<Gap>) {
        let Quantity {
            case, pair, metric, ..
        } = self;
        let before = self.before();
        let now = case.current.samples(pair.current, &metric.alias);
        let mut comparison = Comparison {
            unit: unit(case.current, metric),
            level: case.level(metric),
            tolerance: self.tolerance(),
            ..Comparison::new(
                metric,
                match case.mode {
                    Mode::Programs => case.current.label(pair.current),
                    Mode::Stored | Mode::Against | Mode::New => &pair.current.name,
                },
                *pair,
                before.as_ref().map(Summary::from),
                now.as_ref().map(Summary::from),
            )
        };
        match (self.gap(), before, now) {
            (None, Some(before), Some(now)) => {
                self.decide(&mut comparison, [&before, &now]);
                (comparison, None)
            }
            (gap, _, _) => {
                let (side, why) = gap.unwrap_or((Gap::Current, "there is no sample".to_owned()));
                self.not_measured(&mut comparison, why);
                (comparison, Some(side))
            }
        }
    }

    /// What it may be worse by.
    fn tolerance(&self) -> Tolerance {
        let tolerance = self.case.tolerance(self.metric);
        tolerance.unwrap_or(Tolerance::Absolute(0.0))
    }

    /// The samples of the reference.
    pub fn before(&self) -> Option<Samples> {
        let Case { reference, .. } = self.case;
        reference.samples(self.pair.reference, &self.metric.alias)
    }

    fn gap(&self) -> Option<(Gap, String)> {
        let Quantity {
            case, pair, metric, ..
        } = self;
        let reference = case.reference;
        if let Some(why) = why_not_measured(metric, case.current, pair.current) {
            return Some((Gap::Current, why));
        }
        if let Some(why) = why_not_measured(metric, reference, pair.reference) {
            return Some((Gap::Reference, format!("in the reference: {why}")));
        }
        let [was, is] = [reference, case.current].map(|one| unit(one, metric).unwrap_or_default());
        (was != is).then(|| (Gap::Unit, format!("the unit was `{was}`, is `{is}`")))
    }

    fn not_measured(&self, comparison: &mut Comparison, why: String) {
        let given_up = tier_gap_accepted(self.case.variant, self.metric, self.case.current);
        let judged = comparison.level != Level::Record && !given_up;
        comparison.verdict = judged.then_some(Verdict::NotMeasured);
        comparison.why = if given_up {
            format!("not judged: {why}, and the configuration accepts that")
        } else {
            why
        };
    }

    /// Of the values of both sides.
    fn decide(&self, comparison: &mut Comparison, [before, now]: [&Samples; 2]) {
        if self.metric.exact {
            return judge_exact(comparison, before, now);
        }
        if comparison.level != Level::Record {
            comparison.samples = Some(Judged {
                reference: before.machines().concat(),
                current: now.machines().concat(),
            });
        }
        let question = Question {
            tolerance: self.tolerance(),
            direction: self.metric.direction,
            is_time: self.metric.role() == Some(Role::Duration),
            part: self.part,
            strict: self.case.variant.strict,
        };
        let current = now.machines().concat();
        let decision = match self.case.mode {
            Mode::Stored => {
                // What is compared is shown.
                if let (Some(shown), Some(value)) = (
                    &mut comparison.current,
                    median(&now.process_values().concat()),
                ) {
                    shown.value = value;
                }
                let most = self.case.variant.profile.most_processes();
                let metrics = &self.case.current.identity.metrics;
                let measured = metrics.get(&self.metric.alias);
                let open = measured.is_some_and(|it| it.phase == Phase::Timing)
                    && u32::try_from(current.len()).is_ok_and(|count| count < most);
                against_stored(before, &current, &question, open)
            }
            Mode::Against | Mode::Programs | Mode::New => {
                in_turn(&before.machines().concat(), &current, &question)
            }
        };
        show(comparison, decision);
    }
}

fn unit(profile: &Profile, metric: &Metric) -> Option<String> {
    let definition = profile.identity.metrics.get(&metric.alias)?;
    definition.unit.clone()
}

fn show(comparison: &mut Comparison, decision: Decision) {
    comparison.change = decision.change.filter(|change| change.value().is_finite());
    comparison.band = decision.band.filter(|band| band.is_finite());
    if comparison.level == Level::Record {
        comparison.why = "recorded, not judged".to_owned();
        return;
    }
    comparison.threshold = decision.threshold.filter(|value| value.is_finite());
    comparison.verdict = Some(decision.verdict);
    comparison.open = decision.open;
    comparison.why = decision.why;
}

/// An exact counter reads the same for the same work, so any difference is other work. One that differs
/// among the launches of the reference itself, because of random numbers or atomics, is judged only where
/// the current launches count far more or less on average.
fn judge_exact(comparison: &mut Comparison, before: &Samples, now: &Samples) {
    let values = |samples: &Samples| samples.machines().concat().concat();
    let (before, now) = (values(before), values(now));
    let (was, is) = (before[0], now[0]);
    comparison.change = Some(if was == 0.0 {
        Change::Absolute(is - was)
    } else {
        Change::RelativePercent((is / was - 1.0) * 100.0)
    });
    if comparison.level == Level::Record {
        comparison.why = "recorded, not judged".to_owned();
        return;
    }
    let [base, current] = [Range::of(&before), Range::of(&now)];
    let varied = base.width() > 0.0;
    let (verdict, why) = if base == current && !varied {
        (Some(Verdict::Pass), "the same work")
    } else if base.is_other_work(current) {
        (Some(Verdict::Regressed), "other work than the reference")
    } else if varied {
        (
            None,
            "not judged: in the reference it differs from launch to launch, too",
        )
    } else {
        (
            Some(Verdict::Inconclusive),
            "it differs from launch to launch",
        )
    };
    comparison.verdict = verdict;
    comparison.why = why.to_owned();
}

/// The counts of a side.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Range {
    pub least: f64,
    pub most: f64,
    pub mean: f64,
}

impl Range {
    /// By which part of their mean counts that vary may differ besides, and be the same work.
    const PART: f64 = 0.05;

    pub fn of(values: &[f64]) -> Range {
        Range {
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            most: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            mean: mean(values),
        }
    }

    pub fn width(self) -> f64 {
        self.most - self.least
    }

    fn is_other_work(self, now: Range) -> bool {
        if self.width() == 0.0 {
            return now.most < self.least || now.least > self.most;
        }
        let more = self.width() + Range::PART * self.mean.abs();
        now.mean < self.least - more || now.mean > self.most + more
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::explain::cause::tests::comparison;

    #[test]
    fn counts_that_vary_in_the_reference_are_other_work_only_where_the_sides_are_far_apart() {
        let verdict = |before: &[f64], now: &[f64]| {
            let samples = |launches: &[f64]| Samples::new(vec![vec![launches.to_vec()]]).unwrap();
            let mut judged = Comparison {
                level: Level::Deny,
                exact: true,
                ..comparison(Role::ThreadFfma.counter(), before[0], now[0])
            };
            judge_exact(&mut judged, &samples(before), &samples(now));
            judged.verdict
        };
        let (pass, other) = (Some(Verdict::Pass), Some(Verdict::Regressed));
        for (before, now, expected) in [
            ([8.0, 8.0], [8.0, 8.0], pass),
            ([8.0, 8.0], [6.0, 6.0], other),
            ([8.0, 8.0], [6.0, 7.0], other),
            ([8.0, 8.0], [8.0, 6.0], Some(Verdict::Inconclusive)),
            ([8.0, 9.0], [0.0, 0.0], other),
            ([0.0, 0.0], [8.0, 9.0], other),
            ([8.0, 9.0], [7.0, 9.0], None),
            ([8.0, 9.0], [8.0, 8.0], None),
            ([8.0, 9.0], [10.0, 10.5], None),
            ([8.0, 9.0], [10.0, 12.0], other),
            // What varies more now is no excuse for less work.
            ([8.0, 8.1], [1.0, 8.0], other),
            ([8.0, 8.1], [7.5, 8.0], None),
        ] {
            assert_eq!(verdict(&before, &now), expected, "{before:?} {now:?}");
        }
    }
}
