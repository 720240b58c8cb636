//! Counters of what warps wait for.

/// Between the unit of the chip with the form of the counter, and the reason.
const STALLED: &str = "issue_stalled_";
/// Beginning of the counters of samples.
const SAMPLED: &str = "smsp__pcsamp_warps_issue_stalled_";

/// In which terms a counter gives the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StallUnit {
    /// Percent of the time in which warps are active.
    TimePercent,
    /// Samples of warps; only the sum over all reasons makes a share of the time of them.
    Samples,
    /// Cycles for each instruction.
    CyclesPerInstruction,
    /// Warps, or anything else that is no time.
    Other,
}

/// A counter of one reason to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stall<'c> {
    /// As ncu calls it: `long_scoreboard`.
    pub reason: &'c str,
    /// In which terms.
    pub unit: StallUnit,
}

impl<'c> Stall<'c> {
    /// Of a counter in any form: `smsp__average_warps_issue_stalled_wait_per_issue_active.ratio`.
    /// Samples in which no other warp issued are counted a second time, and are `None`.
    pub(crate) fn of(counter: &'c str) -> Option<Stall<'c>> {
        let (_, rest) = counter.split_once(STALLED)?;
        let rest = rest.split('.').next()?;
        let reason = rest.split("_per_").next()?;
        let unit = if counter.ends_with(".pct") {
            StallUnit::TimePercent
        } else if counter.starts_with(SAMPLED) {
            StallUnit::Samples
        } else if counter.ends_with(".ratio") {
            StallUnit::CyclesPerInstruction
        } else {
            StallUnit::Other
        };
        (!reason.ends_with("_not_issued")).then_some(Stall { reason, unit })
    }

    /// Whether the warp waits: one that issues, or could, does not.
    pub(crate) fn is_wait(self) -> bool {
        !matches!(self.reason, "selected" | "not_selected")
    }
}

/// Whether a counter is samples of warps by what they wait for, in either form.
pub(crate) fn is_stall_sample(counter: &str) -> bool {
    counter.starts_with(SAMPLED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_stall_counter_names_its_reason_and_unit() {
        let table = "
smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio | long_scoreboard CyclesPerInstruction
smsp__warp_issue_stalled_mio_throttle_per_warp_active.pct | mio_throttle TimePercent
smsp__pcsamp_warps_issue_stalled_wait | wait Samples
smsp__warps_issue_stalled_wait.avg | wait Other
smsp__pcsamp_warps_issue_stalled_wait_not_issued |
gpu__time_duration.sum |
";
        for row in table.trim().lines() {
            let (counter, expected) = row.split_once(" |").unwrap();
            let found = Stall::of(counter).map(|it| format!("{} {:?}", it.reason, it.unit));
            assert_eq!(found.unwrap_or_default(), expected.trim(), "{counter}");
        }
    }
}
