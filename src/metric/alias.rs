//! Short names for what gates are commonly set on.

use ncu_report::Chip;

use super::family::tensor_flop_type;
use super::role::Role;
use super::terms::Direction;

/// A short name, and what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The short name.
    pub name: &'static str,
    /// What it measures.
    pub role: Role,
    /// Which way it improves, for a kernel that does the same work; `equal`: neither is better by itself.
    pub better: Direction,
    /// What to know before reading it.
    pub note: &'static str,
    /// Why some chips do not have it, and what to use there; empty where all have it.
    pub lacking: &'static str,
}

macro_rules! aliases {
    ($($name:literal $better:ident $role:ident $note:literal $($lacking:expr)?;)+) => {
        /// All short names of one counter each, sorted.
        pub const ALIASES: &[Alias] = &[$(Alias {
            name: $name,
            role: Role::$role,
            better: Direction::$better,
            note: $note,
            lacking: aliases!(@ $($lacking)?),
        }),+];
    };
    (@) => { "" };
    (@ $lacking:expr) => { $lacking };
}

const NO_DRAM: &str = "its GPU shares the memory of the CPU, and has no counters of it; use `l2_throughput`, or `counter = \"lts__t_bytes.sum\"`";
const NO_TMA: &str = "it has no tensor memory accelerator; use `counter = \"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum\"`";
const NO_WGMMA: &str = "only Hopper has WGMMA; use `tensor_instructions` or `tensor_core`";
const NO_TCGEN05: &str = "only Blackwell of compute capability 10.x and 11.0, and Rubin, have tcgen05; use `tensor_instructions`";
const NO_TENSOR_MEMORY: &str = "only Blackwell of compute capability 10.x and 11.0, and Rubin, have tensor memory; use `tensor_core`";

aliases! {
    "bank_conflicts" Lower BankConflicts "shared memory, loads and stores";
    "clock" Equal Clock "if recorded, a power limit in some captures only warns if both sides ran at the same clock";
    "dram_bw" Higher DramThroughput "percent of the device's own peak; read it beside the bytes and the duration" NO_DRAM;
    "dram_read" Lower DramBytesRead "" NO_DRAM;
    "dram_write" Lower DramBytesWritten "" NO_DRAM;
    "duration" Lower Duration "";
    "hmma_instructions" Equal TensorInstructionsHmma "matrix products of fp16, bf16 and tf32; on Hopper WGMMA too";
    "l1_throughput" Higher L1Throughput "";
    "l2_throughput" Higher L2Throughput "";
    "registers" Lower RegistersPerThread "a thread";
    "sm_active" Higher SmActive "share of the time an SM had any work; not occupancy";
    "sm_throughput" Higher SmThroughput "speed of light of the SM";
    "stall_memory" Lower MemoryStall "a TMA consumer waits on an mbarrier instead, so this looks low while it starves";
    "stall_wgmma" Lower WgmmaStall "" NO_WGMMA;
    "tcgen05_instructions" Equal Tcgen05Instructions "above 0 proves tcgen05" NO_TCGEN05;
    "tensor_core" Higher TensorActive "all tensor work";
    "tensor_instructions" Equal TensorInstructions "of any type";
    "tensor_memory_read" Equal TensorMemoryRead "bytes" NO_TENSOR_MEMORY;
    "tensor_memory_write" Equal TensorMemoryWritten "bytes" NO_TENSOR_MEMORY;
    "tma_bytes" Equal TmaBytes "the load counters of the LSU pipe do not see TMA loads" NO_TMA;
    "warps_active" Higher WarpsActive "occupancy; a warp-specialized kernel is low by design";
    "wgmma_instructions" Equal WgmmaInstructions "above 0 proves WGMMA" NO_WGMMA;
}

/// The short name of the floating-point and integer operations on the tensor cores. It stands for one
/// metric for each source type that the chip counts, such as `tensor_flop_bf16`.
pub const TENSOR_FLOP: &str = "tensor_flop";

/// The metrics that [`TENSOR_FLOP`] stands for on a chip, by name, each with its counter.
pub fn tensor_flop(chip: Chip) -> Vec<(String, String)> {
    let counters = chip.metrics().map(|base| format!("{base}.sum"));
    let of_type = counters.filter_map(|counter| {
        let source = tensor_flop_type(&counter)?;
        Some((format!("{TENSOR_FLOP}_{source}"), counter))
    });
    of_type.collect()
}

/// The short name; `None` of any other text.
pub fn alias(name: &str) -> Option<&'static Alias> {
    ALIASES.iter().find(|alias| alias.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_exists_on_every_chip_or_says_why_not() {
        assert!(ALIASES.windows(2).all(|pair| pair[0].name < pair[1].name));
        for alias in ALIASES {
            let everywhere = Chip::all().all(|chip| alias.role.on(Some(chip)).is_some());
            assert_eq!(everywhere, alias.lacking.is_empty(), "{}", alias.name);
        }
        assert_eq!(alias("dram_reed"), None);
    }

    #[test]
    fn tensor_flop_is_one_metric_a_source_type_of_the_chip() {
        let names = |chip| -> Vec<String> {
            let all = tensor_flop(Chip::named(chip).unwrap()).into_iter();
            all.map(|(mut name, _)| name.split_off(TENSOR_FLOP.len() + 1))
                .collect()
        };
        assert_eq!(names("gv100"), ["fp16_dst_fp16", "fp16"]);
        assert_eq!(
            names("gh100"),
            ["bf16", "fp16", "fp64", "fp8", "int1", "int8", "tf32"]
        );
        assert!(names("gb100").contains(&"fp4".to_owned()));
        for chip in Chip::all().filter(|chip| chip.name() != "tu116") {
            assert!(!tensor_flop(chip).is_empty(), "{}", chip.name());
        }
    }
}
