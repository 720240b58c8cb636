//! Whether a static profile of loaded code is what the captures contain.

use super::capture_index::CaptureIndex;
use crate::build::{cubins_of, launched, loaded_code};
use crate::config::{Config, Variant};
use crate::finding::{Code, Error, Finding, Stop};
use crate::profile::{KernelProfile, Profile};

/// Reads the kernels of the captures of a measured profile again, and reports where the static profile
/// beside it differs. Captures that are missing are reported with the measured profile, and a stripped
/// copy has no machine code.
///
/// # Errors
/// [`Error`] where the machine failed.
pub fn rederive_loaded(
    config: &Config,
    variant: &Variant,
    measured: &Profile,
    compiled: &Profile,
    captures: &CaptureIndex,
) -> Result<Option<Finding>, Error> {
    if measured.provenance.stripped || compiled.provenance.stripped {
        return Ok(None);
    }
    let altered = |what: &str| {
        let message = format!("the static profile differs from the captures: {what}");
        Finding::of(Code::ProfileAltered, &variant.id, message)
    };
    let mut cubins = Vec::new();
    for record in &measured.provenance.captures {
        let Some(bytes) = captures.bytes(&record.report) else {
            return Ok(None);
        };
        match cubins_of(&bytes) {
            Ok(found) => cubins.extend(found),
            Err(why) => return Ok(Some(altered(&why))),
        }
    }
    // Instructions are counted by a disassembler, which is not part of the captures.
    let found = match loaded_code(config, variant, measured, &cubins, None) {
        Ok(found) => found.kernels,
        Err(Stop::Finding(found)) => return Ok(Some(altered(&found.message))),
        Err(Stop::Error(error)) => return Err(error),
    };
    let of = |kernel: &KernelProfile| found.get(kernel.mangled.as_ref()?);
    // Whether the profile states of a kernel what its code shows without a disassembler.
    let is_same = |kernel: &KernelProfile| {
        of(kernel).is_some_and(|code| {
            let launched = launched(measured, kernel);
            let metrics = code.metrics(&config.toolchain.arch, variant.launch, &launched);
            let same = metrics.into_iter().all(|(metric, value)| {
                let stated = kernel.metrics.get(metric.name).and_then(|one| one.value);
                value.is_none() || stated == value
            });
            same && kernel.text_sha256() == Some(&code.text_sha256)
        })
    };
    let other = compiled.kernels.iter().find(|kernel| !is_same(kernel));
    Ok(match other {
        Some(kernel) => Some(altered(&format!("`{}` has other code", kernel.name))),
        None if found.len() != compiled.kernels.len() => Some(altered(&format!(
            "{} kernels, not {}",
            found.len(),
            compiled.kernels.len()
        ))),
        None => None,
    })
}
