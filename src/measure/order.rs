//! What a run is asked to measure.

use super::base::BaseProject;
use super::batch::Batch;
use super::folder::RunFile;
use super::prebuilt::Prebuilt;
use super::verified::RecordUse;
use crate::config::Variant;
use crate::device::Gpu;
use crate::verdict::{ProcessCost, Schedule};
use std::path::Path;

/// How many launches a process of a variant makes side by side, by what a process costs; `None` for
/// the configured number.
pub type Choose<'a> = dyn Fn(&Variant, &Gpu, ProcessCost) -> Option<Schedule> + 'a;

/// An order to measure variants.
#[derive(Clone, Copy)]
pub struct Order<'a> {
    /// The variants.
    pub batch: Batch<'a>,
    /// The base revision, where it is measured side by side with them.
    pub base: Option<&'a BaseProject>,
    /// Profiles and captures are left in `output/<suite>/<variant>/`, those of the base in the
    /// folder `base` there.
    pub output: &'a Path,
    /// Constants of a trial (`--define`).
    pub overrides: &'a [String],
    /// What is done with records of verifications.
    pub records: RecordUse,
    /// What another machine built, where nothing is built here.
    pub prebuilt: Option<&'a Prebuilt>,
    /// sha256 of the list of all files that came with it.
    pub packed_files: Option<&'a str>,
    /// The file of the run, where another one may resume it.
    pub run_file: Option<&'a RunFile>,
}
