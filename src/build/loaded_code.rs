//! The kernels that a program loaded while it ran, from the cubins that profiling kept.

use std::collections::BTreeSet;

use super::machine_code::Reader;
use crate::binary::{BinaryError, Compiled};
use crate::config::{Config, Variant};
use crate::finding::{Code, Finding, Stop};
use crate::profile::Profile;
use crate::toolchain::Nvdisasm;

/// The cubins in a report of ncu: those of the kernels that were profiled, whole.
///
/// # Errors
/// Why it cannot be read, in words.
pub fn cubins_of(report: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let codes = ncu_report::report::machine_code(report).map_err(|error| error.to_string())?;
    Ok(codes.into_iter().map(|code| code.cubin).collect())
}

/// The code of the kernels of a measured profile, from the cubins of all of its processes.
///
/// # Errors
/// A finding where a cubin cannot be read, or where a kernel had not the same code everywhere.
pub fn loaded_code(
    config: &Config,
    variant: &Variant,
    measured: &Profile,
    cubins: &[Vec<u8>],
    nvdisasm: Option<&Nvdisasm>,
) -> Result<Compiled, Stop> {
    let kernels = measured.kernels.iter();
    let ran: BTreeSet<&str> = kernels.filter_map(|one| one.mangled.as_deref()).collect();
    let mut reader = Reader::new(config, variant, nvdisasm);
    // Every process of a variant loads the same ones.
    let different: BTreeSet<&Vec<u8>> = cubins.iter().collect();
    for cubin in different {
        let read = reader.read(cubin, &|name| ran.contains(name));
        read.map_err(|why| {
            why.stop(|error| match error {
                BinaryError::Ambiguous(name) => varies(variant, &name),
                error => code_not_kept(variant, &error.to_string()),
            })
        })?;
    }
    Ok(reader.compiled())
}

/// The finding that the code that a program loaded is not known.
pub fn code_not_kept(variant: &Variant, why: &str) -> Finding {
    let message = format!("the machine code that it loaded is not known: {why}");
    let next = "measure it with ncu, with a `toolchain.arch` of the GPU; or remove `loaded_code`";
    Finding::deny(Code::NotMeasured, &variant.id, message, next)
}

fn varies(variant: &Variant, kernel: &str) -> Finding {
    let message = format!("`{kernel}` was measured with different machine code in one measurement");
    Finding::of(Code::CodeVaries, &variant.id, message).kernel(ncu_report::base_name(kernel))
}
