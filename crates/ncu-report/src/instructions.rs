//! Counts and samples of single instructions.

use std::sync::Arc;

use crate::line_table::Line;

/// The counts and samples of the instructions of one launch, and their machine code.
///
/// A report has them if ncu collected its section `SourceCounters`, as `--set full` does.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceCounters {
    /// The instructions with a count or a sample, by address.
    pub instructions: Vec<InstructionCounters>,
    /// The machine code that ran, a cubin (an ELF file) that launches share; `None` where the report
    /// does not contain it (`--import-sass no`).
    pub cubin: Option<Arc<[u8]>>,
}

impl SourceCounters {
    /// The number of samples of all instructions.
    pub fn samples(&self) -> u64 {
        self.instructions
            .iter()
            .fold(0, |sum: u64, one| sum.saturating_add(one.samples))
    }
}

/// The counts and samples of one instruction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InstructionCounters {
    /// Address on the GPU.
    pub address: u64,
    /// Mangled name of the instruction's function; empty where the report does not name it.
    pub function: Arc<str>,
    /// Bytes from the beginning of the function; from the lowest address in the list where the
    /// report does not name the function.
    pub offset: u64,
    /// How many warps executed the instruction (`inst_executed`); `None` where it was not counted.
    pub executed: Option<u64>,
    /// How many samples found a warp at the instruction (`smsp__pcsamp_sample_count`).
    pub samples: u64,
    /// Samples by the reason that the warp waited for, sorted by reason; without zeros. The reason
    /// is the rest of the metric's name after `smsp__pcsamp_warps_issue_stalled_`.
    pub stalls: Vec<(Arc<str>, u64)>,
    /// The source lines: the innermost first, then the calls that were inlined. Empty where the
    /// code was compiled without `-lineinfo`.
    pub lines: Vec<Line>,
}
