//! What a run is asked to measure, and where.

use std::collections::BTreeMap;
use std::path::Path;

use super::base::BaseProject;
use super::batch::Batch;
use super::prebuilt::Prebuilt;
use crate::config::{Selected, Variant};
use crate::measure::captures::SameProgram;
use crate::measure::cost::Times;
use crate::measure::folder::RunFile;
use crate::measure::key::verified::RecordUse;
use crate::measure::watch::Watch;
use crate::profile::Profile;
use crate::terms::VariantId;

/// What is locked of variants, on every GPU model and tier.
pub type Locks<'a> = BTreeMap<VariantId, Vec<&'a Profile>>;

/// What is measured, or only built.
pub struct Plan<'a> {
    /// The variants.
    pub selected: &'a Selected,
    /// The base revision, where one is measured beside them.
    pub base: Option<&'a BaseProject>,
    /// The variants of one slice, where not all are measured here.
    pub part: Option<&'a [VariantId]>,
    /// What is locked of them.
    pub locks: Locks<'a>,
    /// Whether variants are measured whose program is the base's.
    pub measure_all: bool,
}

impl<'a> Plan<'a> {
    /// Of all of these variants, with no base and no locks.
    pub fn of(selected: &'a Selected) -> Plan<'a> {
        Plan {
            selected,
            base: None,
            part: None,
            locks: Locks::new(),
            measure_all: true,
        }
    }
}

/// Where variants are measured.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// Profiles and captures are left in `output/<suite>/<variant>/`, those of the base in the folder
    /// `base` there.
    pub output: &'a Path,
    /// Shows the stages.
    pub watch: &'a dyn Watch,
    /// What is done with records of verifications.
    pub records: RecordUse,
    /// What another machine built, where nothing is built here.
    pub packed: Option<&'a Packed>,
    /// The file of the run, where another one may resume it.
    pub run_file: Option<&'a RunFile>,
}

impl<'a> Place<'a> {
    /// For one run alone: it reuses no verification, and no other run reuses or resumes it.
    pub fn new(output: &'a Path, watch: &'a dyn Watch) -> Place<'a> {
        Place {
            output,
            watch,
            records: RecordUse::default(),
            packed: None,
            run_file: None,
        }
    }
}

/// What another machine built, and found out.
#[derive(Debug)]
pub struct Packed {
    /// The programs.
    pub programs: Prebuilt,
    /// The variants that need no measurement.
    pub same_programs: Vec<SameProgram>,
    /// How long variants took before.
    pub times: Times,
    /// sha256 of the list of all files of both sides, which programs could read.
    pub files: String,
}

impl<'a> Plan<'a> {
    /// Whether a variant is measured here, for its own verdict.
    pub(in crate::measure) fn is_own(&self, variant: &VariantId) -> bool {
        self.part.is_none_or(|part| part.contains(variant))
    }

    /// The variants in the order in which they are measured. Immutable ones come first: a sick GPU
    /// shows in them.
    pub fn variants(&self) -> Vec<&'a Variant> {
        let mut variants = self.selected.variants();
        variants.retain(|variant| self.is_own(&variant.id));
        if !self.locks.is_empty() {
            variants.sort_by_key(|variant| !variant.immutable);
        }
        variants
    }

    /// The order to measure variants.
    pub(in crate::measure) fn order<'b>(
        &self,
        place: &Place<'b>,
        variants: &'b [&'b Variant],
    ) -> Order<'b>
    where
        'a: 'b,
    {
        Order {
            batch: Batch {
                config: &self.selected.config,
                variants,
                watch: place.watch,
            },
            base: self.base,
            overrides: &self.selected.overrides,
            place: *place,
        }
    }
}

/// An order to measure variants.
#[derive(Clone, Copy)]
pub(in crate::measure) struct Order<'a> {
    /// The variants.
    pub batch: Batch<'a>,
    /// The base revision, where it is measured side by side with them.
    pub base: Option<&'a BaseProject>,
    /// Constants of a trial (`--define`).
    pub overrides: &'a [String],
    /// Where.
    pub place: Place<'a>,
}
