//! The rules by which counters that moved become causes.

use super::added::added;
use super::kind::{Cause, CauseKind};
use super::memory::{bank_conflicts, uncoalesced};
use super::moved::{Moved, Step};
use super::waiting::{barrier_waits, lower_clock, lower_occupancy, stalls};
use super::work::{less_work, lost_tensor_cores, more_work};
use crate::judge::compare::metric::Comparison;
use crate::metric::Role;

/// How a cause is found.
enum Rule {
    /// Counters that grew.
    Growth(Growth),
    /// Anything that needs more than one counter to decide.
    Of(fn(&Moved<'_>) -> Option<String>),
}

/// A cause that shows itself in counters that grew.
struct Growth {
    /// What it is, for people.
    words: &'static str,
    /// By which factor at least.
    factor: f64,
    /// By which share at least of the sum of all of them before.
    share: f64,
    /// Each by its name for people, and its unit.
    counters: &'static [(&'static str, Role, &'static str)],
    /// Between those that grew; `None` where one stands for all.
    separator: Option<&'static str>,
    /// Whether the percentage is shown beside both values.
    percent: bool,
}

/// Every rule, the most specific first.
const RULES: [(CauseKind, Rule); 13] = [
    (
        CauseKind::RegisterSpills,
        Rule::Growth(Growth {
            words: "register spills, or arrays in local memory",
            factor: 1.01,
            share: 0.0,
            counters: &[
                ("local loads ", Role::LocalLoads, ""),
                ("local stores ", Role::LocalStores, ""),
            ],
            separator: Some(", "),
            percent: false,
        }),
    ),
    (CauseKind::LostTensorCores, Rule::Of(lost_tensor_cores)),
    (CauseKind::LessWork, Rule::Of(less_work)),
    (CauseKind::MoreWork, Rule::Of(more_work)),
    (CauseKind::BankConflicts, Rule::Of(bank_conflicts)),
    (CauseKind::Uncoalesced, Rule::Of(uncoalesced)),
    (CauseKind::BarrierWaits, Rule::Of(barrier_waits)),
    (CauseKind::Stalls, Rule::Of(stalls)),
    (CauseKind::LowerOccupancy, Rule::Of(lower_occupancy)),
    (
        CauseKind::MoreDramTraffic,
        Rule::Growth(Growth {
            words: "more DRAM traffic",
            factor: 1.05,
            // A few bytes that double are no traffic.
            share: 0.05,
            counters: &[
                ("DRAM reads ", Role::DramBytesRead, "byte"),
                ("DRAM writes ", Role::DramBytesWritten, "byte"),
            ],
            separator: Some("; "),
            percent: true,
        }),
    ),
    (
        CauseKind::MoreL2Traffic,
        Rule::Growth(Growth {
            words: "more L2 traffic",
            factor: 1.05,
            share: 0.0,
            counters: &[
                ("bytes ", Role::L2Bytes, "byte"),
                ("sectors ", Role::L2Sectors, ""),
                ("sectors read ", Role::L2SectorsRead, ""),
                ("sectors written ", Role::L2SectorsWritten, ""),
            ],
            separator: None,
            percent: true,
        }),
    ),
    (
        CauseKind::MoreInstructions,
        Rule::Growth(Growth {
            words: "more instructions",
            factor: 1.01,
            share: 0.0,
            counters: &[("", Role::Instructions, "")],
            separator: None,
            percent: true,
        }),
    ),
    (CauseKind::LowerClock, Rule::Of(lower_clock)),
];

/// What moved between reference and current among the comparisons of one kernel: those that explain a
/// third of the added time, then the others; the largest share first, of equal ones the most specific.
/// What warps wait for comes after what makes them wait. A counter that either side did not measure is
/// left out. Counters are known by their names, never by their aliases.
pub fn causes(comparisons: &[Comparison]) -> Vec<Cause> {
    let moved = Moved::of(comparisons);
    let slowdown = moved.get(Role::Duration).map(|step| step.is / step.was);
    let slowdown = slowdown.filter(|factor| *factor > 1.0 && factor.is_finite());
    let cause = |(kind, rule): &(CauseKind, Rule)| {
        let text = match rule {
            Rule::Growth(growth) => growth.text(&moved),
            Rule::Of(text) => text(&moved),
        };
        let share = |slowdown: f64| {
            let added = added(*kind, &moved, slowdown)?;
            Some((added / (slowdown - 1.0)).clamp(0.0, 1.0))
        };
        Some(Cause {
            kind: *kind,
            text: text?,
            share: slowdown.and_then(share),
        })
    };
    let mut causes: Vec<Cause> = RULES.iter().filter_map(cause).collect();
    causes.sort_by(|a, b| {
        let class = |cause: &Cause| (!cause.is_named(), cause.kind == CauseKind::Stalls);
        let share = |cause: &Cause| cause.share.unwrap_or(0.0);
        class(a).cmp(&class(b)).then(share(b).total_cmp(&share(a)))
    });
    causes
}

impl Growth {
    fn text(&self, moved: &Moved<'_>) -> Option<String> {
        let steps: Vec<(&str, Step, &str)> = self
            .counters
            .iter()
            .filter_map(|(name, role, unit)| Some((*name, moved.get(*role)?, *unit)))
            .collect();
        let fewest = self.share * steps.iter().map(|(_, step, _)| step.was).sum::<f64>();
        let grown = steps
            .iter()
            .filter(|(_, step, _)| step.grew(self.factor) && step.is - step.was > fewest)
            .map(|(name, step, unit)| {
                let percent = match self.percent {
                    true => step.percent(),
                    false => String::new(),
                };
                format!("{name}{percent}{}", step.values(unit))
            });
        let shown: Vec<String> = match self.separator {
            Some(_) => grown.collect(),
            None => grown.take(1).collect(),
        };
        let parts = shown.join(self.separator.unwrap_or_default());
        (!shown.is_empty()).then(|| format!("{}: {parts}", self.words))
    }
}
