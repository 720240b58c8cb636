//! `sparsek-gate profile`.

use super::answer::answer_in;
use super::archive;
use super::on_gpus::ON_GPUS;
use super::place::{Place, text};
use super::queues::{Named, QueueOrder, named, ordinal, refuse_unfit};
use super::select::{load, variable};
use super::{dry_run, resume};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::cli::{ArchiveArgs, Format, ProfileArgs, TrustArgs};
use crate::config::Selected;
use crate::device::GpusAsked;
use crate::engine::host;
use crate::files::{PROFILE_FILE, create_work_folder, read_regular, variant_folder};
use crate::finding::{Code, Error, ExitCode, Finding, Note};
use crate::measure::{Locks, Place as Measuring, Plan, RecordUse, RunFile, Watch as _, measure};
use crate::process;
use crate::profile::{OnGpus, Profile};
use crate::report::{Progress, profiles_text};
use crate::terms::VariantId;
use crate::trust;
use crate::verdict::Fewest;

/// What was profiled.
#[derive(Serialize, Deserialize)]
struct Content {
    folder: PathBuf,
    wall_s: f64,
    tools_wall_s: f64,
    /// The GPUs with their folders, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    gpus: Vec<OnGpu>,
    profiles: Vec<Profile>,
}

/// What one of several GPUs profiled.
#[derive(Serialize, Deserialize)]
struct OnGpu {
    uuid: String,
    name: String,
    folder: PathBuf,
    wall_s: f64,
}

pub(super) fn run(config: &Path, arguments: &ProfileArgs) -> Result<ExitCode, Error> {
    if arguments.until_input_ends {
        process::stop_at_end_of_input().map_err(Error::io("read", "standard input"))?;
    }
    let start = Instant::now();
    if let Some(file) = &arguments.archive {
        return of_archive(file, arguments, start);
    }
    let selected = load(config, &arguments.selection, Some(&arguments.trial))?;
    let folder = selected.profiles(arguments.output.as_deref())?;
    if arguments.dry_run {
        return dry_run::of_profile(&selected, arguments);
    }
    resume::refuse_unreviewed(arguments.resume, &selected.config)?;
    if let Some(asked) = &arguments.gpus {
        let (content, findings) = on_gpus(config, arguments, &selected, &folder, asked)?;
        let code = answer(arguments, &content, &findings)?;
        for gpu in &content.gpus {
            RunFile::end_in(&gpu.folder);
        }
        return Ok(code);
    }
    let run_file = RunFile::of(&folder, &selected.config.work, arguments.resume);
    let progress = Progress::new();
    let place = Measuring {
        output: &folder,
        watch: &progress,
        // What is locked was verified in the run that measured it.
        records: RecordUse {
            reads: false,
            writes: trust::is_of_reviewed_code(&selected.config.root, variable),
        },
        packed: None,
        run_file: Some(&run_file),
    };
    let (content, findings) = profiled(&selected, &place, start)?;
    drop(progress);
    let code = answer(arguments, &content, &findings)?;
    run_file.end();
    Ok(code)
}

/// Profiles what was packed, on one of several GPUs.
fn of_archive(file: &Path, arguments: &ProfileArgs, start: Instant) -> Result<ExitCode, Error> {
    let mut opened = archive::open(file, arguments.archive_sha256.as_deref())?;
    if let Some(asked) = &arguments.gpu {
        opened.judging.plan.config.device = ordinal(asked)?;
    }
    let selected = &opened.judging.plan;
    resume::refuse_unreviewed(arguments.resume, &selected.config)?;
    let folder = selected.profiles(arguments.output.as_deref())?;
    let run_file = RunFile::of(&folder, &selected.config.work, arguments.resume);
    let place = Measuring {
        output: &folder,
        watch: &Progress::new(),
        records: RecordUse::NONE,
        packed: Some(opened.packed()),
        run_file: Some(&run_file),
    };
    let (content, findings) = profiled(selected, &place, start)?;
    let code = answer(arguments, &content, &findings)?;
    // Otherwise who started this process may still have to go on with it.
    if !arguments.until_input_ends {
        run_file.end();
    }
    Ok(code)
}

fn profiled(
    selected: &Selected,
    place: &Measuring<'_>,
    start: Instant,
) -> Result<(Content, Vec<Finding>), Error> {
    let plan = Plan {
        selected,
        base: None,
        part: None,
        locks: Locks::default(),
        measure_all: true,
    };
    let measured = measure(&plan, place, &Fewest)?;
    let content = Content {
        folder: measured.folder,
        wall_s: start.elapsed().as_secs_f64(),
        tools_wall_s: measured.spent.sum_s(),
        gpus: Vec::new(),
        profiles: measured.profiles,
    };
    Ok((content, [measured.findings, measured.gaps].concat()))
}

/// Profiles every variant on each of several GPUs: builds once, and lets a process for each GPU
/// profile what was packed.
fn on_gpus(
    config: &Path,
    arguments: &ProfileArgs,
    selected: &Selected,
    folder: &Path,
    asked: &GpusAsked,
) -> Result<(Content, Vec<Finding>), Error> {
    let start = Instant::now();
    let gpus = named(asked)?;
    refuse_unfit(selected, &gpus)?;
    if arguments.output.is_none() {
        create_work_folder(&selected.config.work)?;
    }
    std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    let variants: Vec<&VariantId> = selected.variants.iter().map(|it| &it.id).collect();
    // Where this run is killed, nobody must take the profiles of an earlier one for its own.
    OnGpus::forget(folder, &variants)?;
    let place = Place::new(&selected.config, ON_GPUS)?;
    place.sweep();
    let packed = archive::done(config, &archive_arguments(arguments, &place.archive()))?;
    if process::interrupted() {
        return Err(Error::Interrupted);
    }
    let order = QueueOrder::new(&place, "profile", &packed.content.sha256)?;
    let queue = |gpu: Named| {
        let short = gpu.short.clone();
        let output = text(&folder.join(&short))?;
        let own = ["--output", &output, "--format", "json"];
        let own: Vec<&str> = own
            .into_iter()
            .chain(resume::again(arguments.resume))
            .collect();
        order.queue(gpu, "the profiles", &own, &short)
    };
    let queues: Vec<host::Queue> = gpus.into_iter().map(queue).collect::<Result<_, _>>()?;
    let progress = Progress::with(arguments.verbosity.detail());
    let ended = host::run(&queues, &mut |line| progress.notes(line))?;
    drop(progress);
    let (mut content, findings) = collected(folder, &queues, &ended);
    content.tools_wall_s += packed.spent.sum_s();
    content.wall_s = start.elapsed().as_secs_f64();
    // Otherwise fewer GPUs than were asked for would be locked, or what an earlier run measured.
    let is_lacking = |finding: &Finding| {
        finding.code == Code::NotMeasured && finding.variant.is_none()
            || finding.code == Code::AlteredDuringRun
    };
    if !findings.iter().any(is_lacking) {
        let folders: Vec<String> = queues.iter().map(|queue| queue.short.clone()).collect();
        OnGpus::note(folder, &variants, &folders)?;
    }
    Ok((content, findings))
}

/// What queues that have ended profiled into a folder, and what they found.
fn collected(
    folder: &Path,
    queues: &[host::Queue],
    ended: &[host::Ended],
) -> (Content, Vec<Finding>) {
    let mut content = Content {
        folder: folder.to_path_buf(),
        wall_s: 0.0,
        tools_wall_s: 0.0,
        gpus: Vec::new(),
        profiles: Vec::new(),
    };
    let mut findings = Vec::new();
    for (queue, ended) in queues.iter().zip(ended) {
        let of_gpu = folder.join(&queue.short);
        match answered(&ended.printed) {
            Ok(answer) => {
                findings.extend(altered(&of_gpu, &answer.content.profiles));
                content.tools_wall_s += answer.content.tools_wall_s;
                content.profiles.extend(answer.content.profiles);
                let on_gpu = |finding: Finding| finding.with(Note::OnGpu(queue.short.clone()));
                findings.extend(answer.findings.into_iter().map(on_gpu));
            }
            Err(why) => findings.push(Finding::of_project(
                Code::NotMeasured,
                format!(
                    "nothing counts of {}: {}; {why}",
                    queue.words(),
                    ended.ending
                ),
                "read that log, and profile again",
            )),
        }
        content.gpus.push(OnGpu {
            uuid: queue.gpu.uuid.clone(),
            name: queue.gpu.name.clone(),
            folder: of_gpu,
            wall_s: ended.wall.as_secs_f64(),
        });
    }
    (content, findings)
}

/// What a queue printed.
#[derive(Deserialize)]
struct Answered {
    #[serde(flatten)]
    content: Content,
    findings: Vec<Finding>,
}

/// The profiles in a folder that are no longer what their queue wrote: programs on other GPUs ran
/// when it had ended.
fn altered(folder: &Path, printed: &[Profile]) -> Vec<Finding> {
    let is_kept = |profile: &&Profile| {
        let path = variant_folder(folder, &profile.variant).join(PROFILE_FILE);
        read_regular(&path).is_ok_and(|bytes| bytes == profile.to_json().as_bytes())
    };
    let altered = printed.iter().filter(|profile| !is_kept(profile));
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

/// What a queue printed; in words, why there is no whole answer.
fn answered(printed: &[u8]) -> Result<Answered, String> {
    if printed.is_empty() {
        return Err("it printed nothing".to_owned());
    }
    serde_json::from_slice(printed).map_err(|error| error.to_string())
}

/// By the configuration that is here, as without an archive.
fn archive_arguments(arguments: &ProfileArgs, output: &Path) -> ArchiveArgs {
    ArchiveArgs {
        selection: arguments.selection.clone(),
        output: output.to_owned(),
        against: None,
        measure_all: false,
        trusted: TrustArgs {
            baseline_ref: Some("none".to_owned()),
            accept: Vec::new(),
            pull_request: None,
        },
        format: Format::Text,
    }
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
