//! What warps wait for, in words. The names are those of Nsight Compute's stall reasons.

/// Why a scheduler did not issue from a warp, or that it did: `waiting for a barrier (barrier)`.
pub fn stall_words(reason: &str) -> String {
    let words = match reason {
        "barrier" => "waiting at a barrier",
        "branch_resolving" => "waiting for a branch target",
        "dispatch_stall" | "dispatch" => "held back by the dispatcher",
        "drain" => "waiting for stores at its exit",
        "gmma" | "warpgroup_arrive" => "waiting for warpgroup matrix products",
        "imc_miss" | "imc" => "waiting for constants",
        "lg_throttle" | "lg" => "waiting for the queue to global memory",
        "long_scoreboard" | "long_sb" => "waiting for global or local memory",
        "math_pipe_throttle" | "math" => "waiting for a busy math pipe",
        "membar" => "waiting for a memory fence",
        "mio_throttle" | "mio" => "waiting for the queue to shared memory and special functions",
        "no_instruction" | "no_instructions" | "no_inst" => "waiting for instructions",
        "not_selected" => "ready while another warp was served",
        "selected" => "issuing",
        "short_scoreboard" | "short_sb" => "waiting for shared memory or a special function",
        "sleeping" => "asleep",
        "tex_throttle" | "tex" => "waiting for the queue to the texture unit",
        "wait" => "waiting a fixed time for the instruction before",
        _ => return format!("stalled ({})", reason.replace('_', " ")),
    };
    format!("{words} ({})", reason.replace('_', " "))
}

/// The reason behind a counter of stalls, whichever form of it was recorded:
/// `smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio`.
pub(crate) fn stall_of_counter(counter: &str) -> Option<&str> {
    let (_, rest) = counter.split_once("issue_stalled_")?;
    let rest = rest.split('.').next()?;
    let rest = rest.split("_per_").next()?;
    (!rest.ends_with("_not_issued")).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_stall_counter_names_its_reason() {
        for (counter, reason) in [
            (
                "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
                Some("long_scoreboard"),
            ),
            (
                "smsp__warp_issue_stalled_mio_throttle_per_warp_active.pct",
                Some("mio_throttle"),
            ),
            ("smsp__pcsamp_warps_issue_stalled_wait", Some("wait")),
            ("smsp__pcsamp_warps_issue_stalled_wait_not_issued", None),
            ("gpu__time_duration.sum", None),
        ] {
            assert_eq!(stall_of_counter(counter), reason, "{counter}");
        }
        assert_eq!(
            stall_words("mio_throttle"),
            "waiting for the queue to shared memory and special functions (mio throttle)"
        );
        assert_eq!(stall_words("new_reason"), "stalled (new reason)");
    }
}
