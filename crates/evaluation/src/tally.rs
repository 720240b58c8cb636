//! Counts over many checks.

use std::collections::BTreeMap;

use sparsek_gate::terms::VariantId;
use sparsek_gate::verdict::Verdict;

use super::check::{Answer, Said};
use super::interval::{Interval, exact, over_machines};

/// One simulated check.
pub struct Check {
    /// The machine it ran on, by index.
    pub machine: usize,
    /// The results of its variants.
    pub answers: Vec<Answer>,
}

/// How often something happened, by machine.
#[derive(Clone, Default)]
pub struct Rate {
    /// Hits and trials of each machine.
    by_machine: BTreeMap<usize, (usize, usize)>,
}

/// The number of verdicts of each kind, on one metric or on all.
#[derive(Clone, Default)]
pub struct Verdicts {
    pub pass: usize,
    pub improved: usize,
    pub regressed: usize,
    pub inconclusive: usize,
    /// Inconclusive, and failing the gate: not shown to be not worse.
    pub failing: usize,
    pub not_measured: usize,
    /// The smallest and the largest change.
    pub changes: Option<(f64, f64)>,
    /// The smallest and the largest allowance.
    pub allowances: Option<(f64, f64)>,
}

impl Rate {
    /// The rate of checks that have a property.
    pub fn of<'a>(checks: &'a [Check], has: impl Fn(&'a Check) -> bool) -> Rate {
        let mut rate = Rate::default();
        for check in checks {
            let (hits, trials) = rate.by_machine.entry(check.machine).or_default();
            *hits += usize::from(has(check));
            *trials += 1;
        }
        rate
    }

    pub fn hits(&self) -> usize {
        self.by_machine.values().map(|(hits, _)| hits).sum()
    }

    pub fn trials(&self) -> usize {
        self.by_machine.values().map(|(_, trials)| trials).sum()
    }

    /// 0 to 1; NaN without trials.
    pub fn share(&self) -> f64 {
        self.hits() as f64 / self.trials() as f64
    }

    /// The share on each machine.
    pub fn shares(&self) -> Vec<f64> {
        let shares = self.by_machine.values();
        shares
            .map(|(hits, trials)| *hits as f64 / *trials as f64)
            .collect()
    }

    /// The interval for these machines only: the checks are draws from their rounds.
    pub fn on_these(&self) -> Interval {
        exact(self.hits(), self.trials())
    }

    /// The interval with whole machines resampled.
    pub fn over_machines(&self, seed: u64) -> Option<Interval> {
        over_machines(&self.shares(), seed)
    }
}

impl Verdicts {
    /// Of one metric, or of all metrics except counters of the work.
    pub fn of(checks: &[Check], metric: Option<(&VariantId, &str)>) -> Verdicts {
        let mut verdicts = Verdicts::default();
        let said = checks
            .iter()
            .flat_map(|check| &check.answers)
            .flat_map(|answer| &answer.said)
            .filter(|said| match metric {
                Some((variant, metric)) => said.variant == *variant && said.metric == metric,
                None => !said.exact,
            });
        said.for_each(|said| verdicts.add(said));
        verdicts
    }

    fn add(&mut self, said: &Said) {
        match said.verdict {
            Verdict::Pass => self.pass += 1,
            Verdict::Improved => self.improved += 1,
            Verdict::Regressed => self.regressed += 1,
            Verdict::NotMeasured => self.not_measured += 1,
            Verdict::Inconclusive => {
                self.inconclusive += 1;
                self.failing += usize::from(!said.not_worse);
            }
        }
        let widened = |range: Option<(f64, f64)>, value: f64| {
            let (low, high) = range.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        };
        self.changes = widened(self.changes, said.change);
        if let Some(allowance) = said.allowance {
            self.allowances = widened(self.allowances, allowance);
        }
    }

    /// Adds other counts.
    pub fn join(&mut self, other: &Verdicts) {
        self.pass += other.pass;
        self.improved += other.improved;
        self.regressed += other.regressed;
        self.inconclusive += other.inconclusive;
        self.failing += other.failing;
        self.not_measured += other.not_measured;
    }

    pub fn total(&self) -> usize {
        self.pass + self.improved + self.regressed + self.inconclusive + self.not_measured
    }

    /// Of all verdicts, 0 to 1.
    pub fn inconclusive_share(&self) -> f64 {
        self.inconclusive as f64 / self.total() as f64
    }

    /// Of all verdicts, 0 to 1.
    pub fn failing_share(&self) -> f64 {
        self.failing as f64 / self.total() as f64
    }
}

impl Check {
    /// Whether any metric regressed, counters of the work included.
    pub fn alarms(&self) -> bool {
        self.said().any(|said| said.verdict == Verdict::Regressed)
    }

    /// Whether it would fail.
    pub fn fails(&self) -> bool {
        let failing = |said: &Said| match said.verdict {
            Verdict::Pass | Verdict::Improved => false,
            Verdict::Regressed | Verdict::NotMeasured => true,
            Verdict::Inconclusive => !said.not_worse,
        };
        self.said().any(failing) || self.answers.iter().any(|answer| !answer.odd.is_empty())
    }

    /// Whether the metric of the first variant regressed.
    pub fn caught(&self, metric: &str) -> bool {
        let of_first = self.answers.first().into_iter();
        of_first
            .flat_map(|answer| &answer.said)
            .any(|said| said.metric == metric && said.verdict == Verdict::Regressed)
    }

    fn said(&self) -> impl Iterator<Item = &Said> {
        self.answers.iter().flat_map(|answer| &answer.said)
    }
}

/// The average number of processes in which the current side of a variant was measured.
pub fn mean_processes(checks: &[Check]) -> f64 {
    let answers = || checks.iter().flat_map(|check| &check.answers);
    answers().map(|answer| answer.processes).sum::<usize>() as f64 / answers().count() as f64
}

/// Findings that fail a check for a reason other than a verdict, each once.
pub fn odd(checks: &[Check]) -> Vec<&'static str> {
    let mut odd: Vec<&str> = checks
        .iter()
        .flat_map(|check| &check.answers)
        .flat_map(|answer| answer.odd.iter().copied())
        .collect();
    odd.sort_unstable();
    odd.dedup();
    odd
}
