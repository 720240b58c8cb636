//! What a counter measures. Its literal name stands in this room alone.
//!
//! Names are those of Nsight Compute on NVIDIA's chips. A profiler of another kind reports its
//! values by role; a profile keeps them under the counter's name of that role. Counters that come
//! in families, such as the reasons of stalls, are in the modules beside this one.

use ncu_report::{Chip, Existence, Launch, Measurement, exists};

use crate::terms::{Phase, Tier};

macro_rules! roles {
    ($($(#[$doc:meta])* $role:ident = $counter:literal $(| $other:literal)*),+ $(,)?) => {
        /// What a counter measures, whatever tool measured it, and whatever the chip calls it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Role {
            $($(#[$doc])* $role),+
        }

        impl Role {
            /// Every role.
            pub const ALL: &'static [Role] = &[$(Role::$role),+];

            /// The counter that ncu reports it under, on most chips.
            pub const fn counter(self) -> &'static str {
                match self { $(Role::$role => $counter),+ }
            }

            /// That counter and its names on other chips.
            const fn counters(self) -> &'static [&'static str] {
                match self { $(Role::$role => &[$counter $(, $other)*]),+ }
            }
        }
    };
}

roles! {
    /// How long a launch ran on the GPU, in ns.
    Duration = "gpu__time_duration.sum",
    /// Clock of the graphics processing clusters while the launch ran, in Hz.
    Clock = "gpc__cycles_elapsed.avg.per_second",
    /// Name of the GPU model.
    DeviceName = "device__attribute_display_name",
    /// The first number of the device's compute capability.
    ComputeCapabilityMajor = "device__attribute_compute_capability_major",
    /// The second number of the device's compute capability.
    ComputeCapabilityMinor = "device__attribute_compute_capability_minor",

    /// Bytes read from DRAM.
    DramBytesRead = "dram__bytes_read.sum" | "dram__bytes_op_read.sum",
    /// Bytes written to DRAM.
    DramBytesWritten = "dram__bytes_write.sum" | "dram__bytes_op_write.sum",
    /// Share of the DRAM's peak, in percent of the elapsed time.
    DramThroughput = "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    /// The same, as ncu's sections ask for it.
    DramThroughputOfSections = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    /// Share of the peak of the busiest part of the memory system, in percent.
    MemoryThroughput = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    /// Bytes that the second-level cache moved.
    L2Bytes = "lts__t_bytes.sum",
    /// Sectors of 32 bytes that the second-level cache moved.
    L2Sectors = "lts__t_sectors.sum",
    /// Sectors of 32 bytes read from the second-level cache.
    L2SectorsRead = "lts__t_sectors_op_read.sum",
    /// Sectors of 32 bytes written to the second-level cache.
    L2SectorsWritten = "lts__t_sectors_op_write.sum",
    /// Share of the second-level cache's peak, in percent of the elapsed time.
    L2Throughput = "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    /// Share of the first-level cache's peak, in percent of the elapsed time.
    L1Throughput = "l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
    /// Share of the first-level cache's peak, in percent of the time in which it was active.
    L1ThroughputActive = "l1tex__throughput.avg.pct_of_peak_sustained_active",

    /// Bytes that the tensor memory accelerator loads from global memory.
    TmaBytes = "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum",
    /// Requests of warps that load from global memory.
    GlobalLoadRequests = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    /// Sectors of 32 bytes that loads from global memory touch.
    GlobalLoadSectors = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    /// Sectors of 32 bytes that stores to global memory touch.
    GlobalStoreSectors = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    /// Instructions of warps that load from local memory.
    LocalLoads = "smsp__inst_executed_op_local_ld.sum",
    /// Instructions of warps that store to local memory.
    LocalStores = "smsp__inst_executed_op_local_st.sum",
    /// Bank conflicts of loads from and stores to shared memory.
    BankConflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    /// Accesses to shared memory, each of one cycle.
    SharedWavefronts = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",

    /// Instructions that warps executed.
    Instructions = "smsp__inst_executed.sum",
    /// Instructions of warps on the FMA pipe.
    FmaInstructions = "sm__inst_executed_pipe_fma.sum",
    /// Single-precision fused multiply-adds of threads, two FLOP each.
    ThreadFfma = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    /// Instructions of warps on the tensor pipe.
    TensorInstructions = "sm__inst_executed_pipe_tensor.sum"
        | "sm__inst_executed_pipe_tensor_v2.sum",
    /// Instructions of warps for half-precision matrix products, WMMA and WGMMA alike.
    TensorInstructionsHmma = "sm__inst_executed_pipe_tensor_op_hmma.sum"
        | "sm__inst_executed_pipe_tensor_op_hmma_v2.sum"
        | "sm__inst_executed_pipe_tensor_subpipe_hmma.sum",
    /// Instructions of warp groups for matrix products (WGMMA), which only Hopper has.
    WgmmaInstructions = "sm__inst_executed_pipe_tensor_op_gmma.sum",
    /// Instructions of the fifth generation of tensor cores (tcgen05), whose operands are in shared and
    /// tensor memory.
    Tcgen05Instructions = "sm__inst_executed_pipe_tc.sum",
    /// Bytes read from tensor memory.
    TensorMemoryRead = "sm__mem_tensor_reads.sum",
    /// Bytes written to tensor memory.
    TensorMemoryWritten = "sm__mem_tensor_writes.sum",
    /// Share of the tensor pipe's peak, in percent of the elapsed time. Ada's lists deprecate the name
    /// of the other chips for one of a second version.
    TensorActive = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
        | "sm__pipe_tensor_cycles_active_v2.avg.pct_of_peak_sustained_elapsed",

    /// Cycles of all multiprocessors while the launch ran.
    SmCycles = "sm__cycles_elapsed.sum",
    /// Share of the multiprocessor's peak, in percent of the elapsed time.
    SmThroughput = "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    /// Share of the elapsed time in which a multiprocessor had any work, in percent.
    SmActive = "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
    /// Active warps, in percent of those possible, over the time with work.
    WarpsActive = "sm__warps_active.avg.pct_of_peak_sustained_active",
    /// Active warps, in percent of those possible, over the elapsed time.
    WarpsActiveElapsed = "sm__warps_active.avg.pct_of_peak_sustained_elapsed",
    /// Share of the time of active warps in which they wait at a barrier, in percent.
    BarrierStall = "smsp__warp_issue_stalled_barrier_per_warp_active.pct",
    /// Share of the time of active warps in which they wait for global or local memory, in percent.
    MemoryStall = "smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct",
    /// Share of the time of active warps in which they wait for a matrix product of their warp group,
    /// in percent.
    WgmmaStall = "smsp__warp_issue_stalled_gmma_per_warp_active.pct",

    /// Registers of a thread.
    RegistersPerThread = "launch__registers_per_thread",
    /// Named barriers of a block.
    Barriers = "launch__barrier_count",
    /// Static shared memory of a block, in bytes.
    StaticSharedBytes = "launch__shared_mem_per_block_static",
    /// Dynamic shared memory of a block, in bytes.
    DynamicSharedBytes = "launch__shared_mem_per_block_dynamic",
    /// Shared memory of a block that the driver takes, in bytes.
    DriverSharedBytes = "launch__shared_mem_per_block_driver",
}

impl Role {
    /// What is counted of every kernel, to find the cause where it becomes slower.
    pub(crate) const EXPLAINING: &'static [Role] = &[
        Role::Clock,
        Role::SmCycles,
        Role::Instructions,
        Role::FmaInstructions,
        Role::ThreadFfma,
        Role::TensorInstructionsHmma,
        Role::TensorActive,
        Role::GlobalLoadRequests,
        Role::GlobalLoadSectors,
        Role::GlobalStoreSectors,
        Role::LocalLoads,
        Role::LocalStores,
        Role::BankConflicts,
        Role::L2Sectors,
        Role::L2Throughput,
        Role::DramBytesRead,
        Role::DramBytesWritten,
        Role::DramThroughput,
        Role::BarrierStall,
        Role::MemoryStall,
        Role::WarpsActive,
        Role::RegistersPerThread,
    ];

    /// The role of a counter; `None` of one that this tool gives no meaning to.
    pub fn of(counter: &str) -> Option<Role> {
        Role::ALL
            .iter()
            .copied()
            .find(|role| role.counters().contains(&counter))
    }

    /// The counter that a chip reports it under; `None` where it has none. Of two names the one that
    /// came later, as the chip's list deprecates the other. Where the chip is not known, the name that
    /// most have.
    pub fn on(self, chip: Option<Chip>) -> Option<&'static str> {
        let Some(chip) = chip else {
            return Some(self.counter());
        };
        let mut latest_first = self.counters().iter().copied().rev();
        latest_first.find(|counter| exists(chip, counter) != Existence::Unknown)
    }

    /// What a launch has of it.
    pub fn measured(self, launch: &Launch) -> Option<&Measurement> {
        let mut latest_first = self.counters().iter().rev();
        latest_first.find_map(|counter| launch.metrics.get(counter))
    }

    /// Its number in a launch.
    pub fn number(self, launch: &Launch) -> Option<f64> {
        self.measured(launch)?.value.number()
    }

    /// Its text in a launch.
    pub fn text(self, launch: &Launch) -> Option<&str> {
        self.measured(launch)?.value.text()
    }
}

impl std::fmt::Display for Role {
    /// As ncu calls the counter.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.counter())
    }
}

/// Whether a tier can measure a counter in a phase. The tiers below the counters measure how long
/// launches took, and nothing else.
pub(crate) fn measures(tier: Tier, counter: &str, phase: Phase) -> bool {
    match tier {
        Tier::Counters => true,
        Tier::KernelTimes => Role::of(counter) == Some(Role::Duration) && phase == Phase::Timing,
        Tier::Static => false,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::process::tests::sources;

    #[test]
    fn each_role_has_a_counter_of_its_own() {
        for role in Role::ALL {
            for counter in role.counters() {
                assert_eq!(Role::of(counter), Some(*role));
            }
        }
        assert_eq!(Role::of("gpu__time_duration.max"), None);
    }

    #[test]
    fn each_chip_has_its_own_name_for_a_role_or_none() {
        let on = |role: Role, chip| role.on(Some(Chip::named(chip).unwrap()));
        let reads = |chip| on(Role::DramBytesRead, chip);
        assert_eq!(reads("ga100"), Some("dram__bytes_read.sum"));
        assert_eq!(reads("gb202"), Some("dram__bytes_op_read.sum"));
        assert_eq!(reads("gb20b"), None);
        let tensor = on(Role::TensorActive, "ad102").unwrap();
        assert!(tensor.contains("_v2"), "{tensor}");
        let counter = Some(Role::TensorActive.counter());
        assert_eq!(on(Role::TensorActive, "gh100"), counter);
        assert_eq!(on(Role::Tcgen05Instructions, "gb202"), None);
        assert_eq!(Role::Duration.on(None), Some("gpu__time_duration.sum"));
        for chip in Chip::all() {
            use Role::{Duration, Instructions, SmActive, TensorActive};
            for role in [Duration, SmActive, TensorActive, Instructions] {
                assert!(role.on(Some(chip)).is_some(), "{role} on {}", chip.name());
            }
        }
    }

    /// Whether a line contains a name such as `gpu__time_duration.sum`, a part of one, or an ending
    /// that only counters have.
    fn names_a_counter(line: &str) -> bool {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let prefixed = line.split(|c| !is_word(c)).any(|word| {
            let unit = word.split_once("__").map_or("", |(unit, _)| unit);
            // What the compiler made is counted under names of this tool's own.
            let is_unit = unit.starts_with(|c: char| c.is_ascii_lowercase()) && unit != "static";
            is_unit && unit.chars().all(|c| c.is_ascii_alphanumeric())
        });
        let parts = ["pcsamp", "issue_stalled", "pct_of_peak"];
        prefixed || parts.iter().any(|part| line.contains(part))
    }

    #[test]
    fn literal_names_of_counters_stand_in_this_room_alone() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let files = sources(&root);
        assert!(files.len() > 100, "{files:?}");
        let mut outside = Vec::new();
        for (path, code) in files {
            let is_tests = path.file_name().is_some_and(|name| name == "tests.rs");
            if path.starts_with(root.join("metric")) || is_tests {
                continue;
            }
            for (index, line) in code.lines().enumerate() {
                let comment = line.trim_start().starts_with("//");
                if !comment && line.contains('"') && names_a_counter(line) {
                    outside.push(format!("{}:{}: {line}", path.display(), index + 1));
                }
            }
        }
        assert!(outside.is_empty(), "{}", outside.join("\n"));
        assert!(names_a_counter("x(\"dram__bytes_read.sum\")"));
        assert!(names_a_counter("x(\"launch__\")"));
        assert!(!names_a_counter("x(\"__global__ void k()\")"));
    }
}
