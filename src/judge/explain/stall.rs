//! What warps wait for, in words. The names are those of Nsight Compute's stall reasons.

/// Why a scheduler did not issue from a warp, or that it did: `waiting for a barrier (barrier)`.
pub fn stall_words(reason: &str) -> String {
    let words = match reason {
        "barrier" => "waiting at a barrier",
        "branch_resolving" => "waiting for a branch target",
        "dispatch_stall" | "dispatch" => "blocked by the dispatcher",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_words_and_an_unknown_one_its_name() {
        assert_eq!(
            stall_words("mio_throttle"),
            "waiting for the queue to shared memory and special functions (mio throttle)"
        );
        assert_eq!(stall_words("new_reason"), "stalled (new reason)");
    }
}
