//! From a plan to captures: the variants alone or beside their base.

use super::built::{Built, build};
use super::unmeasured::same_programs;
use crate::config::Variant;
use crate::device::Gpu;
use crate::finding::Error;
use crate::measure::captures::{Captures, SameProgram};
use crate::measure::cost::Spent;
use crate::measure::key::same::ChangedFiles;
use crate::measure::place::base::BaseProject;
use crate::measure::place::bench::Bench;
use crate::measure::place::order::{Order, Place, Plan};
use crate::measure::place::prebuilt::Prebuilt;
use crate::terms::VariantId;
use crate::verdict::Stopping;

/// Measures the variants of a plan, side by side with the base where there is one. A variant is measured
/// in more processes while `stop` says that it is open, within the configured bound. Where a base cannot
/// be measured a finding says why, and the variant is measured alone.
///
/// # Errors
/// [`Error`] where the machine failed; what concerns one variant is a finding.
pub fn measure(plan: &Plan<'_>, place: &Place<'_>, stop: &dyn Stopping) -> Result<Captures, Error> {
    let mut captures = match plan.base {
        Some(base) => side_by_side(plan, base, place, stop),
        None => alone(plan, place, stop),
    }?;
    captures.folder = place.output.to_path_buf();
    Ok(captures)
}

/// Builds the variants, and the base's where there is one, to be measured on another machine: the
/// programs, the variants that need no measurement, and the time that it took.
///
/// # Errors
/// As [`measure`].
pub fn programs(
    plan: &Plan<'_>,
    place: &Place<'_>,
) -> Result<(Prebuilt, Vec<SameProgram>, Spent), Error> {
    let variants = plan.alone();
    let built = build(Order {
        base: plan.base,
        ..plan.order(place, &variants)
    })?;
    let mut same = Vec::new();
    if let Some(base) = plan.base
        && let Some(changed) = changed(plan, base, place, &variants)
    {
        same = same_programs(plan, &built, base, &changed, place.watch);
    }
    let mut programs = built.programs();
    let measured = built.unmeasured();
    programs.current.findings = measured.findings;
    Ok((programs, same, measured.spent))
}

fn alone(plan: &Plan<'_>, place: &Place<'_>, stop: &dyn Stopping) -> Result<Captures, Error> {
    let variants = plan.alone();
    if variants.is_empty() {
        return Ok(Captures::default());
    }
    let order = plan.order(place, &variants);
    let bench = Bench::new(order.batch, order.overrides, order.prebuilt)?;
    build(order)?.measure(bench, stop)
}

fn side_by_side(
    plan: &Plan<'_>,
    base: &BaseProject,
    place: &Place<'_>,
    stop: &dyn Stopping,
) -> Result<Captures, Error> {
    let mut variants = plan.selected.variants();
    let packed = place.packed.map(|packed| packed.same_programs.to_vec());
    let mut same = packed.unwrap_or_default();
    variants.retain(|variant| !same.iter().any(|same| same.variant == variant.id));
    variants.retain(|variant| plan.is_own(&variant.id));
    let mut captures = Captures::default();
    if !variants.is_empty() {
        let order = Order {
            base: Some(base),
            ..plan.order(place, &variants)
        };
        let changed = match place.packed {
            Some(_) => None,
            None => changed(plan, base, place, &variants),
        };
        let must_measure = |changed: &ChangedFiles| variants.iter().any(|one| changed.concern(one));
        // What the machine lacks is reported before anything is built, where it is surely needed.
        let known = match changed.as_ref().is_none_or(&must_measure) {
            true => Some(bench(order)?),
            false => None,
        };
        let mut built = build(order)?;
        if let Some(changed) = changed {
            same = same_programs(plan, &built, base, &changed, place.watch);
            let ids: Vec<VariantId> = same.iter().map(|same| same.variant.clone()).collect();
            built.leave_out(&ids)?;
        }
        captures = measured(built, known, order, stop)?;
    }
    captures.same_programs = same;
    Ok(captures)
}

/// Measures what was built and is left.
fn measured<'a>(
    built: Built<'a>,
    known: Option<Bench<'a>>,
    order: Order<'a>,
    stop: &dyn Stopping,
) -> Result<Captures, Error> {
    if built.is_empty() {
        return Ok(built.unmeasured());
    }
    let bench = known.map_or_else(|| bench(order), Ok)?;
    built.measure(bench, stop)
}

/// The machine that measures. A missing GPU is reported before anything else that is missing.
fn bench(order: Order<'_>) -> Result<Bench<'_>, Error> {
    Gpu::query(order.batch.config.device)?;
    Bench::new(order.batch, order.overrides, order.prebuilt)
}

/// What changed since the base; `None` where everything is to be measured, or where git cannot say it.
fn changed(
    plan: &Plan<'_>,
    base: &BaseProject,
    place: &Place<'_>,
    variants: &[&Variant],
) -> Option<ChangedFiles> {
    if plan.measure_all {
        return None;
    }
    ChangedFiles::since(base, &plan.selected.config, variants)
        .inspect_err(|why| {
            let text =
                format!("every variant is measured, because git cannot say what changed: {why}");
            place.watch.notes(&text);
        })
        .ok()
}
