//! Short names for counters that gates are commonly set on.

use ncu_report::Chip;

use super::role::Role;

/// Which way a counter improves, for a kernel that does the same work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither way is better by itself; it is there to be shown or to prove something.
    Neither,
}

/// A short name and the counter it stands for on one chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The short name.
    pub name: &'static str,
    /// The full counter name.
    pub counter: &'static str,
    /// Which way is better.
    pub better: Better,
    /// What to know before reading it.
    pub note: &'static str,
}

const fn alias(
    name: &'static str,
    counter: &'static str,
    better: Better,
    note: &'static str,
) -> Alias {
    Alias {
        name,
        counter,
        better,
        note,
    }
}

/// Counter names differ between chips, so each chip has its own list.
static GH100: &[Alias] = &[
    alias(
        "bank_conflicts",
        Role::BankConflicts.counter(),
        Better::Lower,
        "shared memory, loads and stores",
    ),
    alias(
        "clock",
        Role::Clock.counter(),
        Better::Neither,
        "if recorded, a power limit in some captures only warns if both sides ran at the same clock",
    ),
    alias(
        "dram_bw",
        Role::DramThroughput.counter(),
        Better::Higher,
        "percent of the device's own peak; read it beside the bytes and the duration",
    ),
    alias(
        "dram_read",
        Role::DramBytesRead.counter(),
        Better::Lower,
        "",
    ),
    alias(
        "dram_write",
        Role::DramBytesWritten.counter(),
        Better::Lower,
        "",
    ),
    alias("duration", Role::Duration.counter(), Better::Lower, ""),
    alias(
        "flop_wgmma",
        "sm__ops_path_tensor_op_hgmma_src_fp16.sum",
        Better::Neither,
        "floating-point operations that the hardware counted on the WGMMA path",
    ),
    alias(
        "flop_wmma",
        "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32.sum",
        Better::Neither,
        "floating-point operations that the hardware counted; reads 0 on WGMMA",
    ),
    alias(
        "l1_throughput",
        Role::L1Throughput.counter(),
        Better::Higher,
        "",
    ),
    alias(
        "l2_throughput",
        Role::L2Throughput.counter(),
        Better::Higher,
        "",
    ),
    alias(
        "registers",
        Role::RegistersPerThread.counter(),
        Better::Lower,
        "a thread",
    ),
    alias(
        "sm_active",
        Role::SmActive.counter(),
        Better::Higher,
        "share of the time an SM had any work; not occupancy",
    ),
    alias(
        "sm_throughput",
        Role::SmThroughput.counter(),
        Better::Higher,
        "speed of light of the SM",
    ),
    alias(
        "stall_memory",
        "smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct",
        Better::Lower,
        "a TMA consumer waits on an mbarrier instead, so this looks low while it starves",
    ),
    alias(
        "stall_wgmma",
        "smsp__warp_issue_stalled_gmma_per_warp_active.pct",
        Better::Lower,
        "",
    ),
    alias(
        "tensor_core",
        Role::TensorActive.counter(),
        Better::Higher,
        "all tensor work, WMMA and WGMMA",
    ),
    alias(
        "tma_bytes",
        "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum",
        Better::Neither,
        "the load counters of the LSU pipe do not see TMA loads",
    ),
    alias(
        "warps_active",
        Role::WarpsActive.counter(),
        Better::Higher,
        "occupancy; a warp-specialized kernel is low by design",
    ),
    alias(
        "wgmma_instructions",
        "sm__inst_executed_pipe_tensor_op_gmma.sum",
        Better::Neither,
        "above 0 proves WGMMA",
    ),
];

/// The aliases of a chip, sorted by name; empty for a chip without a table.
pub fn aliases(chip: Chip) -> &'static [Alias] {
    match chip {
        Chip::Gh100 => GH100,
        _ => &[],
    }
}

/// The counter that an alias stands for on a chip.
pub fn builtin_alias(chip: Chip, name: &str) -> Option<&'static str> {
    aliases(chip)
        .iter()
        .find(|alias| alias.name == name)
        .map(|alias| alias.counter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncu_report::{Existence, exists};

    #[test]
    fn every_alias_stands_for_a_counter_that_the_chip_has() {
        for alias in aliases(Chip::Gh100) {
            assert_eq!(
                exists(Chip::Gh100, alias.counter),
                Existence::Known,
                "{}",
                alias.name
            );
        }
    }

    #[test]
    fn aliases_are_sorted_and_resolve_by_chip() {
        assert!(GH100.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert_eq!(
            builtin_alias(Chip::Gh100, "dram_read"),
            Some("dram__bytes_read.sum")
        );
        assert_eq!(builtin_alias(Chip::Gh100, "dram_reed"), None);
        assert_eq!(builtin_alias(Chip::Other, "dram_read"), None);
    }
}
