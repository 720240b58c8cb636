//! Checks against a baseline that two other GPUs locked, from the values that GPUs were recorded with.
//!
//! Every pair of GPUs is locked once, and every other GPU is checked against it.

use sparsek_gate::metric::Direction;
use sparsek_gate::statistics::Samples;
use sparsek_gate::verdict::{Verdict, against_stored};

use super::data::{OfGpus, Processes};
use super::share::Share;

/// What became of the checks of one metric of a kernel.
#[derive(Clone, Copy, Default)]
pub struct Counted {
    /// Unchanged, and regressed.
    pub regressed: Share,
    /// Unchanged, and not passed.
    pub failed: Share,
    /// Worse by so much as was asked for, and regressed.
    pub caught: Share,
}

impl OfGpus {
    /// All checks, unchanged; and worse by so many percent, if that is asked.
    pub fn checks(&self, percent: Option<f64>) -> Counted {
        let factor = percent.map(|percent| match self.question.direction {
            Direction::Higher => 1.0 - percent / 100.0,
            Direction::Lower | Direction::Equal => 1.0 + percent / 100.0,
        });
        let worse = |processes: &Processes, factor: f64| -> Processes {
            let worse = |launches: &Vec<f64>| launches.iter().map(|it| it * factor).collect();
            processes.iter().map(worse).collect()
        };
        let gpus: Vec<&Processes> = self.gpus.values().collect();
        let mut all = Counted::default();
        for one in 0..gpus.len() {
            for other in one + 1..gpus.len() {
                let locked = [one, other].map(|at| gpus[at].clone());
                let Some(locked) = Samples::new(locked.into()) else {
                    continue;
                };
                for checked in (0..gpus.len()).filter(|at| *at != one && *at != other) {
                    let unchanged = self.check(&locked, gpus[checked]);
                    let passed = matches!(unchanged, Verdict::Pass | Verdict::Improved);
                    all.regressed.add(unchanged == Verdict::Regressed);
                    all.failed.add(!passed);
                    if let Some(factor) = factor {
                        let worse = self.check(&locked, &worse(gpus[checked], factor));
                        all.caught.add(worse == Verdict::Regressed);
                    }
                }
            }
        }
        all
    }

    /// Twice as many processes if the first are inconclusive, where so many were recorded.
    fn check(&self, locked: &Samples, recorded: &Processes) -> Verdict {
        let first = &recorded[..recorded.len().min(self.processes)];
        let decision = against_stored(locked, first, &self.question, true);
        match recorded.get(..2 * self.processes) {
            Some(more) if decision.open => {
                against_stored(locked, more, &self.question, false).verdict
            }
            _ => decision.verdict,
        }
    }
}
