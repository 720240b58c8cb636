//! What a run measured of its variants, and what it found.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::cost::Spent;
use super::journal::Resumed;
use super::verified::ReusedVerification;
use crate::evidence::SickGpu;
use crate::finding::Finding;
use crate::profile::Profile;
use crate::terms::VariantId;
use crate::verdict::Schedule;

/// What was measured.
#[derive(Debug, Default)]
pub struct Measured {
    /// Fresh profiles, of the variants that could be measured.
    pub profiles: Vec<Profile>,
    /// Fresh profiles of the base revision, of the variants that were measured side by side.
    pub bases: Vec<Profile>,
    /// Static profiles of the variants that were built by the compiler.
    pub compiled: Vec<Profile>,
    /// The same of the base revision.
    pub compiled_bases: Vec<Profile>,
    /// Why the others could not be measured, and what else happened.
    pub findings: Vec<Finding>,
    /// What the profiles lack. Who compares them finds it again, and reports it in more detail.
    pub gaps: Vec<Finding>,
    /// Verifications of earlier runs that were not repeated.
    pub reused: Vec<ReusedVerification>,
    /// Time inside the programs that were started.
    pub spent: Spent,
    /// What was taken over of an interrupted run.
    pub resumed: Vec<Resumed>,
    /// How many launches were chosen for variants that were measured side by side.
    pub schedules: Vec<(VariantId, Schedule)>,
    /// The files that no program may change once they are written, with their hashes.
    pub sealed: BTreeMap<PathBuf, String>,
    /// The GPU, where its driver reported a defect: all that it measured is set aside then.
    pub sick: Vec<SickGpu>,
    /// Variants that were not begun, because the GPU was sick before.
    pub not_begun: Vec<VariantId>,
}
