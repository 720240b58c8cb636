//! `sparsek-gate check --slice`: one machine's part of the measurements, and no verdict.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::archive::{self, Opened};
use super::judging::{Judging, refuse_without_folder};
use super::queues::ordinal;
use super::{answer, resume};
use crate::cli::CheckArgs;
use crate::config::{Config, Selected, Variant};
use crate::device::Gpu;
use crate::finding::{Error, ExitCode};
use crate::measure::{GpuPart, Place, Plan, RecordUse, RunFile, Times, measure as measure_plan};
use crate::plan::{SlicePlace, VariantPlan, shared_out};
use crate::process;
use crate::report::{self, Progress};
use crate::slice::{Manifest, Run, SliceFolder, copy_recorded, plan_sha256, profiles_in};
use crate::terms::VariantId;

pub(super) fn run(
    config: &Path,
    arguments: &CheckArgs,
    place: SlicePlace,
) -> Result<ExitCode, Error> {
    if arguments.until_input_ends {
        process::stop_at_end_of_input().map_err(Error::io("read", "standard input"))?;
    }
    let Some(output) = &arguments.slice_output else {
        return Err(Error::Usage(
            "`--slice` requires `--slice-output DIR`".to_owned(),
        ));
    };
    match (arguments.from.as_slice(), &arguments.archive) {
        ([recording], None) => of_recording(config, arguments, recording, place, output),
        ([], Some(_)) => of_archive(arguments, place, output),
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

/// Measures one slice of what was packed.
fn of_archive(arguments: &CheckArgs, place: SlicePlace, output: &Path) -> Result<ExitCode, Error> {
    let file = arguments.archive.as_deref().unwrap_or(Path::new(""));
    let mut opened = archive::open(file, arguments.archive_sha256.as_deref())?;
    if let Some(asked) = &arguments.gpu {
        opened.judging.plan.config.device = ordinal(asked)?;
    }
    let Opened {
        judging,
        base,
        same_programs,
        times,
        ..
    } = &opened;
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
    resume::refuse(arguments.resume, &opened.judging, None)?;
    // Its programs, if it was killed: what says which these are is removed next.
    RunFile::end_left_in(&profiles_in(output));
    let folder = SliceFolder::create(output, arguments.resume)?;
    let run_file = RunFile::of(&folder.profiles(), &plan.config.work, arguments.resume);
    let Slice {
        run,
        controls,
        sealed,
    } = match own.is_empty() {
        true => Slice::default(),
        false => measure(&opened, arguments, &own, &folder, &run_file)?,
    };
    let denied = run.findings.iter().filter(|finding| finding.denies());
    let mut codes = denied.map(|finding| finding.code.exit_code());
    let machine_failed = codes.any(|code| code == ExitCode::Environment);
    let findings = run.findings.clone();
    let count = own.len();
    let manifest = Manifest {
        archive: Some(opened.sha256.clone()),
        same_programs: same_programs.clone(),
        controls,
        run: Some(run),
        ..manifest(plan, place, slices)?
    };
    let sha256 = folder.finish(manifest, &sealed)?;
    run_file.end();
    if arguments.until_input_ends {
        // For who started this process, and nobody else can say it.
        answer::print(&format!("{MANIFEST_SHA256}{sha256}\n"))?;
    }
    answer::print(&report::findings_text(&findings))?;
    let code = say_whole(place, count, output)?;
    // An engine may then start the slice again, on another machine.
    Ok(match machine_failed {
        true => ExitCode::Environment,
        false => code,
    })
}

/// How the line begins by which a queue says the sha256 of its slice's manifest.
const MANIFEST_SHA256: &str = "manifest sha256 ";

/// The sha256 of a slice's manifest, of what its queue printed; `None` where it said none.
pub(super) fn manifest_of(printed: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(printed);
    let sha256 = text.lines().next()?.strip_prefix(MANIFEST_SHA256)?;
    Some(sha256.to_owned())
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
    arguments: &CheckArgs,
    own: &[VariantId],
    folder: &SliceFolder,
    run_file: &RunFile,
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
        watch: &Progress::with(arguments.verbosity.detail()),
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
