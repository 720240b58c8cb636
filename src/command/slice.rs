//! `sparsek-gate check --slice`: one machine's part of the measurements, and no verdict.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::archive::{self, Opened};
use super::judging::{Judging, refuse_without_folder};
use super::{answer, resume};
use crate::cli::CheckArgs;
use crate::config::{Config, Selected, Variant};
use crate::device::Gpu;
use crate::finding::{Error, ExitCode, Finding};
use crate::measure::{
    GpuPart, Place, Plan, RecordUse, RunFile, Times, Watch, measure as measure_plan,
};
use crate::plan::{SlicePlace, VariantPlan, shared_out};
use crate::report::{self, Progress};
use crate::slice::{Manifest, Run, SliceFolder, copy_recorded, plan_sha256, profiles_in};
use crate::terms::VariantId;

pub(super) fn run(
    config: &Path,
    arguments: &CheckArgs,
    place: SlicePlace,
) -> Result<ExitCode, Error> {
    let Some(output) = &arguments.slice_output else {
        return Err(Error::Usage(
            "`--slice` requires `--slice-output DIR`".to_owned(),
        ));
    };
    match (arguments.from.as_slice(), &arguments.archive) {
        ([recording], None) => of_recording(config, arguments, recording, place, output),
        ([], Some(file)) => of_file(arguments, file, place, output),
        _ => Err(Error::Usage(
            "`--slice` requires `--archive FILE`, or one `--from DIR`\n  next: sparsek-gate archive --output gate.tar.zst".to_owned(),
        )),
    }
}

/// Copies one slice's part of a recording.
fn of_recording(
    config: &Path,
    arguments: &CheckArgs,
    recording: &Path,
    place: SlicePlace,
    output: &Path,
) -> Result<ExitCode, Error> {
    let current = Config::load(config)?;
    refuse_without_folder(recording)?;
    let judging = Judging::in_checkout(current, &arguments.trusted, None, &arguments.selection)?;
    let plan = &judging.plan;
    let variants: Vec<VariantId> = plan.variants.iter().map(|one| one.id.clone()).collect();
    let slices = shared_out(&variants, place.count, |_| None);
    let own = slices
        .get(place.index as usize - 1)
        .cloned()
        .unwrap_or_default();
    let controls = controls_beside(plan, &own);
    let folder = SliceFolder::create(output, false)?;
    for variant in own.iter().chain(&controls) {
        copy_recorded(recording, variant, &folder.profiles())?;
    }
    let count = own.len();
    let manifest = Manifest {
        recording: Some(recording.display().to_string()),
        controls,
        ..manifest(plan, place, slices)?
    };
    folder.finish(manifest, &BTreeMap::new())?;
    say_whole(place, count, output)
}

/// Measures one slice of an archive.
fn of_file(
    arguments: &CheckArgs,
    file: &Path,
    place: SlicePlace,
    output: &Path,
) -> Result<ExitCode, Error> {
    let opened = archive::open(file, arguments.archive_sha256.as_deref())?;
    let watch = Progress::with(arguments.verbosity.detail());
    let Whole {
        findings, variants, ..
    } = of_archive(&opened, place, output, arguments.resume, &watch)?;
    drop(watch);
    let denied = findings.iter().filter(|finding| finding.denies());
    let mut codes = denied.map(|finding| finding.code.exit_code());
    let machine_failed = codes.any(|code| code == ExitCode::Environment);
    answer::print(&report::findings_text(&findings))?;
    let code = say_whole(place, variants, output)?;
    // An engine may then start the slice again, on another machine.
    Ok(match machine_failed {
        true => ExitCode::Environment,
        false => code,
    })
}

/// A slice whose folder is complete.
pub(super) struct Whole {
    /// sha256 of its manifest, as it was written.
    pub sha256: String,
    findings: Vec<Finding>,
    /// How many variants it has.
    variants: usize,
}

/// Measures one slice of what was packed into a folder.
pub(super) fn of_archive(
    opened: &Opened,
    place: SlicePlace,
    output: &Path,
    resume: bool,
    watch: &dyn Watch,
) -> Result<Whole, Error> {
    let Opened {
        judging,
        base,
        same_programs,
        times,
        ..
    } = opened;
    let plan = &judging.plan;
    let is_same = |variant: &Variant| same_programs.iter().any(|same| same.variant == variant.id);
    let measured: Vec<&Variant> = plan.variants.iter().filter(|one| !is_same(one)).collect();
    let ids: Vec<VariantId> = measured.iter().map(|variant| variant.id.clone()).collect();
    let seconds = |id: &VariantId| {
        let variant = measured.iter().find(|variant| variant.id == *id)?;
        times.seconds(&match base {
            Some(_) => VariantPlan::side_by_side(variant),
            None => VariantPlan::alone(variant),
        })
    };
    let slices = shared_out(&ids, place.count, seconds);
    let own = slices
        .get(place.index as usize - 1)
        .cloned()
        .unwrap_or_default();
    resume::refuse(resume, judging, None)?;
    // Its programs, if it was killed: what says which these are is removed next.
    RunFile::end_left_in(&profiles_in(output));
    let folder = SliceFolder::create(output, resume)?;
    let run_file = RunFile::of(&folder.profiles(), &plan.config.work, resume);
    let Slice {
        run,
        controls,
        sealed,
    } = match own.is_empty() {
        true => Slice::default(),
        false => measure(opened, &own, &folder, &run_file, watch)?,
    };
    let findings = run.findings.clone();
    let manifest = Manifest {
        archive: Some(opened.sha256.clone()),
        same_programs: same_programs.clone(),
        controls,
        run: Some(run),
        ..manifest(plan, place, slices)?
    };
    let sha256 = folder.finish(manifest, &sealed)?;
    run_file.end();
    Ok(Whole {
        sha256,
        findings,
        variants: own.len(),
    })
}

/// A slice that was measured.
#[derive(Default)]
struct Slice {
    run: Run,
    controls: Vec<VariantId>,
    /// Files that are to stay as they are, with their hashes.
    sealed: BTreeMap<PathBuf, String>,
}

/// Measures the variants of a slice, and the controls that they need.
fn measure(
    opened: &Opened,
    own: &[VariantId],
    folder: &SliceFolder,
    run_file: &RunFile,
    watch: &dyn Watch,
) -> Result<Slice, Error> {
    let started = Instant::now();
    let judging = &opened.judging;
    let plan = &judging.plan;
    let gpu = Gpu::query(plan.config.device)?;
    // Whether more has to be measured is decided by the rules and the size of the whole plan.
    let rules = judging.rules()?;
    let of_slice = Plan {
        selected: plan,
        base: opened.base.as_ref(),
        part: Some(own),
        locks: rules.judge.locks(),
        measure_all: true,
    };
    let place = Place {
        output: &folder.profiles(),
        watch,
        records: RecordUse::NONE,
        packed: Some(opened.packed()),
        run_file: Some(run_file),
    };
    let measured = measure_plan(&of_slice, &place, &rules.judge)?;
    let profiles = measured.profiles.iter();
    let variants: Vec<VariantId> = profiles.map(|profile| profile.variant.clone()).collect();
    let controls = variants.iter().filter(|variant| !own.contains(variant));
    let controls = controls.cloned().collect();
    let run = Run {
        findings: measured.findings,
        chosen_launches: measured.chosen_launches,
        reused_verifications: measured.reused,
        resumed: measured.resumed,
        sick: measured.sick,
        spent: measured.spent,
        part: Some(GpuPart {
            uuid: gpu.uuid,
            name: gpu.name,
            variants,
            processes: measured.spent.profiled,
            profile_s: measured.spent.profile_s,
            wall_s: started.elapsed().as_secs_f64(),
        }),
        times: Times::of(&plan.config.work),
    };
    Ok(Slice {
        run,
        controls,
        sealed: measured.sealed,
    })
}

/// A manifest without what was measured.
fn manifest(
    plan: &Selected,
    place: SlicePlace,
    slices: Vec<Vec<VariantId>>,
) -> Result<Manifest, Error> {
    Ok(Manifest {
        schema: Manifest::SCHEMA,
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        plan: plan_sha256(plan)?,
        place,
        archive: None,
        recording: None,
        slices,
        same_programs: Vec::new(),
        controls: Vec::new(),
        run: None,
        files: BTreeMap::new(),
    })
}

/// The unchanged variants that bound the others' bands on this machine.
fn controls_beside(plan: &Selected, own: &[VariantId]) -> Vec<VariantId> {
    let of_suite = |suite: &str| own.iter().any(|variant| variant.suite == suite);
    let immutable = plan.config.variants().filter(|variant| variant.immutable);
    let controls = immutable.map(|variant| &variant.id);
    controls
        .filter(|variant| of_suite(&variant.suite) && !own.contains(variant))
        .cloned()
        .collect()
}

fn say_whole(place: SlicePlace, variants: usize, output: &Path) -> Result<ExitCode, Error> {
    let variants = match variants {
        1 => "1 variant".to_owned(),
        count => format!("{count} variants"),
    };
    answer::print(&report::clean(&format!(
        "slice {place} is complete: {variants} in {}; nothing is judged yet\n  next: sparsek-gate check --from, with the folders of all {} slices\n",
        output.display(),
        place.count
    )))?;
    Ok(ExitCode::Pass)
}
