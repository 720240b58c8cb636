//! `sparsek-gate profile`.

use super::answer::{answer_in, answer_with};
use super::archive::{self, Opened};
use super::judging::Judging;
use super::on_gpus::{self, Named, fit, on_each, words};
use super::resume;
use super::run_folder::RunFolder;
use super::select::{load, or_nothing_runs, variable};
use super::slice::{self, Check};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use serde_json::json;

use crate::cli::ProfileArgs;
use crate::config::{Config, Selected};
use crate::device::GpusAsked;
use crate::disk;
use crate::files::{PROFILE_FILE, create_work_folder, read_regular, variant_folder};
use crate::finding::{Code, Error, ExitCode, Finding, Note};
use crate::measure::{
    Place, Plan, RecordUse, RunFile, SliceOf, measure, measured_on, measured_on_none,
};
use crate::plan::SlicePlace;
use crate::profile::Profile;
use crate::report::{Progress, profiles_text};
use crate::terms::{VariantId, counted};
use crate::trust::{self, Consent};
use crate::verdict::Fewest;

/// What was profiled.
#[derive(Serialize)]
struct Content {
    folder: PathBuf,
    wall_s: f64,
    tools_wall_s: f64,
    /// The GPUs with their folders, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gpus: Vec<OnGpu>,
    profiles: Vec<Profile>,
}

/// What one of several GPUs profiled.
#[derive(Serialize)]
struct OnGpu {
    uuid: String,
    name: String,
    folder: PathBuf,
    wall_s: f64,
}

pub(super) fn run(config: &Path, arguments: &ProfileArgs) -> Result<ExitCode, Error> {
    let start = Instant::now();
    if arguments.archive.is_some() || arguments.against.is_some() || arguments.slice.is_some() {
        return for_check(config, arguments);
    }
    let judging = rules(config, arguments)?;
    let selected = &judging.plan;
    let folder = selected.profiles(arguments.output.as_deref())?;
    let pull_request = arguments.trusted.pull_request;
    resume::refuse(arguments.resume, &judging, pull_request)?;
    if let Some(asked) = &arguments.gpus {
        return each_on_gpus(arguments, judging, &folder, asked);
    }
    let run_file = RunFile::of(&folder, &selected.config.work, arguments.resume);
    let progress = Progress::default();
    let place = Place {
        // What is locked was verified in the run that measured it.
        records: RecordUse {
            reads: false,
            writes: resume::is_reviewed(&selected.config, pull_request)?,
        },
        run_file: Some(&run_file),
        ..Place::new(&folder, &progress)
    };
    let (content, findings) = profiled(selected, &place, start)?;
    drop(progress);
    let code = answer(arguments, &content, &findings)?;
    run_file.end();
    Ok(code)
}

/// The rules to measure by: those of the working tree, but in a pull request as `check` takes them. A
/// trial is judged by nobody.
fn rules(config: &Path, arguments: &ProfileArgs) -> Result<Judging, Error> {
    let ProfileArgs {
        trusted, selection, ..
    } = arguments;
    let pull_request = trust::pull_request(trusted.pull_request, variable)?;
    let is_change = pull_request.is_some() || trusted.baseline_ref.is_some();
    if !arguments.define.is_empty() || !is_change {
        let plan = load(config, selection, &arguments.define)?;
        let grounds = trust::establish(plan.config.clone(), None, Consent::default())?;
        return Judging::of(grounds, plan, None);
    }
    let judging = Judging::in_checkout(Config::load(config)?, trusted, None, selection)?;
    // It has no base to measure beside, and its checkout must be whole as that of a check.
    judging.check_out_base()?;
    Ok(judging)
}

fn profiled(
    selected: &Selected,
    place: &Place<'_>,
    start: Instant,
) -> Result<(Content, Vec<Finding>), Error> {
    let plan = Plan::of(selected);
    let measured = or_nothing_runs(selected, measure(&plan, place, &Fewest))?;
    let content = Content {
        folder: measured.folder,
        wall_s: start.elapsed().as_secs_f64(),
        tools_wall_s: measured.spent.sum_s(),
        gpus: Vec::new(),
        profiles: measured.profiles,
    };
    Ok((content, [measured.findings, measured.gaps].concat()))
}

/// Measures a check, or a slice of it, for who judges it elsewhere.
fn for_check(config: &Path, arguments: &ProfileArgs) -> Result<ExitCode, Error> {
    let output = arguments.output.as_deref().unwrap_or(Path::new("."));
    // Programs run in the folder of what was packed.
    let output = &std::path::absolute(output).map_err(Error::io("find", output))?;
    if let Some(file) = &arguments.archive {
        let opened = archive::open(file, arguments.archive_sha256.as_deref())?;
        resume::refuse(arguments.resume, &opened.judging, None)?;
        let variants =
            opened.judging.plan.variants.len() - opened.unpacked.packed.same_programs.len();
        return match &arguments.gpus {
            Some(asked) => {
                let gpus = fit(asked, &opened.judging.plan)?;
                let archive = (file.as_path(), opened.unpacked.sha256.as_str());
                slices(arguments, archive, true, (gpus, variants), output)
            }
            None => slice(arguments, &opened.check(), output),
        };
    }
    let current = Config::load(config)?;
    let (trusted, selection) = (&arguments.trusted, &arguments.selection);
    let judging = Judging::in_checkout(current, trusted, arguments.against.as_deref(), selection)?;
    resume::refuse(arguments.resume, &judging, trusted.pull_request)?;
    if let Some(asked) = &arguments.gpus {
        let gpus = fit(asked, &judging.plan)?;
        let run = RunFolder::begin(&judging.plan.config, &Progress::default())?;
        let file = run.archive();
        let packed = archive::done(&judging, true, &file)?;
        drop(judging);
        let archive = (file.as_path(), packed.content.summary.sha256.as_str());
        let measured = (gpus, packed.to_measure);
        let code = slices(arguments, archive, false, measured, output)?;
        run.end();
        return Ok(code);
    }
    let base = judging.check_out_base()?;
    let check = Check {
        judging: &judging,
        base: base.as_ref(),
        archive: None,
        packed: None,
    };
    slice(arguments, &check, output)
}

/// Measures a check, or a slice of it, on one GPU.
fn slice(arguments: &ProfileArgs, check: &Check<'_>, output: &Path) -> Result<ExitCode, Error> {
    let place = arguments.slice.unwrap_or(SlicePlace { index: 1, count: 1 });
    let watch = Progress::with(arguments.verbosity.detail());
    let whole = slice::measured(check, place, output, arguments.resume, &watch)?;
    drop(watch);
    let variants = counted(whole.variants, "variant", "variants");
    let text = format!(
        "slice {place} is complete: {variants} in {}",
        output.display()
    );
    let code = measured_for_check(arguments, &text, place.count, &whole.findings)?;
    whole.run_file.end();
    Ok(code)
}

/// Measures a check on several GPUs, a slice on each. `by_it`: it is judged by the archive.
fn slices(
    arguments: &ProfileArgs,
    archive: (&Path, &str),
    by_it: bool,
    measured: (Vec<Named>, usize),
    output: &Path,
) -> Result<ExitCode, Error> {
    let detail = arguments.verbosity.detail();
    let folder_of = |index: u32| output.join(index.to_string());
    // The slices of an earlier run must not be taken for those of this one.
    let earlier = (1..).map(folder_of).take_while(|it| SliceOf::is_in(it));
    for folder in earlier.filter(|_| !arguments.resume) {
        let _ = disk::remove_dir_all(folder);
    }
    let slices = on_gpus::slices(
        (archive, by_it),
        measured,
        folder_of,
        arguments.resume,
        detail,
    )?;
    let mut findings = Vec::new();
    for slice in &slices {
        match &slice.whole {
            Ok(whole) => findings.extend(whole.findings.iter().cloned()),
            Err(why) => {
                let message = format!("{} is not used: {why}", slice.words);
                let code = Code::SliceUnusable;
                findings.push(Finding::of_project(code, message, "measure again"));
            }
        }
    }
    let text = format!("{} slices in {}", slices.len(), output.display());
    let code = measured_for_check(arguments, &text, 1, &findings)?;
    slices.into_iter().for_each(|slice| drop(slice.end()));
    Ok(code)
}

/// Says what was measured for a check. Only that the machine failed, or left no slice, is no success: an
/// engine may then
/// measure again, on another one.
fn measured_for_check(
    arguments: &ProfileArgs,
    text: &str,
    slices: u32,
    findings: &[Finding],
) -> Result<ExitCode, Error> {
    let next = match slices {
        1 => "sparsek-gate check --from, with this folder".to_owned(),
        count => format!("sparsek-gate check --from, with the folders of all {count} slices"),
    };
    let denied = findings.iter().filter(|finding| finding.denies());
    let codes: Vec<Code> = denied.map(|finding| finding.code).collect();
    let is_of_machine = |code: &Code| code.exit_code() == ExitCode::Environment;
    let code = match codes.iter().any(is_of_machine) {
        true => ExitCode::Environment,
        false if codes.contains(&Code::SliceUnusable) => ExitCode::Inconclusive,
        false => ExitCode::Pass,
    };
    let content = json!({ "slices": slices, "measured": text });
    let detail = arguments.verbosity.detail();
    answer_with(code, detail, arguments.format, content, findings, || {
        format!("{text}; nothing is judged yet\n  next: {next}\n")
    })?;
    Ok(code)
}

/// Profiles every variant on each of several GPUs: builds once, and lets each GPU profile what was
/// packed.
fn each_on_gpus(
    arguments: &ProfileArgs,
    judging: Judging,
    folder: &Path,
    asked: &GpusAsked,
) -> Result<ExitCode, Error> {
    let start = Instant::now();
    let selected = &judging.plan;
    let gpus = fit(asked, selected)?;
    if arguments.output.is_none() {
        create_work_folder(&selected.config.work)?;
    }
    disk::create_dir_all(folder).map_err(Error::io("create", folder))?;
    let variants: Vec<VariantId> = selected.variants.iter().map(|it| it.id.clone()).collect();
    // Where this run is killed, nobody must take the profiles of an earlier one for its own.
    measured_on_none(folder, &variants)?;
    let detail = arguments.verbosity.detail();
    let run = RunFolder::begin(&selected.config, &Progress::with(detail))?;
    let archive = run.archive();
    let packed = archive::done(&judging, false, &archive)?;
    drop(judging);
    let ended = on_each(
        (&archive, &packed.content.summary.sha256),
        &gpus,
        |_, gpu, opened| of_archive(opened, &folder.join(&gpu.short), arguments, &gpu.short),
    )?;
    let mut content = Content {
        folder: folder.to_path_buf(),
        wall_s: 0.0,
        tools_wall_s: packed.spent.sum_s(),
        gpus: Vec::new(),
        profiles: Vec::new(),
    };
    let (mut findings, mut run_files) = (Vec::new(), Vec::new());
    for (Named { gpu, short }, ended) in gpus.iter().zip(ended) {
        content.gpus.push(OnGpu {
            uuid: gpu.uuid.clone(),
            name: gpu.name.clone(),
            folder: folder.join(short),
            wall_s: ended.as_ref().map_or(0.0, |(own, ..)| own.wall_s),
        });
        match ended {
            Ok((own, found, run_file)) => {
                findings.extend(altered(&own.folder, &own.profiles));
                content.tools_wall_s += own.tools_wall_s;
                content.profiles.extend(own.profiles);
                let on_gpu = |finding: Finding| finding.with(Note::OnGpu(short.clone()));
                findings.extend(found.into_iter().map(on_gpu));
                run_files.push(run_file);
            }
            Err(error) => findings.push(Finding::of_project(
                Code::NotMeasured,
                format!(
                    "nothing counts of the profiles on {}: {}",
                    gpu.uuid,
                    words(&error)
                ),
                "profile again",
            )),
        }
    }
    content.wall_s = start.elapsed().as_secs_f64();
    // Otherwise fewer GPUs than were asked for would be locked, or what an earlier run measured.
    let is_lacking = |finding: &Finding| {
        finding.code == Code::NotMeasured && finding.variant.is_none()
            || finding.code == Code::AlteredDuringRun
    };
    if !findings.iter().any(is_lacking) {
        let folders: Vec<String> = gpus.into_iter().map(|gpu| gpu.short).collect();
        measured_on(folder, &variants, &folders)?;
    }
    let code = answer(arguments, &content, &findings)?;
    run_files
        .into_iter()
        .for_each(|run_file| drop(run_file.end()));
    run.end();
    Ok(code)
}

/// Profiles what was packed, on one of several GPUs.
fn of_archive(
    opened: &Opened,
    folder: &Path,
    arguments: &ProfileArgs,
    gpu: &str,
) -> Result<(Content, Vec<Finding>, RunFile), Error> {
    let start = Instant::now();
    let selected = &opened.judging.plan;
    let run_file = RunFile::of(folder, &selected.config.work, arguments.resume);
    let watch = Progress::of_gpu(arguments.verbosity.detail(), gpu);
    let place = Place {
        packed: Some(&opened.unpacked.packed),
        run_file: Some(&run_file),
        ..Place::new(folder, &watch)
    };
    let (content, findings) = profiled(selected, &place, start)?;
    Ok((content, findings, run_file))
}

/// The profiles in a folder that are no longer what was written: programs on other GPUs ran when its
/// GPU had ended.
fn altered(folder: &Path, written: &[Profile]) -> Vec<Finding> {
    let is_kept = |profile: &&Profile| {
        let path = variant_folder(folder, &profile.variant).join(PROFILE_FILE);
        read_regular(&path).is_ok_and(|bytes| bytes == profile.to_json().as_bytes())
    };
    let altered = written.iter().filter(|profile| !is_kept(profile));
    altered
        .map(|profile| {
            Finding::deny(
                Code::AlteredDuringRun,
                &profile.variant,
                format!(
                    "its profile in {} changed after it was measured",
                    folder.display()
                ),
                "find out which program writes there, and profile again",
            )
        })
        .collect()
}

fn answer(
    arguments: &ProfileArgs,
    content: &Content,
    findings: &[Finding],
) -> Result<ExitCode, Error> {
    let detail = arguments.verbosity.detail();
    answer_in(detail, arguments.format, content, findings, || {
        let times = format!(
            "{:.1} s, {:.1} s of it in nvcc, the programs and ncu; profiles in {}\n",
            content.wall_s,
            content.tools_wall_s,
            content.folder.display()
        );
        if content.gpus.is_empty() {
            return format!("{}\n{times}", profiles_text(&content.profiles, detail));
        }
        let mut text = String::new();
        for gpu in &content.gpus {
            let of_gpu =
                |profile: &&Profile| profile.provenance.gpu_uuid.as_ref() == Some(&gpu.uuid);
            let profiles = content.profiles.iter().filter(of_gpu).cloned();
            let profiles: Vec<Profile> = profiles.collect();
            text.push_str(&format!(
                "{}, {:.1} s, {}\n{}\n",
                gpu.uuid,
                gpu.wall_s,
                gpu.folder.display(),
                profiles_text(&profiles, detail)
            ));
        }
        text + &times
    })
}
