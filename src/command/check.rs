//! `sparsek-gate check`.

use std::path::Path;
use std::time::Instant;

use super::select::{select, variable};
use super::{answer, dry_run};
use crate::baseline::Store;
use crate::cli::CheckArgs;
use crate::config::{Config, Selected};
use crate::device::Gpu;
use crate::finding::{Error, ExitCode};
use crate::judge::{
    Fresh, Judge, Origin, Outcome, places, read_recorded, trends, unchecked, waive,
};
use crate::measure::{BaseProject, RecordUse};
use crate::process;
use crate::report::{self, Capability, Progress, Target};
use crate::trust::{self, Asked, Authority, Bases, Consent, Grounds};

pub(super) fn run(config: &Path, arguments: &CheckArgs) -> Result<ExitCode, Error> {
    if arguments.slice.is_some() || arguments.archive.is_some() {
        return Err(Error::Usage(
            "this build cannot measure archives and slices yet".to_owned(),
        ));
    }
    if arguments.dry_run {
        return dry_run(config, arguments);
    }
    let started = Instant::now();
    let targets = report::targets(&arguments.report)?;
    let mut authority = Authority::default();
    let (mut outcome, ended) = match judged(config, arguments, &targets, &mut authority) {
        Ok(outcome) => (outcome, None),
        Err(refused @ Error::Usage(_)) => return Err(refused),
        // The report must say why there is no verdict.
        Err(error) => {
            let mut outcome = Outcome::new(origin(arguments));
            outcome.authority = authority;
            outcome.ended = Some(answer::ended(&error));
            (outcome, Some(error))
        }
    };
    if outcome.spent.is_some() {
        outcome.wall_s = Some(started.elapsed().as_secs_f64());
    }
    let detail = arguments.verbosity.detail();
    answer::report(&outcome, ended, arguments.format, detail, &targets)
}

/// Where the profiles that are asked for come from.
fn origin(arguments: &CheckArgs) -> Origin {
    match &arguments.from {
        Some(folder) => Origin::Recorded(folder.display().to_string()),
        None if arguments.r#static => Origin::Compiled,
        None => Origin::Measured,
    }
}

/// Prints what the check would do.
fn dry_run(config: &Path, arguments: &CheckArgs) -> Result<ExitCode, Error> {
    let current = Config::load(config)?;
    let bases = bases(&current, arguments)?;
    let grounds = trust::establish(current, bases.root, &consent(arguments)?)?;
    let selected = select(grounds.config.clone(), &arguments.selection, None)?;
    process::pass(&selected.config.env_pass);
    dry_run::of_check(
        &selected,
        &grounds.store,
        arguments,
        bases.against.as_deref(),
    )
}

/// What was accepted, for the pull request of this run.
fn consent(arguments: &CheckArgs) -> Result<Consent, Error> {
    let pull_request = trust::pull_request(arguments.pull_request, variable)?;
    Consent::new(&arguments.accept, pull_request)
}

/// Whose rules count, and the commit to compare with.
fn bases(current: &Config, arguments: &CheckArgs) -> Result<Bases, Error> {
    let asked = Asked {
        baseline_ref: arguments.baseline_ref.as_deref(),
        against: arguments.against.as_deref(),
    };
    trust::bases(&current.root, asked, variable)
}

fn judged(
    config: &Path,
    arguments: &CheckArgs,
    targets: &[Target],
    authority: &mut Authority,
) -> Result<Outcome, Error> {
    let current = Config::load(config)?;
    for target in targets {
        refuse_target(&target.path, &current, arguments.from.as_deref())?;
    }
    let bases = bases(&current, arguments)?;
    let grounds = trust::establish(current, bases.root, &consent(arguments)?)?;
    let Grounds {
        config,
        store,
        authority: found,
        findings,
        ..
    } = &grounds;
    authority.clone_from(found);
    let plan = select(config.clone(), &arguments.selection, None)?;
    process::pass(&plan.config.env_pass);
    let mut outcome = Outcome::new(origin(arguments));
    outcome.authority = authority.clone();
    outcome.findings.extend(findings.iter().cloned());
    outcome.findings.extend(trust::credentials(&plan.config));
    // Before a program could write to the copy of the base's locks.
    let unchecked = unchecked(&plan, store)?;
    match &arguments.from {
        Some(folder) => {
            if !folder.is_dir() {
                return Err(Error::Usage(format!(
                    "`--from {}` is not a folder\n  next: `profile --output DIR` makes one, on a machine with a GPU",
                    folder.display()
                )));
            }
            let (judge, of_locks) = Judge::new(&plan, store)?;
            let recorded = read_recorded(folder, &plan, &judge, &mut outcome)?;
            outcome.findings.extend(of_locks);
            judge.all(&recorded, &mut outcome);
        }
        None => fresh(
            &plan,
            store,
            arguments,
            bases.against.as_deref(),
            &mut outcome,
        )?,
    };
    outcome.findings.extend(unchecked);
    waive(&plan.config.waivers, &mut outcome);
    outcome.places = places(&plan, &outcome);
    let forms = targets.iter().map(|target| target.format);
    if forms
        .chain([arguments.format])
        .any(|form| form.has(Capability::Trends))
    {
        outcome.trends = trends(&plan, store, &grounds.baselines, &outcome)?;
    }
    Ok(outcome)
}

/// Builds or measures the variants, and judges them.
fn fresh(
    plan: &Selected,
    store: &Store,
    arguments: &CheckArgs,
    against: Option<&str>,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    // A slip in the revision is reported before anything is asked of the machine.
    let base = against.map(|commit| BaseProject::check_out(&plan.config, commit));
    let base = base.transpose()?;
    trust::refuse_untracked(&plan.config)?;
    if !arguments.r#static && base.is_none() {
        // Without a GPU nothing can be measured, and that comes before what is wrong with a lock.
        Gpu::query(plan.config.device)?;
    }
    let (judge, of_locks) = Judge::new(plan, store)?;
    outcome.findings.extend(of_locks);
    let folder = plan.profiles(arguments.output.as_deref())?;
    let fresh = Fresh {
        selected: plan,
        base: base.as_ref(),
        output: &folder,
        watch: &Progress::with(arguments.verbosity.detail()),
        measure_all: arguments.measure_all,
        records: RecordUse {
            reads: true,
            writes: is_of_reviewed_code(plan, arguments)?,
        },
    };
    if arguments.r#static {
        fresh.compile(&judge, outcome)
    } else {
        fresh.measure(&judge, outcome)
    }
}

/// Whether no pull request's code is checked, as far as the service and the command line say.
fn is_of_reviewed_code(plan: &Selected, arguments: &CheckArgs) -> Result<bool, Error> {
    let pull_request = trust::pull_request(arguments.pull_request, variable)?;
    let reviewed = trust::is_of_reviewed_code(&plan.config.checkout, variable);
    Ok(pull_request.is_none() && reviewed)
}

/// A report must have a folder to lie in, and must not replace what the check reads.
fn refuse_target(path: &Path, project: &Config, from: Option<&Path>) -> Result<(), Error> {
    let whole = std::path::absolute(path).map_err(Error::io("find", path))?;
    if !whole.parent().is_some_and(Path::is_dir) {
        return Err(Error::Usage(format!(
            "`--report {}`: its folder does not exist",
            path.display()
        )));
    }
    // Links and `..` lead to what they lead to.
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let target = if whole.exists() {
        real(&whole)
    } else {
        real(whole.parent().unwrap_or(&whole))
    };
    let output = project.work.join("profiles");
    let (config, baselines) = (project.path.as_path(), project.baselines.as_path());
    let kept = [Some(config), Some(baselines), from, Some(&output)];
    if whole.exists()
        && kept
            .iter()
            .flatten()
            .any(|folder| target.starts_with(real(folder)))
    {
        return Err(Error::Usage(format!(
            "`--report {}` would replace a file that the check reads",
            path.display()
        )));
    }
    Ok(())
}
