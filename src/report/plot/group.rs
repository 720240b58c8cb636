//! The variants that share a picture.

use std::collections::HashMap;

use crate::judge::{Outcome, VariantReport};
use crate::terms::{Tier, VariantId};

/// The variants of one suite on one model of GPU, measured alike.
pub(super) struct Group<'a> {
    pub suite: &'a str,
    pub gpu: &'a str,
    pub tier: Tier,
    pub reports: Vec<&'a VariantReport>,
}

impl Group<'_> {
    /// For a title: the suite, and the tier unless it is the counters.
    pub fn name(&self) -> String {
        match self.tier {
            Tier::Counters => format!("{} on {}", self.suite, self.gpu),
            tier => format!("{} ({tier}) on {}", self.suite, self.gpu),
        }
    }

    /// The control variant, which bounds the difference between machines.
    pub fn control(&self) -> Option<&VariantId> {
        self.reports
            .iter()
            .find_map(|report| report.control.as_ref())
            .map(|control| &control.variant)
    }
}

/// What ran, by suite, GPU and tier, in the order of the outcome. Nothing runs on the static tier.
pub(super) fn groups(outcome: &Outcome) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut places = HashMap::new();
    for report in &outcome.variants {
        if report.tier == Tier::Static {
            continue;
        }
        let key = (&report.variant.suite, &report.gpu, report.tier.as_str());
        let at = *places.entry(key).or_insert_with(|| {
            groups.push(Group {
                suite: &report.variant.suite,
                gpu: &report.gpu,
                tier: report.tier,
                reports: Vec::new(),
            });
            groups.len() - 1
        });
        groups[at].reports.push(report);
    }
    groups
}
