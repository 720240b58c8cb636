//! Builds variants and keeps what the compiler made, which needs no GPU.

use std::path::Path;

use super::base::BaseProject;
use super::batch::Batch;
use super::measured::Measured;
use super::watch::OfBase;
use crate::config::Variant;
use crate::files::{clear_compiled, variant_folder};
use crate::finding::Error;

/// Builds variants and their versions at the base, and measures nothing. Where a base cannot be
/// built a finding says why. No program of the change runs, and so no `build` command of it.
///
/// # Errors
/// [`Error`] where the machine failed; what concerns one variant is a finding.
pub fn compile(
    batch: Batch<'_>,
    base: Option<&BaseProject>,
    output: &Path,
) -> Result<Measured, Error> {
    let git = crate::git::revision(&batch.config.root);
    let mut measured = Measured::default();
    let started = std::time::Instant::now();
    // The base first: a build command of the change could write to the base's sources.
    let built = match base {
        Some(base) => base.build(batch.variants, None, &OfBase(batch.watch))?,
        None => Vec::new(),
    };
    let (artifacts, findings) = batch.build_without_commands()?;
    measured.findings.extend(findings);
    measured.spent.build_s += started.elapsed().as_secs_f64();
    for variant in batch.variants {
        clear_compiled(output, &variant.id)?;
    }
    let folder = |variant: &Variant| variant_folder(output, &variant.id);
    measured.compiled = batch.keep_compiled(&artifacts, folder, &[], git.as_deref())?;
    let Some(base) = base else {
        return Ok(measured);
    };
    measured.compiled_bases = base.keep_compiled(&built, output)?;
    measured
        .findings
        .extend(built.into_iter().filter_map(Result::err));
    Ok(measured)
}
