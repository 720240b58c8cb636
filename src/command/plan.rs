//! `sparsek-gate plan`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::answer::{answer, named, print};
use super::select::select;
use crate::cli::{Format, PlanArgs};
use crate::config::{Config, FILE_NAME, Selected};
use crate::engine::{Task, engine};
use crate::finding::{Error, ExitCode};
use crate::measure::Times;
use crate::plan::{SlicePlace, VariantPlan, shared_out};
use crate::terms::{VariantId, counted};

/// How many slices there are where nobody says it, at most.
const USUAL: u32 = 8;

/// One slice, as it is printed.
#[derive(Serialize)]
struct Listed {
    slice: String,
    variants: Vec<VariantId>,
    /// The sum of the time limits of its processes.
    most_s: f64,
}

/// The slices of a check.
pub(super) struct Sliced {
    pub slices: u32,
    /// The variants of each, with the most that they may take.
    of: Vec<(Vec<VariantId>, Duration)>,
}

impl Sliced {
    /// The selected variants in so many slices, side by side with a base or alone.
    pub fn new(selected: &Selected, slices: Option<u32>, side_by_side: bool) -> Sliced {
        let variants: Vec<VariantId> = selected.variants.iter().map(|it| it.id.clone()).collect();
        // A slice without a variant would be a job for nothing.
        let most = u32::try_from(variants.len()).unwrap_or(u32::MAX).max(1);
        let slices = slices.unwrap_or(USUAL).min(most);
        let plans: BTreeMap<&VariantId, (VariantPlan, Duration)> = selected
            .variants
            .iter()
            .map(|variant| {
                let plan = match side_by_side {
                    true => VariantPlan::side_by_side(variant),
                    false => VariantPlan::alone(variant),
                };
                let limit = plan.time_limit(variant);
                (&variant.id, (plan, limit))
            })
            .collect();
        let times = Times::of(&selected.config.work);
        let shared = shared_out(&variants, slices, |id| times.seconds(&plans.get(id)?.0));
        let with_limit = |variants: Vec<VariantId>| {
            let limits = variants.iter().filter_map(|id| plans.get(id));
            let most = limits.map(|(_, limit)| *limit).sum();
            (variants, most)
        };
        Sliced {
            slices,
            of: shared.into_iter().map(with_limit).collect(),
        }
    }

    /// The most that one slice may take.
    pub fn limit(&self) -> Duration {
        let limits = self.of.iter().map(|(_, most)| *most);
        limits.max().unwrap_or_default()
    }

    fn listed(&self) -> Vec<Listed> {
        let slices = (1..).zip(&self.of);
        slices
            .map(|(index, (variants, most))| Listed {
                slice: SlicePlace {
                    index,
                    count: self.slices,
                }
                .to_string(),
                variants: variants.clone(),
                most_s: most.as_secs_f64(),
            })
            .collect()
    }
}

pub(super) fn run(path: &Path, arguments: &PlanArgs) -> Result<ExitCode, Error> {
    let selected = select(Config::load(path)?, &arguments.selection, None)?;
    let engine = engine(&arguments.format);
    let beside =
        arguments.against.is_some() || engine.is_some_and(|engine| engine.target.is_some());
    let sliced = Sliced::new(&selected, arguments.slices, beside);
    let Some(engine) = engine else {
        return list(&sliced, arguments);
    };
    let named = path.to_str().filter(|name| *name != FILE_NAME);
    let selection = &arguments.selection;
    let task = Task {
        slices: sliced.slices,
        limit: sliced.limit(),
        config: named,
        names: &selection.names,
        experimental: selection.experimental,
        against: arguments.against.as_deref(),
    };
    print(&engine.rendered(&task)?)?;
    Ok(ExitCode::Pass)
}

fn list(sliced: &Sliced, arguments: &PlanArgs) -> Result<ExitCode, Error> {
    let format = match arguments.format.as_str() {
        "json" => Format::Json,
        _ => Format::Text,
    };
    let slices = sliced.listed();
    answer(format, named("slices", &slices), &[], || text(&slices))
}

fn text(slices: &[Listed]) -> String {
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
