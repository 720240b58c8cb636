//! The counters of a kernel with their values before and now.

use super::count::both_counted;
use crate::judge::compare::metric::Comparison;
use crate::metric::{Role, display_value, is_part_of, is_tensor_flop, thread_flop};

/// A counter's reference and current value, in its unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub was: f64,
    pub is: f64,
    /// The same for the same work.
    pub exact: bool,
}

impl Step {
    /// By more than this factor, or from nothing at all.
    pub fn grew(self, factor: f64) -> bool {
        self.is > self.was && self.is > self.was * factor
    }

    /// To less than this factor.
    pub fn fell(self, factor: f64) -> bool {
        self.is < self.was * factor
    }

    /// `-25.0 %, `; empty where it rounds to nothing or there was nothing before.
    pub fn percent(self) -> String {
        let percent = (self.is / self.was - 1.0) * 100.0;
        if !percent.is_finite() || percent.abs() < 0.05 {
            return String::new();
        }
        format!("{percent:+.1} %, ")
    }

    /// ` ×2.5`; empty where there was nothing before.
    pub fn times(self) -> String {
        match self.is / self.was {
            ratio if !ratio.is_finite() => String::new(),
            ratio if ratio >= 10.0 => format!(" ×{ratio:.0}"),
            ratio => format!(" ×{ratio:.1}"),
        }
    }

    /// `0.66 M → 84.45 M`; bytes as `142.60 MB → 285.20 MB`.
    pub fn values(self, unit: &str) -> String {
        if unit == "byte" {
            let shown = |value| display_value(value, Some(unit));
            return format!("{} → {}", shown(self.was), shown(self.is));
        }
        both_counted(self.was, self.is, unit)
    }
}

/// Every counter that both sides measured, each once.
pub(super) struct Moved<'a>(Vec<(&'a str, Step)>);

impl<'a> Moved<'a> {
    pub fn of(comparisons: &'a [Comparison]) -> Moved<'a> {
        let mut moved: Vec<(&str, Step)> = Vec::new();
        for comparison in comparisons {
            // What cannot be compared has no change: its unit or its counter is another one.
            let (Some(was), Some(is), Some(change)) =
                (comparison.reference, comparison.current, comparison.change)
            else {
                continue;
            };
            // What lies within its noise did not move.
            let still = comparison.band.is_some_and(|band| change.size() <= band);
            let step = Step {
                was: was.value,
                is: if still { was.value } else { is.value },
                exact: comparison.exact,
            };
            let sane = |value: f64| value.is_finite() && value >= 0.0;
            let new = moved.iter().all(|(name, _)| *name != comparison.counter);
            if sane(step.was) && sane(step.is) && new {
                moved.push((&comparison.counter, step));
            }
        }
        Moved(moved)
    }

    /// Each counter and what it moved by.
    pub fn counters(&self) -> impl Iterator<Item = (&'a str, Step)> {
        self.0.iter().copied()
    }

    /// The counter of a role.
    pub fn get(&self, role: Role) -> Option<Step> {
        let (_, step) = self
            .0
            .iter()
            .find(|(name, _)| Role::of(name) == Some(role))?;
        Some(*step)
    }

    /// The sum over the counters that have a weight; exact where each of them is.
    pub fn sum(&self, weight: impl Fn(&str) -> Option<f64>) -> Option<Step> {
        self.counters()
            .filter_map(|(counter, step)| {
                let weight = weight(counter)?;
                Some(Step {
                    was: weight * step.was,
                    is: weight * step.is,
                    exact: step.exact,
                })
            })
            .reduce(|sum, step| Step {
                was: sum.was + step.was,
                is: sum.is + step.is,
                exact: sum.exact && step.exact,
            })
    }

    /// Whether it counts operations of the tensor cores that no other counter also counts: such as
    /// `.._src_fp16_dst_fp32` beside `.._src_fp16`.
    pub fn is_tensor_flop(&self, counter: &str) -> bool {
        let mut others = self.counters().map(|(other, _)| other);
        is_tensor_flop(counter) && !others.any(|other| is_part_of(counter, other))
    }

    /// Operations on the tensor cores and by threads.
    pub fn flop(&self) -> Option<Step> {
        self.sum(|counter| {
            let tensor = self.is_tensor_flop(counter).then_some(1.0);
            tensor.or_else(|| thread_flop(counter))
        })
    }

    /// Operations on the tensor cores.
    pub fn tensor_flop(&self) -> Option<Step> {
        self.sum(|counter| self.is_tensor_flop(counter).then_some(1.0))
    }
}
