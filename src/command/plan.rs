//! `sparsek-gate plan`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::answer::{answer, named, print};
use super::select::select;
use crate::cli::{Format, PlanArgs};
use crate::config::{Config, FILE_NAME, Selected, Variant};
use crate::disk;
use crate::engine::{Task, engine};
use crate::finding::{Error, ExitCode};
use crate::git;
use crate::measure::Times;
use crate::plan::{SlicePlace, VariantPlan, shared_out};
use crate::report::say;
use crate::terms::{VariantId, counted};

/// How many slices there are where nobody says it, at most.
const USUAL: u32 = 8;

/// One slice of a check.
#[derive(Serialize)]
struct Slice {
    slice: String,
    variants: Vec<VariantId>,
    /// The sum of the time limits of its processes.
    most_s: f64,
}

/// The selected variants in so many slices, side by side with a base or alone.
fn sliced(selected: &Selected, count: u32, beside: bool) -> Vec<Slice> {
    let variants: Vec<VariantId> = selected.variants.iter().map(|it| it.id.clone()).collect();
    let plan_of = |variant: &Variant| VariantPlan::of(variant, beside);
    let plans = selected.variants.iter().map(|it| (&it.id, plan_of(it), it));
    let plans: BTreeMap<&VariantId, _> = plans
        .map(|(id, plan, it)| (id, (plan.time_limit(it), plan)))
        .collect();
    let times = Times::of(&selected.config.work);
    let shared = shared_out(&variants, count, |id| times.seconds(&plans.get(id)?.1));
    let slice = |(index, variants): (u32, Vec<VariantId>)| {
        let limits = variants.iter().filter_map(|id| plans.get(id));
        let most: Duration = limits.map(|(limit, _)| *limit).sum();
        Slice {
            slice: SlicePlace { index, count }.to_string(),
            most_s: most.as_secs_f64(),
            variants,
        }
    };
    (1..).zip(shared).map(slice).collect()
}

pub(super) fn run(path: &Path, arguments: &PlanArgs) -> Result<ExitCode, Error> {
    let selection = &arguments.selection;
    let selected = select(Config::load(path)?, selection, &[])?;
    let root = &selected.config.root;
    let known = |rev: &&String| git::commit_of(root, rev).is_some() || rev.contains('$');
    if let Some(rev) = arguments.against.as_ref().filter(|rev| !known(rev)) {
        say(&format!(
            "this clone has no revision `{rev}`: that of the jobs must have it"
        ));
    }
    let engine = engine(&arguments.format);
    let beside =
        arguments.against.is_some() || engine.is_some_and(|engine| engine.target.is_some());
    // A slice without a variant would be a job for nothing.
    let most = u32::try_from(selected.variants.len()).unwrap_or(u32::MAX);
    let most = most.min(engine.and_then(|engine| engine.most).unwrap_or(most));
    let count = arguments.slices.unwrap_or(USUAL).min(most).max(1);
    let slices = sliced(&selected, count, beside);
    let Some(engine) = engine else {
        let format = match arguments.format.as_str() {
            "json" => Format::Json,
            _ => Format::Text,
        };
        return answer(format, named("slices", &slices), &[], || text(&slices));
    };
    let limits = slices.iter().map(|slice| slice.most_s);
    // A service runs its jobs at the top of the repository.
    let whole = disk::leads_to(path);
    let top = git::repository(&selected.config.root).map(|it| it.top).ok();
    let below = top.filter(|_| engine.target.is_some());
    let config = below
        .and_then(|top| whole.strip_prefix(top).ok())
        .unwrap_or(path);
    let task = Task {
        slices: count,
        limit: Duration::from_secs_f64(limits.fold(0.0, f64::max)),
        config: config.to_str().filter(|name| *name != FILE_NAME),
        selection,
        against: arguments.against.as_deref(),
    };
    print(&engine.rendered(&task)?)?;
    Ok(ExitCode::Pass)
}

fn text(slices: &[Slice]) -> String {
    let mut text = String::new();
    for slice in slices {
        let minutes = (slice.most_s / 60.0).ceil();
        let count = counted(slice.variants.len(), "variant", "variants");
        let _ = writeln!(
            text,
            "slice {}: {count}, at most {minutes} min",
            slice.slice
        );
        for variant in &slice.variants {
            let _ = writeln!(text, "  {variant}");
        }
    }
    text
}
