//! From a plan to captures: the variants alone or beside their base.

use super::built::build;
use super::unmeasured::same_programs;
use crate::config::Variant;
use crate::finding::Error;
use crate::measure::captures::{Captures, SameProgram};
use crate::measure::cost::Spent;
use crate::measure::key::same::ChangedFiles;
use crate::measure::place::bench::Bench;
use crate::measure::place::order::{Place, Plan};
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
    let packed = place.packed.map(|packed| packed.same_programs.clone());
    let mut same = packed.unwrap_or_default();
    let mut variants = plan.variants();
    variants.retain(|variant| !same.iter().any(|same| same.variant == variant.id));
    let mut captures = Captures::default();
    if !variants.is_empty() {
        let order = plan.order(place, &variants);
        let bench = || Bench::new(order.batch, order.overrides, place.packed);
        let changed = changed(plan, place, &variants);
        let must_measure = |changed: &ChangedFiles| variants.iter().any(|one| changed.concern(one));
        // What the machine lacks is reported before anything is built, where it is surely needed.
        let known = match changed.as_ref().is_none_or(must_measure) {
            true => Some(bench()?),
            false => None,
        };
        let mut built = build(order)?;
        if let Some(changed) = changed {
            same = same_programs(plan, &built, &changed, place.watch);
            let ids: Vec<VariantId> = same.iter().map(|same| same.variant.clone()).collect();
            built.leave_out(&ids)?;
        }
        captures = match built.is_empty() {
            true => built.unmeasured(),
            false => built.measure(known.map_or_else(bench, Ok)?, stop)?,
        };
    }
    captures.same_programs = same;
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
    let variants = plan.variants();
    let built = build(plan.order(place, &variants))?;
    let same = match changed(plan, place, &variants) {
        Some(changed) => same_programs(plan, &built, &changed, place.watch),
        None => Vec::new(),
    };
    let mut programs = built.programs();
    let measured = built.unmeasured();
    programs.current.findings = measured.findings;
    Ok((programs, same, measured.spent))
}

/// What changed since the base; `None` where everything is to be measured, where git cannot say it, or
/// where another machine found it out.
fn changed(plan: &Plan<'_>, place: &Place<'_>, variants: &[&Variant]) -> Option<ChangedFiles> {
    let base = plan
        .base
        .filter(|_| !plan.measure_all && place.packed.is_none())?;
    ChangedFiles::since(base, &plan.selected.config, variants)
        .inspect_err(|why| {
            let text =
                format!("every variant is measured, because git cannot say what changed: {why}");
            place.watch.notes(&text);
        })
        .ok()
}
