//! Measures a part of a check for who judges it elsewhere: `profile --archive`, `--against` and `--slice`.

use std::path::Path;
use std::time::Instant;

use super::archive::Opened;
use super::judging::Judging;
use crate::config::Variant;
use crate::device::Gpu;
use crate::finding::{Error, Finding};
use crate::git;
use crate::measure::{
    BaseProject, Captures, GpuPart, Packed, Place, Plan, RunFile, SliceOf, Times, Watch, measure,
};
use crate::plan::{SlicePlace, VariantPlan, shared_out};
use crate::share::plan_sha256;
use crate::terms::VariantId;

/// A check whose verdict comes later.
pub(super) struct Check<'a> {
    /// The rules, and the variants.
    pub judging: &'a Judging,
    /// The base that is measured beside them.
    pub base: Option<&'a BaseProject>,
    /// sha256 of the archive that it is judged by; `None` where a checkout is.
    pub archive: Option<&'a str>,
    /// What was packed; `None` where a checkout is measured. There each machine knows other times, and all
    /// must share out alike.
    pub packed: Option<&'a Packed>,
}

impl Opened {
    /// The check of which it has all that a machine needs to measure it.
    pub fn check(&self) -> Check<'_> {
        Check {
            judging: &self.judging,
            base: self.unpacked.base.as_ref(),
            archive: Some(&self.unpacked.sha256),
            packed: Some(&self.unpacked.packed),
        }
    }
}

/// A slice whose folder is complete.
pub(super) struct Whole {
    /// How many variants it has.
    pub variants: usize,
    /// What was found.
    pub findings: Vec<Finding>,
    /// Its record, by which an interrupted run would go on until the slice is reported.
    pub run_file: RunFile,
}

/// Measures a slice into a folder.
pub(super) fn measured(
    check: &Check<'_>,
    place: SlicePlace,
    output: &Path,
    resume: bool,
    watch: &dyn Watch,
) -> Result<Whole, Error> {
    let (judging, base, packed) = (check.judging, check.base, check.packed);
    let selected = &judging.plan;
    let same_programs = packed.map_or(&[][..], |packed| &packed.same_programs);
    let is_same = |variant: &Variant| same_programs.iter().any(|same| same.variant == variant.id);
    let measured = selected.variants.iter().filter(|one| !is_same(one));
    let ids: Vec<VariantId> = measured.map(|variant| variant.id.clone()).collect();
    let seconds = |id: &VariantId| {
        let variant = selected.config.variant(id)?;
        let plan = VariantPlan::of(variant, base.is_some());
        packed?.times.seconds(&plan)
    };
    let of = SliceOf {
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        plan: plan_sha256(selected)?,
        place,
        archive: check.archive.map(str::to_owned),
        revisions: [
            git::revision(&selected.config.root),
            base.and_then(BaseProject::commit).map(str::to_owned),
        ],
        slices: shared_out(&ids, place.count, seconds),
        same_programs: same_programs.to_vec(),
    };
    let own = of.own().to_vec();
    let work = &selected.config.work;
    let run_file = RunFile::of(output, work, resume).of_slice(of);
    let unusable = run_file.begin(watch)?;
    let mut captures = Captures::default();
    if !own.is_empty() {
        let place = Place {
            packed,
            run_file: Some(&run_file),
            ..Place::new(output, watch)
        };
        captures = of_plan(judging, base, &own, &place)?;
    }
    captures.findings.splice(0..0, unusable);
    let findings = captures.findings.clone();
    run_file.whole_slice(captures, Times::of(work))?;
    Ok(Whole {
        variants: own.len(),
        findings,
        run_file,
    })
}

/// Measures some variants of a check.
fn of_plan(
    judging: &Judging,
    base: Option<&BaseProject>,
    own: &[VariantId],
    place: &Place<'_>,
) -> Result<Captures, Error> {
    let started = Instant::now();
    let gpu = Gpu::query(judging.plan.config.device)?;
    // Whether more has to be measured is decided by the rules and the size of the whole plan.
    let rules = judging.rules()?;
    let plan = Plan {
        selected: &judging.plan,
        base,
        part: Some(own),
        locks: rules.judge.locks(),
        measure_all: true,
    };
    let mut captures = measure(&plan, place, &rules.judge)?;
    let profiles = captures.profiles.iter();
    captures.gpus.push(GpuPart {
        uuid: gpu.uuid,
        name: gpu.name,
        variants: profiles.map(|profile| profile.variant.clone()).collect(),
        processes: captures.spent.profiled,
        profile_s: captures.spent.profile_s,
        wall_s: started.elapsed().as_secs_f64(),
    });
    Ok(captures)
}
