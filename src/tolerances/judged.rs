//! What has tolerances: a metric, or the slowest launches of one.

use crate::config::{Metric, Variant};
use crate::judge::Part;
use crate::metric::{Level, Tolerance};

/// A metric that is judged by its size, by all launches or by the slowest ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged<'m> {
    pub metric: &'m Metric,
    pub part: Part,
    /// Compared with a stored baseline.
    pub tolerance: Tolerance,
    /// Compared with the base, side by side.
    pub against: Tolerance,
}

impl<'m> Judged<'m> {
    /// All of a variant, each metric before its slowest launches.
    pub fn all_of(variant: &'m Variant) -> impl Iterator<Item = Judged<'m>> {
        let judged = variant.metrics.iter();
        let judged = judged.filter(|metric| metric.level != Level::Record && !metric.exact);
        judged.flat_map(|metric| std::iter::once(Judged::every(metric)).chain(Judged::tail(metric)))
    }

    /// By all launches.
    fn every(metric: &'m Metric) -> Judged<'m> {
        Judged {
            metric,
            part: Part::Every,
            tolerance: metric.tolerance,
            against: metric.against,
        }
    }

    /// By the slowest launches; `None` where these are not judged.
    fn tail(metric: &'m Metric) -> Option<Judged<'m>> {
        let tail = metric.tail?;
        Some(Judged {
            metric,
            part: Part::Slowest,
            tolerance: tail.tolerance,
            against: tail.against,
        })
    }

    /// The metric that the tail is of; `None` of all launches.
    pub fn tail_of(&self) -> Option<&'m str> {
        (self.part == Part::Slowest).then_some(&self.metric.alias)
    }

    /// As reports call it.
    pub fn name(&self) -> String {
        match self.part {
            Part::Every => self.metric.alias.clone(),
            Part::Slowest => self.metric.tail_name(),
        }
    }
}
