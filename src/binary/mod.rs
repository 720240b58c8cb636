//! What the compiler made: resources, machine code and warnings of each kernel, read from the
//! compiler's report and the cubin without running anything.

mod cubin;
mod launch_shape;
mod metric;
mod occupancy;
mod ptxas;
mod sass;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use launch_shape::LaunchShape;
pub use metric::{STATIC_METRICS, StaticMetric, static_metric};
pub use occupancy::{Limits, Occupancy, ResourceUse};
pub use ptxas::{CompilerWarning, KernelResources, compiler_warnings, resource_report};
pub use sass::{Census, Listing, census, listing};

/// A compiled kernel, as far as that tells without running it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompiledKernel {
    /// What ptxas reported.
    #[serde(flatten)]
    pub resources: KernelResources,
    /// Shared memory a block that the driver reserves, in bytes: the kernel's section in the cubin
    /// less its own static shared memory. 0 for a kernel without such a section, which uses none:
    /// the driver reserves its share nevertheless.
    pub driver_shared_bytes: u32,
    /// Constant bank 0, kernel arguments included, in bytes.
    pub constant_bytes: u32,
    /// Threads a block that `__launch_bounds__` allows, where it is stated.
    pub max_threads: Option<u32>,
    /// sha256 of the machine code (`.text` of the kernel), which `-lineinfo` does not change.
    pub text_sha256: String,
    /// What ptxas says of it that costs performance, how many times.
    pub performance_warnings: u32,
    /// Instructions by opcode with its modifiers; `None` where no disassembler was found.
    pub opcodes: Option<BTreeMap<String, u32>>,
}

/// The kernels of one program by mangled name, and what the compiler said of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compiled {
    /// The kernels.
    pub kernels: BTreeMap<String, CompiledKernel>,
    /// Warnings that cost performance.
    pub warnings: Vec<CompilerWarning>,
}

/// Why a program could not be looked into.
#[derive(Debug, Error)]
pub enum BinaryError {
    /// A file of the build cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// A cubin is no ELF file of the expected form.
    #[error("the cubin cannot be read: {0}")]
    Cubin(String),
    /// The compiler named a kernel that no cubin holds.
    #[error("the compiler reported the kernel `{0}`, and no cubin of the build holds it")]
    NoCode(String),
    /// Report and cubin contradict each other.
    #[error("`{kernel}` has {reported} {what} by the compiler's report and {found} by the cubin")]
    Contradiction {
        /// Mangled name.
        kernel: String,
        /// What of it.
        what: &'static str,
        /// By `-Xptxas -v`.
        reported: u32,
        /// By the cubin.
        found: u32,
    },
    /// The disassembler's answer is not what is known of it.
    #[error("the disassembly cannot be read: {0}")]
    Disassembly(String),
}

/// Whether a cubin has code. One that cannot be read may have.
pub fn holds_kernels(cubin: &[u8]) -> bool {
    cubin::kernels(cubin).map_or(true, |kernels| !kernels.is_empty())
}

/// Puts together what the compiler reported and what the cubins hold. `census` has the
/// instructions of each kernel, where a disassembler was found.
///
/// # Errors
/// [`BinaryError`] where the two do not fit together.
pub fn compiled(
    resources: &BTreeMap<String, KernelResources>,
    mut warnings: Vec<CompilerWarning>,
    cubins: &[PathBuf],
    census: Option<&Census>,
) -> Result<Compiled, BinaryError> {
    let mut found = BTreeMap::new();
    for cubin in cubins {
        found.extend(cubin::kernels(&std::fs::read(cubin)?)?);
    }
    // One about a function that kernels call is about whichever of them does.
    for warning in &mut warnings {
        warning
            .function
            .take_if(|name| !resources.contains_key(name));
    }
    let mut kernels = BTreeMap::new();
    for (name, resources) in resources {
        let code = found
            .get(name)
            .ok_or_else(|| BinaryError::NoCode(name.clone()))?;
        let contradiction = |what, reported, found| BinaryError::Contradiction {
            kernel: name.clone(),
            what,
            reported,
            found,
        };
        if let Some(registers) = code.registers.filter(|own| *own != resources.registers) {
            return Err(contradiction("registers", resources.registers, registers));
        }
        if let Some(barriers) = code.barriers.filter(|own| *own != resources.barriers) {
            return Err(contradiction("barriers", resources.barriers, barriers));
        }
        let reserved = code.shared_bytes.checked_sub(resources.shared_bytes);
        let opcodes = match census {
            None => None,
            Some(census) => {
                let counted = census.get(name);
                let missing = || BinaryError::Disassembly(format!("it lacks `{name}`"));
                Some(counted.cloned().ok_or_else(missing)?)
            }
        };
        // One that names no function may be about any of them.
        let of_kernel = |warning: &&CompilerWarning| {
            warning
                .function
                .as_ref()
                .is_none_or(|function| function == name)
        };
        let told = warnings.iter().filter(of_kernel).count();
        kernels.insert(
            name.clone(),
            CompiledKernel {
                performance_warnings: u32::try_from(told).unwrap_or(u32::MAX),
                resources: resources.clone(),
                driver_shared_bytes: reserved.ok_or_else(|| {
                    contradiction(
                        "bytes of static shared memory",
                        resources.shared_bytes,
                        code.shared_bytes,
                    )
                })?,
                constant_bytes: code.constant_bytes,
                max_threads: code.max_threads,
                text_sha256: code.text_sha256.clone(),
                opcodes,
            },
        );
    }
    Ok(Compiled { kernels, warnings })
}
