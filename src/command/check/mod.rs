//! `sparsek-gate check`.

mod judge;
mod places;
mod recorded;
mod trends;

use std::collections::BTreeMap;
use std::path::Path;

use super::{Plan, print_outcome};
use crate::baseline::Store;
use crate::cli::{CheckArgs, ReportFormat};
use crate::config::Variant;
use crate::device::Gpu;
use crate::finding::{Code, Error, ExitCode, Finding};
use crate::judge::{Ended, Origin, Outcome, apply_waivers};
use crate::measure::{BaseProject, compile_against, measure, measure_against};
use crate::profile::Profile;
use crate::report::{self, Progress, Target};
use crate::terms::VariantId;
use crate::trust::{self, Authority, Grounds};
use crate::verdict::Verdict;
use judge::{Judge, Profiles, unchecked};
use places::places;
use recorded::read_recorded;
use trends::trends;

pub(super) fn run(config: &Path, arguments: &CheckArgs) -> Result<ExitCode, Error> {
    let targets = report::targets(&arguments.report)?;
    let mut authority = Authority::default();
    let (outcome, ended) = match judged(config, arguments, &targets, &mut authority) {
        Ok(outcome) => (outcome, None),
        Err(refused @ Error::Usage(_)) => return Err(refused),
        // Whoever reads a report must find in it why there is no verdict.
        Err(error) => {
            let mut outcome = Outcome::new(origin(arguments));
            outcome.authority = authority;
            outcome.ended = Some(Ended {
                message: error.to_string(),
                exit_code: error.exit_code() as u8,
            });
            (outcome, Some(error))
        }
    };
    // The verdict first: a report that cannot be written must not take it along.
    if ended.is_none() || arguments.format != ReportFormat::Text {
        print_outcome(&outcome, arguments.format)?;
    }
    for target in &targets {
        target.write(&outcome)?;
    }
    match ended {
        Some(error) => Err(error),
        None => Ok(outcome.exit_code()),
    }
}

/// Where the profiles that are asked for come from.
fn origin(arguments: &CheckArgs) -> Origin {
    match &arguments.from {
        Some(folder) => Origin::Recorded(folder.display().to_string()),
        None if arguments.r#static => Origin::Compiled,
        None => Origin::Measured,
    }
}

fn judged(
    config: &Path,
    arguments: &CheckArgs,
    targets: &[Target],
    authority: &mut Authority,
) -> Result<Outcome, Error> {
    let head = Plan::new(config, &arguments.selection, None)?;
    for target in targets {
        refuse_target(&target.path, &head, arguments.from.as_deref())?;
    }
    let baselines = head.config.baselines.clone();
    let root = trust::root(
        &head.config.root,
        arguments.baseline_ref.as_deref(),
        |name| std::env::var(name).ok(),
    )?;
    let Grounds {
        config,
        store,
        authority: found,
        findings,
        ..
    } = &trust::establish(head.config, root, &arguments.accept)?;
    authority.clone_from(found);
    let plan = Plan::of(config.clone(), &arguments.selection, None)?;
    let mut outcome = Outcome::new(origin(arguments));
    outcome.authority = authority.clone();
    outcome.findings.extend(findings.iter().cloned());
    match &arguments.from {
        None if arguments.r#static => compile_and_judge(&plan, store, arguments, &mut outcome)?,
        Some(folder) => {
            if !folder.is_dir() {
                return Err(Error::Usage(format!(
                    "`--from {}` is no folder",
                    folder.display()
                )));
            }
            let recorded = read_recorded(folder, &plan, &mut outcome)?;
            let judge = Judge::new(&plan, store, &mut outcome)?;
            judge.all(&recorded, &mut outcome);
        }
        None => measure_and_judge(&plan, store, arguments, &mut outcome)?,
    };
    outcome
        .findings
        .extend(unchecked(&plan, store, &arguments.selection.names)?);
    waive(&plan, &mut outcome);
    outcome.places = places(&plan, &outcome);
    let holds_trends =
        |format: ReportFormat| matches!(format, ReportFormat::Html | ReportFormat::Json);
    if holds_trends(arguments.format) || targets.iter().any(|target| holds_trends(target.format)) {
        outcome.trends = trends(&plan, store, &baselines, &outcome)?;
    }
    Ok(outcome)
}

/// Lets pass what the configuration waives today.
fn waive(plan: &Plan, outcome: &mut Outcome) {
    let variants = &outcome.variants;
    let judged = |variant: &VariantId, metric: &str| {
        let comparisons = variants
            .iter()
            .filter(|report| report.variant == *variant)
            .flat_map(|report| &report.comparisons);
        comparisons
            .filter(|comparison| comparison.metric == metric)
            .any(|comparison| !matches!(comparison.verdict, None | Some(Verdict::NotMeasured)))
    };
    let today = jiff::Timestamp::now()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date();
    apply_waivers(&plan.config.waivers, today, &mut outcome.findings, judged);
}

/// The base revision, where one is named.
fn base(plan: &Plan, arguments: &CheckArgs) -> Result<Option<BaseProject>, Error> {
    let revision = arguments.against.as_deref();
    revision
        .map(|revision| BaseProject::check_out(&plan.config, revision))
        .transpose()
}

/// What needs no GPU: builds the variants, and the base's where one is named, and judges the code.
fn compile_and_judge(
    plan: &Plan,
    store: &Store,
    arguments: &CheckArgs,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let base = base(plan, arguments)?;
    let mut gated = Vec::new();
    for variant in plan.variants() {
        let Some(why) = variant.why_no_static_gate() else {
            gated.push(variant);
            continue;
        };
        let finding = Finding::deny(
            Code::NotMeasured,
            &variant.id,
            format!("the static gate says nothing of it: {why}"),
            format!("measure it: sparsek-gate check {}", variant.id),
        );
        outcome.findings.push(finding.warn());
    }
    let judge = Judge::new(plan, store, outcome)?;
    let folder = plan.profiles(arguments.output.as_deref())?;
    let progress = Progress::new();
    let compiled = compile_against(&plan.config, base.as_ref(), &gated, &folder, &progress)?;
    drop(progress);
    outcome.findings.extend(compiled.findings);
    for variant in gated {
        judge.compiled(
            variant,
            &compiled.compiled,
            &compiled.compiled_bases,
            outcome,
        );
    }
    Ok(())
}

fn measure_and_judge(
    plan: &Plan,
    store: &Store,
    arguments: &CheckArgs,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    // A slip in the revision is told before anything is asked of the machine.
    let base = base(plan, arguments)?;
    // Without a GPU nothing can be measured, and that comes before what is wrong with a lock.
    Gpu::query(plan.config.device)?;
    let judge = Judge::new(plan, store, outcome)?;
    let folder = plan.profiles(arguments.output.as_deref())?;
    let progress = Progress::new();
    let mut seen: BTreeMap<VariantId, Profile> = BTreeMap::new();
    let mut open = |variant: &Variant, profile: &Profile| {
        if variant.immutable {
            seen.insert(variant.id.clone(), profile.clone());
        }
        let control = judge.control(variant, |id| seen.get(id));
        judge
            .stored(variant, profile, control.as_ref())
            .is_some_and(|(report, _)| report.open(|metric| judge.waived(variant, metric)))
    };
    let measured = match &base {
        Some(base) => {
            let mut pair_open = |variant: &Variant, base: &Profile, head: &Profile| {
                judge
                    .against(variant, base, head)
                    .0
                    .open(|metric| judge.waived(variant, metric))
            };
            let mut measured = measure_against(
                &plan.config,
                base,
                &plan.variants(),
                &folder,
                &progress,
                &mut open,
                &mut pair_open,
            )?;
            // What has no base is judged against its stored baseline, and that needs a control.
            let alone: Vec<&str> = measured
                .profiles
                .iter()
                .filter(|head| {
                    !measured
                        .bases
                        .iter()
                        .any(|base| base.variant == head.variant)
                })
                .map(|head| head.variant.suite.as_str())
                .collect();
            let mut controls = judge.controls_to_add();
            controls.retain(|control| alone.contains(&control.id.suite.as_str()));
            if !controls.is_empty() {
                let further = measure(
                    &plan.config,
                    &controls,
                    &folder,
                    &[],
                    &progress,
                    &mut |_, _| false,
                )?;
                measured.profiles.extend(further.profiles);
                measured.findings.extend(further.findings);
            }
            measured
        }
        None => {
            // The controls first: what they say bounds the others' bands.
            let mut variants = plan.variants();
            variants.extend(judge.controls_to_add());
            variants.sort_by_key(|variant| !variant.immutable);
            measure(&plan.config, &variants, &folder, &[], &progress, &mut open)?
        }
    };
    drop(progress);
    // What is incomplete is told again, and in more words, by the comparison.
    let judged = |finding: &&Finding| {
        !measured
            .profiles
            .iter()
            .any(|profile| finding.concerns(&profile.variant))
            || matches!(
                finding.code,
                Code::BaseUnavailable | Code::LaunchMismatch | Code::Retried
            )
    };
    outcome
        .findings
        .extend(measured.findings.iter().filter(judged).cloned());
    let (heads, controls) = measured
        .profiles
        .into_iter()
        .partition(|profile| plan.variants.iter().any(|v| v.id == profile.variant));
    let profiles = Profiles {
        heads,
        bases: measured.bases,
        controls,
        compiled: measured.compiled,
        compiled_bases: measured.compiled_bases,
    };
    judge.all(&profiles, outcome);
    Ok(())
}

/// A report must have a folder to lie in, and must not replace what the check reads.
fn refuse_target(path: &Path, plan: &Plan, from: Option<&Path>) -> Result<(), Error> {
    let whole = std::path::absolute(path).map_err(Error::io("find", path))?;
    if !whole.parent().is_some_and(Path::is_dir) {
        return Err(Error::Usage(format!(
            "`--report {}`: there is no such folder",
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
    let output = plan.profiles(None)?;
    let (config, baselines) = (plan.config.path.as_path(), plan.config.baselines.as_path());
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
