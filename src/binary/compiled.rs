//! Puts together what the compiler reported of each kernel and what its machine code shows.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::cubin::{self, CompiledKernel};
use super::error::BinaryError;
use super::occupancy::Limits;
use super::ptxas::{CompilerWarning, KernelResources};
use super::sass::Census;
use crate::files::{most, read_regular_up_to};

/// The kernels of one program by mangled name, and the compiler's warnings about them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compiled {
    /// The kernels.
    pub kernels: BTreeMap<String, CompiledKernel>,
    /// Warnings that cost performance.
    pub warnings: Vec<CompilerWarning>,
    /// The version of the compiler that the machine code itself states, where this tool did not call
    /// it: `V13.0.88`, or several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated_compiler: Option<String>,
}

/// Whether a cubin has kernels; `true` for one that cannot be read.
pub fn has_kernels(cubin: &[u8]) -> bool {
    cubin::kernels(cubin).map_or(true, |kernels| !kernels.is_empty())
}

/// The kernels of a cubin for this target, by mangled name, as far as the cubin itself describes
/// them: what only the compiler reports is not known.
///
/// # Errors
/// [`BinaryError::Cubin`].
pub fn kernels_of(
    cubin: &[u8],
    arch: &str,
) -> Result<BTreeMap<String, CompiledKernel>, BinaryError> {
    /// Of the chips that are not in the table.
    const DRIVER_SHARE: u32 = 1024;
    let share = Limits::of_arch(arch).map_or(DRIVER_SHARE, |limits| limits.driver_shared_bytes);
    let mut kernels = BTreeMap::new();
    for (name, code) in cubin::kernels(cubin)? {
        if !code.launchable {
            continue;
        }
        let unstated =
            |what| BinaryError::Cubin(format!("it does not state the {what} of `{name}`"));
        let own = code.shared_bytes.checked_sub(share);
        let (shared_bytes, driver_shared_bytes) = match own {
            Some(own) if code.reserved => (own, share),
            _ => (code.shared_bytes, 0),
        };
        let resources = KernelResources {
            registers: code.registers.ok_or_else(|| unstated("registers"))?,
            shared_bytes,
            spill_store_bytes: None,
            spill_load_bytes: None,
            stack_bytes: code.stack_bytes.ok_or_else(|| unstated("stack frame"))?,
            barriers: code.barriers.ok_or_else(|| unstated("barriers"))?,
        };
        let kernel = CompiledKernel {
            resources,
            driver_shared_bytes,
            ..code.stated
        };
        kernels.insert(name, kernel);
    }
    Ok(kernels)
}

/// Puts together what the compiler reported and what is in the cubins. `census` has the
/// instructions of each kernel, where a disassembler was found.
///
/// # Errors
/// [`BinaryError`] where the two contradict each other.
pub fn compiled(
    resources: &BTreeMap<String, KernelResources>,
    mut warnings: Vec<CompilerWarning>,
    cubins: &[PathBuf],
    census: Option<&Census>,
) -> Result<Compiled, BinaryError> {
    let mut found = BTreeMap::new();
    for cubin in cubins {
        for (name, code) in cubin::kernels(&read_regular_up_to(cubin, most::BINARY)?)? {
            // Which of them is launched is not known, and the compiler's report adds them up.
            if code.launchable && found.contains_key(&name) {
                return Err(BinaryError::Ambiguous(name));
            }
            found.insert(name, code);
        }
    }
    // A warning about a function that kernels call is about every kernel that calls it.
    for warning in &mut warnings {
        warning
            .function
            .take_if(|name| !resources.contains_key(name));
    }
    let mut kernels = BTreeMap::new();
    for (name, resources) in resources {
        let code = found
            .remove(name)
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
        let (shared, own) = (code.shared_bytes, resources.shared_bytes);
        let reserved = shared
            .checked_sub(own)
            .ok_or_else(|| contradiction("bytes of static shared memory", own, shared));
        let missing = || BinaryError::Disassembly(format!("it lacks `{name}`"));
        let opcodes = census.map(|census| census.get(name).cloned().ok_or_else(missing));
        // A warning without a function may be about any kernel.
        let of_kernel = |warning: &&CompilerWarning| {
            warning
                .function
                .as_ref()
                .is_none_or(|function| function == name)
        };
        let count = warnings.iter().filter(of_kernel).count();
        kernels.insert(
            name.clone(),
            CompiledKernel {
                performance_warnings: Some(u32::try_from(count).unwrap_or(u32::MAX)),
                opcodes: opcodes.transpose()?,
                resources: resources.clone(),
                driver_shared_bytes: reserved?,
                ..code.stated
            },
        );
    }
    Ok(Compiled {
        kernels,
        warnings,
        stated_compiler: None,
    })
}
