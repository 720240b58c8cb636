//! How many blocks fit on a multiprocessor.
//!
//! Limits of the chips: CUDA Programming Guide, "Technical Specifications per Compute Capability";
//! of 8.8, which it lacks, NVIDIA's `cuda/__device/arch_traits.h` (CCCL). The computation is that of
//! CUDA's `cuda_occupancy.h`, with which a test compares it, as it compares warps and blocks with
//! what ptxas accepts. The shared memory is that of the largest carve-out: with a smaller one, which
//! the driver may choose where it limits nothing, ncu's `launch__occupancy_limit_shared_mem` is lower.

use crate::terms::joined;

/// The limits of one multiprocessor of a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Warps.
    pub warps: u32,
    /// Blocks.
    pub blocks: u32,
    /// Registers of 32 bits.
    pub registers: u32,
    /// Shared memory, in bytes.
    pub shared_bytes: u32,
    /// In which units it is allocated, in bytes.
    pub shared_unit: u32,
    /// The part of it that the driver reserves for every block, in bytes
    /// (`cudaDevAttrReservedSharedMemoryPerBlock`).
    pub driver_shared_bytes: u32,
    /// Barriers; `None` where `cuda_occupancy.h` does not count them, before Hopper.
    pub barriers: Option<u32>,
}

/// What one block takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceUse {
    /// Threads.
    pub threads: u32,
    /// Registers a thread.
    pub registers: u32,
    /// Shared memory in bytes: static, dynamic and the driver's share.
    pub shared_bytes: u32,
    /// Barriers.
    pub barriers: u32,
}

/// Blocks on a multiprocessor, by what limits them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Occupancy {
    /// By the number of blocks itself.
    pub limit_blocks: u32,
    /// By warps.
    pub limit_warps: u32,
    /// By registers.
    pub limit_registers: u32,
    /// By shared memory.
    pub limit_shared_mem: u32,
    /// By barriers; that of blocks where the chip does not count them.
    pub limit_barriers: u32,
    /// Warps that are resident under the tightest limit, in percent of the chip's limit.
    pub percent: f64,
}

const WARP: u32 = 32;
const REGISTER_UNIT: u32 = 256;
const WARP_UNIT: u32 = 4;

impl Limits {
    /// Of a compiler's target such as `sm_90a`; `None` for chips that are not known here.
    pub fn of_arch(arch: &str) -> Option<Limits> {
        let number = arch.strip_prefix("sm_")?;
        let number = number.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let (blocks, warps, shared_kib, barriers) = match number {
            "70" | "72" => (32, 64, 96, None),
            "75" => (16, 32, 64, None),
            "80" => (32, 64, 164, None),
            "86" | "88" => (16, 48, 100, None),
            "87" => (16, 48, 164, None),
            "89" => (24, 48, 100, None),
            "90" | "100" | "103" => (32, 64, 228, Some(64)),
            "110" => (24, 48, 228, Some(24)),
            "120" | "121" => (24, 48, 100, Some(24)),
            _ => return None,
        };
        // Ampere halved the unit, and its driver is the first that takes a share.
        let (shared_unit, driver_shared_bytes) = match number.starts_with('7') {
            true => (256, 0),
            false => (128, 1024),
        };
        Some(Limits {
            warps,
            blocks,
            registers: 65_536,
            shared_bytes: shared_kib * 1024,
            shared_unit,
            driver_shared_bytes,
            barriers,
        })
    }

    /// How many blocks of such a use fit; `None` where a block has no threads, or uses more than can
    /// be counted.
    pub fn occupancy(self, block: ResourceUse) -> Option<Occupancy> {
        let warps = block.threads.div_ceil(WARP);
        if warps == 0 {
            return None;
        }
        let registers_of_warp = block
            .registers
            .checked_mul(WARP)?
            .checked_next_multiple_of(REGISTER_UNIT)?;
        let limit_registers = match registers_of_warp {
            0 => self.blocks,
            of_warp => self.registers / of_warp / WARP_UNIT * WARP_UNIT / warps,
        };
        let limit_shared_mem = match block
            .shared_bytes
            .checked_next_multiple_of(self.shared_unit)?
        {
            0 => self.blocks,
            bytes => self.shared_bytes / bytes,
        };
        let limit_warps = self.warps / warps;
        let limit_barriers = self
            .barriers
            .and_then(|all| all.checked_div(block.barriers))
            .unwrap_or(self.blocks);
        let resident = limit_registers
            .min(limit_shared_mem)
            .min(limit_warps)
            .min(limit_barriers)
            .min(self.blocks);
        Some(Occupancy {
            limit_blocks: self.blocks,
            limit_warps,
            limit_registers,
            limit_shared_mem,
            limit_barriers,
            percent: 100.0 * f64::from(resident * warps) / f64::from(self.warps),
        })
    }
}

impl Occupancy {
    /// The resources with the tightest limit, in words.
    pub fn limiter(&self) -> String {
        let limits = [
            (self.limit_registers, "registers"),
            (self.limit_shared_mem, "shared memory"),
            (self.limit_warps, "threads"),
            (self.limit_barriers, "barriers"),
            (self.limit_blocks, "blocks"),
        ];
        let tightest = limits.iter().map(|(limit, _)| *limit).min();
        let all = limits
            .into_iter()
            .filter(|(limit, _)| Some(*limit) == tightest);
        joined(all.map(|(_, name)| name), " and ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_no_chip_can_run_has_no_occupancy_of_another() {
        let limits = Limits::of_arch("sm_90a").unwrap();
        let fits = ResourceUse {
            threads: 256,
            registers: 64,
            shared_bytes: 1024,
            barriers: 1,
        };
        assert_eq!(limits.occupancy(fits).unwrap().limit_registers, 4);
        for registers in [1 << 27, (1 << 27) - 1, u32::MAX] {
            let block = ResourceUse { registers, ..fits };
            let resident = limits.occupancy(block).map(|found| found.limit_registers);
            assert!(resident.is_none_or(|blocks| blocks == 0), "{registers}");
        }
        for shared_bytes in [u32::MAX - 126, u32::MAX] {
            let block = ResourceUse {
                shared_bytes,
                ..fits
            };
            assert_eq!(limits.occupancy(block), None, "{shared_bytes}");
        }
    }
}
