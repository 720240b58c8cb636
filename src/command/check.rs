//! `sparsek-gate check`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::from::{self, Measured};
use super::judging::{Judging, refuse_targets};
use super::on_gpus;
use super::run_folder::RunFolder;
use super::select::{or_nothing_runs, variable};
use super::{answer, archive, resume};
use crate::cli::CheckArgs;
use crate::config::Config;
use crate::device::Gpu;
use crate::disk;
use crate::files::PROFILE_FILE;
use crate::finding::{Error, ExitCode};
use crate::judge::{Origin, Outcome};
use crate::measure::{BaseProject, Place, Plan, RecordUse, RunFile, compile, measure};
use crate::process;
use crate::report::{self, Progress, Target};
use crate::trust::{self, Authority};

pub(super) fn run(config: &Path, arguments: &CheckArgs) -> Result<ExitCode, Error> {
    let started = Instant::now();
    let targets = report::targets(&arguments.report)?;
    if arguments.from.is_empty() {
        trust::refuse_in_target(variable)?;
    }
    let mut run = Started::default();
    let judged = judged(config, arguments, &targets, &mut run);
    let judged = judged.and_then(|outcome| match process::interrupted() {
        true => Err(Error::Interrupted),
        false => Ok(outcome),
    });
    let (mut outcome, ended) = answer::or_ended(judged, origin(arguments))?;
    if ended.is_some() {
        outcome.authority = run.authority;
    }
    if outcome.spent.is_some() && arguments.from.is_empty() {
        outcome.wall_s = Some(started.elapsed().as_secs_f64());
    }
    let detail = arguments.verbosity.detail();
    let is_whole = ended.is_none();
    let code = answer::report(&outcome, ended, arguments.format, detail, &targets)?;
    // Until everything is said another run could still have to go on with it.
    if is_whole {
        run.run_file.map(RunFile::end);
        run.folder.into_iter().for_each(RunFolder::end);
    }
    Ok(code)
}

/// What is known of a run, however it ends.
#[derive(Default)]
struct Started {
    /// Whose rules it judges by.
    authority: Authority,
    /// Where it notes what it measures.
    run_file: Option<RunFile>,
    /// Where GPUs of this host measured.
    folder: Option<RunFolder>,
}

/// Where the profiles that are asked for come from.
fn origin(arguments: &CheckArgs) -> Origin {
    match arguments.from.first() {
        Some(folder) if arguments.archive.is_none() => {
            Origin::Recorded(folder.display().to_string())
        }
        None if arguments.r#static => Origin::Compiled,
        _ => Origin::Measured,
    }
}

/// Judges slices by the rules of the archive that they were measured from.
fn of_slices(
    file: &Path,
    arguments: &CheckArgs,
    targets: &[Target],
    run: &mut Started,
) -> Result<Outcome, Error> {
    let Some(sha256) = &arguments.archive_sha256 else {
        return Err(Error::Usage(
            "`--from` with `--archive` requires `--archive-sha256 HASH`\n  next: take it from the job that packed the archive"
                .to_owned(),
        ));
    };
    let read = arguments.from.iter().map(PathBuf::as_path);
    let read: Vec<&Path> = read.chain([file]).collect();
    refuse_targets(targets, None, &read)?;
    let opened = archive::open(file, Some(sha256))?;
    run.authority.clone_from(&opened.judging.grounds.authority);
    from::by_archive(&opened, &arguments.from, &Measured::default())
}

/// Lets GPUs of this host measure slices, and judges them.
fn of_gpus(
    config: &Path,
    arguments: &CheckArgs,
    targets: &[Target],
    run: &mut Started,
) -> Result<Outcome, Error> {
    let current = Config::load(config)?;
    refuse_targets(targets, Some(&current), &[])?;
    let on_gpus = on_gpus::measured(current, arguments)?;
    let folder = run.folder.insert(on_gpus.run);
    let opened = archive::open(&folder.archive(), Some(&on_gpus.sha256))?;
    run.authority.clone_from(&opened.judging.grounds.authority);
    from::by_archive(&opened, &on_gpus.folders, &on_gpus.measured)
}

fn judged(
    config: &Path,
    arguments: &CheckArgs,
    targets: &[Target],
    run: &mut Started,
) -> Result<Outcome, Error> {
    if arguments.gpus.is_some() {
        return of_gpus(config, arguments, targets, run);
    }
    if let Some(file) = &arguments.archive {
        return of_slices(file, arguments, targets, run);
    }
    let current = Config::load(config)?;
    let read: Vec<&Path> = arguments.from.iter().map(PathBuf::as_path).collect();
    refuse_targets(targets, Some(&current), &read)?;
    let known = current.selectable();
    let recorded = |name: &&String| {
        let is_name = !name.is_empty() && !name.starts_with('.') && !name.ends_with('/');
        let has = |folder: &Path| {
            let inner = disk::read_dir(folder).into_iter().flatten();
            let mut folders = inner.map(|one| one.path).chain([folder.to_owned()]);
            folders.any(|one| disk::is_file(one.join(PROFILE_FILE)))
        };
        is_name && read.iter().any(|from| has(&from.join(name)))
    };
    let mut others = arguments.selection.names.iter();
    // A variant that has a matrix now is several.
    let is_known = |name: &str| {
        known
            .iter()
            .any(|one| one == name || one.starts_with(&format!("{name}-")))
    };
    if let Some(name) = others.find(|name| !is_known(name) && recorded(name)) {
        let file = current.path.display();
        return Err(Error::Usage(format!(
            "the recording has `{name}`, and {file} has no such variant\n  next: if it was removed, check without its name; if it is of another project, run the check there, or name its configuration: `-C FILE`"
        )));
    }
    let against = arguments.against.as_deref();
    let mut judging =
        Judging::in_checkout(current, &arguments.trusted, against, &arguments.selection)?;
    judging.plan = judging.plan.strict(arguments.strict);
    run.authority.clone_from(&judging.grounds.authority);
    resume::refuse(arguments.resume, &judging, arguments.trusted.pull_request)?;
    if !arguments.from.is_empty() {
        return from::recorded(&judging, &arguments.from);
    }
    // A slip in the revision is reported before anything is asked of the machine.
    let base = judging.check_out_base()?;
    measured(&judging, base.as_ref(), arguments, run)
}

/// Builds or measures the variants, and judges them.
fn measured(
    judging: &Judging,
    base: Option<&BaseProject>,
    arguments: &CheckArgs,
    run: &mut Started,
) -> Result<Outcome, Error> {
    let selected = &judging.plan;
    if !arguments.r#static && base.is_none() {
        // Without a GPU nothing can be measured, and that comes before what is wrong with a lock.
        or_nothing_runs(selected, Gpu::query(selected.config.device))?;
    }
    let rules = judging.rules()?;
    let plan = Plan {
        selected,
        base,
        part: None,
        locks: rules.judge.locks(),
        measure_all: arguments.measure_all,
    };
    let folder = selected.profiles(arguments.output.as_deref())?;
    let run_file = RunFile::of(&folder, &selected.config.work, arguments.resume);
    let pull_request = arguments.trusted.pull_request;
    let progress = Progress::with(arguments.verbosity.detail());
    let place = Place {
        records: RecordUse {
            reads: true,
            writes: resume::is_reviewed(&selected.config, pull_request)?,
        },
        run_file: Some(run.run_file.insert(run_file)),
        ..Place::new(&folder, &progress)
    };
    let captures = match arguments.r#static {
        true => compile(&plan, &place),
        false => measure(&plan, &place, &rules.judge),
    }?;
    Ok(judging.judged(captures, &rules))
}
