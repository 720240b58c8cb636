//! Puts together what the compiler reported of each kernel and what its machine code shows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cubin::CompiledKernel;
use super::error::BinaryError;
use super::ptxas::CompilerWarning;

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

/// Adds what only the compiler reports to what the cubins of a build state: the bytes that each kernel
/// spills, stored and loaded, and the warnings.
///
/// # Errors
/// [`BinaryError`] where a kernel is in no cubin, or in several.
pub fn compiled(
    spills: &BTreeMap<String, [u32; 2]>,
    mut warnings: Vec<CompilerWarning>,
    cubins: Vec<(String, CompiledKernel)>,
) -> Result<Compiled, BinaryError> {
    let mut found = BTreeMap::new();
    for (name, kernel) in cubins {
        // Which of them is launched is not known, and the compiler's report adds them up.
        if found.contains_key(&name) {
            return Err(BinaryError::Ambiguous(name));
        }
        found.insert(name, kernel);
    }
    // A warning about a function that kernels call is about every kernel that calls it.
    for warning in &mut warnings {
        warning.function.take_if(|name| !spills.contains_key(name));
    }
    let mut kernels = BTreeMap::new();
    for (name, [stored, loaded]) in spills {
        let found = found.remove(name);
        let mut kernel = found.ok_or_else(|| BinaryError::NoCode(name.clone()))?;
        kernel.resources.spill_store_bytes = Some(*stored);
        kernel.resources.spill_load_bytes = Some(*loaded);
        // A warning without a function may be about any kernel.
        let of_kernel = |warning: &&CompilerWarning| {
            warning
                .function
                .as_ref()
                .is_none_or(|function| function == name)
        };
        let count = warnings.iter().filter(of_kernel).count();
        kernel.performance_warnings = Some(u32::try_from(count).unwrap_or(u32::MAX));
        kernels.insert(name.clone(), kernel);
    }
    Ok(Compiled {
        kernels,
        warnings,
        stated_compiler: None,
    })
}
